//! The session as the scope of an expression.

use super::DebugState;
use crate::budget::Budget;
use crate::eval::{Integer, NamedSnapshot, Scope, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::HistoryReference;
use crate::process::{Machine, Target};
use crate::symbol::Symbols;
use std::sync::Arc;

impl Scope for DebugState {
    fn target(&self) -> Option<&Target> {
        self.target.as_deref()
    }

    fn page_size(&self) -> PageSize {
        self.target.as_ref().map_or_else(|| self.here.page(), |target| target.process.layout().page)
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.argument(name).or_else(|| self.variables.get(name).cloned())
    }

    fn history(&self, reference: HistoryReference) -> Result<Value, String> {
        self.values.get(reference).cloned()
    }

    fn last_address(&self) -> Option<VirtualAddress> {
        self.last_address
    }

    fn note(&self, message: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&message) {
            notes.push(message);
        }
    }

    fn snapshots(&self) -> &[NamedSnapshot] {
        self.snapshots.all()
    }

    fn machine(&self) -> Option<&Arc<Machine>> {
        Some(DebugState::machine(self))
    }

    fn progress(&self, done: u64, total: u64, what: &'static str) {
        self.waiting.show(done, total, what);
    }

    fn budget(&self) -> Budget {
        Budget::until(Arc::clone(&self.interrupted))
    }
}

impl DebugState {
    /// `$argc`, `$arg0` … of the command that runs.
    fn argument(&self, name: &str) -> Option<Value> {
        let number = name.strip_prefix("arg")?;
        let arguments = self.arguments.last()?;
        match number {
            "c" => Some(Value::Integer(Integer::from(arguments.len() as u64))),
            _ => arguments.get(number.parse::<usize>().ok()?).cloned(),
        }
    }
}
