//! Errors of fetching bytes: what was tried, why it failed, and the remedy.

use crate::budget::OutOfBudget;
use crate::kernel::{AddressRange, Name};
use thiserror::Error as ThisError;

/// `Result` with this room's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Why bytes could not be fetched.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The target exited, or the process was never there. Exit status 3.
    #[error("{what}")]
    Gone {
        /// A sentence: `process 812 (bash) has exited`.
        what: String,
        /// Whether it was never seen.
        never_seen: bool,
    },
    /// The kernel refuses. Exit status 4.
    #[error("{what}")]
    NotPermitted {
        /// What was tried and the kernel's answer.
        what: String,
        /// What would help.
        remedy: String,
    },
    /// This kernel, or this kind of process, has no such thing.
    #[error("{what}")]
    NotAvailable {
        /// What is missing and why.
        what: String,
    },
    /// The kernel wrote something that is not understood.
    #[error(transparent)]
    Malformed(#[from] crate::kernel::text::BadLine),
    /// Several processes match a name. Exit status 1: there is a target, but which is not clear.
    #[error("{} processes have the name or the executable `{name}`: choose a PID", candidates.len())]
    Ambiguous {
        /// The name.
        name: String,
        /// The processes.
        candidates: Vec<ProcessEntry>,
    },
    /// Ctrl-C, or another limit.
    #[error(transparent)]
    OutOfBudget(#[from] OutOfBudget),
    /// Any other failure of a system call.
    #[error("{what}: {}", words(error))]
    Io {
        /// What was being read.
        what: String,
        /// The kernel's answer.
        error: rustix::io::Errno,
    },
}

/// The kernel's answer in its own words, without its number.
pub fn words(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// The parts that a capture was limited to; `None` if it has all.
pub(crate) fn parts_in_words(parts: &[AddressRange]) -> Option<String> {
    let (first, more) = parts.split_first()?;
    Some(if more.is_empty() { first.to_string() } else { format!("{first} and {} more ranges", more.len()) })
}

/// The remedy for what was refused to the pmdb that wrote a capture. The rights of its reader are others.
pub(crate) fn when_capturing(remedy: &str) -> String {
    format!("when capturing, {remedy}")
}

impl Error {
    /// The target exited, or the process was never there.
    pub(crate) fn gone(what: impl Into<String>) -> Self {
        Error::Gone { what: what.into(), never_seen: false }
    }

    /// There is no such process.
    pub(crate) fn no_such_process(what: impl Into<String>) -> Self {
        Error::Gone { what: what.into(), never_seen: true }
    }

    /// The kernel refuses; `remedy` would help.
    pub(crate) fn not_permitted(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::NotPermitted { what: what.into(), remedy: remedy.into() }
    }

    /// This kernel, or this kind of process, has no such thing.
    pub(crate) fn not_available(what: impl Into<String>) -> Self {
        Error::NotAvailable { what: what.into() }
    }

    /// `file`, which is read in place of a process, does not have this.
    pub(crate) fn not_in(file: &str, what: &str) -> Self {
        Error::not_available(format!("{what} {} not in {file}", if is_plural(what) { "are" } else { "is" }))
    }

    /// Any other failure of a system call.
    pub(crate) fn io(what: impl Into<String>, error: rustix::io::Errno) -> Self {
        Error::Io { what: what.into(), error }
    }

    /// Whether a retry may succeed: files or memory were short.
    pub(crate) fn is_passing(&self) -> bool {
        use rustix::io::Errno;
        let short = |error| matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR);
        matches!(self, Error::Io { error, .. } if short(*error))
    }

    /// The remedy, if there is one.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Error::NotPermitted { remedy, .. } => Some(&**remedy).filter(|remedy| !remedy.is_empty()),
            Error::Ambiguous { .. } => Some("choose one by its PID"),
            _ => None,
        }
    }
}

/// Whether a noun, with what follows it, is a plural.
fn is_plural(what: &str) -> bool {
    let ends = [" of ", " for ", " that ", " in ", " from ", " at ", " on ", " ("];
    let end = ends.iter().filter_map(|end| what.find(end)).min();
    let head = what.get(..end.unwrap_or(what.len())).unwrap_or_default();
    // A name, or a question.
    let is_single = head.starts_with(['/', '[']) || head.starts_with("whether ");
    !is_single && (head.contains(" and ") || head.ends_with('s') && !head.ends_with("ss"))
}

/// A process in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ProcessEntry {
    /// Process id.
    pub pid: u32,
    /// Real user id.
    pub user: u32,
    /// `comm`
    pub name: Name,
    /// `S`, `R`, `Z` …
    pub state: char,
    /// Resident bytes (`VmRSS`); `None` for kernel threads and zombies.
    pub resident: Option<u64>,
    /// Command line, empty for kernel threads; `None` where a read could fault memory of the process in.
    pub command_line: Option<Name>,
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_lacks_is_a_sentence() {
        let said = |what: &str| Error::not_in("this core", what).to_string();
        for (what, verb) in [
            ("the process", "is"),
            ("the limits of the process", "are"),
            ("the kernel's counts for each region", "are"),
            ("zones and nodes of frames", "are"),
            ("the use of physical addresses", "is"),
            ("the release of the kernel", "is"),
            ("the user namespace", "is"),
            ("swap areas", "are"),
            ("the page map from 0x1000 on", "is"),
            ("process 812", "is"),
            ("memory at 0x1000", "is"),
            ("the registers of thread 7", "are"),
            ("page tables", "are"),
            ("/usr/lib/libs", "is"),
            ("whether the kernel tracks soft-dirty pages", "is"),
        ] {
            assert_eq!(said(what), format!("{what} {verb} not in this core"));
        }
    }
}
