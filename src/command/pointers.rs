//! Notes and hints about slips that need the command: a variable in the place of its value, and a number that is no
//! address.

use super::floor::Context;
use super::floor::Error;
use crate::eval::{self, Integer, Value};
use crate::kernel::physical::ZoneLookup;
use crate::kernel::{FrameNumber, PhysicalAddress, State, VirtualAddress};
use crate::lang::{Expression, NumberType, Range, Spanned};

/// Notes, for the name of a variable, how to watch its value: gdb's `watch NAME` does.
pub(super) fn note_value(context: &mut Context, range: &Spanned<Range>) -> Result<(), Error> {
    let Range::Expression(expression) = &range.node else {
        return Ok(());
    };
    let written = Spanned::new(expression.clone(), range.at);
    let Some((name, size)) = eval::variable(&written, context.state) else {
        return Ok(());
    };
    let as_type = match size {
        1 => NumberType::U8,
        2 => NumberType::U16,
        4 => NumberType::U32,
        8 => NumberType::U64,
        _ => return Ok(()),
    };
    let value = Expression::Read { as_type, address: Box::new(written) };
    let text = value.to_string();
    if let Ok(Value::Integer(number)) = eval::evaluate(&Spanned::new(value, range.at), context.state)
        && !is_pointer(context, number)?
    {
        let message = format!(
            "`watch` shows changes of pages; to wait until `{name}` has another value: `watch {name} until {text} != {number}`"
        );
        context.sink.note(message)?;
    }
    Ok(())
}

/// Whether a number is a mapped address: the range is noted as a pointer then.
fn is_pointer(context: &Context, number: Integer) -> Result<bool, Error> {
    let Some(address) = number.to_u64().map(VirtualAddress::new) else {
        return Ok(false);
    };
    Ok(context.target()?.process.region_at(address)?.is_some())
}

/// The hint for a number that is no address of the process: it may be that of a page frame, or a physical address, if
/// the machine has that frame, or does not show which it has.
pub(super) fn hint_frame(
    context: &Context,
    command: &str,
    place: &Spanned<Expression>,
    state: State,
    error: eval::Error,
) -> eval::Error {
    let (State::Unmapped, Expression::Integer(number)) = (state, &place.node) else {
        return error;
    };
    let Ok(number) = u64::try_from(*number) else {
        return error;
    };
    let zones = context.state.machine().zones();
    let exists = |frame| zones.as_ref().map_or(true, |zones| zones.span_of(frame).spanned != ZoneLookup::InNone);
    let frame = exists(FrameNumber::new(number)).then(|| format!("for a page frame `{command} pfn:{number:#x}`"));
    let physical = exists(PhysicalAddress::new(number).frame(context.state.machine().page_size()))
        .then(|| format!("for a physical address `{command} phys:{number:#x}`"));
    match frame.into_iter().chain(physical).collect::<Vec<_>>() {
        hints if hints.is_empty() => error,
        hints => error.hint(hints.join(", ")),
    }
}
