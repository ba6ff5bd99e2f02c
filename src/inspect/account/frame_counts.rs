//! Counts of frames in little memory: one bit for each frame and count.

use crate::budget::OutOfBudget;
use crate::kernel::FrameNumber;
use crate::own::memory::Growth;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The frames of one block: 8 KiB of bits.
const BLOCK_FRAMES: u64 = 1 << 16;
const WORD_FRAMES: u64 = u64::BITS as u64;
const BLOCK_WORDS: usize = (BLOCK_FRAMES / WORD_FRAMES) as usize;

/// The number up to which counts are exact. It limits the memory for a frame with very many mappings.
const MOST: usize = 64;

/// The number of times that each frame was added, up to [`MOST`].
#[derive(Default)]
pub struct FrameCounts {
    /// The frames that were added at least once, at least twice, and so on.
    planes: Vec<Plane>,
    distinct: u64,
    growth: Growth,
}

/// A set of frames.
#[derive(Default)]
struct Plane(HashMap<u64, Box<[u64; BLOCK_WORDS]>>);

impl Plane {
    fn word(&self, first: u64) -> u64 {
        let block = self.0.get(&(first / BLOCK_FRAMES));
        block.and_then(|words| words.get(word_in_block(first))).copied().unwrap_or_default()
    }

    /// Adds frames. Returns those that were already in the set.
    fn add(&mut self, first: u64, bits: u64, growth: &mut Growth) -> Result<u64, OutOfBudget> {
        let block = match self.0.entry(first / BLOCK_FRAMES) {
            Entry::Occupied(known) => known.into_mut(),
            // Frame numbers of a capture may lie in as many blocks as its author likes.
            Entry::Vacant(new) => {
                growth.take(size_of::<[u64; BLOCK_WORDS]>() as u64)?;
                new.insert(Box::new([0; BLOCK_WORDS]))
            }
        };
        let Some(word) = block.get_mut(word_in_block(first)) else {
            return Ok(0);
        };
        let before = *word & bits;
        *word |= bits;
        Ok(before)
    }
}

/// Returns the index in its block of the word that begins with the frame `first`.
fn word_in_block(first: u64) -> usize {
    (first % BLOCK_FRAMES / WORD_FRAMES) as usize
}

/// Returns the words that contain `frames` frames from `first` on: the first frame of each word, and the bits of the
/// frames.
fn words(first: u64, frames: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = first.saturating_add(frames);
    let mut next = first;
    std::iter::from_fn(move || {
        let at = next % WORD_FRAMES;
        let count = (WORD_FRAMES - at).min(end.saturating_sub(next));
        if count == 0 {
            return None;
        }
        let word = next - at;
        next += count;
        Some((word, (u64::MAX >> (WORD_FRAMES - count)) << at))
    })
}

impl FrameCounts {
    /// Counts `frames` frames from `first` on once each.
    ///
    /// # Errors
    /// [`OutOfBudget::Bytes`] if memory is short.
    pub fn add(&mut self, first: FrameNumber, frames: u64) -> Result<(), OutOfBudget> {
        for (word, bits) in words(first.get(), frames) {
            let mut again = bits;
            for index in 0..MOST {
                if again == 0 {
                    break;
                }
                if index == self.planes.len() {
                    self.planes.push(Plane::default());
                }
                let added = again;
                let plane = self.planes.get_mut(index);
                again = plane.map_or(Ok(0), |plane| plane.add(word, added, &mut self.growth))?;
                if index == 0 {
                    self.distinct += u64::from((added & !again).count_ones());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of different frames.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Returns the counts of `frames` frames from `first` on, as runs of frames with the same count. `None` means
    /// [`MOST`] or more.
    pub fn runs(&self, first: FrameNumber, frames: u64) -> impl Iterator<Item = (u64, Option<u64>)> {
        let (mut next, end) = (first.get(), first.get().saturating_add(frames));
        std::iter::from_fn(move || {
            let (count, mut length) = self.count(next);
            length = length.min(end.saturating_sub(next));
            if length == 0 {
                return None;
            }
            // Neighbouring words are mostly equal.
            while next + length < end {
                let (other, more) = self.count(next + length);
                if other != count {
                    break;
                }
                length += more.min(end - next - length);
            }
            next += length;
            Some((length, Some(count).filter(|&count| count < MOST as u64)))
        })
    }

    /// Returns the count of a frame, and for how many frames of its word it is the same from there on.
    fn count(&self, frame: u64) -> (u64, u64) {
        let at = frame % WORD_FRAMES;
        let mut length = WORD_FRAMES - at;
        let mut count = 0;
        for plane in &self.planes {
            let word = plane.word(frame - at) >> at;
            let is_in = word & 1 == 1;
            length = length.min(u64::from(if is_in { word.trailing_ones() } else { word.trailing_zeros() }));
            if !is_in {
                break;
            }
            count += 1;
        }
        (count, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn runs(counts: &FrameCounts, first: u64, frames: u64) -> Vec<(u64, Option<u64>)> {
        counts.runs(FrameNumber::new(first), frames).collect()
    }

    #[test]
    fn frames_are_counted_across_words_and_blocks() {
        let mut counts = FrameCounts::default();
        let edge = BLOCK_FRAMES - 3;
        counts.add(FrameNumber::new(edge), 200).expect("memory");
        counts.add(FrameNumber::new(edge + 1), 2).expect("memory");
        counts.add(FrameNumber::new(edge + 1), 1).expect("memory");
        assert_eq!(counts.distinct(), 200);
        let expected = [(1, Some(0)), (1, Some(1)), (1, Some(3)), (1, Some(2)), (197, Some(1)), (5, Some(0))];
        assert_eq!(runs(&counts, edge - 1, 206), expected);
        assert_eq!(runs(&FrameCounts::default(), 5, 1000), [(1000, Some(0))]);
    }

    #[test]
    fn a_frame_that_is_mapped_very_often_takes_little_memory() {
        let mut counts = FrameCounts::default();
        for _ in 0..100_000 {
            counts.add(FrameNumber::new(7), 1).expect("memory");
        }
        assert_eq!((counts.planes.len(), counts.distinct()), (MOST, 1));
        assert_eq!(runs(&counts, 7, 2), [(1, None), (1, Some(0))]);
    }

    proptest! {
        #[test]
        fn the_same_as_a_map(added in proptest::collection::vec((0u64..300, 1u64..150), 0..20)) {
            let mut counts = FrameCounts::default();
            let mut map = BTreeMap::<u64, u64>::new();
            for &(first, frames) in &added {
                counts.add(FrameNumber::new(first), frames).expect("memory");
                (first..first + frames).for_each(|frame| *map.entry(frame).or_default() += 1);
            }
            let found = counts.runs(FrameNumber::new(0), 500);
            let found: Vec<u64> = found
                .flat_map(|(length, count)| std::iter::repeat_n(count.expect("few"), length as usize))
                .collect();
            let expected: Vec<u64> = (0..500).map(|frame| map.get(&frame).copied().unwrap_or_default()).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(counts.distinct(), map.len() as u64);
        }
    }
}
