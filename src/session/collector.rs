//! The rows of a command as values, for `foreach`.

use super::interrupt::Interrupts;
use crate::budget::Budget;
use crate::command;
use crate::eval::{Origin, Spans, Value};
use crate::kernel::{AddressRange, FrameRange};
use crate::report::{Record, Sink, Stopped};
use std::time::Duration;

/// Keeps the range of each row, and the remarks.
pub(super) struct Collector<'a> {
    interrupts: &'a Interrupts,
    rows: Vec<Value>,
    notes: Vec<Record>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(interrupts: &'a Interrupts) -> Self {
        Collector { interrupts, rows: Vec::new(), notes: Vec::new() }
    }

    /// The rows, and the remarks.
    pub(super) fn finish(self) -> (Vec<Value>, Vec<Record>) {
        (self.rows, self.notes)
    }
}

impl Sink for Collector<'_> {
    fn emit(&mut self, record: Record) -> Result<(), Stopped> {
        let row = match record {
            Record::Pages(row) => AddressRange::new(row.start, row.end),
            Record::Region(row) => AddressRange::new(row.start, row.end),
            Record::Frames(row) => {
                let end = row.pfn.checked_add(row.frames);
                let frames = end.and_then(|end| FrameRange::new(row.pfn, end));
                self.rows.extend(frames.map(Value::Frames));
                None
            }
            // A loop shows no totals, and its `limit` was asked for.
            Record::Note(note) if note.message.ends_with(command::CUT) => None,
            note @ Record::Note(_) => {
                self.notes.push(note);
                None
            }
            _ => None,
        };
        let row = row.map(|row| Value::Range(Spans::one(row, Origin::Written)));
        self.rows.extend(row);
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
