//! Why a command failed: what was tried, why, where in the line, and the remedy.

use crate::budget::OutOfBudget;
use crate::kernel::VirtualAddress;
use crate::kernel::text::escape;
use crate::lang::Span;
use crate::report::{ErrorCode, Reason, RegionBrief, Stopped};
use crate::{eval, inspect, process};
use std::any::Any;

/// A failed command.
#[derive(Debug)]
pub enum Error {
    /// The sink asked to stop: no failure to report, but the command did not end.
    Stopped(Stopped),
    /// An error at a place in the line: an expression without a value, an impossible range.
    Evaluation(eval::Error),
    /// An address of the line is in no region.
    Unmapped {
        /// Bytes of the line that are meant.
        at: Span,
        /// The address.
        address: VirtualAddress,
        /// The regions below and above, as far as there are any.
        nearest: Vec<RegionBrief>,
    },
    /// Bytes could not be read.
    Target(process::Error),
    /// What was waited for did not happen in time.
    Unmet {
        /// What it was.
        message: String,
    },
    /// A fact is not known.
    Unknown {
        /// What was tried.
        message: String,
        /// Why it is not known.
        reason: Reason,
    },
    /// There is nothing to look at.
    NoTarget,
    /// Anything else.
    Refused {
        /// What was tried and why it failed.
        message: String,
        /// The remedy.
        hint: Option<String>,
    },
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        Error::Stopped(stopped)
    }
}

impl From<OutOfBudget> for Error {
    fn from(why: OutOfBudget) -> Self {
        Error::Stopped(why.into())
    }
}

impl From<process::Error> for Error {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::OutOfBudget(why) => why.into(),
            error => Error::Target(error),
        }
    }
}

impl From<eval::Error> for Error {
    fn from(error: eval::Error) -> Self {
        match error.stopped {
            Some(stopped) => Error::Stopped(stopped),
            None => Error::Evaluation(error),
        }
    }
}

impl From<eval::ComparisonRefusal> for Error {
    fn from(refusal: eval::ComparisonRefusal) -> Self {
        Error::refused(refusal.message, refusal.hint)
    }
}

impl From<inspect::Error> for Error {
    fn from(error: inspect::Error) -> Self {
        match error {
            inspect::Error::Target(error) => error.into(),
            inspect::Error::OutOfBudget(why) => why.into(),
            inspect::Error::Exited | inspect::Error::Executed => Error::Target(process::Error::gone(error.to_string())),
            inspect::Error::UnknownField { .. } => eval::Error::inspection(Span::default(), "", error).into(),
            inspect::Error::Unknown { what, reason } if reason.is_refusal() => {
                let cause = reason.cause();
                let is_said = cause.starts_with(what);
                let message = if is_said { cause.to_owned() } else { format!("{what} cannot be determined: {cause}") };
                Error::Unknown { message, reason }
            }
            inspect::Error::Unknown { ref reason, .. } => {
                Error::Unknown { message: error.to_string(), reason: reason.clone() }
            }
        }
    }
}

impl Error {
    /// There is nothing to look at.
    pub fn no_target() -> Self {
        Error::NoTarget
    }

    /// What was tried cannot be done; `hint` is the remedy.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Refused { message: message.into(), hint: Some(hint.into()) }
    }

    /// A fault of pmdb, by what was passed to `panic!`. What that holds may come from the target.
    pub(in crate::command) fn panicked(panic: &dyn Any) -> Self {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str));
        let cause = escape(text.unwrap_or("a panic").as_bytes());
        let hint = "report it with this line, the lines before it, and the output of `show version`";
        Error::refused(format!("pmdb has a fault, and the command has no answer: {cause}"), hint)
    }

    /// `count 0`, `limit 0`: a clause that asks for nothing.
    pub(in crate::command) fn nothing_wanted(clause: &str) -> Self {
        let hint = format!("leave it out, or write `{clause} 1`");
        Error::refused(format!("`{clause}` must be at least 1"), hint)
    }

    /// `x/0`: a count of nothing.
    pub(in crate::command) fn nothing_counted(written: &str) -> Self {
        let hint = "leave the count out, or write 1";
        Error::refused(format!("the count in `{written}` must be at least 1"), hint)
    }

    /// What is wrong, in one sentence.
    pub fn message(&self) -> String {
        match self {
            Error::Target(error) => error.to_string(),
            Error::Evaluation(error) => error.to_string(),
            Error::Unmapped { address, .. } => format!("{address} is in no region"),
            Error::Unmet { message } | Error::Refused { message, .. } => message.clone(),
            Error::Unknown { message, .. } => message.clone(),
            Error::NoTarget => "no process is attached".to_owned(),
            Error::Stopped(_) => "stopped".to_owned(),
        }
    }

    /// The remedy, if there is one.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Error::Target(error) => error.remedy(),
            Error::Unknown { reason, .. } => reason.remedy(),
            Error::NoTarget => Some("use `attach PID` (`ps` lists the processes)"),
            Error::Evaluation(error) => error.hint.as_deref(),
            Error::Refused { hint, .. } => hint.as_deref(),
            Error::Stopped(_) | Error::Unmapped { .. } | Error::Unmet { .. } => None,
        }
    }

    /// Its kind, for programs.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::Target(error) => eval::code_of(error),
            Error::Evaluation(error) => error.code,
            Error::Unknown { reason, .. } => eval::code_of_unknown(reason),
            Error::NoTarget => ErrorCode::NoTarget,
            Error::Unmapped { .. } => ErrorCode::Unmapped,
            Error::Unmet { .. } => ErrorCode::Timeout,
            Error::Stopped(_) => ErrorCode::Interrupted,
            Error::Refused { .. } => ErrorCode::Failed,
        }
    }

    /// The exit status that it ends a batch with.
    pub fn status(&self) -> u8 {
        self.code().status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn what_more_rights_would_show_ends_with_status_4_and_its_remedy_apart() {
        let unknown = |reason| Error::from(inspect::Error::Unknown { what: "frame numbers", reason });
        let refused = Reason::NotPermitted { what: "no".into(), remedy: Some("sudo".into()) };
        for reason in [Reason::FrameHidden, refused] {
            let error = unknown(reason);
            let remedy = error.remedy().expect("a remedy");
            assert!(!error.message().contains(remedy), "{error:?}");
            assert_eq!(error.status(), 4);
        }
        let kernel = unknown(Reason::NotOnThisKernel("no".into()));
        assert_eq!(kernel.status(), 1);
    }
}
