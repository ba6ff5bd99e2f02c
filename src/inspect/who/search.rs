//! The search. If the kernel's records can be read, a round visits the processes that they name. After that, rounds
//! through all processes follow a clue, and then scan the rest, until all mappings that the kernel counts are found.

use super::question::{EndCause, FrameQuestion, SearchEvent, SearchSummary};
use super::recorded::RecordReader;
use super::reported::{Candidate, ReportedMappings, recheck};
use super::scan::{self, FrameScanner, MappingPlaces, ScanBuffer};
use super::visit::{CandidateState, Clue, Findings, Visit, VisitMode, Visitor};
use crate::budget::Budget;
use crate::inspect::frames::{count_of, flags_of};
use crate::inspect::ordered_pool::{Pool, TaskSize};
use crate::inspect::{Error, Result};
use crate::kernel::{FrameNumber, PageFlags, Region, VirtualAddress};
use crate::process::{
    FrameOwner, FrameRecord, Machine, ProcessHandle, ProcessHandles, RecordParts, RecordedMapper, Target,
};
use crate::report::{Fact, WhoCounts};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A search for the mappings of a frame. Dropping it stops the worker threads.
#[must_use]
pub struct Search {
    machine: Arc<Machine>,
    question: FrameQuestion,
    budget: Budget,
    flags: Fact<PageFlags>,
    map_count: Fact<u64>,
    /// The reason why the map count is not the number of mappings, if it is not.
    counted: Fact<()>,
    places: MappingPlaces,
    scanner: FrameScanner,
    /// All processes, relatives first. In a round by records, only the processes that they name.
    candidates: Vec<Candidate>,
    /// Whether `/proc` lists all processes of the machine.
    lists_all: bool,
    reports: ReportedMappings,
    /// The number of rounds so far.
    rounds: u32,
    /// The mode of the next round.
    how: VisitMode,
    /// Whether a clue was used.
    had_clue: bool,
    /// The current round.
    round: Option<Round>,
    end_cause: Option<EndCause>,
}

/// A round through the candidates.
struct Round {
    visitor: Arc<Visitor>,
    pool: Pool<Visitor>,
    /// The index of the next candidate.
    next: usize,
    /// The process whose mappings are being reported.
    open: Option<OpenProcess>,
    buffer: Option<ScanBuffer>,
}

/// A process that maps the frame, with the findings of its last part and what is left to search.
struct OpenProcess {
    candidate: usize,
    target: Target,
    findings: Findings,
}

/// The reasons why a round ended.
enum RoundResult {
    /// All candidates were visited.
    Finished,
    /// All mappings are found. Within a round: as many as the kernel counts.
    AllFound,
    /// The limit was reached.
    Limit,
    /// A mapping was found that suggests the place of others.
    Clue(Clue),
}

impl Search {
    pub(super) fn new(machine: &Arc<Machine>, question: &FrameQuestion) -> Result<Self> {
        let flags = flags_of(machine, question.frame);
        let map_count = count_of(machine, question.frame);
        let counted = scan::is_counted(&flags, &map_count, machine);
        let mut search = Search {
            machine: Arc::clone(machine),
            question: question.clone(),
            budget: Budget::unlimited(),
            places: match MappingPlaces::of(&flags) {
                MappingPlaces::SharedConstant if is_not_merged(machine, question.frame, &flags) => {
                    MappingPlaces::Anonymous
                }
                places => places,
            },
            reports: ReportedMappings::new(machine, counted.is_ok(), question.limit),
            counted,
            flags,
            map_count,
            scanner: FrameScanner { frame: question.frame, page: machine.page_size() },
            candidates: Vec::new(),
            lists_all: true,
            rounds: 0,
            how: VisitMode::Search,
            had_clue: false,
            round: None,
            end_cause: None,
        };
        if let MappingPlaces::Unmappable(why) = search.places {
            search.end_cause = Some(EndCause::Nobody(why));
        } else if search.can_ask_records() {
            search.how = VisitMode::Records;
        } else {
            search.list()?;
        }
        Ok(search)
    }

    /// Returns whether the kernel's records may lead to all mappings of the frame.
    fn can_ask_records(&self) -> bool {
        let is_recorded = matches!(self.places, MappingPlaces::File | MappingPlaces::Anonymous);
        is_recorded && self.counted.is_ok() && self.machine.require_records(RecordParts::OWNER).is_ok()
    }

    /// Makes candidates of the processes that the kernel's records name, or of all if they name none.
    fn ask_records(&mut self) -> Result<()> {
        let (near, scan, limit) = (self.question.near, self.question.scan, self.question.limit);
        let reader = RecordReader { machine: &self.machine, scanner: self.scanner, scan, limit };
        let (mut mappers, kinds) = match reader.read(&mut self.budget) {
            Err(error @ Error::OutOfBudget(_)) => return Err(error),
            read => read.unwrap_or_default(),
        };
        if mappers.is_empty() {
            return self.list();
        }
        if let Some(at) = mappers.iter().position(|one| Some(one.process.pid) == near) {
            let first = mappers.remove(at);
            mappers.insert(0, first);
        }
        let reports = &mut self.reports;
        let candidate = |mapper: RecordedMapper| match &kinds {
            Some(kinds) => reports.report_recorded(mapper, kinds, scan),
            None => Candidate {
                places: mapper.pages.iter().map(|page| page.address).collect(),
                ..Candidate::new(ProcessHandle::of_numbers(mapper.process.pid, 0))
            },
        };
        self.candidates = mappers.into_iter().map(candidate).collect();
        if kinds.is_some() {
            self.map_count = Ok(self.reports.mappings);
            self.end_cause = Some(EndCause::Counted);
        }
        Ok(())
    }

    /// Makes candidates of all processes and chooses the best clue. Processes that map the frame are kept.
    fn list(&mut self) -> Result<()> {
        let (listed, lists_all) = candidates(&self.machine, self.question.near)?;
        self.lists_all = lists_all;
        self.candidates.retain(|one| one.is_mapper);
        let known: BTreeSet<u32> = self.candidates.iter().map(|one| one.handle.pid).collect();
        self.candidates.extend(listed.into_iter().filter(|one| !known.contains(&one.handle.pid)));
        let seen = self.question.seen.as_ref().map(|seen| (seen.address, seen.region.as_ref()));
        let found = self.reports.first.as_ref().map(|(address, region)| (*address, region.as_ref()));
        let clue = seen.or(found).and_then(|(address, region)| self.clue(address, region));
        self.had_clue = clue.is_some();
        self.how = clue.map_or(VisitMode::Search, VisitMode::Follow);
        Ok(())
    }

    /// Returns the search with a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Search { budget, ..self }
    }

    /// Returns the next mapping or the progress; `None` at the end.
    ///
    /// # Errors
    /// Fails with [`Unknown`](Error::Unknown) if the kernel hides frame numbers, and if the [budget](Self::with_budget)
    /// is used up.
    pub fn next(&mut self) -> Result<Option<SearchEvent>> {
        loop {
            if let Some(event) = self.reports.events.pop_front() {
                return Ok(Some(event));
            }
            if self.end_cause.is_some() {
                return Ok(None);
            }
            self.advance().inspect_err(|_| self.end_cause = Some(EndCause::Stopped))?;
        }
    }

    /// Continues the current round, or begins the next one.
    fn advance(&mut self) -> Result<()> {
        let mut round = match self.round.take() {
            Some(round) => round,
            None => {
                if matches!(self.how, VisitMode::Records) && self.candidates.is_empty() {
                    self.ask_records()?;
                    if self.end_cause.is_some() {
                        return Ok(());
                    }
                }
                self.rounds += 1;
                self.begin()
            }
        };
        let Some(result) = self.step(&mut round)? else {
            self.round = Some(round);
            return Ok(());
        };
        drop(round);
        let result = match result {
            _ if self.is_complete()? => RoundResult::AllFound,
            // There were enough mappings, but some have gone since: the round continues.
            RoundResult::AllFound => {
                self.round = Some(self.begin());
                return Ok(());
            }
            result => result,
        };
        match (result, self.how) {
            (RoundResult::AllFound, _) => self.end_cause = Some(EndCause::Counted),
            (RoundResult::Limit, _) => self.end_cause = Some(EndCause::Limit),
            (RoundResult::Clue(clue), _) => {
                self.how = VisitMode::Follow(clue);
                self.had_clue = true;
            }
            (RoundResult::Finished, VisitMode::Records) => self.list()?,
            (RoundResult::Finished, VisitMode::Follow(Clue::File { offset, .. })) => {
                self.how = VisitMode::Follow(Clue::Offset(offset));
            }
            (RoundResult::Finished, VisitMode::Follow(Clue::Address(_))) => self.how = VisitMode::Search,
            (RoundResult::Finished, VisitMode::Follow(Clue::Offset(_)) | VisitMode::Search) => {
                self.end_cause = Some(EndCause::Searched)
            }
        }
        Ok(())
    }

    fn begin(&self) -> Round {
        let visitor = Arc::new(Visitor {
            machine: Arc::clone(&self.machine),
            scan: self.question.scan,
            scanner: self.scanner,
            places: self.places,
            how: self.how,
        });
        let pool = Pool::new(Arc::clone(&visitor), self.budget.clone());
        Round { visitor, pool, next: 0, open: None, buffer: None }
    }

    /// Reports the findings in the next process, or in the next part of the open one. Returns why the round ends, if it
    /// does.
    fn step(&mut self, round: &mut Round) -> Result<Option<RoundResult>> {
        if let Some(OpenProcess { candidate, target, findings }) = round.open.take() {
            let is_same = self.candidates.get(candidate).is_some_and(|one| one.state == CandidateState::SameMemory);
            if findings.rest.is_empty() || findings.stopped.is_some() || self.reports.is_at_limit() || is_same {
                return self.record_visit(candidate, true, &findings);
            }
            let buffer = round.buffer.get_or_insert_with(ScanBuffer::default);
            let findings = round.visitor.search(&target, findings.rest, buffer, &mut self.budget)?;
            return self.report(round, candidate, target, findings).map(|()| None);
        }
        let (candidates, rounds, next) = (&self.candidates, self.rounds, &mut round.next);
        let Some(visit) = round.pool.next(|visit| Ok(plan(candidates, rounds, next, visit)))? else {
            return Ok(Some(RoundResult::Finished));
        };
        let (index, mut findings) = (visit.candidate, std::mem::take(&mut visit.findings));
        if let Some(candidate) = self.candidates.get_mut(index) {
            candidate.state = findings.state;
        }
        match findings.target.take() {
            Some(target) => self.report(round, index, target, findings).map(|()| None),
            None => self.record_visit(index, false, &findings),
        }
    }

    /// Reports the findings in a part of a process, which stays open.
    fn report(&mut self, round: &mut Round, index: usize, target: Target, mut findings: Findings) -> Result<()> {
        if let Some(candidate) = self.candidates.get_mut(index) {
            let hits = std::mem::take(&mut findings.hits);
            let by_clue = !matches!(self.how, VisitMode::Search);
            self.reports.report(candidate, (&target, findings.regions.as_ref()), hits, by_clue)?;
        }
        round.open = Some(OpenProcess { candidate: index, target, findings });
        Ok(())
    }

    /// Records that a process was visited. Returns why the round ends, if it does. Fails if the budget was used up
    /// during the visit.
    fn record_visit(&mut self, index: usize, maps: bool, findings: &Findings) -> Result<Option<RoundResult>> {
        if let Some(why) = findings.stopped {
            // A worker thread knows only that it must stop.
            return Err(self.budget.look().err().unwrap_or(why).into());
        }
        let total = self.candidates.len() as u64;
        if let Some(candidate) = self.candidates.get_mut(index) {
            candidate.is_searched = matches!(self.how, VisitMode::Search);
            candidate.round = self.rounds;
        }
        self.reports.events.push_back(SearchEvent::Visited { done: index as u64, total });
        let clue = match &self.reports.first {
            _ if self.had_clue || matches!(self.how, VisitMode::Records) => None,
            Some((address, region)) => self.clue(*address, region.as_ref()),
            None => None,
        };
        Ok(if maps && self.has_enough() {
            Some(RoundResult::AllFound)
        } else if self.reports.is_at_limit() {
            Some(RoundResult::Limit)
        } else {
            clue.map(RoundResult::Clue)
        })
    }

    /// Returns the clue of a mapping at `address`.
    fn clue(&self, address: VirtualAddress, region: Option<&Region>) -> Option<Clue> {
        match self.places {
            MappingPlaces::Unmappable(_) | MappingPlaces::SharedConstant => None,
            MappingPlaces::Anonymous => Some(Clue::Address(address)),
            MappingPlaces::File => {
                let region = region?;
                Some(Clue::File { device: region.device, inode: region.inode, offset: region.file_offset(address)? })
            }
        }
    }

    /// Reads the map count anew. Returns whether as many mappings are certain.
    fn has_enough(&mut self) -> bool {
        if self.counted.is_err() {
            return false;
        }
        self.map_count = count_of(&self.machine, self.question.frame);
        let certain = self.reports.certain;
        matches!(self.map_count, Ok(count) if count > 0 && certain >= count)
    }

    /// Returns whether all mappings that the kernel counts are reported. A reported page may have left the frame and
    /// another one come to it: therefore all must still map the frame after the count was read.
    fn is_complete(&mut self) -> Result<bool> {
        while self.has_enough() {
            let rechecked = recheck(&self.machine, self.scanner, &self.candidates, &self.budget)?;
            if !self.reports.retain(&mut self.candidates, rechecked) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the page has left the mapping by which the frame was found.
    fn has_moved(&self, ended: EndCause) -> bool {
        let Some(seen) = &self.question.seen else {
            return false;
        };
        // The process is no candidate if the records name another one with the same address space.
        let mut own = self.candidates.iter().filter(|one| one.handle.pid == seen.pid).peekable();
        if ended == EndCause::Counted && own.peek().is_some() {
            // All mappings have just been read again.
            return !own.any(|one| one.reported.contains(&seen.address));
        }
        let is_there = self
            .machine
            .open(&ProcessHandle::of_numbers(seen.pid, 0))
            .map_err(Error::from)
            .and_then(|opened| self.scanner.is_at(&opened.process, seen.address));
        !is_there.unwrap_or(false)
    }

    /// Returns the summary of the search.
    pub fn summary(self) -> SearchSummary {
        let ended = self.end_cause.unwrap_or(EndCause::Stopped);
        let not_pulled = self.reports.events.iter().map(|event| match event {
            SearchEvent::Found(mapper) => mapper.pages,
            SearchEvent::Visited { .. } => 0,
        });
        let count =
            |wanted: &dyn Fn(&Candidate) -> bool| self.candidates.iter().filter(|one| wanted(one)).count() as u64;
        let in_state = |state| count(&|candidate| candidate.state == state);
        SearchSummary {
            has_moved: self.has_moved(ended),
            lists_all: self.lists_all,
            by_records: matches!(self.how, VisitMode::Records),
            counts: WhoCounts {
                mappings: self.reports.mappings - not_pulled.sum::<u64>(),
                left: self.reports.gone_mappings,
                processes: count(&|candidate| candidate.is_mapper),
                looked_at: count(&|candidate| {
                    use CandidateState::{Read, SameMemory};
                    matches!(candidate.state, Read | SameMemory) || candidate.is_mapper
                }),
                listed: self.candidates.len() as u64,
                unreadable: in_state(CandidateState::Unreadable),
                gone: in_state(CandidateState::Gone),
                same_memory: in_state(CandidateState::SameMemory),
            },
            uncounted: self.counted.err(),
            flags: self.flags,
            map_count: self.map_count,
            end_cause: ended,
        }
    }
}

/// Returns whether the kernel's record of a frame shows that it is not merged. Linux 6.12 sets KPF_KSM on all anonymous
/// pages.
fn is_not_merged(machine: &Machine, frame: FrameNumber, flags: &Fact<PageFlags>) -> bool {
    let mut record = [FrameRecord::default()];
    let may_be_merged = flags.as_ref().is_ok_and(|flags| !flags.contains(PageFlags::ZERO_PAGE));
    may_be_merged
        && machine.frame_records(frame, RecordParts::OWNER, &mut record).is_ok()
        && record[0].owner == Some(FrameOwner::Anonymous)
}

/// Returns all processes that `/proc` lists, the relatives of `near` first, and whether these are all of the machine.
fn candidates(machine: &Machine, near: Option<u32>) -> Result<(Vec<Candidate>, bool)> {
    let ProcessHandles { processes: mut handles, are_all } = machine.process_handles()?;
    if let Some(own) = near {
        let of_own = handles.iter().find(|one| one.pid == own);
        let parent = of_own.map_or(0, |one| one.parent);
        handles.sort_by_cached_key(|one: &ProcessHandle| match one {
            one if one.pid == own => 0,
            one if one.pid == parent || one.parent == own => 1,
            one if one.parent == parent => 2,
            _ => 3,
        });
    }
    Ok((handles.into_iter().map(Candidate::new).collect(), are_all))
}

/// Prepares `visit` for the next candidate that was neither searched nor visited in this round.
fn plan(candidates: &[Candidate], round: u32, next: &mut usize, visit: &mut Visit) -> TaskSize {
    use CandidateState::{NotVisited, Read};
    let mut rest = candidates.iter().enumerate().skip(*next);
    let to_visit = rest.find(|(_, candidate)| {
        !candidate.is_searched && candidate.round < round && matches!(candidate.state, NotVisited | Read)
    });
    let Some((index, candidate)) = to_visit else {
        return TaskSize::Nothing;
    };
    visit.candidate = index;
    visit.listed = Some(candidate.handle.clone());
    visit.places.clone_from(&candidate.places);
    *next = index + 1;
    TaskSize::Full
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::World;

    #[test]
    fn a_visit_is_booked_to_its_candidate_though_others_are_left_out() {
        let machine = World::new([]).target().1.machine;
        let question = FrameQuestion { frame: FrameNumber::new(1), seen: None, near: None, scan: true, limit: None };
        let mut search = Search::new(&machine, &question).expect("a search");
        search.rounds = 1;
        let listed = |pid| ProcessHandle::of_numbers(pid, 1);
        search.candidates = (10..18).map(listed).map(Candidate::new).collect();
        let states = [(0, CandidateState::Read), (4, CandidateState::Gone), (5, CandidateState::Unreadable)];
        for (index, state) in states {
            search.candidates[index].state = state;
            let ended = search.record_visit(index, false, &Findings::without(state));
            assert!(ended.is_ok_and(|ended| ended.is_none()));
        }
        let candidates = &search.candidates;
        let booked: Vec<(u32, CandidateState)> = candidates
            .iter()
            .filter(|one| one.is_searched && one.round == 1)
            .map(|one| (one.handle.pid, one.state))
            .collect();
        let expected = [(10, CandidateState::Read), (14, CandidateState::Gone), (15, CandidateState::Unreadable)];
        assert!(booked == expected);
        let left_out = candidates.iter();
        let left_out = left_out.filter(|one| one.state == CandidateState::NotVisited);
        assert_eq!(left_out.count(), 5);
    }
}
