//! The words of a page map, or of a file with a word for each frame, as runs in blocks.
//!
//! A block is a sequence of 64-bit words. It begins with the number of runs. For each run the following lists have a
//! number: the words between it and the run before; the words that it represents; the words that it has (one that
//! repeats, or all). Then come the words of all runs, each minus the word before it. The lowest bytes of all words are
//! stored first, then all second ones, and so on. Neighbouring words are similar, so that most bytes are zero. For
//! scattered frames this halves the size.

use super::archive::{Archive, ArchiveReader, damaged, pack};
use super::index::{RecordedFailure, WordIndex};
use super::stored::{BLOCK, CompressedBlock};
use crate::access::{Error, Result};
use crate::own::memory;
use rustix::io::Errno;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

/// The size of a word in bytes.
const WORD: usize = 8;
/// The most words in a block.
const MOST: usize = BLOCK / WORD;
/// The most compressed bytes in one tar member.
const MEMBER: usize = 1 << 20;

/// Writes the words of one file, in ascending order of their indexes.
pub struct WordWriter {
    name: String,
    runs: Vec<[u64; 3]>,
    words: Vec<u64>,
    packed: Vec<u8>,
    /// The first and last index of each compressed block, and its lengths.
    pending: Vec<(u64, u64, u32, u32)>,
    members: u32,
    /// The number of words in the blocks so far, if it is kept for each block.
    words_before: Option<u64>,
    index: WordIndex,
}

impl WordWriter {
    /// Makes a writer of members with this name.
    pub fn new(name: &str) -> Self {
        WordWriter {
            name: name.to_owned(),
            runs: Vec::new(),
            words: Vec::new(),
            packed: Vec::new(),
            pending: Vec::new(),
            members: 0,
            words_before: None,
            index: WordIndex::default(),
        }
    }

    /// Keeps the number of words before each block, for files whose words are stored in the same order.
    #[must_use]
    pub fn leading(self) -> Self {
        WordWriter { words_before: Some(0), ..self }
    }

    /// Adds words from index `first` on.
    ///
    /// # Errors
    /// Fails if the capture cannot be written.
    pub fn add(&mut self, archive: &Mutex<Archive>, mut first: u64, mut words: &[u64]) -> Result<()> {
        while !words.is_empty() {
            let room = MOST.saturating_sub(1 + 3 * (self.runs.len() + 1) + self.words.len());
            if room < 4 {
                self.end_block(archive)?;
                continue;
            }
            let (now, later) = words.split_at(room.min(words.len()));
            let count = now.len() as u64;
            match self.runs.last_mut() {
                Some([start, all, stored]) if *start + *all == first && *all == *stored => {
                    *all += count;
                    *stored += count;
                }
                _ => self.runs.push([first, count, count]),
            }
            self.words.extend(now);
            first += count;
            words = later;
        }
        Ok(())
    }

    /// Adds the same word `count` times.
    ///
    /// # Errors
    /// Fails as [`add`](Self::add).
    pub fn repeat(&mut self, archive: &Mutex<Archive>, first: u64, count: u64, word: u64) -> Result<()> {
        if 1 + 3 * (self.runs.len() + 1) + self.words.len() >= MOST {
            self.end_block(archive)?;
        }
        self.runs.push([first, count, 1]);
        self.words.push(word);
        Ok(())
    }

    /// Ends the file, which had `end` words.
    ///
    /// # Errors
    /// Fails as [`add`](Self::add).
    pub fn finish(mut self, archive: &Mutex<Archive>, end: u64) -> Result<WordIndex> {
        self.end_block(archive)?;
        self.end_member(archive)?;
        Ok(WordIndex { end, ..self.index })
    }

    fn end_block(&mut self, archive: &Mutex<Archive>) -> Result<()> {
        let (Some([first, ..]), Some([last, count, _])) = (self.runs.first(), self.runs.last()) else {
            return Ok(());
        };
        let ends = (*first, last + (count - 1));
        if let Some(words_before) = &mut self.words_before {
            self.index.before.push(*words_before);
            *words_before += self.runs.iter().map(|[_, count, _]| count).sum::<u64>();
        }
        let mut all = Vec::with_capacity(MOST);
        all.push(self.runs.len() as u64);
        let mut end = 0u64;
        all.extend(
            self.runs.iter().map(|[first, count, _]| first.wrapping_sub(std::mem::replace(&mut end, first + count))),
        );
        all.extend(self.runs.iter().map(|[_, count, _]| count));
        all.extend(self.runs.iter().map(|[_, _, stored]| stored));
        let mut before = 0u64;
        all.extend(self.words.iter().map(|&word| word.wrapping_sub(std::mem::replace(&mut before, word))));
        let bytes: Vec<u8> =
            (0..WORD).flat_map(|place| all.iter().map(move |word| (word >> (8 * place)) as u8)).collect();
        let before = self.packed.len();
        self.packed = pack(&bytes, std::mem::take(&mut self.packed)).map_err(|_| Error::io("packing", Errno::IO))?;
        self.pending.push((ends.0, ends.1, bytes.len() as u32, (self.packed.len() - before) as u32));
        self.runs.clear();
        self.words.clear();
        if self.packed.len() >= MEMBER { self.end_member(archive) } else { Ok(()) }
    }

    fn end_member(&mut self, archive: &Mutex<Archive>) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let name = format!("{}.{:04}.gz", self.name, self.members);
        self.members += 1;
        let lengths: Vec<(u32, u32)> = self.pending.iter().map(|&(_, _, length, packed)| (length, packed)).collect();
        let mut archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = archive.blocks(&name, &self.packed, &lengths)?;
        let ends = self.pending.drain(..).map(|(first, last, ..)| (first, last));
        self.index.blocks.extend(ends.zip(blocks).map(|((first, last), block)| (first, last, block)));
        self.packed.clear();
        Ok(())
    }
}

impl WordIndex {
    /// Makes the index of a file that could not be read.
    pub fn refused(error: &Error) -> Self {
        WordIndex { failure: Some(RecordedFailure::of(error)), ..WordIndex::default() }
    }

    /// Returns whether the file could not be read.
    pub fn is_refused(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns whether no words were ever written.
    pub(super) fn is_empty(&self) -> bool {
        self.failure.is_none() && self.end == 0
    }

    /// Returns the compressed size of the blocks, in bytes.
    pub fn packed(&self) -> u64 {
        self.blocks.iter().map(|(_, _, block)| u64::from(block.packed)).sum()
    }

    /// Returns whether the blocks are in order.
    pub(super) fn is_in_order(&self) -> bool {
        let is_block = |(first, last, _): &(u64, u64, CompressedBlock)| first <= last;
        let are_counted = self.before.is_empty() || self.before.len() == self.blocks.len();
        are_counted && self.blocks.iter().all(is_block) && self.blocks.windows(2).all(|pair| pair[0].1 < pair[1].0)
    }

    /// Reads words from `first` on. Returns how many are before the end of the file, and how many of these are known.
    /// Unknown words are not written to `into`.
    pub(super) fn read(&self, reader: &BlockReader, first: u64, into: &mut [u64]) -> Result<(usize, u64)> {
        if let Some(failure) = &self.failure {
            return Err(failure.error());
        }
        let asked = self.end.saturating_sub(first).min(into.len() as u64) as usize;
        Ok((asked, self.fill(reader, first, into.get_mut(..asked).unwrap_or_default())?))
    }

    /// Reads words that are stored in the order of those of `leading`, and returns what [`read`](Self::read) does.
    pub(super) fn read_by(
        &self,
        leading: &WordIndex,
        reader: &BlockReader,
        first: u64,
        into: &mut [u64],
    ) -> Result<(usize, u64)> {
        if let Some(failure) = &self.failure {
            return Err(failure.error());
        }
        let asked = self.end.saturating_sub(first).min(into.len() as u64);
        let end = first + asked;
        let mut known = 0;
        let from = leading.blocks.partition_point(|(_, last, _)| *last < first);
        let blocks = leading.blocks.iter().zip(&leading.before).skip(from);
        let mut words = Vec::new();
        for ((_, _, block), &before) in blocks.take_while(|((begin, ..), _)| *begin < end) {
            let block = reader.block(*block)?;
            // Collects the parts, each with its place in `into` and its length. They are in the order of `leading`, and
            // adjacent there.
            let (mut at, mut start, mut parts) = (before, None, Vec::new());
            for &(run, count, ..) in &block.runs {
                let (low, high) = (run.max(first), run.saturating_add(count).min(end));
                if low < high {
                    start = start.or(Some(at.saturating_add(low - run)));
                    parts.push(((low - first) as usize, (high - low) as usize));
                }
                at = at.saturating_add(count);
            }
            let wanted = parts.iter().map(|(_, count)| count).sum();
            if wanted > into.len() {
                return Err(damaged("a block of words"));
            }
            words.clear();
            words.resize(wanted, 0);
            known += self.fill(reader, start.unwrap_or(at), &mut words)?;
            let mut rest = words.as_slice();
            for (place, count) in parts {
                let (now, later) = rest.split_at_checked(count).ok_or_else(|| damaged("a block of words"))?;
                into.get_mut(place..place + count).unwrap_or_default().copy_from_slice(now);
                rest = later;
            }
        }
        Ok((asked as usize, known))
    }

    /// Reads words from `first` on, and returns how many are known. Unknown words are not written to `into`.
    fn fill(&self, reader: &BlockReader, first: u64, into: &mut [u64]) -> Result<u64> {
        let end = first.saturating_add(into.len() as u64);
        let mut known = 0;
        let from = self.blocks.partition_point(|(_, last, _)| *last < first);
        let blocks = self.blocks.get(from..).unwrap_or_default();
        for (_, _, block) in blocks.iter().take_while(|(begin, _, _)| *begin < end) {
            let block = reader.block(*block)?;
            for &(start, count, at, stored) in block.runs_from(first) {
                let (low, high) = (start.max(first), start.saturating_add(count).min(end));
                if low >= high {
                    // The runs are in order, and some may be empty.
                    if start >= end {
                        break;
                    }
                    continue;
                }
                let place = into.get_mut((low - first) as usize..(high - first) as usize).unwrap_or_default();
                if stored == 1 {
                    place.fill(block.words.get(at).copied().unwrap_or_default());
                } else {
                    let skipped = at + (low - start) as usize;
                    let words = block.words.get(skipped..skipped + place.len());
                    place.copy_from_slice(words.ok_or_else(|| damaged("a block of words"))?);
                }
                known += high - low;
            }
        }
        Ok(known)
    }
}

/// A decoded block.
struct DecodedBlock {
    /// The runs: first index, number of words that it represents, the place of its words, and their number.
    runs: Vec<(u64, u64, usize, u64)>,
    words: Vec<u64>,
}

/// Reads blocks, and caches decoded ones.
pub(super) struct BlockReader {
    contents: Arc<ArchiveReader>,
    kept: Mutex<KeptBlocks>,
    /// The most bytes of blocks in the cache.
    most: usize,
}

/// The decoded blocks in the cache.
#[derive(Default)]
struct KeptBlocks {
    blocks: Vec<(CompressedBlock, Arc<DecodedBlock>)>,
    places: HashMap<CompressedBlock, usize>,
    bytes: usize,
    replaced: usize,
}

/// The most bytes of decoded blocks in the cache: the flags of 64 GiB of frames. A sweep reads the flags of each part
/// of its pages in the order of frames, and so mostly all blocks for each part. It is less where memory is short.
const MOST_KEPT: u64 = 128 << 20;

/// The bytes that a block takes in the cache besides its words and runs: its keys, its entries and its allocations.
const BYTES_OF_BLOCK: usize = 256;

impl KeptBlocks {
    fn find(&self, block: CompressedBlock) -> Option<Arc<DecodedBlock>> {
        let (_, decoded) = self.blocks.get(*self.places.get(&block)?)?;
        Some(Arc::clone(decoded))
    }

    /// Adds a block in the place of others. These are scattered: of blocks that are read again and again in one order,
    /// the oldest is the next to be read.
    fn add(&mut self, block: CompressedBlock, decoded: Arc<DecodedBlock>, most: usize) {
        const STEP: usize = 7919;
        while self.bytes + decoded.bytes() > most && !self.blocks.is_empty() {
            self.replaced = self.replaced.wrapping_add(STEP);
            let place = self.replaced % self.blocks.len();
            let (old, freed) = self.blocks.swap_remove(place);
            self.places.remove(&old);
            self.bytes -= freed.bytes();
            if let Some((moved, _)) = self.blocks.get(place) {
                self.places.insert(*moved, place);
            }
        }
        // Another thread may have decoded it too.
        if let Entry::Vacant(place) = self.places.entry(block) {
            place.insert(self.blocks.len());
            self.bytes += decoded.bytes();
            self.blocks.push((block, decoded));
        }
    }
}

impl BlockReader {
    pub(super) fn new(contents: Arc<ArchiveReader>) -> Self {
        let most = usize::try_from(memory::for_cache(MOST_KEPT)).unwrap_or(usize::MAX);
        BlockReader { contents, kept: Mutex::default(), most }
    }

    fn block(&self, block: CompressedBlock) -> Result<Arc<DecodedBlock>> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decoded) = lock().find(block) {
            return Ok(decoded);
        }
        let bytes = self.contents.block(block).ok_or_else(|| damaged("a block of words"))?;
        let decoded = Arc::new(DecodedBlock::of(&bytes).ok_or_else(|| damaged("a block of words"))?);
        lock().add(block, Arc::clone(&decoded), self.most);
        Ok(decoded)
    }
}

impl DecodedBlock {
    /// The memory that it takes in the cache.
    fn bytes(&self) -> usize {
        BYTES_OF_BLOCK + size_of_val(self.runs.as_slice()) + size_of_val(self.words.as_slice())
    }

    /// Returns the runs from the one that contains this index, or the next, on.
    fn runs_from(&self, first: u64) -> &[(u64, u64, usize, u64)] {
        let before = self.runs.partition_point(|&(start, count, ..)| start.saturating_add(count) <= first);
        self.runs.get(before..).unwrap_or_default()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.len().is_multiple_of(WORD).then_some(())?;
        let mut all = vec![0u64; bytes.len() / WORD];
        for (place, bytes) in bytes.chunks_exact(all.len().max(1)).enumerate() {
            all.iter_mut().zip(bytes).for_each(|(word, &byte)| *word |= u64::from(byte) << (8 * place));
        }
        let (&count, rest) = all.split_first()?;
        let count = usize::try_from(count).ok()?;
        let (gaps, rest) = rest.split_at_checked(count)?;
        let (counts, rest) = rest.split_at_checked(count)?;
        let (stored, words) = rest.split_at_checked(count)?;
        let (mut at, mut end) = (0usize, 0u64);
        let mut runs = Vec::new();
        for ((&gap, &count), &stored) in gaps.iter().zip(counts).zip(stored) {
            (stored == 1 || stored == count).then_some(())?;
            let first = end.checked_add(gap)?;
            end = first.checked_add(count)?;
            runs.push((first, count, at, stored));
            at = at.checked_add(usize::try_from(stored).ok()?)?;
        }
        let mut before = 0u64;
        let words = words.iter().map(|&word| {
            before = before.wrapping_add(word);
            before
        });
        (at <= words.len()).then(|| DecodedBlock { runs, words: words.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_in_the_cache_is_the_one_that_was_read() {
        let block = |offset| CompressedBlock { offset, packed: 1, length: 8 };
        let decoded = |word| Arc::new(DecodedBlock { runs: vec![(word, 1, 0, 1)], words: vec![word] });
        let each = decoded(0).bytes();
        let mut kept = KeptBlocks::default();
        for number in (0..100).chain(0..100) {
            kept.add(block(number), decoded(number), 10 * each);
            assert!(kept.blocks.len() <= 10 && kept.bytes == kept.blocks.len() * each);
            let found: Vec<u64> = (0..100).filter(|one| kept.find(block(*one)).is_some()).collect();
            assert!(found.contains(&number) && found.len() == kept.blocks.len(), "{number}: {found:?}");
            assert!(found.iter().all(|one| kept.find(block(*one)).is_some_and(|found| found.words == [*one])));
        }
        kept.add(block(200), decoded(200), 0);
        assert_eq!(kept.blocks.len(), 1, "the last one is kept even alone");
    }

    #[test]
    fn blocks_without_runs_leave_the_cache_too() {
        let mut kept = KeptBlocks::default();
        for offset in 0..1000 {
            let empty = DecodedBlock { runs: Vec::new(), words: Vec::new() };
            kept.add(CompressedBlock { offset, packed: 1, length: 8 }, Arc::new(empty), 10_000);
        }
        assert!(kept.blocks.len() < 100, "{}", kept.blocks.len());
    }

    #[test]
    fn the_runs_of_a_block_are_in_order() {
        let bytes = |words: &[u64]| -> Vec<u8> {
            (0..WORD).flat_map(|place| words.iter().map(move |word| (word >> (8 * place)) as u8)).collect()
        };
        // Two runs: 5 words from 10 on, all equal, and 2 words from 20 on.
        let block = DecodedBlock::of(&bytes(&[2, 10, 5, 5, 2, 1, 2, 7, 1, 1])).unwrap();
        assert_eq!(block.words, [7, 8, 9]);
        for (first, runs) in [(0, 2), (14, 2), (15, 1), (21, 1), (22, 0)] {
            assert_eq!(block.runs_from(first).len(), runs, "{first}");
        }
        assert!(DecodedBlock::of(&bytes(&[2, 10, 0u64.wrapping_sub(5), 5, 2, 1, 2, 7, 1, 1])).is_none());
    }
}
