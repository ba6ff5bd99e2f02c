//! The words read of some stretches: one of each file for each entry, in parallel vectors.

use super::super::address_space::AddressSpace;
use super::super::page::Facts;
use super::chunk::{Chunk, Content, Entries, Mark};
use crate::kernel::{AddressRange, PageMapEntry};
use crate::process::{BackingRun, Categories};
use std::ops::Range;

/// Stretches in address order and their words. The buffers are reused.
#[derive(Default)]
pub(super) struct Pieces {
    pub all: Vec<Piece>,
    pub entries: Vec<PageMapEntry>,
    pub flags: Vec<u64>,
    /// The flags of first tails, for huge mappings; no longer than the last of these.
    pub tail_flags: Vec<u64>,
    pub counts: Vec<u64>,
    pub own: Vec<u64>,
    pub orders: Vec<u64>,
    pub cgroups: Vec<u64>,
    pub marks: Vec<Mark>,
}

/// A stretch of one region and where its words are.
pub(super) struct Piece {
    pub region: Option<usize>,
    pub range: AddressRange,
    pub words: Words,
    /// The backing content of its untouched pages, when asked for.
    pub content: Vec<BackingRun>,
}

pub(super) enum Words {
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

impl Pieces {
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
    pub fn push(&mut self, region: Option<usize>, range: AddressRange, words: Words) {
        self.all.push(Piece { region, range, words, content: Vec::new() });
    }

    /// Marks a piece of `entries` entries as huge mappings.
    pub fn mark_huge(&mut self, entries: usize) -> Range<usize> {
        self.marks.push(Mark { first: 0, end: entries, categories: Categories::HUGE });
        self.marks.len() - 1..self.marks.len()
    }

    /// A piece with the words that have been read.
    pub fn chunk<'a>(&'a self, piece: &'a Piece, space: &'a AddressSpace, need: Facts) -> Chunk<'a> {
        let region = piece.region.and_then(|index| space.regions().get(index));
        let content = match &piece.words {
            Words::Nothing => Content::Nothing,
            Words::Outside => Content::Outside,
            Words::Present => Content::Present,
            Words::Read { at, marks, stride } => Content::Read(Entries {
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
            region_index: piece.region,
            start: piece.range.start(),
            pages: piece.range.pages(space.page()),
            content,
            place: region.map(|viewed| space.place(viewed)),
            rules: space,
            size: space.page(),
            need,
            zones: need.contains(Facts::ZONES).then(zones).flatten(),
            exact_counts: need.contains(Facts::COUNTS) && space.has_exact_counts(),
            backing: &piece.content,
        }
    }
}
