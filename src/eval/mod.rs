//! Evaluates expressions and ranges to values, and filters to `inspect::Filter`, for a target.
//!
//! Everything is evaluated in a [`Scope`]: the debugging session. An error has the attempt, the cause, and the place in
//! the line. Numbers are exact: an overflow is an error. Values are typed: an address plus an integer is an address,
//! and two addresses cannot be added. Memory is read only where the page map shows that a frame is mapped.
//!
//! ```text
//! filter                                        what walk, watch and regions are asked for
//! extent     functions   sweeps                 ranges, what is made of them, and what is in their pages
//! changes    snapshots                          what changed between two times
//! names      symbols     memory                 what a name stands for, what an address holds
//! evaluator  compared    cast                   one expression
//! operators  spans       value                  values and their operators
//! c_number   integer     amount                 numbers
//! error      scope       slips                  what went wrong, the session, what was probably meant
//! ```

mod amount;
mod c_number;
mod cast;
mod changes;
mod compared;
mod error;
mod evaluator;
mod extent;
mod filter;
mod functions;
mod integer;
mod memory;
mod names;
mod operators;
mod scope;
mod slips;
mod snapshots;
mod spans;
mod sweeps;
mod symbols;
#[cfg(test)]
mod tests;
mod value;

pub use amount::{count, time};
pub use c_number::{CInteger, Float};
pub use changes::{NO_SNAPSHOT_HINT, unknown_snapshot};
pub use compared::in_units;
pub use error::{Error, Result, code_of, code_of_unknown};
pub use evaluator::{is_set_by_pmdb, own_variables};
pub use extent::{AddressOrRange, Extent, Location};
pub use filter::{RegionFilter, frame_filter, key, page_filter, region_filter};
pub use integer::Integer;
pub(crate) use names::UNBRACKETED;
pub use operators::regex;
pub use scope::{Remark, Scope, Slip};
pub use slips::{in_no_region, note_address, null_pointer, variable};
pub use snapshots::{
    CommonSpans, ComparisonRefusal, Keep, NamedSnapshot, OpenNamedSnapshot, current_ranges, current_space, fixed_ranges,
};
pub use spans::{Origin, Spans};
pub use sweeps::perhaps_zeros;
pub use symbols::modules_without_lines;
pub use value::{Array, Value, ValueKind};

use crate::kernel::{AddressRange, VirtualAddress};
use crate::lang::{self, Expression, Spanned, SymbolName};
use crate::report::AssertionReport;
use crate::symbol::{LineSearch, SymbolAt};
use evaluator::Evaluator;

/// Returns the value of an expression. A symbol is its address, a region or module a range.
///
/// # Errors
/// Fails if an expression has no value. The error has its place.
pub fn evaluate(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Value> {
    Evaluator::new(scope).evaluate(expression)
}

/// Returns the value for `print` and `set $name =`: of an expression, or of a range (`A..B`, `A, +LENGTH`, `all`).
///
/// # Errors
/// Fails if an expression has no value. The error has its place.
pub fn value(written: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Value> {
    match &written.node {
        lang::Range::Expression(expression) => Evaluator::new(scope).evaluate_at(expression, written.at),
        _ => range(written, scope).map(Value::from),
    }
}

/// Returns whether an expression is true: a number that is not zero.
///
/// # Errors
/// Fails if an expression has no value, or is not a number. The error has its place.
pub fn truth(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<bool> {
    let value = Evaluator::new(scope).value_with_place(expression)?;
    operators::truth(&value)
}

/// Returns whether a filter without fields is true: `rss(heap) < 1G`.
///
/// # Errors
/// Fails if an expression has no value, or is a field. The error has its place.
pub fn comparison(filter: &Spanned<lang::FilterExpression<lang::PageField>>, scope: &dyn Scope) -> Result<bool> {
    let value = Evaluator::new(scope).evaluate_at(&filter.node.condition, filter.at)?;
    operators::truth(&Spanned::new(value, filter.at))
}

/// Returns whether an assertion is true, with the values that decided it.
///
/// # Errors
/// Fails if an expression has no value, so that the assertion is neither true nor false. The error has its place.
pub fn judge(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<AssertionReport> {
    Evaluator::new(scope).judge(expression)
}

/// Returns the value of an argument. One that is not an expression is text, and so is a bare name that is no symbol,
/// region or module.
///
/// # Errors
/// Fails if an expression has no value. The error has its place.
pub fn argument(argument: &Spanned<lang::Argument>, scope: &dyn Scope) -> Result<Value> {
    let text = || Value::Text(argument.node.text.clone());
    if let mark @ ("&" | ">" | ">>" | "|") = argument.node.text.as_str() {
        let message = match mark {
            "&" => "a lone `&` is not an argument, and pmdb runs nothing in the background".to_owned(),
            mark => format!("`{mark}` needs two operands"),
        };
        let hint = format!("put a text in quotes: `\"{mark}\"`");
        return Err(Error::new(argument.at, message).hint(hint));
    }
    let Some(range) = &argument.node.value else {
        if is_too_large(&argument.node.text) {
            return Err(Error::new(argument.at, "this number is larger than 2^64-1"));
        }
        return Ok(text());
    };
    let is_name = matches!(&range.node, lang::Range::Expression(Expression::Name(_)));
    match value(range, scope) {
        Err(error) if is_name && error.stopped.is_none() => Ok(text()),
        value => value,
    }
}

/// Returns whether a text that is no expression has only digits: a number, but a large one.
fn is_too_large(text: &str) -> bool {
    let is_digit = |digit: u8| digit.is_ascii_digit();
    text.bytes().all(is_digit) && text.trim_start_matches('0').len() == text.len() && text.parse::<u64>().is_err()
}

/// Returns an address of the target. A number that is not negative is one, and a range converts to its first address.
///
/// # Errors
/// Fails if an expression has no value, or is not an address. The error has its place.
pub fn address(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<VirtualAddress> {
    Evaluator::new(scope).address(expression)
}

/// Returns an address as [`address`], for a command about the memory there.
///
/// # Errors
/// Fails as [`address`].
pub fn place(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<VirtualAddress> {
    place_and_spans(expression, scope).map(|(address, _)| address)
}

/// Returns an address as [`place`], with the range of which it is the first, if it is one.
///
/// # Errors
/// Fails as [`address`].
pub fn place_and_spans(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<(VirtualAddress, Option<Spans>)> {
    slips::note_place(expression, scope);
    Evaluator::to_place(Evaluator::new(scope).value_with_place(expression)?, expression)
}

/// Returns the number of pages in a range, for a command that handles only the first one; `None` if there is no other.
pub fn pages_of_range(spans: Option<&Spans>, scope: &dyn Scope) -> Option<u64> {
    let page = scope.page_size();
    let pages = |range: &AddressRange| page.pages_in(range.end().get() - page.floor(range.start()).get());
    spans.map(|spans| spans.ranges().iter().map(pages).sum()).filter(|&pages| pages > 1)
}

/// Notes that the range of `huge` is a single address.
pub fn note_one_huge_page(written: &Spanned<lang::Range>, address: VirtualAddress, scope: &dyn Scope) {
    slips::note_lone(&written.node, address, None, "the huge page around it", scope);
}

/// Returns the value of an expression as an integer. Addresses and frames convert to their number.
///
/// # Errors
/// Fails if an expression has no value, or is text. The error has its place.
pub fn integer(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Integer> {
    let value = Evaluator::new(scope).value_with_place(expression)?;
    operators::Operand::of(&value).map(|operand| operand.number)
}

/// Returns a range of addresses or of page frames. An address alone is a range of one byte, with a note how to write
/// its region. A symbol with a size has its bytes.
///
/// # Errors
/// Fails if an expression has no value, or the range is empty, reversed, or passes the last address. The error has the
/// place.
pub fn range(range: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Extent> {
    if let lang::Range::Expression(Expression::Binary { operator, left, .. }) = &range.node
        && matches!(operator.node, lang::BinaryOperator::And | lang::BinaryOperator::Or)
    {
        let error = Error::new(range.at, "`and` and `or` join conditions, not ranges");
        return Err(error.hint(format!("one range at a time: `{}`", left.node)));
    }
    if let lang::Range::Expression(Expression::Binary { operator, right, .. }) = &range.node
        && operator.node == lang::BinaryOperator::Greater
    {
        let error = Error::new(range.at, "a comparison is not a range");
        return Err(error.hint(format!("`> ./{}` writes a file, and `print {}` compares", right.node, range.node)));
    }
    let is_noted = slips::note_range(range, None, scope);
    let extent = Evaluator::new(scope).extent(range)?;
    if let Extent::Addresses(spans) = &extent
        && !is_noted
        && slips::is_lone(&range.node, spans)
    {
        slips::note_lone(&range.node, spans.start(), None, "one page", scope);
    }
    Ok(extent)
}

/// Returns an address, a page frame (`pfn:N`) or a physical address (`phys:N`).
///
/// # Errors
/// Fails if an expression has no value. The error has its place.
pub fn location(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Location> {
    slips::note_place(expression, scope);
    Evaluator::new(scope).location(expression)
}

/// Returns the argument of `translate`: an address, a symbol with a size, or a range.
///
/// # Errors
/// Fails if an expression has no value, or is a page frame, which needs no translation. The error has its place.
pub fn subject(range: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<AddressOrRange> {
    slips::note_range(range, None, scope);
    Evaluator::new(scope).subject(range)
}

/// Returns all symbols with this name: one or more, in any order.
///
/// # Errors
/// Fails if there is no such module or symbol, or it has no address. The error has its place.
pub fn symbols(symbol: &SymbolName, scope: &dyn Scope) -> Result<Vec<SymbolAt>> {
    Evaluator::new(scope).symbols(symbol)
}

/// Returns the places of code of a source line: at least one, of this line or of the next one with code. The first
/// `with_frames` places of each module have their functions.
///
/// # Errors
/// Fails if there is no such file or line, and on Ctrl-C. The error has the place.
pub fn lines(
    file: &Spanned<lang::WrittenName>,
    line: &Spanned<u64>,
    with_frames: usize,
    scope: &dyn Scope,
) -> Result<LineSearch> {
    Evaluator::new(scope).line_search(file, line, with_frames)
}
