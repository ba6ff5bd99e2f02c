//! Which stretches of the address space to read, and how: the part of a sweep that keeps its cost to what is populated.
//!
//! Reading the entry of a small page costs some 30 ns, scanning it with PAGEMAP_SCAN 11 ns, and either costs next to
//! nothing in empty memory. So a scan probes the beginning of a large region. If it finds little, scans of growing size
//! look for the next populated stretch. If it finds much, the following stretch is read without a probe, and the
//! distance to the next probe grows as long as stretches stay full. A wrong guess costs a few percent. If only states
//! are needed, pages that a scan finds present are not read, and scans go on as long as they find long stretches.

use super::super::address_space::AddressSpace;
use super::super::page::Evidence;
use crate::kernel::{AddressRange, VirtualAddress};
use crate::process::{self, Categories};
use std::collections::VecDeque;

/// Entries of one read: 64 KiB, beyond which reads become no cheaper.
pub(super) const READ_PAGES: u64 = 8192;
/// Pages that are read in the time that going to the next region takes.
const REGION_PAGES: u64 = 8;
/// A region of at most this many pages is read without a scan.
const SMALL_PAGES: u64 = 1024;
/// Pages of the first scan of a large region, and of each probe among dense pages.
const PROBE_PAGES: u64 = 4096;
/// Pages that are read straight, at most, before the next probe.
const STRAIGHT_PAGES: u64 = 1 << 18;
/// Empty entries between two populated stretches that are cheaper to read than a second system call.
const GAP_PAGES: u64 = 64;
/// Pages of an empty stretch that come together when the caller looks at each.
const SKIP_PAGES: u64 = 1 << 19;
/// Pages of an empty stretch whose backing content is read together.
const CONTENT_PAGES: u64 = 1 << 16;
/// The most populated stretches that one scan may return.
const MOST_STRETCHES: usize = 4096;
/// Populated pages after which a scan ends, so that a sweep can be stopped: some 5 ms of work.
const SCAN_PAGES: u64 = 1 << 20;
/// Average pages of a populated stretch below which scanning takes longer than reading the pages.
const LONG_PAGES: u64 = 8;

/// A stretch of pages that comes as one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlanStep {
    /// Index of the region; `None` for a hole between regions.
    pub region: Option<usize>,
    pub range: AddressRange,
    pub action: Action,
}

/// What to do about a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Nothing: it is known to be empty.
    Skip,
    /// Read every entry.
    Read,
    /// Read one entry for each huge mapping.
    ReadHuge,
    /// Nothing: every page is known to be present, and only states are needed.
    Present,
}

/// Plans a sweep, step by step.
pub(super) struct Plan {
    space: AddressSpace,
    need: Evidence,
    categories: Categories,
    /// Bytes of a huge mapping, if one entry for each is enough.
    huge_bytes: Option<u64>,
    spans: VecDeque<AddressRange>,
    /// Regions before this one end before the next span.
    next: usize,
    /// The region being planned, and what is left of it.
    current: Option<PlannedRegion>,
    steps: VecDeque<PlanStep>,
}

struct PlannedRegion {
    region: usize,
    left: AddressRange,
    /// Pages of the next scan.
    window: u64,
    /// Pages to read straight after the next dense probe.
    straight: u64,
}

impl Plan {
    /// Plans a sweep of `spans` (whole pages, in order, disjoint).
    pub fn new(space: &AddressSpace, spans: &[AddressRange], need: Evidence) -> Self {
        let page = space.page_size();
        let target = space.target();
        // Huge mappings are found even if nobody asks for them: they cost less to read.
        let categories = if need.has_entries() { Categories::HUGE | Categories::ZERO } else { Categories::PRESENT };
        let categories = categories & target.process.categories();
        let huge_bytes = target
            .machine
            .huge_page_bytes()
            .filter(|bytes| categories.contains(Categories::HUGE) && bytes.is_power_of_two() && *bytes > page.bytes());
        Plan {
            space: space.clone(),
            need,
            categories,
            huge_bytes,
            spans: spans.iter().map(|span| span.to_pages(page)).collect(),
            next: 0,
            current: None,
            steps: VecDeque::new(),
        }
    }

    /// The next step, or `None` at the end.
    pub fn next(&mut self) -> process::Result<Option<PlanStep>> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Ok(Some(self.cut(step)));
            }
            if self.current.is_some() {
                self.plan_region()?;
            } else if !self.next_region() {
                return Ok(None);
            }
        }
    }

    /// How much work a step is, in pages that are read.
    pub fn weight(&self, step: &PlanStep) -> u64 {
        let pages = step.range.pages(self.space.page_size());
        match step.action {
            Action::Read => pages + REGION_PAGES,
            // Where map counts differ, a word of each file for each page is held.
            Action::ReadHuge if self.need.contains(Evidence::COUNTS) => pages,
            Action::ReadHuge if self.need.intersects(Evidence::WORDS) => pages / 4,
            Action::ReadHuge => pages / 32,
            // Nothing to read, but the caller looks at each page.
            Action::Skip if self.need.contains(Evidence::EACH) => pages / 64,
            // A few queries of its backing content, unless that changes from page to page.
            Action::Skip if self.reads_content(step) => pages / 16,
            Action::Skip | Action::Present => 0,
        }
    }

    /// Whether page tables are read of a region in which neither the page map nor a scan finds anything.
    fn reads_device(&self, region: usize) -> bool {
        let viewed = self.space.viewed_regions().get(region);
        self.need.contains(Evidence::DEVICE_FRAMES) && viewed.is_some_and(|viewed| self.space.is_of_device(viewed))
    }

    /// Whether the backing content of an empty stretch is read.
    fn reads_content(&self, step: &PlanStep) -> bool {
        let region = step.region.and_then(|index| self.space.viewed_regions().get(index));
        region.is_some_and(|viewed| self.space.asks_content(self.need, viewed) || self.space.has_slots(viewed))
    }

    /// Cuts an empty stretch into parts if each of its pages costs work, so that the sweep can be stopped between them.
    fn cut(&mut self, step: PlanStep) -> PlanStep {
        let most = match step.action {
            Action::Skip if self.reads_content(&step) => CONTENT_PAGES,
            Action::Skip if self.need.contains(Evidence::EACH) => SKIP_PAGES,
            _ => return step,
        };
        let (range, rest) = split(step.range, self.aligned(step.range, most));
        let rest = rest.map(|range| PlanStep { range, ..step });
        rest.into_iter().for_each(|rest| self.steps.push_front(rest));
        PlanStep { range, ..step }
    }

    /// Goes on to the next region that a span touches. False at the end.
    fn next_region(&mut self) -> bool {
        let Some(span) = self.spans.pop_front() else {
            return false;
        };
        self.next = self.space.region_from(self.next, span.start());
        let index = self.next;
        let here = self.space.viewed_regions().get(index).and_then(|viewed| viewed.range().intersection(span));
        let hole_end = here.map_or(span.end(), |here| here.start());
        if let (Some(range), true) = (AddressRange::new(span.start(), hole_end), self.need.contains(Evidence::HOLES)) {
            self.push(None, range, Action::Skip);
        }
        if let Some(here) = here {
            if let Some(rest) = AddressRange::new(here.end(), span.end()) {
                self.spans.push_front(rest);
            }
            self.current =
                Some(PlannedRegion { region: index, left: here, window: PROBE_PAGES, straight: PROBE_PAGES });
        }
        true
    }

    /// Plans a part of the current region.
    fn plan_region(&mut self) -> process::Result<()> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        let page = self.space.page_size();
        if current.left.pages(page) <= SMALL_PAGES {
            self.read(current.region, current.left, Action::Read);
            return Ok(());
        }
        if !self.space.target().process.has_scan() || self.reads_device(current.region) {
            // A limited number of pages at a time: a region may be as large as the address space.
            let (now, rest) = split(current.left, self.aligned(current.left, STRAIGHT_PAGES));
            self.read(current.region, now, Action::Read);
            self.current = rest.map(|left| PlannedRegion { left, ..current });
            return Ok(());
        }
        let (window, _) = split(current.left, self.aligned(current.left, current.window));
        let found = self.scan(current.region, window)?;
        let seen = found.end.get() - window.start().get();
        let Some(left) = AddressRange::new(found.end, current.left.end()) else {
            return Ok(());
        };
        current.left = left;
        let is_dense = found.small_pages > (seen >> page.shift()) / 4;
        let is_known = !self.need.has_entries() && !found.is_fragmented;
        if is_dense && !is_known {
            // The pages that follow are most likely as dense.
            let straight = self.aligned(current.left, current.straight);
            let (straight, rest) = split(current.left, straight);
            self.read(current.region, straight, Action::Read);
            current.straight = (current.straight * 2).min(STRAIGHT_PAGES);
            current.window = PROBE_PAGES;
            match rest {
                Some(rest) => current.left = rest,
                None => return Ok(()),
            }
        } else {
            current.straight = PROBE_PAGES;
            current.window = current.window.saturating_mul(2);
        }
        self.current = Some(current);
        Ok(())
    }

    /// Scans `window` and plans reads of what is populated in it.
    fn scan(&mut self, region: usize, window: AddressRange) -> process::Result<ScanResult> {
        let page = self.space.page_size();
        let huge_bytes = self.huge_bytes.filter(|_| {
            // Hugetlb pages come in several sizes: one entry does not stand for a fixed number of pages.
            self.space
                .viewed_regions()
                .get(region)
                .is_some_and(|viewed| viewed.backing != super::super::classify::Backing::Hugetlb)
        });
        let mut result = ScanResult { end: window.end(), small_pages: 0, is_fragmented: false };
        let mut populated = 0;
        let mut stretches = 0;
        let mut parts: Vec<(AddressRange, Action)> = Vec::new();
        for stretch in self.space.target().process.populated(window, self.categories) {
            let process::PopulatedRange { range, categories, .. } = stretch?;
            let Some(range) = range.intersection(window) else {
                continue;
            };
            let is_huge = categories.contains(Categories::HUGE)
                && huge_bytes.is_some_and(|bytes| range.start().get() % bytes == 0 && range.len() % bytes == 0);
            let pages = range.pages(page);
            populated += pages;
            stretches += 1;
            if is_huge {
                parts.push((range, Action::ReadHuge));
            } else if categories.contains(Categories::PRESENT) {
                result.small_pages += pages;
                parts.push((range, Action::Present));
            } else {
                result.small_pages += pages;
                match parts.last_mut() {
                    Some((last, Action::Read))
                        if range.start().get().saturating_sub(last.end().get()) <= GAP_PAGES * page.bytes() =>
                    {
                        *last = AddressRange::new(last.start(), range.end()).unwrap_or(*last);
                    }
                    _ => parts.push((range, Action::Read)),
                }
            }
            if parts.len() >= MOST_STRETCHES || populated >= SCAN_PAGES {
                result.end = range.end();
                break;
            }
        }
        result.is_fragmented = result.small_pages < stretches * LONG_PAGES;
        let mut from = window.start();
        for (range, action) in parts {
            if let Some(gap) = AddressRange::new(from, range.start()) {
                self.push(Some(region), gap, Action::Skip);
            }
            self.read(region, range, action);
            from = range.end();
        }
        if let Some(gap) = AddressRange::new(from, result.end) {
            self.push(Some(region), gap, Action::Skip);
        }
        Ok(result)
    }

    /// Plans reads of `range`, in parts that do not cut huge pages.
    fn read(&mut self, region: usize, range: AddressRange, action: Action) {
        let pages = match action {
            Action::ReadHuge if !self.need.contains(Evidence::COUNTS) => 4 * READ_PAGES,
            _ => READ_PAGES,
        };
        let mut left = Some(range);
        while let Some(range) = left {
            let (part, rest) = split(range, self.aligned(range, pages));
            self.push(Some(region), part, action);
            left = rest;
        }
    }

    fn push(&mut self, region: Option<usize>, range: AddressRange, action: Action) {
        // Two scans that found nothing make one stretch.
        if let (Some(last), Action::Skip) = (self.steps.back_mut(), action)
            && last.action == Action::Skip
            && last.region == region
            && last.range.end() == range.start()
            && let Some(both) = AddressRange::new(last.range.start(), range.end())
        {
            last.range = both;
            return;
        }
        self.steps.push_back(PlanStep { region, range, action });
    }

    /// The first multiple of `pages` pages (a power of two) after the start of `range`. So huge pages are not cut, and
    /// successive sweeps cut at the same places even if the range starts elsewhere: a watch then need not compare page
    /// by page.
    fn aligned(&self, range: AddressRange, pages: u64) -> VirtualAddress {
        let bytes = pages.saturating_mul(self.space.page_size().bytes());
        let next = (range.start().get() / bytes).saturating_add(1);
        VirtualAddress::new(next.saturating_mul(bytes))
    }
}

/// What a scan found.
struct ScanResult {
    /// Where it ended: it may stop before the end of its window.
    end: VirtualAddress,
    /// Populated pages that are not mapped by huge entries.
    small_pages: u64,
    /// Whether these come in short stretches.
    is_fragmented: bool,
}

/// Splits `range` at `at`.
fn split(range: AddressRange, at: VirtualAddress) -> (AddressRange, Option<AddressRange>) {
    match (AddressRange::new(range.start(), at.min(range.end())), AddressRange::new(at, range.end())) {
        (Some(first), rest) => (first, rest),
        (None, _) => (range, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::{HUGE, World, region};

    #[test]
    fn without_a_scan_the_plan_of_a_huge_region_stays_small() {
        const PAGES: u64 = 1 << 30;
        let world = World { scans: false, ..World::new([region(0x1000, PAGES)]) };
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let mut plan = Plan::new(&space, &space.spans(), Evidence::ENTRIES);
        let (mut pages, mut most) = (0, 0);
        while let Some(step) = plan.next().expect("a step") {
            assert_eq!(step.action, Action::Read);
            pages += step.range.pages(space.page_size());
            most = most.max(plan.steps.len() as u64);
        }
        assert_eq!(pages, PAGES);
        assert!(most <= STRAIGHT_PAGES / READ_PAGES, "{most} steps at a time");
    }

    #[test]
    fn with_map_counts_fewer_huge_mappings_are_read_at_once() {
        const HUGE_PAGES: u64 = 80;
        let mut world = World { scans: true, ..World::new([region(0, HUGE_PAGES * HUGE)]) };
        for part in 0..HUGE_PAGES {
            world.maps_huge(part * HUGE, (100 + part) * HUGE);
        }
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        for (need, most) in [(Evidence::COUNTS | Evidence::FLAGS, READ_PAGES), (Evidence::FLAGS, 2 * READ_PAGES)] {
            let mut plan = Plan::new(&space, &space.spans(), need);
            let (mut pages, mut longest) = (0, 0);
            while let Some(step) = plan.next().expect("a step") {
                assert_eq!(step.action, Action::ReadHuge);
                pages += step.range.pages(space.page_size());
                longest = longest.max(step.range.pages(space.page_size()));
                assert!(plan.weight(&step) <= READ_PAGES);
            }
            assert_eq!((pages, longest), (HUGE_PAGES * HUGE, most));
        }
    }

    #[test]
    fn the_backing_content_of_an_untouched_file_is_read_in_pieces() {
        const PAGES: u64 = 1 << 30;
        let mut file = region(0x1000, PAGES);
        (file.inode, file.device.major) = (7, 8);
        let world = World { scans: true, ..World::new([file]) };
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        for (need, most) in [(Evidence::CONTENT, CONTENT_PAGES), (Evidence::empty(), PAGES)] {
            let mut plan = Plan::new(&space, &space.spans(), need);
            let (mut pages, mut longest, mut weight) = (0, 0, 0);
            while let Some(step) = plan.next().expect("a step") {
                assert_eq!(step.action, Action::Skip);
                pages += step.range.pages(space.page_size());
                longest = longest.max(step.range.pages(space.page_size()));
                weight += plan.weight(&step);
            }
            assert_eq!(pages, PAGES);
            assert!(longest <= most, "{longest} pages at a time");
            assert_eq!(weight > 0, need.contains(Evidence::CONTENT));
        }
    }
}
