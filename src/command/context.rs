//! The input and the result of a command.

use super::Error;
use crate::eval::Value;
use crate::kernel::{FrameNumber, VirtualAddress};
use crate::process::Target;
use crate::render::Sink;
use crate::report::AssertionReport;
use crate::state::DebugState;
use std::sync::Arc;

/// The input of a command.
pub struct Context<'a> {
    /// The debugging session: target, variables, settings.
    pub state: &'a mut DebugState,
    /// Where its records go.
    pub sink: &'a mut dyn Sink,
    /// Where the same command stopped before, when an empty line asks for more of it.
    pub resume: Option<Resume>,
}

impl Context<'_> {
    /// The target.
    pub(super) fn target(&self) -> Result<Arc<Target>, Error> {
        self.state.target().cloned().ok_or_else(Error::no_target)
    }
}

/// Where a command that stopped early continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resume {
    /// From this address.
    Address(VirtualAddress),
    /// From this frame.
    Frame(FrameNumber),
    /// With the action that the user has agreed to.
    Agreed,
}

/// What happens after a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Flow {
    /// The next line.
    Done,
    /// The next line; an empty one continues from here.
    More(Resume),
    /// The lines of a file with these arguments, then the next line.
    Source(std::path::PathBuf, Vec<Value>),
    /// The next line if it holds; otherwise an error.
    Asserted(Box<AssertionReport>),
    /// The same command again, if the user says yes to this question.
    Ask(String),
    /// Leave, with this exit status.
    Quit(u8),
}

/// What every command returns.
pub type Outcome = Result<Flow, Error>;
