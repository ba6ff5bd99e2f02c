//! The functions at a place, each with the place in it.

use super::Frame;
use super::NoLines;
use super::described::Described;
use super::names::{self, Called};
use super::path;
use super::reason::or_fault;
use super::rows::Row;
use super::scopes::Scope;
use super::sections::Bytes;
use crate::budget::Budget;
use crate::kernel::Name;
use crate::symbol::demangle::may_be_mangled;
use gimli::{Dwarf, Unit};

/// A unit with a line table, and where its functions are described.
pub(super) struct Compiled<'s, 'a> {
    pub(super) dwarf: &'s Dwarf<Bytes<'a>>,
    pub(super) unit: &'s Unit<Bytes<'a>>,
    pub(super) described: Described<'s, 'a>,
}

impl Compiled<'_, '_> {
    /// The frames at `row` in the functions of `chain` (the outermost first) and in `symbol`, the innermost first. Why
    /// some are unknown is kept in `missing`.
    pub(super) fn frames(
        &self,
        row: &Row,
        chain: &[Scope],
        symbol: Option<&Name>,
        missing: &mut Option<NoLines>,
        budget: &mut Budget,
    ) -> Result<Vec<Frame>, NoLines> {
        let mut frames = vec![Frame {
            function: None,
            by_symbol: false,
            file: path::of_file(self.dwarf, self.unit, row.file),
            line: row.line,
            column: row.column,
        }];
        for scope in chain.iter().rev() {
            let called = names::of_function(self.described, scope.entry, budget);
            let called = or_fault(called, missing)?.flatten();
            // An inlined function has no symbol of its own.
            let symbol = symbol.filter(|_| scope.call.is_none());
            let (function, by_symbol) = match (called, symbol) {
                (Some(Called::Linked(name)), _) => (Some(name), false),
                // A name such as `operator()` lacks its class; the symbol has it.
                (Some(Called::Plain(_)), Some(symbol)) if may_be_mangled(symbol.as_bytes()) => {
                    (Some(symbol.clone()), false)
                }
                (Some(Called::Plain(name)), _) => (Some(name), false),
                (None, symbol) => (symbol.cloned(), symbol.is_some()),
            };
            if let Some(last) = frames.last_mut() {
                last.function = function;
                last.by_symbol = by_symbol;
            }
            if let Some(call) = scope.call {
                frames.push(Frame {
                    function: None,
                    by_symbol: false,
                    file: path::of_file(self.dwarf, self.unit, call.file),
                    line: call.line,
                    column: call.column,
                });
            }
        }
        Ok(frames)
    }
}
