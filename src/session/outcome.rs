//! How a line went.

/// How a line, or a file of lines, went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Well.
    Done,
    /// An error was reported; a batch ends with this status.
    Failed(u8),
    /// Ctrl-C, or the pager was left: what comes after in the same file is not wanted.
    Interrupted,
    /// Leave, with this status.
    Quit(u8),
    /// Leave: nobody reads standard output any more.
    Closed,
}
