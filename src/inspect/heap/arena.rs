//! The arenas of a process, and where the memory of each lies.

use super::state::{self, ArenaState};
use super::walk::ChunkLayout;
use super::words::{ProcessWords, Words, decode};
use crate::inspect::{AddressSpace, Result, ViewedRegion};
use crate::kernel::{AddressRange, VirtualAddress};

/// The most arenas of a process: glibc makes 8 for each processor.
const MOST_ARENAS: usize = 1 << 14;
/// The most heaps of an arena.
const MOST_HEAPS: usize = 1 << 20;
/// The most bytes of writable memory of programs that are searched for the main arena.
const MOST_SEARCHED: u64 = 256 << 20;

/// An arena whose head was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FoundArena {
    /// Where `malloc_state` begins.
    pub(super) start: u64,
    pub(super) state: ArenaState,
    /// Whether it is the one that is a variable of the library.
    pub(super) is_main: bool,
}

/// Finds the arenas, the main one first; none if the process has no heap of glibc.
pub(super) fn find(space: &AddressSpace, words: &mut ProcessWords<'_>) -> Result<Vec<FoundArena>> {
    let mut searched = 0;
    for viewed in variables(space) {
        searched += viewed.range().len();
        if searched > MOST_SEARCHED {
            break;
        }
        if let Some(main) = find_in(words, viewed.range())?
            && let Some(all) = circle(space, words, main)?
        {
            return Ok(all);
        }
    }
    Ok(Vec::new())
}

/// The regions that may hold variables of a program or library: writable pages of a file, and the anonymous memory that
/// follows them.
fn variables(space: &AddressSpace) -> impl Iterator<Item = &ViewedRegion> {
    let mut of_file: Option<VirtualAddress> = None;
    space.regions().iter().filter(move |viewed| {
        let region = &viewed.region;
        let follows = of_file == Some(region.range.start()) && region.inode == 0;
        let is_candidate = region.inode != 0 || follows;
        of_file = is_candidate.then_some(region.range.end());
        is_candidate
            && region.permissions.write
            && !region.permissions.shared
            && !region.name.as_bytes().starts_with(b"[")
    })
}

/// The state in this range: a pair of pointers that point at themselves is an empty bin.
fn find_in(words: &mut ProcessWords<'_>, range: AddressRange) -> Result<Option<ArenaState>> {
    let w = words.pointer_bytes();
    let layout = words.layout();
    let step = w as usize;
    let mut at = range.start().get();
    while at < range.end().get() {
        let bytes = words.bytes_at(at)?;
        let length = bytes.len() as u64;
        let word = |offset: usize| decode(bytes.get(offset..)?, layout.pointer_bytes, layout.is_little_endian);
        let pair = (0..bytes.len().saturating_sub(2 * step)).step_by(step).find(|&offset| {
            let own = (at + offset as u64).wrapping_sub(2 * w);
            word(offset) == Some(own) && word(offset + step) == Some(own)
        });
        if let Some(offset) = pair {
            let pair = at + offset as u64;
            if let Some(state) = state::around(words, pair)? {
                return Ok(Some(state));
            }
            at = pair + 2 * w;
        } else if length == 0 {
            // No frame is mapped there.
            at = words.next_page(at);
        } else {
            // The last words may be the first half of a pair.
            at += length.saturating_sub(2 * w).max(w);
        }
    }
    Ok(None)
}

/// All arenas of the circle that this state is in; `None` if it leads elsewhere.
fn circle(space: &AddressSpace, words: &mut ProcessWords<'_>, main: ArenaState) -> Result<Option<Vec<FoundArena>>> {
    // `next` leads to the start of a state, and so to where the bins are from there.
    let Some(distance) = state::distance_of_bins(words, main.next)? else {
        return Ok(None);
    };
    let Some(start) = main.bins.checked_sub(distance) else {
        return Ok(None);
    };
    let mut arenas = vec![FoundArena { start, state: main, is_main: true }];
    let mut next = main.next;
    while next != start {
        words.budget().go_on()?;
        let Some(state) = next.checked_add(distance).map(|bins| ArenaState::at(words, bins)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        if arenas.len() == MOST_ARENAS || space.region(VirtualAddress::new(next)).is_none() {
            return Ok(None);
        }
        arenas.push(FoundArena { start: next, state, is_main: false });
        next = state.next;
    }
    Ok(Some(arenas))
}

/// A part of the memory of an arena, with the first place where a chunk may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeapPart {
    pub(super) start: u64,
    pub(super) first: u64,
    pub(super) end: u64,
}

impl HeapPart {
    pub(super) fn range(&self) -> Option<AddressRange> {
        AddressRange::new(VirtualAddress::new(self.start), VirtualAddress::new(self.end))
    }
}

impl FoundArena {
    /// The parts of an arena of threads (`heap_info` in `malloc/arena.c`), the oldest first; `None` if their heads
    /// contradict each other. The size to which they are aligned is one of a few: the heads decide.
    pub(super) fn heaps(
        &self,
        words: &mut ProcessWords<'_>,
        layout: ChunkLayout,
        huge_bytes: u64,
    ) -> Result<Option<Vec<HeapPart>>> {
        let w = layout.pointer_bytes;
        let usual = if w == 8 { 64 << 20 } else { 1 << 20 };
        for size in [usual, 4 * huge_bytes, 4 << 30] {
            if let Some(heaps) = self.heaps_of_size(words, layout, size)? {
                return Ok(Some(heaps));
            }
        }
        Ok(None)
    }

    fn heaps_of_size(
        &self,
        words: &mut ProcessWords<'_>,
        layout: ChunkLayout,
        largest: u64,
    ) -> Result<Option<Vec<HeapPart>>> {
        let w = layout.pointer_bytes;
        let base = |address: u64| address - address % largest;
        // The state comes after the head of the first heap.
        let head = self.start - base(self.start);
        if head < 4 * w || head > 16 * w {
            return Ok(None);
        }
        let mut heaps = Vec::new();
        let mut at = base(self.state.top);
        loop {
            words.budget().go_on()?;
            let mut read = [0; 3];
            for (number, word) in (0..).zip(&mut read) {
                *word = words.word(at + number * w)?.unwrap_or_default();
            }
            let [arena, before, size] = read;
            let is_first = before == 0;
            let from = if is_first { self.state.end(w) } else { at + head };
            let sound = arena == self.start
                && size <= largest
                && base(before) == before
                && is_first == (at == base(self.start));
            let Some(first) = layout.first_chunk(from).filter(|_| sound && heaps.len() < MOST_HEAPS) else {
                return Ok(None);
            };
            let Some(end) = at.checked_add(size).filter(|end| *end >= first) else {
                return Ok(None);
            };
            heaps.push(HeapPart { start: at, first, end });
            if is_first {
                break;
            }
            at = before;
        }
        heaps.reverse();
        Ok(Some(heaps))
    }
}
