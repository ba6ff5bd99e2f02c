//! What a sweep reads and delivers: the raw words of a stretch of one region (one of each file for each entry, in
//! parallel vectors), and the pages made from them on the fly.

use super::super::address_space::AddressSpace;
use super::super::classify::{Backing, KernelBehaviour, PageObservation, RegionFacts, classify};
use super::super::page::{Facts, Page, StateSet};
use super::super::region::ViewedRegion;
use crate::kernel::physical::Zones;
use crate::kernel::{AddressRange, Kind, PageMapEntry, PageSize, State, VirtualAddress};
use crate::process::{BackingContent, BackingRun, Categories};
use crate::report::Reason;
use std::ops::Range;

/// Stands in [`EntryWords::flags`] and [`EntryWords::counts`] where there is no frame, or the file ended before it.
pub(in crate::inspect) const UNREAD: u64 = u64::MAX;

/// A stretch of pages of one region (or of none), valid until the next is pulled.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// The region; `None` for pages in no region.
    pub region: Option<&'a ViewedRegion>,
    /// Its index among [`AddressSpace::regions`](crate::inspect::AddressSpace::regions).
    pub region_index: Option<usize>,
    /// The first page.
    pub start: VirtualAddress,
    /// Pages in it.
    pub pages: u64,
    pub(in crate::inspect) content: ChunkContent<'a>,
    pub(super) place: Option<RegionFacts>,
    pub(super) rules: &'a dyn KernelBehaviour,
    pub(super) size: PageSize,
    pub(super) need: Facts,
    /// The zones of the machine, when asked for.
    pub(super) zones: Option<&'a Zones>,
    /// Whether map counts are of one page.
    pub(super) exact_counts: bool,
    /// The backing content of its untouched pages, in address order; empty when not asked for.
    pub(super) backing: &'a [BackingRun],
}

#[derive(Clone, Copy)]
pub(in crate::inspect) enum ChunkContent<'a> {
    /// Every entry is empty.
    Nothing,
    /// The page map ends before these pages.
    Outside,
    /// All are present; nothing asks for their entries.
    Present,
    /// What was read.
    Read(EntryWords<'a>),
}

/// The words read, one for each page or one for each `stride` pages of a huge mapping.
#[derive(Clone, Copy)]
pub(in crate::inspect) struct EntryWords<'a> {
    /// Page-map entries.
    pub entries: &'a [PageMapEntry],
    /// The flags of the frames; empty when not read.
    pub flags: &'a [u64],
    /// For huge mappings the flags of the first tail, which stand for all tails; otherwise empty.
    pub tail_flags: &'a [u64],
    /// The map counts of the frames; empty when not read.
    pub counts: &'a [u64],
    /// How often pmdb itself maps each; empty where it maps none of the files.
    pub own: &'a [u64],
    /// The orders of the folios that the frames are of; empty when not asked for.
    pub orders: &'a [u64],
    /// The inodes of their memory cgroups; empty when not read.
    pub cgroups: &'a [u64],
    /// The scan categories, by index of entry; `None` when not asked for.
    pub marks: Option<&'a [CategoryMark]>,
    /// Pages that an entry stands for.
    pub stride: u64,
}

/// Categories that hold for the entries `first..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::inspect) struct CategoryMark {
    pub first: usize,
    pub end: usize,
    pub categories: Categories,
}

impl<'a> Chunk<'a> {
    /// The raw page-map entries, one for each page from [`Chunk::start`] on. Empty when nothing is there to read, or
    /// when one entry stands for many.
    pub fn entries(&self) -> &'a [PageMapEntry] {
        match self.content {
            ChunkContent::Read(words) if words.stride == 1 => words.entries,
            _ => &[],
        }
    }

    /// Whether `words` has only the entries of single pages.
    pub(super) fn has_only_entries(&self, words: EntryWords<'_>) -> bool {
        words.stride == 1
            && words.marks.is_none()
            && self.zones.is_none()
            && [words.flags, words.counts, words.orders, words.cgroups].iter().all(|words| words.is_empty())
    }

    /// The numbers of pages whose backing content is unknown, each with the reason.
    pub fn unknown_content(&self) -> impl Iterator<Item = (u64, Reason)> {
        self.backing.iter().filter_map(|run| {
            let why = run.content.as_ref().err()?;
            Some((run.range.pages(self.size), why.clone().into()))
        })
    }

    /// `Some(false)` in a region without room for a huge mapping.
    #[inline]
    pub(super) fn never_huge(&self) -> Option<bool> {
        let place = self.place?;
        (!place.may_be_huge && place.backing != Backing::Hugetlb).then_some(false)
    }

    /// A stretch that is empty, or outside the page map.
    pub(super) fn empty_page(
        &self,
        first: u64,
        pages: u64,
        entry: Option<PageMapEntry>,
        content: Option<BackingContent>,
    ) -> Page {
        let evidence = PageObservation {
            entry,
            flags: None,
            // A scan has found nothing, or there is no region.
            categories: Some(Categories::empty()),
            content,
        };
        let (states, kind) = classify(evidence, self.place, self.rules);
        Page { content, ..self.page_with(first, pages, entry.unwrap_or_default(), states, kind) }
    }

    /// A stretch of which only the state is needed: present.
    pub(super) fn present_page(&self, first: u64, pages: u64) -> Page {
        let states = State::Present.into();
        self.page_with(first, pages, PageMapEntry::PRESENT, states, None)
    }

    /// A stretch with only these facts.
    #[inline]
    pub(super) fn page_with(
        &self,
        first: u64,
        pages: u64,
        entry: PageMapEntry,
        states: StateSet,
        kind: Option<Kind>,
    ) -> Page {
        Page {
            address: VirtualAddress::new(self.start.get() + (first << self.size.shift())),
            pages,
            entry,
            states,
            kind,
            flags: None,
            map_count: None,
            own_mappings: 0,
            huge: None,
            count_is_average: false,
            order: None,
            zone: None,
            cgroup: None,
            content: None,
        }
    }
}

/// Stretches in address order and their words. The buffers are reused.
#[derive(Default)]
pub(super) struct PageStretches {
    pub all: Vec<PageStretch>,
    pub entries: Vec<PageMapEntry>,
    pub flags: Vec<u64>,
    /// The flags of first tails, for huge mappings; no longer than the last of these.
    pub tail_flags: Vec<u64>,
    pub counts: Vec<u64>,
    pub own: Vec<u64>,
    pub orders: Vec<u64>,
    pub cgroups: Vec<u64>,
    pub marks: Vec<CategoryMark>,
}

/// A stretch of one region and where its words are.
pub(super) struct PageStretch {
    pub region: Option<usize>,
    pub range: AddressRange,
    pub words: StretchWords,
    /// The backing content of its untouched pages, when asked for.
    pub content: Vec<BackingRun>,
}

pub(super) enum StretchWords {
    Nothing,
    Outside,
    /// Not read, as all of its pages are known to be present.
    Present,
    Read {
        /// Indices into the entries, flags and counts.
        at: Range<usize>,
        /// Indices into the marks; `None` when categories were not asked for.
        marks: Option<Range<usize>>,
        stride: u64,
    },
}

impl PageStretches {
    /// Empties it for the next stretches.
    pub fn clear(&mut self) {
        self.all.clear();
        self.entries.clear();
        self.flags.clear();
        self.tail_flags.clear();
        self.counts.clear();
        self.own.clear();
        self.orders.clear();
        self.cgroups.clear();
        self.marks.clear();
    }

    /// Adds the next stretch.
    pub fn push(&mut self, region: Option<usize>, range: AddressRange, words: StretchWords) {
        self.all.push(PageStretch { region, range, words, content: Vec::new() });
    }

    /// Marks a stretch of `entries` entries as huge mappings.
    pub fn mark_huge(&mut self, entries: usize) -> Range<usize> {
        self.marks.push(CategoryMark { first: 0, end: entries, categories: Categories::HUGE });
        self.marks.len() - 1..self.marks.len()
    }

    /// A stretch with the words that have been read.
    pub fn chunk<'a>(&'a self, stretch: &'a PageStretch, space: &'a AddressSpace, need: Facts) -> Chunk<'a> {
        let region = stretch.region.and_then(|index| space.regions().get(index));
        let content = match &stretch.words {
            StretchWords::Nothing => ChunkContent::Nothing,
            StretchWords::Outside => ChunkContent::Outside,
            StretchWords::Present => ChunkContent::Present,
            StretchWords::Read { at, marks, stride } => ChunkContent::Read(EntryWords {
                entries: self.entries.get(at.clone()).unwrap_or_default(),
                flags: self.flags.get(at.clone()).unwrap_or_default(),
                tail_flags: match stride {
                    1 => &[],
                    _ => self.tail_flags.get(at.clone()).unwrap_or_default(),
                },
                counts: self.counts.get(at.clone()).unwrap_or_default(),
                own: self.own.get(at.clone()).unwrap_or_default(),
                orders: self.orders.get(at.clone()).unwrap_or_default(),
                cgroups: self.cgroups.get(at.clone()).unwrap_or_default(),
                marks: marks.as_ref().and_then(|marks| self.marks.get(marks.clone())),
                stride: *stride,
            }),
        };
        let zones = || space.zones().ok();
        Chunk {
            region,
            region_index: stretch.region,
            start: stretch.range.start(),
            pages: stretch.range.pages(space.page()),
            content,
            place: region.map(|viewed| space.region_facts(viewed)),
            rules: space,
            size: space.page(),
            need,
            zones: need.contains(Facts::ZONES).then(zones).flatten(),
            exact_counts: need.contains(Facts::COUNTS) && space.has_exact_counts(),
            backing: &stretch.content,
        }
    }
}
