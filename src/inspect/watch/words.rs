//! A sample: the raw words of the populated pages of ranges.

use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::{Backing, RegionFacts, SwapTypes};
use crate::inspect::page::Evidence;
use crate::inspect::sweep::raw::{ChunkContent, Column, EntryWords, UNREAD};
use crate::inspect::sweep::{Chunk, Sweep};
use crate::kernel::{AddressRange, PageFlags, PageMapEntry, PageSize, Region, VirtualAddress};
use crate::process::{Categories, Target};
use std::num::NonZeroU64;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The words of one sample, in address order.
#[derive(Default)]
pub(super) struct PageWords {
    extents: Vec<WordBlock>,
    /// Whether this sample has the same words, for each extent of the last sample.
    same: Vec<bool>,
    /// The index of the first extent of the last sample that does not end before the next chunk.
    cursor: usize,
    /// The words that are compared: flags, map counts, or both. More may have been read.
    compared: Evidence,
}

/// Words that were read together.
struct WordBlock {
    /// The words, shared with the last sample if they are the same.
    words: Arc<ExtentWords>,
    /// Whether the words differ from those of the last sample.
    is_fresh: bool,
}

#[derive(PartialEq, Eq)]
struct ExtentWords {
    /// The index of the first page.
    first: u64,
    /// The number of pages of one entry.
    stride: u64,
    entries: Vec<PageMapEntry>,
    /// The flags of the frames; empty if flags are not watched.
    flags: Vec<u64>,
    /// The map counts of the frames; empty if map counts are not watched.
    counts: Vec<u64>,
    /// The entries of huge mappings, as ranges of indices.
    huge: Vec<(usize, usize)>,
    /// The entries of the zero page, as ranges of indices; empty if neither flags nor PAGEMAP_SCAN show them.
    zero: Vec<(usize, usize)>,
    /// The entries of merged pages, as ranges of indices; empty if flags were not read for them.
    merged: Vec<(usize, usize)>,
    /// The hash of the contents of each page; `None` if they were not read. Empty if contents are not compared.
    contents: Vec<Option<NonZeroU64>>,
}

impl ExtentWords {
    /// Returns the next run of at most `limit` present pages from the page `at` on.
    fn present_from(&self, at: usize, limit: usize) -> Option<Range<usize>> {
        let stride = self.stride as usize;
        let is_present = |entry: &PageMapEntry| entry.is_present();
        let first = at / stride;
        let gap = self.entries.get(first..)?.iter().position(is_present)?;
        let start = at.max((first + gap) * stride);
        let entries = self.entries.get(start / stride..)?.iter().take(limit.div_ceil(stride) + 1);
        let end = (start / stride + entries.take_while(|entry| is_present(entry)).count()) * stride;
        Some(start..end.min(start + limit))
    }
}

/// A position in the words of a sample.
#[derive(Clone, Copy, Default)]
pub(super) struct PlaceInWords {
    /// The index of an extent.
    extent: usize,
    /// The index of a page in the extent.
    page: usize,
}

impl PlaceInWords {
    /// Advances by `pages` pages.
    pub fn skip(&mut self, pages: usize) {
        self.page += pages;
    }
}

/// The words of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct SampledPage {
    pub entry: PageMapEntry,
    pub flags: Option<PageFlags>,
    pub map_count: Option<u64>,
    pub is_huge: bool,
    /// Whether the page is the zero page, if flags or PAGEMAP_SCAN were read for that.
    pub is_zero: bool,
    /// Whether the page is a merged page (KSM), if flags were read for that.
    pub is_merged: bool,
    /// The hash of the contents, if they were asked for and read.
    pub contents: Option<NonZeroU64>,
}

/// Returns `words` if `keep` contains `one`, and an empty slice otherwise.
fn words_if_asked(words: &[u64], keep: Evidence, one: Evidence) -> &[u64] {
    if keep.contains(one) { words } else { &[] }
}

/// Returns the ranges of entries in a category of PAGEMAP_SCAN.
fn marked_entries(words: &EntryWords<'_>, category: Categories) -> impl Iterator<Item = (usize, usize)> {
    let marks = words.marks.unwrap_or_default().iter();
    let marks = marks.filter(move |mark| mark.categories.contains(category));
    marks.map(|mark| (mark.first, mark.end))
}

/// Returns the ranges of entries that map the zero page, by the flags of their frames, or by PAGEMAP_SCAN if no flags
/// were read.
fn zero_entries(words: &EntryWords<'_>) -> impl Iterator<Item = (usize, usize)> {
    let by_flags = flagged_entries(words, |flags| flags.contains(PageFlags::ZERO_PAGE));
    by_flags.chain(marked_entries(words, Categories::ZERO))
}

/// Returns the ranges of entries that map merged pages. A page with PG_anon_exclusive is never merged.
fn merged_entries(words: &EntryWords<'_>) -> impl Iterator<Item = (usize, usize)> {
    let is_merged = |flags: PageFlags| {
        flags.contains(PageFlags::KSM | PageFlags::ANON) && !flags.intersects(PageFlags::OWNER_2 | PageFlags::SLAB)
    };
    flagged_entries(words, is_merged)
}

/// Returns the ranges of entries whose frames have such flags.
fn flagged_entries(words: &EntryWords<'_>, is: fn(PageFlags) -> bool) -> impl Iterator<Item = (usize, usize)> {
    let is = move |word: &u64| *word != UNREAD && is(PageFlags::from_bits_retain(*word));
    let alike = words.columns.of(Column::Flags).chunk_by(move |one, next| is(one) == is(next));
    let stretches = alike.scan(0, |end, run| {
        let first = *end;
        *end += run.len();
        Some((first, *end, run.first()))
    });
    stretches.filter_map(move |(first, end, word)| word.is_some_and(is).then_some((first, end)))
}

/// Returns whether `index` is in one of the ranges, which are in order.
fn is_in(stretches: &[(usize, usize)], index: usize) -> bool {
    let next = stretches.partition_point(|&(_, end)| end <= index);
    stretches.get(next).is_some_and(|&(first, _)| first <= index)
}

impl ExtentWords {
    fn of(chunk: &Chunk<'_>, size: PageSize, keep: Evidence) -> Option<ExtentWords> {
        let ChunkContent::Read(words) = chunk.content else {
            return None;
        };
        Some(ExtentWords {
            first: size.index(chunk.start),
            stride: words.stride,
            entries: words.entries.to_vec(),
            flags: words_if_asked(words.columns.of(Column::Flags), keep, Evidence::FLAGS).to_vec(),
            counts: words_if_asked(words.columns.of(Column::Counts), keep, Evidence::COUNTS).to_vec(),
            huge: marked_entries(&words, Categories::HUGE).collect(),
            zero: zero_entries(&words).collect(),
            merged: merged_entries(&words).collect(),
            contents: Vec::new(),
        })
    }

    /// Returns whether the words of `chunk` are the same. It decodes nothing.
    fn is_same(&self, chunk: &Chunk<'_>, size: PageSize, keep: Evidence) -> bool {
        let ChunkContent::Read(words) = chunk.content else {
            return false;
        };
        self.first == size.index(chunk.start)
            && self.stride == words.stride
            && self.entries == words.entries
            && self.flags == words_if_asked(words.columns.of(Column::Flags), keep, Evidence::FLAGS)
            && self.counts == words_if_asked(words.columns.of(Column::Counts), keep, Evidence::COUNTS)
            && self.huge.iter().copied().eq(marked_entries(&words, Categories::HUGE))
            && self.zero.iter().copied().eq(zero_entries(&words))
            && self.merged.iter().copied().eq(merged_entries(&words))
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64 * self.stride
    }

    /// Returns the words of the page with the index `page`.
    fn page(&self, page: u64) -> SampledPage {
        let into = page.saturating_sub(self.first);
        let index = (into / self.stride) as usize;
        let entry = self.entries.get(index).copied().unwrap_or_default();
        let word = |words: &[u64]| words.get(index).copied().filter(|&word| word != UNREAD);
        SampledPage {
            entry: match entry.frame() {
                Some(_) => PageMapEntry::new(entry.raw() + into % self.stride),
                None => entry,
            },
            flags: word(&self.flags).map(PageFlags::from_bits_retain),
            map_count: word(&self.counts),
            is_huge: is_in(&self.huge, index),
            is_zero: is_in(&self.zero, index),
            is_merged: is_in(&self.merged, index),
            contents: self.contents.get(into as usize).copied().flatten(),
        }
    }
}

impl PageWords {
    /// Begins the next sample. Flags and map counts are compared if they are in `keep`.
    pub fn next(&self, keep: Evidence) -> PageWords {
        PageWords {
            extents: Vec::with_capacity(self.extents.len()),
            same: vec![false; self.extents.len()],
            cursor: 0,
            compared: keep,
        }
    }

    /// Adds a chunk. Words that are the same as in `before` are shared with it.
    pub fn add(&mut self, chunk: &Chunk<'_>, size: PageSize, before: &PageWords) {
        let index = size.index(chunk.start);
        let behind = before
            .extents
            .get(self.cursor..)
            .unwrap_or_default()
            .iter()
            .take_while(|extent| extent.words.first < index)
            .count();
        self.cursor += behind;
        if let (Some(extent), Some(same)) = (before.extents.get(self.cursor), self.same.get_mut(self.cursor))
            && extent.words.is_same(chunk, size, self.compared)
        {
            *same = true;
            self.extents.push(WordBlock { words: extent.words.clone(), is_fresh: false });
            return;
        }
        let words = ExtentWords::of(chunk, size, self.compared).filter(|words| !words.entries.is_empty());
        self.extents.extend(words.map(|words| WordBlock { words: Arc::new(words), is_fresh: true }));
    }

    /// Returns the pages that differ from `before`, with their words then and now. Pages with indices in `new` were
    /// mapped since: they had no words then. If `is_next`, this sample directly follows `before`, and equal words are
    /// skipped. Ends early once `goes_on`, which is called often, returns false.
    pub fn differences<'w>(
        &'w self,
        before: &'w PageWords,
        new: Rc<[Range<u64>]>,
        is_next: bool,
        goes_on: impl FnMut() -> bool + 'w,
    ) -> impl Iterator<Item = (u64, SampledPage, SampledPage)> + 'w {
        let [in_old, in_new] = [&new, &new].map(Rc::clone);
        let old = before.extents.iter().enumerate().filter(move |(index, extent)| {
            let is_same = is_next && self.same.get(*index) == Some(&true);
            !is_same || touches(&extent.words, &in_old)
        });
        let now =
            self.extents.iter().filter(move |extent| !is_next || extent.is_fresh || touches(&extent.words, &in_new));
        differences(old.map(|(_, extent)| &*extent.words), now.map(|extent| &*extent.words), new, goes_on)
    }

    fn words(&self) -> impl Iterator<Item = &ExtentWords> {
        self.extents.iter().map(|extent| &*extent.words)
    }

    /// Returns the populated pages with indices from `first` up to `end`, in order.
    pub fn pages(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, SampledPage)> {
        let begin = self.extents.partition_point(|extent| extent.words.end() <= first);
        let extents = self.extents.iter().skip(begin).map(|extent| &*extent.words);
        let within = extents.take_while(move |words| words.first < end);
        let pages = within.flat_map(move |words| {
            let pages = words.first.max(first)..words.end().min(end);
            pages.map(|page| (page, words.page(page)))
        });
        pages.filter(|(_, page)| *page != SampledPage::default())
    }

    /// Returns the number of present pages, and that of pages in swap.
    pub fn present_and_swapped(&self, areas: SwapTypes) -> (u64, u64) {
        let (mut present, mut swapped) = (0, 0);
        for words in self.words() {
            for entry in &words.entries {
                present += words.stride * u64::from(entry.is_present());
                swapped += words.stride * u64::from(areas.holds(*entry));
            }
        }
        (present, swapped)
    }

    /// Returns the next run of at most `limit` present pages from `place` on: the index of the first, and the slice for
    /// their hashes. Returns `None` after the last run. Words that are shared with another sample get no hashes.
    pub fn present_from(&mut self, place: &mut PlaceInWords, limit: usize) -> Option<(u64, &mut [Option<NonZeroU64>])> {
        let (extent, pages) = loop {
            let words = Arc::get_mut(&mut self.extents.get_mut(place.extent)?.words);
            match words.and_then(|words| words.present_from(place.page, limit)) {
                Some(pages) => break (place.extent, pages),
                None => *place = PlaceInWords { extent: place.extent + 1, page: 0 },
            }
        };
        place.page = pages.start;
        let words = Arc::get_mut(&mut self.extents.get_mut(extent)?.words)?;
        words.contents.resize(words.entries.len() * words.stride as usize, None);
        Some((words.first + pages.start as u64, words.contents.get_mut(pages)?))
    }

    /// Returns the bytes of memory that the words take.
    pub fn size(&self) -> usize {
        let words = |words: &ExtentWords| {
            size_of::<ExtentWords>()
                + 8 * (words.entries.capacity()
                    + words.flags.capacity()
                    + words.counts.capacity()
                    + words.contents.capacity())
                + 16 * (words.huge.capacity() + words.zero.capacity() + words.merged.capacity())
        };
        self.extents.iter().map(|extent| size_of::<WordBlock>() + words(&extent.words)).sum()
    }
}

/// Returns whether one of `ranges`, which are in order, contains a page of these words.
fn touches(words: &ExtentWords, ranges: &[Range<u64>]) -> bool {
    let next = ranges.partition_point(|range| range.end <= words.first);
    ranges.get(next).is_some_and(|range| range.start < words.end())
}

/// Returns the pages whose words in `old` and `new` differ; both are in address order. Pages in the ranges `unmapped`
/// had no words before, whatever `old` has.
fn differences<'a>(
    old: impl Iterator<Item = &'a ExtentWords>,
    new: impl Iterator<Item = &'a ExtentWords>,
    unmapped: Rc<[Range<u64>]>,
    mut goes_on: impl FnMut() -> bool,
) -> impl Iterator<Item = (u64, SampledPage, SampledPage)> {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    let mut next_unmapped = 0;
    let mut page = 0;
    std::iter::from_fn(move || {
        while goes_on() {
            while old.next_if(|words| words.end() <= page).is_some() {}
            while new.next_if(|words| words.end() <= page).is_some() {}
            let starts = [old.peek(), new.peek()].map(|one| one.map(|words| words.first));
            page = page.max(starts.into_iter().flatten().min()?);
            while unmapped.get(next_unmapped).is_some_and(|range| range.end <= page) {
                next_unmapped += 1;
            }
            let unmapped = unmapped.get(next_unmapped);
            // Mostly nothing has changed: therefore words that were read together are compared at once.
            if let (Some(then), Some(now)) = (old.peek(), new.peek())
                && page == then.first
                && then == now
                && unmapped.is_none_or(|range| range.start >= then.end())
            {
                page = then.end();
                continue;
            }
            let seen = |one: Option<&&ExtentWords>| match one {
                Some(words) if words.first <= page => words.page(page),
                _ => SampledPage::default(),
            };
            let is_new = unmapped.is_some_and(|range| range.contains(&page));
            let then = if is_new { SampledPage::default() } else { seen(old.peek()) };
            let differing = (page, then, seen(new.peek()));
            page += 1;
            if differing.1 != differing.2 {
                return Some(differing);
            }
        }
        None
    })
}

/// A sample that is being taken.
pub(super) struct OpenSample {
    space: AddressSpace,
    spans: Vec<AddressRange>,
    words: PageWords,
    pages: Sweep,
}

impl OpenSample {
    /// Begins a sample of `spans`. It reads flags and map counts if they are in `extra`, and `more` evidence as far as
    /// it is available. Words that are the same as in `before` are shared with it.
    pub fn new(
        space: AddressSpace,
        spans: Vec<AddressRange>,
        [extra, more]: [Evidence; 2],
        before: &PageWords,
    ) -> Self {
        // If frame numbers are hidden, only PAGEMAP_SCAN shows that a write has replaced the zero page.
        let hides_zeros = space.availability().frames.is_err();
        let asks_kinds = extra.contains(Evidence::KINDS);
        let mut zeros = if asks_kinds || hides_zeros { Evidence::KINDS } else { Evidence::empty() };
        zeros.set(Evidence::FLAGS, asks_kinds && !space.target().process.has_scan());
        // Only flags show which pages are merged.
        zeros.set(Evidence::FLAGS, zeros.contains(Evidence::FLAGS) || space.tells_merged_pages());
        let extra = extra & (Evidence::FLAGS | Evidence::COUNTS);
        let need = space.obtainable(Evidence::HUGE | Evidence::OWNERS | zeros | more) | extra | Evidence::ENTRIES;
        let pages = space.pages(&spans, need);
        OpenSample { space, spans, words: before.next(extra), pages }
    }

    /// Limits the sample by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        OpenSample { pages: self.pages.with_budget(budget), ..self }
    }

    /// Reads the next pages. Returns false after the last ones.
    pub fn advance(&mut self, before: &PageWords) -> Result<bool> {
        let goes_on = self.pages.advance()?;
        if let Some(chunk) = self.pages.chunk().filter(|_| goes_on) {
            self.words.add(&chunk, self.space.page_size(), before);
        }
        self.space.check()?;
        Ok(goes_on)
    }

    /// Returns the pages that were read last.
    pub fn chunk(&self) -> Option<Chunk<'_>> {
        self.pages.chunk()
    }

    /// Returns the words that were read so far.
    pub fn words(&mut self) -> &mut PageWords {
        &mut self.words
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        self.space.target()
    }

    /// Returns whether regions changed during the sample, once it is complete.
    pub fn has_changed(&self) -> bool {
        !self.pages.changed_ranges().is_empty()
    }

    /// Returns the sample, once it is complete, and its address space.
    pub fn finish(self) -> (WordSample, AddressSpace) {
        let OpenSample { space, spans, words, .. } = self;
        let regions = around(&space, &spans);
        let tells_huge = space.availability().categories.contains(Categories::HUGE);
        (WordSample { words, regions, spans, page: space.page_size(), tells_huge }, space)
    }
}

/// The words of the watched addresses at one time, with the regions in them and next to them.
pub(super) struct WordSample {
    pub words: PageWords,
    pub regions: Vec<(Region, Backing)>,
    pub spans: Vec<AddressRange>,
    pub page: PageSize,
    /// Whether the sample shows huge mappings, which a core does not.
    pub tells_huge: bool,
}

impl WordSample {
    /// Returns the region that contains `address`, and the facts about it for classification.
    pub fn place(&self, address: VirtualAddress) -> Option<(&Region, RegionFacts)> {
        let after = self.regions.partition_point(|(region, _)| region.range.start() <= address);
        let (region, backing) = self.regions.get(after.checked_sub(1)?)?;
        let facts = RegionFacts::plain(*backing, region.permissions.shared);
        region.range.contains(address).then_some((region, facts))
    }

    /// Returns the range from the first to the last sampled address in `range`.
    pub fn sampled_part(&self, range: AddressRange) -> Option<AddressRange> {
        range.within(&self.spans).reduce(spanning)
    }
}

/// Returns the range from the first address of both to the last.
pub(super) fn spanning(a: AddressRange, b: AddressRange) -> AddressRange {
    AddressRange::new(a.start().min(b.start()), a.end().max(b.end())).unwrap_or(a)
}

/// Returns the regions in `spans`, which are in order, and those next to each span, as these may grow into it.
fn around(space: &AddressSpace, spans: &[AddressRange]) -> Vec<(Region, Backing)> {
    let mut neighbours = Vec::new();
    let mut next = 0;
    for span in spans {
        let first = space.region_from(next, span.start());
        let above = space.region_from(first, span.end());
        let regions =
            space.viewed_regions().get(next.max(first.saturating_sub(1))..space.viewed_regions().len().min(above + 1));
        let regions = regions.unwrap_or_default();
        neighbours.extend(regions.iter().map(|viewed| (viewed.region.clone(), viewed.backing)));
        next = next.max(above + 1);
    }
    neighbours
}
