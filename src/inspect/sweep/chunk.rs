//! What a sweep reads and delivers: the raw words of a stretch of one region (one of each file for each entry, in
//! parallel vectors), and the pages made from them on the fly. Neighbours that are the same come as one.

use super::super::address_space::AddressSpace;
use super::super::classify::{Backing, KernelBehaviour, PageObservation, RegionFacts, classify};
use super::super::heap::uses::{HeapUse, HeapUses};
use super::super::hidden_words::common_word;
use super::super::page::{Evidence, InZone, Page, huge_without_scan};
use super::super::region::ViewedRegion;
use super::super::states::StateSet;
use super::columns::{Column, ColumnSlices, Columns};
use crate::kernel::physical::Zones;
use crate::kernel::{AddressRange, Kind, PageFlags, PageMapEntry, PageSize, State, SwapEntry, VirtualAddress};
use crate::process::{BackingContent, BackingRun, Categories, SwappedRange};
use std::ops::Range;

/// A stretch of pages of one region (or of none), valid until the next is pulled.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// The region; `None` for pages in no region.
    pub region: Option<&'a ViewedRegion>,
    /// Its index among [`AddressSpace::viewed_regions`](crate::inspect::AddressSpace::viewed_regions).
    pub region_index: Option<usize>,
    /// The first page.
    pub start: VirtualAddress,
    /// Pages in it.
    pub pages: u64,
    pub(in crate::inspect) content: ChunkContent<'a>,
    pub(super) place: Option<RegionFacts>,
    pub(super) rules: &'a dyn KernelBehaviour,
    pub(super) size: PageSize,
    pub(super) need: Evidence,
    /// The zones of the machine, when asked for.
    pub(super) zones: Option<&'a Zones>,
    /// What the pages are for the heaps, when asked for.
    heap: Option<&'a HeapUses>,
    /// Whether map counts are of one page.
    has_exact_counts: bool,
    /// The backing content of its untouched pages, in address order; empty when not asked for.
    pub(super) backing: &'a [BackingRun],
    /// Its untouched pages that are in swap, in address order.
    pub(super) slots: &'a [SwappedRange],
}

/// What is known of an untouched page beside its entry.
#[derive(Clone, Copy, Default)]
pub(super) struct BehindPage {
    pub(super) content: Option<BackingContent>,
    pub(super) slot: Option<SwapEntry>,
}

#[derive(Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "there is one for thousands of pages, and a box is no copy")]
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
    /// What was read beside them.
    pub columns: ColumnSlices<'a>,
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

    /// Whether `words` are all there is about its pages: entries of single pages, and words of their frames.
    fn has_only_words(&self, words: EntryWords<'_>) -> bool {
        let is_plain = self.zones.is_none() && self.heap.is_none();
        is_plain && words.stride == 1 && words.columns.holders.is_empty()
    }

    /// `Some(false)` in a region without room for a huge mapping.
    #[inline]
    fn never_huge(&self) -> Option<bool> {
        let place = self.place?;
        (!place.may_be_huge && place.backing != Backing::Hugetlb).then_some(false)
    }

    /// A stretch that is empty, or outside the page map.
    fn empty_page(&self, first: u64, pages: u64, entry: Option<PageMapEntry>, behind: BehindPage) -> Page {
        let BehindPage { content, slot } = behind;
        let evidence = PageObservation {
            entry,
            flags: None,
            // A scan has found nothing, or there is no region.
            categories: Some(Categories::empty()),
            content,
            slot,
        };
        let (states, kind) = classify(evidence, self.place, self.rules);
        Page { content, slot, ..self.page_with(first, pages, entry.unwrap_or_default(), states, kind) }
    }

    /// A stretch of which only the state is needed: present.
    fn present_page(&self, first: u64, pages: u64) -> Page {
        let states = State::Present.into();
        self.page_with(first, pages, PageMapEntry::PRESENT, states, None)
    }

    /// A stretch with only these facts.
    #[inline]
    fn page_with(&self, first: u64, pages: u64, entry: PageMapEntry, states: StateSet, kind: Option<Kind>) -> Page {
        Page {
            pages,
            entry,
            kind,
            ..Page::new(VirtualAddress::new(self.start.get() + (first << self.size.shift())), states)
        }
    }

    /// The run of pages that begins with the next entry, which is present and has nothing but words beside it.
    #[inline]
    fn plain_page(&self, words: &EntryWords<'_>, entry: PageMapEntry, joins_frames: bool, at: &mut ChunkPlace) -> Page {
        let first = at.next;
        let (categories, limit) = at.categories(words.marks);
        let entries = words.entries.get(first..).unwrap_or_default();
        let entries = entries.get(..limit).unwrap_or(entries);
        let mut pages = match joins_frames {
            true if words.columns.are_empty() => count_exclusive(entries),
            true => count_exclusive(entries.get(..WINDOW).unwrap_or(entries)),
            false => count_alike(entries, 1),
        };
        let read = words.columns.words_at(first, &mut pages);
        let flags = read.of(Column::Flags).map(PageFlags::from_bits_retain);
        let of = (entry.bits(), flags, categories);
        let PlainClass { states, kind, .. } = match at.class {
            Some(class) if class.of == of => class,
            _ => {
                let evidence = PageObservation { flags, categories, ..PageObservation::of(entry) };
                let (states, kind) = classify(evidence, self.place, self.rules);
                *at.class.insert(PlainClass { of, states, kind })
            }
        };
        // As in `decode`: zero pages with consecutive frames come one by one.
        if kind == Some(Kind::Zero) && entry.frame().is_some() {
            pages = 1;
        }
        at.next += pages;
        let into = (first as u64) << self.size.shift();
        let mut page = Page::new(VirtualAddress::new(self.start.get() + into), states);
        page.pages = pages as u64;
        page.entry = entry;
        page.kind = kind;
        page.huge = self.huge(categories, states, kind, flags);
        if !words.columns.are_empty() {
            read.fill(&mut page);
            page.count_is_average = self.is_average(page.map_count, flags);
        }
        page
    }

    /// Whether a page is mapped huge: a scan tells, or the region has no room for it, or the flags exclude it.
    #[inline]
    fn huge(
        &self,
        categories: Option<Categories>,
        states: StateSet,
        kind: Option<Kind>,
        flags: Option<PageFlags>,
    ) -> Option<bool> {
        let scanned = categories.filter(|_| self.need.contains(Evidence::HUGE));
        let scanned = scanned.map(|categories| categories.contains(Categories::HUGE));
        scanned.or(self.never_huge()).or_else(|| self.huge_unscanned(states, kind, flags))
    }

    /// Whether a map count may be an average, as far as the flags show.
    #[inline]
    fn is_average(&self, map_count: Option<u64>, flags: Option<PageFlags>) -> bool {
        !self.has_exact_counts
            && map_count.is_some_and(|count| count > 0)
            && flags.is_none_or(PageFlags::is_in_large_folio)
    }

    /// [`huge_without_scan`], if that is asked for.
    fn huge_unscanned(&self, states: StateSet, kind: Option<Kind>, flags: Option<PageFlags>) -> Option<bool> {
        let is_asked = states.likeliest() == State::Present && self.need.contains(Evidence::HUGE);
        is_asked.then(|| huge_without_scan(kind, flags)).flatten()
    }
}

/// Stretches in address order and their words. The buffers are reused.
#[derive(Default)]
pub(super) struct PageStretches {
    pub all: Vec<PageStretch>,
    pub entries: Vec<PageMapEntry>,
    pub columns: Columns,
    pub marks: Vec<CategoryMark>,
}

/// A stretch of one region and where its words are.
pub(super) struct PageStretch {
    pub region: Option<usize>,
    pub range: AddressRange,
    pub words: StretchWords,
    /// What the question does not need of it.
    pub spared: Evidence,
    /// The backing content of its untouched pages, when asked for.
    pub content: Vec<BackingRun>,
    /// Its untouched pages that are in swap, in address order.
    pub slots: Vec<SwappedRange>,
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
        self.columns.clear();
        self.marks.clear();
    }

    /// Adds the next stretch.
    pub fn push(&mut self, region: Option<usize>, range: AddressRange, words: StretchWords) {
        let (spared, content, slots) = (Evidence::empty(), Vec::new(), Vec::new());
        self.all.push(PageStretch { region, range, words, spared, content, slots });
    }

    /// Marks a stretch of `entries` entries as huge mappings.
    pub fn mark_huge(&mut self, entries: usize) -> Range<usize> {
        self.marks.push(CategoryMark { first: 0, end: entries, categories: Categories::HUGE });
        self.marks.len() - 1..self.marks.len()
    }

    /// A stretch with the words that have been read.
    pub fn chunk<'a>(&'a self, stretch: &'a PageStretch, space: &'a AddressSpace, need: Evidence) -> Chunk<'a> {
        let region = stretch.region.and_then(|index| space.viewed_regions().get(index));
        let content = match &stretch.words {
            StretchWords::Nothing => ChunkContent::Nothing,
            StretchWords::Outside => ChunkContent::Outside,
            StretchWords::Present => ChunkContent::Present,
            StretchWords::Read { at, marks, stride } => ChunkContent::Read(EntryWords {
                entries: self.entries.get(at.clone()).unwrap_or_default(),
                columns: self.columns.slice(at, stretch.spared),
                marks: marks.as_ref().and_then(|marks| self.marks.get(marks.clone())),
                stride: *stride,
            }),
        };
        let zones = || space.zones().ok();
        let heap = || space.heap_uses().ok();
        Chunk {
            region,
            region_index: stretch.region,
            start: stretch.range.start(),
            pages: stretch.range.pages(space.page_size()),
            content,
            place: region.map(|viewed| space.region_facts(viewed)),
            rules: space,
            size: space.page_size(),
            need,
            zones: need.contains(Evidence::ZONES).then(zones).flatten(),
            heap: need.contains(Evidence::HEAP).then(heap).flatten(),
            has_exact_counts: need.contains(Evidence::COUNTS) && space.has_exact_counts(),
            backing: &stretch.content,
            slots: &stretch.slots,
        }
    }
}

/// The pages of a [`Chunk`].
#[must_use = "iterators are lazy"]
pub struct ChunkPages<'a> {
    pub(super) chunk: Chunk<'a>,
    /// Whether entries of single pages and words of their frames are all that was read, and neighbours that are the
    /// same may come as one.
    is_plain: bool,
    /// Whether these neighbours may have any frames.
    joins_frames: bool,
    pub(super) at: ChunkPlace,
}

/// How far the pages of a [`Chunk`] were taken.
#[derive(Clone, Copy, Default)]
pub(in crate::inspect) struct ChunkPlace {
    /// Index of the next entry, or of the next page of a stretch without entries.
    next: usize,
    /// The index of the next entry's mark.
    mark: usize,
    /// The indexes of the next page's backing run and range of slots.
    pub(super) run: usize,
    pub(super) slot: usize,
    /// The bits of the last plain entry without its frame, its flags and categories, and their states and kind: mostly
    /// the next entry has the same.
    class: Option<PlainClass>,
    /// What is left of a huge mapping, or of neighbours that are wanted one by one.
    rest: Option<Page>,
    /// What the next page is for the heaps, and where that ends, as far as is known.
    heap: Option<(HeapUse, VirtualAddress)>,
}

impl ChunkPlace {
    /// The categories of the next entry, and for how many entries from there on they hold.
    fn categories(&mut self, marks: Option<&[CategoryMark]>) -> (Option<Categories>, usize) {
        let Some(marks) = marks else {
            return (None, usize::MAX);
        };
        while let Some(mark) = marks.get(self.mark) {
            if self.next < mark.first {
                return (Some(Categories::empty()), mark.first - self.next);
            }
            if self.next < mark.end {
                return (Some(mark.categories), mark.end - self.next);
            }
            self.mark += 1;
        }
        (Some(Categories::empty()), usize::MAX)
    }
}

/// The states and the kind of pages whose entries have the same bits, flags and categories.
#[derive(Clone, Copy)]
struct PlainClass {
    of: (u64, Option<PageFlags>, Option<Categories>),
    states: StateSet,
    kind: Option<Kind>,
}

impl<'a> Chunk<'a> {
    /// Its pages in address order. Neighbours that are the same come as one [`Page`], unless [`Evidence::EACH`] was
    /// asked for.
    pub fn pages(&self) -> ChunkPages<'a> {
        self.pages_from(ChunkPlace::default())
    }

    /// The pages that were not taken yet.
    pub(in crate::inspect) fn pages_from(&self, at: ChunkPlace) -> ChunkPages<'a> {
        let has_only_words = matches!(self.content, ChunkContent::Read(words) if self.has_only_words(words));
        ChunkPages {
            is_plain: has_only_words && self.need.has_entries() && !self.need.contains(Evidence::EACH),
            joins_frames: self.need.joins_frames(),
            chunk: *self,
            at,
        }
    }
}

impl Iterator for ChunkPages<'_> {
    type Item = Page;

    #[inline]
    fn next(&mut self) -> Option<Page> {
        // The next entry is mostly present, and nothing was read beside entries and words: this is the fast path. A
        // page is large, and so are the words: a page is made where the caller has it, and the words are not copied.
        if let ChunkContent::Read(words) = &self.chunk.content
            && let Some(&entry) = words.entries.get(self.at.next)
            && self.is_plain
            && entry.is_present()
        {
            return Some(self.chunk.plain_page(words, entry, self.joins_frames, &mut self.at));
        }
        self.next_any()
    }
}

impl<'a> ChunkPages<'a> {
    /// How far they were taken.
    pub(in crate::inspect) fn place(&self) -> ChunkPlace {
        self.at
    }

    /// The next page, whatever was read of it. Not inlined, so that only the fast path of plain pages is.
    #[inline(never)]
    fn next_any(&mut self) -> Option<Page> {
        let page = match self.at.rest.take() {
            Some(rest) => rest,
            None => self.next_alike()?,
        };
        let (pages, heap) = match self.chunk.heap {
            _ if self.chunk.need.contains(Evidence::EACH) => (1, self.chunk.heap.map(|heap| heap.at(page.address).0)),
            Some(heap) => self.heap(heap, &page),
            None => return Some(page),
        };
        if page.pages > pages {
            self.at.rest = Some(Page { pages: page.pages - pages, ..page.nth(pages, self.chunk.size) });
        }
        Some(Page { pages, heap, ..page })
    }

    /// What the first pages of `page` are for the heaps, and how many are that.
    fn heap(&mut self, heap: &HeapUses, page: &Page) -> (u64, Option<HeapUse>) {
        let known = self.at.heap.filter(|(_, end)| page.address < *end);
        let (is, end) = *self.at.heap.insert(known.unwrap_or_else(|| heap.at(page.address)));
        let size = self.chunk.size;
        (page.pages.min(size.index(end) - size.index(page.address)), Some(is))
    }

    /// The next neighbours that are the same.
    fn next_alike(&mut self) -> Option<Page> {
        match self.chunk.content {
            ChunkContent::Read(words) => self.decode(words),
            _ if self.at.next as u64 >= self.chunk.pages => None,
            ChunkContent::Nothing => {
                let first = self.at.next as u64;
                let (behind, limit) = self.behind(first);
                let pages = limit.min(self.chunk.pages - first);
                self.at.next += pages as usize;
                let empty = Some(PageMapEntry::default());
                Some(self.chunk.empty_page(first, pages, empty, behind))
            }
            ChunkContent::Outside => {
                self.at.next = self.chunk.pages as usize;
                Some(self.chunk.empty_page(0, self.chunk.pages, None, BehindPage::default()))
            }
            ChunkContent::Present => {
                self.at.next = self.chunk.pages as usize;
                Some(self.chunk.present_page(0, self.chunk.pages))
            }
        }
    }

    fn decode(&mut self, words: EntryWords<'_>) -> Option<Page> {
        let first = self.at.next;
        let (categories, limit) = self.at.categories(words.marks);
        let rest = words.entries.get(first..)?;
        let &entry = rest.first()?;
        if entry.is_present() && !self.chunk.need.has_entries() {
            // The same page as when a scan found it present.
            let present = rest.iter().take_while(|entry| entry.is_present());
            let present = present.count();
            self.at.next += present;
            return Some(self.chunk.present_page(first as u64, present as u64));
        }
        let (BehindPage { content, slot }, limit) = if entry.is_present() || entry.swap().is_some() {
            (BehindPage::default(), limit)
        } else {
            let (behind, pages) = self.behind(first as u64);
            (behind, limit.min(usize::try_from(pages).unwrap_or(limit)))
        };
        let mut alike = count_alike(rest.get(..limit.min(rest.len()))?, words.stride);
        let read = words.columns.words_at(first, &mut alike);
        let holders = common_word(words.columns.holders, first, &mut alike).flatten();
        let zone = self.zone(entry, words.stride, &mut alike);
        // A head has other flags than its tails: with flags, huge mappings come one by one and in two parts.
        let flags = read.of(Column::Flags).map(PageFlags::from_bits_retain);
        let parted = words.stride > 1 && flags.is_some();
        let evidence = PageObservation { entry: Some(entry), flags, categories, content, slot };
        let (states, kind) = classify(evidence, self.chunk.place, self.chunk.rules);
        // Several zero pages in one `Page` have the same frame. s390x and MIPS have more than one frame of zeros, and
        // their frames follow each other (ZERO_PAGE in asm/pgtable.h): these pages come one by one.
        if parted || kind == Some(Kind::Zero) && entry.frame().is_some() {
            alike = 1;
        }
        self.at.next += alike;
        let into = (first as u64 * words.stride) << self.chunk.size.shift();
        let mut page = Page {
            pages: alike as u64 * words.stride,
            entry,
            kind,
            huge: self.chunk.huge(categories, states, kind, flags),
            zone,
            holders,
            content,
            slot,
            ..Page::new(VirtualAddress::new(self.chunk.start.get() + into), states)
        };
        read.fill(&mut page);
        page.count_is_average = self.chunk.is_average(page.map_count, flags);
        if !parted {
            return Some(page);
        }
        self.at.rest = Some(Page {
            pages: page.pages - 1,
            flags: read.of(Column::TailFlags).map(PageFlags::from_bits_retain),
            ..page.nth(1, self.chunk.size)
        });
        Some(page.nth(0, self.chunk.size))
    }

    /// The zone of the frame of `entry`; cuts `alike` where that ends.
    #[inline]
    fn zone(&self, entry: PageMapEntry, stride: u64, alike: &mut usize) -> Option<InZone> {
        let frame = entry.frame()?;
        let zones = self.chunk.zones?;
        let stretch = zones.span_of(frame);
        let left = stretch.end.get().saturating_sub(frame.get()) / stride;
        *alike = (*alike).min(usize::try_from(left).unwrap_or(usize::MAX).max(1));
        InZone::of(zones, stretch.spanned)
    }
}

/// The most pages that are joined where words of their frames were read: these may differ from page to page, and then
/// each comparison of many entries would be for one page.
const WINDOW: usize = 64;

/// How many entries from the first on differ in nothing but frames that are mapped once; as [`count_alike`] if the
/// first is mapped more often.
#[inline]
fn count_exclusive(entries: &[PageMapEntry]) -> usize {
    match entries.first() {
        Some(first) if first.is_exclusive() && !first.is_file_or_shared() => {
            count_blocks(entries, |entry, _| entry.bits() ^ first.bits())
        }
        _ => count_alike(entries, 1),
    }
}

/// How many entries from the first on differ in nothing but consecutive frames.
#[inline]
fn count_alike(entries: &[PageMapEntry], stride: u64) -> usize {
    let Some(first) = entries.first() else {
        return 0;
    };
    let step = match first.frame() {
        Some(_) => stride,
        None => 0,
    };
    let expected = |index: usize| first.raw().wrapping_add(step.wrapping_mul(index as u64));
    // Memory that was freed and filled again has runs of one page.
    if entries.get(1).is_none_or(|second| second.raw() != expected(1)) {
        return 1;
    }
    count_blocks(entries, |entry, index| entry.raw() ^ expected(index))
}

/// How many entries there are before the first for which `difference` is not 0.
#[inline]
fn count_blocks(entries: &[PageMapEntry], difference: impl Fn(PageMapEntry, usize) -> u64) -> usize {
    /// Entries compared at once: most runs are longer.
    const BLOCK: usize = 8;
    let differs = |from: usize, entries: &[PageMapEntry]| {
        let entries = entries.iter().zip(from..);
        entries.fold(0, |differs, (entry, index)| differs | difference(*entry, index)) != 0
    };
    let blocks = entries.chunks_exact(BLOCK);
    let alike = blocks.zip((0..).step_by(BLOCK)).take_while(|&(block, from)| !differs(from, block)).count() * BLOCK;
    let rest = entries.get(alike..).unwrap_or_default();
    let rest = rest.iter().zip(alike..);
    alike + rest.take_while(|&(entry, index)| difference(*entry, index) == 0).count()
}
