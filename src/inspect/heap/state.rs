//! `malloc_state`, the head of an arena, found by its bins: the links of an empty bin point at the bin itself.
//!
//! Its layout differs between versions of the library and architectures (`malloc/malloc.c`), and the place of the other
//! fields follows from the bins. Two words before them is `top`; after them come `binmap`, `next`, `next_free`,
//! `attached_threads`, `system_mem` and `max_system_mem`, in all versions since 2.26.

use super::words::{END_OF_MEMORY, Words};
use crate::inspect::Result;

/// Bins of free chunks (NBINS - 1).
pub(super) const BINS: u64 = 127;

/// Bytes of `binmap`: a bit for each bin.
const BINMAP: u64 = 16;

/// The most bytes before the bins: `mutex`, `flags`, `have_fastchunks`, the lists of fast chunks, `top` and
/// `last_remainder`.
const MOST_BEFORE_BINS: u64 = 0x100;

/// The most threads that an arena may have.
const MOST_THREADS: u64 = 1 << 24;

/// The head of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ArenaState {
    /// The address of its bins.
    pub(super) bins: u64,
    /// The chunk at the end of its memory, from which chunks are cut; the address of a bin if it has no memory yet.
    pub(super) top: u64,
    /// The next arena in the circular list of all, or the arena itself.
    pub(super) next: u64,
    /// Bytes that the arena has from the kernel.
    pub(super) system_bytes: u64,
}

impl ArenaState {
    /// Reads the state with bins at `bins`; `None` if there is none.
    pub(super) fn at(words: &mut impl Words, bins: u64) -> Result<Option<ArenaState>> {
        let w = words.pointer_bytes();
        let Some(before) = bins.checked_sub(2 * w) else {
            return Ok(None);
        };
        if bins >= END_OF_MEMORY {
            return Ok(None);
        }
        for number in 0..BINS {
            words.budget().go_on()?;
            let at = bins + 2 * w * number;
            let (Some(first), Some(last)) = (words.word(at)?, words.word(at + w)?) else {
                return Ok(None);
            };
            let own = at - 2 * w;
            // The program writes the two links one after the other.
            if [first, last].iter().any(|&word| word != own && !is_chunk(word, w)) {
                return Ok(None);
            }
        }
        let after = bins + 2 * w * BINS + BINMAP;
        let mut tail = [0; 5];
        for (number, word) in (0..).zip(&mut tail) {
            let Some(read) = words.word(after + number * w)? else {
                return Ok(None);
            };
            *word = read;
        }
        let [next, _, threads, system_bytes, most] = tail;
        let Some(top) = words.word(before)? else {
            return Ok(None);
        };
        let is_new = top == before && system_bytes == 0;
        let is_sound = (1..END_OF_MEMORY).contains(&next)
            && threads < MOST_THREADS
            && most >= system_bytes
            && (is_new || is_chunk(top, w));
        Ok(is_sound.then_some(ArenaState { bins, top, next, system_bytes }))
    }

    /// Returns whether the arena has no memory yet.
    pub(super) fn is_new(&self) -> bool {
        self.system_bytes == 0
    }

    /// Returns the address of the end of the state, after `max_system_mem`.
    pub(super) fn end(&self, pointer_bytes: u64) -> u64 {
        self.bins + 2 * pointer_bytes * BINS + BINMAP + 5 * pointer_bytes
    }
}

/// Returns whether a chunk may be at `address`: user data, which begins two words later, is aligned to at least two
/// words.
fn is_chunk(address: u64, pointer_bytes: u64) -> bool {
    (1..END_OF_MEMORY).contains(&address) && address.is_multiple_of(pointer_bytes)
}

/// Returns the distance in bytes from the start of a state to its bins: only one leads to sound bins. Returns `None` if
/// no sound state starts at `start`.
pub(super) fn distance_of_bins(words: &mut impl Words, start: u64) -> Result<Option<u64>> {
    let w = words.pointer_bytes();
    let mut distance = 3 * w;
    while distance < MOST_BEFORE_BINS {
        if let Some(bins) = start.checked_add(distance)
            && ArenaState::at(words, bins)?.is_some()
        {
            return Ok(Some(distance));
        }
        distance += w;
    }
    Ok(None)
}

/// Searches for states around pairs of pointers in address order. Each place is tried once, because many pairs may be
/// near each other.
#[derive(Default)]
pub(super) struct StateSearch {
    /// The first places that were not tried yet: among those at even words, and among those at odd ones.
    next: [u64; 2],
}

impl StateSearch {
    /// Returns the state that has an empty bin with its pointers at `pair`.
    pub(super) fn around(&mut self, words: &mut impl Words, pair: u64) -> Result<Option<ArenaState>> {
        let w = words.pointer_bytes();
        let next = if (pair / w).is_multiple_of(2) { &mut self.next[0] } else { &mut self.next[1] };
        let first = pair.saturating_sub(2 * w * (BINS - 1)).max(*next);
        for bins in (first..=pair).step_by(2 * w as usize) {
            *next = bins + 2 * w;
            if let Some(state) = ArenaState::at(words, bins)? {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }
}
