//! What an expression may ask of the session around it.

use super::Value;
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::HistoryReference;
use crate::process::Target;
use crate::report::Stopped;
use crate::symbol::Symbols;

/// Where the meaning of what is not written in a line comes from: the debugging session, or a test.
pub trait Scope {
    /// The process that is looked at, if any. Plain arithmetic does without.
    fn target(&self) -> Option<&Target>;

    /// How many bytes `1p` is: the target's page size, or this machine's without a target.
    fn page_size(&self) -> PageSize;

    /// What is known of the files behind the target's regions.
    fn symbols(&self) -> &Symbols;

    /// The value of `$name`.
    fn variable(&self, name: &str) -> Option<Value>;

    /// A value of the value history; what is wrong in words when there is none of that number.
    fn history(&self, reference: HistoryReference) -> Result<Value, String>;

    /// `$_`: the last address that was looked at.
    fn last_address(&self) -> Option<VirtualAddress>;

    /// Whether to go on with what takes long: `Err` after Ctrl-C.
    fn check(&self) -> Result<(), Stopped> {
        Ok(())
    }

    /// Takes a sentence that stands behind the answer of the command.
    fn note(&self, message: String);
}
