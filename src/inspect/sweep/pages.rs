//! The pages of a stretch, made from the words that were read. Neighbours that are the same come as one.

use super::super::classify::{PageObservation, classify};
use super::super::page::{Facts, InZone, Page, StateSet, huge_without_scan};
use super::chunk::{Chunk, ChunkContent, EntryWords, UNREAD};
use crate::kernel::{Kind, PageFlags, PageMapEntry, State, VirtualAddress};
use crate::process::{BackingContent, Categories};

/// The pages of a [`Chunk`].
#[must_use = "iterators are lazy"]
pub struct Pages<'a> {
    chunk: Chunk<'a>,
    /// Whether entries of single pages are all that was read, and neighbours that are the same may come as one.
    is_plain: bool,
    /// Index of the next entry, or of the next page of a stretch without entries.
    next: usize,
    /// The index of the next entry's mark.
    mark: usize,
    /// The index of the next page's backing run.
    run: usize,
    /// The bits of the last plain entry without its frame, and their states and kind: mostly the next entry has the
    /// same.
    class: Option<(u64, StateSet, Option<Kind>)>,
    /// What is left of a huge mapping, or of neighbours that are wanted one by one.
    rest: Option<Page>,
}

impl<'a> Chunk<'a> {
    /// Its pages in address order. Neighbours that are the same come as one [`Page`], unless [`Facts::EACH`] was asked
    /// for.
    pub fn pages(&self) -> Pages<'a> {
        let has_only_entries = matches!(self.content, ChunkContent::Read(words) if self.has_only_entries(words));
        Pages {
            is_plain: has_only_entries && self.need.has_entries() && !self.need.contains(Facts::EACH),
            chunk: *self,
            next: 0,
            mark: 0,
            run: 0,
            class: None,
            rest: None,
        }
    }
}

impl Iterator for Pages<'_> {
    type Item = Page;

    #[inline]
    fn next(&mut self) -> Option<Page> {
        match self.next_plain() {
            Some(page) => Some(page),
            None => self.next_any(),
        }
    }
}

impl Pages<'_> {
    /// The next page, whatever was read of it. Not inlined, so that only the fast path of plain pages is.
    #[inline(never)]
    fn next_any(&mut self) -> Option<Page> {
        let page = match self.rest.take() {
            Some(rest) => rest,
            None => self.next_alike()?,
        };
        if page.pages > 1 && self.chunk.need.contains(Facts::EACH) {
            let size = self.chunk.size;
            self.rest = Some(Page { pages: page.pages - 1, ..page.nth(1, size) });
            return Some(page.nth(0, size));
        }
        Some(page)
    }

    /// The next neighbours that are the same.
    fn next_alike(&mut self) -> Option<Page> {
        match self.chunk.content {
            ChunkContent::Read(words) => self.decode(words),
            _ if self.next as u64 >= self.chunk.pages => None,
            ChunkContent::Nothing => {
                let first = self.next as u64;
                let (content, limit) = self.backing_content(first);
                let pages = limit.min(self.chunk.pages - first);
                self.next += pages as usize;
                let empty = Some(PageMapEntry::default());
                Some(self.chunk.empty_page(first, pages, empty, content))
            }
            ChunkContent::Outside => {
                self.next = self.chunk.pages as usize;
                Some(self.chunk.empty_page(0, self.chunk.pages, None, None))
            }
            ChunkContent::Present => {
                self.next = self.chunk.pages as usize;
                Some(self.chunk.present_page(0, self.chunk.pages))
            }
        }
    }

    fn decode(&mut self, words: EntryWords<'_>) -> Option<Page> {
        let first = self.next;
        let (categories, limit) = self.categories(words, first);
        let rest = words.entries.get(first..)?;
        let &entry = rest.first()?;
        if entry.is_present() && !self.chunk.need.has_entries() {
            // The same page as when a scan found it present.
            let present = rest.iter().take_while(|entry| entry.is_present());
            let present = present.count();
            self.next += present;
            return Some(self.chunk.present_page(first as u64, present as u64));
        }
        let (content, limit) = if entry.is_present() || entry.swap().is_some() {
            (None, limit)
        } else {
            let (content, pages) = self.backing_content(first as u64);
            (content, limit.min(usize::try_from(pages).unwrap_or(limit)))
        };
        let mut alike = count_alike(rest.get(..limit.min(rest.len()))?, words.stride);
        let flags = same_word(words.flags, first, &mut alike);
        let tail_flags = same_word(words.tail_flags, first, &mut alike);
        let map_count = same_word(words.counts, first, &mut alike);
        let own = same_word(words.own, first, &mut alike);
        let order = same_word(words.orders, first, &mut alike);
        let cgroup = same_word(words.cgroups, first, &mut alike);
        let zone = self.zone(entry, words.stride, &mut alike);
        // A head has other flags than its tails: with flags, huge mappings come one by one and in two parts.
        let parted = words.stride > 1 && flags.is_some();
        let flags = flags.map(PageFlags::from_bits_retain);
        let evidence = PageObservation { entry: Some(entry), flags, categories, content };
        let (states, kind) = classify(evidence, self.chunk.place, self.chunk.rules);
        // Several zero pages in one `Page` have the same frame. s390x and MIPS have more than one frame of zeros, and
        // their frames follow each other (ZERO_PAGE in asm/pgtable.h): these pages come one by one.
        if parted || kind == Some(Kind::Zero) && entry.frame().is_some() {
            alike = 1;
        }
        self.next += alike;
        let into = (first as u64 * words.stride) << self.chunk.size.shift();
        let page = Page {
            address: VirtualAddress::new(self.chunk.start.get() + into),
            pages: alike as u64 * words.stride,
            entry,
            states,
            kind,
            flags,
            map_count,
            own_mappings: map_count.zip(own).map_or(0, |(count, own)| own.min(count.saturating_sub(1))),
            huge: categories
                .filter(|_| self.chunk.need.contains(Facts::HUGE))
                .map(|categories| categories.contains(Categories::HUGE))
                .or(self.chunk.never_huge())
                .or_else(|| self.huge_unscanned(states, kind, flags)),
            count_is_average: !self.chunk.exact_counts
                && map_count.is_some_and(|count| count > 0)
                && flags.is_none_or(PageFlags::is_in_large_folio),
            order: order.and_then(|order| u8::try_from(order).ok()),
            zone,
            cgroup,
            content,
        };
        if !parted {
            return Some(page);
        }
        self.rest = Some(Page {
            pages: page.pages - 1,
            flags: tail_flags.map(PageFlags::from_bits_retain),
            ..page.nth(1, self.chunk.size)
        });
        Some(page.nth(0, self.chunk.size))
    }

    /// [`huge_without_scan`], if that is asked for.
    fn huge_unscanned(&self, states: StateSet, kind: Option<Kind>, flags: Option<PageFlags>) -> Option<bool> {
        let is_asked = states.likeliest() == State::Present && self.chunk.need.contains(Facts::HUGE);
        is_asked.then(|| huge_without_scan(kind, flags)).flatten()
    }

    /// A run of present pages of which only the entries were read: by far the most frequent, so this is the fast path.
    #[inline]
    fn next_plain(&mut self) -> Option<Page> {
        let ChunkContent::Read(words) = self.chunk.content else {
            return None;
        };
        let first = self.next;
        let entries = words.entries.get(first..)?;
        let &entry = entries.first()?;
        if !self.is_plain || !entry.is_present() {
            return None;
        }
        let pages = count_alike(entries, 1);
        self.next += pages;
        let bits = entry.bits();
        let (states, kind) = match self.class {
            Some((last, states, kind)) if last == bits => (states, kind),
            _ => {
                let evidence = PageObservation::of(entry);
                let (states, kind) = classify(evidence, self.chunk.place, self.chunk.rules);
                self.class = Some((bits, states, kind));
                (states, kind)
            }
        };
        let chunk = &self.chunk;
        Some(Page {
            huge: chunk.never_huge().or_else(|| self.huge_unscanned(states, kind, None)),
            ..chunk.page_with(first as u64, pages as u64, entry, states, kind)
        })
    }

    /// The backing content of page `index`, and for how many pages from there on it is the same.
    #[inline]
    fn backing_content(&mut self, index: u64) -> (Option<BackingContent>, u64) {
        let (start, shift) = (self.chunk.start.get(), self.chunk.size.shift());
        let at = start + (index << shift);
        while let Some(run) = self.chunk.backing.get(self.run) {
            let (first, end) = (run.range.start().get(), run.range.end().get());
            if at < first {
                return (None, (first - at) >> shift);
            }
            if at < end {
                return (run.content.as_ref().ok().copied(), (end - at) >> shift);
            }
            self.run += 1;
        }
        (None, u64::MAX)
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

    /// The categories of entry `index`, and for how many entries from there on they hold.
    fn categories(&mut self, words: EntryWords<'_>, index: usize) -> (Option<Categories>, usize) {
        let Some(marks) = words.marks else {
            return (None, usize::MAX);
        };
        while let Some(mark) = marks.get(self.mark) {
            if index < mark.first {
                return (Some(Categories::empty()), mark.first - index);
            }
            if index < mark.end {
                return (Some(mark.categories), mark.end - index);
            }
            self.mark += 1;
        }
        (Some(Categories::empty()), usize::MAX)
    }
}

/// The word at `first`, if it was read; cuts `alike` to as many words as are the same.
#[inline]
fn same_word(words: &[u64], first: usize, alike: &mut usize) -> Option<u64> {
    let words = words.get(first..)?;
    let &word = words.first()?;
    *alike = words.iter().take(*alike).take_while(|&&other| other == word).count();
    (word != UNREAD).then_some(word)
}

/// How many entries from the first on differ in nothing but consecutive frames.
#[inline]
fn count_alike(entries: &[PageMapEntry], stride: u64) -> usize {
    /// Entries compared at once: most runs are longer.
    const BLOCK: usize = 8;
    let Some(first) = entries.first() else {
        return 0;
    };
    let step = match first.frame() {
        Some(_) => stride,
        None => 0,
    };
    let expected = |index: usize| first.raw().wrapping_add(step.wrapping_mul(index as u64));
    let differs = |from: usize, entries: &[PageMapEntry]| {
        let entries = entries.iter().zip(from..);
        entries.fold(0, |differs, (entry, index)| differs | (entry.raw() ^ expected(index))) != 0
    };
    let blocks = entries.chunks_exact(BLOCK);
    let alike = blocks.zip((0..).step_by(BLOCK)).take_while(|&(block, from)| !differs(from, block)).count() * BLOCK;
    let rest = entries.get(alike..).unwrap_or_default();
    let rest = rest.iter().zip(alike..);
    alike + rest.take_while(|&(entry, index)| entry.raw() == expected(index)).count()
}
