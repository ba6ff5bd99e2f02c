//! What was found so far, each mapping once.

use super::hunt::Prey;
use super::{Audience, Mapper};
use crate::inspect::Result;
use crate::kernel::{Region, VirtualAddress};
use crate::report::Stopped;
use crate::target::{Machine, Target};
use std::cmp::Ordering;
use std::collections::HashSet;

/// A process, and what has become of it.
pub struct Peer {
    pub pid: u32,
    pub state: State,
    /// Whether it maps the frame.
    pub maps: bool,
    /// Whether its memory is known to be no other's that was told of.
    pub is_certain: bool,
    /// Whether all of it was searched through.
    pub searched: bool,
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

/// What was told to the audience.
pub struct Told<'a> {
    machine: &'a dyn Machine,
    /// Processes that map the frame, in the order of [`Machine::compare_memory`].
    spaces: Vec<u32>,
    /// Mappings found by a clue: a search comes by them again.
    pub by_clue: HashSet<(u32, VirtualAddress)>,
    /// The first mapping.
    pub first: Option<(VirtualAddress, Option<Region>)>,
    pub mappings: u64,
    /// Of these, those that the kernel counts each for certain: not those of a process whose memory may be another's.
    pub certain: u64,
}

impl<'a> Told<'a> {
    pub fn new(machine: &'a dyn Machine) -> Self {
        Told {
            machine,
            spaces: Vec::new(),
            by_clue: HashSet::new(),
            first: None,
            mappings: 0,
            certain: 0,
        }
    }

    /// Tells of `pages` pages from `address` on, unless they belong to memory that was told of.
    pub fn tell(
        &mut self,
        peer: &mut Peer,
        target: &Target,
        address: VirtualAddress,
        pages: u64,
        audience: &mut dyn Audience,
    ) -> Result<()> {
        if peer.state == State::Same {
            return Ok(());
        }
        let region = target.process.region_at(address)?;
        if !peer.maps {
            let is_new = self.is_new_space(peer.pid);
            if is_new == Some(false) {
                peer.state = State::Same;
                return Ok(());
            }
            peer.maps = true;
            peer.is_certain = is_new.is_some();
        }
        self.mappings += pages;
        if peer.is_certain {
            self.certain += pages;
        }
        if self.first.is_none() {
            self.first = Some((address, region.clone()));
        }
        let mapper = Mapper {
            target,
            address,
            pages,
            region,
        };
        Ok(audience.found(&mapper)?)
    }

    /// Whether the memory of the process `pid` is not that of one that was told of; `None` if the kernel does not tell.
    fn is_new_space(&mut self, pid: u32) -> Option<bool> {
        let mut told = true;
        let place = self.spaces.binary_search_by(|&other| {
            self.machine.compare_memory(other, pid).unwrap_or_else(|| {
                told = false;
                Ordering::Less
            })
        });
        match place {
            _ if !told => None,
            Ok(_) => Some(false),
            Err(place) => {
                self.spaces.insert(place, pid);
                Some(true)
            }
        }
    }
}

/// Hands on what a search through one process finds.
pub struct Listener<'s, 'a> {
    pub told: &'s mut Told<'a>,
    pub peer: &'s mut Peer,
    pub target: &'s Target,
    pub audience: &'s mut dyn Audience,
}

impl Prey for Listener<'_, '_> {
    fn found(&mut self, address: VirtualAddress, pages: u64) -> Result<()> {
        let Listener {
            told,
            peer,
            target,
            audience,
        } = self;
        if told.by_clue.is_empty() {
            return told.tell(peer, target, address, pages, *audience);
        }
        let size = target.process.layout().page.bytes();
        for nth in 0..pages {
            let one = VirtualAddress::new(address.get() + nth * size);
            if !told.by_clue.contains(&(peer.pid, one)) {
                told.tell(peer, target, one, 1, *audience)?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Stopped> {
        // A process of its own may be long.
        self.audience.check()
    }
}
