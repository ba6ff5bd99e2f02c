//! The outcome of a line.

use crate::report::ErrorCode;

/// The outcome of a line, or of a file of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No error.
    Done,
    /// An error with this code was reported; a batch ends with its status.
    Failed(ErrorCode),
    /// Ctrl-C, or the pager was left: the rest of the same file does not run.
    Interrupted,
    /// Leave, with this status.
    Quit(u8),
    /// Leave: nobody reads standard output any more.
    Closed,
}
