//! The commands: one file each, a static table that names them all, and the way from a parsed command to its file.
//!
//! A command reads the state, asks `inspect`, and emits records; it formats nothing.

mod error;

pub use error::Error;

use crate::report::Sink;
use crate::state::DebugState;

/// What a command is given.
pub struct Context<'a> {
    /// The debugging session: target, variables, settings.
    pub state: &'a mut DebugState,
    /// Where its records go.
    pub sink: &'a mut dyn Sink,
}

/// What is to happen after a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The next line.
    Done,
    /// The lines of a file, then the next line.
    Source(std::path::PathBuf),
    /// Shell text, run with the terminal as it is.
    Shell(String),
    /// Leave, with this exit status.
    Quit(u8),
}
