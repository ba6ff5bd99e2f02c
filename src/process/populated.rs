//! Finds populated pages: by PAGEMAP_SCAN, or by reading every entry. Both find the same ranges.

use super::maps_text;
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::{AddressRange, PageMapEntry, PageSize, Region, VirtualAddress, WordFile};
use crate::source::{Categories, PageRegion, Scan, Source, as_words};

/// A run of pages whose page-map entries are not empty, all with the same categories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PopulatedRange {
    /// The addresses of whole pages.
    pub range: AddressRange,
    /// The categories of all these pages, as far as they were requested and [`categories`](super::Process::categories)
    /// contains them.
    pub categories: Categories,
}

/// The categories that make a page populated.
const ANY: Categories = Categories::PRESENT.union(Categories::SWAPPED);

/// The categories that a page-map entry shows without a scan.
pub(super) const IN_ENTRIES: Categories =
    ANY.union(Categories::FILE).union(Categories::SOFT_DIRTY).union(Categories::GUARD);

/// The number of populated pages after which a scan returns, even inside of a run: some 5 ms of work.
const SCAN_PAGES: u64 = 1 << 20;
/// The number of entries read at a time: 64 KiB.
const BATCH: usize = 8192;

/// The populated parts of a range, in address order, from [`populated`](super::Process::populated). The last item may
/// be an error.
#[must_use]
pub struct PopulatedRanges<'a> {
    source: &'a dyn Source,
    page: PageSize,
    /// The first address that was not examined.
    next: VirtualAddress,
    end: VirtualAddress,
    wanted: Categories,
    way: Way,
    /// The number of populated pages after which a scan returns.
    most: u64,
    scan_buffer: Vec<PageRegion>,
    entries: Vec<PageMapEntry>,
    /// The regions, to skip the holes between them.
    regions: Option<Vec<Region>>,
    budget: Budget,
    /// The ranges that the last system call found. Those from `next_range` on were not joined yet.
    ranges: Vec<PopulatedRange>,
    next_range: usize,
    /// The range joined so far. More may follow, because the kernel splits ranges where its buffer was full.
    pending: Option<PopulatedRange>,
    /// Where the last scan returned: a range that ends before it is complete.
    boundary: Option<VirtualAddress>,
}

/// How populated pages are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By PAGEMAP_SCAN, as far as it reaches.
    Scan,
    /// By reading entries, if the page map extends beyond the end of the scan.
    Above,
    /// By reading entries.
    Read,
    /// Everything was searched.
    Done,
}

impl<'a> PopulatedRanges<'a> {
    pub(super) fn new(
        source: &'a dyn Source,
        page: PageSize,
        range: AddressRange,
        wanted: Categories,
        scannable: Categories,
        budget: Budget,
    ) -> Self {
        let range = range.to_pages(page);
        let (way, known) = if scannable.is_empty() { (Way::Above, IN_ENTRIES) } else { (Way::Scan, scannable) };
        PopulatedRanges {
            source,
            page,
            next: range.start(),
            end: range.end(),
            wanted: wanted & known,
            way,
            most: SCAN_PAGES,
            scan_buffer: Vec::new(),
            entries: Vec::new(),
            regions: None,
            budget,
            ranges: Vec::new(),
            next_range: 0,
            pending: None,
            boundary: None,
        }
    }

    fn find(&mut self) -> Result<()> {
        self.ranges.clear();
        self.next_range = 0;
        match self.way {
            Way::Scan => self.scan(),
            Way::Above => {
                // Mostly the page map ends there too: one entry shows it.
                let is_covered = self.next < self.end
                    && self.source.words(WordFile::PageMap, self.page.index(self.next), &mut [0])? == 1;
                self.way = if is_covered { Way::Read } else { Way::Done };
                Ok(())
            }
            Way::Read => self.read(),
            Way::Done => Ok(()),
        }
    }

    fn scan(&mut self) -> Result<()> {
        // "Written" is set on every page without write tracking, so it is reported only for pages with tracking.
        let mut asked = self.wanted;
        if asked.contains(Categories::WRITTEN) {
            asked |= Categories::WRITE_TRACKED;
        }
        // The limit may split a huge mapping, which is returned once all of it was scanned.
        let page = self.page.bytes();
        let whole_bytes = if asked.contains(Categories::HUGE) { page.saturating_mul(page / 8) } else { page };
        self.scan_buffer.resize(512, PageRegion::default());
        let (start, end) = (self.next.get(), self.end.get());
        let question = Scan { start, end, any_of: ANY.bits(), returned: asked.bits(), max_pages: self.most };
        let (count, stopped) = self.source.scan(question, &mut self.scan_buffer)?;
        let stretches = self.scan_buffer.get(..count).unwrap_or_default();
        // The kernel collects ranges in a buffer, with an entry for each page that a PMD maps, and empties it when it
        // is full. If it then reaches the end of the range, it still reports that it stopped where the buffer was last
        // full (do_pagemap_scan: "the walk_end isn't set when ret is zero"). On ppc64le with the radix MMU and pages of
        // 64 KiB the buffer has 32 entries.
        let last = stretches.last().map_or(0, |stretch| stretch.end);
        let stopped = stopped.max(last);
        for stretch in stretches {
            let mut categories = Categories::from_bits_retain(stretch.categories);
            if !categories.contains(Categories::WRITE_TRACKED) {
                categories.remove(Categories::WRITTEN);
            }
            let range = AddressRange::new(VirtualAddress::new(stretch.start), VirtualAddress::new(stretch.end));
            let categories = categories & self.wanted;
            self.ranges.extend(range.map(|range| PopulatedRange { range, categories }));
        }
        if stopped <= start || stopped >= end {
            self.way = Way::Above;
            self.wanted &= IN_ENTRIES;
        } else if count < self.scan_buffer.len() {
            // The page limit was reached: the caller decides whether to continue.
            self.boundary = Some(VirtualAddress::new(stopped - stopped % whole_bytes));
        }
        self.next = VirtualAddress::new(stopped.max(start));
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let page = self.page;
        let index = page.index(self.next);
        let left = page.index(self.end).saturating_sub(index);
        self.entries.resize(usize::try_from(left).unwrap_or(BATCH).min(BATCH), PageMapEntry::default());
        let read = self.source.words(WordFile::PageMap, index, as_words(&mut self.entries))?;
        let entries = self.entries.get(..read).unwrap_or_default();
        let address = |index: u64| VirtualAddress::new(index.saturating_mul(page.bytes()));
        for (entry, index) in entries.iter().zip(index..) {
            let categories = categories_of(*entry);
            if categories.intersects(ANY)
                && let Some(range) = AddressRange::new(address(index), address(index + 1))
            {
                let categories = categories & self.wanted;
                self.ranges.push(PopulatedRange { range, categories });
            }
        }
        let mut next = index + read as u64;
        if read > 0 && self.ranges.is_empty() && (read as u64) < left {
            // Holes between regions are empty and large. Where pages are populated, the list of regions is not needed.
            let regions = match &mut self.regions {
                Some(regions) => regions,
                none => none.insert(maps_text::read(self.source, &mut self.budget)?.0),
            };
            let after = regions.partition_point(|region| region.range.end() <= address(next));
            let start = regions.get(after).map_or(self.end, |region| region.range.start());
            next = next.max(page.index(start));
        }
        self.next = address(next);
        if read == 0 || self.next >= self.end {
            self.way = Way::Done;
        }
        Ok(())
    }

    /// Returns the next joined range, once it is known to be complete.
    fn join(&mut self) -> Option<PopulatedRange> {
        while let Some(&next) = self.ranges.get(self.next_range) {
            self.next_range += 1;
            match &mut self.pending {
                Some(last) if last.range.end() == next.range.start() && last.categories == next.categories => {
                    let whole = AddressRange::new(last.range.start(), next.range.end());
                    last.range = whole.unwrap_or(last.range);
                }
                joined => {
                    if let Some(done) = joined.replace(next) {
                        return Some(done);
                    }
                }
            }
        }
        if self.way == Way::Done {
            return self.pending.take();
        }
        let boundary = self.boundary.take()?;
        let PopulatedRange { range, categories } = self.pending.take()?;
        let part = |start, end| Some(PopulatedRange { range: AddressRange::new(start, end)?, categories });
        self.pending = part(range.start().max(boundary), range.end());
        part(range.start(), range.end().min(boundary))
    }
}

impl Iterator for PopulatedRanges<'_> {
    type Item = Result<PopulatedRange>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(done) = self.join() {
                return Some(Ok(done));
            }
            if self.way == Way::Done {
                return None;
            }
            if let Err(error) = self.find() {
                self.way = Way::Done;
                self.ranges.clear();
                self.pending = None;
                return Some(Err(error));
            }
        }
    }
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

/// Returns whether scans skip the region, by a scan of its first page without conditions, which returns that page in
/// every other region. `None` beyond the reach of scans.
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
    use crate::access::Identity;
    use crate::process::Process;
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
                let is_populated = self.populated.0 <= index && index < self.populated.1;
                *entry = u64::from(is_populated) << 63;
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
        let range = span(range.0, range.1);
        let budget = Budget::unlimited();
        let way = Way::Read;
        let all = PopulatedRanges::new(&source, page, range, Categories::PRESENT, Categories::empty(), budget);
        let all = PopulatedRanges { way, ..all };
        let pages = all.map(|stretch| stretch.expect("entries").range.pages(page)).sum();
        let count = |counted: AtomicU32| counted.into_inner();
        (pages, count(source.reads), count(source.lists))
    }

    /// The first stretches of own memory that was written to, by scans that come back after `most` pages.
    fn own_scan(memory: &[u8], most: u64, stretches: usize) -> Vec<PopulatedRange> {
        let process = live::process(std::process::id()).map(Process::new);
        let process = process.expect("to attach to itself");
        if !process.categories().contains(Categories::HUGE) {
            crate::skips::skip("process::own_scan", "this kernel's scan does not know huge mappings");
            return Vec::new();
        }
        let range = AddressRange::of(memory).expect("bytes");
        let scan = PopulatedRanges { most, ..process.populated(range, Categories::HUGE) };
        scan.take(stretches).collect::<Result<_>>().expect("a scan")
    }

    #[test]
    fn a_scan_for_huge_mappings_comes_back_in_time_and_cuts_none() {
        let memory = vec![1u8; 32 << 20];
        let pages = |found: &[PopulatedRange]| found.iter().map(|one| one.range.len()).sum::<u64>();
        let whole = own_scan(&memory, SCAN_PAGES, usize::MAX);
        let parts = own_scan(&memory, 700, usize::MAX);
        assert_eq!(pages(&parts), pages(&whole));
        let huge = rustix::param::page_size() as u64;
        let huge = huge * (huge / 8);
        for pair in parts.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let touch = before.range.end() == after.range.start();
            let alike = before.categories == after.categories;
            assert!(!(touch && alike) || after.range.start().get() % huge == 0);
        }
        let first = own_scan(&memory, 700, 1);
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
