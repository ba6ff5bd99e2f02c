//! Facts that may be unknown, with the reason; pages with an unknown fact, counted by reason; and why a command stops
//! early.

use crate::budget::OutOfBudget;
use std::collections::BTreeMap;
use std::fmt;

/// A fact, or the reason why it is unknown, which is never written as zero.
pub type Fact<T> = Result<T, Reason>;

/// Why a fact is unknown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The kernel hides frame numbers from a process without CAP_SYS_ADMIN.
    FrameHidden,
    /// A file could not be opened or read with the rights of pmdb.
    NotPermitted {
        /// The attempt and its error.
        what: String,
        /// The remedy, if one is known.
        remedy: Option<String>,
    },
    /// The kernel does not show the fact.
    NotOnThisKernel(String),
    /// The files that the target consists of lack the fact, or its record is unusable.
    NotInFile(String),
    /// The fact does not exist here, as the frame of a page that has none.
    NotApplicable(&'static str),
    /// The target changed during the read.
    Changed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotPermitted { .. } | Reason::FrameHidden => match self.remedy() {
                Some(remedy) => write!(f, "{} ({remedy})", self.cause()),
                None => f.write_str(self.cause()),
            },
            _ => f.write_str(self.cause()),
        }
    }
}

impl Reason {
    /// Returns the reason for a refusal by the kernel without a known remedy.
    pub fn not_permitted(what: impl Into<String>) -> Self {
        Reason::NotPermitted { what: what.into(), remedy: None }
    }

    /// Returns the reason for present pages whose frames have no words: the kernel shows none.
    pub fn words_hidden() -> Self {
        Reason::NotOnThisKernel("the kernel shows no words of frames outside of online system memory".to_owned())
    }

    /// Returns the cause, without the remedy.
    pub fn cause(&self) -> &str {
        match self {
            Reason::FrameHidden => "frame numbers are hidden without CAP_SYS_ADMIN",
            Reason::NotPermitted { what, .. } => what,
            Reason::NotOnThisKernel(text) | Reason::NotInFile(text) => text,
            Reason::NotApplicable(text) => text,
            Reason::Changed => "the target changed during the read",
        }
    }

    /// Returns the cause without the explanation in brackets that it may end with.
    pub fn cause_in_short(&self) -> &str {
        let cause = self.cause();
        let explained = cause.strip_suffix(')').and_then(|cause| cause.split_once(" ("));
        explained.map_or(cause, |(short, _)| short)
    }

    /// Returns the reason with `what`, the name of the unknown, before its cause.
    #[must_use]
    pub fn of(self, what: &str) -> Self {
        match self {
            Reason::NotPermitted { what: cause, remedy } => {
                Reason::NotPermitted { what: format!("{what} {cause}"), remedy }
            }
            Reason::NotOnThisKernel(cause) => Reason::NotOnThisKernel(format!("{what} {cause}")),
            Reason::NotInFile(cause) => Reason::NotInFile(format!("{what} {cause}")),
            other => other,
        }
    }

    /// Returns the remedy, if more rights would help.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Reason::FrameHidden => Some("attach or capture with sudo, outside of containers: see `help rights`"),
            Reason::NotPermitted { remedy, .. } => remedy.as_deref(),
            _ => None,
        }
    }

    /// Returns the reason if all are the same, and otherwise one that joins them. Returns `None` if there are none.
    pub(crate) fn of_all<'r>(reasons: impl Iterator<Item = &'r Reason>) -> Option<Reason> {
        let mut all = PagesByReason::default();
        reasons.for_each(|reason| all.add(1, reason.clone()));
        all.joined(|reason, _| reason.to_string())
    }

    /// Returns whether more rights would help.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Reason::FrameHidden | Reason::NotPermitted { .. })
    }
}

/// The number of pages for each reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PagesByReason(BTreeMap<Reason, u64>);

impl PagesByReason {
    /// Adds pages to those of a reason.
    pub fn add(&mut self, pages: u64, reason: Reason) {
        *self.0.entry(reason).or_default() += pages;
    }
    /// Returns an answer about `pages`. If it is unknown, counts the pages for the reason and returns false.
    pub fn or_count(&mut self, pages: u64, answer: Fact<bool>) -> bool {
        answer.unwrap_or_else(|reason| {
            self.add(pages, reason);
            false
        })
    }
    /// Adds the counts of `others`.
    pub fn extend(&mut self, others: PagesByReason) {
        for (reason, pages) in others.0 {
            self.add(pages, reason);
        }
    }
    /// Returns the number of pages of all reasons.
    pub fn pages(&self) -> u64 {
        self.0.values().sum()
    }
    /// Returns the reason if there is only one, and otherwise one with the pages of each. Returns `None` if no page was
    /// counted.
    pub fn reason(&self) -> Option<Reason> {
        self.joined(|reason, pages| match pages {
            1 => format!("1 page: {reason}"),
            _ => format!("{pages} pages: {reason}"),
        })
    }

    fn joined(&self, text: fn(&Reason, u64) -> String) -> Option<Reason> {
        let mut reasons = self.0.keys();
        let only = reasons.next()?;
        if reasons.next().is_none() {
            return Some(only.clone());
        }
        let parts: Vec<_> = self.0.iter().map(|(reason, pages)| text(reason, *pages)).collect();
        Some(if self.0.keys().any(Reason::is_refusal) {
            Reason::not_permitted(parts.join("; "))
        } else {
            Reason::NotInFile(parts.join("; "))
        })
    }
}

/// Why a command must stop its output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Ctrl-C was pressed.
    Interrupted,
    /// No reader is left: the user quit the pager, or the pipe is closed.
    Closed,
}

impl From<OutOfBudget> for Stopped {
    /// Converts to `Interrupted`: only Ctrl-C limits a command.
    fn from(_: OutOfBudget) -> Stopped {
        Stopped::Interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let mut counts = PagesByReason::default();
        assert_eq!((counts.pages(), counts.reason()), (0, None));
        counts.add(2, Reason::Changed);
        counts.add(1, Reason::Changed);
        assert_eq!((counts.pages(), counts.reason()), (3, Some(Reason::Changed)));
        let mut others = PagesByReason::default();
        others.add(1, Reason::not_permitted("the page cache of libc.so.6 is not shown"));
        counts.extend(others);
        let reason = counts.reason().expect("a reason");
        assert!(reason.is_refusal());
        assert_eq!(
            reason.to_string(),
            "1 page: the page cache of libc.so.6 is not shown; 3 pages: the target changed during the read"
        );
        assert_eq!(counts.pages(), 4);
    }
}
