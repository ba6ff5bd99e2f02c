//! The question, what comes while the search goes on, and the answer.

use super::super::Step;
use super::visit::open;
use crate::budget::Budget;
use crate::kernel::{FrameNumber, PageFlags, Region, VirtualAddress};
use crate::process::{self, Identity, Machine, ProcessHandle, Target};
use crate::report::{Fact, Reason, WhoCounts};
use std::sync::Arc;

/// A search for the mappings of a frame.
#[derive(Clone, Debug)]
pub struct FrameQuestion {
    /// The frame.
    pub frame: FrameNumber,
    /// The mapping it was found by, if it was found by an address.
    pub seen: Option<KnownMapping>,
    /// The process whose relatives are visited first.
    pub near: Option<u32>,
    /// Whether PAGEMAP_SCAN and PROCMAP_QUERY may be used (see
    /// [`Process::set_scan`](crate::process::Process::set_scan)).
    pub scan: bool,
    /// The search ends after this many mappings were reported. Neighbouring pages are one.
    pub limit: Option<u64>,
}

impl FrameQuestion {
    /// Who maps `frame`, without any limit.
    pub fn of(frame: FrameNumber) -> Self {
        FrameQuestion { frame, seen: None, near: None, scan: true, limit: None }
    }
}

/// A mapping known before the search.
#[derive(Clone, Debug)]
pub struct KnownMapping {
    /// The process.
    pub pid: u32,
    /// The first byte of the page.
    pub address: VirtualAddress,
    /// The region that holds it.
    pub region: Option<Region>,
}

/// A mapping of the frame.
#[non_exhaustive]
pub struct Mapper {
    /// The process that has it.
    pub process: Identity,
    /// The first byte of the first page.
    pub address: VirtualAddress,
    /// Neighbouring pages that all map it: more than one only for zero pages and merged pages.
    pub pages: u64,
    /// The region that holds it; `None` if it has gone meanwhile.
    pub region: Option<Region>,
    /// All regions of the process, if memory without a file may have a symbol here; or those of a process that it
    /// shares this region with since a fork.
    pub regions: Option<Arc<[Region]>>,
    pub(super) opened: Box<Opened>,
}

/// The process of a mapping.
pub(super) enum Opened {
    /// Opened to find the mapping.
    Already(Target),
    /// The kernel's own records named it.
    Later {
        machine: Arc<Machine>,
        /// Whether PROCMAP_QUERY may be used.
        scan: bool,
    },
}

impl Mapper {
    /// The process that has it, opened; `None` if it has exited.
    ///
    /// # Errors
    /// It may not be opened.
    pub fn target(&self) -> process::Result<Option<Target>> {
        let (machine, scan) = match &*self.opened {
            Opened::Already(target) => return Ok(Some(target.clone())),
            Opened::Later { machine, scan } => (machine, *scan),
        };
        let handle = ProcessHandle::of_numbers(self.process.pid, 0);
        match open(machine, &handle, scan, &Budget::unlimited()) {
            Ok(target) => Ok(Some(target).filter(|one| one.process.identity().is_same_process(&self.process))),
            Err(process::Error::Gone { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What a search has come to: a mapping, or how many of all processes were visited in this round.
pub type SearchEvent = Step<Mapper>;

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EndCause {
    /// No process can map such a frame, for this reason.
    Nobody(&'static str),
    /// As many mappings were found as the kernel counts, and all of them were still there after the count was read.
    Counted,
    /// Every process that could be read was searched.
    Searched,
    /// The limit was reached.
    Limit,
    /// The search was not pulled to its end, or its budget was over before that.
    Stopped,
}

/// The answer, beside the mappings that were found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SearchSummary {
    /// The flags of the frame.
    pub flags: Fact<PageFlags>,
    /// How often it is mapped, as the kernel counts.
    pub map_count: Fact<u64>,
    /// Why that count cannot end the search, if it cannot.
    pub uncounted: Option<Reason>,
    /// Whether the kernel's own records led to the mappings: the processes are those that they name.
    pub by_records: bool,
    /// The numbers of mappings and processes.
    pub counts: WhoCounts,
    /// Whether all processes of the machine are listed here: not in a pid namespace, nor with `hidepid`.
    pub lists_all: bool,
    /// Whether the page has left the mapping that it was found by: the mappings may be from before and after that.
    pub has_moved: bool,
    /// How the search ended.
    pub end_cause: EndCause,
}
