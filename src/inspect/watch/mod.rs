//! Changes between two samples of the same addresses. A sample costs the reads of what is populated and a comparison of
//! raw words; words that are the same are not decoded.

mod change;
mod pages;
mod region_groups;
mod regions;
mod sample;
mod shared_frames;
mod snapshot;
#[cfg(test)]
mod tests;
mod words;

use super::address_space::AddressSpace;
use super::classify::SwapAreas;
use super::kernel_behaviour::KernelBehaviour;
use super::page::Facts;
use super::reason::no_scan;
use super::region::ViewedRegion;
use super::{Backing, Error, Result};
use crate::kernel::AddressRange;
use crate::process::{self, Categories, Liveness, Target};
use crate::report::{EventKind, NetEffect, Reason, Stopped};
use pages::{Join, Merger, Pair};
use sample::Sample;
pub use sample::Seen;
use words::PageWords;

pub use change::{Change, ChangeSink};
pub use region_groups::RegionGroups;
pub use snapshot::{Relation, SharedPages, Snapshot};

/// The target after a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampled {
    /// It can be sampled again.
    Alive,
    /// It has exited, and the change was reported.
    Exited,
}

/// Returns the addresses of a sample. It is called for each, as regions come, grow and go.
pub type SampleSpans<'a> = dyn FnMut(&AddressSpace) -> Vec<AddressRange> + 'a;

/// Takes samples, and reports what changed since the last one.
#[derive(Default)]
pub struct Watcher {
    extra: Facts,
    /// Where all samples lie, if that does not change.
    range: Option<Vec<AddressRange>>,
    last: Option<Sample>,
    swap: SwapAreas,
}

impl Watcher {
    /// [`Facts::FLAGS`], [`Facts::COUNTS`] and [`Facts::SOFT_DIRTY`] in `extra` report also changes of flags, map
    /// counts and soft-dirty bits. Check them with [`AddressSpace::require`] first.
    pub fn new(extra: Facts) -> Watcher {
        Watcher { extra: extra & (Facts::FLAGS | Facts::COUNTS | Facts::SOFT_DIRTY), ..Watcher::default() }
    }

    /// All samples will lie in `ranges`: of the regions, only those there and next to them are asked for.
    #[must_use]
    pub fn within(self, ranges: &[AddressRange]) -> Watcher {
        Watcher { range: Some(ranges.to_vec()), ..self }
    }

    /// Samples the target and reports what changed since the last sample. The first sample has nothing to be compared
    /// with. After an exec, the change says what went with the old program and what the new one has. `check` is called
    /// between reads.
    ///
    /// Fails when the kernel refuses a read, and when `check` or `sink` fail. That the target exits is no failure.
    pub fn sample(
        &mut self,
        target: &Target,
        spans: &mut SampleSpans<'_>,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        sink: &mut ChangeSink<'_>,
    ) -> Result<Sampled> {
        self.sample_pages(target, spans, check, sink, (Facts::empty(), &mut |_| {}))
    }

    /// The same, and passes the pages of the sample to the receiver, with its extra needs as far as they can be met
    /// here. A sample that is taken again begins with another call of `spans`.
    ///
    /// # Errors
    /// As for [`sample`](Self::sample).
    pub fn sample_pages(
        &mut self,
        target: &Target,
        spans: &mut SampleSpans<'_>,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        sink: &mut ChangeSink<'_>,
        seen: (Facts, &mut Seen<'_>),
    ) -> Result<Sampled> {
        let (more, seen) = seen;
        let mut liveness = target.process.liveness()?;
        // What the programs had that it has left, once it has executed another one.
        let mut left = None;
        for _ in 0..2 {
            match liveness {
                Liveness::Alive => {}
                Liveness::Executed => *left.get_or_insert_default() += self.leave(),
                Liveness::Exited => break,
            }
            liveness = match self.compare(target, spans, check, sink, (more, &mut *seen)) {
                Ok(()) => Liveness::Alive,
                // It exited, or executed another program, during the sample: its liveness says which.
                Err(Error::Exited | Error::Target(process::Error::Gone { .. })) => target.process.liveness()?,
                Err(Error::Executed) => Liveness::Executed,
                Err(error) => return Err(error),
            };
            if liveness == Liveness::Alive {
                break;
            }
        }
        if liveness == Liveness::Executed {
            *left.get_or_insert_default() += self.leave();
        }
        if let Some(mut effect) = left {
            // What the new program has by now came with it.
            let NetEffect { came, swap_came, .. } = self.held();
            effect += NetEffect { came, swap_came, ..NetEffect::default() };
            sink(Change { effect, ..Change::of_process(EventKind::Executed) })?;
        }
        if liveness == Liveness::Exited {
            let effect = self.leave();
            sink(Change { effect, ..Change::of_process(EventKind::Exited) })?;
            return Ok(Sampled::Exited);
        }
        Ok(Sampled::Alive)
    }

    /// What the last sample had in memory and in swap.
    fn held(&self) -> NetEffect {
        let Some(last) = &self.last else {
            return NetEffect::default();
        };
        let (present, swapped) = last.words.present_and_swapped(self.swap);
        let bytes = |pages: u64| pages.saturating_mul(last.page.bytes());
        NetEffect { came: bytes(present), swap_came: bytes(swapped), ..NetEffect::default() }
    }

    /// Forgets the last sample, because its address space is gone: nothing compares with it. Returns what went.
    fn leave(&mut self) -> NetEffect {
        let NetEffect { came, swap_came, .. } = self.held();
        self.last = None;
        NetEffect { went: came, swap_went: swap_came, ..NetEffect::default() }
    }

    fn compare(
        &mut self,
        target: &Target,
        spans: &mut SampleSpans<'_>,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        sink: &mut ChangeSink<'_>,
        (more, seen): (Facts, &mut Seen<'_>),
    ) -> Result<()> {
        /// Samples in a row during which regions may change before one of them is taken as it is.
        const TRIES: u32 = 3;
        let mut tries = 0;
        let (space, now) = loop {
            tries += 1;
            let space = match &self.range {
                Some(ranges) => AddressSpace::around(target, ranges)?,
                None => AddressSpace::of(target)?,
            };
            let nothing = PageWords::default();
            let before = self.last.as_ref().map_or(&nothing, |last| &last.words);
            let (now, swept) = Sample::take(&space, spans(&space), self.extra, before, check, (more, &mut *seen))?;
            if swept.changed.is_empty() || tries == TRIES {
                break (space, now);
            }
        };
        if let Some(before) = &self.last {
            let pair = Pair { before, now: &now, space: &space };
            let new = pair.report_regions(None, sink)?;
            let mut merger = Merger::new(pair, self.extra, Join::SameFrames);
            now.words.differences(&before.words, &new, |page, then, now| merger.push(page, then, now, sink))?;
            merger.finish(sink)?;
        }
        self.last = Some(now);
        self.swap = SwapAreas::of(&space);
        Ok(())
    }

    /// The changes that a watch of `spans` cannot observe here, each with the reason.
    pub fn unobservable(space: &AddressSpace, spans: &[AddressRange], extra: Facts) -> Vec<(EventKind, Reason)> {
        let mut blind = Vec::new();
        let available = space.availability();
        if let Err(reason) = &available.frames {
            blind.push((EventKind::Moved, reason.clone()));
            let partly = if available.categories.contains(Categories::ZERO) {
                "only copies of file pages and of the page of zeros show: others show by their frames, which need CAP_SYS_ADMIN"
            } else {
                "only copies of file pages show: others show by their frames, which need CAP_SYS_ADMIN"
            };
            blind.push((EventKind::CopiedOnWrite, Reason::not_permitted(partly)));
        }
        let is_watched = |viewed: &ViewedRegion| {
            let inside = |span: &AddressRange| span.intersection(viewed.range()).is_some();
            spans.iter().any(inside)
        };
        let may_be_huge = || space.regions().iter().any(|viewed| space.may_be_huge(viewed) && is_watched(viewed));
        let has_counts = available.counts.is_ok() && space.has_exact_counts();
        if available.frames.is_ok() && !has_counts && may_be_huge() {
            let partly = "inside a huge page that one entry maps, a copied page shows as moved: only map counts show \
                          that it was shared";
            let reason = match &available.counts {
                Ok(()) => Reason::NotOnThisKernel(format!("{partly}, and this kernel gives averages")),
                Err(_) => Reason::not_permitted(format!("{partly}, and only root can read them")),
            };
            blind.push((EventKind::CopiedOnWrite, reason));
        }
        let mut shared_memory = space.regions().iter().filter(|viewed| viewed.backing == Backing::Shmem);
        if space.swap_in_use() && shared_memory.any(is_watched) {
            let nothing_left = "the page map shows nothing of shared memory that goes to swap: it shows as went";
            let reason = Reason::NotOnThisKernel(nothing_left.into());
            blind.push((EventKind::SwappedOut, reason));
        }
        if !available.categories.contains(Categories::HUGE) {
            blind.push((EventKind::Split, no_scan()));
            blind.push((EventKind::Collapsed, no_scan()));
        }
        if extra.contains(Facts::FLAGS)
            && let Err(reason) = &available.flags
        {
            blind.push((EventKind::FlagsChanged, reason.clone()));
        }
        if extra.contains(Facts::COUNTS)
            && let Err(reason) = &available.counts
        {
            blind.push((EventKind::MapCountChanged, reason.clone()));
        }
        if let Err(reason) = &available.soft_dirty {
            blind.push((EventKind::SoftDirty, reason.clone()));
        }
        blind
    }
}
