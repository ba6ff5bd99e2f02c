//! What is kept from sample to sample, and which changes do not show here.

use super::sample::Sample;
use super::words::PageWords;
use crate::inspect::Backing;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::SwapAreas;
use crate::inspect::kernel_behaviour::KernelBehaviour;
use crate::inspect::page::Facts;
use crate::inspect::reason::no_scan;
use crate::inspect::region::ViewedRegion;
use crate::kernel::AddressRange;
use crate::process::Categories;
use crate::report::{EventKind, NetEffect, Reason};
use std::sync::Arc;

/// Takes samples, and compares each with the last one.
#[derive(Default)]
pub struct Watcher {
    pub(super) extra: Facts,
    /// Where all samples lie, if that does not change.
    pub(super) range: Option<Vec<AddressRange>>,
    pub(super) last: Option<Arc<Sample>>,
    pub(super) swap: SwapAreas,
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

    /// The words of the last sample; `nothing` before the first.
    pub(super) fn words<'a>(&'a self, nothing: &'a PageWords) -> &'a PageWords {
        self.last.as_ref().map_or(nothing, |last| &last.words)
    }

    /// What the last sample had in memory and in swap.
    pub(super) fn held(&self) -> NetEffect {
        let Some(last) = &self.last else {
            return NetEffect::default();
        };
        let (present, swapped) = last.words.present_and_swapped(self.swap);
        let bytes = |pages: u64| pages.saturating_mul(last.page.bytes());
        NetEffect { came: bytes(present), swap_came: bytes(swapped), ..NetEffect::default() }
    }

    /// Forgets the last sample, because its address space is gone: nothing compares with it. Returns what went.
    pub(super) fn leave(&mut self) -> NetEffect {
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
