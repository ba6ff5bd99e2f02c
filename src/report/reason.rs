//! Facts that may be unknown, and why.

use std::fmt;

/// A fact, or the reason why it is not known. Never a zero in place of a reason.
pub type Fact<T> = Result<T, Reason>;

/// Why a fact is not known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The kernel hides frame numbers from an opener without CAP_SYS_ADMIN.
    FrameHidden,
    /// A file could not be opened or read with these rights.
    NotPermitted {
        /// What was tried and the answer.
        what: String,
        /// What would help, where there is something to name.
        remedy: Option<String>,
    },
    /// This kernel does not show it.
    NotOnThisKernel(String),
    /// The files of the target do not contain it, or it cannot be used.
    NotInFile(String),
    /// There is no such fact here, for example of the frame of a page without one.
    NotApplicable(&'static str),
    /// The target changed while it was being read.
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
    /// A refusal by the kernel, without a known remedy.
    pub fn not_permitted(what: impl Into<String>) -> Self {
        Reason::NotPermitted { what: what.into(), remedy: None }
    }

    /// The cause, without the remedy.
    pub fn cause(&self) -> &str {
        match self {
            Reason::FrameHidden => "frame numbers are hidden without CAP_SYS_ADMIN",
            Reason::NotPermitted { what, .. } => what,
            Reason::NotOnThisKernel(text) | Reason::NotInFile(text) => text,
            Reason::NotApplicable(text) => text,
            Reason::Changed => "the target changed during the read",
        }
    }

    /// The remedy, if more rights would help.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Reason::FrameHidden => {
                Some("run pmdb as root outside of containers, or give it that capability with setcap")
            }
            Reason::NotPermitted { remedy, .. } => remedy.as_deref(),
            _ => None,
        }
    }

    /// Whether more rights would help.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Reason::FrameHidden | Reason::NotPermitted { .. })
    }
}
