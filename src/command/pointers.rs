//! Notes about slips that give an answer, but not to what was meant: a pointer variable in the place of the memory that
//! it points to, a sum in the place of a range, and a variable in the place of its value.

use super::entry::Context;
use super::error::Error;
use crate::eval::{self, Value};
use crate::kernel::State;
use crate::lang::{BinaryOperator, Expression, NumberType, Range, Spanned, SymbolName, UnaryOperator};
use crate::symbol::{SymbolAt, SymbolKind};

/// The smallest number that is taken for a length.
const SMALLEST_LENGTH: i128 = 4096;

/// Notes both for the range of a command. Returns whether the answer is about a pointer.
pub(super) fn note_range(context: &mut Context, command: &str, range: &Spanned<Range>) -> Result<bool, Error> {
    note_range_before(context, command, range, "")
}

/// The same for a command that needs `rest` after its range.
pub(super) fn note_range_before(
    context: &mut Context,
    command: &str,
    range: &Spanned<Range>,
    rest: &str,
) -> Result<bool, Error> {
    // An empty line continues the command.
    if context.resume.is_some() {
        return Ok(false);
    }
    match &range.node {
        Range::Expression(expression) if is_sum_like_length(expression) => {
            let message =
                format!("a sum is one address: for a range, put a comma before the length, as in `{command} A, +4M`");
            context.sink.note(message)?;
            Ok(false)
        }
        Range::Expression(expression) => {
            let place = Spanned::new(expression.clone(), range.at);
            note(context, command, &format!(", +LENGTH{rest}"), &place)
        }
        Range::Length { start, length } => note(context, command, &format!(", +{}{rest}", length.node), start),
        _ => Ok(false),
    }
}

/// Notes, for the name of a variable that holds a mapped address, that the answer is about the variable.
pub(super) fn note_address(context: &mut Context, command: &str, place: &Spanned<Expression>) -> Result<(), Error> {
    note(context, command, "", place).map(drop)
}

fn note(context: &mut Context, command: &str, rest: &str, place: &Spanned<Expression>) -> Result<bool, Error> {
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
        return Ok(false);
    };
    let operand = Box::new(variable.clone());
    let operator = Spanned::new(UnaryOperator::Dereference, place.at);
    let stored = eval::evaluate(&Spanned::new(Expression::Unary { operator, operand }, place.at), context.state);
    let Ok(Value::Address(pointer)) = stored else {
        return Ok(false);
    };
    let is_mapped = target.process.region_at(pointer)?.is_some();
    if is_mapped {
        let message =
            format!("`{name}` points to {pointer}: for the memory there, write `{command} *{name}{sum}{rest}`");
        context.sink.note(message)?;
    }
    Ok(is_mapped)
}

/// Notes, for the name of a variable, how to watch its value: gdb's `watch NAME` does.
pub(super) fn note_value(context: &mut Context, range: &Spanned<Range>) -> Result<(), Error> {
    let Range::Expression(expression) = &range.node else {
        return Ok(());
    };
    let written = Spanned::new(expression.clone(), range.at);
    for (bytes, as_type) in [(1, NumberType::U8), (2, NumberType::U16), (4, NumberType::U32), (8, NumberType::U64)] {
        let Some(name) = variable_of_size(context, &written, bytes) else {
            continue;
        };
        let address = Box::new(written.clone());
        let value = Expression::Read { as_type, address };
        let text = value.to_string();
        if let Ok(Value::Integer(number)) = eval::evaluate(&Spanned::new(value, range.at), context.state) {
            let message = format!(
                "`watch` shows changes of pages; to wait until `{name}` has another value: `watch {name} until {text} != {number}`"
            );
            context.sink.note(message)?;
        }
    }
    Ok(())
}

/// The hint for a number that is no address of the process: it may be that of a page frame, if there are so many, or a
/// physical address.
pub(super) fn hint_frame(
    context: &Context,
    command: &str,
    place: &Spanned<Expression>,
    state: State,
    error: eval::Error,
) -> eval::Error {
    let Expression::Integer(number) = place.node else {
        return error;
    };
    if state != State::Unmapped {
        return error;
    }
    let physical = format!("for a physical address `{command} phys:{number:#x}`");
    let end = context.state.machine().zones().ok().and_then(|zones| zones.end());
    let is_frame = end.is_none_or(|end| number < i128::from(end.get()));
    error.hint(if is_frame { format!("for a page frame `{command} pfn:{number:#x}`, {physical}") } else { physical })
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
