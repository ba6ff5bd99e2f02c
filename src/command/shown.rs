//! Sets `$_` and the variables of totals, such as `$_pages` and `$_changes`, from the records of a command.

use crate::budget::Budget;
use crate::eval::{Integer, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::render::{Record, Sink};
use crate::report::Stopped;
use crate::state::DebugState;
use std::collections::BTreeMap;
use std::time::Duration;

/// Passes records on, and keeps the address of the last row and the totals.
pub(super) struct LastRowSink<'a> {
    sink: &'a mut dyn Sink,
    page: PageSize,
    row: Option<VirtualAddress>,
    /// The totals, by the names of their variables.
    totals: BTreeMap<&'static str, u64>,
}

impl<'a> LastRowSink<'a> {
    pub(super) fn new(state: &DebugState, sink: &'a mut dyn Sink) -> Self {
        LastRowSink { sink, page: state.machine().page(), row: None, totals: BTreeMap::new() }
    }

    /// Sets the variables. Commands with rows unset `$_` before the first row.
    pub(super) fn remember(self, state: &mut DebugState) {
        state.last_address = self.row.or(state.last_address);
        for (name, number) in self.totals {
            let value = Value::Integer(Integer::from(number));
            state.variables.insert(name.to_owned(), value);
        }
    }

    fn note(&mut self, record: &dyn Record) {
        self.row = record.address().or(self.row);
        // The totals of several processes add up.
        for (name, number) in record.totals(self.page) {
            *self.totals.entry(name).or_default() += number;
        }
    }
}

impl Sink for LastRowSink<'_> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.note(record);
        self.sink.emit(record)
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.sink.name_columns(titles);
    }

    fn is_greeting(&self) -> bool {
        self.sink.is_greeting()
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.sink.check()
    }

    fn budget(&self) -> Budget {
        self.sink.budget()
    }

    fn progress(&mut self, done: u64, total: u64, what: &'static str) -> Result<(), Stopped> {
        self.sink.progress(done, total, what)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.sink.wait(duration)
    }
}
