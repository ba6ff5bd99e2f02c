//! Changes between two samples of the same addresses. A sample costs the reads of what is populated and a comparison of
//! raw words; words that are the same are not decoded.

mod change;
mod look;
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
use super::{Backing, Result};
use crate::budget::Budget;
use crate::kernel::AddressRange;
use crate::process::{Categories, Target};
use crate::report::{EventKind, NetEffect, Reason};
use sample::Sample;
use std::sync::Arc;

pub use change::Change;
pub use look::{Look, Sampled};
pub use region_groups::RegionGroups;
pub use snapshot::{Relation, SharedPages, Snapshot};

/// Takes samples, and compares each with the last one.
#[derive(Default)]
pub struct Watcher {
    extra: Facts,
    /// Where all samples lie, if that does not change.
    range: Option<Vec<AddressRange>>,
    last: Option<Arc<Sample>>,
    swap: SwapAreas,
}

impl Watcher {
    /// [`Facts::FLAGS`], [`Facts::COUNTS`] and [`Facts::SOFT_DIRTY`] in `extra` show also changes of flags, map
    /// counts and soft-dirty bits. Check them with [`AddressSpace::require`] first.
    pub fn new(extra: Facts) -> Watcher {
        Watcher { extra: extra & (Facts::FLAGS | Facts::COUNTS | Facts::SOFT_DIRTY), ..Watcher::default() }
    }

    /// All samples will lie in `ranges`: of the regions, only those there and next to them are asked for.
    #[must_use]
    pub fn within(self, ranges: &[AddressRange]) -> Watcher {
        Watcher { range: Some(ranges.to_vec()), ..self }
    }

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
        Look::new(self, target)
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

    /// The changes that a watch of `spans` cannot observe here, each with the reason.
    pub fn unobservable(space: &AddressSpace, spans: &[AddressRange], extra: Facts) -> Vec<(EventKind, Reason)> {
        let mut blind = Vec::new();
        let available = space.availability();
        if let Err(reason) = &available.frames {
            blind.push((EventKind::Moved, reason.clone()));
            let partly = if available.categories.contains(Categories::ZERO) {
                "only copies of file pages and of the page of zeros show, because frames need CAP_SYS_ADMIN"
            } else {
                "only copies of file pages show, because frames need CAP_SYS_ADMIN"
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
            let partly = "a page copied out of a huge page shows as moved, because only map counts show that it was \
                          shared";
            let reason = match &available.counts {
                Ok(()) => Reason::NotOnThisKernel(format!("{partly}, and this kernel gives averages")),
                Err(_) => Reason::not_permitted(format!("{partly}, and only root can read them")),
            };
            blind.push((EventKind::CopiedOnWrite, reason));
        }
        let mut shared_memory = space.regions().iter().filter(|viewed| viewed.backing == Backing::Shmem);
        if space.swap_in_use() && shared_memory.any(is_watched) {
            let nothing_left = "shared memory that goes to swap shows as went";
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
