//! Why a command failed: what was tried, why, where in the line, the way out.

use crate::report::Stopped;
use crate::target;

/// A failed command.
#[derive(Debug)]
pub enum Error {
    /// The sink asked to stop: no failure to report, but the command did not end.
    Stopped(Stopped),
    /// An expression or a range could not be worked out.
    Evaluation(crate::eval::Error),
    /// Bytes could not be had.
    Target(target::Error),
    /// Anything else.
    Refused {
        /// What was tried and why it failed.
        message: String,
        /// The way out.
        hint: Option<String>,
    },
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        Error::Stopped(stopped)
    }
}

impl From<target::Error> for Error {
    fn from(error: target::Error) -> Self {
        Error::Target(error)
    }
}

impl From<crate::eval::Error> for Error {
    fn from(error: crate::eval::Error) -> Self {
        Error::Evaluation(error)
    }
}

impl Error {
    /// A refusal with a way out.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Refused {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// The exit status it ends a batch with: 3 no such target or gone, 4 not permitted, 1 anything else.
    pub fn status(&self) -> u8 {
        match self {
            Error::Target(target::Error::Gone { .. } | target::Error::Ambiguous { .. }) => 3,
            Error::Target(target::Error::NotPermitted { .. }) => 4,
            Error::Evaluation(error) => error.status(),
            _ => 1,
        }
    }
}
