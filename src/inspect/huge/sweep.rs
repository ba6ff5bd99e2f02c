//! A sweep over ranges, in steps of a huge page.

use super::super::account::ZeroPieces;
use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::page::{Evidence, Page};
use super::super::pins::registered_buffers;
use super::super::region::ViewedRegion;
use super::super::sweep::Sweep;
use super::super::{Result, Step};
use super::rules::{HugeRegion, HugeRules, OfRegion};
use super::stretch::Stretch;
use super::tally::{HugeReport, HugeTally};
use crate::budget::Budget;
use crate::kernel::huge::HugeChoice;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Kind, Permissions, State, VirtualAddress};
use crate::process::{Categories, HugeSettings};
use crate::report::{KnownPins, Reason};
use std::collections::VecDeque;

/// The zero-filled subpages of a huge page.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HugeZeros {
    /// The addresses of the huge page.
    pub range: AddressRange,
    /// The addresses of the subpages, neighbours joined.
    pub pieces: Vec<AddressRange>,
}

/// A sweep that finds why the memory of ranges is not on huge pages. Dropping it stops the worker threads.
#[must_use]
pub struct HugeSweep {
    counter: Counter,
    /// The pins that are known, and why not all.
    pins: (KnownPins, Option<Reason>),
    pages: Sweep,
    budget: Budget,
    /// The number of pages that were visited. `total` is the number of pages of the ranges.
    done: u64,
    total: u64,
    zeros: Option<ZeroPieces>,
    /// The huge pages whose contents are still to be read.
    unread: VecDeque<AddressRange>,
    /// The end of the last huge page that was found. Its pages may be in several runs.
    found_to: VirtualAddress,
    zero_bytes: u64,
    unknown_bytes: u64,
}

impl AddressSpace {
    /// Begins a sweep that finds why the memory of `ranges` is not on huge pages. The ranges are in order and disjoint.
    /// Each place of a huge page that they touch is swept whole. With `content`, huge pages are read to find
    /// zero-filled subpages, without a page fault. The space must have all regions ([`AddressSpace::of`]).
    ///
    /// # Errors
    /// Fails if the settings of the kernel or the smaps of the process cannot be read.
    pub fn huge(&self, ranges: &[AddressRange], content: bool, budget: &Budget) -> Result<HugeSweep> {
        let (machine, process) = (&self.target().machine, &self.target().process);
        let bytes = self.huge_bytes();
        let rules = HugeRules {
            kernel: self.kernel(),
            settings: machine.huge_settings()?,
            bytes,
            pages: bytes >> self.page_size().shift(),
            process: process.may_have_huge_pages()?,
            files: machine.kernel_option("CONFIG_READ_ONLY_THP_FOR_FS"),
        };
        // Without PAGEMAP_SCAN, the flags at least show which pages are in no large folio.
        let is_told = process.categories().contains(Categories::HUGE);
        let flags = if is_told { Evidence::empty() } else { Evidence::FLAGS };
        let need = Evidence::KINDS | Evidence::COUNTS | Evidence::HUGE | Evidence::CONTENT | Evidence::PINS | flags;
        let buffers = registered_buffers(process, self.page_size()).map_err(Reason::from);
        let pins = match (self.why_unknown(Evidence::PINS)?, &buffers) {
            // The records of all frames have the references of buffers too.
            (None, _) => (KnownPins::All, None),
            (Some(reason), Ok(_)) => (KnownPins::Registered, Some(reason)),
            (Some(_), Err(reason)) => (KnownPins::None, Some(reason.clone())),
        };
        let buffers = buffers.unwrap_or_default();
        let smaps = process.smaps(&mut budget.clone())?;
        let pages = self.pages(&self.whole_places(ranges), self.obtainable(need) | Evidence::ENTRIES);
        Ok(HugeSweep {
            counter: Counter { space: self.clone(), rules, smaps, buffers, current: None, tally: HugeTally::default() },
            pins,
            pages: pages.with_budget(budget.clone()),
            budget: budget.clone(),
            done: 0,
            total: ranges.iter().map(|range| range.pages(self.page_size())).sum(),
            zeros: content.then(ZeroPieces::default),
            unread: VecDeque::new(),
            found_to: VirtualAddress::default(),
            zero_bytes: 0,
            unknown_bytes: 0,
        })
    }

    /// Returns the places of huge pages that the ranges touch, each cut to its region.
    fn whole_places(&self, ranges: &[AddressRange]) -> Vec<AddressRange> {
        let bytes = self.huge_bytes();
        let mut all: Vec<AddressRange> = Vec::new();
        for region in self.viewed_regions().iter().map(ViewedRegion::range) {
            let first = ranges.partition_point(|range| range.end() <= region.start());
            let touching = ranges.iter().skip(first).map_while(|range| range.intersection(region));
            for part in touching {
                let start = part.start().get() / bytes * bytes;
                let start = all.last().map_or(start, |last| last.end().get().max(start));
                let end = part.end().get().checked_next_multiple_of(bytes).unwrap_or(u64::MAX);
                let places = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
                all.extend(places.and_then(|places| places.intersection(region)));
            }
        }
        all
    }
}

impl HugeSweep {
    /// Returns the next step: a huge page with zero-filled subpages, or the progress. Returns `None` after the last
    /// one.
    ///
    /// # Errors
    /// Fails like [`Sweep::next`].
    pub fn next(&mut self) -> Result<Option<Step<HugeZeros>>> {
        while let Some(range) = self.unread.pop_front() {
            if let Some(zeros) = self.read(range)? {
                return Ok(Some(Step::Found(zeros)));
            }
        }
        let Some(chunk) = self.pages.next()? else {
            self.counter.end_region();
            return Ok(None);
        };
        let done = self.done;
        self.done += chunk.pages;
        if let (Some(index), Some(viewed)) = (chunk.region_index, chunk.region) {
            self.counter.begin(index, viewed);
            for page in chunk.pages() {
                self.counter.add(&page);
                let is_huge = page.is_pmd_mapped() == Some(true) && page.kind != Some(Kind::HugeZero);
                if self.zeros.is_some() && is_huge {
                    let range = page.range(self.counter.space.page_size());
                    let places = range.into_iter().flat_map(|range| self.counter.places(range));
                    self.unread.extend(places.filter(|place| place.start() >= self.found_to));
                    self.found_to = self.unread.back().map_or(self.found_to, |last| last.end());
                }
            }
        }
        Ok(Some(Step::Visited { done, total: self.total }))
    }

    /// Returns the report, which is complete after the last step.
    pub fn report(&mut self) -> HugeReport {
        self.counter.end_region();
        self.counter.tally.report(&self.counter.rules)
    }

    /// Returns the pins that are known, and the reason if not all are.
    pub fn known_pins(&self) -> (KnownPins, Option<&Reason>) {
        (self.pins.0, self.pins.1.as_ref())
    }

    /// Returns the settings that the report is based on.
    pub fn settings(&self) -> &HugeSettings {
        &self.counter.rules.settings
    }

    /// Returns the bytes of zero-filled subpages of huge pages, and of subpages that could not be read. Returns `None`
    /// if no contents were asked for.
    pub fn zeros(&self) -> Option<(u64, u64)> {
        self.zeros.as_ref().map(|_| (self.zero_bytes, self.unknown_bytes))
    }

    /// Returns the ranges of regions that changed during the sweep.
    pub fn changed_ranges(&self) -> &[AddressRange] {
        self.pages.changed_ranges()
    }

    fn read(&mut self, range: AddressRange) -> Result<Option<HugeZeros>> {
        let Some(zeros) = &mut self.zeros else {
            return Ok(None);
        };
        let (pieces, unknown) = zeros.find(&self.counter.space, range, &mut self.budget)?;
        self.unknown_bytes += unknown;
        self.zero_bytes += pieces.iter().map(|piece| piece.len()).sum::<u64>();
        Ok((!pieces.is_empty()).then_some(HugeZeros { range, pieces }))
    }
}

/// Assigns the pages of a region to places of huge pages.
struct Counter {
    space: AddressSpace,
    rules: HugeRules,
    smaps: Vec<Smaps>,
    /// The pages of buffers that are registered with io_uring, in order.
    buffers: Vec<AddressRange>,
    current: Option<CurrentRegion>,
    tally: HugeTally,
}

/// The region that is being swept.
struct CurrentRegion {
    index: usize,
    range: AddressRange,
    permissions: Permissions,
    offset: u64,
    backing: Backing,
    mount: Option<HugeChoice>,
    smaps: Smaps,
    reasons: OfRegion,
    place: Option<(u64, Stretch)>,
}

impl CurrentRegion {
    fn facts(&self) -> HugeRegion<'_> {
        let &CurrentRegion { range, permissions, offset, backing, mount, ref smaps, .. } = self;
        HugeRegion { range, permissions, offset, backing, mount, smaps }
    }
}

impl Counter {
    /// Begins a region, unless it is the current one.
    fn begin(&mut self, index: usize, viewed: &ViewedRegion) {
        if self.current.as_ref().is_some_and(|current| current.index == index) {
            return;
        }
        self.end_region();
        let range = viewed.range();
        let of_region = Smaps::at(&self.smaps, range.start());
        let mut current = CurrentRegion {
            index,
            range,
            permissions: viewed.region.permissions,
            offset: viewed.region.offset,
            backing: viewed.backing,
            mount: match viewed.backing {
                Backing::Shmem => self.space.target().machine.huge_option(viewed.region.device),
                _ => None,
            },
            smaps: of_region.cloned().unwrap_or_else(|| Smaps::of(range)),
            reasons: OfRegion::default(),
            place: None,
        };
        current.reasons = self.rules.of_region(&current.facts());
        self.current = Some(current);
    }

    fn add(&mut self, page: &Page) {
        let (bytes, size) = (self.rules.bytes, self.space.page_size());
        let (mut at, mut left) = (page.address.get(), page.pages);
        while left > 0 {
            let number = at / bytes;
            let whole = left / self.rules.pages;
            let is_new = self.place().is_none_or(|place| place != number);
            if is_new {
                self.end_place();
            }
            let taken = if page.state() == State::Untouched && is_new && at.is_multiple_of(bytes) && whole > 0 {
                // An empty reservation, which may be as large as the address space, is counted at once.
                let stretch = Stretch::of_untouched(page, self.rules.pages);
                self.count(&stretch, number, whole);
                whole * self.rules.pages
            } else {
                let end = (number + 1).saturating_mul(bytes);
                let taken = left.min(((end - at) >> size.shift()).max(1));
                if let Some(current) = &mut self.current {
                    let (_, stretch) = current.place.get_or_insert_with(|| (number, Stretch::default()));
                    let small = stretch.small;
                    stretch.add(page, taken);
                    let part = AddressRange::of_length(VirtualAddress::new(at), taken << size.shift());
                    let is_in_buffer = || part.is_some_and(|part| part.within(&self.buffers).next().is_some());
                    stretch.is_held |= stretch.small > small && is_in_buffer();
                }
                taken
            };
            left -= taken;
            at = at.saturating_add(taken << size.shift());
        }
    }

    /// Returns the number of the current place.
    fn place(&self) -> Option<u64> {
        self.current.as_ref()?.place.as_ref().map(|(number, _)| *number)
    }

    fn end_place(&mut self) {
        let place = self.current.as_mut().and_then(|current| current.place.take());
        if let Some((number, stretch)) = place {
            self.count(&stretch, number, 1);
        }
    }

    /// Counts `times` equal places from `number` on.
    fn count(&mut self, stretch: &Stretch, number: u64, times: u64) {
        let Some(current) = &self.current else {
            return;
        };
        let facts = current.facts();
        let is_whole = self.rules.places(&facts).holds(number);
        let page = self.space.page_size().bytes();
        let at = |place: u64| VirtualAddress::new(place.saturating_mul(self.rules.bytes));
        let places = AddressRange::new(at(number), at(number.saturating_add(times)));
        let Some(range) = places.and_then(|places| places.intersection(current.range)) else {
            return;
        };
        self.tally.add(&self.rules, (&facts, &current.reasons), (stretch, is_whole), (times, range), page);
    }

    fn end_region(&mut self) {
        self.end_place();
        if let Some(current) = self.current.take() {
            self.tally.end_region(current.index);
        }
    }

    /// Returns the places of huge pages that a range touches.
    fn places(&self, range: AddressRange) -> Vec<AddressRange> {
        let first = range.start().get() / self.rules.bytes * self.rules.bytes;
        let starts = (first..range.end().get()).step_by(usize::try_from(self.rules.bytes).unwrap_or(1));
        starts.filter_map(|start| AddressRange::of_length(VirtualAddress::new(start), self.rules.bytes)).collect()
    }
}
