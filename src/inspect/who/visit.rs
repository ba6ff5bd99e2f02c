//! A look at one process: what of it maps the frame, where a clue leads or anywhere.

use super::crew::{Check, Work};
use super::hunt::{Found, Hunter, Room};
use super::nature::Nature;
use super::question::Question;
use crate::inspect::{Error, Result};
use crate::kernel::{AddressRange, Device, Region, VirtualAddress};
use crate::report::{Reason, Stopped};
use crate::symbol::may_have_names;
use crate::target::{self, Machine, Process, Relation, Target};
use std::sync::Arc;

/// What one mapping says of where others are.
#[derive(Clone, Copy)]
pub enum Clue {
    /// Wherever this offset of this file is mapped.
    File {
        device: Device,
        inode: u64,
        offset: u64,
    },
    /// Wherever this offset of any file is mapped: overlays and containers have numbers of their own for one and the same file, but
    /// a page of it lies at one offset.
    Offset(u64),
    /// At the same address.
    Address(VirtualAddress),
}

/// How processes are looked at.
#[derive(Clone, Copy)]
pub enum How {
    /// Where the clue leads.
    Follow(Clue),
    /// All that they map and that may be the frame.
    Search,
}

/// How looking at a process went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Unseen,
    Read,
    Unreadable,
    Gone,
    /// It shares the memory of one that was told of.
    Same,
}

/// What a process is looked at for.
pub struct Visitor<'a> {
    pub machine: &'a Arc<dyn Machine>,
    pub question: &'a Question,
    pub hunter: Hunter,
    pub nature: Nature,
    pub how: How,
}

/// A process that was looked at.
pub struct Visit {
    pub state: State,
    /// It, if it was found to map the frame.
    pub target: Option<Target>,
    pub hits: Vec<Hit>,
    /// All its regions, if memory among the hits that is of no file may have a symbol.
    pub regions: Option<Vec<Region>>,
    /// What is still to be searched, once these are told.
    pub rest: Vec<AddressRange>,
    /// The audience wanted no more.
    pub stopped: Option<Stopped>,
}

/// Neighbouring pages that all map the frame.
pub struct Hit {
    pub address: VirtualAddress,
    pub pages: u64,
    /// The region that holds the first.
    pub region: Option<Region>,
}

impl Visit {
    /// A look that came to nothing but that state.
    pub fn without(state: State) -> Self {
        Visit {
            state,
            target: None,
            hits: Vec::new(),
            regions: None,
            rest: Vec::new(),
            stopped: None,
        }
    }
}

/// A process to look at: its place among the peers, by which the visit is booked, and it.
pub type Job = (usize, Relation);

impl Work<Job> for Visitor<'_> {
    type Result = Result<Visit>;
    type Room = Room;

    /// Opens a process and looks at it. That it cannot be opened, or has gone, is no error.
    fn work(&self, (_, listed): &Job, room: &mut Room, check: &mut Check<'_>) -> Result<Visit> {
        let opened = match self.machine.open(listed) {
            Ok(opened) => opened,
            Err(error) => return Ok(Visit::without(state_after(&error))),
        };
        if opened.process.frames_hidden() {
            return Err(Error::Unknown {
                what: "frame numbers",
                reason: Reason::FrameHidden,
            });
        }
        opened.process.set_scan(self.question.scan);
        let target = Target {
            process: opened.process,
            machine: Arc::clone(self.machine),
            modules: opened.modules,
        };
        match self.look(&target, room, check) {
            Ok(visit) if visit.hits.is_empty() => Ok(visit),
            Ok(visit) => Ok(Visit {
                target: Some(target),
                ..visit
            }),
            Err(Error::Target(error)) => Ok(Visit::without(state_after(&error))),
            Err(error) => Err(error),
        }
    }
}

impl Visitor<'_> {
    fn look(&self, target: &Target, room: &mut Room, check: &mut Check<'_>) -> Result<Visit> {
        let process = &*target.process;
        let ranges = match self.how {
            How::Follow(clue) => {
                let mut found = Found::default();
                for address in places(clue, process)? {
                    if self.hunter.is_at(process, address)? {
                        found.runs.push((address, 1));
                    }
                }
                return visit(target, found, Vec::new());
            }
            How::Search if self.nature != Nature::File && Hunter::is_scanned(process) => {
                Vec::from_iter(self.hunter.everything())
            }
            How::Search => {
                let may_map = |region: &Region| self.nature != Nature::File || region.inode != 0;
                let regions = process.regions()?.into_iter().filter(may_map);
                regions.map(|region| region.range).collect()
            }
        };
        self.search(target, ranges, room, check)
    }

    /// Goes through `ranges` of a process, as far as there is nothing to be told.
    pub fn search(
        &self,
        target: &Target,
        ranges: Vec<AddressRange>,
        room: &mut Room,
        check: &mut Check<'_>,
    ) -> Result<Visit> {
        let mut found = Found::default();
        let mut ranges = ranges.into_iter();
        let mut rest = None;
        while rest.is_none()
            && let Some(range) = ranges.next()
        {
            rest = self
                .hunter
                .search(&*target.process, range, &mut found, room, check)?;
        }
        visit(target, found, rest.into_iter().chain(ranges).collect())
    }
}

fn visit(target: &Target, found: Found, rest: Vec<AddressRange>) -> Result<Visit> {
    let process = &*target.process;
    let are_several = found.runs.len() > 1;
    // All of them, where each question about one reads all.
    let mut all: Option<Vec<Region>> = None;
    let mut region_at = |address| -> Result<Option<Region>> {
        let is_there = |region: &&Region| region.range.contains(address);
        if let Some(all) = &all {
            return Ok(all.iter().find(is_there).cloned());
        }
        let region = process.region_at(address)?;
        if are_several && !process.has_queried() {
            all = Some(process.regions()?);
        }
        Ok(region)
    };
    let mut hits = Vec::new();
    for (address, pages) in found.runs {
        hits.push(Hit {
            address,
            pages,
            region: region_at(address)?,
        });
    }
    Ok(Visit {
        state: State::Read,
        target: None,
        regions: regions(&hits, target),
        hits,
        rest,
        stopped: found.stopped,
    })
}

/// Read here and not where the hits are told, since here other cores help.
fn regions(hits: &[Hit], target: &Target) -> Option<Vec<Region>> {
    let mut regions = hits.iter().filter_map(|hit| hit.region.as_ref());
    let asks = regions.any(|region| {
        // What may be executed there may be code that the process has made and named.
        region.inode == 0 && (region.permissions.execute || may_have_names(target, region))
    });
    asks.then(|| target.process.regions().ok()).flatten()
}

/// Where in a process the clue leads.
fn places(clue: Clue, process: &dyn Process) -> Result<Vec<VirtualAddress>> {
    let wanted = match clue {
        Clue::Address(address) => return Ok(vec![address]),
        Clue::File { offset, .. } | Clue::Offset(offset) => offset,
    };
    let is_of_file = |region: &&Region| match clue {
        Clue::File { device, inode, .. } => region.device == device && region.inode == inode,
        _ => region.inode != 0,
    };
    let place = |region: &Region| {
        let into = wanted.checked_sub(region.offset)?;
        let address = region.range.start().checked_add(into)?;
        region.range.contains(address).then_some(address)
    };
    let regions = process.regions()?;
    Ok(regions
        .iter()
        .filter(is_of_file)
        .filter_map(place)
        .collect())
}

/// What a process that cannot be looked at is.
pub fn state_after(error: &target::Error) -> State {
    match error {
        target::Error::Gone { .. } | target::Error::NotAvailable { .. } => State::Gone,
        _ => State::Unreadable,
    }
}
