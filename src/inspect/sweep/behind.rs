//! The backing of the untouched pages that a sweep has read: the content of files, shared memory and hugetlb pages, and
//! the swap slots of shared memory.

use super::super::address_space::AddressSpace;
use super::super::classify::{Backing, KernelBehaviour as _};
use super::super::page::Evidence;
use super::chunk::{BehindPage, ChunkPages, PageStretch, PageStretches, StretchWords};
use crate::kernel::{AddressRange, PageMapEntry, PageSize, SwapEntry};
use crate::process::{self, BackingContent, BackingRun, SwappedRange};

impl ChunkPages<'_> {
    /// What is behind page `index`, and for how many pages from there on it goes on so.
    #[inline]
    pub(super) fn behind(&mut self, index: u64) -> (BehindPage, u64) {
        let (content, pages) = self.backing_content(index);
        let (slot, slots) = self.slot_of(index);
        // Ranges end at page boundaries. One that does not must not keep the sweep at its last page.
        (BehindPage { content, slot }, pages.min(slots).max(1))
    }

    /// The slot of page `index`, and how many pages from there on are in the following slots, or in none.
    #[inline]
    fn slot_of(&mut self, index: u64) -> (Option<SwapEntry>, u64) {
        let shift = self.chunk.size.shift();
        let at = self.chunk.start.get() + (index << shift);
        let (found, bytes) = at_cursor(self.chunk.slots, &mut self.at.slot, |one| one.range, at);
        let slot = found.map(|one| one.slot.nth((at - one.range.start().get()) >> shift));
        (slot, bytes >> shift)
    }

    /// The backing content of page `index`, and for how many pages from there on it is the same.
    #[inline]
    fn backing_content(&mut self, index: u64) -> (Option<BackingContent>, u64) {
        let shift = self.chunk.size.shift();
        let at = self.chunk.start.get() + (index << shift);
        let (run, bytes) = at_cursor(self.chunk.backing, &mut self.at.run, |run| run.range, at);
        (run.and_then(|run| run.content.as_ref().ok().copied()), bytes >> shift)
    }
}

/// What is at an address, of ranges in order, and the bytes from there to its end, or to the next range. The cursor
/// `next` goes on to the first range that ends after the address.
#[inline]
fn at_cursor<'a, T>(
    all: &'a [T],
    next: &mut usize,
    range: impl Fn(&T) -> AddressRange,
    at: u64,
) -> (Option<&'a T>, u64) {
    while let Some(one) = all.get(*next) {
        let (start, end) = (range(one).start().get(), range(one).end().get());
        if at < start {
            return (None, start - at);
        }
        if at < end {
            return (Some(one), end - at);
        }
        *next += 1;
    }
    (None, u64::MAX)
}

/// Reads the backing content of the untouched pages of all stretches.
pub(super) fn find_backing(stretches: &mut PageStretches, space: &AddressSpace, need: Evidence) {
    for stretch in &mut stretches.all {
        stretch.content = backing_runs(space, need, stretch, &stretches.entries);
    }
}

/// The backing runs of all untouched pages of `stretch`. If they cannot be read, one run says why.
fn backing_runs(
    space: &AddressSpace,
    need: Evidence,
    stretch: &PageStretch,
    entries: &[PageMapEntry],
) -> Vec<BackingRun> {
    let region = stretch.region.and_then(|index| space.viewed_regions().get(index));
    let Some(region) = region.filter(|viewed| space.asks_content(need, viewed)) else {
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
///
/// # Errors
/// The budget is over: pages in swap would be shown as untouched.
pub(super) fn find_slots(stretches: &mut PageStretches, space: &AddressSpace) -> process::Result<()> {
    // All stretches of a region at once: each question begins at the process.
    for of_region in stretches.all.chunk_by_mut(|one, next| one.region == next.region) {
        let viewed = of_region.first().and_then(|first| space.viewed_regions().get(first.region?));
        let Some(viewed) = viewed.filter(|viewed| viewed.backing == Backing::Shmem && space.swap_in_use()) else {
            continue;
        };
        let parts: Vec<_> = of_region.iter().map(|one| untouched(space, one, &stretches.entries)).collect();
        let mut empty = parts.iter().flatten();
        let Some(first) = empty.next() else {
            continue;
        };
        let asked = AddressRange::new(first.start(), empty.next_back().unwrap_or(first).end());
        let Some(asked) = asked.filter(|_| space.has_slots(viewed)) else {
            continue;
        };
        let found = match space.slots(viewed, asked) {
            Err(over @ process::Error::OutOfBudget(_)) => return Err(over),
            found => found.unwrap_or_default(),
        };
        for (stretch, part) in of_region.iter_mut().zip(parts) {
            stretch.slots = part.map_or_else(Vec::new, |part| slots_in(&found, part, space.page_size()).collect());
        }
    }
    Ok(())
}

/// The parts of these ranges of slots that lie in `range`.
fn slots_in(found: &[SwappedRange], range: AddressRange, page: PageSize) -> impl Iterator<Item = SwappedRange> {
    let first = found.partition_point(|one| one.range.end() <= range.start());
    let rest = found.get(first..).unwrap_or_default().iter();
    rest.map_while(move |one| {
        let inside = one.range.intersection(range)?;
        let into = (inside.start().get() - one.range.start().get()) >> page.shift();
        Some(SwappedRange::new(inside, one.slot.nth(into)))
    })
}

/// From the first to the last untouched page.
fn untouched_range(space: &AddressSpace, range: AddressRange, entries: &[PageMapEntry]) -> Option<AddressRange> {
    let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
    let first = entries.iter().position(is_empty)? as u64;
    let last = entries.iter().rposition(is_empty)? as u64;
    let bytes = space.page_size().bytes();
    let start = range.start().checked_add(first * bytes)?;
    AddressRange::new(start, range.start().checked_add((last + 1) * bytes)?)
}
