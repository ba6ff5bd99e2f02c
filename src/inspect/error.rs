//! Why pages could not be looked at.

use crate::budget::OutOfBudget;
use crate::process;
use crate::report::Reason;
use thiserror::Error as ThisError;

/// `Result` with this room's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why pages could not be looked at, or not to the end.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// A read failed.
    #[error(transparent)]
    Target(#[from] process::Error),
    /// Ctrl-C, or another limit. What came before is valid.
    #[error(transparent)]
    OutOfBudget(#[from] OutOfBudget),
    /// What is asked about cannot be known here.
    #[error("{what} cannot be known here: {reason}")]
    Unknown {
        /// `map counts`
        what: &'static str,
        /// Why not.
        reason: Reason,
    },
    /// The process started another program half-way through: what came before belongs to the old one.
    #[error("the process executed another program during the command")]
    Executed,
    /// Half-way through, the process exited.
    #[error("the process exited during the command")]
    Exited,
}
