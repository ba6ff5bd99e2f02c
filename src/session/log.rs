//! The log (`set logging`): what is printed on the screen, written to a file too, as the settings say.

use super::outcome::words;
use super::shell::ShellPermit;
use crate::command::expand_home;
use crate::render::{Record, Renderer};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::rc::Rc;

/// An open log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) path: String,
    file: Rc<File>,
}

/// The records of one command on their way to the log, without colours.
pub(super) struct LogWriter {
    renderer: Box<dyn Renderer>,
    file: Rc<File>,
    /// Whether they are left out on the screen.
    pub(super) redirect: bool,
    text: Vec<u8>,
    /// Why it can no longer be written.
    pub(super) failure: Option<io::Error>,
}

impl Log {
    /// Opens the file: at its end, or begun anew.
    ///
    /// # Errors
    /// Why it cannot be written, in words.
    pub(super) fn open(path: &str, overwrite: bool, _: ShellPermit) -> Result<Log, String> {
        let file = OpenOptions::new()
            .create(true)
            .append(!overwrite)
            .write(true)
            .truncate(overwrite)
            .open(expand_home(path))
            .map_err(words)?;
        Ok(Log { path: path.to_owned(), file: Rc::new(file) })
    }

    /// The log's sink for the records of one command.
    pub(super) fn writer(&self, renderer: Box<dyn Renderer>, redirect: bool) -> LogWriter {
        LogWriter { renderer, file: Rc::clone(&self.file), redirect, text: Vec::new(), failure: None }
    }
}

impl LogWriter {
    /// Writes a record.
    pub(super) fn record(&mut self, record: &dyn Record) {
        let rendered = self.renderer.record(record, &mut self.text);
        self.write(rendered);
    }

    /// Writes the rest at the end of the command.
    pub(super) fn finish(&mut self) {
        let rendered = self.renderer.finish(&mut self.text);
        self.write(rendered);
    }

    fn write(&mut self, rendered: io::Result<()>) {
        if self.failure.is_none() {
            let written = rendered.and_then(|()| (&*self.file).write_all(&self.text));
            self.failure = written.err();
        }
        self.text.clear();
    }
}
