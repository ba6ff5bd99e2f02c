//! What the argument of `translate`, `flags` and their like is about.

use super::error::{Error, Result};
use super::evaluator::{Evaluator, as_range, to_address};
use super::names::{Named, spans_of};
use super::{Spans, Value};
use crate::kernel::{FrameNumber, PhysicalAddress, VirtualAddress};
use crate::lang::{Expression, Range, Span, Spanned};

/// WHERE: an address of the target, or a frame by number or physical address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// An address of the target.
    Address(VirtualAddress),
    /// A page frame.
    Frame(FrameNumber),
    /// A physical address.
    Physical(PhysicalAddress),
}

/// What `translate` is asked about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// One address: in detail.
    Address(VirtualAddress),
    /// A symbol with a size: its first byte in detail, then its runs if it spans pages. The spans hold that byte.
    Sized(Spans),
    /// A range: its runs.
    Range(Spans),
}

impl Subject {
    /// All of it; `hint` is the remedy for one address at `at`.
    ///
    /// # Errors
    /// It is one address.
    pub fn spans(self, at: Span, hint: &str) -> Result<Spans> {
        match self {
            Subject::Sized(spans) | Subject::Range(spans) => Ok(spans),
            Subject::Address(_) => Err(Error::new(at, "one address is not a range to search").hint(hint)),
        }
    }
}

impl Evaluator<'_> {
    pub(super) fn location(&self, expression: &Spanned<Expression>) -> Result<Location> {
        let value = self.placed(expression)?;
        Ok(match value.node {
            Value::Frame(frame) => Location::Frame(frame),
            Value::Frames(frames) => Location::Frame(frames.start()),
            Value::Physical(address) => Location::Physical(address),
            _ => Location::Address(to_address(&value).map_err(|error| as_range(&expression.node, error))?),
        })
    }

    pub(super) fn subject(&self, range: &Spanned<Range>) -> Result<Subject> {
        if let Range::Expression(expression) = &range.node {
            match self.named(expression, range.at)? {
                Some(Named::Range(spans)) => return Ok(Subject::Range(spans)),
                Some(Named::Symbol(symbol)) => {
                    return Ok(match spans_of(&symbol) {
                        Some(spans) => Subject::Sized(spans),
                        None => Subject::Address(symbol.start),
                    });
                }
                None => {}
            }
            let value = Spanned::new(self.evaluate_at(expression, range.at)?, range.at);
            return match value.node {
                Value::Range(spans) => Ok(Subject::Range(spans)),
                Value::Symbol(spans) => Ok(Subject::Sized(spans)),
                _ => to_address(&value).map(Subject::Address).map_err(|error| as_range(expression, error)),
            };
        }
        let spans = self.extent(range)?.addresses(|| {
            let message = "page frames are physical already: there is nothing to translate";
            Error::new(range.at, message).hint("walk pfn:A..pfn:B shows frames, flags pfn:N one of them")
        });
        spans.map(Subject::Range)
    }
}
