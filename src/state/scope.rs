//! The session as the surroundings of an expression.

use super::DebugState;
use crate::eval::{Scope, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::HistoryReference;
use crate::process::Target;
use crate::symbol::Symbols;

impl Scope for DebugState {
    fn target(&self) -> Option<&Target> {
        self.target.as_deref()
    }

    fn page_size(&self) -> PageSize {
        self.target
            .as_ref()
            .map_or_else(|| self.here.page(), |target| target.process.layout().page)
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.variables.get(name).cloned()
    }

    fn history(&self, reference: HistoryReference) -> Result<Value, String> {
        self.values.get(reference).cloned()
    }

    fn last_address(&self) -> Option<VirtualAddress> {
        self.last_address
    }
}
