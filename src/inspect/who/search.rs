//! The search through all processes: rounds that follow a clue, then rounds that search the rest, until every mapping
//! that the kernel counts is found.

use super::frame_class::{self, FrameClass};
use super::question::{Answer, Ended, MapperSink, Question};
use super::recheck::recheck;
use super::reported::{Candidate, ReportedMappings};
use super::scan::{FrameScanner, Scratch};
use super::visit::{CandidateState, Clue, How, Visit, Visitor};
use crate::inspect::frames::{count_of, flags_of};
use crate::inspect::ordered_pool::{self, Planned, Producer};
use crate::inspect::{Error, Result};
use crate::kernel::{PageFlags, Region, VirtualAddress};
use crate::process::{Machine, Relation, Relations};
use crate::report::{Fact, Stopped, WhoCounts};
use std::ops::ControlFlow;
use std::sync::Arc;

pub struct Search<'a> {
    machine: &'a Arc<Machine>,
    question: &'a Question,
    sink: &'a mut dyn MapperSink,
    flags: Fact<PageFlags>,
    map_count: Fact<u64>,
    /// Whether the map count is the number of mappings.
    counted: Fact<()>,
    class: FrameClass,
    scanner: FrameScanner,
    /// Every process, relatives first.
    candidates: Vec<Candidate>,
    /// Whether these are all processes of the machine.
    lists_all: bool,
    reported: ReportedMappings<'a>,
    /// Rounds begun so far.
    rounds: u32,
}

/// How a round ended.
enum RoundResult {
    /// All candidates were visited.
    Finished,
    /// Every mapping is found; within a round, as many as the kernel counts.
    AllFound,
    /// The limit was reached.
    Limit,
    /// A mapping was found that tells where others may be.
    Clue(Clue),
}

impl RoundResult {
    /// How the search ends with this round; `None` if others may follow.
    fn ended(&self) -> Option<Ended> {
        match self {
            RoundResult::AllFound => Some(Ended::Counted),
            RoundResult::Limit => Some(Ended::Limit),
            RoundResult::Finished | RoundResult::Clue(_) => None,
        }
    }
}

impl<'a> Search<'a> {
    pub fn new(machine: &'a Arc<Machine>, question: &'a Question, sink: &'a mut dyn MapperSink) -> Self {
        let flags = flags_of(machine, question.frame);
        let map_count = count_of(machine, question.frame);
        let counted = frame_class::is_counted(&flags, &map_count, machine);
        Search {
            machine,
            question,
            sink,
            class: FrameClass::of(&flags),
            reported: ReportedMappings::new(machine, counted.is_ok(), question.limit),
            counted,
            flags,
            map_count,
            scanner: FrameScanner { frame: question.frame, page: machine.page() },
            candidates: Vec::new(),
            lists_all: true,
            rounds: 0,
        }
    }

    pub fn run(mut self) -> Result<Answer> {
        if let FrameClass::Unmappable(why) = self.class {
            return Ok(self.answer(Ended::Nobody(why)));
        }
        (self.candidates, self.lists_all) = candidates(self.machine, self.question.near)?;
        let ended = match self.go_through() {
            Ok(ended) => ended,
            Err(Error::Stopped(stopped)) => Ended::Stopped(stopped),
            Err(error) => return Err(error),
        };
        Ok(self.answer(ended))
    }

    fn go_through(&mut self) -> Result<Ended> {
        let seen = self.question.seen.as_ref();
        let mut clue = seen.and_then(|seen| self.clue(seen.address, seen.region.as_ref()));
        let had_clue = clue.is_some();
        loop {
            if let Some(clue) = clue
                && let Some(ended) = self.follow(clue)?
            {
                return Ok(ended);
            }
            let wants_clue = !had_clue && clue.is_none();
            match self.round(How::Search, wants_clue)? {
                RoundResult::Clue(found) => clue = Some(found),
                result => return Ok(result.ended().unwrap_or(Ended::Searched)),
            }
        }
    }

    /// Follows a clue to its end. `None` if the rest has to be searched.
    fn follow(&mut self, clue: Clue) -> Result<Option<Ended>> {
        let ended = self.round(How::Follow(clue), false)?.ended();
        match clue {
            Clue::File { offset, .. } if ended.is_none() => {
                let result = self.round(How::Follow(Clue::Offset(offset)), false)?;
                Ok(result.ended().or(Some(Ended::Searched)))
            }
            _ => Ok(ended),
        }
    }

    /// What a mapping at `address` tells about the place of others.
    fn clue(&self, address: VirtualAddress, region: Option<&Region>) -> Option<Clue> {
        match self.class {
            FrameClass::Unmappable(_) | FrameClass::SharedConstant => None,
            FrameClass::Anonymous => Some(Clue::Address(address)),
            FrameClass::File => {
                let region = region?;
                Some(Clue::File { device: region.device, inode: region.inode, offset: region.file_offset(address)? })
            }
        }
    }

    /// Visits every candidate that was not searched yet, in order, until all mappings are found or, if `wants_clue`,
    /// the first.
    fn round(&mut self, how: How, wants_clue: bool) -> Result<RoundResult> {
        let visitor =
            Visitor { machine: self.machine, question: self.question, scanner: self.scanner, class: self.class, how };
        self.rounds += 1;
        loop {
            let mut round =
                Round { visitor: &visitor, search: self, next: 0, wants_clue, result: RoundResult::Finished };
            ordered_pool::run(&visitor, &mut round)?;
            let result = round.result;
            if self.is_complete()? {
                return Ok(RoundResult::AllFound);
            }
            // If there were enough mappings and some have left since, the round goes on.
            if !matches!(result, RoundResult::AllFound) {
                return Ok(result);
            }
        }
    }

    /// Whether as many mappings are reported as the kernel counts now.
    fn has_enough(&mut self) -> bool {
        if self.counted.is_err() {
            return false;
        }
        self.map_count = count_of(self.machine, self.question.frame);
        let certain = self.reported.certain;
        matches!(self.map_count, Ok(count) if count > 0 && certain >= count)
    }

    /// Whether every mapping that the kernel counts is reported. A page that was reported may have left the frame and
    /// another one come to it, so all reported pages must still map the frame after the count was read.
    fn is_complete(&mut self) -> Result<bool> {
        while self.has_enough() {
            let still = recheck(self.machine, self.scanner, &self.candidates, self.sink)?;
            if !self.reported.retain(&mut self.candidates, still) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the page has left the mapping that it was found by.
    fn has_moved(&self, ended: Ended) -> bool {
        let Some(seen) = &self.question.seen else {
            return false;
        };
        if ended == Ended::Counted {
            // All mappings have just been rechecked.
            let mut own = self.candidates.iter();
            return !own.any(|one| one.listed.pid == seen.pid && one.reported.contains(&seen.address));
        }
        let is_there = self
            .machine
            .open(&Relation::of_numbers(seen.pid, 0))
            .map_err(Error::from)
            .and_then(|opened| self.scanner.is_at(&opened.process, seen.address));
        !is_there.unwrap_or(false)
    }

    fn answer(self, ended: Ended) -> Answer {
        let count =
            |wanted: &dyn Fn(&Candidate) -> bool| self.candidates.iter().filter(|one| wanted(one)).count() as u64;
        let in_state = |state| count(&|candidate| candidate.state == state);
        Answer {
            moved: self.has_moved(ended),
            lists_all: self.lists_all,
            counts: WhoCounts {
                mappings: self.reported.mappings,
                left: self.reported.left,
                processes: count(&|candidate| candidate.maps),
                looked_at: count(&|candidate| {
                    use CandidateState::{Read, SameMemory};
                    matches!(candidate.state, Read | SameMemory) || candidate.maps
                }),
                listed: self.candidates.len() as u64,
                unreadable: in_state(CandidateState::Unreadable),
                gone: in_state(CandidateState::Gone),
                same_memory: in_state(CandidateState::SameMemory),
            },
            uncounted: self.counted.err(),
            flags: self.flags,
            map_count: self.map_count,
            ended,
        }
    }
}

/// Every process that can be listed, the relatives of `near` first, and whether these are all.
fn candidates(machine: &Machine, near: Option<u32>) -> Result<(Vec<Candidate>, bool)> {
    let Relations { processes: mut relations, are_all } = machine.relations()?;
    if let Some(own) = near {
        let of_own = relations.iter().find(|one| one.pid == own);
        let parent = of_own.map_or(0, |one| one.parent);
        relations.sort_by_key(|one: &Relation| match one {
            one if one.pid == own => 0,
            one if one.pid == parent || one.parent == own => 1,
            one if one.parent == parent => 2,
            _ => 3,
        });
    }
    Ok((relations.into_iter().map(Candidate::new).collect(), are_all))
}

/// A round through the candidates.
struct Round<'r, 'a> {
    visitor: &'r Visitor<'a>,
    search: &'r mut Search<'a>,
    /// Index of the next candidate.
    next: usize,
    wants_clue: bool,
    result: RoundResult,
}

impl Producer<Visit> for Round<'_, '_> {
    fn plan(&mut self, visit: &mut Visit) -> Result<Planned> {
        use CandidateState::{NotVisited, Read};
        let now = self.search.rounds;
        let mut rest = self.search.candidates.iter().enumerate().skip(self.next);
        let to_visit = rest.find(|(_, candidate)| {
            !candidate.searched && candidate.round < now && matches!(candidate.state, NotVisited | Read)
        });
        let Some((index, candidate)) = to_visit else {
            return Ok(Planned::Nothing);
        };
        visit.candidate = index;
        visit.listed = Some(candidate.listed.clone());
        self.next = index + 1;
        Ok(Planned::Full)
    }

    fn deliver(&mut self, visit: &mut Visit) -> Result<ControlFlow<()>> {
        let search = &mut *self.search;
        let total = search.candidates.len() as u64;
        let Some(candidate) = search.candidates.get_mut(visit.candidate) else {
            return Ok(ControlFlow::Break(()));
        };
        let mut findings = std::mem::take(&mut visit.findings);
        candidate.state = findings.state;
        let target = findings.target.take();
        let by_clue = matches!(self.visitor.how, How::Follow(_));
        let mut scratch = None;
        while let Some(target) = &target {
            let regions = findings.regions.take();
            let opened = (target, regions.as_deref());
            let reported = &mut search.reported;
            reported.report(candidate, opened, findings.hits, by_clue, search.sink)?;
            if findings.rest.is_empty()
                || findings.stopped.is_some()
                || reported.is_at_limit()
                || candidate.state == CandidateState::SameMemory
            {
                break;
            }
            findings = self.visitor.search(
                target,
                findings.rest,
                scratch.get_or_insert_with(Scratch::default),
                &mut || search.sink.check(),
            )?;
        }
        if let Some(stopped) = findings.stopped {
            return Err(stopped.into());
        }
        candidate.searched = !by_clue;
        candidate.round = search.rounds;
        search.sink.visited(visit.candidate as u64, total)?;
        self.result = if target.is_some() && search.has_enough() {
            RoundResult::AllFound
        } else if search.reported.is_at_limit() {
            RoundResult::Limit
        } else if self.wants_clue
            && let Some((address, region)) = &search.reported.first
            && let Some(clue) = search.clue(*address, region.as_ref())
        {
            RoundResult::Clue(clue)
        } else {
            return Ok(ControlFlow::Continue(()));
        };
        Ok(ControlFlow::Break(()))
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.search.sink.check()
    }
}

#[cfg(test)]
mod tests {
    use super::super::visit::Findings;
    use super::*;
    use crate::inspect::who::question::Mapper;
    use crate::kernel::FrameNumber;
    use crate::process::fake::World;

    struct NullSink;

    impl MapperSink for NullSink {
        fn found(&mut self, _: &Mapper<'_>) -> Result<(), Stopped> {
            Ok(())
        }
        fn visited(&mut self, _: u64, _: u64) -> Result<(), Stopped> {
            Ok(())
        }
        fn check(&mut self) -> Result<(), Stopped> {
            Ok(())
        }
    }

    #[test]
    fn a_visit_is_booked_to_its_candidate_though_others_are_left_out() {
        let machine = World::new([]).target().1.machine;
        let question = Question { frame: FrameNumber::new(1), seen: None, near: None, scan: true, limit: None };
        let mut sink = NullSink;
        let mut search = Search::new(&machine, &question, &mut sink);
        search.rounds = 1;
        let listed = |pid| Relation::of_numbers(pid, 1);
        search.candidates = (10..18).map(listed).map(Candidate::new).collect();
        let visitor = Visitor {
            machine: &machine,
            question: &question,
            scanner: search.scanner,
            class: search.class,
            how: How::Search,
        };
        let mut round =
            Round { visitor: &visitor, search: &mut search, next: 0, wants_clue: false, result: RoundResult::Finished };
        let states = [(0, CandidateState::Read), (4, CandidateState::Gone), (5, CandidateState::Unreadable)];
        for (candidate, state) in states {
            let mut visit = Visit { candidate, listed: None, findings: Findings::without(state) };
            let delivered = round.deliver(&mut visit);
            assert!(delivered.is_ok_and(|more| more.is_continue()));
        }
        let candidates = &search.candidates;
        let booked: Vec<(u32, CandidateState)> = candidates
            .iter()
            .filter(|one| one.searched && one.round == 1)
            .map(|one| (one.listed.pid, one.state))
            .collect();
        let expected = [(10, CandidateState::Read), (14, CandidateState::Gone), (15, CandidateState::Unreadable)];
        assert!(booked == expected);
        let left_out = candidates.iter();
        let left_out = left_out.filter(|one| one.state == CandidateState::NotVisited);
        assert_eq!(left_out.count(), 5);
    }
}
