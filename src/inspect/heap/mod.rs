//! The heaps of glibc's `malloc`: what of them is in use, and what is free and kept.
//!
//! Nothing of the program runs for it, and no symbol is needed: an arena is found by the shape of its head, and its
//! chunks prove themselves, because each tells the size and the state of its neighbours. A walk that meets a
//! contradiction, or does not come to as many bytes as the arena has from the kernel, is not an answer. Only resident
//! pages are read.
//!
//! Chunks that threads keep for themselves (tcache) and small chunks that were freed last (fastbins) are in use for the
//! allocator, and so they are here.
//!
//! ```
//! use pmdb::budget::Budget;
//! use pmdb::inspect::heap::HeapSearch;
//! use pmdb::{AddressSpace, Target};
//!
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::of(&target)?;
//! let mut heaps = HeapSearch::new(&space, Budget::unlimited())?;
//! while let Some(arena) = heaps.next()? {
//!     match &arena.sums {
//!         Some(sums) => println!("{}: {} bytes in use, {} free", arena.address, sums.in_use.bytes, sums.free.bytes),
//!         None => println!("{}: {:?}", arena.address, arena.outcome),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod kept;
mod live;
mod mappings;
mod pages;
mod piece_words;
mod pieces;
mod place;
mod recorded;
mod resident;
mod scattered;
mod state;
mod sums;
#[cfg(test)]
mod tests;
pub(super) mod uses;
mod walk;
mod words;
mod written;

use super::{AddressSpace, Backing, Evidence, Page, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, VirtualAddress};
use arena::{Found, FoundArena};
use kept::Kept;
pub use live::LiveChunks;
pub use mappings::MappedChunks;
pub use pages::{has_heaps, require_memory};
pub use pieces::{HeapPiece, PieceKind};
pub use place::HeapPlace;
use recorded::RecordedHeaps;
pub use resident::{anonymous, resident, resident_outside};
use resident::{in_memory, in_order};
use state::ArenaState;
use std::ops::Range;
use sums::Sums;
pub use sums::{KeptPages, SizeClass};
pub use uses::HeapUse;
use walk::{Broken, ChunkLayout, FLAGS, Stretch, StretchEnd};
pub use walk::{ChunkSum, HeapChunk};
use words::{END_OF_MEMORY, ProcessWords, Words};
pub use written::{RecordedCounts, record};

/// How often an arena is walked that changes meanwhile.
const TRIES: usize = 3;

/// How an arena was walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArenaOutcome {
    /// All of it: the bytes are those that it has from the kernel.
    Complete,
    /// So many bytes of it were not found.
    Part {
        /// Bytes that are missing.
        missing: u64,
    },
    /// The chunk at this address contradicted its neighbours each time: the program changed the heap during the walk,
    /// or overwrote it.
    Broken(VirtualAddress),
    /// The head of the chunk at this address is not resident, so that nothing after it can be found.
    Absent(VirtualAddress),
    /// The heap is not in one piece, and none of them was found: the break could not grow, and no mark leads from one
    /// piece to the next.
    Scattered,
}

/// What `malloc_trim(0)` would give back of the free memory of an arena, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Trimmable {
    /// Resident whole pages of free chunks that only this process has, and that one page-table entry each maps: they
    /// would be free memory.
    pub now: u64,
    /// The same on pages that one PMD maps: the memory is free only once the kernel splits them.
    pub huge: u64,
    /// The same on pages that are mapped elsewhere too, since a fork or because the kernel merged them: only the
    /// resident size of this process falls.
    pub shared: u64,
    /// The same in locked regions, which the kernel refuses.
    pub locked: u64,
    /// The same on pages of which it is unknown whether another process has them.
    pub unclear: u64,
}

/// An arena of glibc's `malloc`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapArena {
    /// Its number in the circle of arenas; 0 is the main one.
    pub number: usize,
    /// Where its head (`malloc_state`) is.
    pub address: VirtualAddress,
    /// Bytes that it has from the kernel.
    pub system_bytes: u64,
    /// How it was walked.
    pub outcome: ArenaOutcome,
    /// Its memory, in address order; empty if it was not found.
    pub parts: Vec<AddressRange>,
    /// Resident bytes of its memory; `None` without a page map, and where not all of it was found.
    pub resident: Option<u64>,
    /// What is in it; `None` unless all of it was walked.
    pub sums: Option<HeapSums>,
}

/// What is in an arena.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HeapSums {
    /// Chunks in use.
    pub in_use: ChunkSum,
    /// Free chunks, without the top.
    pub free: ChunkSum,
    /// Bytes of free chunks that no trim gives back: their pages hold chunks in use, or links of the free ones.
    pub between: u64,
    /// Bytes of the free chunk at its end, from which new ones are cut.
    pub top: u64,
    /// Bytes between its stretches that the program itself got with `sbrk`.
    pub foreign: u64,
    /// Chunks by size, the smallest first; classes without chunks are left out.
    pub sizes: Vec<SizeClass>,
    /// Pages of free memory that chunks in use keep, those of the fewest chunks first.
    pub kept: Vec<KeptPages>,
    /// What a trim would give back; `None` without a page map.
    pub trimmable: Option<Trimmable>,
    /// What is in each part of its memory, in address order.
    pub parts: Vec<HeapPart>,
}

/// What is in a part of an arena: in the break, in one heap of threads, or in a mapping of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapPart {
    /// Its memory.
    pub range: AddressRange,
    /// Resident bytes; `None` without a page map.
    pub resident: Option<u64>,
    /// Chunks in use.
    pub in_use: ChunkSum,
    /// Free chunks, without the top.
    pub free: ChunkSum,
    /// What a trim would give back; `None` without a page map.
    pub trimmable: Option<Trimmable>,
}

/// The arenas of a process, walked one by one.
#[must_use]
pub struct HeapSearch<'a> {
    space: &'a AddressSpace,
    budget: Budget,
    unsearched: u64,
    /// Of a capture that has the sizes of chunks alone.
    recorded: Option<RecordedHeaps<'a>>,
    found: std::iter::Enumerate<std::vec::IntoIter<FoundArena>>,
    /// What walks keep beside the sums.
    kept: Kept,
}

impl Trimmable {
    /// The sum of two.
    fn and(self, other: Trimmable) -> Trimmable {
        Trimmable {
            now: self.now + other.now,
            huge: self.huge + other.huge,
            shared: self.shared + other.shared,
            locked: self.locked + other.locked,
            unclear: self.unclear + other.unclear,
        }
    }
}

impl<'a> HeapSearch<'a> {
    /// Finds the arenas. There are none where no program or library has a heap of glibc.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn new(space: &'a AddressSpace, mut budget: Budget) -> Result<Self> {
        let mut recorded = RecordedHeaps::of(space, &mut budget)?;
        let found = match &mut recorded {
            Some(heaps) => Found { arenas: std::mem::take(&mut heaps.arenas), unsearched: heaps.unsearched },
            None => arena::find(space, &mut budget)?,
        };
        let arenas = found.arenas.into_iter().enumerate();
        Ok(HeapSearch { space, budget, unsearched: found.unsearched, recorded, found: arenas, kept: Kept::Nothing })
    }

    /// How many arenas are still to be walked.
    pub fn left(&self) -> usize {
        self.found.len()
    }

    /// Bytes of variables that were not looked at, if no arena was found: they are in swap, or too many.
    pub fn unsearched(&self) -> u64 {
        self.unsearched
    }

    /// The next arena.
    ///
    /// # Errors
    /// As [`HeapSearch::new`].
    pub fn next(&mut self) -> Result<Option<HeapArena>> {
        let Some((number, found)) = self.found.next() else {
            return Ok(None);
        };
        let Some((Walk { state, parts, top, sums, outcome, .. }, layout)) = self.walk_again(&found)? else {
            return Ok(None);
        };
        let sums = match outcome {
            ArenaOutcome::Complete => Some(self.sums(sums, &parts, top, layout, found.is_main && !state.is_new())?),
            _ => None,
        };
        let resident = |sums: &HeapSums| sums.parts.iter().map(|part| part.resident).sum();
        Ok(Some(HeapArena {
            number,
            address: VirtualAddress::new(found.start),
            system_bytes: state.system_bytes,
            outcome,
            resident: sums.as_ref().and_then(resident),
            parts,
            sums,
        }))
    }

    /// Walks an arena, again if it changes meanwhile. `None` if there is no layout.
    fn walk_again(&mut self, found: &FoundArena) -> Result<Option<(Walk, ChunkLayout)>> {
        let layouts = ChunkLayout::all(self.space);
        if let Some(heaps) = &mut self.recorded {
            let Some(&layout) = layouts.first() else {
                return Ok(None);
            };
            let walk = Walk::recorded(heaps, found, layout, self.kept.clone(), &mut self.budget)?;
            return Ok(Some((walk, layout)));
        }
        let mut walk = None;
        for layout in layouts.iter().cycle().take(layouts.len() * TRIES) {
            let walked = self.walk(found, *layout)?;
            let is_complete = walked.outcome == ArenaOutcome::Complete;
            // The reason is that of the layout that is most likely.
            if is_complete || walk.is_none() {
                walk = Some((walked, *layout));
            }
            if is_complete {
                break;
            }
        }
        Ok(walk)
    }

    /// What was added up of a whole arena. The top is at the end of the main one, and malloc_trim gives it back too if
    /// the break is there.
    fn sums(
        &mut self,
        mut sums: Sums,
        parts: &[AddressRange],
        top: Range<u64>,
        layout: ChunkLayout,
        is_main: bool,
    ) -> Result<HeapSums> {
        let bytes = top.end - top.start;
        let is_at_break = |region: &&Region| region.name.as_bytes() == b"[heap]" && region.range.end().get() == top.end;
        let at_break = self.space.regions().find(is_at_break).filter(|_| is_main);
        // With glibc.malloc.hugetlb=1 the library asks for huge pages, and gives back whole ones.
        let unit = match at_break {
            Some(region) if self.space.is_asked_huge(region, &mut self.budget) => self.space.huge_bytes(),
            _ => layout.page.bytes(),
        };
        let of_top = at_break.and_then(|_| layout.trimmed_top(top.start, bytes, unit));
        let parts = self.parts(&mut sums, parts, of_top)?;
        let mut trimmable = self.space.target().process.has_page_map().then(Trimmable::default);
        for part in &parts {
            trimmable = trimmable.zip(part.trimmable).map(|(sum, part)| sum.and(part));
        }
        let (in_use, free) = sums.totals();
        Ok(HeapSums {
            in_use,
            free,
            between: sums.between,
            top: bytes,
            foreign: sums.foreign,
            sizes: sums.classes(),
            kept: sums.kept(),
            trimmable,
            parts,
        })
    }

    /// What is in each part of an arena.
    fn parts(&mut self, sums: &mut Sums, parts: &[AddressRange], top: Option<AddressRange>) -> Result<Vec<HeapPart>> {
        let has_map = self.space.target().process.has_page_map();
        sums.stretches.sort_by_cached_key(|stretch| stretch.start);
        let trimmed = in_order(std::mem::take(&mut sums.trimmed));
        let (mut stretches, mut trimmed) = (sums.stretches.as_slice(), trimmed.as_slice());
        let mut all = Vec::with_capacity(parts.len());
        for range in in_order(parts.to_vec()) {
            let end = range.end().get();
            let (of_part, rest) = stretches.split_at(stretches.partition_point(|stretch| stretch.start < end));
            let (to_trim, more) = trimmed.split_at(trimmed.partition_point(|range| range.start().get() < end));
            (stretches, trimmed) = (rest, more);
            let mut part = HeapPart {
                range,
                resident: None,
                in_use: ChunkSum::default(),
                free: ChunkSum::default(),
                trimmable: None,
            };
            for stretch in of_part {
                part.in_use.join(stretch.in_use);
                part.free.join(stretch.free);
            }
            if has_map {
                let top = top.filter(|top| range.contains(top.start()));
                part.resident = Some(resident(self.space, &[range], &self.budget)?);
                part.trimmable = Some(self.trimmable(to_trim.to_vec(), top)?);
            }
            all.push(part);
        }
        Ok(all)
    }

    /// Walks an arena once.
    fn walk(&mut self, found: &FoundArena, layout: ChunkLayout) -> Result<Walk> {
        let space = self.space;
        let mut words = ProcessWords::new(space.target(), &mut self.budget);
        let state = ArenaState::at(&mut words, found.state.bins)?.unwrap_or(found.state);
        let mut walk = Walk {
            state,
            parts: Vec::new(),
            top: 0..0,
            sums: Sums::default(),
            kept: self.kept.clone(),
            outcome: ArenaOutcome::Complete,
        };
        if !state.is_new() {
            let found = FoundArena { state, ..found.clone() };
            let ended = match (found.is_main, found.is_scattered(&mut words)?) {
                (true, true) => walk.scattered(&mut words, layout, space)?,
                (true, false) => walk.main(&mut words, layout)?,
                (false, _) => walk.of_threads(&mut words, layout, &found, space.huge_bytes())?,
            };
            walk.outcome = ended.err().unwrap_or(ArenaOutcome::Complete);
        }
        Ok(walk)
    }

    /// What a trim of these ranges gives back.
    fn trimmable(&mut self, mut ranges: Vec<AddressRange>, top: Option<AddressRange>) -> Result<Trimmable> {
        ranges.extend(top);
        // Moving the break frees locked pages too; MADV_DONTNEED refuses them.
        let is_in_top = |page: &Page| top.is_some_and(|top| top.contains(page.address));
        let mut all = Trimmable::default();
        let need = self.space.obtainable(Evidence::HUGE | Evidence::KINDS) | Evidence::ENTRIES;
        let mut pages = self.space.pages(&in_order(ranges), need).with_budget(self.budget.clone());
        while let Some(chunk) = pages.next()? {
            // The pool takes back whole huge pages only.
            if chunk.region.is_some_and(|viewed| viewed.backing == Backing::Hugetlb) {
                continue;
            }
            let is_locked = chunk.region.is_some_and(|viewed| self.space.is_locked(&viewed.region, &mut self.budget));
            for page in chunk.pages().filter(in_memory) {
                let sum = match (is_locked && !is_in_top(&page), page.huge, page.exclusive()) {
                    (true, ..) => &mut all.locked,
                    (false, Some(true), _) => &mut all.huge,
                    (false, _, Some(true)) => &mut all.now,
                    (false, _, Some(false)) => &mut all.shared,
                    (false, _, None) => &mut all.unclear,
                };
                *sum += page.bytes(self.space.page_size());
            }
        }
        Ok(all)
    }
}

/// One walk over an arena.
struct Walk {
    state: ArenaState,
    parts: Vec<AddressRange>,
    /// From the top to its end.
    top: Range<u64>,
    sums: Sums,
    kept: Kept,
    outcome: ArenaOutcome,
}

/// What keeps a walk from being complete.
type Ended = std::result::Result<(), ArenaOutcome>;

impl From<Broken> for ArenaOutcome {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Chunk(at) => ArenaOutcome::Broken(VirtualAddress::new(at)),
            Broken::Absent(at) => ArenaOutcome::Absent(VirtualAddress::new(at)),
        }
    }
}

impl Walk {
    /// The main arena: one piece up to the end of `top`, in which the program may have taken memory for itself.
    fn main(&mut self, words: &mut ProcessWords<'_>, layout: ChunkLayout) -> Result<Ended> {
        let ArenaState { top, system_bytes, .. } = self.state;
        let Some(head) = words.word(top + layout.pointer_bytes)? else {
            return Ok(Err(Broken::Absent(top).into()));
        };
        let end = top.checked_add(head & !FLAGS).filter(|end| *end < END_OF_MEMORY);
        let range = end.and_then(|end| Some((end.checked_sub(system_bytes)?, end)));
        let Some((start, end)) = range else {
            return Ok(Err(Broken::Chunk(top).into()));
        };
        let stretch = Stretch { layout, top, end, is_of_threads: false };
        let mut first = layout.first_chunk(start);
        while let Some(at) = first {
            match self.stretch(words, &stretch, at)? {
                Err(broken) => return Ok(Err(broken.into())),
                Ok(StretchEnd::Top(top)) => {
                    self.add_top(top..end, words.budget())?;
                    self.parts.extend(AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)));
                    return Ok(Ok(()));
                }
                // The program has taken memory for itself, and then malloc went on after it.
                Ok(StretchEnd::Fence(fence)) => {
                    first = next_stretch(words, &stretch, fence)?;
                    let Some(next) = first else {
                        return Ok(Err(ArenaOutcome::Part { missing: end - fence }));
                    };
                    self.sums.foreign += next - fence;
                    self.keep(fence..next, PieceKind::Other, words.budget())?;
                }
            }
        }
        Ok(Err(Broken::Chunk(start).into()))
    }

    /// An arena of threads: its heaps, of which only the newest has the top.
    fn of_threads(
        &mut self,
        words: &mut ProcessWords<'_>,
        layout: ChunkLayout,
        found: &FoundArena,
        huge_bytes: u64,
    ) -> Result<Ended> {
        let broken = |at| Ok(Err(Broken::Chunk(at).into()));
        let Some(heaps) = found.heaps(words, layout, huge_bytes)? else {
            return broken(self.state.top);
        };
        let mut bytes = 0;
        for heap in &heaps {
            bytes += heap.end - heap.start;
            self.parts.extend(heap.range());
            // The heads of the heap and of the arena.
            self.keep(heap.start..heap.first, PieceKind::Other, words.budget())?;
            let top = if heap.has_top { self.state.top } else { u64::MAX };
            let stretch = Stretch { layout, top, end: heap.end, is_of_threads: true };
            match self.stretch(words, &stretch, heap.first)? {
                Err(broken) => return Ok(Err(broken.into())),
                Ok(StretchEnd::Top(top)) => self.add_top(top..heap.end, words.budget())?,
                Ok(StretchEnd::Fence(end)) if !heap.has_top && heap.end - end < layout.alignment => {}
                Ok(StretchEnd::Fence(end)) => return broken(end),
            }
        }
        Ok(match self.state.system_bytes.checked_sub(bytes) {
            Some(0) => Ok(()),
            Some(missing) => Err(ArenaOutcome::Part { missing }),
            None => Err(Broken::Chunk(self.state.top).into()),
        })
    }

    fn stretch(
        &mut self,
        words: &mut ProcessWords<'_>,
        stretch: &Stretch,
        first: u64,
    ) -> Result<std::result::Result<StretchEnd, Broken>> {
        let (sums, kept) = (&mut self.sums, &mut self.kept);
        stretch.walk(words, first, &mut |chunks, budget| {
            kept.add_chunks(chunks, budget)?;
            chunks.iter().try_for_each(|chunk| sums.add(*chunk, stretch.layout, budget))
        })
    }

    /// The top, which ends the arena.
    fn add_top(&mut self, top: Range<u64>, budget: &mut Budget) -> Result<()> {
        self.top = top.clone();
        self.keep(top, PieceKind::Top, budget)
    }

    fn keep(&mut self, at: Range<u64>, kind: PieceKind, budget: &mut Budget) -> Result<()> {
        Ok(self.kept.add(HeapPiece::new(at.start, at.end, kind), budget)?)
    }
}

/// Where chunks begin again after `from`: the first place from which a walk over some chunks comes to the end of a
/// stretch.
fn next_stretch(words: &mut ProcessWords<'_>, stretch: &Stretch, from: u64) -> Result<Option<u64>> {
    let mut next = stretch.layout.first_chunk(from);
    while let Some(at) = next.filter(|at| *at < stretch.top) {
        words.budget().go_on()?;
        let mut chunks = 0;
        let count = &mut |some: &[HeapChunk], _: &mut Budget| {
            chunks += some.len();
            Ok(())
        };
        if stretch.walk(words, at, count)?.is_ok() && chunks > 0 {
            return Ok(Some(at));
        }
        next = at.checked_add(stretch.layout.alignment);
    }
    // Nothing but the top came after it.
    Ok(next.filter(|at| *at == stretch.top))
}
