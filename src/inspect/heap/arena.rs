//! A search for the arenas of a process, and for the memory of each.

use super::resident::is_of_file;
use super::state::{self, ArenaState, StateSearch};
use super::walk::ChunkLayout;
use super::words::{ProcessWords, Words, decode};
use crate::budget::Budget;
use crate::inspect::memory::ResidentMemory;
use crate::inspect::{AddressSpace, Evidence, Page, Result};
use crate::kernel::{AddressRange, Region, State, VirtualAddress};
use crate::process::WordLayout;
use std::collections::BTreeSet;

/// The most arenas of a process: glibc makes 8 for each processor.
pub(super) const MOST_ARENAS: usize = 1 << 14;
/// The most heaps of an arena.
const MOST_HEAPS: usize = 1 << 20;
/// The number of attempts of a search, if the memory that led to a state changes during it.
const TRIES: u32 = 3;
/// The most resident bytes of variables that are searched for the main arena.
const MOST_SEARCHED: u64 = 256 << 20;

/// An arena whose head was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FoundArena {
    /// The address of the arena's head (`malloc_state`).
    pub(super) start: u64,
    pub(super) state: ArenaState,
    /// Whether it is the main arena, whose head is a variable of the library.
    pub(super) is_main: bool,
}

/// The result of a search for the arenas.
pub(super) struct Found {
    /// The arenas, the main one first; none if the process has no heap of glibc, or if the main arena was not found.
    pub(super) arenas: Vec<FoundArena>,
    /// Bytes of variables that were not searched: they are in swap, or more than [`MOST_SEARCHED`].
    pub(super) unsearched: u64,
}

/// Finds the arenas. The smallest ranges of variables are searched first: those of the C library are a few pages.
pub(super) fn find(space: &AddressSpace, budget: &mut Budget) -> Result<Found> {
    let mut rows = variables(space);
    // A program may have any values in its own variables.
    let is_of_library = |range: &AddressRange| {
        let before = space.viewed_region(range.start()).map(|viewed| viewed.region.name.clone());
        before.is_some_and(|name| name.to_string().rsplit('/').next().is_some_and(|file| file.starts_with("libc")))
    };
    rows.sort_by_cached_key(|range| (!is_of_library(range), range.len()));
    let mut searched = 0;
    let mut unsearched = 0;
    for &range in &rows {
        if searched > MOST_SEARCHED {
            unsearched += range.len();
            continue;
        }
        let mut memory = ResidentMemory::of(space.target(), range)?;
        // The process may change the memory that was read, and the state that it led to.
        for _ in 0..TRIES {
            let mut has_led = false;
            while let Some((start, bytes)) = memory.next(budget)? {
                searched += bytes.len() as u64;
                let pairs = pairs(bytes, start.get(), space.target().process.layout());
                let mut words = ProcessWords::new(space.target(), budget);
                let mut search = StateSearch::default();
                let mut seen = 0;
                for pair in pairs {
                    // All pairs of the same bins lead to the same state.
                    if pair < seen {
                        continue;
                    }
                    if let Some(state) = search.around(&mut words, pair)? {
                        has_led = true;
                        seen = state.end(words.pointer_bytes());
                        if let Some(arenas) = circle(space, &mut words, state)? {
                            return Ok(Found { arenas, unsearched: 0 });
                        }
                    }
                }
            }
            if !has_led {
                break;
            }
            memory = ResidentMemory::of(space.target(), range)?;
        }
        let unread = memory.unread;
        unsearched += (unread.changed + unread.unreadable) * space.page_size().bytes();
    }
    if !space.target().process.has_page_map() {
        return Ok(Found { arenas: Vec::new(), unsearched });
    }
    let swapped = |page: &Page| matches!(page.state(), State::Swapped | State::Migrating);
    rows.sort_by_cached_key(|range| range.start());
    let mut pages = space.pages(&rows, Evidence::ENTRIES).with_budget(budget.clone());
    while let Some(chunk) = pages.next()? {
        unsearched += chunk.pages().filter(swapped).map(|page| page.bytes(space.page_size())).sum::<u64>();
    }
    Ok(Found { arenas: Vec::new(), unsearched })
}

/// Returns the ranges that may hold variables of a program or library: writable pages of a file, and the anonymous
/// memory that follows them.
fn variables(space: &AddressSpace) -> Vec<AddressRange> {
    let mut of_file: Option<VirtualAddress> = None;
    let mut is_candidate = |region: &&Region| {
        let may_hold = is_of_file(region) || of_file == Some(region.range.start());
        of_file = may_hold.then_some(region.range.end());
        let is_plain = !region.permissions.shared && !region.name.as_bytes().starts_with(b"[");
        may_hold && region.permissions.write && is_plain
    };
    space.regions().filter(|region| is_candidate(region)).map(|region| region.range).collect()
}

/// Returns the addresses at which two successive words both point two words back, as those of an empty bin do.
fn pairs(bytes: &[u8], start: u64, layout: WordLayout) -> Vec<u64> {
    let w = usize::from(layout.pointer_bytes);
    let word = |offset: usize| decode(bytes.get(offset..)?, layout.pointer_bytes, layout.is_little_endian);
    let is_pair = |offset: &usize| {
        let own = (start + *offset as u64).wrapping_sub(2 * w as u64);
        word(*offset) == Some(own) && word(offset + w) == Some(own)
    };
    (0..bytes.len()).step_by(w).filter(is_pair).map(|offset| start + offset as u64).collect()
}

/// Returns all arenas of the circular list that `main` is in; `None` if the list does not lead back to it.
fn circle(space: &AddressSpace, words: &mut ProcessWords<'_>, main: ArenaState) -> Result<Option<Vec<FoundArena>>> {
    // `next` points at the start of a state: the distance from there to its bins has to be found.
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
        if arenas.len() == MOST_ARENAS || space.viewed_region(VirtualAddress::new(next)).is_none() {
            return Ok(None);
        }
        let Some(state) = next.checked_add(distance).map(|bins| ArenaState::at(words, bins)).transpose()?.flatten()
        else {
            return Ok(None);
        };
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
    /// Whether it contains the top: only the newest part does.
    pub(super) has_top: bool,
}

impl HeapPart {
    pub(super) fn range(&self) -> Option<AddressRange> {
        AddressRange::new(VirtualAddress::new(self.start), VirtualAddress::new(self.end))
    }
}

impl FoundArena {
    /// Returns whether the arena's memory is in several pieces (NONCONTIGUOUS_BIT in `flags`, the second number of its
    /// head).
    pub(super) fn is_scattered(&self, words: &mut ProcessWords<'_>) -> Result<bool> {
        const NONCONTIGUOUS: u64 = 2;
        let layout = words.layout();
        let flags = words.bytes_at(self.start + 4)?;
        Ok(decode(flags, 4, layout.is_little_endian).is_some_and(|flags| flags & NONCONTIGUOUS != 0))
    }

    /// Returns the parts of an arena of threads (`heap_info` in `malloc/arena.c`) in address order; `None` if their
    /// heads contradict each other. Tries the few sizes to which heaps are aligned, until one fits the heads.
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
        let mut seen = BTreeSet::new();
        let mut at = base(self.state.top);
        loop {
            words.budget().go_on()?;
            if !seen.insert(at) {
                return Ok(None);
            }
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
            heaps.push(HeapPart { start: at, first, end, has_top: heaps.is_empty() });
            if is_first {
                break;
            }
            at = before;
        }
        heaps.sort_by_cached_key(|heap| heap.start);
        Ok(Some(heaps))
    }
}
