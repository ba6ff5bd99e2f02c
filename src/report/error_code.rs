//! The error codes for programs, and the exit statuses that they imply.

use crate::kernel::words::worded;
use crate::report::json::{JsonForm, leaf};
use serde::{Serialize, Serializer};

worded! {
    /// Why something failed, in one word. The list is closed: a new code comes only with a new version of pmdb.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ErrorCode, word {
        /// The command failed for a reason without a code of its own.
        Failed = "failed",
        /// The line is not in the language, or the request is no object of the protocol.
        Syntax = "syntax",
        /// An expression has no value, as with an unknown name, a wrong type or a number out of range.
        Evaluation = "evaluation",
        /// No process is attached.
        NoTarget = "no_target",
        /// An address is in no region.
        Unmapped = "unmapped",
        /// Several processes have the name.
        Ambiguous = "ambiguous",
        /// A filter or an expression needs a fact that is not known here.
        UnknownFact = "unknown_fact",
        /// The feature is missing on this kernel, or for this kind of process.
        NotAvailable = "not_available",
        /// A file, or the output, could not be read or written.
        Io = "io",
        /// A condition of `assert` is false.
        Assertion = "assertion",
        /// The command was stopped by Ctrl-C or by a cancellation.
        Interrupted = "interrupted",
        /// There is no such process.
        NoSuchProcess = "no_such_process",
        /// The process has exited, or has executed another program.
        Gone = "gone",
        /// Permission was denied.
        Permission = "permission",
        /// The kernel hides frame numbers from this user.
        Hidden = "hidden",
        /// The condition of `until` (watch, compare) did not become true in time.
        Timeout = "timeout",
        /// A shell command failed.
        Shell = "shell",
    }
}

#[expect(clippy::derivable_impls, reason = "`worded` takes no attributes of variants")]
impl Default for ErrorCode {
    fn default() -> Self {
        ErrorCode::Failed
    }
}

leaf!(ErrorCode => JsonForm::word::<ErrorCode>("code"));

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.word().serialize(serializer)
    }
}

/// The exit statuses of a batch run, each with its meaning.
pub const EXIT_STATUSES: [(&str, &str); 8] = [
    ("0", "success, also if nothing matches"),
    ("1", "a command failed"),
    ("2", "the command line was wrong: nothing has run"),
    ("3", "the process does not exist, or has ended"),
    ("4", "permission denied"),
    ("5", "the condition of `until` (watch, compare) did not become true in time"),
    ("6", "a shell command failed"),
    ("N", "`quit N` ended the run"),
];

impl ErrorCode {
    /// Returns the exit status of a batch run that ends with this error.
    pub const fn status(self) -> u8 {
        match self {
            ErrorCode::Failed
            | ErrorCode::Syntax
            | ErrorCode::Evaluation
            | ErrorCode::NoTarget
            | ErrorCode::Unmapped
            | ErrorCode::Ambiguous
            | ErrorCode::UnknownFact
            | ErrorCode::NotAvailable
            | ErrorCode::Io
            | ErrorCode::Assertion
            | ErrorCode::Interrupted => 1,
            ErrorCode::NoSuchProcess | ErrorCode::Gone => 3,
            ErrorCode::Permission | ErrorCode::Hidden => 4,
            ErrorCode::Timeout => 5,
            ErrorCode::Shell => 6,
        }
    }
}
