//! The flags of frames, including all frames of their folios.

use super::pages::{FirstAndCount, RunReader};
use crate::budget::Budget;
use crate::kernel::{PageFlags, WordFile};
use crate::process::Result;
use crate::source::Source;
use crate::source::capture::{SharedCapture, WordWriter};

/// Gaps of up to this many frames are read too. A sweep reads over gaps as well, and its limit must not be smaller.
const GAP: u64 = 8;
/// The number of frames read at a time when searching for the beginning or end of a folio.
const FOLIO: u64 = 512;
/// The most frames of a folio.
const LARGEST_FOLIO: u64 = 1 << 22;

/// Sorts runs, and joins those with small gaps between them.
pub(super) fn join_frames(mut frames: Vec<FirstAndCount>) -> Vec<FirstAndCount> {
    frames.sort_unstable();
    let mut runs: Vec<FirstAndCount> = Vec::new();
    for (first, count) in frames {
        match runs.last_mut() {
            Some((start, all)) if first <= *start + *all + GAP => *all = (*all).max(first + count - *start),
            _ => runs.push((first, count)),
        }
    }
    runs
}

/// Reads the flags of runs of frames, extended to whole folios.
pub(super) struct Folios<'a> {
    source: &'a dyn Source,
    shared: &'a SharedCapture,
    pub(super) words: WordWriter,
    /// The runs of frames that were read.
    pub(super) whole: Vec<FirstAndCount>,
    /// The first frame after those that were read.
    next: u64,
}

impl<'a> Folios<'a> {
    pub(super) fn new(source: &'a dyn Source, shared: &'a SharedCapture, words: WordWriter) -> Self {
        Folios { source, shared, words, whole: Vec::new(), next: 0 }
    }

    pub(super) fn run(&mut self, (first, count): FirstAndCount, budget: &mut Budget) -> Result<()> {
        // One frame more shows whether the folio ends with the run.
        let end = first + count + 1;
        let start = first.max(self.next);
        let mut last = 0;
        let mut parts = RunReader::new(self.source, WordFile::FrameFlags, (start, end.saturating_sub(start)));
        while let Some((at, found)) = parts.next(budget)? {
            if at == first && found.first().is_some_and(|&flags| is_tail(flags)) {
                let begins = self.find_head(first)?;
                let mut before = RunReader::new(self.source, WordFile::FrameFlags, (begins, first - begins));
                while let Some((at, found)) = before.next(budget)? {
                    self.took(at, found)?;
                }
            }
            self.took(at, found)?;
            last = found.last().copied().unwrap_or_default();
        }
        while is_tail(last) && self.next < end.saturating_add(LARGEST_FOLIO) {
            let (at, mut flags) = (self.next, vec![0; FOLIO as usize]);
            let read = self.source.words(WordFile::FrameFlags, at, &mut flags)?;
            flags.truncate(read);
            let other = flags.iter().position(|&flags| !is_tail(flags));
            flags.truncate(other.map_or(read, |other| other + 1));
            self.took(at, &flags)?;
            last = flags.last().copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the first frame of the folio of a tail, or the first that was not read already.
    fn find_head(&self, first: u64) -> Result<u64> {
        let mut low = first;
        let lowest = first.saturating_sub(LARGEST_FOLIO).max(self.next);
        let mut flags = Vec::new();
        while low > lowest {
            let from = low.saturating_sub(FOLIO).max(lowest);
            flags.resize((low - from) as usize, 0);
            self.source.words(WordFile::FrameFlags, from, &mut flags)?;
            if let Some(head) = flags.iter().rposition(|&flags| !is_tail(flags)) {
                return Ok(from + head as u64);
            }
            low = from;
        }
        Ok(low)
    }

    fn took(&mut self, first: u64, found: &[u64]) -> Result<()> {
        self.words.add(&self.shared.archive, first, found)?;
        let count = found.len() as u64;
        match self.whole.last_mut() {
            Some((start, all)) if *start + *all == first => *all += count,
            _ if count > 0 => self.whole.push((first, count)),
            _ => {}
        }
        self.next = first + count;
        Ok(())
    }
}

fn is_tail(flags: u64) -> bool {
    PageFlags::from_bits_retain(flags).contains(PageFlags::COMPOUND_TAIL)
}
