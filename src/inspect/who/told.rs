//! What was found so far, each mapping once.

use super::visit::Hit;
use super::{Audience, Mapper};
use crate::inspect::Result;
use crate::kernel::{Region, VirtualAddress};
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

/// A process that maps the frame, and its regions if they were read.
pub type Opened<'a> = (&'a Target, Option<&'a [Region]>);

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

    /// Tells of pages that a clue has led to, unless an earlier one did.
    pub fn tell_new(
        &mut self,
        peer: &mut Peer,
        (target, regions): Opened<'_>,
        hits: Vec<Hit>,
        audience: &mut dyn Audience,
    ) -> Result<()> {
        for hit in hits {
            if self.by_clue.insert((peer.pid, hit.address)) {
                self.tell(peer, (target, regions), hit, audience)?;
            }
        }
        Ok(())
    }

    /// Tells of pages that a search has found, which comes by those again that a clue has led to.
    pub fn tell_again(
        &mut self,
        peer: &mut Peer,
        (target, regions): Opened<'_>,
        hits: Vec<Hit>,
        audience: &mut dyn Audience,
    ) -> Result<()> {
        for hit in hits {
            if self.by_clue.is_empty() {
                self.tell(peer, (target, regions), hit, audience)?;
                continue;
            }
            let size = self.machine.page().bytes();
            for nth in 0..hit.pages {
                let address = VirtualAddress::new(hit.address.get() + nth * size);
                if self.by_clue.contains(&(peer.pid, address)) {
                    continue;
                }
                let region = match nth {
                    0 => hit.region.clone(),
                    _ => target.process.region_at(address)?,
                };
                let one = Hit {
                    address,
                    pages: 1,
                    region,
                };
                self.tell(peer, (target, regions), one, audience)?;
            }
        }
        Ok(())
    }

    /// Tells of neighbouring pages, unless they belong to memory that was told of.
    fn tell(
        &mut self,
        peer: &mut Peer,
        (target, regions): Opened<'_>,
        hit: Hit,
        audience: &mut dyn Audience,
    ) -> Result<()> {
        if peer.state == State::Same {
            return Ok(());
        }
        if !peer.maps {
            let is_new = self.is_new_space(peer.pid);
            if is_new == Some(false) {
                peer.state = State::Same;
                return Ok(());
            }
            peer.maps = true;
            peer.is_certain = is_new.is_some();
        }
        self.mappings += hit.pages;
        if peer.is_certain {
            self.certain += hit.pages;
        }
        if self.first.is_none() {
            self.first = Some((hit.address, hit.region.clone()));
        }
        let mapper = Mapper {
            target,
            address: hit.address,
            pages: hit.pages,
            region: hit.region,
            regions,
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
