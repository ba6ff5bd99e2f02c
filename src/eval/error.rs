//! Why an expression has no value.

use crate::target;
use std::ops::Range;

/// An expression that could not be worked out, and the place in the line.
#[derive(Clone, Debug)]
pub struct Error {
    /// Bytes of the line that are meant.
    pub at: Range<usize>,
    /// What was tried and why it failed.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
    /// The failure underneath, when bytes could not be had.
    pub cause: Option<target::Error>,
}

impl Error {
    /// The exit status it ends a batch with.
    pub fn status(&self) -> u8 {
        match &self.cause {
            Some(target::Error::Gone { .. } | target::Error::Ambiguous { .. }) => 3,
            Some(target::Error::NotPermitted { .. }) => 4,
            _ => 1,
        }
    }
}
