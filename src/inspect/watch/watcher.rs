//! The state between samples, with the changes that a watch cannot observe, and a sample that is compared with the last
//! one.

use super::pages::{JoinRule, Pair};
use super::regions::Change;
use super::words::{OpenSample, PageWords, WordSample};
use crate::budget::Budget;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::{KernelBehaviour, SwapTypes};
use crate::inspect::error::no_scan;
use crate::inspect::fact::changing_facts;
use crate::inspect::page::Evidence;
use crate::inspect::region::ViewedRegion;
use crate::inspect::sweep::Chunk;
use crate::inspect::{Backing, Error, Result};
use crate::kernel::{AddressRange, PageFact};
use crate::process::{self, Categories, Liveness, Target};
use crate::report::{EventKind, NetEffect, Reason};
use std::sync::Arc;

/// Takes samples. Compares each with the last one.
#[derive(Default)]
pub struct Watcher {
    pub(super) extra: Evidence,
    /// The ranges of all samples, if they are fixed.
    pub(super) range: Option<Vec<AddressRange>>,
    pub(super) last: Option<Arc<WordSample>>,
    pub(super) swap: SwapTypes,
}

impl Watcher {
    /// Returns a watcher. In `extra`, [`Evidence::FLAGS`], [`Evidence::COUNTS`] and [`Evidence::SOFT_DIRTY`] add
    /// changes of flags, map counts and soft-dirty bits. [`Evidence::ZONES`] separates neighbouring pages on different
    /// nodes. They must be checked with [`AddressSpace::require`].
    pub fn new(extra: Evidence) -> Watcher {
        let held: Evidence = PageFact::ALL.iter().filter_map(|fact| fact.need_of_samples()).collect();
        Watcher { extra: extra & held, ..Watcher::default() }
    }

    /// Fixes the ranges of all samples. Only the regions in them and next to them are read.
    #[must_use]
    pub fn of_ranges(self, ranges: &[AddressRange]) -> Watcher {
        Watcher { range: Some(ranges.to_vec()), ..self }
    }

    /// Returns the words of the last sample; `nothing` before the first.
    pub(super) fn words<'a>(&'a self, nothing: &'a PageWords) -> &'a PageWords {
        self.last.as_ref().map_or(nothing, |last| &last.words)
    }

    /// Returns what the last sample had in memory and in swap, as an effect.
    pub(super) fn memory_of_last(&self) -> NetEffect {
        let Some(last) = &self.last else {
            return NetEffect::default();
        };
        let (present, swapped) = last.words.present_and_swapped(self.swap);
        let bytes = |pages: u64| pages.saturating_mul(last.page.bytes());
        NetEffect { came: bytes(present), swap_came: bytes(swapped), ..NetEffect::default() }
    }

    /// Discards the last sample, whose address space is gone. Returns the net effect.
    pub(super) fn forget_last(&mut self) -> NetEffect {
        let NetEffect { came, swap_came, .. } = self.memory_of_last();
        self.last = None;
        NetEffect { went: came, swap_went: swap_came, ..NetEffect::default() }
    }

    /// Returns the changes that a watch of `spans` cannot observe, each with the reason.
    pub fn unobservable(space: &AddressSpace, spans: &[AddressRange], extra: Evidence) -> Vec<(EventKind, Reason)> {
        let mut blind = Vec::new();
        let available = space.availability();
        if let Err(reason) = &available.frames {
            blind.push((EventKind::Moved, reason.clone()));
            let partly = if available.categories.contains(Categories::ZERO) {
                "only copies of file pages and of the zero page show, because frames need CAP_SYS_ADMIN"
            } else {
                "only copies of file pages show, because frames need CAP_SYS_ADMIN"
            };
            blind.push((EventKind::CopiedOnWrite, Reason::not_permitted(partly)));
        }
        let is_watched = |viewed: &ViewedRegion| {
            let inside = |span: &AddressRange| span.intersection(viewed.range()).is_some();
            spans.iter().any(inside)
        };
        let may_be_huge =
            || space.viewed_regions().iter().any(|viewed| space.may_be_huge(viewed) && is_watched(viewed));
        let has_counts = available.counts.is_ok() && space.has_exact_counts();
        if available.frames.is_ok() && !has_counts && may_be_huge() {
            let partly = "a page copied out of a huge page shows as moved, because only map counts show that it was \
                          shared";
            let reason = match &available.counts {
                Ok(()) => Reason::NotOnThisKernel(format!("{partly}, and this kernel gives averages")),
                Err(reason) => reason.clone().of(&format!("{partly}, and")),
            };
            blind.push((EventKind::CopiedOnWrite, reason));
        }
        let mut shared_memory = space.viewed_regions().iter().filter(|viewed| viewed.backing == Backing::Shmem);
        if space.swap_in_use() && shared_memory.any(is_watched) {
            let nothing_left = "shared memory that is swapped out shows as went";
            let reason = Reason::NotOnThisKernel(nothing_left.into());
            blind.push((EventKind::SwappedOut, reason));
        }
        if !available.categories.contains(Categories::HUGE) {
            blind.push((EventKind::Split, no_scan()));
            blind.push((EventKind::Collapsed, no_scan()));
        }
        for fact in changing_facts() {
            if let (Some(kind), Some(need)) = (fact.change(), fact.need_of_samples())
                && extra.contains(need)
                && let Err(Error::Unknown { reason, .. }) = space.require(need)
            {
                blind.push((kind, reason));
            }
        }
        blind
    }
}

/// The number of samples during which regions may change before one is used as it is.
const TRIES: u32 = 3;
/// The number of programs that are sampled in one look, after which the process is left as it is.
const PROGRAMS: u32 = 2;

/// The state of the target after a sample: whether it can be sampled again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// The process can be sampled again.
    Alive,
    /// The process has exited, as its last change shows.
    Exited,
}

/// A sample that is taken and compared with the last one. The first sample is compared with nothing. After an exec, one
/// change has the memory of the old program as gone, and that of the new one as come.
#[must_use]
pub struct Look<'w> {
    watcher: &'w mut Watcher,
    target: &'w Target,
    budget: Budget,
    more: Evidence,
    stage: Stage,
    programs: u32,
    tries: u32,
    /// The memory of programs that the process has replaced by exec.
    effect_before: Option<NetEffect>,
    /// The last sample, this one, and its address space.
    compared: Option<(Arc<WordSample>, Arc<WordSample>, AddressSpace)>,
    of_process: Vec<Change>,
    survival: Survival,
}

/// The next stage of a sample.
enum Stage {
    /// Check whether the process is alive.
    Begin,
    /// Sample the current program.
    Program(Liveness),
    /// Read the regions.
    Space,
    /// Wait for the ranges of the address space to sample.
    Chosen(AddressSpace),
    Sampling(Box<OpenSample>),
    Ended,
}

impl Watcher {
    /// Takes a sample of the ranges that `choose` returns. It is called again if regions change during the sample.
    ///
    /// # Errors
    /// Fails like [`Look::begin`].
    pub fn sample<'w>(
        &'w mut self,
        target: &'w Target,
        budget: Budget,
        mut choose: impl FnMut(&AddressSpace) -> Vec<AddressRange>,
    ) -> Result<Look<'w>> {
        let mut look = self.look(target).with_budget(budget);
        while let Some(space) = look.begin()? {
            look.sample(choose(&space));
        }
        Ok(look)
    }

    /// Begins a sample, which is taken step by step.
    pub fn look<'w>(&'w mut self, target: &'w Target) -> Look<'w> {
        Look {
            watcher: self,
            target,
            budget: Budget::unlimited(),
            more: Evidence::empty(),
            stage: Stage::Begin,
            programs: 0,
            tries: 0,
            effect_before: None,
            compared: None,
            of_process: Vec::new(),
            survival: Survival::Alive,
        }
    }
}

impl Look<'_> {
    /// Limits the sample by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Look { budget, ..self }
    }

    /// Also reads `more` evidence of pages, as far as it is available.
    pub fn with(self, more: Evidence) -> Self {
        Look { more, ..self }
    }

    /// Returns the address space to [sample](Self::sample), again if regions change during the sample. Returns `None`
    /// once the sample is complete.
    ///
    /// # Errors
    /// Fails if the kernel refuses a read, or the [budget](Self::with_budget) is used up; earlier samples are kept. The
    /// exit of the target is no failure.
    pub fn begin(&mut self) -> Result<Option<AddressSpace>> {
        while self.next()?.is_some() {}
        loop {
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Begin => self.stage = Stage::Program(self.target.process.liveness()?),
                Stage::Program(liveness) if self.programs == PROGRAMS || matches!(liveness, Liveness::Exited(_)) => {
                    self.finish(liveness);
                }
                Stage::Program(liveness) => {
                    if liveness == Liveness::Executed {
                        *self.effect_before.get_or_insert_default() += self.watcher.forget_last();
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
                    self.keep_sample(*sampling);
                    self.finish(Liveness::Alive);
                }
                Stage::Ended => return Ok(None),
            }
        }
    }

    /// Begins to sample these ranges of the address space that [`begin`](Self::begin) returned.
    pub fn sample(&mut self, ranges: Vec<AddressRange>) {
        if let Stage::Chosen(space) = &self.stage {
            let facts = [self.watcher.extra, self.more];
            let nothing = PageWords::default();
            let sampling = OpenSample::new(space.clone(), ranges, facts, self.watcher.words(&nothing));
            self.stage = Stage::Sampling(Box::new(sampling.with_budget(self.budget.clone())));
        }
    }

    /// Reads the next pages of the sample. Returns `None` after the last ones.
    ///
    /// # Errors
    /// Fails like [`begin`](Self::begin).
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

    /// Returns the changes since the last sample: first regions, then pages in address order, then the process.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        let extra = self.watcher.extra;
        let compared = self.compared.iter().flat_map(move |(before, now, space)| {
            let pair = Pair { before, now, space };
            pair.changes(extra, JoinRule::NextFrames, None, || true)
        });
        compared.chain(self.of_process.iter().cloned())
    }

    /// Returns whether the target can be sampled again, once the sample is complete.
    pub fn survival(&self) -> Survival {
        self.survival
    }

    /// Handles an error of a sample. If the process has exited or executed another program, it continues with that;
    /// other errors are returned.
    fn fail(&mut self, error: Error) -> Result<()> {
        let liveness = match error {
            Error::Exited | Error::Target(process::Error::Gone { .. }) => self.target.process.liveness()?,
            Error::Executed => Liveness::Executed,
            error => return Err(error),
        };
        match liveness {
            Liveness::Alive => self.finish(liveness),
            _ => self.stage = Stage::Program(liveness),
        }
        Ok(())
    }

    fn keep_sample(&mut self, sampling: OpenSample) {
        let (sample, space) = sampling.finish();
        let now = Arc::new(sample);
        self.watcher.swap = SwapTypes::of(&space);
        let before = self.watcher.last.replace(Arc::clone(&now));
        self.compared = before.map(|before| (before, now, space));
    }

    fn finish(&mut self, liveness: Liveness) {
        if liveness == Liveness::Executed {
            *self.effect_before.get_or_insert_default() += self.watcher.forget_last();
        }
        if let Some(mut effect) = self.effect_before {
            // The memory that the new program has by now came with it.
            let NetEffect { came, swap_came, .. } = self.watcher.memory_of_last();
            effect += NetEffect { came, swap_came, ..NetEffect::default() };
            self.of_process.push(Change { effect, ..Change::of_process(EventKind::Executed) });
        }
        if let Liveness::Exited(_) = liveness {
            let effect = self.watcher.forget_last();
            self.of_process.push(Change { effect, ..Change::of_process(EventKind::Exited) });
            self.survival = Survival::Exited;
        }
        self.stage = Stage::Ended;
    }
}
