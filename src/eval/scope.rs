//! The context of an expression.

use super::{NamedSnapshot, Value};
use crate::budget::Budget;
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::HistoryReference;
use crate::process::{Machine, Target};
use crate::symbol::Symbols;
use std::sync::Arc;

/// What was probably meant in place of what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slip {
    /// The cause, up to what is to be written.
    pub cause: String,
    /// What was written.
    pub written: String,
    /// What is to be written in its place.
    pub meant: String,
}

/// What an evaluation says beside its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remark {
    /// Before the answer of the command.
    Slip(Slip),
    /// After the answer of the command.
    Note(String),
}

/// What an expression takes from around its line: from the debugging session, or from a test.
pub trait Scope {
    /// The process that is looked at, if any. Plain arithmetic does without.
    fn target(&self) -> Option<&Target>;

    /// How many bytes `1p` is: the target's page size, or this machine's without a target.
    fn page_size(&self) -> PageSize;

    /// What is known of the files behind the target's regions.
    fn symbols(&self) -> &Symbols;

    /// The value of `$name`.
    fn variable(&self, name: &str) -> Option<Value>;

    /// A value of the value history, or why there is none.
    fn history(&self, reference: HistoryReference) -> Result<Value, String>;

    /// `$_`: the last address that was looked at.
    fn last_address(&self) -> Option<VirtualAddress>;

    /// The thread whose registers `$pc` and `$sp` are; the main thread if none is chosen.
    fn thread(&self) -> Option<u32> {
        None
    }

    /// The snapshots that were taken.
    fn snapshots(&self) -> &[NamedSnapshot] {
        &[]
    }

    /// The limit of long work: Ctrl-C.
    fn budget(&self) -> Budget {
        Budget::unlimited()
    }

    /// The machine of the process that is looked at; without one, the one that pmdb runs on.
    fn machine(&self) -> Option<&Arc<Machine>> {
        self.target().map(|target| &target.machine)
    }

    /// Says how far long work has got.
    fn progress(&self, _done: u64, _total: u64, _what: &'static str) {}

    /// Takes a remark. The same one is printed once.
    fn remark(&self, remark: Remark);

    /// Takes a note to be printed after the answer of the command.
    fn note(&self, message: String) {
        self.remark(Remark::Note(message));
    }

    /// Takes what was probably meant, to be noted before the answer of the command.
    fn note_slip(&self, slip: Slip) {
        self.remark(Remark::Slip(slip));
    }
}
