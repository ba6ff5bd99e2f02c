//! Expressions and ranges to values, filters to `inspect::Filter`, against a target.
//!
//! Everything is evaluated within a [`Scope`]: the debugging session. An error says what was tried, why it failed and
//! where in the line. Numbers are exact: an overflow is an error. Values are typed: an address plus an integer is an
//! address, and two addresses cannot be added. Memory is read only where the page map says that a frame is mapped.
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
pub use slips::{note_address, variable};
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

/// The value of an expression. A symbol is its address, a region or module a range.
///
/// # Errors
/// An expression has no value. The error gives its place.
pub fn evaluate(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Value> {
    Evaluator::new(scope).evaluate(expression)
}

/// The value that `print` and `set $name =` take: an expression, or a range (`A..B`, `A, +LENGTH`, `all`).
///
/// # Errors
/// An expression has no value. The error gives its place.
pub fn value(written: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Value> {
    match &written.node {
        lang::Range::Expression(expression) => Evaluator::new(scope).evaluate_at(expression, written.at),
        _ => range(written, scope).map(Value::from),
    }
}

/// Whether an expression is true: a number that is not zero.
///
/// # Errors
/// An expression has no value, or is no number. The error gives its place.
pub fn truth(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<bool> {
    let value = Evaluator::new(scope).value_with_place(expression)?;
    operators::truth(&value)
}

/// Whether a filter without fields holds: `rss(heap) < 1G`.
///
/// # Errors
/// An expression has no value, or is a field. The error gives its place.
pub fn comparison(filter: &Spanned<lang::FilterExpression<lang::PageField>>, scope: &dyn Scope) -> Result<bool> {
    let value = Evaluator::new(scope).evaluate_at(&filter.node.condition, filter.at)?;
    operators::truth(&Spanned::new(value, filter.at))
}

/// Whether what was asserted holds, with the values that decided.
///
/// # Errors
/// An expression has no value: the assertion neither holds nor fails. The error gives its place.
pub fn judge(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<AssertionReport> {
    Evaluator::new(scope).judge(expression)
}

/// The value of an argument. What is no expression is text; so is a bare name that is no symbol, region or module.
///
/// # Errors
/// An expression has no value. The error gives its place.
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
/// An expression has no value, or is no address. The error gives its place.
pub fn address(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<VirtualAddress> {
    Evaluator::new(scope).address(expression)
}

/// The same, for a command about what is at the address.
///
/// # Errors
/// As [`address`].
pub fn place(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<VirtualAddress> {
    place_and_spans(expression, scope).map(|(address, _)| address)
}

/// The same, with the range whose first address it is, if it is one.
///
/// # Errors
/// As [`address`].
pub fn place_and_spans(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<(VirtualAddress, Option<Spans>)> {
    slips::note_place(expression, scope);
    Evaluator::to_place(Evaluator::new(scope).value_with_place(expression)?, expression)
}

/// The number of pages of a range, for a command that answers for its first one; `None` if it has no other.
pub fn pages_of_range(spans: Option<&Spans>, scope: &dyn Scope) -> Option<u64> {
    let page = scope.page_size();
    let pages = |range: &AddressRange| page.pages_in(range.end().get() - page.floor(range.start()).get());
    spans.map(|spans| spans.ranges().iter().map(pages).sum()).filter(|&pages| pages > 1)
}

/// Notes, for a command about the pages of a range, that the range is one address.
pub fn note_one_page(range: &Spanned<lang::Range>, spans: &Spans, scope: &dyn Scope) {
    slips::note_one_page(range, spans, None, scope);
}

/// The value of an expression as an integer. Addresses and frames count as their number.
///
/// # Errors
/// An expression has no value, or is text. The error gives its place.
pub fn integer(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Integer> {
    let value = Evaluator::new(scope).value_with_place(expression)?;
    operators::Operand::of(&value).map(|operand| operand.number)
}

/// A range of addresses or of page frames. A lone address is its one byte, a symbol with a size its bytes.
///
/// # Errors
/// An expression has no value, or the range is empty, reversed, or passes the last address. The error gives the place.
pub fn range(range: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<Extent> {
    if let lang::Range::Expression(Expression::Binary { operator, left, .. }) = &range.node
        && matches!(operator.node, lang::BinaryOperator::And | lang::BinaryOperator::Or)
    {
        let error = Error::new(range.at, "`and` and `or` join conditions, not ranges");
        return Err(error.hint(format!("one range at a time: `{}`", left.node)));
    }
    slips::note_range(range, scope);
    Evaluator::new(scope).extent(range)
}

/// An address, a page frame (`pfn:N`) or a physical address (`phys:N`).
///
/// # Errors
/// An expression has no value. The error gives its place.
pub fn location(expression: &Spanned<Expression>, scope: &dyn Scope) -> Result<Location> {
    slips::note_place(expression, scope);
    Evaluator::new(scope).location(expression)
}

/// What `translate` is asked about: an address, a symbol with a size, or a range.
///
/// # Errors
/// An expression has no value, or is a page frame, which needs no translation. The error gives its place.
pub fn subject(range: &Spanned<lang::Range>, scope: &dyn Scope) -> Result<AddressOrRange> {
    slips::note_range(range, scope);
    Evaluator::new(scope).subject(range)
}

/// Every symbol of that name: one or more, in any order.
///
/// # Errors
/// There is no such module or symbol, or it has no address. The error gives its place.
pub fn symbols(symbol: &SymbolName, scope: &dyn Scope) -> Result<Vec<SymbolAt>> {
    Evaluator::new(scope).symbols(symbol)
}

/// Where a line of the source has code: at least one place, of this line or of the next one with code. The first
/// `with_frames` places of each module come with their functions.
///
/// # Errors
/// There is no such file or line, or Ctrl-C came. The error gives the place.
pub fn lines(
    file: &Spanned<lang::WrittenName>,
    line: &Spanned<u64>,
    with_frames: usize,
    scope: &dyn Scope,
) -> Result<LineSearch> {
    Evaluator::new(scope).line_search(file, line, with_frames)
}
