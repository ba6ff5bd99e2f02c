//! Expressions and ranges to values, filters to `inspect::Filter`, against a target.
//!
//! Everything is worked out within a [`Scope`]: the debugging session. An error says what was tried, why it failed and where in
//! the line. Numbers are exact and values typed: an address plus an integer is an address, two addresses cannot be added, and
//! what does not fit is an error, never wrapped. Memory is read only where the page map says that a frame is mapped.
//!
//! ```text
//! subject   filter                        what translate, flags, walk and regions are asked about
//! extent    functions sweeps    frames    ranges, what is made of them, and what is in their pages
//! changes   snapshots                     what changed between two times
//! names     symbols   mapping   memory    what a name stands for, what an address holds
//! lines                                   where a line of the source is
//! evaluator judge                         one expression; the other files lend it what they know
//! compared  operators space     spans     value     what can be done with values, and what they are
//! integer   amount    error     suggest   scope     the rest: numbers, what went wrong and what was meant, the session
//! ```

mod amount;
mod changes;
mod compared;
mod error;
mod evaluator;
mod extent;
mod filter;
mod frames;
mod functions;
mod integer;
mod judge;
mod lines;
mod mapping;
mod memory;
mod names;
mod operators;
mod registers;
mod scope;
mod snapshots;
mod space;
mod spans;
mod subject;
mod suggest;
mod sweeps;
mod symbols;
#[cfg(test)]
mod tests;
mod value;

pub use amount::{count, time};
pub use changes::unknown_snapshot;
pub use error::{Error, Result};
pub use evaluator::is_set_by_pmdb;
pub use extent::Extent;
pub use filter::{RegionFilter, comparison, frame_filter, page_filter, region_filter};
pub use integer::Integer;
pub use judge::{Finding, Judgement};
pub use scope::Scope;
pub use snapshots::{Compared, Keep, NamedSnapshot, Refusal, current_ranges};
pub use spans::{Origin, Spans};
pub use subject::{Location, Subject};
pub use value::Value;

use crate::kernel::VirtualAddress;
use crate::lang::{self, Expression, Spanned, SymbolName};
use crate::symbol::{LineSearch, Stop, SymbolAt};
use evaluator::Evaluator;

/// The value of an expression. A symbol is its address, a region or module a range.
///
/// # Errors
/// With the place of what has no value.
pub fn evaluate(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Value> {
    Evaluator::new(scope).evaluate(expression)
}

/// The value of what `print` and `set $name =` take: as [`evaluate`], and `A..B`, `A, +LENGTH` and `all` are ranges.
///
/// # Errors
/// With the place of what has no value.
pub fn value(written: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Value> {
    match &written.node {
        lang::Range::Expression(expression) => {
            Evaluator::new(scope).evaluate_at(expression, written.at)
        }
        _ => range(written, scope).map(Value::from),
    }
}

/// Whether an expression is true: a number that is not zero.
///
/// # Errors
/// With the place of what has no value, or is no number.
pub fn truth(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<bool> {
    let value = Evaluator::new(scope).placed(expression)?;
    operators::truth(&value)
}

/// Whether what was asserted holds, with the values that decided.
///
/// # Errors
/// With the place of what has no value: it neither holds nor fails.
pub fn judge(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Judgement> {
    Evaluator::new(scope).judge(expression)
}

/// The value of an argument. A bare name that is no symbol, region or module is text, like what is no expression.
///
/// # Errors
/// With the place of what has no value.
pub fn argument(argument: &Spanned<lang::Argument>, scope: &dyn Scope) -> Result<Value> {
    let text = || Value::Text(argument.node.text.clone());
    if let mark @ ("&" | ">" | ">>" | "|") = argument.node.text.as_str() {
        let message = match mark {
            "&" => "a lone `&` is no argument, and nothing is run in the background".to_owned(),
            mark => format!("a lone `{mark}` is no argument: what follows it is missing"),
        };
        let hint = format!("as a text it stands in quotes: \"{mark}\"");
        return Err(Error::new(argument.at, message).hint(hint));
    }
    let Some(range) = &argument.node.value else {
        return Ok(text());
    };
    let is_name = matches!(&range.node, lang::Range::Expression(Expression::Name(_)));
    match value(range, scope) {
        Err(error) if is_name && error.stopped.is_none() => Ok(text()),
        value => value,
    }
}

/// An address of the target. A number that is not negative is one, and a range stands for its first address.
///
/// # Errors
/// With the place of what has no value or is no address.
pub fn address(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<VirtualAddress> {
    Evaluator::new(scope).address(expression)
}

/// The integer that an expression comes to: an address and the like count as their number.
///
/// # Errors
/// With the place of what has no value or is text.
pub fn integer(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Integer> {
    let value = Evaluator::new(scope).placed(expression)?;
    operators::Operand::of(&value).map(|operand| operand.number)
}

/// A range of addresses or of page frames. A lone address is its one byte, a symbol with a size its bytes.
///
/// # Errors
/// With the place of what has no value; for ranges that are empty, reversed, or pass the last address.
pub fn range(range: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Extent> {
    Evaluator::new(scope).extent(range)
}

/// An address, a page frame (`pfn:N`) or a physical address (`phys:N`).
///
/// # Errors
/// With the place of what has no value.
pub fn location(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Location> {
    Evaluator::new(scope).location(expression)
}

/// What `translate` is asked about: an address, a symbol with a size, or a range.
///
/// # Errors
/// With the place of what has no value; for page frames, which there is nothing to translate of.
pub fn subject(range: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Subject> {
    Evaluator::new(scope).subject(range)
}

/// Every symbol that is meant: one or more, in any order. Where an expression wants one address, several are an error.
///
/// # Errors
/// With the place of a module or symbol that is not there, or that has no address.
pub fn symbols(symbol: &SymbolName, scope: &dyn Scope) -> Result<Vec<SymbolAt>> {
    Evaluator::new(scope).symbols(symbol)
}

/// Where a line of the source has code: at least one place, of the line or of the first behind it that has code; the first `with_frames`
/// of each module with the functions there. `stop` is asked now and then whether to go on.
///
/// # Errors
/// With the place of a file or line that is not there; what `stop` says counts as one.
pub fn lines(
    file: &Spanned<lang::Name>,
    line: &Spanned<u64>,
    with_frames: usize,
    scope: &dyn Scope,
    stop: &mut Stop,
) -> Result<LineSearch> {
    Evaluator::new(scope).line_search(file, line, with_frames, stop)
}

/// The variables that pmdb sets itself, beside `$_`.
pub fn own_variables() -> impl Iterator<Item = &'static str> {
    evaluator::VOID.iter().map(|(name, _)| *name)
}

/// Which modules have debug information that could not be looked through for a line, and why.
pub fn unasked(found: &LineSearch) -> Option<String> {
    lines::unasked(found)
}
