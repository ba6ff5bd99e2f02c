//! Where records go.

use super::record::Record;
use crate::budget::Budget;
use crate::report::{Note, Stopped};
use std::time::Duration;

/// Takes records as they come, so that no command holds its output back. The answer tells the command to go on or to
/// stop.
pub trait Sink {
    /// Takes and shows one record, also after Ctrl-C. `Err` means that the command should end; it may still emit its
    /// totals.
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped>;

    /// Takes the titles of columns that the command line names: in a narrow terminal they are left out last.
    fn name_columns(&mut self, _titles: &[&'static str]) {}

    /// Whether greetings are shown. If not, the command need not find out what they contain.
    fn is_greeting(&self) -> bool {
        true
    }

    /// Whether the command should stop, for long work that has nothing to emit yet.
    fn check(&mut self) -> Result<(), Stopped>;

    /// The limit of work that has nothing to emit yet: it ends when [`check`](Sink::check) would say so.
    fn budget(&self) -> Budget {
        Budget::unlimited()
    }

    /// Shows the progress of long work: `done` of `total` `what` (a plural noun). Returns whether to stop, as
    /// [`check`](Sink::check) does, at little more cost.
    fn progress(&mut self, _done: u64, _total: u64, _what: &'static str) -> Result<(), Stopped> {
        self.check()
    }

    /// Waits between two samples; ends at once when the command should stop.
    fn wait(&mut self, duration: Duration) -> Result<(), Stopped>;
}

impl dyn Sink + '_ {
    /// Takes a note.
    pub fn note(&mut self, message: impl Into<String>) -> Result<(), Stopped> {
        let message = message.into();
        self.emit(&Note { message })
    }
}
