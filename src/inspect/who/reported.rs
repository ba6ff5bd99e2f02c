//! The reported mappings, each once, with their processes. They are read again: a page may leave the frame while the
//! search goes on.

use super::question::{Mapper, Opened, SearchEvent};
use super::recorded::Kinds;
use super::scan::{FrameScanner, PageSet, ScanBuffer};
use super::visit::{CandidateState, Hit, state_after};
use crate::budget::Budget;
use crate::inspect::ordered_pool::{Pool, Spread, TaskSize, Work};
use crate::inspect::{Error, Result};
use crate::kernel::{Region, VirtualAddress};
use crate::process::{Machine, ProcessHandle, RecordedMapper, Target};
use std::collections::VecDeque;
use std::sync::Arc;

/// A process that may map the frame.
pub struct Candidate {
    pub handle: ProcessHandle,
    pub state: CandidateState,
    /// The start time, once the process is known to map the frame: its id may be reused later.
    pub start_time: u64,
    /// Whether it maps the frame.
    pub is_mapper: bool,
    /// Whether no other candidate that maps the frame is known to share its address space, and the kernel could compare
    /// them.
    pub is_certain: bool,
    /// Whether the whole process was searched.
    pub is_searched: bool,
    /// The last round in which the process was visited.
    pub round: u32,
    /// The pages to which the kernel's records lead.
    pub places: Vec<VirtualAddress>,
    /// The reported pages. A search does not report them again, and they are compared with the map count.
    pub reported: PageSet,
}

impl Candidate {
    pub fn new(listed: ProcessHandle) -> Self {
        Candidate {
            handle: listed,
            state: CandidateState::NotVisited,
            start_time: 0,
            is_mapper: false,
            is_certain: false,
            is_searched: false,
            round: 0,
            places: Vec::new(),
            reported: PageSet::new(),
        }
    }
}

/// A process that maps the frame, and its regions if they were read.
pub type TargetRegions<'a> = (&'a Target, Option<&'a Arc<[Region]>>);

/// The mappings that were reported.
pub struct ReportedMappings {
    machine: Arc<Machine>,
    /// The events that the caller has not taken yet.
    pub events: VecDeque<SearchEvent>,
    /// The processes that map the frame, in the order of [`Machine::find_memory`].
    spaces: Vec<u32>,
    /// Whether the map count can end the search, so that all reported pages are remembered.
    is_counted: bool,
    /// The number of mappings that may still be reported.
    limit: u64,
    /// The address and region of the first mapping.
    pub first: Option<(VirtualAddress, Option<Region>)>,
    /// The number of mapping pages that are still there, as far as is known.
    pub mappings: u64,
    /// The number of these pages that the kernel certainly counts: not those of a process that may share its address
    /// space with another.
    pub certain: u64,
    /// The number of reported pages that no longer map the frame.
    pub gone_mappings: u64,
}

impl ReportedMappings {
    pub fn new(machine: &Arc<Machine>, is_counted: bool, limit: Option<u64>) -> Self {
        ReportedMappings {
            machine: Arc::clone(machine),
            events: VecDeque::new(),
            spaces: Vec::new(),
            is_counted,
            limit: limit.unwrap_or(u64::MAX),
            first: None,
            mappings: 0,
            certain: 0,
            gone_mappings: 0,
        }
    }

    /// Returns whether the limit is reached.
    pub fn is_at_limit(&self) -> bool {
        self.limit == 0
    }

    /// Reports pages that were found in a candidate, unless they were reported before. Pages found by a clue are
    /// remembered, as a search finds them again.
    pub fn report(
        &mut self,
        candidate: &mut Candidate,
        opened: TargetRegions<'_>,
        hits: Vec<Hit>,
        is_by_clue: bool,
    ) -> Result<()> {
        let remembers = is_by_clue || self.is_counted;
        for hit in hits {
            let pages = self.pages(&hit);
            if !pages.clone().any(|page| candidate.reported.contains(&page)) {
                self.report_one(candidate, opened, hit, remembers);
                continue;
            }
            for address in pages {
                if candidate.reported.contains(&address) {
                    continue;
                }
                let region =
                    if address == hit.address { hit.region.clone() } else { opened.0.process.region_at(address)? };
                let one = Hit { address, pages: 1, region };
                self.report_one(candidate, opened, one, remembers);
            }
        }
        Ok(())
    }

    /// Returns the addresses of the pages of a hit.
    fn pages(&self, hit: &Hit) -> impl Iterator<Item = VirtualAddress> + Clone + use<> {
        let (start, size) = (hit.address.get(), self.machine.page_size().bytes());
        (0..hit.pages).map(move |nth| VirtualAddress::new(start + nth * size))
    }

    /// Reports neighbouring pages, unless the address space of the process was reported as that of another.
    fn report_one(
        &mut self,
        candidate: &mut Candidate,
        (target, regions): TargetRegions<'_>,
        hit: Hit,
        remembers: bool,
    ) {
        if candidate.state == CandidateState::SameMemory || self.is_at_limit() {
            return;
        }
        if !candidate.is_mapper {
            let is_new = self.is_new_space(candidate.handle.pid);
            if is_new == Some(false) {
                candidate.state = CandidateState::SameMemory;
                return;
            }
            candidate.is_mapper = true;
            candidate.start_time = target.process.identity().start_time;
            candidate.is_certain = is_new.is_some();
        }
        self.limit -= 1;
        self.mappings += hit.pages;
        if candidate.is_certain {
            self.certain += hit.pages;
        }
        if remembers {
            candidate.reported.extend(self.pages(&hit));
        }
        if self.first.is_none() {
            self.first = Some((hit.address, hit.region.clone()));
        }
        self.events.push_back(SearchEvent::Found(Mapper {
            process: target.process.identity(),
            address: hit.address,
            pages: hit.pages,
            region: hit.region,
            regions: regions.cloned(),
            opened: Box::new(Opened::Already(target.clone())),
        }));
    }

    /// Reports all pages of a process that the kernel's records show, with the regions of their kinds. Returns the
    /// process as a candidate.
    pub fn report_recorded(
        &mut self,
        RecordedMapper { process, pages, .. }: RecordedMapper,
        kinds: &Kinds,
        scan: bool,
    ) -> Candidate {
        let mut candidate = Candidate::new(ProcessHandle::of_numbers(process.pid, 0));
        candidate.state = CandidateState::Read;
        candidate.is_mapper = true;
        for page in pages {
            let kind = page.kind.and_then(|kind| kinds.get(&kind));
            self.mappings += 1;
            candidate.reported.insert(page.address);
            self.events.push_back(SearchEvent::Found(Mapper {
                process: process.clone(),
                address: page.address,
                pages: 1,
                region: kind.map(|kind| Region { range: page.range, ..kind.region.clone() }),
                regions: kind.and_then(|kind| kind.regions.clone()),
                opened: Box::new(Opened::Later { machine: Arc::clone(&self.machine), scan }),
            }));
        }
        candidate
    }

    /// Returns whether no process that maps the frame shares the address space of the process `pid`; `None` if the
    /// kernel cannot compare them.
    fn is_new_space(&mut self, pid: u32) -> Option<bool> {
        match self.machine.find_memory(&self.spaces, pid)? {
            Ok(_) => Some(false),
            Err(place) => {
                self.spaces.insert(place, pid);
                Some(true)
            }
        }
    }

    /// Removes the reported pages that no longer map the frame. Returns whether there were any.
    pub fn retain(&mut self, candidates: &mut [Candidate], rechecked: Vec<RecheckResult>) -> bool {
        let before = self.gone_mappings;
        for still in rechecked {
            let Some(candidate) = candidates.get_mut(still.candidate) else {
                continue;
            };
            let left = (candidate.reported.len() - still.pages.len()) as u64;
            self.gone_mappings += left;
            self.mappings -= left;
            if candidate.is_certain {
                self.certain -= left;
            }
            candidate.reported = still.pages;
            if candidate.reported.is_empty() {
                candidate.is_mapper = false;
                candidate.state = still.state;
                self.spaces.retain(|&space| space != candidate.handle.pid);
            }
        }
        let any_left = self.gone_mappings > before;
        if any_left {
            // Another process with the same address space may have kept a page that was removed: it is visited again.
            for candidate in candidates {
                if candidate.state == CandidateState::SameMemory {
                    let places = std::mem::take(&mut candidate.places);
                    *candidate = Candidate { places, ..Candidate::new(candidate.handle.clone()) };
                }
            }
        }
        any_left
    }
}

/// The reported pages of a candidate that still map the frame.
#[derive(Default)]
pub struct RecheckResult {
    /// The index of the candidate.
    pub candidate: usize,
    pub state: CandidateState,
    pub pages: PageSet,
}

/// Reads again the reported pages of `candidates`. Returns those that still map the frame.
pub fn recheck(
    machine: &Arc<Machine>,
    scanner: FrameScanner,
    candidates: &[Candidate],
    budget: &Budget,
) -> Result<Vec<RecheckResult>> {
    let mut left = candidates.iter().enumerate();
    let mut plan = |recheck: &mut Recheck| {
        let Some((index, candidate)) = left.find(|(_, candidate)| candidate.is_mapper) else {
            return Ok(TaskSize::Nothing);
        };
        recheck.handle = Some(candidate.handle.clone());
        recheck.start_time = candidate.start_time;
        recheck.reported.clone_from(&candidate.reported);
        recheck.still.candidate = index;
        Ok(TaskSize::Full)
    };
    let mut pool = Pool::new(Arc::new(Rechecker { machine: Arc::clone(machine), scanner }), budget.clone());
    let mut rechecked = Vec::new();
    while let Some(recheck) = pool.next(&mut plan)? {
        rechecked.push(std::mem::take(&mut recheck.still));
    }
    Ok(rechecked)
}

/// The pages of a candidate to read again, and the result.
#[derive(Default)]
struct Recheck {
    handle: Option<ProcessHandle>,
    start_time: u64,
    reported: PageSet,
    still: RecheckResult,
}

struct Rechecker {
    machine: Arc<Machine>,
    scanner: FrameScanner,
}

impl Work for Rechecker {
    type Task = Recheck;
    type Buffers = ScanBuffer;
    const SPREAD: Spread = Spread::FINE;

    fn work(&self, recheck: &mut Recheck, buffer: &mut ScanBuffer, budget: &mut Budget) -> Result<()> {
        let Some(listed) = &recheck.handle else {
            return Ok(());
        };
        let still = &mut recheck.still;
        (still.state, still.pages) = match self.read(listed, recheck.start_time, &recheck.reported, buffer, budget) {
            Ok(pages) => (CandidateState::Read, pages),
            // A process that may no longer be read has executed a program with other rights, and so has a new address
            // space.
            Err(Error::Target(error)) => (state_after(&error), PageSet::new()),
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

impl Rechecker {
    fn read(
        &self,
        listed: &ProcessHandle,
        start_time: u64,
        reported: &PageSet,
        buffer: &mut ScanBuffer,
        budget: &mut Budget,
    ) -> Result<PageSet> {
        let process = self.machine.open(listed)?.process;
        if process.identity().start_time == start_time {
            self.scanner.still_mapped(&process, reported, buffer, budget)
        } else {
            Ok(PageSet::new())
        }
    }
}
