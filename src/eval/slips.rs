//! Two slips: a pointer variable in the place of the memory that it points to, and a sum in the place of a range. Both
//! give an answer, about another page than the one that was meant. Every range and place that a command evaluates comes
//! by here.

use super::evaluator::Evaluator;
use super::scope::{Scope, Slip};
use super::value::Value;
use crate::lang::{BinaryOperator, Expression, Range, Spanned, SymbolName, UnaryOperator};
use crate::symbol::{SymbolAt, SymbolKind};

/// The smallest number that is taken for a length.
const SMALLEST_LENGTH: i128 = 4096;

/// What is to be written after the place where there is no length.
const ANY_LENGTH: &str = ", +LENGTH";

/// Notes both for the range of a command.
pub(super) fn note_range(range: &Spanned<Range>, scope: &dyn Scope) {
    let expression = match &range.node {
        Range::Expression(expression) => expression,
        Range::Length { start, length } => return note(start, &format!(", +{}", length.node), scope),
        _ => return,
    };
    if is_sum_like_length(expression) {
        let cause = "a sum is one address: for a range, put a comma before the length, as in".to_owned();
        scope.note_slip(Slip { cause, written: expression.to_string(), meant: "A, +4M".to_owned() });
        return;
    }
    note(&Spanned::new(expression.clone(), range.at), ANY_LENGTH, scope);
}

/// Notes, for the name of a variable that holds a mapped address, that the answer is about the variable.
pub(super) fn note_place(place: &Spanned<Expression>, scope: &dyn Scope) {
    note(place, "", scope);
}

fn note(place: &Spanned<Expression>, length: &str, scope: &dyn Scope) {
    let Some(target) = scope.target() else {
        return;
    };
    // In C, `pointer + 4096` is an address in the memory that it points to.
    let (variable, sum) = match &place.node {
        Expression::Binary { operator, left, right }
            if matches!(operator.node, BinaryOperator::Add | BinaryOperator::Subtract) =>
        {
            (&**left, format!(" {} {}", operator.node.text(), right.node))
        }
        _ => (place, String::new()),
    };
    let Some(name) = variable_of_size(variable, target.process.layout().pointer_bytes.into(), scope) else {
        return;
    };
    let operand = Box::new(variable.clone());
    let operator = Spanned::new(UnaryOperator::Dereference, place.at);
    let stored = Spanned::new(Expression::Unary { operator, operand }, place.at);
    let stored = Evaluator::new(scope).evaluate(&stored);
    let Ok(Value::Address(pointer)) = stored else {
        return;
    };
    if target.process.region_at(pointer).is_ok_and(|region| region.is_some()) {
        scope.note_slip(Slip {
            cause: format!("`{name}` points to {pointer}: for the memory there, write"),
            written: place.node.to_string() + if length == ANY_LENGTH { "" } else { length },
            meant: format!("*{name}{sum}{length}"),
        });
    }
}

/// The name that is written, if it is that of a variable with so many bytes.
pub fn variable_of_size(written: &Spanned<Expression>, bytes: u64, scope: &dyn Scope) -> Option<String> {
    let called = match &written.node {
        Expression::Name(symbol) => SymbolName { module: None, symbol: Spanned::new(symbol.clone(), written.at) },
        Expression::ModuleSymbol { module, symbol } => {
            SymbolName { module: Some(module.clone()), symbol: symbol.clone() }
        }
        _ => return None,
    };
    let evaluator = Evaluator::new(scope);
    let start = evaluator.address(written).ok()?;
    let found = evaluator.symbols(&called).ok()?;
    let is_it = |one: &SymbolAt| one.start == start && one.kind == SymbolKind::Object && one.size == bytes;
    found.iter().any(is_it).then(|| called.to_string())
}

/// `A +4M`, with a blank before the plus and none after it.
fn is_sum_like_length(expression: &Expression) -> bool {
    let Expression::Binary { operator, left, right } = expression else {
        return false;
    };
    let is_length = match right.node {
        Expression::Integer(number) => number >= SMALLEST_LENGTH,
        Expression::Pages(_) => true,
        _ => false,
    };
    operator.node == BinaryOperator::Add
        && left.at.end < operator.at.start
        && operator.at.end == right.at.start
        && is_length
}
