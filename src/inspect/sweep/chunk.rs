//! What a sweep delivers: the raw words of a stretch of one region, and the pages made from them on the fly.

use super::super::classify::{Backing, PageObservation, RegionFacts, classify};
use super::super::kernel_behaviour::KernelBehaviour;
use super::super::page::{Facts, Page};
use super::super::region::ViewedRegion;
use super::super::state_set::StateSet;
use crate::kernel::zones::Zones;
use crate::kernel::{Kind, PageMapEntry, PageSize, State, VirtualAddress};
use crate::process::{BackingContent, BackingRun, Categories};
use crate::report::Reason;

/// Stands in [`Entries::flags`] and [`Entries::counts`] where there is no frame, or the file ended before it.
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
    pub(in crate::inspect) content: Content<'a>,
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
pub(in crate::inspect) enum Content<'a> {
    /// Every entry is empty.
    Nothing,
    /// The page map ends before these pages.
    Outside,
    /// All are present; nothing asks for their entries.
    Present,
    /// What was read.
    Read(Entries<'a>),
}

/// The words read, one for each page or one for each `stride` pages of a huge mapping.
#[derive(Clone, Copy)]
pub(in crate::inspect) struct Entries<'a> {
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
    pub marks: Option<&'a [Mark]>,
    /// Pages that an entry stands for.
    pub stride: u64,
}

/// Categories that hold for the entries `first..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::inspect) struct Mark {
    pub first: usize,
    pub end: usize,
    pub categories: Categories,
}

impl<'a> Chunk<'a> {
    /// The raw page-map entries, one for each page from [`Chunk::start`] on. Empty when nothing is there to read, or
    /// when one entry stands for many.
    pub fn entries(&self) -> &'a [PageMapEntry] {
        match self.content {
            Content::Read(words) if words.stride == 1 => words.entries,
            _ => &[],
        }
    }

    /// Whether `words` has only the entries of single pages.
    pub(super) fn reads_nothing_else(&self, words: Entries<'_>) -> bool {
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
    pub(super) fn empty(
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
        Page { content, ..self.known(first, pages, entry.unwrap_or_default(), states, kind) }
    }

    /// A stretch of which only the state is needed: present.
    pub(super) fn present(&self, first: u64, pages: u64) -> Page {
        let states = State::Present.into();
        self.known(first, pages, PageMapEntry::PRESENT, states, None)
    }

    /// A stretch with only these facts.
    #[inline]
    pub(super) fn known(
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
