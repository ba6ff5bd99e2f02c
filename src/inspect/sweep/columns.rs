//! What is read for each entry beside the entry itself: a column of words for each file or table.

pub(in crate::inspect) use super::super::hidden_words::UNREAD;
use super::super::holders::FrameHolders;
use super::super::page::{Evidence, FolioFit, Page};
use crate::kernel::{FrameNumber, PageFlags, TableBits, WordFile};
use crate::process::{self, Machine};
use std::ops::Range;

/// A column of words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::inspect) enum Column {
    /// The flags of the frames.
    Flags,
    /// For huge mappings the flags of the first tail, which stand for all tails.
    TailFlags,
    /// The map counts of the frames.
    Counts,
    /// How often pmdb itself maps each.
    Own,
    /// The orders of the folios that the frames are of.
    Orders,
    /// How these folios are mapped around each page, as indices of [`FolioFit::ALL`].
    Folios,
    /// The inodes of their memory cgroups.
    Cgroups,
    /// The bits of their entries in page tables.
    Tables,
    /// The frames of device mappings, which the page map hides.
    DeviceFrames,
}

impl Column {
    const COUNT: usize = 9;

    /// Every one, in their order.
    pub const ALL: [Column; Column::COUNT] = [
        Column::Flags,
        Column::TailFlags,
        Column::Counts,
        Column::Own,
        Column::Orders,
        Column::Folios,
        Column::Cgroups,
        Column::Tables,
        Column::DeviceFrames,
    ];

    /// The file that has its words by frame, what asks for it, and how errors name it; `None` for what is found
    /// otherwise.
    pub fn file(self) -> Option<(Evidence, WordFile, &'static str)> {
        match self {
            Column::Flags => Some((Evidence::FLAGS, WordFile::FrameFlags, "page flags")),
            Column::Counts => Some((Evidence::COUNTS, WordFile::FrameCounts, "map counts")),
            Column::Cgroups => Some((Evidence::CGROUPS, WordFile::FrameCgroups, "memory cgroups of frames")),
            Column::TailFlags
            | Column::Own
            | Column::Orders
            | Column::Folios
            | Column::Tables
            | Column::DeviceFrames => None,
        }
    }

    /// The columns that files have by frame, each with what asks for it.
    pub fn of_files() -> impl Iterator<Item = (Column, Evidence, WordFile)> {
        Column::ALL.into_iter().filter_map(|column| column.file().map(|(asked, file, _)| (column, asked, file)))
    }

    /// The columns of `need` that are read from files as they are. Map counts are read only where entries do not tell
    /// them.
    pub fn plain(need: Evidence) -> impl Iterator<Item = (Column, WordFile)> {
        let is_plain = move |column, asked| column != Column::Counts && need.contains(asked);
        Column::of_files()
            .filter(move |&(column, asked, _)| is_plain(column, asked))
            .map(|(column, _, file)| (column, file))
    }
}

/// The files of words that `need` asks for and no other evidence stands for, each with how errors name it, and whether
/// the machine shows it.
pub(in crate::inspect) fn probed(
    need: Evidence,
    machine: &Machine,
) -> impl Iterator<Item = (Evidence, &'static str, process::Result<()>)> {
    let probed = need.difference(Evidence::FLAGS | Evidence::COUNTS);
    Column::ALL.into_iter().filter_map(Column::file).filter(move |(asked, ..)| probed.contains(*asked)).map(
        |(asked, file, what)| {
            let read = machine.frame_words(file, FrameNumber::new(1), &mut [0]);
            (asked, what, read.map(drop))
        },
    )
}

/// The columns of a batch: a column that was not read is empty or ends before the entry. The buffers are reused.
#[derive(Default)]
pub(in crate::inspect) struct Columns {
    words: [Vec<u64>; Column::COUNT],
    /// Who holds the folios: more than a word each.
    pub holders: Vec<Option<FrameHolders>>,
}

impl Columns {
    pub fn clear(&mut self) {
        self.words.iter_mut().for_each(Vec::clear);
        self.holders.clear();
    }

    pub fn of(&self, column: Column) -> &[u64] {
        self.words.get(column as usize).map_or(&[], Vec::as_slice)
    }

    #[expect(clippy::indexing_slicing, reason = "there is one for each column")]
    pub fn of_mut(&mut self, column: Column) -> &mut Vec<u64> {
        &mut self.words[column as usize]
    }

    /// A column for `entries` entries, of which nothing was read yet.
    pub fn begin(&mut self, column: Column, entries: usize) -> &mut Vec<u64> {
        let words = self.of_mut(column);
        words.clear();
        words.resize(entries, UNREAD);
        words
    }

    /// Sets a word that was read.
    pub fn set(&mut self, column: Column, slot: usize, word: u64) {
        if let Some(place) = self.of_mut(column).get_mut(slot) {
            *place = word;
        }
    }

    /// The words of the entries `at`, without those that they were spared.
    pub fn slice(&self, at: &Range<usize>, spared: Evidence) -> ColumnSlices<'_> {
        let mut words = self.words.each_ref().map(|words| words.get(at.clone()).unwrap_or_default());
        if !spared.is_empty() {
            for (words, column) in words.iter_mut().zip(Column::ALL) {
                let of_flags = column == Column::TailFlags && spared.contains(Evidence::FLAGS);
                if of_flags || column.file().is_some_and(|(asked, ..)| spared.contains(asked)) {
                    *words = &[];
                }
            }
        }
        let read = words.iter().enumerate().filter(|(_, words)| !words.is_empty());
        let read = read.fold(0, |read, (column, _)| read | 1 << column);
        ColumnSlices { words, read, holders: self.holders.get(at.clone()).unwrap_or_default() }
    }

    /// Adds `pages` words for an entry that stands for as many pages, and has its words at `slot`. Columns that were
    /// not read stay as they are.
    pub fn repeat(&mut self, slot: usize, pages: usize, end: usize) {
        for column in Column::ALL {
            let Some(word) = self.of(column).get(slot).copied() else {
                continue;
            };
            match column {
                // The flags of the first page are those of a head.
                Column::Flags => {
                    let tail = self.of(Column::TailFlags).get(slot).copied().unwrap_or(UNREAD);
                    self.of_mut(column).resize(end - pages, UNREAD);
                    self.of_mut(column).push(word);
                    self.of_mut(column).resize(end, tail);
                }
                Column::TailFlags => {}
                _ => {
                    self.of_mut(column).resize(end - pages, UNREAD);
                    self.of_mut(column).resize(end, word);
                }
            }
        }
        if let Some(&holders) = self.holders.get(slot) {
            self.holders.resize(end - pages, None);
            self.holders.resize(end, holders);
        }
    }
}

/// The columns of one stretch.
#[derive(Clone, Copy)]
pub(in crate::inspect) struct ColumnSlices<'a> {
    words: [&'a [u64]; Column::COUNT],
    /// Which of them were read, a bit each: most pages have a word of one or two.
    read: u16,
    /// Who holds the folios; empty when not read.
    pub holders: &'a [Option<FrameHolders>],
}

impl<'a> ColumnSlices<'a> {
    /// Whether no column was read.
    #[inline]
    pub fn are_empty(&self) -> bool {
        self.read == 0
    }

    /// Empty when not read.
    pub fn of(&self, column: Column) -> &'a [u64] {
        self.words.get(column as usize).copied().unwrap_or_default()
    }

    /// The words of entry `first`; cuts `alike` to as many entries as have the same.
    #[inline]
    pub fn words_at(&self, first: usize, alike: &mut usize) -> WordsAt {
        let mut words_at = WordsAt([UNREAD; Column::COUNT]);
        let mut left = self.read;
        while left != 0 {
            let column = left.trailing_zeros() as usize;
            left &= left - 1;
            let words = self.words.get(column).and_then(|words| words.get(first..)).unwrap_or_default();
            if let (false, Some(word)) = (words.is_empty(), words_at.0.get_mut(column)) {
                *word = first_of_run(words, u64::from(column == Column::DeviceFrames as usize), alike);
            }
        }
        words_at
    }
}

/// The words of one entry, [`UNREAD`] where they were not read.
pub(in crate::inspect) struct WordsAt([u64; Column::COUNT]);

impl WordsAt {
    /// `None` where it was not read.
    #[inline]
    pub fn of(&self, column: Column) -> Option<u64> {
        self.0.get(column as usize).copied().filter(|&word| word != UNREAD)
    }

    /// Gives a page what was read of its frame and its entry in page tables.
    #[inline]
    pub fn fill(&self, page: &mut Page) {
        page.flags = self.of(Column::Flags).map(PageFlags::from_bits_retain);
        page.map_count = self.of(Column::Counts);
        let own = page.map_count.zip(self.of(Column::Own));
        page.own_mappings = own.map_or(0, |(count, own)| own.min(count.saturating_sub(1)));
        page.order = self.of(Column::Orders).and_then(|order| u8::try_from(order).ok());
        page.folio = self.of(Column::Folios).and_then(|fit| FolioFit::ALL.get(fit as usize).copied());
        page.cgroup = self.of(Column::Cgroups);
        page.table = self.of(Column::Tables).map(|bits| TableBits::from_bits_retain(bits as u8));
        page.device_frame = self.of(Column::DeviceFrames).map(FrameNumber::new);
    }
}

/// The first of some words, or [`UNREAD`]. Cuts `alike` to as many as follow it in steps of `step`, or are not read
/// either.
#[inline]
fn first_of_run(words: &[u64], step: u64, alike: &mut usize) -> u64 {
    let first = words.first().copied().unwrap_or(UNREAD);
    if *alike == 1 {
        return first;
    }
    let step = if first == UNREAD { 0 } else { step };
    let mut next = first;
    let goes_on = |word: &&u64| {
        let is_next = **word == next;
        next = next.saturating_add(step);
        is_next
    };
    *alike = words.iter().take(*alike).take_while(goes_on).count();
    first
}
