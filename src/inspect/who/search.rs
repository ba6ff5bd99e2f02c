//! The search through all processes: the likely places first, then the rest, until every mapping that the kernel counts is found.

use super::again::look_again;
use super::crew::{Take, in_order};
use super::hunt::{Hunter, Room};
use super::nature::{self, Nature};
use super::question::{Answer, Audience, Ended, Question};
use super::told::{Peer, Told};
use super::visit::{Clue, How, Job, State, Visit, Visitor};
use crate::inspect::frames::{count_of, flags_of};
use crate::inspect::{Error, Result};
use crate::kernel::{PageFlags, Region, VirtualAddress};
use crate::report::{Fact, Stopped, WhoCounts};
use crate::target::{Machine, Relation};
use std::ops::ControlFlow;
use std::sync::Arc;

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
    /// Rounds through the processes so far.
    rounds: u32,
}

impl<'a> Search<'a> {
    pub fn new(machine: &'a Arc<dyn Machine>, question: &'a Question) -> Self {
        let flags = flags_of(&**machine, question.frame);
        let map_count = count_of(&**machine, question.frame);
        let counted = nature::is_counted(&flags, &map_count, &**machine);
        Search {
            machine,
            question,
            nature: Nature::of(&flags),
            told: Told::new(&**machine, counted.is_ok(), question.limit),
            counted,
            flags,
            map_count,
            hunter: Hunter {
                frame: question.frame,
                page: machine.page(),
            },
            rounds: 0,
        }
    }

    pub fn run(mut self, audience: &mut dyn Audience) -> Result<Answer> {
        if let Nature::Unmappable(why) = self.nature {
            return Ok(self.answer(&[], Ended::Nobody(why)));
        }
        let mut peers = self.peers()?;
        let ended = match self.look(&mut peers, audience) {
            Ok(ended) => ended,
            Err(Error::Stopped(stopped)) => Ended::Stopped(stopped),
            Err(error) => return Err(error),
        };
        Ok(self.answer(&peers, ended))
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
        Ok(relations.into_iter().map(Peer::new).collect())
    }

    fn look(&mut self, peers: &mut [Peer], audience: &mut dyn Audience) -> Result<Ended> {
        let seen = self.question.seen.as_ref();
        let mut clue = seen.and_then(|seen| self.clue(seen.address, seen.region.as_ref()));
        let had_clue = clue.is_some();
        loop {
            if let Some(clue) = clue
                && let Some(ended) = self.follow_all(clue, peers, audience)?
            {
                return Ok(ended);
            }
            // The rest is searched through, until there is something to go by.
            let wants_clue = !had_clue && clue.is_none();
            match self.go(How::Search, wants_clue, peers, audience)? {
                Pace::Complete => return Ok(Ended::Counted),
                Pace::End => return Ok(Ended::Searched),
                Pace::Limit => return Ok(Ended::Limit),
                Pace::Clue(found) => clue = Some(found),
            }
        }
    }

    /// Follows a clue to its end. `None` if the rest has to be searched through.
    fn follow_all(
        &mut self,
        clue: Clue,
        peers: &mut [Peer],
        audience: &mut dyn Audience,
    ) -> Result<Option<Ended>> {
        let mut follow = |clue| -> Result<Option<Ended>> {
            let pace = self.go(How::Follow(clue), false, peers, audience)?;
            Ok(match pace {
                Pace::Complete => Some(Ended::Counted),
                Pace::Limit => Some(Ended::Limit),
                Pace::End | Pace::Clue(_) => None,
            })
        };
        let ended = follow(clue)?;
        match clue {
            Clue::File { offset, .. } if ended.is_none() => {
                let ended = follow(Clue::Offset(offset))?;
                Ok(ended.or(Some(Ended::Searched)))
            }
            _ => Ok(ended),
        }
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

    /// Looks at every process that was not searched through, in order, until all mappings are found or, if that is what is wanted,
    /// the first.
    fn go(
        &mut self,
        how: How,
        wants_clue: bool,
        peers: &mut [Peer],
        audience: &mut dyn Audience,
    ) -> Result<Pace> {
        let visitor = Visitor {
            machine: self.machine,
            question: self.question,
            hunter: self.hunter,
            nature: self.nature,
            how,
        };
        self.rounds += 1;
        loop {
            let now = self.rounds;
            let is_open = |peer: &Peer| {
                !peer.searched
                    && peer.round < now
                    && matches!(peer.state, State::Unseen | State::Read)
            };
            let visits: Vec<Job> = peers
                .iter()
                .enumerate()
                .filter(|(_, peer)| is_open(peer))
                .map(|(place, peer)| (place, peer.listed.clone()))
                .collect();
            let mut round = Round {
                visitor: &visitor,
                search: self,
                peers,
                audience,
                wants_clue,
                pace: Pace::End,
            };
            in_order(&visits, &visitor, &mut round)?;
            let pace = round.pace;
            if self.is_complete(peers, audience)? {
                return Ok(Pace::Complete);
            }
            // Otherwise some had left, and the rest is looked at too.
            if !matches!(pace, Pace::Complete) {
                return Ok(pace);
            }
        }
    }

    /// Whether as many mappings were found as the kernel counts now.
    fn has_enough(&mut self) -> bool {
        if self.counted.is_err() {
            return false;
        }
        self.map_count = count_of(&**self.machine, self.question.frame);
        let certain = self.told.certain;
        matches!(self.map_count, Ok(count) if count > 0 && certain >= count)
    }

    /// Whether every mapping that the kernel counts was found. What has left its frame since it was told is no longer counted, though
    /// another may be in its stead: so all that was told must be there still after the count was read.
    fn is_complete(&mut self, peers: &mut [Peer], audience: &mut dyn Audience) -> Result<bool> {
        while self.has_enough() {
            let still = look_again(&**self.machine, self.hunter, peers, audience)?;
            if !self.told.keep(peers, still) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the page is no longer where it was seen.
    fn has_moved(&self, peers: &[Peer], ended: Ended) -> bool {
        let Some(seen) = &self.question.seen else {
            return false;
        };
        if ended == Ended::Counted {
            // All that is there was just looked at.
            let mut is_there = peers.iter();
            return !is_there
                .any(|one| one.listed.pid == seen.pid && one.places.contains(&seen.address));
        }
        let there = self
            .machine
            .open(&Relation::of_numbers(seen.pid, 0))
            .map_err(Error::from)
            .and_then(|opened| self.hunter.is_at(&*opened.process, seen.address));
        !there.unwrap_or(false)
    }

    fn answer(self, peers: &[Peer], ended: Ended) -> Answer {
        let count = |wanted: &dyn Fn(&Peer) -> bool| {
            peers.iter().filter(|peer| wanted(peer)).count() as u64
        };
        Answer {
            moved: self.has_moved(peers, ended),
            uncounted: self.counted.err(),
            flags: self.flags,
            map_count: self.map_count,
            counts: WhoCounts {
                mappings: self.told.mappings,
                left: self.told.left,
                processes: count(&|peer| peer.maps),
                looked_at: count(&|peer| {
                    matches!(peer.state, State::Read | State::Same) || peer.maps
                }),
                listed: peers.len() as u64,
                unreadable: count(&|peer| peer.state == State::Unreadable),
                gone: count(&|peer| peer.state == State::Gone),
                same_memory: count(&|peer| peer.state == State::Same),
            },
            ended,
        }
    }
}

/// What a round through the processes came to.
enum Pace {
    /// All of them were looked at.
    End,
    /// Every mapping is found; within a round, as many as there are.
    Complete,
    /// As many were told of as were asked for.
    Limit,
    /// A mapping was found that says where others may be.
    Clue(Clue),
}

/// Takes what looks at processes have found.
struct Round<'r, 'a> {
    visitor: &'r Visitor<'a>,
    search: &'r mut Search<'a>,
    peers: &'r mut [Peer],
    audience: &'r mut dyn Audience,
    wants_clue: bool,
    pace: Pace,
}

impl Take<Job, Result<Visit>> for Round<'_, '_> {
    fn take(&mut self, &(place, _): &Job, visit: Result<Visit>) -> Result<ControlFlow<()>> {
        let total = self.peers.len() as u64;
        let Some(peer) = self.peers.get_mut(place) else {
            return Ok(ControlFlow::Break(()));
        };
        let mut visit = visit?;
        peer.state = visit.state;
        let target = visit.target.take();
        let told = &mut self.search.told;
        let mut room = None;
        while let Some(target) = &target {
            let regions = visit.regions.take();
            let opened = (target, regions.as_deref());
            match self.visitor.how {
                How::Follow(_) => told.tell_new(peer, opened, visit.hits, self.audience)?,
                How::Search => told.tell_again(peer, opened, visit.hits, self.audience)?,
            }
            let is_done = visit.rest.is_empty() || told.is_enough();
            if is_done || visit.stopped.is_some() || peer.state == State::Same {
                break;
            }
            let audience = &mut self.audience;
            visit = self.visitor.search(
                target,
                visit.rest,
                room.get_or_insert_with(Room::default),
                &mut || audience.check(),
            )?;
        }
        if let Some(stopped) = visit.stopped {
            return Err(stopped.into());
        }
        peer.searched = matches!(self.visitor.how, How::Search);
        peer.round = self.search.rounds;
        self.audience.looked_at(place as u64, total)?;
        if target.is_some() && self.search.has_enough() {
            self.pace = Pace::Complete;
            return Ok(ControlFlow::Break(()));
        }
        if self.search.told.is_enough() {
            self.pace = Pace::Limit;
            return Ok(ControlFlow::Break(()));
        }
        if self.wants_clue
            && let Some((address, region)) = &self.search.told.first
            && let Some(clue) = self.search.clue(*address, region.as_ref())
        {
            self.pace = Pace::Clue(clue);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.audience.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::fake::World;
    use crate::inspect::who::question::Mapper;
    use crate::kernel::FrameNumber;

    struct Deaf;

    impl Audience for Deaf {
        fn found(&mut self, _: &Mapper<'_>) -> Result<(), Stopped> {
            Ok(())
        }
        fn looked_at(&mut self, _: u64, _: u64) -> Result<(), Stopped> {
            Ok(())
        }
        fn check(&mut self) -> Result<(), Stopped> {
            Ok(())
        }
    }

    #[test]
    fn a_visit_is_booked_to_whom_it_was_paid_though_others_are_left_out() {
        let machine = World::new([]).target().1.machine;
        let question = Question {
            frame: FrameNumber::new(1),
            seen: None,
            near: None,
            scan: true,
            limit: None,
        };
        let mut search = Search::new(&machine, &question);
        search.rounds = 1;
        let visitor = Visitor {
            machine: &machine,
            question: &question,
            hunter: search.hunter,
            nature: search.nature,
            how: How::Search,
        };
        let listed = |pid| Relation::of_numbers(pid, 1);
        let mut peers: Vec<Peer> = (10..18).map(listed).map(Peer::new).collect();
        let mut round = Round {
            visitor: &visitor,
            search: &mut search,
            peers: &mut peers,
            audience: &mut Deaf,
            wants_clue: false,
            pace: Pace::End,
        };
        // As after a stop: the rest of a handful was not done any more, the next handful was.
        for (place, state) in [(0, State::Read), (4, State::Gone), (5, State::Unreadable)] {
            let pid = 10 + u32::try_from(place).expect("a place");
            let taken = round.take(&(place, listed(pid)), Ok(Visit::without(state)));
            assert!(taken.is_ok_and(|more| more.is_continue()));
        }
        let booked: Vec<(u32, State)> = peers
            .iter()
            .filter(|peer| peer.searched && peer.round == 1)
            .map(|peer| (peer.listed.pid, peer.state))
            .collect();
        let expected = [
            (10, State::Read),
            (14, State::Gone),
            (15, State::Unreadable),
        ];
        assert!(booked == expected);
        let unseen = peers.iter().filter(|peer| peer.state == State::Unseen);
        assert_eq!(unseen.count(), 5);
    }
}
