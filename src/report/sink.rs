//! Where records go.

use super::{Note, Record};
use std::time::Duration;

/// Why a command is to stop emitting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Ctrl-C.
    Interrupted,
    /// Nobody reads any more: the pager was left, the pipe is closed.
    Closed,
}

/// Takes records as they come. The answer tells the command to go on, or to stop: no command holds its output back.
pub trait Sink {
    /// Takes one record. After Ctrl-C too it is shown; `Err` means that the command should end, keeping its totals in order where it can.
    fn emit(&mut self, record: Record) -> Result<(), Stopped>;

    /// Whether records that only greet are shown: what they say may take time to find out.
    fn is_greeting(&self) -> bool {
        true
    }

    /// Whether the command should stop, for long work that has nothing to emit yet.
    fn check(&mut self) -> Result<(), Stopped>;

    /// Says how far long work has got, for whoever waits: `done` of `total` `what` (a word in the plural). Asks as
    /// [`check`](Sink::check) does whether to stop, and costs little more.
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
        self.emit(Record::Note(Note { message }))
    }
}
