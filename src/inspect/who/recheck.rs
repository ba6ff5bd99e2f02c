//! Reads the reported pages again: pages leave their frames while others are searched.

use super::question::MapperSink;
use super::reported::{Candidate, StillMapped};
use super::scan::{FrameScanner, PageSet, Scratch};
use super::visit::{CandidateState, state_after};
use crate::inspect::ordered_pool::{self, Check, Planned, Producer, Spread, Work};
use crate::inspect::{Error, Result};
use crate::process::Machine;
use crate::report::Stopped;
use std::iter::Enumerate;
use std::ops::ControlFlow;
use std::slice::Iter;

/// Finds out which reported pages of `candidates` still map the frame.
pub fn recheck(
    machine: &Machine,
    scanner: FrameScanner,
    candidates: &[Candidate],
    sink: &mut dyn MapperSink,
) -> Result<Vec<StillMapped>> {
    let mut delivery = Delivery { left: candidates.iter().enumerate(), still: Vec::new(), sink };
    ordered_pool::run(&Reader { machine, scanner }, &mut delivery)?;
    Ok(delivery.still)
}

/// A candidate to read again, with the result.
#[derive(Default)]
struct Recheck<'c> {
    candidate: Option<&'c Candidate>,
    still: StillMapped,
}

struct Reader<'c> {
    machine: &'c Machine,
    scanner: FrameScanner,
}

impl<'c> Work for Reader<'c> {
    type Piece = Recheck<'c>;
    type Scratch = Scratch;
    const SPREAD: Spread = Spread::FINE;

    fn work(&self, recheck: &mut Recheck<'c>, scratch: &mut Scratch, check: &mut Check<'_>) -> Result<()> {
        let Some(candidate) = recheck.candidate else {
            return Ok(());
        };
        let still = &mut recheck.still;
        (still.state, still.pages) = match self.read(candidate, scratch, check) {
            Ok(pages) => (CandidateState::Read, pages),
            // A process that may no longer be read has executed a program with other rights: its memory is new too.
            Err(Error::Target(error)) => (state_after(&error), PageSet::new()),
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

impl Reader<'_> {
    fn read(&self, candidate: &Candidate, scratch: &mut Scratch, check: &mut Check<'_>) -> Result<PageSet> {
        let process = self.machine.open(&candidate.listed)?.process;
        if process.identity().start_time == candidate.start_time {
            let pages = &candidate.reported;
            self.scanner.still_mapped(&process, pages, scratch, check)
        } else {
            Ok(PageSet::new())
        }
    }
}

struct Delivery<'c, 's> {
    left: Enumerate<Iter<'c, Candidate>>,
    still: Vec<StillMapped>,
    sink: &'s mut dyn MapperSink,
}

impl<'c> Producer<Recheck<'c>> for Delivery<'c, '_> {
    fn plan(&mut self, recheck: &mut Recheck<'c>) -> Result<Planned> {
        let Some((index, candidate)) = self.left.find(|(_, candidate)| candidate.maps) else {
            return Ok(Planned::Nothing);
        };
        recheck.candidate = Some(candidate);
        recheck.still.candidate = index;
        Ok(Planned::Full)
    }

    fn deliver(&mut self, recheck: &mut Recheck<'c>) -> Result<ControlFlow<()>> {
        self.still.push(std::mem::take(&mut recheck.still));
        Ok(ControlFlow::Continue(()))
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.sink.check()
    }
}
