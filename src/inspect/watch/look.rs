//! A sample, and what changed since the last one.

use super::change::Change;
use super::pages::{Join, Pair};
use super::sample::{Sample, Sampling};
use super::watcher::Watcher;
use super::words::PageWords;
use crate::budget::Budget;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::SwapAreas;
use crate::inspect::page::Facts;
use crate::inspect::sweep::Chunk;
use crate::inspect::{Error, Result};
use crate::kernel::AddressRange;
use crate::process::{self, Liveness, Target};
use crate::report::{EventKind, NetEffect};
use std::sync::Arc;

/// Samples in a row during which regions may change before one of them is taken as it is.
const TRIES: u32 = 3;
/// Programs of the process that are sampled before it is left as it is.
const PROGRAMS: u32 = 2;

/// The target after a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampled {
    /// It can be sampled again.
    Alive,
    /// It has exited, and its last change says so.
    Exited,
}

/// A sample that is taken and compared with the last one. The first has nothing to be compared with. After an exec, the
/// change says what went with the old program and what the new one has.
#[must_use]
pub struct Look<'w> {
    watcher: &'w mut Watcher,
    target: &'w Target,
    budget: Budget,
    more: Facts,
    stage: Stage,
    programs: u32,
    tries: u32,
    /// What the programs had that the process has left, once it has executed another one.
    left: Option<NetEffect>,
    /// The last sample, this one, and its address space.
    compared: Option<(Arc<Sample>, Arc<Sample>, AddressSpace)>,
    of_process: Vec<Change>,
    sampled: Sampled,
}

/// What comes next.
enum Stage {
    /// To ask whether the process is alive.
    Begin,
    /// To sample the program that runs.
    Program(Liveness),
    /// To read the regions.
    Space,
    /// To sample ranges of the address space.
    Chosen(AddressSpace),
    Sampling(Box<Sampling>),
    Ended,
}

impl Watcher {
    /// Takes a sample of the ranges that `choose` returns: it is called again if regions come, grow or go meanwhile.
    ///
    /// # Errors
    /// Those of [`Look::begin`].
    pub fn sample<'w>(
        &'w mut self,
        target: &'w Target,
        budget: Budget,
        mut choose: impl FnMut(&AddressSpace) -> Vec<AddressRange>,
    ) -> Result<Look<'w>> {
        let mut look = self.look(target).within(budget);
        while let Some(space) = look.begin()? {
            look.sample(choose(&space));
        }
        Ok(look)
    }

    /// Begins a sample, step by step.
    pub fn look<'w>(&'w mut self, target: &'w Target) -> Look<'w> {
        Look {
            watcher: self,
            target,
            budget: Budget::unlimited(),
            more: Facts::empty(),
            stage: Stage::Begin,
            programs: 0,
            tries: 0,
            left: None,
            compared: None,
            of_process: Vec::new(),
            sampled: Sampled::Alive,
        }
    }
}

impl Look<'_> {
    /// The same, with what it may take.
    pub fn within(self, budget: Budget) -> Self {
        Look { budget, ..self }
    }

    /// The same, with pages that have `more` facts, as far as they can be known here.
    pub fn with(self, more: Facts) -> Self {
        Look { more, ..self }
    }

    /// The address space to [sample](Self::sample), again if regions come, grow or go meanwhile; `None` once the sample
    /// is complete.
    ///
    /// # Errors
    /// The kernel refuses a read, or the [budget](Self::within) is over: nothing is lost then. That the target exits is
    /// no failure.
    pub fn begin(&mut self) -> Result<Option<AddressSpace>> {
        while self.next()?.is_some() {}
        loop {
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Begin => self.stage = Stage::Program(self.target.process.liveness()?),
                Stage::Program(liveness) if self.programs == PROGRAMS || liveness == Liveness::Exited => {
                    self.end(liveness);
                }
                Stage::Program(liveness) => {
                    if liveness == Liveness::Executed {
                        *self.left.get_or_insert_default() += self.watcher.leave();
                    }
                    (self.programs, self.tries) = (self.programs + 1, 0);
                    self.stage = Stage::Space;
                }
                Stage::Space => {
                    self.tries += 1;
                    let space = match &self.watcher.range {
                        Some(ranges) => AddressSpace::around(self.target, ranges),
                        None => AddressSpace::of(self.target),
                    };
                    match space {
                        Ok(space) => self.stage = Stage::Chosen(space),
                        Err(error) => self.fail(error)?,
                    }
                }
                Stage::Chosen(space) => {
                    self.stage = Stage::Chosen(space.clone());
                    return Ok(Some(space));
                }
                Stage::Sampling(sampling) if sampling.has_changed() && self.tries < TRIES => self.stage = Stage::Space,
                Stage::Sampling(sampling) => {
                    self.keep(*sampling);
                    self.end(Liveness::Alive);
                }
                Stage::Ended => return Ok(None),
            }
        }
    }

    /// Samples these ranges of the address space that was begun with.
    pub fn sample(&mut self, ranges: Vec<AddressRange>) {
        if let Stage::Chosen(space) = &self.stage {
            let facts = [self.watcher.extra, self.more];
            let nothing = PageWords::default();
            let sampling = Sampling::new(space.clone(), ranges, facts, self.watcher.words(&nothing));
            self.stage = Stage::Sampling(Box::new(sampling.within(self.budget.clone())));
        }
    }

    /// The next pages of the sample; `None` after the last ones.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>> {
        let Stage::Sampling(sampling) = &mut self.stage else {
            return Ok(None);
        };
        let nothing = PageWords::default();
        match sampling.advance(self.watcher.words(&nothing)) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                self.fail(error)?;
                return Ok(None);
            }
        }
        match &self.stage {
            Stage::Sampling(sampling) => Ok(sampling.chunk()),
            _ => Ok(None),
        }
    }

    /// What changed since the last sample: regions first, then pages in address order, then the process.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        let extra = self.watcher.extra;
        let compared = self.compared.iter().flat_map(move |(before, now, space)| {
            let pair = Pair { before, now, space };
            pair.changes(extra, Join::SameFrames, None)
        });
        compared.chain(self.of_process.iter().cloned())
    }

    /// The target, once the sample is complete.
    pub fn sampled(&self) -> Sampled {
        self.sampled
    }

    /// It may have exited, or executed another program, during the sample: its liveness says which.
    fn fail(&mut self, error: Error) -> Result<()> {
        let liveness = match error {
            Error::Exited | Error::Target(process::Error::Gone { .. }) => self.target.process.liveness()?,
            Error::Executed => Liveness::Executed,
            error => return Err(error),
        };
        match liveness {
            Liveness::Alive => self.end(liveness),
            _ => self.stage = Stage::Program(liveness),
        }
        Ok(())
    }

    fn keep(&mut self, sampling: Sampling) {
        let (sample, space) = sampling.finish();
        let now = Arc::new(sample);
        self.watcher.swap = SwapAreas::of(&space);
        let before = self.watcher.last.replace(Arc::clone(&now));
        self.compared = before.map(|before| (before, now, space));
    }

    fn end(&mut self, liveness: Liveness) {
        if liveness == Liveness::Executed {
            *self.left.get_or_insert_default() += self.watcher.leave();
        }
        if let Some(mut effect) = self.left {
            // What the new program has by now came with it.
            let NetEffect { came, swap_came, .. } = self.watcher.held();
            effect += NetEffect { came, swap_came, ..NetEffect::default() };
            self.of_process.push(Change { effect, ..Change::of_process(EventKind::Executed) });
        }
        if liveness == Liveness::Exited {
            let effect = self.watcher.leave();
            self.of_process.push(Change { effect, ..Change::of_process(EventKind::Exited) });
            self.sampled = Sampled::Exited;
        }
        self.stage = Stage::Ended;
    }
}
