//! Opens and closes the log as the settings say.

use super::base::Session;
use super::failure::words;
use super::log::{Log, Logged};
use crate::render::{self, Renderer, Theme};
use crate::report::{ErrorCode, ErrorReport};
use std::io;

impl Session {
    /// Opens or closes the log, as the settings are now.
    pub(super) fn follow_logging(&mut self) -> Result<(), String> {
        let wanted = self.state.settings.logging;
        match (&self.log, wanted) {
            (None, true) => {
                let path = self.state.settings.log_file.clone();
                let overwrite = self.state.settings.logging_overwrite;
                let opened = self.options.outside().map_err(str::to_owned).and_then(|outside| {
                    let opened = Log::open(&path, overwrite, outside);
                    opened.map_err(|why| format!("{path} cannot be written: {why}"))
                });
                match opened {
                    Ok(log) => {
                        let how = if self.state.settings.logging_redirect { "goes to" } else { "is also written to" };
                        self.note(format!("output {how} {path}"));
                        self.log = Some(log);
                    }
                    Err(message) => {
                        self.state.settings.logging = false;
                        return Err(message);
                    }
                }
            }
            (Some(Log { path, .. }), false) => {
                let message = format!("output is no longer written to {path}");
                self.log = None;
                self.note(message);
            }
            _ => {}
        }
        Ok(())
    }

    /// The log's sink for the records of one command, if there is a log.
    pub(super) fn logged(&self) -> Option<Logged> {
        let log = self.log.as_ref()?;
        let renderer: Box<dyn Renderer> =
            if self.is_json() { Box::new(render::Json) } else { Box::new(render::Text::new(Theme::PLAIN, None)) };
        Some(log.logged(renderer, self.state.settings.logging_redirect))
    }

    /// Ends a log that can no longer be written, with a note.
    pub(super) fn log_failed(&mut self, error: io::Error) {
        let Some(Log { path, .. }) = self.log.take() else {
            return;
        };
        self.state.settings.logging = false;
        let message = format!("{path} cannot be written: {}; logging is off", words(error));
        self.fail_only(ErrorReport::of(message).with_code(ErrorCode::Io));
    }
}
