//! The context of an expression.

use super::{NamedSnapshot, Value};
use crate::budget::Budget;
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::HistoryReference;
use crate::process::{Machine, Target};
use crate::symbol::Symbols;
use std::sync::Arc;

/// A probable mistake, with the text that was probably meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slip {
    /// The cause, up to the text that is meant.
    pub cause: String,
    /// The text that was written.
    pub written: String,
    /// The text that was probably meant.
    pub meant: String,
}

/// A remark of an evaluation, in addition to its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remark {
    /// A remark that is printed before the answer of the command.
    Slip(Slip),
    /// A remark that is printed after the answer of the command.
    Note(String),
}

/// The context of an expression: the debugging session, or a test.
pub trait Scope {
    /// Returns the attached process, if there is one. Plain arithmetic needs none.
    fn target(&self) -> Option<&Target>;

    /// Returns the size of `1p`: the target's page size, or this machine's without a target.
    fn page_size(&self) -> PageSize;

    /// Returns the symbols of the files that the target's regions map.
    fn symbols(&self) -> &Symbols;

    /// Returns the value of `$name`.
    fn variable(&self, name: &str) -> Option<Value>;

    /// Returns a value of the value history, or why there is none.
    fn history(&self, reference: HistoryReference) -> Result<Value, String>;

    /// Returns `$_`: the last address that a command has shown.
    fn last_address(&self) -> Option<VirtualAddress>;

    /// Returns the thread of the registers `$pc` and `$sp`; `None` for the main thread.
    fn thread(&self) -> Option<u32> {
        None
    }

    /// Returns the snapshots.
    fn snapshots(&self) -> &[NamedSnapshot] {
        &[]
    }

    /// Returns the limit of long work: Ctrl-C.
    fn budget(&self) -> Budget {
        Budget::unlimited()
    }

    /// Returns the machine of the attached process; without one, that of pmdb.
    fn machine(&self) -> Option<&Arc<Machine>> {
        self.target().map(|target| &target.machine)
    }

    /// Shows the progress of long work.
    fn progress(&self, _done: u64, _total: u64, _what: &'static str) {}

    /// Adds a remark. Equal ones are printed once.
    fn remark(&self, remark: Remark);

    /// Adds a note that is printed after the answer of the command.
    fn note(&self, message: String) {
        self.remark(Remark::Note(message));
    }

    /// Adds a probable mistake, which is printed before the answer of the command.
    fn note_slip(&self, slip: Slip) {
        self.remark(Remark::Slip(slip));
    }
}
