//! What a command emits, and what takes it: a sink, and the renderer behind that.

use crate::budget::Budget;
use crate::kernel::{AddressRange, FrameRange, PageSize, VirtualAddress};
use crate::render::json_line;
use crate::render::svg::Svg;
use crate::render::text::{More, Text};
use crate::report::{Answer, Declared, Note, Stopped};
use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A record: how it is written as text, and what else the program makes of it. Its type, its fields and its JSON are
/// declared with `record!`.
pub trait Record: DeclaredRecord {
    /// Writes it as text.
    fn write(&self, text: &mut Text);

    /// Draws it in a picture. Returns whether it did; otherwise its text becomes lines of the picture.
    fn draw(&self, _picture: &mut Svg) -> bool {
        false
    }

    /// Whether a picture that is being drawn is complete before it.
    fn ends_pictures(&self) -> bool {
        false
    }

    /// The address of a row, which `$_` becomes.
    fn address(&self) -> Option<VirtualAddress> {
        None
    }

    /// What a row covers, which the variable of `foreach` becomes.
    fn range(&self) -> Option<RowRange> {
        None
    }

    /// The totals that become variables, each with the name of its variable.
    fn totals(&self, _page: PageSize) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it may be left out where greetings are not wanted.
    fn is_greeting(&self) -> bool {
        false
    }

    /// Whether records follow for as long as the user lets them.
    fn begins_stream(&self) -> bool {
        false
    }
}

/// What a row covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowRange {
    /// Addresses.
    Addresses(AddressRange),
    /// Page frames.
    Frames(FrameRange),
}

/// What follows from the declaration of a record.
pub trait DeclaredRecord: Any {
    /// Adds its JSON, without the end of the line.
    fn write_json(&self, line: &mut Vec<u8>) -> serde_json::Result<()>;

    /// A copy of it.
    fn boxed(&self) -> Box<dyn Record>;
}

impl<T: Declared + Record + Clone> DeclaredRecord for T {
    fn write_json(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        json_line::write(self, line)
    }

    fn boxed(&self) -> Box<dyn Record> {
        Box::new(self.clone())
    }
}

/// Its JSON: the fields of all records as Rust writes them would take 100 KB of a release.
impl Debug for dyn Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut line = Vec::new();
        self.write_json(&mut line).map_err(|_| fmt::Error)?;
        f.write_str(&String::from_utf8_lossy(&line))
    }
}

impl dyn Record {
    /// Whether it is a `T`.
    pub fn is<T: Record>(&self) -> bool {
        self.downcast_ref::<T>().is_some()
    }

    /// The record, if it is a `T`.
    pub fn downcast_ref<T: Record>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

#[cfg(test)]
impl dyn Record {
    /// Its JSON, as a program reads it.
    pub fn json(&self) -> serde_json::Value {
        let mut line = Vec::new();
        self.write_json(&mut line).expect("JSON");
        serde_json::from_slice(&line).expect("JSON")
    }
}

/// Takes records as they come, so that no command holds its output back. The answer tells the command to go on or to
/// stop.
pub trait Sink {
    /// Takes and shows one record, also after Ctrl-C. `Err` means that the command should end; it may still emit its
    /// totals.
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped>;

    /// Takes the titles of columns that the command line names: in a narrow terminal they are left out last.
    fn name_columns(&mut self, _titles: &[&'static str]) {}

    /// Shows more than usual: the command line asks for it.
    fn show(&mut self, _more: More) {}

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

    /// The place that records go to, for bytes that are no records: everything else then goes to standard error.
    ///
    /// # Errors
    /// Why bytes cannot go there, in words.
    fn take_output(&mut self) -> Result<OwnedFd, String> {
        Err("bytes cannot be written here".to_owned())
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

    /// Takes the sentence that answers, before the rows of a long answer.
    pub fn answer(&mut self, message: impl Into<String>) -> Result<(), Stopped> {
        let message = message.into();
        self.emit(&Answer { message })
    }
}

/// Turns records into bytes, one after the other, and keeps at most the rows of a table until its columns fit them.
pub trait Renderer {
    /// Writes one record. Errors are those of `out`.
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()>;

    /// Takes the titles of columns that are left out last, until the end of the command.
    fn name_columns(&mut self, _titles: &[&'static str]) {}

    /// Shows more than usual, until the end of the command.
    fn show(&mut self, _more: More) {}

    /// Writes what it holds, because no record may follow for a while.
    fn pause(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes the rest at the end of a command, and is ready for the next.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

impl Renderer for Text {
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()> {
        if record.ends_pictures() {
            self.end_pictures();
        }
        record.write(self);
        self.flush(out)
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        Text::name_columns(self, titles);
    }

    fn show(&mut self, more: More) {
        Text::show(self, more);
    }

    fn pause(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.stop_waiting();
        self.flush(out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.end_command();
        self.flush(out)
    }
}
