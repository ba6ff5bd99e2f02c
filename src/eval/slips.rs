//! Two slips: a pointer variable in the place of the memory that it points to, and a sum in the place of a range. Both
//! give an answer, about another page than the one that was meant. The functions of `eval` that evaluate ranges and
//! places look for them, so that commands need not.

use super::evaluator::Evaluator;
use super::scope::{Scope, Slip};
use super::value::Value;
use crate::lang::{BinaryOperator, Expression, Range, Spanned, UnaryOperator};
use crate::symbol::SymbolKind;

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
    let is_pointer = |(_, size): &(String, u64)| *size == u64::from(target.process.layout().pointer_bytes);
    let Some((name, _)) = self::variable(variable, scope).filter(is_pointer) else {
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

/// The variable that is written by its name alone: the name, and its size. It searches for no similar names: most names
/// of regions and modules come by here too.
pub fn variable(written: &Spanned<Expression>, scope: &dyn Scope) -> Option<(String, u64)> {
    let (module, name, at) = match &written.node {
        Expression::Name(name) => (None, name, written.at),
        Expression::ModuleSymbol { module, symbol } => (Some(module.node.0.as_str()), &symbol.node, symbol.at),
        _ => return None,
    };
    let evaluator = Evaluator::new(scope);
    let found = evaluator.names(at, "").ok()?.find(module, &name.0).ok()?;
    let start = evaluator.one(&name.0, found.clone(), at).ok()?.start;
    let variable = found.iter().find(|one| one.start == start && one.kind == SymbolKind::Object)?;
    Some((written.node.to_string(), variable.size))
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
