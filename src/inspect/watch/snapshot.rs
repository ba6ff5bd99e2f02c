//! A sample that is kept for a comparison with a later one, or with one of another process, with which it may share
//! frames.

use super::numbers::NumberSet;
use super::pages::{JoinRule, Pair};
use super::regions::Change;
use super::words::{OpenSample, PageWords, PlaceInWords, SampledPage, WordSample};
use crate::budget::Budget;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::{Backing, SwapTypes};
use crate::inspect::memory::{MemoryRead, MemoryReader, ReadEnd};
use crate::inspect::page::Evidence;
use crate::inspect::{Error, Result};
use crate::kernel::{AddressRange, PageMapEntry, PageSize, Region, VirtualAddress};
use crate::process::{self, Target};
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU64;
use std::sync::OnceLock;

/// The bytes of memory that are read and hashed at a time.
const CHUNK: usize = 1 << 20;

/// The page map of a process at one time, with its regions.
pub struct Snapshot {
    sample: WordSample,
    extra: Evidence,
    areas: SwapTypes,
    present: u64,
    swapped: u64,
    /// The number of pages whose contents were hashed; `None` if the snapshot has no contents.
    hashed: Option<u64>,
    /// The frames that another process may map too, computed when they are first needed.
    frames: OnceLock<SharedFrames>,
}

/// A snapshot that is being taken.
#[must_use = "it reads only when it is advanced or finished"]
pub struct OpenSnapshot {
    sampling: OpenSample,
    extra: Evidence,
    areas: SwapTypes,
    budget: Budget,
    progress: SnapshotProgress,
    /// The numbers of present and of swapped pages, once the page map was read.
    populated: Option<(u64, u64)>,
    contents: Option<ContentReader>,
}

/// The progress of a snapshot: in the page map, and then in the resident pages if their contents are hashed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SnapshotProgress {
    /// The number of pages that were read.
    pub done: u64,
    /// The number of pages to read.
    pub total: u64,
}

impl OpenSnapshot {
    /// Limits the snapshot by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        OpenSnapshot { sampling: self.sampling.with_budget(budget.clone()), budget, ..self }
    }

    /// Reads the next pages. Returns the progress; `None` after the last ones.
    ///
    /// # Errors
    /// Fails if the target is gone, the kernel refuses a read, or the budget is used up.
    pub fn advance(&mut self) -> Result<Option<SnapshotProgress>> {
        if self.populated.is_none() {
            if self.sampling.advance(&PageWords::default())? {
                self.progress.done += self.sampling.chunk().map_or(0, |chunk| chunk.pages);
                return Ok(Some(self.progress));
            }
            let (present, swapped) = self.sampling.words().present_and_swapped(self.areas);
            self.populated = Some((present, swapped));
            self.progress = SnapshotProgress { done: 0, total: present };
        }
        let Some(contents) = &mut self.contents else {
            return Ok(None);
        };
        self.budget.look()?;
        let target = self.sampling.target().clone();
        if !contents.advance(self.sampling.words(), &target)? {
            return Ok(None);
        }
        self.progress.done = contents.hashed;
        Ok(Some(self.progress))
    }

    /// Reads all remaining pages. Returns the snapshot.
    ///
    /// # Errors
    /// Fails like [`OpenSnapshot::advance`].
    pub fn finish(self) -> Result<Snapshot> {
        self.take(|_| Ok(()))
    }

    /// Reads all remaining pages, and calls `seen` with the progress after each step. Returns the snapshot.
    ///
    /// # Errors
    /// Fails like [`OpenSnapshot::advance`], or if `seen` does.
    pub fn take(mut self, mut seen: impl FnMut(SnapshotProgress) -> Result<()>) -> Result<Snapshot> {
        while let Some(progress) = self.advance()? {
            seen(progress)?;
        }
        let OpenSnapshot { sampling, extra, areas, populated, contents, .. } = self;
        let (present, swapped) = populated.unwrap_or_default();
        let hashed = contents.map(ContentReader::finish).transpose()?;
        let (sample, _) = sampling.finish();
        Ok(Snapshot { sample, extra, areas, present, swapped, hashed, frames: OnceLock::new() })
    }
}

/// Reads and hashes the resident pages of a sample.
struct ContentReader {
    place: PlaceInWords,
    reader: MemoryReader,
    buffer: Vec<u8>,
    page: PageSize,
    /// The number of pages that were hashed.
    hashed: u64,
    /// Whether some of the pages are not of the kernel, whose memory every capture has.
    has_memory: bool,
    kernel_memory: Vec<AddressRange>,
    /// The error of the first page that a capture or a core lacks.
    missing: Option<process::Error>,
}

impl ContentReader {
    fn new(space: &AddressSpace) -> Self {
        let of_kernel = space.viewed_regions().iter().filter(|viewed| viewed.backing == Backing::Kernel);
        ContentReader {
            place: PlaceInWords::default(),
            reader: MemoryReader::default(),
            buffer: Vec::new(),
            page: space.page_size(),
            hashed: 0,
            has_memory: false,
            kernel_memory: of_kernel.map(|viewed| viewed.range()).collect(),
            missing: None,
        }
    }

    /// Returns the number of pages that were hashed.
    ///
    /// # Errors
    /// Fails for a capture or core without memory.
    fn finish(self) -> Result<u64> {
        match self.missing.filter(|_| !self.has_memory) {
            Some(missing) => Err(missing.into()),
            None => Ok(self.hashed),
        }
    }

    /// Hashes the next pages as far as they are resident. Others get no hash. Returns false after the last ones.
    fn advance(&mut self, words: &mut PageWords, target: &Target) -> Result<bool> {
        let page_bytes = self.page.bytes() as usize;
        let Some((first, hashes)) = words.present_from(&mut self.place, (CHUNK / page_bytes).max(1)) else {
            return Ok(false);
        };
        let wanted = hashes.len() * page_bytes;
        self.buffer.resize(wanted.max(self.buffer.len()), 0);
        let into = self.buffer.get_mut(..wanted).unwrap_or_default();
        let start = VirtualAddress::new(first << self.page.shift());
        let reading = match self.reader.read(target, start, into) {
            Err(Error::Target(missing @ process::Error::NotAvailable { .. })) => {
                self.missing.get_or_insert(missing);
                MemoryRead { bytes: 0, ended: Some(ReadEnd::NotCaptured) }
            }
            reading => reading?,
        };
        self.has_memory |= reading.bytes > 0 && !self.kernel_memory.iter().any(|range| range.contains(start));
        let pages = into.get(..reading.bytes).unwrap_or_default().chunks_exact(page_bytes);
        let (asked, read) = (hashes.len(), pages.len());
        for (bytes, hash) in pages.zip(hashes) {
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            *hash = NonZeroU64::new(hasher.finish() | 1);
        }
        self.hashed += read as u64;
        // The page that ended the read has gone since, or is memory of a device.
        self.place.skip(if reading.ended.is_some() { read + 1 } else { read.max(1).min(asked) });
        Ok(true)
    }
}

/// The relation of a page to that of another process or sample.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum PageRelation {
    /// Both map the same frame.
    Shared,
    /// Both have a page there, in different frames.
    Different,
    /// Only the first has a page there.
    OnlyFirst,
    /// Only the second has a page there.
    OnlySecond,
    /// The second maps the frame of the first at another address, and has a different page or none there.
    Elsewhere,
}

/// Neighbouring pages of a region with the same relation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SharedPages {
    /// The first page: its address in the first process, or in the second if only that has it.
    pub address: VirtualAddress,
    /// The number of pages.
    pub pages: u64,
    /// The relation of the pages.
    pub relation: PageRelation,
    /// Whether the next write by the first process copies the pages: they are private and not exclusive to it.
    pub copied_by_next_write: bool,
}

impl Snapshot {
    /// Begins a snapshot of `spans`. In `extra`, [`Evidence::FLAGS`] and [`Evidence::COUNTS`] keep flags and map
    /// counts, and [`Evidence::SOFT_DIRTY`] compares soft-dirty bits; check them with [`AddressSpace::require`] first.
    /// [`Evidence::KINDS`] detects zero pages if possible. With `contents`, resident pages are read and hashed.
    pub fn begin(space: &AddressSpace, spans: Vec<AddressRange>, extra: Evidence, contents: bool) -> OpenSnapshot {
        let total = spans.iter().map(|span| span.pages(space.page_size())).sum();
        OpenSnapshot {
            sampling: OpenSample::new(space.clone(), spans, [extra, Evidence::empty()], &PageWords::default()),
            extra,
            areas: SwapTypes::of(space),
            budget: Budget::unlimited(),
            progress: SnapshotProgress { done: 0, total },
            populated: None,
            contents: contents.then(|| ContentReader::new(space)),
        }
    }

    /// Returns the ranges of the snapshot, in order.
    pub fn spans(&self) -> &[AddressRange] {
        &self.sample.spans
    }

    /// Returns the regions of which a part was sampled, and the regions next to the ranges.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.sample.regions.iter().map(|(region, _)| region)
    }

    /// Returns what is compared beside the entries: flags, map counts, soft-dirty bits.
    pub fn extra(&self) -> Evidence {
        self.extra
    }

    /// Returns the number of present pages.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Returns the number of pages in swap.
    pub fn swapped(&self) -> u64 {
        self.swapped
    }

    /// Returns whether the snapshot has contents.
    pub fn has_contents(&self) -> bool {
        self.hashed.is_some()
    }

    /// Returns the number of present pages whose contents could not be read; 0 if the snapshot has no contents.
    pub fn unread(&self) -> u64 {
        self.hashed.map_or(0, |hashed| self.present.saturating_sub(hashed))
    }

    /// Returns the bytes that the snapshot takes.
    pub fn size(&self) -> usize {
        self.sample.words.size()
    }

    /// Returns the populated pages in `range`, in order.
    fn pages(&self, range: AddressRange) -> impl Iterator<Item = (u64, SampledPage)> {
        let first = self.sample.page.index(range.start());
        self.sample.words.pages(first, first + range.pages(self.sample.page))
    }

    /// Returns whether a page has contents, which are present or in swap.
    fn holds(&self, entry: PageMapEntry) -> bool {
        entry.is_present() || self.areas.holds(entry)
    }

    /// Returns the number of pages of `range` that are present or swapped.
    pub fn populated_in(&self, range: AddressRange) -> u64 {
        let held = |(_, page): &(u64, SampledPage)| self.holds(page.entry);
        self.pages(range).filter(held).count() as u64
    }

    fn frames(&self) -> &SharedFrames {
        let all = || self.sample.words.pages(0, u64::MAX).map(|(_, page)| page);
        self.frames.get_or_init(|| SharedFrames::of(all()))
    }

    /// Returns a number for the frame or swap slot of each page of `range`, in order, without zero pages.
    pub fn places_in(&self, range: AddressRange) -> impl Iterator<Item = u64> {
        let held = |(_, page): &(u64, SampledPage)| self.holds(page.entry) && !page.is_zero;
        self.pages(range).filter(held).map(|(_, page)| place(page.entry))
    }

    /// Returns such a number for each page of `range` that is present or swapped, unless `other` maps its frame
    /// anywhere.
    pub fn places_alone_in(&self, range: AddressRange, other: &Snapshot) -> impl Iterator<Item = u64> {
        let alone = |(_, page): &(u64, SampledPage)| self.holds(page.entry) && !other.frames().contains_frame_of(*page);
        self.pages(range).filter(alone).map(|(_, page)| place(page.entry))
    }

    /// Returns the number of present pages whose contents one snapshot lacks, if both have contents.
    pub fn uncompared(&self, other: &Snapshot) -> u64 {
        if self.has_contents() && other.has_contents() { self.unread().max(other.unread()) } else { 0 }
    }

    /// Returns whether a write to a page of a writable region since `self` may not show in `later`: the page kept its
    /// frame, one of the snapshots lacks its contents, and its soft-dirty bit was already set or is not tracked.
    pub fn hides_writes(&self, later: &Snapshot, within: Option<&[AddressRange]>) -> bool {
        let tracked = (self.extra & later.extra).contains(Evidence::SOFT_DIRTY);
        let is_hidden = |then: SampledPage, now: SampledPage| {
            let stayed = then.entry.is_present() && now.entry.is_present() && then.entry.frame() == now.entry.frame();
            let has_contents = then.contents.is_some() && now.contents.is_some();
            let has_clear_bit = tracked && !then.entry.is_soft_dirty();
            stayed && !has_contents && !has_clear_bit
        };
        let within = within.unwrap_or(&self.sample.spans);
        let writable = self.regions().filter(|region| region.permissions.write);
        let mut parts = writable.flat_map(|region| region.range.within(within));
        parts.any(|part| {
            let mut pages = side_by_side(self.pages(part), later.pages(part));
            pages.any(|(_, then, now)| then.zip(now).is_some_and(|(then, now)| is_hidden(then, now)))
        })
    }

    /// Returns the changes from `self` to `later`: first regions, then pages in address order. `space` is of the same
    /// process, or of another process of the same machine. If `budget` is used up, changes are missing:
    /// [`Budget::check`] fails then.
    pub fn changes<'s>(
        &'s self,
        later: &'s Snapshot,
        within: Option<&'s [AddressRange]>,
        space: &'s AddressSpace,
        budget: &'s mut Budget,
    ) -> impl Iterator<Item = Change> + 's {
        self.changes_with(Evidence::empty(), later, within, space, budget)
    }

    /// Returns the changes as [`changes`](Self::changes) does. With [`Evidence::ZONES`] in `more`, pages on different
    /// nodes are in different changes.
    pub(super) fn changes_with<'s>(
        &'s self,
        more: Evidence,
        later: &'s Snapshot,
        within: Option<&'s [AddressRange]>,
        space: &'s AddressSpace,
        budget: &'s mut Budget,
    ) -> impl Iterator<Item = Change> + 's {
        let pair = Pair { before: &self.sample, now: &later.sample, space };
        pair.changes(self.extra & later.extra | more, JoinRule::SameStates, within, || budget.go_on().is_ok())
    }

    /// Compares the pages of `range` with those of `other` from `theirs` on, if it has any there. Rows are in address
    /// order for each process. A page whose frame `other` maps elsewhere and the page of `other` at its place are in
    /// two rows. Pages of `other` whose frames this process maps elsewhere are in no row of `other`.
    pub fn compare<'s>(
        &'s self,
        range: AddressRange,
        other: &'s Snapshot,
        theirs: Option<VirtualAddress>,
    ) -> impl Iterator<Item = SharedPages> + use<'s> {
        let page = self.sample.page;
        let first = page.index(range.start());
        let behind = theirs.map_or(0, |theirs| page.index(theirs));
        let end = theirs.map_or(0, |_| behind + range.pages(page));
        // A zero page belongs to no process: a write takes a new page and copies nothing.
        let held = move |(_, seen): &(u64, SampledPage)| self.holds(seen.entry) && !seen.is_zero;
        let mine = self.pages(range).filter(held);
        let mine = mine.map(move |(index, seen)| (index - first, seen));
        let others = other.sample.words.pages(behind, end).filter(held);
        let others = others.map(move |(index, seen)| (index - behind, seen));
        // The open row of pages of the first process, and that of pages of only the second, each with the index of its
        // first page.
        let mut open: [Option<(u64, SharedPages)>; 2] = [None, None];
        let rows = side_by_side(mine, others).map(Some).chain([None]).map(move |next| {
            let Some((index, one, two)) = next else {
                return open.each_mut().map(Option::take);
            };
            let relations = self.relations(other, one, two);
            let mut slots = open.iter_mut().zip(relations).zip([first, behind]);
            [(); 2].map(|()| {
                let ((slot, relation), start) = slots.next()?;
                let done = slot.take_if(|(at, row)| *at + row.pages < index);
                let Some(relation) = relation else {
                    return done;
                };
                let one = one.filter(|_| relation != PageRelation::OnlySecond);
                let copied_by_next_write = one.is_some_and(|one| is_copied_by_next_write(one, relation));
                match slot {
                    Some((_, row)) if row.relation == relation && row.copied_by_next_write == copied_by_next_write => {
                        row.pages += 1;
                        None
                    }
                    _ => {
                        let address = VirtualAddress::new((start + index) << page.shift());
                        let begun = SharedPages { address, pages: 1, relation, copied_by_next_write };
                        slot.replace((index, begun)).or(done)
                    }
                }
            })
        });
        rows.flat_map(|done| done.into_iter().flatten()).map(|(_, row)| row)
    }

    /// Returns the relations of a page of this process and one of `other`, for the row of this process and for that of
    /// `other` alone.
    fn relations(
        &self,
        other: &Snapshot,
        one: Option<SampledPage>,
        two: Option<SampledPage>,
    ) -> [Option<PageRelation>; 2] {
        let own_of_second = two.is_some_and(|two| !self.frames().contains_frame_of(two));
        match (relation(one, two), one) {
            (PageRelation::OnlySecond, _) => [None, own_of_second.then_some(PageRelation::OnlySecond)],
            (relation @ (PageRelation::OnlyFirst | PageRelation::Different), Some(one))
                if other.frames().contains_frame_of(one) =>
            {
                let second = relation == PageRelation::Different && own_of_second;
                [Some(PageRelation::Elsewhere), second.then_some(PageRelation::OnlySecond)]
            }
            (relation, _) => [Some(relation), None],
        }
    }
}

/// Returns a number for a frame or a swap slot.
fn place(entry: PageMapEntry) -> u64 {
    /// The bit of swap slots, which is above all frame numbers.
    const SLOTS: u64 = 1 << 63;
    entry.frame_bits() | if entry.is_present() { 0 } else { SLOTS }
}

/// Merges two lists of pages in the order of their indices. Returns each index with the page of each list.
fn side_by_side<T>(
    one: impl Iterator<Item = (u64, T)>,
    two: impl Iterator<Item = (u64, T)>,
) -> impl Iterator<Item = (u64, Option<T>, Option<T>)> {
    let (mut one, mut two) = (one.peekable(), two.peekable());
    std::iter::from_fn(move || {
        let next = [one.peek(), two.peek()].map(|page| page.map(|(index, _)| *index));
        let index = next.into_iter().flatten().min()?;
        let first = one.next_if(|(at, _)| *at == index).map(|(_, page)| page);
        let second = two.next_if(|(at, _)| *at == index).map(|(_, page)| page);
        Some((index, first, second))
    })
}

/// Returns the relation of two pages with contents, of which one may be missing.
fn relation(one: Option<SampledPage>, two: Option<SampledPage>) -> PageRelation {
    let (one, two) = match (one, two) {
        (Some(one), Some(two)) => (one.entry, two.entry),
        (_, None) => return PageRelation::OnlyFirst,
        (None, _) => return PageRelation::OnlySecond,
    };
    let same = match (one.frame(), two.frame()) {
        (Some(one), Some(two)) => one == two,
        // Both are in one swap slot.
        (None, None) => one.swap().is_some() && one.swap() == two.swap(),
        _ => false,
    };
    if same { PageRelation::Shared } else { PageRelation::Different }
}

/// Returns whether the next write copies a page: anonymous memory that is not exclusive to one process
/// (`wp_can_reuse_anon_folio` in mm/memory.c; since Linux 5.19 by PG_anon_exclusive, which bit 56 shows). In a PMD
/// mapping the bit is wrong (see [`Page::exclusive`]), but a frame that both map is exclusive to neither. So is a swap
/// slot that both have: `do_swap_page` makes a page exclusive only if no other process has its slot. Only anonymous
/// memory has entries of swap slots.
///
/// [`Page::exclusive`]: crate::inspect::Page::exclusive
fn is_copied_by_next_write(seen: SampledPage, relation: PageRelation) -> bool {
    let entry = seen.entry;
    let is_exclusive =
        entry.is_exclusive() && !(seen.is_huge && matches!(relation, PageRelation::Shared | PageRelation::Elsewhere));
    let is_in_one_slot = !entry.is_present() && relation == PageRelation::Shared;
    !entry.is_file_or_shared() && (is_in_one_slot || entry.is_present() && !is_exclusive)
}

/// The frames that another process may map too.
#[derive(Default)]
struct SharedFrames(NumberSet);

impl SharedFrames {
    /// Returns the frames of `pages`, without those that no other process can map: bit 56 excludes it, except in a PMD
    /// mapping, where it is that of the first page. The zero page, which belongs to no process, is left out too.
    fn of(pages: impl Iterator<Item = SampledPage>) -> Self {
        let mut frames = NumberSet::default();
        for page in pages.filter(|page| !page.is_zero && (page.is_huge || !page.entry.is_exclusive())) {
            if let Some(frame) = page.entry.frame() {
                frames.add(frame.get(), 1);
            }
        }
        frames.join();
        SharedFrames(frames)
    }

    /// Returns whether the frame of a page is in the set.
    fn contains_frame_of(&self, page: SampledPage) -> bool {
        page.entry.frame().is_some_and(|frame| self.0.contains(frame.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::PageMapEntry;

    const PRESENT: u64 = 1 << 63;
    const EXCLUSIVE: u64 = 1 << 56;

    fn page(raw: u64, huge: bool) -> SampledPage {
        SampledPage { entry: PageMapEntry::new(raw), is_huge: huge, ..SampledPage::default() }
    }

    #[test]
    fn frames_are_kept_once_in_runs_unless_one_process_alone_can_map_them() {
        let raws = [9, 10, 4, 5, 6, 10, 11, 4, 20];
        let all = raws.map(|frame| page(PRESENT | frame, false));
        let zeros = SampledPage { is_zero: true, ..page(PRESENT | 7, false) };
        assert!(!SharedFrames::of([zeros].into_iter()).contains_frame_of(zeros));
        let alone = page(PRESENT | EXCLUSIVE | 30, false);
        let first_of_huge = page(PRESENT | EXCLUSIVE | 40, true);
        let swapped = page(1 << 62 | 50, false);
        let frames = SharedFrames::of(all.into_iter().chain([alone, first_of_huge, swapped]));
        for (frame, is_in) in [(3, false), (4, true), (6, true), (7, false), (11, true), (12, false), (40, true)] {
            assert_eq!(frames.contains_frame_of(page(PRESENT | frame, false)), is_in, "{frame}");
        }
        assert!(
            !frames.contains_frame_of(page(0, false))
                && !SharedFrames::default().contains_frame_of(page(PRESENT | 4, false))
        );
    }

    #[test]
    fn what_both_have_is_copied_in_memory_and_in_swap() {
        const SWAP: u64 = 1 << 62;
        const FILE: u64 = 1 << 61;
        use PageRelation::{Different, OnlyFirst, Shared};
        for (raw, relation, is_copied) in [
            (PRESENT | 4, Shared, true),
            (PRESENT | EXCLUSIVE | 4, Shared, false),
            (PRESENT | FILE | 4, Shared, false),
            (SWAP | 50, Shared, true),
            (SWAP | FILE | 50, Shared, false),
            (SWAP | 50, Different, false),
            (SWAP | 50, OnlyFirst, false),
        ] {
            assert_eq!(is_copied_by_next_write(page(raw, false), relation), is_copied, "{raw:#x} {relation:?}");
        }
    }
}
