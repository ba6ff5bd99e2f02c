//! The raw words of the populated pages of a sample.

use crate::inspect::sweep::Chunk;
use crate::inspect::sweep::raw::{Content, UNREAD};
use crate::kernel::{PageFlags, PageMapEntry, PageSize};
use crate::process::Categories;
use std::sync::Arc;

/// The words of one sample, in address order.
#[derive(Default)]
pub(super) struct PageWords {
    extents: Vec<Extent>,
    /// For each extent of the last sample, whether this one has the same words.
    same: Vec<bool>,
    /// Index into the extents of the last sample: those before it end before the next chunk.
    cursor: usize,
}

/// Words that were read together.
struct Extent {
    /// Shared with the last sample, if they are the same.
    words: Arc<Words>,
    /// Whether they differ from those of the last sample.
    fresh: bool,
}

struct Words {
    /// Index of the first page.
    first: u64,
    /// Pages that an entry stands for.
    stride: u64,
    entries: Vec<PageMapEntry>,
    /// Empty when flags are not watched.
    flags: Vec<u64>,
    /// Empty when map counts are not watched.
    counts: Vec<u64>,
    /// Entries that huge mappings cover, as pairs of indices.
    huge: Vec<(usize, usize)>,
}

/// The words of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct SampledPage {
    pub entry: PageMapEntry,
    pub flags: Option<PageFlags>,
    pub map_count: Option<u64>,
    pub huge: bool,
}

impl Words {
    fn of(chunk: &Chunk<'_>, size: PageSize) -> Option<Words> {
        let Content::Read(words) = chunk.content else {
            return None;
        };
        let huge = words
            .marks
            .unwrap_or_default()
            .iter()
            .filter(|mark| mark.categories.contains(Categories::HUGE))
            .map(|mark| (mark.first, mark.end));
        Some(Words {
            first: size.index(chunk.start),
            stride: words.stride,
            entries: words.entries.to_vec(),
            flags: words.flags.to_vec(),
            counts: words.counts.to_vec(),
            huge: huge.collect(),
        })
    }

    /// Whether the words of `chunk` are the same. Nothing is decoded.
    fn is_same(&self, chunk: &Chunk<'_>, size: PageSize) -> bool {
        let Content::Read(words) = chunk.content else {
            return false;
        };
        let huge = words
            .marks
            .unwrap_or_default()
            .iter()
            .filter(|mark| mark.categories.contains(Categories::HUGE))
            .map(|mark| (mark.first, mark.end));
        self.first == size.index(chunk.start)
            && self.stride == words.stride
            && self.entries == words.entries
            && self.flags == words.flags
            && self.counts == words.counts
            && self.huge.iter().copied().eq(huge)
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64 * self.stride
    }

    /// The words of the page with index `page`.
    fn page(&self, page: u64) -> SampledPage {
        let into = page.saturating_sub(self.first);
        let index = (into / self.stride) as usize;
        let entry = self.entries.get(index).copied().unwrap_or_default();
        let word = |words: &[u64]| words.get(index).copied().filter(|&word| word != UNREAD);
        let within = self.huge.partition_point(|&(_, end)| end <= index);
        SampledPage {
            entry: match entry.frame() {
                Some(_) => PageMapEntry::new(entry.raw() + into % self.stride),
                None => entry,
            },
            flags: word(&self.flags).map(PageFlags::from_bits_retain),
            map_count: word(&self.counts),
            huge: self
                .huge
                .get(within)
                .is_some_and(|&(first, _)| first <= index),
        }
    }
}

impl PageWords {
    /// Begins the next sample.
    pub fn next(&self) -> PageWords {
        PageWords {
            extents: Vec::with_capacity(self.extents.len()),
            same: vec![false; self.extents.len()],
            cursor: 0,
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
        if let (Some(extent), Some(same)) = (
            before.extents.get(self.cursor),
            self.same.get_mut(self.cursor),
        ) && extent.words.is_same(chunk, size)
        {
            *same = true;
            self.extents.push(Extent {
                words: extent.words.clone(),
                fresh: false,
            });
            return;
        }
        let words = Words::of(chunk, size).filter(|words| !words.entries.is_empty());
        self.extents.extend(words.map(|words| Extent {
            words: Arc::new(words),
            fresh: true,
        }));
    }

    /// Visits each page that differs from `before`, with its words then and now.
    pub fn differences<E>(
        &self,
        before: &PageWords,
        mut visit: impl FnMut(u64, SampledPage, SampledPage) -> Result<(), E>,
    ) -> Result<(), E> {
        let old = before.extents.iter().zip(&self.same);
        let mut old = old
            .filter(|(_, same)| !**same)
            .map(|(extent, _)| &*extent.words)
            .peekable();
        let new = self.extents.iter().filter(|extent| extent.fresh);
        let mut new = new.map(|extent| &*extent.words).peekable();
        let mut page = 0;
        loop {
            while old.next_if(|words| words.end() <= page).is_some() {}
            while new.next_if(|words| words.end() <= page).is_some() {}
            let starts = [old.peek(), new.peek()].map(|one| one.map(|words| words.first));
            let Some(start) = starts.into_iter().flatten().min() else {
                return Ok(());
            };
            page = page.max(start);
            let seen = |one: Option<&&Words>| match one {
                Some(words) if words.first <= page => words.page(page),
                _ => SampledPage::default(),
            };
            let (then, now) = (seen(old.peek()), seen(new.peek()));
            if then != now {
                visit(page, then, now)?;
            }
            page += 1;
        }
    }
}
