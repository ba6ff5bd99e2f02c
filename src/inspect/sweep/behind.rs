//! What there is of the untouched pages that a sweep has read: the content of their files and shared memory, and the
//! slots of shared memory in swap.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::chunk::{BehindPage, ChunkPages, PageStretch, PageStretches, StretchWords};
use crate::kernel::{AddressRange, PageMapEntry, PageSize, SwapEntry, VirtualAddress};
use crate::process::{BackingContent, BackingRun, SwappedRange};

impl ChunkPages<'_> {
    /// What is behind page `index`, and for how many pages from there on it goes on so.
    #[inline]
    pub(super) fn behind(&mut self, index: u64) -> (BehindPage, u64) {
        let (content, pages) = self.backing_content(index);
        let (slot, slots) = self.slot_of(index);
        (BehindPage { content, slot }, pages.min(slots))
    }

    /// The slot of page `index`, and how many pages from there on are in the following slots, or in none.
    #[inline]
    fn slot_of(&mut self, index: u64) -> (Option<SwapEntry>, u64) {
        let shift = self.chunk.size.shift();
        let at = self.chunk.start.get() + (index << shift);
        while let Some(one) = self.chunk.slots.get(self.slot) {
            let (first, end) = (one.range.start().get(), one.range.end().get());
            if at < first {
                return (None, (first - at) >> shift);
            }
            if at < end {
                let offset = one.slot.offset.saturating_add((at - first) >> shift);
                return (Some(SwapEntry { offset, ..one.slot }), (end - at) >> shift);
            }
            self.slot += 1;
        }
        (None, u64::MAX)
    }

    /// The backing content of page `index`, and for how many pages from there on it is the same.
    #[inline]
    fn backing_content(&mut self, index: u64) -> (Option<BackingContent>, u64) {
        let (start, shift) = (self.chunk.start.get(), self.chunk.size.shift());
        let at = start + (index << shift);
        while let Some(run) = self.chunk.backing.get(self.run) {
            let (first, end) = (run.range.start().get(), run.range.end().get());
            if at < first {
                return (None, (first - at) >> shift);
            }
            if at < end {
                return (run.content.as_ref().ok().copied(), (end - at) >> shift);
            }
            self.run += 1;
        }
        (None, u64::MAX)
    }
}

/// Reads the backing content of the untouched pages of all stretches.
pub(super) fn find_backing(stretches: &mut PageStretches, space: &AddressSpace) {
    for stretch in &mut stretches.all {
        stretch.content = backing_runs(space, stretch, &stretches.entries);
    }
}

/// The backing runs of all untouched pages of `stretch`. If they cannot be read, one run says why.
fn backing_runs(space: &AddressSpace, stretch: &PageStretch, entries: &[PageMapEntry]) -> Vec<BackingRun> {
    let region = stretch.region.and_then(|index| space.regions().get(index));
    let Some(region) = region.filter(|viewed| space.has_content(viewed)) else {
        return Vec::new();
    };
    let Some(range) = untouched(space, stretch, entries) else {
        return Vec::new();
    };
    space.backing_content(region, range)
}

/// From the first to the last untouched page of a stretch.
fn untouched(space: &AddressSpace, stretch: &PageStretch, entries: &[PageMapEntry]) -> Option<AddressRange> {
    match &stretch.words {
        StretchWords::Nothing => Some(stretch.range),
        StretchWords::Read { at, stride: 1, .. } => {
            let entries = entries.get(at.clone()).unwrap_or_default();
            untouched_range(space, stretch.range, entries)
        }
        StretchWords::Read { .. } | StretchWords::Present | StretchWords::Outside => None,
    }
}

/// Reads the slots of the untouched pages of shared memory. The page caches of regions that cannot be read are passed
/// over: their pages are untouched, as the page map says.
pub(super) fn find_slots(stretches: &mut PageStretches, space: &AddressSpace) {
    // The region that was asked about last, how far, and the answer.
    let mut known: Option<(usize, VirtualAddress, Vec<SwappedRange>)> = None;
    let ends = |region: usize, stretches: &PageStretches| {
        let of_region = stretches.all.iter().rev().find(|stretch| stretch.region == Some(region));
        of_region.map(|stretch| stretch.range.end())
    };
    for number in 0..stretches.all.len() {
        let Some(stretch) = stretches.all.get(number) else {
            continue;
        };
        let viewed = stretch.region.and_then(|index| Some((index, space.regions().get(index)?)));
        let Some((index, viewed)) = viewed.filter(|(_, viewed)| viewed.backing == Backing::Shmem) else {
            continue;
        };
        let range = untouched(space, stretch, &stretches.entries);
        let Some(range) = range.filter(|_| space.has_slots(viewed)) else {
            continue;
        };
        if known.as_ref().is_none_or(|(region, end, _)| *region != index || *end < range.end()) {
            // All stretches of the region at once: each question begins at the process.
            let end = ends(index, stretches).unwrap_or(range.end());
            let asked = AddressRange::new(range.start(), end).unwrap_or(range);
            known = Some((index, asked.end(), space.slots(viewed, asked).unwrap_or_default()));
        }
        let found = known.iter().flat_map(|(.., found)| within(found, range, space.page()));
        let found = found.collect();
        if let Some(stretch) = stretches.all.get_mut(number) {
            stretch.slots = found;
        }
    }
}

/// The parts of these ranges of slots that lie in `range`.
fn within(found: &[SwappedRange], range: AddressRange, page: PageSize) -> impl Iterator<Item = SwappedRange> {
    let first = found.partition_point(|one| one.range.end() <= range.start());
    let rest = found.get(first..).unwrap_or_default().iter();
    rest.map_while(move |one| {
        let inside = one.range.intersection(range)?;
        let into = (inside.start().get() - one.range.start().get()) >> page.shift();
        let slot = SwapEntry { offset: one.slot.offset.saturating_add(into), ..one.slot };
        Some(SwappedRange::new(inside, slot))
    })
}

/// From the first to the last untouched page.
fn untouched_range(space: &AddressSpace, range: AddressRange, entries: &[PageMapEntry]) -> Option<AddressRange> {
    let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
    let first = entries.iter().position(is_empty)? as u64;
    let last = entries.iter().rposition(is_empty)? as u64;
    let bytes = space.page().bytes();
    let start = range.start().checked_add(first * bytes)?;
    AddressRange::new(start, range.start().checked_add((last + 1) * bytes)?)
}
