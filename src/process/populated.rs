//! Finding what is populated: by PAGEMAP_SCAN, or by reading every entry. Both give the same answer.

use super::maps_text;
use crate::budget::Budget;
use crate::kernel::{AddressRange, PageMapEntry, PageSize, Region, VirtualAddress};
use crate::source::{Categories, PageRegion, Result, Scan, Source, WordFile, as_words};
use std::ops::ControlFlow;

/// A stretch of pages with something in their entries, all of the same categories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PopulatedRange {
    /// Whole pages.
    pub range: AddressRange,
    /// Those of the categories asked for (and known to [`categories`](super::Process::categories)) that hold for all of
    /// them.
    pub categories: Categories,
}

/// Receives each stretch.
type StretchVisitor<'a> = dyn FnMut(PopulatedRange) -> ControlFlow<()> + 'a;

/// What makes a page populated.
const ANY: Categories = Categories::PRESENT.union(Categories::SWAPPED);

/// What a single entry tells without the kernel's scan.
pub(super) const IN_ENTRIES: Categories =
    ANY.union(Categories::FILE).union(Categories::SOFT_DIRTY).union(Categories::GUARD);

/// Joins stretches that touch and have the same categories: the kernel splits them wherever its buffer was full.
struct StretchJoiner<'a, 'b> {
    pending: Option<PopulatedRange>,
    visit: &'a mut StretchVisitor<'b>,
}

impl StretchJoiner<'_, '_> {
    fn push(&mut self, next: PopulatedRange) -> ControlFlow<()> {
        match &mut self.pending {
            Some(last) if last.range.end() == next.range.start() && last.categories == next.categories => {
                let whole = AddressRange::new(last.range.start(), next.range.end());
                last.range = whole.unwrap_or(last.range);
                ControlFlow::Continue(())
            }
            pending => {
                let done = pending.replace(next);
                self.emit(done)
            }
        }
    }

    /// Visits what lies before `boundary`; the rest may continue after it.
    fn finish_before(&mut self, boundary: VirtualAddress) -> ControlFlow<()> {
        let Some(PopulatedRange { range, categories }) = self.pending.take() else {
            return ControlFlow::Continue(());
        };
        let part = |start, end| {
            let range = AddressRange::new(start, end)?;
            Some(PopulatedRange { range, categories })
        };
        self.pending = part(range.start().max(boundary), range.end());
        self.emit(part(range.start(), range.end().min(boundary)))
    }

    fn finish(&mut self) -> ControlFlow<()> {
        let last = self.pending.take();
        self.emit(last)
    }

    fn emit(&mut self, done: Option<PopulatedRange>) -> ControlFlow<()> {
        done.map_or(ControlFlow::Continue(()), &mut *self.visit)
    }
}

/// Visits what is populated in `range`, with the kernel's scan as far as it reaches and with plain reads elsewhere.
pub(super) fn visit(
    source: &dyn Source,
    page: PageSize,
    range: AddressRange,
    wanted: Categories,
    scannable: Categories,
    visit: &mut StretchVisitor<'_>,
) -> Result<()> {
    let range = range.to_pages(page);
    let mut joined = StretchJoiner { pending: None, visit };
    let reached = if scannable.is_empty() {
        ControlFlow::Continue(range.start())
    } else {
        let wanted = wanted & scannable;
        scan(source, page, range, wanted, SCAN_PAGES, &mut joined)?
    };
    let ControlFlow::Continue(reached) = reached else {
        return Ok(());
    };
    // Mostly the page map ends there too, which one entry tells.
    if let Some(high) = AddressRange::new(reached, range.end())
        && source.words(WordFile::PageMap, page.index(reached), &mut [0])? == 1
        && read(source, page, high, wanted & IN_ENTRIES, &mut joined)?.is_break()
    {
        return Ok(());
    }
    _ = joined.finish();
    Ok(())
}

/// Populated pages after which a scan comes back, however long the stretch they lie in: some 5 ms of work.
const SCAN_PAGES: u64 = 1 << 20;

/// Visits what the scan finds, and returns how far it reaches.
fn scan(
    source: &dyn Source,
    page: PageSize,
    range: AddressRange,
    wanted: Categories,
    most: u64,
    joined: &mut StretchJoiner<'_, '_>,
) -> Result<ControlFlow<(), VirtualAddress>> {
    // "Written" is set on every page that nobody tracks. It is reported only together with the category that gives it a
    // meaning.
    let mut asked = wanted;
    if wanted.contains(Categories::WRITTEN) {
        asked |= Categories::WRITE_TRACKED;
    }
    // The limit may cut a huge mapping in two. It is delivered once all of it is known.
    let whole_bytes =
        if wanted.contains(Categories::HUGE) { page.bytes().saturating_mul(page.bytes() / 8) } else { page.bytes() };
    let mut found = [PageRegion::default(); 512];
    let mut start = range.start().get();
    while start < range.end().get() {
        let question =
            Scan { start, end: range.end().get(), any_of: ANY.bits(), returned: asked.bits(), max_pages: most };
        let (count, stopped) = source.scan(question, &mut found)?;
        let stretches = found.get(..count).unwrap_or_default();
        // The kernel collects stretches in a buffer of its own, with an entry for each page that a PMD maps, and
        // empties it when it is full. If it then comes to the end of the range, it still says that it stopped where the
        // buffer was last full (do_pagemap_scan: "the walk_end isn't set when ret is zero"). On ppc64le with the radix
        // MMU and pages of 64 KiB the buffer has 32 entries.
        let last = stretches.last().map_or(0, |stretch| stretch.end);
        let stopped = stopped.max(last);
        for stretch in stretches {
            let mut categories = Categories::from_bits_retain(stretch.categories);
            if !categories.contains(Categories::WRITE_TRACKED) {
                categories.remove(Categories::WRITTEN);
            }
            let ends = (VirtualAddress::new(stretch.start), VirtualAddress::new(stretch.end));
            let Some(range) = AddressRange::new(ends.0, ends.1) else {
                continue;
            };
            let categories = categories & wanted;
            if joined.push(PopulatedRange { range, categories }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if stopped <= start {
            break;
        }
        // The page limit was reached: the visitor decides whether to go on.
        let boundary = VirtualAddress::new(stopped - stopped % whole_bytes);
        if stopped < range.end().get() && count < found.len() && joined.finish_before(boundary).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        start = stopped;
    }
    Ok(ControlFlow::Continue(VirtualAddress::new(start)))
}

/// Entries read at a time: 64 KiB of them.
const BATCH: usize = 8192;

/// Visits what reads of every entry find.
fn read(
    source: &dyn Source,
    page: PageSize,
    range: AddressRange,
    wanted: Categories,
    joined: &mut StretchJoiner<'_, '_>,
) -> Result<ControlFlow<()>> {
    let (mut index, mut left) = (page.index(range.start()), range.pages(page));
    let mut entries = vec![PageMapEntry::default(); BATCH];
    let mut regions: Option<Vec<Region>> = None;
    while left > 0 {
        let batch = usize::try_from(left).unwrap_or(BATCH).min(BATCH);
        let into = entries.get_mut(..batch).unwrap_or_default();
        let read = source.words(WordFile::PageMap, index, as_words(into))?;
        let into = into.get(..read).unwrap_or_default();
        if read == 0 {
            break;
        }
        if push_entries(page, index, into, wanted, joined).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut done = read as u64;
        if done < left && into.iter().all(|entry| !categories_of(*entry).intersects(ANY)) {
            // Between regions there is nothing, and much of it. Where something is, the list of regions is not needed.
            let regions = match &mut regions {
                Some(regions) => regions,
                none => none.insert(maps_text::read(source, &mut Budget::unlimited())?.0),
            };
            let next = VirtualAddress::new((index + done) << page.shift());
            let after = regions.partition_point(|region| region.range.end() <= next);
            let Some(region) = regions.get(after) else {
                break;
            };
            done = done.max(page.index(region.range.start()).saturating_sub(index));
        }
        index += done;
        left = left.saturating_sub(done);
    }
    Ok(ControlFlow::Continue(()))
}

fn push_entries(
    page: PageSize,
    first: u64,
    entries: &[PageMapEntry],
    wanted: Categories,
    joined: &mut StretchJoiner<'_, '_>,
) -> ControlFlow<()> {
    for (entry, index) in entries.iter().zip(first..) {
        let categories = categories_of(*entry);
        if !categories.intersects(ANY) {
            continue;
        }
        let start = VirtualAddress::new(index << page.shift());
        let end = start.checked_add(page.bytes()).unwrap_or(VirtualAddress::new(u64::MAX));
        if let Some(range) = AddressRange::new(start, end) {
            let categories = categories & wanted;
            joined.push(PopulatedRange { range, categories })?;
        }
    }
    ControlFlow::Continue(())
}

fn categories_of(entry: PageMapEntry) -> Categories {
    let mut categories = Categories::empty();
    categories.set(Categories::PRESENT, entry.is_present());
    categories.set(Categories::SWAPPED, entry.is_swap_entry());
    categories.set(Categories::FILE, entry.is_file_or_shared());
    categories.set(Categories::SOFT_DIRTY, entry.is_soft_dirty());
    categories.set(Categories::GUARD, entry.is_guard());
    categories
}

/// Whether scans skip the region: a scan of its first page without conditions returns that page in every other region.
/// `None` where no scan reaches.
pub(super) fn is_passed_over(source: &dyn Source, start: VirtualAddress, page: PageSize) -> Result<Option<bool>> {
    let Some(end) = start.checked_add(page.bytes()) else {
        return Ok(None);
    };
    let question = Scan { start: start.get(), end: end.get(), max_pages: 1, ..Scan::default() };
    let (count, stopped) = source.scan(question, &mut [PageRegion::default()])?;
    Ok((count > 0 || stopped > start.get()).then_some(count == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::source::Identity;
    use crate::source::live;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A process with these regions, of which these pages are populated. Counts how often entries and regions are read.
    struct Counted {
        maps: String,
        populated: (u64, u64),
        reads: AtomicU32,
        lists: AtomicU32,
    }

    impl Source for Counted {
        fn identity(&self) -> Identity {
            Identity::default()
        }

        fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
            self.lists.fetch_add(u32::from(offset == 0), Ordering::Relaxed);
            let rest = &self.maps.as_bytes()[offset as usize..];
            into.extend_from_slice(rest);
            Ok(rest.len())
        }

        fn words(&self, _: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            for (entry, index) in into.iter_mut().zip(first..) {
                let is = self.populated.0 <= index && index < self.populated.1;
                *entry = u64::from(is) << 63;
            }
            Ok(into.len())
        }
    }

    /// What is found among `range` pages, of which `populated` are; and how often entries and regions were read.
    fn found(range: (u64, u64), regions: &[(u64, u64)], populated: (u64, u64)) -> (u64, u32, u32) {
        let page = PageSize::from_bytes(4096).expect("a power of two");
        let span = |first: u64, end: u64| {
            let at = |index: u64| VirtualAddress::new(index << page.shift());
            AddressRange::new(at(first), at(end)).expect("pages")
        };
        let line = |&(first, end): &(u64, u64)| format!("{:x}-{:x} rw-p 00000000 00:00 0\n", first << 12, end << 12);
        let source = Counted {
            maps: regions.iter().map(line).collect(),
            populated,
            reads: AtomicU32::new(0),
            lists: AtomicU32::new(0),
        };
        let mut pages = 0;
        let mut visit = |stretch: PopulatedRange| {
            pages += stretch.range.pages(page);
            ControlFlow::Continue(())
        };
        let mut joined = StretchJoiner { pending: None, visit: &mut visit };
        let range = span(range.0, range.1);
        let read = read(&source, page, range, Categories::PRESENT, &mut joined);
        assert!(read.expect("entries").is_continue());
        _ = joined.finish();
        let count = |counted: AtomicU32| counted.into_inner();
        (pages, count(source.reads), count(source.lists))
    }

    /// A scan of `bytes` of own memory that was written to, which comes back after `most` pages: the stretches until
    /// `until` says so.
    fn own_scan(memory: &[u8], most: u64, until: impl Fn(&PopulatedRange) -> bool) -> Vec<PopulatedRange> {
        let process = live::process(std::process::id()).map(Process::new);
        let process = process.expect("to attach to itself");
        let known = process.categories();
        let at = |address: usize| VirtualAddress::new(address as u64);
        let (start, end) = (memory.as_ptr().addr(), memory.as_ptr_range().end.addr());
        let range = AddressRange::new(at(start), at(end)).expect("bytes");
        let mut found = Vec::new();
        if known.contains(Categories::HUGE) {
            let mut visit = |stretch: PopulatedRange| {
                found.push(stretch);
                if until(&stretch) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let mut joined = StretchJoiner { pending: None, visit: &mut visit };
            let (source, page) = (&**process.source(), process.layout().page);
            let (range, wanted) = (range.to_pages(page), Categories::HUGE);
            let ended = scan(source, page, range, wanted, most, &mut joined);
            if ended.expect("a scan").is_continue() {
                _ = joined.finish();
            }
        } else {
            let reason = "this kernel's scan does not know huge mappings";
            crate::skips::skip("process::own_scan", reason);
        }
        found
    }

    #[test]
    fn a_scan_for_huge_mappings_comes_back_in_time_and_cuts_none() {
        let memory = vec![1u8; 32 << 20];
        let pages = |found: &[PopulatedRange]| found.iter().map(|one| one.range.len()).sum::<u64>();
        let whole = own_scan(&memory, SCAN_PAGES, |_| false);
        let parts = own_scan(&memory, 700, |_| false);
        assert_eq!(pages(&parts), pages(&whole));
        let huge = rustix::param::page_size() as u64;
        let huge = huge * (huge / 8);
        for pair in parts.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let touch = before.range.end() == after.range.start();
            let alike = before.categories == after.categories;
            assert!(!(touch && alike) || after.range.start().get() % huge == 0);
        }
        let first = own_scan(&memory, 700, |_| true);
        assert!(pages(&first) <= pages(&whole) / 2, "{first:?}");
    }

    #[test]
    fn the_list_of_regions_is_read_only_to_pass_over_holes_and_once() {
        let batch = BATCH as u64;
        // Small or dense ranges need no list.
        assert_eq!(found((0x100, 0x110), &[(0x100, 0x200)], (0x105, 0x108)), (3, 1, 0));
        let dense = (0x100, 0x100 + 4 * batch);
        assert_eq!(found(dense, &[dense], dense), (4 * batch, 4, 0));
        // A hole as large as the address space costs one read, and one list.
        let (first, last) = ((0x100, 0x200), ((1 << 34), (1 << 34) + 0x100));
        assert_eq!(found((0x100, last.1), &[first, last], ((1 << 34) + 1, (1 << 34) + 3)), (2, 2, 1));
        assert_eq!(found((0x100, 1 << 35), &[first], (0, 0)), (0, 1, 1));
    }
}
