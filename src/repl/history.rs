//! The history that lasts: a file that only its owner can read.

use crate::session::Session;
use crate::source::words;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Editor, Helper};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Where typed lines are kept.
pub(super) struct History {
    /// `None` once a failure was reported: then lines last only as long as the session.
    file: Option<PathBuf>,
}

impl History {
    /// Reads the lines of earlier sessions. A failure is reported once, and is never fatal.
    pub(super) fn load<H: Helper>(session: &mut Session, editor: &mut Editor<H, FileHistory>) -> Self {
        let mut history = History { file: session.history_file() };
        let Some(path) = &history.file else {
            return history;
        };
        let loaded = match make_folder(path) {
            Ok(()) => editor.load_history(path),
            Err(error) => Err(error.into()),
        };
        match loaded {
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => history.give_up(session, &error),
            Ok(()) => {}
        }
        let size = session.history_size();
        for line in editor.history() {
            session.state_mut().lines.push(line.as_str(), size);
        }
        history
    }

    /// Adds a line to the history and at once to the file, because a session may end in any way.
    pub(super) fn add<H: Helper>(
        &mut self,
        session: &mut Session,
        editor: &mut Editor<H, FileHistory>,
        line: &str,
    ) -> Result<(), ReadlineError> {
        let size = session.history_size();
        session.state_mut().lines.push(line, size);
        editor.add_history_entry(line)?;
        if let Some(path) = &self.file
            && let Err(error) = editor.append_history(path)
        {
            self.give_up(session, &error);
        }
        Ok(())
    }

    /// Stops keeping lines, and says why.
    fn give_up(&mut self, session: &mut Session, error: &ReadlineError) {
        if let Some(path) = self.file.take() {
            let path = path.display();
            session.note(format!("what you type is not kept for the next session: {path}: {}", words(error)));
        }
    }
}

fn make_folder(file: &std::path::Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}
