//! Errors of fetching bytes: what was tried, why it failed, and the remedy.

use crate::budget::OutOfBudget;
use crate::kernel::{AddressRange, Name};
use thiserror::Error as ThisError;

/// `Result` with the error of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// Why bytes could not be fetched.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The process has exited, or there is none. Exit status 3.
    #[error("{what}")]
    Gone {
        /// The message, a sentence: `process 812 (bash) has exited`.
        what: String,
        /// Whether no such process was ever seen.
        never_seen: bool,
    },
    /// The kernel denies permission. Exit status 4.
    #[error("{what}")]
    NotPermitted {
        /// The attempt and the error of the kernel.
        what: String,
        /// The remedy; empty if there is none.
        remedy: String,
    },
    /// The kernel, the kind of process or the file lacks the data.
    #[error("{what}")]
    NotAvailable {
        /// The missing data, and why it is missing.
        what: String,
    },
    /// A line of the kernel that cannot be parsed.
    #[error(transparent)]
    Malformed(#[from] crate::kernel::text::BadLine),
    /// Several processes have the name. Exit status 1: the target exists, but the name does not determine it.
    #[error("{} processes are called `{name}`{}: choose a PID", candidates.len(), parent(candidates))]
    Ambiguous {
        /// The name of the processes.
        name: String,
        /// The processes with the name.
        candidates: Vec<ProcessEntry>,
    },
    /// Ctrl-C, or another limit of the budget.
    #[error(transparent)]
    OutOfBudget(#[from] OutOfBudget),
    /// A system call failed with another error.
    #[error("{what}: {}", words(error))]
    Io {
        /// What was read.
        what: String,
        /// The error of the system call.
        error: rustix::io::Errno,
    },
}

/// Names the process that is the parent of all others.
fn parent(candidates: &[ProcessEntry]) -> String {
    let is_parent =
        |parent: &&ProcessEntry| candidates.iter().all(|one| one.pid == parent.pid || one.parent == parent.pid);
    let parent = candidates.iter().find(is_parent).filter(|_| candidates.len() > 1);
    parent.map_or_else(String::new, |parent| format!(", and {} is the parent of the others", parent.pid))
}

/// Returns the text of an error of the system, without its number.
pub fn words(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// Returns the ranges that a capture was limited to, in words; `None` if it is of the whole process.
pub(crate) fn parts_in_words(parts: &[AddressRange]) -> Option<String> {
    let (first, more) = parts.split_first()?;
    Some(if more.is_empty() { first.to_string() } else { format!("{first} and {} more ranges", more.len()) })
}

/// Returns the remedy for what was refused when a capture was written: the rights of its reader do not matter.
pub(crate) fn when_capturing(remedy: &str) -> String {
    format!("when capturing, {remedy}")
}

impl Error {
    /// Makes the error that the process has exited.
    pub(crate) fn gone(what: impl Into<String>) -> Self {
        Error::Gone { what: what.into(), never_seen: false }
    }

    /// Makes the error that there is no such process.
    pub(crate) fn no_such_process(what: impl Into<String>) -> Self {
        Error::Gone { what: what.into(), never_seen: true }
    }

    /// Makes the error that the kernel denies permission, with its remedy.
    pub(crate) fn not_permitted(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::NotPermitted { what: what.into(), remedy: remedy.into() }
    }

    /// Makes the error that the data does not exist here.
    pub(crate) fn not_available(what: impl Into<String>) -> Self {
        Error::NotAvailable { what: what.into() }
    }

    /// Makes the error that `file`, which is read in place of a process, lacks `what`.
    pub(crate) fn not_in(file: &str, what: &str) -> Self {
        Error::not_available(format!("{what} {} not in {file}", if is_plural(what) { "are" } else { "is" }))
    }

    /// Makes the error that a system call failed.
    pub(crate) fn io(what: impl Into<String>, error: rustix::io::Errno) -> Self {
        Error::Io { what: what.into(), error }
    }

    /// Returns whether a retry may succeed: open files or memory were short, or a signal came.
    pub(crate) fn is_passing(&self) -> bool {
        use rustix::io::Errno;
        let short = |error| matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR);
        matches!(self, Error::Io { error, .. } if short(*error))
    }

    /// Returns the remedy, if there is one.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Error::NotPermitted { remedy, .. } => Some(&**remedy).filter(|remedy| !remedy.is_empty()),
            _ => None,
        }
    }
}

/// Returns whether a noun, with or without a phrase after it, is a plural.
fn is_plural(what: &str) -> bool {
    let ends = [" of ", " for ", " that ", " in ", " from ", " at ", " on ", " ("];
    let end = ends.iter().filter_map(|end| what.find(end)).min();
    let head = what.get(..end.unwrap_or(what.len())).unwrap_or_default();
    // A path, a name in brackets, or an indirect question.
    let is_single = head.starts_with(['/', '[']) || head.starts_with("whether ");
    !is_single && (head.contains(" and ") || head.ends_with('s') && !head.ends_with("ss"))
}

/// A process in a list of processes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ProcessEntry {
    /// Process id.
    pub pid: u32,
    /// Real user id.
    pub user: u32,
    /// The short name (`comm`).
    pub name: Name,
    /// Process id of the parent.
    pub parent: u32,
    /// The state, a letter: `S`, `R`, `Z` …
    pub state: char,
    /// The resident bytes (`VmRSS`); `None` for kernel threads and zombies.
    pub resident: Option<u64>,
    /// The command line, empty for kernel threads; `None` where reading it could fault memory of the process in.
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
