//! Why an expression has no value.

use crate::inspect;
use crate::lang::Span;
use crate::process;
use crate::report::{Reason, Stopped};
use std::fmt;

/// `Result` with this room's error.
pub type Result<T> = std::result::Result<T, Error>;

/// An expression that could not be worked out, and the place in the line.
#[derive(Clone, Debug)]
pub struct Error {
    /// Bytes of the line that are meant.
    pub at: Span,
    /// What was tried and why it failed.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
    /// The failure underneath, when bytes could not be had.
    pub cause: Option<Box<process::Error>>,
    /// Ctrl-C came while it was worked out: nothing is wrong with it.
    pub stopped: Option<Stopped>,
}

impl Error {
    /// A failure at a place.
    pub fn new(at: Span, message: impl Into<String>) -> Self {
        Error {
            at,
            message: message.into(),
            hint: None,
            cause: None,
            stopped: None,
        }
    }

    /// With a way out.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Bytes that could not be had for what stands at a place.
    pub fn target(at: Span, cause: process::Error) -> Self {
        Error {
            at,
            message: cause.to_string(),
            hint: cause.remedy().map(str::to_owned),
            cause: Some(Box::new(cause)),
            stopped: None,
        }
    }

    /// What went wrong while pages were looked at for what stands at a place; `what` is the beginning of the sentence for a fact that
    /// cannot be known.
    pub fn inspection(at: Span, what: impl fmt::Display, cause: inspect::Error) -> Self {
        match cause {
            inspect::Error::Target(cause) => Error::target(at, cause),
            inspect::Error::Unknown { what: fact, reason } => {
                let what = format_args!("{what} asks for {fact}, which cannot be known here");
                Error::unknown(at, what, &reason)
            }
            inspect::Error::Exited | inspect::Error::Executed => {
                let what = cause.to_string();
                Error::target(at, process::Error::Gone { what })
            }
            inspect::Error::Stopped(stopped) => Error {
                stopped: Some(stopped),
                ..Error::new(at, "stopped")
            },
        }
    }

    /// A fact that cannot be had here, for the reason given; `what` is the beginning of the sentence.
    pub fn unknown(at: Span, what: impl fmt::Display, reason: &Reason) -> Self {
        let message = format!("{what}: {}", reason.cause());
        let cause = match reason {
            Reason::FrameHidden | Reason::NotPermitted { .. } => {
                Some(Box::new(process::Error::NotPermitted {
                    what: message.clone(),
                    remedy: String::new(),
                }))
            }
            _ => None,
        };
        Error {
            cause,
            hint: reason.remedy().map(str::to_owned),
            ..Error::new(at, message)
        }
    }

    /// Something that only a target can tell, and there is none.
    pub fn no_target(at: Span, what: impl fmt::Display) -> Self {
        Error::new(at, format!("{what}: no process is attached"))
            .hint("attach to one with: attach PID (ps lists them)")
    }

    /// The exit status it ends a batch with.
    pub fn status(&self) -> u8 {
        match self.cause.as_deref() {
            Some(process::Error::Gone { .. }) => 3,
            Some(process::Error::NotPermitted { .. }) => 4,
            _ => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
