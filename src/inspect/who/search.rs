//! The search through all processes: the likely places first, then the rest, until every mapping that the kernel counts is found.

use super::hunt::Hunter;
use super::nature::{self, Nature};
use super::told::{Listener, Peer, State, Told};
use super::{Answer, Audience, Ended, Question};
use crate::inspect::frames::{count_of, flags_of};
use crate::inspect::{Error, Result};
use crate::kernel::{Device, PageFlags, Region, VirtualAddress};
use crate::report::{Fact, Reason};
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

pub struct Search<'a> {
    machine: &'a Arc<dyn Machine>,
    question: &'a Question,
    flags: Fact<PageFlags>,
    map_count: Fact<u64>,
    /// Whether that is to be believed.
    counted: Fact<()>,
    nature: Nature,
    hunter: Hunter,
    told: Told<'a>,
}

impl<'a> Search<'a> {
    pub fn new(machine: &'a Arc<dyn Machine>, question: &'a Question) -> Self {
        let flags = flags_of(&**machine, question.frame);
        let map_count = count_of(&**machine, question.frame);
        Search {
            machine,
            question,
            nature: Nature::of(&flags),
            counted: nature::is_counted(&flags, &map_count, &**machine),
            flags,
            map_count,
            hunter: Hunter::new(question.frame, machine.page()),
            told: Told::new(&**machine),
        }
    }

    pub fn run(mut self, audience: &mut dyn Audience) -> Result<Answer> {
        if let Nature::Unmappable(why) = self.nature {
            return Ok(self.answer(&[], Ended::Nobody(why), false));
        }
        let mut peers = self.peers()?;
        let ended = match self.look(&mut peers, audience) {
            Ok(ended) => ended,
            Err(Error::Stopped(stopped)) => Ended::Stopped(stopped),
            Err(error) => return Err(error),
        };
        let moved = ended == Ended::Searched && self.has_moved();
        Ok(self.answer(&peers, ended, moved))
    }

    /// Every process, relatives first.
    fn peers(&self) -> Result<Vec<Peer>> {
        let mut relations = self.machine.relations()?;
        if let Some(own) = self.question.near {
            let parent_of = |pid: u32| {
                let found = relations.iter().find(|one| one.pid == pid);
                found.map_or(0, |one| one.parent)
            };
            let parent = parent_of(own);
            relations.sort_by_key(|one: &Relation| match one {
                one if one.pid == own => 0,
                one if one.pid == parent || one.parent == own => 1,
                one if one.parent == parent => 2,
                _ => 3,
            });
        }
        let peer = |relation: Relation| Peer {
            pid: relation.pid,
            state: State::Unseen,
            maps: false,
            is_certain: false,
            searched: false,
        };
        Ok(relations.into_iter().map(peer).collect())
    }

    fn look(&mut self, peers: &mut [Peer], audience: &mut dyn Audience) -> Result<Ended> {
        let seen = self.question.seen.as_ref();
        let mut clue = seen.and_then(|seen| self.clue(seen.address, seen.region.as_ref()));
        let mut has_clue = clue.is_some();
        let total = peers.len() as u64;
        for next in 0.. {
            if let Some(clue) = clue.take()
                && let Some(ended) = self.follow_all(clue, peers, audience)?
            {
                return Ok(ended);
            }
            // The rest is searched through, until there is something to go by.
            let Some(peer) = peers.get_mut(next) else {
                break;
            };
            audience.looked_at(next as u64, total)?;
            self.search(peer, audience)?;
            if self.is_complete() {
                return Ok(Ended::Counted);
            }
            if let (false, Some((address, region))) = (has_clue, &self.told.first) {
                clue = self.clue(*address, region.as_ref());
                has_clue = clue.is_some();
            }
        }
        Ok(Ended::Searched)
    }

    /// Follows a clue to its end. `None` if the rest has to be searched through.
    fn follow_all(
        &mut self,
        clue: Clue,
        peers: &mut [Peer],
        audience: &mut dyn Audience,
    ) -> Result<Option<Ended>> {
        self.follow(clue, peers, audience)?;
        let Clue::File { offset, .. } = clue else {
            return Ok(self.is_complete().then_some(Ended::Counted));
        };
        if !self.is_complete() {
            self.follow(Clue::Offset(offset), peers, audience)?;
        }
        Ok(Some(match self.is_complete() {
            true => Ended::Counted,
            false => Ended::Searched,
        }))
    }

    /// What a mapping at `address` says of others.
    fn clue(&self, address: VirtualAddress, region: Option<&Region>) -> Option<Clue> {
        match self.nature {
            Nature::Unmappable(_) | Nature::Everywhere => None,
            Nature::Anywhere => Some(Clue::Address(address)),
            Nature::File => {
                let region = region?;
                Some(Clue::File {
                    device: region.device,
                    inode: region.inode,
                    offset: region.file_offset(address)?,
                })
            }
        }
    }

    /// Looks where the clue leads, in every process that was not searched through.
    fn follow(
        &mut self,
        clue: Clue,
        peers: &mut [Peer],
        audience: &mut dyn Audience,
    ) -> Result<()> {
        let total = peers.len() as u64;
        for (done, peer) in (0..).zip(peers.iter_mut()) {
            audience.looked_at(done, total)?;
            if peer.searched {
                continue;
            }
            self.visit(peer, |search, peer, target| {
                let process = &*target.process;
                for address in search.places(clue, process)? {
                    if search.hunter.is_at(process, address)?
                        && search.told.by_clue.insert((peer.pid, address))
                    {
                        search.told.tell(peer, target, address, 1, audience)?;
                    }
                }
                Ok(())
            })?;
            if self.is_complete() {
                break;
            }
        }
        Ok(())
    }

    /// Where in a process the clue leads.
    fn places(&self, clue: Clue, process: &dyn Process) -> Result<Vec<VirtualAddress>> {
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

    /// Goes through all that a process maps and that may be the frame.
    fn search(&mut self, peer: &mut Peer, audience: &mut dyn Audience) -> Result<()> {
        peer.searched = true;
        self.visit(peer, |search, peer, target| {
            let process = &*target.process;
            let ranges = match search.nature {
                Nature::File => {
                    let regions = process.regions()?.into_iter();
                    let files = regions.filter(|region| region.inode != 0);
                    files.map(|region| region.range).collect()
                }
                _ => Vec::from_iter(search.hunter.everything()),
            };
            let told = &mut search.told;
            let mut listener = Listener {
                told,
                peer,
                target,
                audience,
            };
            for range in ranges {
                search.hunter.search(process, range, &mut listener)?;
                if listener.peer.state == State::Same {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Opens a process and has it looked at. That it cannot be, or has gone, is no error.
    fn visit(
        &mut self,
        peer: &mut Peer,
        look: impl FnOnce(&mut Self, &mut Peer, &Target) -> Result<()>,
    ) -> Result<()> {
        if peer.state != State::Unseen && peer.state != State::Read {
            return Ok(());
        }
        let opened = match self.machine.open(peer.pid) {
            Ok(opened) => opened,
            Err(error) => {
                peer.state = state_after(&error);
                return Ok(());
            }
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
        peer.state = State::Read;
        match look(self, peer, &target) {
            Err(Error::Target(error)) => {
                peer.state = state_after(&error);
                Ok(())
            }
            other => other,
        }
    }

    /// Whether every mapping that the kernel counts now was found.
    fn is_complete(&mut self) -> bool {
        if self.counted.is_err() {
            return false;
        }
        self.map_count = count_of(&**self.machine, self.question.frame);
        let certain = self.told.certain;
        matches!(self.map_count, Ok(count) if count > 0 && certain >= count)
    }

    /// Whether the page is no longer where it was seen.
    fn has_moved(&self) -> bool {
        let Some(seen) = &self.question.seen else {
            return false;
        };
        let there = self
            .machine
            .open(seen.pid)
            .map_err(Error::from)
            .and_then(|opened| self.hunter.is_at(&*opened.process, seen.address));
        !there.unwrap_or(false)
    }

    fn answer(self, peers: &[Peer], ended: Ended, moved: bool) -> Answer {
        let count = |wanted: &dyn Fn(&Peer) -> bool| {
            peers.iter().filter(|peer| wanted(peer)).count() as u64
        };
        Answer {
            uncounted: self.counted.err(),
            flags: self.flags,
            map_count: self.map_count,
            mappings: self.told.mappings,
            processes: count(&|peer| peer.maps),
            looked_at: count(&|peer| matches!(peer.state, State::Read | State::Same) || peer.maps),
            listed: peers.len() as u64,
            unreadable: count(&|peer| peer.state == State::Unreadable),
            gone: count(&|peer| peer.state == State::Gone),
            same_memory: count(&|peer| peer.state == State::Same),
            moved,
            ended,
        }
    }
}

fn state_after(error: &target::Error) -> State {
    match error {
        target::Error::Gone { .. } | target::Error::NotAvailable { .. } => State::Gone,
        _ => State::Unreadable,
    }
}
