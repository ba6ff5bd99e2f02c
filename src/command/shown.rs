//! Sets `$_` and the variables of totals, such as `$_pages` and `$_changes`, from the records of a command.

use crate::budget::Budget;
use crate::eval::{Integer, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::report::{EventKind, Numbers, Record, SharedCounts, Sink, Stopped};
use crate::state::DebugState;
use std::collections::BTreeMap;
use std::time::Duration;

/// Passes records on, and keeps the address of the last row and the totals.
pub(super) struct Shown<'a> {
    sink: &'a mut dyn Sink,
    /// The target's: addresses in rows about other processes mean nothing in it.
    pid: Option<u32>,
    page: PageSize,
    row: Option<VirtualAddress>,
    /// The totals, by the names of their variables.
    totals: BTreeMap<&'static str, u64>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(state: &DebugState, sink: &'a mut dyn Sink) -> Self {
        let target = state.target();
        Shown {
            sink,
            pid: target.map(|target| target.process.identity().pid),
            page: state.machine().page(),
            row: None,
            totals: BTreeMap::new(),
        }
    }

    /// Sets the variables. Commands with rows unset `$_` before the first row.
    pub(super) fn remember(self, state: &mut DebugState) {
        state.last_address = self.row.or(state.last_address);
        for (name, number) in self.totals {
            let value = Value::Integer(Integer::from(number));
            state.variables.insert(name.to_owned(), value);
        }
    }

    fn note(&mut self, record: &Record) {
        match record {
            Record::Pages(row) => self.row = Some(row.start),
            Record::Run(row) => self.row = Some(row.start),
            // `region ADDRESS` keeps the address itself.
            Record::Region(row) if row.at.is_none() => self.row = Some(row.start),
            Record::Mapper(row) if Some(row.pid) == self.pid => self.row = Some(row.address),
            Record::Event(row) => self.row = row.address.or(self.row),
            Record::WatchSummary(totals) => self.changes(&totals.events),
            Record::DiffSummary(totals) => {
                self.changes(&totals.changes);
                self.totals.extend([("_came", totals.effect.came), ("_went", totals.effect.went)]);
            }
            // Several processes add up.
            Record::ComparisonSummary(totals) => {
                let SharedCounts { shared, copied, about_to_copy, .. } = totals.counts;
                for (name, pages) in [("_shared", shared), ("_copied", copied), ("_about_to_copy", about_to_copy)] {
                    *self.totals.entry(name).or_default() += pages * totals.page_size;
                }
            }
            Record::WalkSummary(totals) => self.size(totals.pages, totals.bytes),
            Record::FramesSummary(totals) => self.size(totals.frames, totals.bytes),
            Record::RegionsSummary(totals) => {
                self.size(self.page.pages_in(totals.size), totals.size);
            }
            _ => {}
        }
    }

    fn size(&mut self, pages: u64, bytes: u64) {
        self.totals.extend([("_pages", pages), ("_bytes", bytes)]);
    }

    fn changes(&mut self, changes: &Numbers<EventKind>) {
        let all = changes.iter().map(|(_, number)| *number).sum();
        self.totals.insert("_changes", all);
    }
}

impl Sink for Shown<'_> {
    fn emit(&mut self, record: Record) -> Result<(), Stopped> {
        self.note(&record);
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
