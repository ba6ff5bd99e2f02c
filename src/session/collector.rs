//! The rows of a command as values, for `foreach`.

use super::interrupt::Interrupts;
use crate::budget::Budget;
use crate::command;
use crate::eval::{Origin, Spans, Value};
use crate::render::{Record, RowRange, Sink};
use crate::report::{Note, Stopped};
use std::time::Duration;

/// Keeps the range of each row, and the remarks.
pub(super) struct Collector<'a> {
    interrupts: &'a Interrupts,
    rows: Vec<Value>,
    notes: Vec<Note>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(interrupts: &'a Interrupts) -> Self {
        Collector { interrupts, rows: Vec::new(), notes: Vec::new() }
    }

    /// The rows, and the remarks.
    pub(super) fn finish(self) -> (Vec<Value>, Vec<Note>) {
        (self.rows, self.notes)
    }
}

impl Sink for Collector<'_> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.rows.extend(record.range().map(|range| match range {
            RowRange::Addresses(range) => Value::Range(Spans::one(range, Origin::Written)),
            RowRange::Frames(frames) => Value::Frames(frames),
        }));
        // A loop shows no totals, and its `limit` was asked for.
        let note = record.downcast_ref::<Note>();
        self.notes.extend(note.filter(|note| !note.message.ends_with(command::CUT)).cloned());
        self.check()
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.interrupts.check()
    }

    fn budget(&self) -> Budget {
        Budget::until(self.interrupts.flag())
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.interrupts.wait_for(duration, None)
    }
}
