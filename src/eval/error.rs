//! Why an expression has no value.

use crate::inspect;
use crate::lang::Span;
use crate::process;
use crate::report::{ErrorCode, Reason, Stopped};
use std::fmt;

/// `Result` with the error of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an expression could not be evaluated, and its place in the line.
#[derive(Clone, Debug)]
pub struct Error {
    /// The part of the line with the error.
    pub at: Span,
    /// The attempt, and why it failed.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The underlying error, if a read failed.
    pub cause: Option<Box<process::Error>>,
    /// Ctrl-C stopped the evaluation, and the expression may be right.
    pub stopped: Option<Stopped>,
    /// The kind of error, for programs.
    pub code: ErrorCode,
    /// Whether nothing has the name at this place: a word of the language may be meant.
    pub is_unknown_name: bool,
}

/// Returns the code of an error of reading.
pub fn code_of(error: &process::Error) -> ErrorCode {
    match error {
        process::Error::Gone { never_seen: true, .. } => ErrorCode::NoSuchProcess,
        process::Error::Gone { .. } => ErrorCode::Gone,
        process::Error::NotPermitted { .. } => ErrorCode::Permission,
        process::Error::NotAvailable { .. } => ErrorCode::NotAvailable,
        process::Error::Ambiguous { .. } => ErrorCode::Ambiguous,
        process::Error::OutOfBudget(_) => ErrorCode::Interrupted,
        process::Error::Malformed(_) | process::Error::Io { .. } => ErrorCode::Io,
    }
}

/// Returns the code of an error about a fact that is unknown for this reason.
pub fn code_of_unknown(reason: &Reason) -> ErrorCode {
    match reason {
        Reason::FrameHidden => ErrorCode::Hidden,
        Reason::NotPermitted { .. } => ErrorCode::Permission,
        _ => ErrorCode::UnknownFact,
    }
}

impl Error {
    /// Makes an error at a place.
    pub fn new(at: Span, message: impl Into<String>) -> Self {
        Error {
            at,
            message: message.into(),
            hint: None,
            cause: None,
            stopped: None,
            code: ErrorCode::Evaluation,
            is_unknown_name: false,
        }
    }

    /// Makes an error that no change of the expression would avoid, such as a pipe with `--no-shell`.
    pub fn refused(at: Span, message: impl Into<String>) -> Self {
        Error { code: ErrorCode::Failed, ..Error::new(at, message) }
    }

    /// Marks that nothing has the name at this place.
    pub fn of_unknown_name(self) -> Self {
        Error { is_unknown_name: true, ..self }
    }

    /// Adds a remedy.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes the error of a failed read for the expression at `at`.
    pub fn target(at: Span, cause: process::Error) -> Self {
        Error {
            at,
            message: cause.to_string(),
            hint: cause.remedy().map(str::to_owned),
            code: code_of(&cause),
            cause: Some(Box::new(cause)),
            stopped: None,
            is_unknown_name: false,
        }
    }

    /// Makes the error of a failed inspection of pages for the expression at `at`. `what` begins the message if a fact
    /// is unknown.
    pub fn inspection(at: Span, what: impl fmt::Display, cause: inspect::Error) -> Self {
        match cause {
            inspect::Error::Target(cause) => Error::target(at, cause),
            inspect::Error::Unknown { what: fact, reason } => {
                let what = format!("{what} needs {fact}, which cannot be determined");
                Error::unknown(at, what, &reason)
            }
            inspect::Error::UnknownField { field, at: place, reason } => {
                let what = format!("`{}` cannot be determined", field.word());
                let at = place.map_or(at, |place| Span::new(place.start, place.end));
                Error::unknown(at, what, &reason)
            }
            inspect::Error::Exited | inspect::Error::Executed => {
                let what = cause.to_string();
                Error::target(at, process::Error::gone(what))
            }
            inspect::Error::OutOfBudget(why) => Error { stopped: Some(why.into()), ..Error::new(at, "stopped") },
        }
    }

    /// Makes the error that a fact is unknown for this reason. `what` begins the message.
    pub fn unknown(at: Span, what: impl fmt::Display, reason: &Reason) -> Self {
        let message = format!("{what}: {}", reason.cause());
        let cause = match reason {
            Reason::FrameHidden | Reason::NotPermitted { .. } => {
                Some(Box::new(process::Error::not_permitted(message.clone(), "")))
            }
            _ => None,
        };
        let (hint, code) = (reason.remedy().map(str::to_owned), code_of_unknown(reason));
        Error { cause, hint, code, ..Error::new(at, message) }
    }

    /// Makes the error that `what` needs a process, and none is attached.
    pub fn no_target(at: Span, what: impl fmt::Display) -> Self {
        let hint = "use `attach PID` (`ps` lists the processes)";
        Error { code: ErrorCode::NoTarget, ..Error::new(at, format!("{what}: no process is attached")).hint(hint) }
    }

    /// Makes the error of a field outside of filters.
    pub(super) fn no_page(at: Span) -> Self {
        Error::new(at, "there is no page here")
    }

    /// Returns the exit status with which the error ends a batch.
    pub fn status(&self) -> u8 {
        self.code.status()
    }
}

/// A call of a function, for its errors.
pub(super) struct Call {
    /// The name of the function in messages: `count()`.
    pub(super) name: String,
    /// The place of the argument.
    pub(super) at: Span,
}

impl Call {
    pub(super) fn of(function: &str, at: Span) -> Self {
        let called = format!("{function}()");
        Call { name: called, at }
    }

    /// Makes the error of a failed inspection of pages.
    pub(super) fn caused_by(&self, cause: inspect::Error) -> Error {
        Error::inspection(self.at, &self.name, cause)
    }

    /// Makes the error that there is no value; `why` follows the name.
    pub(super) fn error(&self, why: impl fmt::Display) -> Error {
        Error::new(self.at, format!("{}: {why}", self.name))
    }

    /// Makes the error that the value is unknown for this reason; `why` follows these words.
    pub(super) fn unknown(&self, why: impl fmt::Display, reason: &Reason) -> Error {
        let what = format!("{} is unknown{why}", self.name);
        Error::unknown(self.at, what, reason)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
