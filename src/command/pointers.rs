//! Notes about two slips: a pointer variable in the place of the memory that it points to, and a sum in the place of a
//! range. Both give an answer, about another page than the one that was meant.

use super::entry::Context;
use super::error::Error;
use crate::eval::{self, Value};
use crate::kernel::State;
use crate::lang::{BinaryOperator, Expression, Range, Spanned, SymbolName, UnaryOperator};
use crate::symbol::{SymbolAt, SymbolKind};

/// The smallest number that is taken for a length.
const SMALLEST_LENGTH: i128 = 4096;

/// Notes both for the range of a command.
pub(super) fn note_range(context: &mut Context, command: &str, range: &Spanned<Range>) -> Result<(), Error> {
    // An empty line continues the command.
    if context.resume.is_some() {
        return Ok(());
    }
    let Range::Expression(expression) = &range.node else {
        return Ok(());
    };
    if is_sum_like_length(expression) {
        let message =
            format!("a sum is one address: for a range, put a comma before the length, as in `{command} A, +4M`");
        return Ok(context.sink.note(message)?);
    }
    note(context, command, ", +LENGTH", &Spanned::new(expression.clone(), range.at))
}

/// Notes, for the name of a variable that holds a mapped address, that the answer is about the variable.
pub(super) fn note_address(context: &mut Context, command: &str, place: &Spanned<Expression>) -> Result<(), Error> {
    note(context, command, "", place)
}

fn note(context: &mut Context, command: &str, length: &str, place: &Spanned<Expression>) -> Result<(), Error> {
    let target = context.target()?;
    // In C, `pointer + 4096` is an address in the memory that it points to.
    let (variable, sum) = match &place.node {
        Expression::Binary { operator, left, right }
            if matches!(operator.node, BinaryOperator::Add | BinaryOperator::Subtract) =>
        {
            (&**left, format!(" {} {}", operator.node.text(), right.node))
        }
        _ => (place, String::new()),
    };
    let Some(name) = variable_of_size(context, variable, target.process.layout().pointer_bytes.into()) else {
        return Ok(());
    };
    let operand = Box::new(variable.clone());
    let operator = Spanned::new(UnaryOperator::Dereference, place.at);
    let stored = eval::evaluate(&Spanned::new(Expression::Unary { operator, operand }, place.at), context.state);
    let Ok(Value::Address(pointer)) = stored else {
        return Ok(());
    };
    if target.process.region_at(pointer)?.is_some() {
        let message =
            format!("`{name}` points to {pointer}: for the memory there, write `{command} *{name}{sum}{length}`");
        context.sink.note(message)?;
    }
    Ok(())
}

/// The hint for a number that is no address of the process: it may be that of a page frame.
pub(super) fn hint_frame(command: &str, place: &Spanned<Expression>, state: State, error: eval::Error) -> eval::Error {
    match place.node {
        Expression::Integer(number) if state == State::Unmapped => {
            error.hint(format!("for the page frame of this number: `{command} pfn:{number:#x}`"))
        }
        _ => error,
    }
}

/// The name that is written, if it is that of a variable with so many bytes.
pub(super) fn variable_of_size(context: &Context, written: &Spanned<Expression>, bytes: u64) -> Option<String> {
    let called = match &written.node {
        Expression::Name(symbol) => SymbolName { module: None, symbol: Spanned::new(symbol.clone(), written.at) },
        Expression::ModuleSymbol { module, symbol } => {
            SymbolName { module: Some(module.clone()), symbol: symbol.clone() }
        }
        _ => return None,
    };
    let start = eval::address(written, context.state).ok()?;
    let found = eval::symbols(&called, context.state).ok()?;
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
