//! Why work ended early.

use crate::budget::OutOfBudget;

/// Why a command is to stop emitting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Ctrl-C.
    Interrupted,
    /// Nobody reads any more: the pager was left, the pipe is closed.
    Closed,
}

impl From<OutOfBudget> for Stopped {
    /// A command has no limit but Ctrl-C.
    fn from(_: OutOfBudget) -> Stopped {
        Stopped::Interrupted
    }
}
