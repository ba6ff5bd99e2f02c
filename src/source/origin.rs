//! What a source reads: something that runs, an ELF core file, or a capture; and what each of these has.

use crate::access::{Error, MemoryLifetime, Result, parts_in_words};
use crate::kernel::{AddressRange, Name, PageSize, VirtualAddress};
use std::sync::Arc;

/// What a source reads.
#[derive(Clone)]
pub enum Origin {
    /// A process that runs, or its machine: the address space that the process has now; `None` if it never gets another
    /// one.
    Live(Option<Arc<dyn MemoryLifetime>>),
    /// An ELF core file.
    Core(Arc<CoreOrigin>),
    /// A process of a capture.
    Capture(Arc<CaptureOrigin>),
}

/// What is known of an ELF core file.
#[derive(Debug)]
pub struct CoreOrigin {
    /// When it was written, in seconds since 1970.
    pub time: u64,
    /// The only ranges that it has memory of: pages that were never written are in no segment. `None` if it has a page
    /// map, which shows them.
    pub stored: Option<Vec<AddressRange>>,
}

/// What is known of a process of a capture.
#[derive(Debug)]
pub struct CaptureOrigin {
    /// When the capture was begun and ended, in seconds since 1970.
    pub times: [u64; 2],
    /// The size of the pages of its machine.
    pub page: PageSize,
    /// The only ranges whose entries were asked for; empty if all were.
    pub parts: Vec<AddressRange>,
    /// Mapped pages whose entries were left out: the first of each run, and the one after the last.
    pub left_out: Vec<(u64, u64)>,
    /// Pages that changed during the capture: the first of each run, and how many.
    pub changed: Vec<(u64, u64)>,
    /// The parts of the file that are passed over.
    pub passed_over: Arc<PassedOver>,
    /// The processes of a family that it does not have, or has only in part.
    pub missing: Arc<[MissingProcess]>,
}

/// The names of the parts of a capture that are passed over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PassedOver {
    /// Parts that this version of pmdb does not know.
    pub unknown: Vec<String>,
    /// Fields of the index that it does not know.
    pub fields: Vec<String>,
    /// Parts with a damaged header. The index still locates them.
    pub damaged: Vec<String>,
}

/// A process of a family that its capture does not have, or has only in part.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MissingProcess {
    /// Process id.
    pub pid: u32,
    /// Its short name; empty if it was never opened.
    pub name: Name,
    /// What it did, as a verb: `ended`.
    pub why: String,
    /// Whether its pages are in the capture, and only later answers are not.
    pub is_in_part: bool,
}

#[cfg(feature = "cli")]
impl MissingProcess {
    /// A process that is not in the capture at all.
    pub(crate) fn new(pid: u32, name: Name, why: impl Into<String>) -> Self {
        MissingProcess { pid, name, why: why.into(), is_in_part: false }
    }
}

impl Origin {
    /// When it was begun and ended, in seconds since 1970, if it is a capture or a core.
    pub fn times(&self) -> Option<[u64; 2]> {
        match self {
            Origin::Live(_) => None,
            Origin::Core(core) => Some([core.time; 2]),
            Origin::Capture(capture) => Some(capture.times),
        }
    }

    /// Whether it is an ELF core file.
    pub fn is_core(&self) -> bool {
        matches!(self, Origin::Core(_))
    }

    /// Whether there is a page map. Without one memory can be read as it is: nothing runs, and no page is faulted in.
    pub fn has_page_map(&self) -> bool {
        !matches!(self, Origin::Core(core) if core.stored.is_some())
    }

    /// The only ranges that a capture has entries of, or a core without entries has memory of; empty if it has all.
    pub fn parts(&self) -> &[AddressRange] {
        match self {
            Origin::Live(_) => &[],
            Origin::Core(core) => core.stored.as_deref().unwrap_or_default(),
            Origin::Capture(capture) => &capture.parts,
        }
    }

    /// The address space that the process has now; `None` if it never gets another one.
    pub fn memory_lifetime(self) -> Option<Arc<dyn MemoryLifetime>> {
        match self {
            Origin::Live(memory) => memory,
            Origin::Core(_) | Origin::Capture(_) => None,
        }
    }

    /// The parts of a capture that are passed over.
    pub fn passed_over(&self) -> PassedOver {
        match self {
            Origin::Live(_) | Origin::Core(_) => PassedOver::default(),
            Origin::Capture(capture) => PassedOver::clone(&capture.passed_over),
        }
    }

    /// The processes of a captured family that the capture does not have, or has only in part.
    pub fn missing_processes(&self) -> &[MissingProcess] {
        match self {
            Origin::Live(_) | Origin::Core(_) => &[],
            Origin::Capture(capture) => &capture.missing,
        }
    }

    /// Refuses the pages from page index `first` up to `end` if it lacks an entry of them.
    ///
    /// # Errors
    /// There is no page map, or it was captured in part.
    pub fn require_entries(&self, first: u64, end: u64) -> Result<()> {
        match self {
            Origin::Live(_) => Ok(()),
            Origin::Core(core) => core.stored.as_ref().map_or(Ok(()), |_| no_page_map()),
            Origin::Capture(capture) => capture.require_entries(first, end),
        }
    }

    /// Whether this page had another frame when the words of frames were read: what is known of the two does not belong
    /// together.
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
    /// The first of these pages whose entry was left out.
    pub fn first_left_out(&self, first: u64, end: u64) -> Option<u64> {
        let after = self.left_out.partition_point(|(_, last)| *last <= first);
        self.left_out.get(after).map(|(start, _)| first.max(*start)).filter(|page| *page < end)
    }

    /// Refuses the pages from page index `first` up to `end` if an entry of them was left out.
    ///
    /// # Errors
    /// One was.
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

/// Only pmdb writes a page map into a core file.
pub(super) fn no_page_map<T>() -> Result<T> {
    let lacks = Error::not_in("this core", "states and frames of pages");
    Err(Error::not_available(format!("{lacks} (the kernel and gdb write no page map into core files)")))
}
