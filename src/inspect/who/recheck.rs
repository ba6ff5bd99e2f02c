//! Reads the reported pages again: pages leave their frames while others are searched.

use super::reported::{Candidate, StillMapped};
use super::scan::{FrameScanner, PageSet, Scratch};
use super::visit::{CandidateState, state_after};
use crate::budget::Budget;
use crate::inspect::ordered_pool::{Planned, Pool, Spread, Work};
use crate::inspect::{Error, Result};
use crate::process::{Machine, Relation};
use std::sync::Arc;

/// Finds out which reported pages of `candidates` still map the frame.
pub fn recheck(
    machine: &Arc<Machine>,
    scanner: FrameScanner,
    candidates: &[Candidate],
    budget: &Budget,
) -> Result<Vec<StillMapped>> {
    let mut left = candidates.iter().enumerate();
    let mut plan = |recheck: &mut Recheck| {
        let Some((index, candidate)) = left.find(|(_, candidate)| candidate.maps) else {
            return Ok(Planned::Nothing);
        };
        recheck.listed = Some(candidate.listed.clone());
        recheck.start_time = candidate.start_time;
        recheck.reported.clone_from(&candidate.reported);
        recheck.still.candidate = index;
        Ok(Planned::Full)
    };
    let mut pool = Pool::new(Arc::new(Reader { machine: Arc::clone(machine), scanner }), budget.clone());
    let mut still = Vec::new();
    while let Some(recheck) = pool.next(&mut plan)? {
        still.push(std::mem::take(&mut recheck.still));
    }
    Ok(still)
}

/// What is read again of a candidate, with the result.
#[derive(Default)]
struct Recheck {
    listed: Option<Relation>,
    start_time: u64,
    reported: PageSet,
    still: StillMapped,
}

struct Reader {
    machine: Arc<Machine>,
    scanner: FrameScanner,
}

impl Work for Reader {
    type Piece = Recheck;
    type Scratch = Scratch;
    const SPREAD: Spread = Spread::FINE;

    fn work(&self, recheck: &mut Recheck, scratch: &mut Scratch, budget: &mut Budget) -> Result<()> {
        let Some(listed) = &recheck.listed else {
            return Ok(());
        };
        let still = &mut recheck.still;
        (still.state, still.pages) = match self.read(listed, recheck.start_time, &recheck.reported, scratch, budget) {
            Ok(pages) => (CandidateState::Read, pages),
            // A process that may no longer be read has executed a program with other rights: its memory is new too.
            Err(Error::Target(error)) => (state_after(&error), PageSet::new()),
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

impl Reader {
    fn read(
        &self,
        listed: &Relation,
        start_time: u64,
        reported: &PageSet,
        scratch: &mut Scratch,
        budget: &mut Budget,
    ) -> Result<PageSet> {
        let process = self.machine.open(listed)?.process;
        if process.identity().start_time == start_time {
            self.scanner.still_mapped(&process, reported, scratch, budget)
        } else {
            Ok(PageSet::new())
        }
    }
}
