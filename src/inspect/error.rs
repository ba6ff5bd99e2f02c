//! Why pages could not be looked at, which facts can be known here, and the reasons why others are unknown.

use crate::budget::OutOfBudget;
use crate::kernel::{FrameNumber, PageField, PageFlags};
use crate::process::{self, Categories, Machine, Target};
use crate::report::{Fact, Reason};
use std::ops::Range;
use thiserror::Error as ThisError;

/// `Result` with this room's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why pages could not be looked at, or not to the end.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A read failed.
    #[error(transparent)]
    Target(process::Error),
    /// Ctrl-C, or another limit. What came before is valid.
    #[error(transparent)]
    OutOfBudget(#[from] OutOfBudget),
    /// What is asked about cannot be known here.
    #[error("{what} cannot be determined here: {reason}")]
    Unknown {
        /// `map counts`
        what: &'static str,
        /// Why not.
        reason: Reason,
    },
    /// A filter keeps no page, and a field that it asks is unknown of all pages that have it.
    #[error("`{}` cannot be determined here: {reason}", field.word())]
    UnknownField {
        /// The field.
        field: PageField,
        /// Where the text of the filter asks for it, in bytes of its line.
        at: Option<Range<usize>>,
        /// Why it is not known.
        reason: Reason,
    },
    /// The process started another program half-way through: what came before belongs to the old one.
    #[error("the process executed another program during the command")]
    Executed,
    /// Half-way through, the process exited.
    #[error("the process exited during the command")]
    Exited,
}

/// Why it is unknown whether a page of a private device mapping is the device's.
pub(super) fn copied_or_not() -> Reason {
    Reason::NotOnThisKernel(
        "pages of this private device mapping may have been written, which makes them ordinary memory, and the page map does not show which"
            .into(),
    )
}

/// Shared memory in swap leaves an empty entry. `remedy` is where it shows.
pub fn swap_hidden(remedy: &str) -> Reason {
    Reason::NotOnThisKernel(format!("the page map does not show which shared memory is in swap; {remedy}"))
}

/// There is no PAGEMAP_SCAN.
pub fn no_scan() -> Reason {
    Reason::NotOnThisKernel("only PAGEMAP_SCAN of Linux 6.7 or later shows it, and no core has its results".into())
}

impl From<process::Error> for Reason {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::NotPermitted { what, remedy } => {
                Reason::NotPermitted { what, remedy: Some(remedy).filter(|remedy| !remedy.is_empty()) }
            }
            // It went, or changed during the read.
            process::Error::Gone { .. } => Reason::Changed,
            process::Error::NotAvailable { .. }
            | process::Error::Malformed(_)
            | process::Error::Ambiguous { .. }
            | process::Error::OutOfBudget(_)
            | process::Error::Io { .. } => Reason::NotOnThisKernel(error.to_string()),
        }
    }
}

impl From<process::Error> for Error {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::OutOfBudget(why) => Error::OutOfBudget(why),
            error => Error::Target(error),
        }
    }
}

/// Which facts can be known here, found out by trying. A filter on any other is refused before anything is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Availability {
    /// Frame numbers.
    pub frames: Fact<()>,
    /// `/proc/kpageflags`, and frame numbers to look it up by.
    pub flags: Fact<()>,
    /// `/proc/kpagecount`, and frame numbers to look it up by.
    pub counts: Fact<()>,
    /// Soft-dirty bits.
    pub soft_dirty: Fact<()>,
    /// What PAGEMAP_SCAN tells; empty where there is none.
    pub categories: Categories,
}

impl Availability {
    /// Tries each.
    pub(super) fn of(target: &Target) -> Self {
        let machine = &*target.machine;
        let frames = match target.process.require_page_map() {
            Err(error) => Err(Reason::from(error)),
            Ok(()) if target.process.are_frames_hidden() => Err(Reason::FrameHidden),
            Ok(()) => Ok(()),
        };
        let probe = |read: process::Result<usize>| {
            read?;
            frames.clone()
        };
        Availability {
            flags: probe(machine.frame_flags(FrameNumber::new(1), &mut [PageFlags::empty()])),
            counts: probe(machine.frame_counts(FrameNumber::new(1), &mut [0])),
            frames,
            soft_dirty: soft_dirty(machine),
            categories: target.process.categories(),
        }
    }
}

/// Whether soft-dirty bits mean something here.
pub(super) fn soft_dirty(machine: &Machine) -> Fact<()> {
    let why = match machine.has_soft_dirty() {
        Some(true) => return Ok(()),
        Some(false) => "this kernel does not track soft-dirty pages (CONFIG_MEM_SOFT_DIRTY)",
        None => return Err(Reason::NotOnThisKernel(machine.why_no_soft_dirty())),
    };
    Err(Reason::NotOnThisKernel(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_reason_of_its_class() {
        let refused = Reason::from(process::Error::not_permitted("may not", "sudo"));
        assert_eq!((refused.cause(), refused.remedy()), ("may not", Some("sudo")));
        let what = || "process 1 has exited".to_owned();
        assert_eq!(Reason::from(process::Error::gone(what())), Reason::Changed);
        let missing = Reason::from(process::Error::not_available(what()));
        assert_eq!(missing, Reason::NotOnThisKernel(what()));
    }
}
