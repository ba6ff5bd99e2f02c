//! Why a command failed: what was tried, why, where in the line, and the remedy.

use crate::budget::OutOfBudget;
use crate::kernel::VirtualAddress;
use crate::lang::Span;
use crate::report::{RegionBrief, Stopped};
use crate::{eval, inspect, process};

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
        Error::Target(error)
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

impl From<eval::Refusal> for Error {
    fn from(refusal: eval::Refusal) -> Self {
        Error::refused(refusal.message, refusal.hint)
    }
}

impl From<inspect::Error> for Error {
    fn from(error: inspect::Error) -> Self {
        match error {
            inspect::Error::Target(error) => Error::Target(error),
            inspect::Error::OutOfBudget(why) => why.into(),
            inspect::Error::Exited | inspect::Error::Executed => Error::Target(process::Error::gone(error.to_string())),
            inspect::Error::Unknown { what, reason } if reason.is_refusal() => {
                Error::Target(process::Error::not_permitted(
                    format!("{what} cannot be known here: {}", reason.cause()),
                    reason.remedy().unwrap_or_default(),
                ))
            }
            inspect::Error::Unknown { .. } => Error::Refused { message: error.to_string(), hint: None },
        }
    }
}

impl Error {
    /// There is nothing to look at.
    pub fn no_target() -> Self {
        let hint = "attach to one with: attach PID (ps lists them)";
        Error::refused("no process is attached", hint)
    }

    /// What was tried cannot be done; `hint` is the remedy.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Refused { message: message.into(), hint: Some(hint.into()) }
    }

    /// `count 0`, `limit 0`: a clause that asks for nothing.
    pub(super) fn nothing_wanted(clause: &str) -> Self {
        let hint = format!("leave it out, or write `{clause} 1` or more");
        Error::refused(format!("`{clause} 0` asks for nothing"), hint)
    }

    /// `x/0`: a count of nothing.
    pub(super) fn nothing_counted(written: &str) -> Self {
        let hint = "leave the count out, or write 1 or more";
        Error::refused(format!("`{written}` asks for nothing"), hint)
    }

    /// What is wrong, in one sentence.
    pub(super) fn message(&self) -> String {
        match self {
            Error::Target(error) => error.to_string(),
            Error::Evaluation(error) => error.to_string(),
            Error::Unmapped { address, .. } => format!("{address} is in no region"),
            Error::Unmet { message } | Error::Refused { message, .. } => message.clone(),
            Error::Stopped(_) => "stopped".to_owned(),
        }
    }

    /// The exit status it ends a batch with: 3 no such target or gone, 4 not permitted, 5 not in time, 1 anything else.
    pub fn status(&self) -> u8 {
        match self {
            Error::Target(process::Error::Gone { .. }) => 3,
            Error::Target(process::Error::NotPermitted { .. }) => 4,
            Error::Evaluation(error) => error.status(),
            Error::Unmet { .. } => 5,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Reason;

    #[test]
    fn what_more_rights_would_show_ends_with_status_4_and_its_remedy_apart() {
        let unknown = |reason| Error::from(inspect::Error::Unknown { what: "frame numbers", reason });
        let refused = Reason::NotPermitted { what: "no".into(), remedy: Some("sudo".into()) };
        for reason in [Reason::FrameHidden, refused] {
            let Error::Target(error) = unknown(reason) else {
                panic!("not of the target");
            };
            let remedy = error.remedy().expect("a remedy");
            assert!(!error.to_string().contains(remedy), "{error}");
            assert_eq!(Error::Target(error).status(), 4);
        }
        let kernel = unknown(Reason::NotOnThisKernel("no".into()));
        assert_eq!(kernel.status(), 1);
    }
}
