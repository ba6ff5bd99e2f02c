//! A walk over the chunks of an arena, from the first to `top`. Each chunk contains the distance to the next one,
//! whether the one before it is in use, and, if that one is free, its size again: a walk without a contradiction is
//! proof.

use super::pieces::{HeapPiece, PieceKind};
use super::words::{Words, decode};
use crate::budget::Budget;
use crate::inspect::Result;
use crate::kernel::{AddressRange, PageSize, VirtualAddress};
use crate::process::Target;

/// The chunk before this one is in use (PREV_INUSE).
const BEFORE_IN_USE: u64 = 1;
/// The chunk is a separate mapping (IS_MMAPPED).
pub(super) const IS_MAPPING: u64 = 2;
/// The chunk in use belongs to an arena of threads (NON_MAIN_ARENA).
const OF_THREADS: u64 = 4;
/// All three bits.
pub(super) const FLAGS: u64 = 7;

/// The layout of chunks in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChunkLayout {
    pub(super) pointer_bytes: u64,
    /// The alignment of user data in bytes: 16, or 8 on 32-bit architectures other than i386.
    pub(super) alignment: u64,
    pub(super) page: PageSize,
}

impl ChunkLayout {
    /// Returns the layouts that chunks of the process may have, the likeliest first.
    pub(super) fn of(target: &Target) -> Vec<ChunkLayout> {
        /// The ELF machine number of i386 (EM_386).
        const I386: u16 = 3;
        let process = &target.process;
        let pointer_bytes = u64::from(process.layout().pointer_bytes);
        let alignments: &[u64] = match (pointer_bytes, process.machine()) {
            (8, _) => &[16],
            (_, Some(I386)) => &[16, 8],
            _ => &[8, 16],
        };
        let page = process.layout().page;
        alignments.iter().map(|&alignment| ChunkLayout { pointer_bytes, alignment, page }).collect()
    }

    /// Returns the size of the smallest chunk in bytes.
    fn smallest(self) -> u64 {
        4 * self.pointer_bytes
    }

    /// Returns the size of the head of a chunk in bytes, which is also that of the chunks that end a stretch of memory.
    pub(super) fn head(self) -> u64 {
        2 * self.pointer_bytes
    }

    /// Returns the first address from `from` on at which a chunk may begin.
    pub(super) fn first_chunk(self, from: u64) -> Option<u64> {
        let data = from.checked_add(self.head())?;
        data.checked_next_multiple_of(self.alignment)?.checked_sub(self.head())
    }

    fn is_chunk(self, address: u64) -> bool {
        self.first_chunk(address) == Some(address)
    }

    /// Returns whether a head has a size that a chunk in use or a free one can have. Alignments are powers of two.
    #[inline]
    fn has_size(self, head: u64) -> bool {
        let size = head & !FLAGS;
        size >= self.smallest() && size & (self.alignment - 1) == 0 && head & IS_MAPPING == 0
    }

    /// Returns the whole pages of a free chunk that `malloc_trim` gives back (`mtrim`): it keeps the page with the
    /// links.
    pub(super) fn trimmed(self, start: u64, size: u64) -> Option<AddressRange> {
        let last = VirtualAddress::new(start.checked_add(6 * self.pointer_bytes)?.checked_add(self.page.bytes() - 1)?);
        let end = VirtualAddress::new(start.checked_add(size)?);
        AddressRange::new(self.page.floor(last), self.page.floor(end))
    }
}

impl ChunkLayout {
    /// Returns the part of `top` that `malloc_trim` gives back at the end of the main heap (`systrim`), in multiples of
    /// `unit`: it keeps a chunk.
    pub(super) fn trimmed_top(self, top: u64, bytes: u64, unit: u64) -> Option<AddressRange> {
        let unit = unit.max(self.page.bytes());
        let given = bytes.saturating_sub(self.smallest() + 1) / unit * unit;
        let end = top.checked_add(bytes)?;
        AddressRange::new(VirtualAddress::new(end - given), VirtualAddress::new(end))
    }
}

/// The number of some chunks and their bytes, heads included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ChunkSum {
    /// The number of chunks.
    pub chunks: u64,
    /// The bytes of the chunks.
    pub bytes: u64,
}

impl ChunkSum {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.add_alike(1, bytes);
    }

    /// Adds chunks of the same size.
    pub(super) fn add_alike(&mut self, chunks: u64, size: u64) {
        self.chunks += chunks;
        self.bytes += chunks * size;
    }

    pub(crate) fn join(&mut self, other: ChunkSum) {
        self.chunks += other.chunks;
        self.bytes += other.bytes;
    }
}

/// Neighbouring chunks of one size, of which all begin in the same page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ChunkRun {
    /// The address of the first head.
    pub(super) start: u64,
    /// The size of each chunk in bytes, head included.
    pub(super) size: u64,
    /// The number of chunks: 1 to `MOST_ALIKE`.
    pub(super) chunks: u32,
    /// The number of those that the program may have. Freed chunks that threads keep for reuse are in use for the
    /// allocator.
    pub(super) used: u32,
    /// Those chunks, a bit each from the lowest on.
    pub(super) in_use: u64,
}

/// The most chunks of a run: it has a bit for each.
pub(super) const MOST_ALIKE: u32 = u64::BITS;

impl ChunkRun {
    /// Returns a run of one chunk.
    pub(super) fn one(start: u64, size: u64, is_in_use: bool) -> Self {
        ChunkRun { start, size, chunks: 1, used: is_in_use.into(), in_use: is_in_use.into() }
    }

    pub(super) fn end(self) -> u64 {
        self.start + self.size * u64::from(self.chunks)
    }

    pub(super) fn pieces(self) -> impl Iterator<Item = HeapPiece> {
        (0..self.chunks).map(move |index| {
            let start = self.start + self.size * u64::from(index);
            let kind = if self.in_use >> index & 1 == 1 { PieceKind::InUse } else { PieceKind::Free };
            HeapPiece::new(start, start + self.size, kind)
        })
    }
}

/// The contradiction or missing page that stops a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    /// The chunk at this address contradicts its neighbours, or its arena.
    Chunk(u64),
    /// The head of the chunk at this address is not resident.
    Absent(u64),
}

/// The end of a stretch of chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StretchEnd {
    /// The stretch ends at the top, which begins at this address.
    Top(u64),
    /// The stretch ends before this address, with chunks that only mark its end.
    Fence(u64),
}

/// A stretch of chunks that lie side by side.
pub(super) struct Stretch {
    pub(super) layout: ChunkLayout,
    /// The first address at which the top may begin: the walk ends there or later, at the chunk that reaches `end`.
    pub(super) top: u64,
    /// The end of the last chunk.
    pub(super) end: u64,
    pub(super) is_of_threads: bool,
}

/// The place of a walk.
#[derive(Clone, Copy)]
struct WalkPlace {
    /// The address of the next chunk.
    at: u64,
    /// The head of the next chunk.
    head: u64,
    is_before_free: bool,
}

/// The runs of known chunks that are passed on together.
const TOGETHER: usize = 128;

impl Stretch {
    /// Walks from the chunk at `first` on, and passes the chunks on, some at a time.
    pub(super) fn walk(
        &self,
        words: &mut impl Words,
        first: u64,
        take: &mut impl FnMut(&[ChunkRun], &mut Budget) -> Result<()>,
    ) -> Result<std::result::Result<StretchEnd, Broken>> {
        let layout = self.layout;
        let w = layout.pointer_bytes;
        let Some(head) = words.word(first + w)? else {
            return Ok(Err(Broken::Absent(first)));
        };
        // The following chunks are aligned as this one is, because their sizes are multiples of the alignment.
        if !layout.is_chunk(first) {
            return Ok(Err(Broken::Chunk(first)));
        }
        let mut place = WalkPlace { at: first, head, is_before_free: false };
        let mut runs = [ChunkRun::default(); TOGETHER];
        loop {
            // Most chunks are small, and those around them are known.
            let known = self.known_runs(words, &mut place, &mut runs);
            let known = runs.get(..known).unwrap_or_default();
            words.budget().spend(known.iter().map(|run| u64::from(run.chunks)).sum())?;
            take(known, words.budget())?;
            if known.len() == TOGETHER {
                continue;
            }
            let WalkPlace { at, head, is_before_free } = place;
            let size = head & !FLAGS;
            let Some(next) = at.checked_add(size).filter(|next| *next <= self.end) else {
                return Ok(Err(Broken::Chunk(at)));
            };
            // The top reaches to the end, and chunks may have been cut from it during the walk. A free chunk beside it
            // would have become a part of it.
            if at >= self.top && next == self.end {
                let is_sound = head & (BEFORE_IN_USE | IS_MAPPING) == BEFORE_IN_USE && !is_before_free && size > 0;
                return Ok(if is_sound { Ok(StretchEnd::Top(at)) } else { Err(Broken::Chunk(at)) });
            }
            // Chunks of the size of a head end an older stretch (sysmalloc).
            if size == layout.head() || (size == 0 && self.is_of_threads) {
                return self.fence(words, at, head);
            }
            if !layout.has_size(head) {
                return Ok(Err(Broken::Chunk(at)));
            }
            let Some(next_head) = words.word(next + w)? else {
                return Ok(Err(Broken::Absent(next)));
            };
            // A rest that is smaller than two such chunks is joined with the first of them: only the second follows.
            if next_head == BEFORE_IN_USE && self.is_of_threads && next + 2 * w <= self.end {
                return Ok(Ok(StretchEnd::Fence(next + 2 * w)));
            }
            let last = if next_head & BEFORE_IN_USE == 0 { words.word(next)? } else { None };
            let Some(is_in_use) = self.is_in_use(place, next_head, last) else {
                return Ok(Err(Broken::Chunk(at)));
            };
            words.budget().go_on()?;
            take(&[ChunkRun::one(at, size, is_in_use)], words.budget())?;
            place = WalkPlace { at: next, head: next_head, is_before_free: !is_in_use };
        }
    }

    /// Returns whether the chunk at `place` is in use, by the head of the next one; `None` if they contradict each
    /// other. `last` is the first word of the next chunk, which belongs to this one: only a free chunk needs it. In
    /// many heaps free chunks come in no order that a processor could foresee, so nothing branches on that.
    #[inline]
    fn is_in_use(&self, place: WalkPlace, next_head: u64, last: Option<u64>) -> Option<bool> {
        let WalkPlace { head, is_before_free, .. } = place;
        let is_in_use = next_head & BEFORE_IN_USE != 0;
        let agrees_in_use = (head & OF_THREADS != 0) == self.is_of_threads;
        // Free neighbours are joined to one chunk. A free chunk has its size at its end, too.
        let agrees_free = !is_before_free & (last == Some(head & !FLAGS));
        let agrees = (is_in_use & agrees_in_use) | (!is_in_use & agrees_free);
        (agrees & ((head & BEFORE_IN_USE != 0) != is_before_free)).then_some(is_in_use)
    }

    /// Sets `runs` to the next chunks whose heads were already read, up to one that needs a closer look. Returns the
    /// number of runs.
    #[inline]
    fn known_runs(&self, words: &impl Words, place: &mut WalkPlace, runs: &mut [ChunkRun]) -> usize {
        let Some((bytes, layout)) = words.known(place.at) else {
            return 0;
        };
        match (layout.pointer_bytes, layout.is_little_endian) {
            (8, true) => self.runs_of(bytes, |at| Some(u64::from_le_bytes(*at.first_chunk()?)), place, runs),
            (width, order) => self.runs_of(bytes, |at| decode(at, width, order), place, runs),
        }
    }

    /// Sets `runs` to the chunks of `bytes`, which begin at `place`. Returns the number of runs.
    #[inline]
    fn runs_of(
        &self,
        bytes: &[u8],
        word: impl Fn(&[u8]) -> Option<u64>,
        place: &mut WalkPlace,
        runs: &mut [ChunkRun],
    ) -> usize {
        let mut rest = bytes;
        for (count, run) in runs.iter_mut().enumerate() {
            *run = self.run_of(rest, &word, place);
            let read = usize::try_from(run.end() - run.start).ok();
            let (1.., Some(next)) = (run.chunks, read.and_then(|read| rest.get(read..))) else {
                return count;
            };
            rest = next;
        }
        runs.len()
    }

    /// Returns the first run of `bytes`, which begins at `place`: without chunks if the first one needs a closer look.
    /// The address of the next head in a run does not depend on the last one, so the processor need not wait for that.
    #[inline]
    fn run_of(&self, bytes: &[u8], word: &impl Fn(&[u8]) -> Option<u64>, place: &mut WalkPlace) -> ChunkRun {
        let w = self.layout.pointer_bytes as usize;
        let size = place.head & !FLAGS;
        let mut run = ChunkRun { start: place.at, size, chunks: 0, used: 0, in_use: 0 };
        let step = usize::try_from(size).unwrap_or(usize::MAX);
        let Some(rest) = bytes.get(step..).filter(|_| self.layout.has_size(place.head)) else {
            return run;
        };
        let page_end = (place.at | (self.layout.page.bytes() - 1)) + 1;
        for next in rest.chunks(step) {
            let Some(next_head) = next.get(w..).and_then(word) else {
                break;
            };
            // The stretch ends here: the caller examines the chunk.
            if place.at + size >= self.end || next_head & !FLAGS == 0 {
                break;
            }
            let Some(is_in_use) = self.is_in_use(*place, next_head, word(next)) else {
                break;
            };
            run.in_use |= u64::from(is_in_use) << run.chunks;
            run.used += u32::from(is_in_use);
            run.chunks += 1;
            *place = WalkPlace { at: place.at + size, head: next_head, is_before_free: !is_in_use };
            let is_alike = next_head & !(BEFORE_IN_USE | OF_THREADS) == size;
            if !is_alike || place.at >= page_end || run.chunks == MOST_ALIKE {
                break;
            }
        }
        run
    }

    /// Checks the chunks that end a stretch: two of the size of a head, or one and then a size of 0.
    fn fence(&self, words: &mut impl Words, at: u64, head: u64) -> Result<std::result::Result<StretchEnd, Broken>> {
        let w = self.layout.pointer_bytes;
        let size = head & !FLAGS;
        let end = at + size;
        let fence = |end: u64| if end <= self.end { Ok(StretchEnd::Fence(end)) } else { Err(Broken::Chunk(at)) };
        if size == 0 {
            return Ok(if head == BEFORE_IN_USE { fence(at + 2 * w) } else { Err(Broken::Chunk(at)) });
        }
        let Some(last) = words.word(end + w)? else {
            return Ok(Err(Broken::Absent(end)));
        };
        Ok(match last & !FLAGS {
            0 if self.is_of_threads => fence(end + 2 * w),
            size if size == self.layout.head() => fence(end + size),
            _ => Err(Broken::Chunk(at)),
        })
    }
}
