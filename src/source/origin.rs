//! The origin of a source's answers: a running process, an ELF core file, or a capture; and the limits of each.

use crate::access::{Error, MemoryLifetime, Result, parts_in_words};
use crate::kernel::{AddressRange, Name, PageSize, VirtualAddress};
use std::sync::Arc;

/// The origin of a source's answers.
#[derive(Clone)]
pub enum Origin {
    /// A running process, or its machine: the current address space; `None` if the process never gets another one.
    Live(Option<Arc<dyn MemoryLifetime>>),
    /// An ELF core file.
    Core(Arc<CoreOrigin>),
    /// A process of a capture.
    Capture(Arc<CaptureOrigin>),
}

/// The properties of an ELF core file.
#[derive(Debug)]
pub struct CoreOrigin {
    /// When it was written, in seconds since 1970.
    pub time: u64,
    /// The only ranges of memory in the file: pages that were never written are in no segment. `None` if the file has a
    /// page map, which shows them.
    pub stored: Option<Vec<AddressRange>>,
}

/// The properties of a process in a capture.
#[derive(Debug)]
pub struct CaptureOrigin {
    /// When the capture was begun and ended, in seconds since 1970.
    pub times: [u64; 2],
    /// The page size of its machine.
    pub page: PageSize,
    /// The captured ranges of the page map; empty if all of it was captured.
    pub parts: Vec<AddressRange>,
    /// Runs of mapped pages whose entries were left out: the first page, and the page after the last.
    pub left_out: Vec<(u64, u64)>,
    /// Runs of pages that changed during the capture: the first page, and their number.
    pub changed: Vec<(u64, u64)>,
    /// The parts of the file that are skipped.
    pub passed_over: Arc<PassedOver>,
    /// The processes of a family that the capture does not have, or has only in part.
    pub missing: Arc<[MissingProcess]>,
}

/// The names of the skipped parts of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PassedOver {
    /// Parts that this version of pmdb does not know.
    pub unknown: Vec<String>,
    /// Fields of the index that this version does not know.
    pub fields: Vec<String>,
    /// Parts with a damaged header. The index still locates them.
    pub damaged: Vec<String>,
}

/// A process of a family that its capture does not have, or has only in part.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MissingProcess {
    /// The process id.
    pub pid: u32,
    /// The name of the process; empty if it was never opened.
    pub name: Name,
    /// How the process ended, as a verb: `ended`.
    pub why: String,
    /// Whether the capture has its pages, and lacks only later answers.
    pub is_in_part: bool,
}

#[cfg(feature = "cli")]
impl MissingProcess {
    /// Makes the entry of a process without any part in the capture.
    pub(crate) fn new(pid: u32, name: Name, why: impl Into<String>) -> Self {
        MissingProcess { pid, name, why: why.into(), is_in_part: false }
    }
}

impl Origin {
    /// Returns when the capture or the core was begun and ended, in seconds since 1970.
    pub fn times(&self) -> Option<[u64; 2]> {
        match self {
            Origin::Live(_) => None,
            Origin::Core(core) => Some([core.time; 2]),
            Origin::Capture(capture) => Some(capture.times),
        }
    }

    /// Returns whether the origin is an ELF core file.
    pub fn is_core(&self) -> bool {
        matches!(self, Origin::Core(_))
    }

    /// Returns whether there is a page map. Without one memory can be read directly: nothing runs, and no page is
    /// faulted in.
    pub fn has_page_map(&self) -> bool {
        !matches!(self, Origin::Core(core) if core.stored.is_some())
    }

    /// Returns the only ranges of which a capture has entries, or a core without entries has memory; empty if it has
    /// all.
    pub fn parts(&self) -> &[AddressRange] {
        match self {
            Origin::Live(_) => &[],
            Origin::Core(core) => core.stored.as_deref().unwrap_or_default(),
            Origin::Capture(capture) => &capture.parts,
        }
    }

    /// Returns the current address space; `None` if the process never gets another one.
    pub fn memory_lifetime(self) -> Option<Arc<dyn MemoryLifetime>> {
        match self {
            Origin::Live(memory) => memory,
            Origin::Core(_) | Origin::Capture(_) => None,
        }
    }

    /// Returns the parts of a capture that are skipped.
    pub fn passed_over(&self) -> PassedOver {
        match self {
            Origin::Live(_) | Origin::Core(_) => PassedOver::default(),
            Origin::Capture(capture) => PassedOver::clone(&capture.passed_over),
        }
    }

    /// Returns the processes of a captured family that the capture does not have, or has only in part.
    pub fn missing_processes(&self) -> &[MissingProcess] {
        match self {
            Origin::Live(_) | Origin::Core(_) => &[],
            Origin::Capture(capture) => &capture.missing,
        }
    }

    /// Checks that the origin has the entries of the pages with index `first..end`.
    ///
    /// # Errors
    /// Fails if there is no page map, or an entry was left out.
    pub fn require_entries(&self, first: u64, end: u64) -> Result<()> {
        match self {
            Origin::Live(_) => Ok(()),
            Origin::Core(core) => core.stored.as_ref().map_or(Ok(()), |_| no_page_map()),
            Origin::Capture(capture) => capture.require_entries(first, end),
        }
    }

    /// Returns whether this page had another frame when the words of frames were read, so that its entry and the words
    /// are of different frames.
    pub fn is_unsettled(&self, page: u64) -> bool {
        let Origin::Capture(capture) = self else {
            return false;
        };
        let below = capture.changed.partition_point(|(first, _)| *first <= page);
        let below = capture.changed.get(..below).and_then(<[_]>::last);
        below.is_some_and(|(first, count)| page - first < *count)
    }
}

impl CaptureOrigin {
    /// Returns the first of these pages whose entry was left out.
    pub fn first_left_out(&self, first: u64, end: u64) -> Option<u64> {
        let after = self.left_out.partition_point(|(_, last)| *last <= first);
        self.left_out.get(after).map(|(start, _)| first.max(*start)).filter(|page| *page < end)
    }

    /// Checks that no entry of the pages with index `first..end` was left out.
    ///
    /// # Errors
    /// Fails if one was.
    pub fn require_entries(&self, first: u64, end: u64) -> Result<()> {
        let Some(page) = self.first_left_out(first, end) else {
            return Ok(());
        };
        let what = format!("the page map from {} on", VirtualAddress::new(page.saturating_mul(self.page.bytes())));
        let capture = match parts_in_words(&self.parts) {
            Some(parts) => format!("this capture, which has {parts} only"),
            None => "this capture".to_owned(),
        };
        Err(Error::not_in(&capture, &what))
    }
}

/// Returns the error for a core without a page map. Only pmdb writes one into a core file.
pub(super) fn no_page_map<T>() -> Result<T> {
    let lacks = Error::not_in("this core", "states and frames of pages");
    Err(Error::not_available(format!("{lacks} (the kernel and gdb write no page map into core files)")))
}
