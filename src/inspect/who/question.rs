//! The question of a search, its events, and its summary.

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
    /// The frame number.
    pub frame: FrameNumber,
    /// The mapping by which the frame was found, if it was found by an address.
    pub seen: Option<KnownMapping>,
    /// The process whose relatives are visited first.
    pub near: Option<u32>,
    /// Whether PAGEMAP_SCAN and PROCMAP_QUERY may be used (see
    /// [`Process::set_scan`](crate::process::Process::set_scan)).
    pub scan: bool,
    /// The number of reported mappings after which the search ends. Neighbouring pages count as one.
    pub limit: Option<u64>,
}

impl FrameQuestion {
    /// Returns the question who maps `frame`, without a limit.
    pub fn of(frame: FrameNumber) -> Self {
        FrameQuestion { frame, seen: None, near: None, scan: true, limit: None }
    }
}

/// A mapping known before the search.
#[derive(Clone, Debug)]
pub struct KnownMapping {
    /// The id of the process.
    pub pid: u32,
    /// The first byte of the page.
    pub address: VirtualAddress,
    /// The region that contains the page.
    pub region: Option<Region>,
}

/// A mapping of the frame.
#[non_exhaustive]
pub struct Mapper {
    /// The process.
    pub process: Identity,
    /// The first byte of the first page.
    pub address: VirtualAddress,
    /// The number of neighbouring pages that map the frame, more than one only for zero pages and merged pages.
    pub pages: u64,
    /// The region that contains the first page; `None` if it was unmapped since.
    pub region: Option<Region>,
    /// All regions of the process, if memory without a file may have a symbol here; or those of a process with which it
    /// shares the region since a fork.
    pub regions: Option<Arc<[Region]>>,
    pub(super) opened: Box<Opened>,
}

/// The process of a mapping.
pub(super) enum Opened {
    /// The process was opened to find the mapping.
    Already(Target),
    /// The kernel's records named the process.
    Later {
        machine: Arc<Machine>,
        /// Whether PROCMAP_QUERY may be used.
        scan: bool,
    },
}

impl Mapper {
    /// Opens the process unless it is open. Returns `None` if it has exited.
    ///
    /// # Errors
    /// Fails if the process may not be opened.
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

/// An event of a search: a mapping, or the number of visited processes of this round.
pub type SearchEvent = Step<Mapper>;

/// The reasons why a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EndCause {
    /// No process can map such a frame, for this reason.
    Nobody(&'static str),
    /// As many mappings were found as the kernel counts, and all were still there after the count was read.
    Counted,
    /// All processes that can be read were searched.
    Searched,
    /// The limit was reached.
    Limit,
    /// The caller stopped before the end, or the budget was used up.
    Stopped,
}

/// The summary of a search, without the mappings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SearchSummary {
    /// The flags of the frame.
    pub flags: Fact<PageFlags>,
    /// The map count of the frame.
    pub map_count: Fact<u64>,
    /// The reason why the map count cannot end the search, if it cannot.
    pub uncounted: Option<Reason>,
    /// Whether the mappings were found by the kernel's records: then only the processes that these name were visited.
    pub by_records: bool,
    /// The numbers of mappings and processes.
    pub counts: WhoCounts,
    /// Whether `/proc` lists all processes of the machine: it does not in a pid namespace or with `hidepid`.
    pub lists_all: bool,
    /// Whether the page has left the mapping by which the frame was found. Then the mappings may be from before or
    /// after that.
    pub has_moved: bool,
    /// The reason why the search ended.
    pub end_cause: EndCause,
}
