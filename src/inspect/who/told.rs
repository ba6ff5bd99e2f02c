//! What was found so far, each mapping once.

use super::hunt::Places;
use super::question::{Audience, Mapper};
use super::visit::{Hit, State};
use crate::inspect::Result;
use crate::kernel::{Region, VirtualAddress};
use crate::target::{Machine, Relation, Target};

/// A process, and what has become of it.
pub struct Peer {
    pub listed: Relation,
    pub state: State,
    /// When it started, once it is known to map the frame: another may have its number later.
    pub start_time: u64,
    /// Whether it maps the frame.
    pub maps: bool,
    /// Whether its memory is known to be no other's that was told of.
    pub is_certain: bool,
    /// Whether all of it was searched through.
    pub searched: bool,
    /// The last round that it was looked at in.
    pub round: u32,
    /// Pages of it that were told of, where it matters: those that a clue has led to, as a search comes by them again, and all whose
    /// number is to be held against the map count.
    pub places: Places,
}

impl Peer {
    pub fn new(listed: Relation) -> Self {
        Peer {
            listed,
            state: State::Unseen,
            start_time: 0,
            maps: false,
            is_certain: false,
            searched: false,
            round: 0,
            places: Places::new(),
        }
    }
}

/// A process that maps the frame, and its regions if they were read.
pub type Opened<'a> = (&'a Target, Option<&'a [Region]>);

/// What was told to the audience.
pub struct Told<'a> {
    machine: &'a dyn Machine,
    /// Processes that map the frame, in the order of [`Machine::find_memory`].
    spaces: Vec<u32>,
    /// Whether the mappings told of are to be held against the map count.
    is_counted: bool,
    /// How many more may be told of.
    room: u64,
    /// The first mapping.
    pub first: Option<(VirtualAddress, Option<Region>)>,
    /// Mappings that are there still, as far as is known.
    pub mappings: u64,
    /// Of these, those that the kernel counts each for certain: not those of a process whose memory may be another's.
    pub certain: u64,
    /// Mappings that were told of and are no more.
    pub left: u64,
}

impl<'a> Told<'a> {
    pub fn new(machine: &'a dyn Machine, is_counted: bool, limit: Option<u64>) -> Self {
        Told {
            machine,
            spaces: Vec::new(),
            is_counted,
            room: limit.unwrap_or(u64::MAX),
            first: None,
            mappings: 0,
            certain: 0,
            left: 0,
        }
    }

    /// Whether as many were told of as were asked for.
    pub fn is_enough(&self) -> bool {
        self.room == 0
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
            let address = hit.address;
            if !peer.places.contains(&address) {
                self.tell(peer, (target, regions), hit, audience)?;
                if peer.maps {
                    peer.places.insert(address);
                }
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
            if self.pages(&hit).all(|page| !peer.places.contains(&page)) {
                self.tell(peer, (target, regions), hit, audience)?;
                continue;
            }
            for address in self.pages(&hit) {
                if peer.places.contains(&address) {
                    continue;
                }
                let region = match address == hit.address {
                    true => hit.region.clone(),
                    false => target.process.region_at(address)?,
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

    /// The first byte of each of neighbouring pages.
    fn pages(&self, hit: &Hit) -> impl Iterator<Item = VirtualAddress> + use<> {
        let (start, size) = (hit.address.get(), self.machine.page().bytes());
        (0..hit.pages).map(move |nth| VirtualAddress::new(start + nth * size))
    }

    /// Tells of neighbouring pages, unless they belong to memory that was told of.
    fn tell(
        &mut self,
        peer: &mut Peer,
        (target, regions): Opened<'_>,
        hit: Hit,
        audience: &mut dyn Audience,
    ) -> Result<()> {
        if peer.state == State::Same || self.is_enough() {
            return Ok(());
        }
        if !peer.maps {
            let is_new = self.is_new_space(peer.listed.pid);
            if is_new == Some(false) {
                peer.state = State::Same;
                return Ok(());
            }
            peer.maps = true;
            peer.start_time = target.process.identity().start_time;
            peer.is_certain = is_new.is_some();
        }
        self.room -= 1;
        self.mappings += hit.pages;
        if peer.is_certain {
            self.certain += hit.pages;
        }
        if self.is_counted {
            peer.places.extend(self.pages(&hit));
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
        match self.machine.find_memory(&self.spaces, pid)? {
            Ok(_) => Some(false),
            Err(place) => {
                self.spaces.insert(place, pid);
                Some(true)
            }
        }
    }

    /// Takes back what was told of processes, each with the pages of it that are there `still`. Whether any had left.
    pub fn keep(&mut self, peers: &mut [Peer], still: Vec<Still>) -> bool {
        let before = self.left;
        for still in still {
            let Some(peer) = peers.get_mut(still.peer) else {
                continue;
            };
            let left = (peer.places.len() - still.places.len()) as u64;
            self.left += left;
            self.mappings -= left;
            if peer.is_certain {
                self.certain -= left;
            }
            peer.places = still.places;
            if peer.places.is_empty() {
                peer.maps = false;
                peer.state = still.state;
                self.spaces.retain(|&space| space != peer.listed.pid);
            }
        }
        let any_left = self.left > before;
        if any_left {
            // The memory that they share may have been that of one that has it no more.
            let same = peers.iter_mut().filter(|peer| peer.state == State::Same);
            same.for_each(|peer| *peer = Peer::new(peer.listed.clone()));
        }
        any_left
    }
}

/// What is left of what was told of a process.
pub struct Still {
    /// Which of the processes.
    pub peer: usize,
    pub state: State,
    /// Pages that map the frame still.
    pub places: Places,
}
