//! Visits one process: finds its pages that map the frame, by a clue or by a scan.

use super::scan::{FrameScanner, MappingPlaces, ProcessScan, ScanBuffer, ScanHits};
use crate::budget::{Budget, OutOfBudget};
use crate::inspect::ordered_pool::{Spread, Work};
use crate::inspect::{Error, Result};
use crate::kernel::{AddressRange, Device, Region, VirtualAddress};
use crate::process::{self, Machine, Process, ProcessHandle, Target};
use crate::report::Reason;
#[cfg(feature = "symbols")]
use crate::symbol::may_have_names;
use std::sync::Arc;

/// The place that one mapping suggests for others.
#[derive(Clone, Copy)]
pub enum Clue {
    /// All mappings of this offset of this file.
    File { device: Device, inode: u64, offset: u64 },
    /// All mappings of this offset of any file. Overlays and containers show different numbers for the same file, but a
    /// page keeps its offset.
    Offset(u64),
    /// This address in other processes.
    Address(VirtualAddress),
}

/// The way in which processes are visited.
#[derive(Clone, Copy)]
pub enum VisitMode {
    /// Reads only the pages to which the kernel's records lead.
    Records,
    /// Reads only the pages to which the clue leads.
    Follow(Clue),
    /// Reads all populated pages where the frame can be mapped.
    Search,
}

/// The result of visiting a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum CandidateState {
    #[default]
    NotVisited,
    Read,
    Unreadable,
    Gone,
    /// The process shares its address space with a reported one.
    SameMemory,
}

/// Visits the processes of a round.
pub struct Visitor {
    pub machine: Arc<Machine>,
    /// Whether PAGEMAP_SCAN may be used.
    pub scan: bool,
    pub scanner: FrameScanner,
    pub places: MappingPlaces,
    pub how: VisitMode,
}

/// A visit of a candidate.
#[derive(Default)]
pub struct Visit {
    /// The index of the candidate.
    pub candidate: usize,
    pub listed: Option<ProcessHandle>,
    /// The pages to which the kernel's records lead.
    pub places: Vec<VirtualAddress>,
    pub findings: Findings,
}

/// The findings in a process.
#[derive(Default)]
pub struct Findings {
    pub state: CandidateState,
    /// The process, if it maps the frame.
    pub target: Option<Target>,
    pub hits: Vec<Hit>,
    /// All regions of the process, if memory without a file among the hits may have a symbol.
    pub regions: Option<Arc<[Region]>>,
    /// The ranges to search after the hits are reported.
    pub rest: Vec<AddressRange>,
    /// The reason why the search ended early.
    pub stopped: Option<OutOfBudget>,
}

/// Neighbouring pages that all map the frame.
pub struct Hit {
    pub address: VirtualAddress,
    pub pages: u64,
    /// The region that contains the first page.
    pub region: Option<Region>,
}

impl Findings {
    /// Returns the findings in a process that cannot be read.
    pub fn without(state: CandidateState) -> Self {
        Findings { state, ..Findings::default() }
    }
}

impl Work for Visitor {
    type Task = Visit;
    type Buffers = ScanBuffer;
    const SPREAD: Spread = Spread::FINE;

    fn work(&self, visit: &mut Visit, buffer: &mut ScanBuffer, budget: &mut Budget) -> Result<()> {
        if let Some(listed) = &visit.listed {
            visit.findings = match self.visit(listed, &visit.places, buffer, budget) {
                Ok(findings) => findings,
                // A process that has gone or may not be read does not end the search. The end of the budget does.
                Err(Error::Target(error)) => Findings::without(state_after(&error)),
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }
}

impl Visitor {
    fn visit(
        &self,
        listed: &ProcessHandle,
        places: &[VirtualAddress],
        buffer: &mut ScanBuffer,
        budget: &mut Budget,
    ) -> Result<Findings> {
        let target = open(&self.machine, listed, self.scan, budget)?;
        if target.process.are_frames_hidden() {
            return Err(Error::Unknown { what: "frame numbers", reason: Reason::FrameHidden });
        }
        let findings = match self.how {
            VisitMode::Records => self.look_at(places, &target, budget)?,
            VisitMode::Follow(clue) => {
                self.look_at(&places_of_clue(clue, &target.process, budget)?, &target, budget)?
            }
            VisitMode::Search => {
                let ranges = self.ranges_to_search(&target.process, budget)?;
                self.search(&target, ranges, buffer, budget)?
            }
        };
        Ok(Findings { target: (!findings.hits.is_empty()).then_some(target), ..findings })
    }

    /// Reads the entries of `places`. Returns those that map the frame.
    fn look_at(&self, places: &[VirtualAddress], target: &Target, budget: &mut Budget) -> Result<Findings> {
        let mut hits = ScanHits::default();
        for &address in places {
            budget.go_on()?;
            if self.scanner.is_at(&target.process, address)? {
                hits.runs.push((address, 1));
            }
        }
        with_regions(target, hits, Vec::new(), budget)
    }

    /// Returns the ranges of a process that can map the frame.
    fn ranges_to_search(&self, process: &Process, budget: &mut Budget) -> Result<Vec<AddressRange>> {
        let is_of_file = self.places == MappingPlaces::File;
        if !is_of_file && process.has_scan() {
            return Ok(Vec::from_iter(self.scanner.all_addresses()));
        }
        let regions = process.regions_within(budget)?.into_iter();
        let regions = regions.filter(|region| !is_of_file || region.maps_object());
        Ok(regions.map(|region| region.range).collect())
    }

    /// Scans `ranges` of a process until there are hits to report.
    pub fn search(
        &self,
        target: &Target,
        ranges: Vec<AddressRange>,
        buffer: &mut ScanBuffer,
        budget: &mut Budget,
    ) -> Result<Findings> {
        let mut scan =
            ProcessScan { scanner: self.scanner, process: &target.process, buffer, budget, hits: ScanHits::default() };
        let mut ranges = ranges.into_iter();
        let mut rest = None;
        while rest.is_none()
            && let Some(range) = ranges.next()
        {
            rest = scan.scan(range)?;
        }
        let hits = scan.hits;
        with_regions(target, hits, rest.into_iter().chain(ranges).collect(), budget)
    }
}

/// Opens a process.
pub fn open(machine: &Arc<Machine>, handle: &ProcessHandle, scan: bool, budget: &Budget) -> process::Result<Target> {
    let opened = machine.open(handle)?;
    let process = opened.process.with_budget(budget.clone());
    process.set_scan(scan);
    Ok(Target { process, machine: Arc::clone(machine), modules: opened.modules })
}

/// Returns the findings of a scan, with the region of each hit.
fn with_regions(target: &Target, scanned: ScanHits, rest: Vec<AddressRange>, budget: &mut Budget) -> Result<Findings> {
    let process = &target.process;
    let are_several = scanned.runs.len() > 1;
    // Read once if the kernel cannot be asked for one region (PROCMAP_QUERY, Linux 6.11).
    let mut all: Option<Vec<Region>> = None;
    let mut region_at = |address| -> Result<Option<Region>> {
        if !are_several {
            return Ok(process.region_at(address)?);
        }
        if all.is_none() {
            if let Some(answer) = process.query_region_at(address)? {
                return Ok(answer);
            }
            all = Some(process.regions_within(budget)?);
        }
        let mut regions = all.iter().flatten();
        Ok(regions.find(|one| one.range.contains(address)).cloned())
    };
    let mut hits = Vec::new();
    for (address, pages) in scanned.runs {
        hits.push(Hit { address, pages, region: region_at(address)? });
    }
    Ok(Findings {
        state: CandidateState::Read,
        target: None,
        regions: regions(&hits, target)?,
        hits,
        rest,
        stopped: scanned.stopped,
    })
}

/// Returns false: without the feature `symbols`, no memory has a name.
#[cfg(not(feature = "symbols"))]
fn may_have_names(_: &Target, _: &Region) -> bool {
    false
}

/// Returns all regions if the symbol of a hit depends on them. They are read here by the worker threads, and not where
/// hits are reported.
fn regions(hits: &[Hit], target: &Target) -> Result<Option<Arc<[Region]>>> {
    let mut regions = hits.iter().filter_map(|hit| hit.region.as_ref());
    let asks = regions.any(|region| asks_regions(region, target));
    match asks.then(|| target.process.regions()) {
        Some(Err(error @ process::Error::OutOfBudget(_))) => Err(error.into()),
        read => Ok(read.and_then(Result::ok).map(Arc::from)),
    }
}

/// Returns whether a symbol in this region depends on all regions of the process.
pub fn asks_regions(region: &Region, target: &Target) -> bool {
    // Executable memory may be JIT-compiled code with names.
    !region.maps_object() && (region.permissions.execute || may_have_names(target, region))
}

/// Returns the addresses in a process to which the clue leads.
fn places_of_clue(clue: Clue, process: &Process, budget: &mut Budget) -> Result<Vec<VirtualAddress>> {
    let wanted = match clue {
        Clue::Address(address) => return Ok(vec![address]),
        Clue::File { offset, .. } | Clue::Offset(offset) => offset,
    };
    let is_of_file = |region: &&Region| match clue {
        Clue::File { device, inode, .. } => region.device == device && region.inode == inode,
        _ => region.maps_object(),
    };
    let place = |region: &Region| {
        let into = wanted.checked_sub(region.offset)?;
        let address = region.range.start().checked_add(into)?;
        region.range.contains(address).then_some(address)
    };
    let regions = process.regions_within(budget)?;
    Ok(regions.iter().filter(is_of_file).filter_map(place).collect())
}

/// Returns the state of a candidate that cannot be read because of `error`.
pub fn state_after(error: &process::Error) -> CandidateState {
    match error {
        process::Error::Gone { .. } | process::Error::NotAvailable { .. } => CandidateState::Gone,
        _ => CandidateState::Unreadable,
    }
}
