//! The heaps of glibc's `malloc`: memory in use, and free memory that they keep.
//!
//! No code of the program runs for it, and no symbol is needed. An arena is found by the shape of its head, and its
//! chunks are proof of each other, because each contains the size and the state of its neighbours. A walk that meets a
//! contradiction, or whose bytes are not those that the arena has from the kernel, gives no sums. Only resident pages
//! are read.
//!
//! Chunks that threads keep for reuse (tcache) and small chunks that were freed last (fastbins) are in use for the
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
#[cfg(feature = "symbols")]
mod mapped_at;
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
#[cfg(feature = "symbols")]
pub(super) use mapped_at::mapped_chunks;
pub use mappings::MappedChunks;
pub use pages::{has_heaps, require_memory};
pub use pieces::{HeapPiece, PieceKind};
pub use place::HeapPlace;
use recorded::RecordedHeaps;
pub use resident::{ResidentBytes, anonymous, resident, resident_outside};
use resident::{in_memory, in_order};
use state::ArenaState;
use std::ops::Range;
use sums::Sums;
pub use sums::{KeptPages, SizeClass};
use uses::FoundUses;
pub use uses::HeapUse;
pub use walk::ChunkSum;
use walk::{Broken, ChunkLayout, ChunkRun, FLAGS, Stretch, StretchEnd};
#[cfg(feature = "symbols")]
pub(super) use words::decode;
use words::{END_OF_MEMORY, ProcessWords, Words};
pub use written::{RecordedCounts, record};

/// The number of walks over an arena with each layout, if the arena changes during the walks.
const TRIES: usize = 3;

/// The result of a walk over an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArenaOutcome {
    /// The whole arena was walked: its bytes are those that it has from the kernel.
    Complete,
    /// Some bytes of the arena were not found.
    Part {
        /// The bytes that are missing.
        missing: u64,
    },
    /// The chunk at this address contradicted its neighbours in each walk: the program changed the heap during the
    /// walk, or overwrote it.
    Broken(VirtualAddress),
    /// The head of the chunk at this address is not resident, and nothing after it can be found.
    Absent(VirtualAddress),
    /// The heap is in several pieces, and none was found: the break could not grow, and no mark leads from one piece to
    /// the next.
    Scattered,
}

/// Free memory of an arena that `malloc_trim(0)` would give back, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Trimmable {
    /// Resident whole pages of free chunks that only this process maps, each by one page-table entry: they would be
    /// free memory.
    pub now: u64,
    /// Such pages that are mapped by a PMD: the memory is free only after the kernel splits the huge page.
    pub huge: u64,
    /// Such pages that are also mapped elsewhere, since a fork or because the kernel merged them: only the resident
    /// size of this process falls.
    pub shared: u64,
    /// Such pages in locked regions, for which the kernel refuses the request.
    pub locked: u64,
    /// Such pages of which it is unknown whether another process maps them.
    pub unclear: u64,
}

/// An arena of glibc's `malloc`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapArena {
    /// The number of the arena in the circular list of arenas; 0 is the main arena.
    pub number: usize,
    /// The address of the arena's head (`malloc_state`).
    pub address: VirtualAddress,
    /// Bytes that the arena has from the kernel.
    pub system_bytes: u64,
    /// The result of the walk over it.
    pub outcome: ArenaOutcome,
    /// The arena's memory, in address order; empty if it was not found.
    pub parts: Vec<AddressRange>,
    /// Resident bytes of its memory; `None` without a page map, or unless the whole arena was walked.
    pub resident: Option<u64>,
    /// The sums of its chunks; `None` unless the whole arena was walked.
    pub sums: Option<HeapSums>,
}

/// The sums of the chunks of an arena.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HeapSums {
    /// The chunks in use.
    pub in_use: ChunkSum,
    /// The free chunks, without the top.
    pub free: ChunkSum,
    /// Bytes of free chunks that no trim gives back: their pages also hold chunks in use, or the links of the free
    /// chunks.
    pub between: u64,
    /// Bytes of the top: the free chunk at the arena's end, from which new chunks are cut.
    pub top: u64,
    /// Bytes between stretches of the arena that the program got from `sbrk` itself.
    pub foreign: u64,
    /// Chunks by size, the smallest first; classes without chunks are left out.
    pub sizes: Vec<SizeClass>,
    /// Pages with free memory that chunks in use keep, those with the fewest chunks first.
    pub kept: Vec<KeptPages>,
    /// The memory that a trim would give back; `None` without a page map.
    pub trimmable: Option<Trimmable>,
    /// The sums of each part of its memory, in address order.
    pub parts: Vec<HeapPart>,
}

/// The sums of a part of an arena: the break, one heap of an arena of threads, or a separate mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapPart {
    /// The memory of the part.
    pub range: AddressRange,
    /// Resident bytes; `None` without a page map.
    pub resident: Option<u64>,
    /// The chunks in use.
    pub in_use: ChunkSum,
    /// The free chunks, without the top.
    pub free: ChunkSum,
    /// The memory that a trim would give back; `None` without a page map.
    pub trimmable: Option<Trimmable>,
}

/// The arenas of a process, walked one by one.
#[must_use]
pub struct HeapSearch<'a> {
    space: &'a AddressSpace,
    budget: Budget,
    unsearched: u64,
    /// The heaps of a capture that has only the sizes of chunks.
    recorded: Option<RecordedHeaps<'a>>,
    found: std::iter::Enumerate<std::vec::IntoIter<FoundArena>>,
    /// The data that walks keep beside the sums.
    kept: Kept,
    /// The uses of pages, if they are kept.
    uses: Option<FoundUses>,
}

impl Trimmable {
    /// Returns the sum of two.
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
        let (unsearched, kept) = (found.unsearched, Kept::Nothing);
        Ok(HeapSearch { space, budget, unsearched, recorded, found: arenas, kept, uses: None })
    }

    /// Returns the number of arenas that are still to be walked.
    pub fn left(&self) -> usize {
        self.found.len()
    }

    /// Returns the bytes of variables that were not searched, if no arena was found: they are in swap, or too many.
    pub fn unsearched(&self) -> u64 {
        self.unsearched
    }

    /// Walks the next arena; `None` after the last.
    ///
    /// # Errors
    /// As [`HeapSearch::new`].
    pub fn next(&mut self) -> Result<Option<HeapArena>> {
        let Some((number, found)) = self.found.next() else {
            self.cache_uses()?;
            return Ok(None);
        };
        let Some((Walk { state, parts, top, sums, outcome, .. }, layout)) = self.walk_and_keep(&found)? else {
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

    /// Walks an arena, again if it changes during the walk. `None` if there is no layout.
    fn walk_again(&mut self, found: &FoundArena) -> Result<Option<(Walk, ChunkLayout)>> {
        let layouts = ChunkLayout::of(self.space.target());
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
            // If no walk is complete, the outcome is that of the likeliest layout.
            if is_complete || walk.is_none() {
                walk = Some((walked, *layout));
            }
            if is_complete {
                break;
            }
        }
        Ok(walk)
    }

    /// Returns the sums of a whole arena. The top is at the end of the main arena, and malloc_trim gives it back too if
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

    /// Returns the sums of each part of an arena.
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

    /// Walks an arena once, with one layout.
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

    /// Returns the memory in these ranges that a trim gives back.
    fn trimmable(&mut self, mut ranges: Vec<AddressRange>, top: Option<AddressRange>) -> Result<Trimmable> {
        ranges.extend(top);
        // Moving the break frees locked pages too; MADV_DONTNEED refuses them.
        let is_in_top = |page: &Page| top.is_some_and(|top| top.contains(page.address));
        let mut all = Trimmable::default();
        let need = self.space.obtainable(Evidence::HUGE | Evidence::KINDS) | Evidence::ENTRIES | Evidence::ANY_FRAME;
        let mut pages = self.space.pages(&in_order(ranges), need).with_budget(self.budget.clone());
        // `smaps` costs a walk over all page tables.
        let may_lock = self.space.target().process.locked_bytes() != Some(0);
        while let Some(chunk) = pages.next()? {
            // The pool takes back whole huge pages only.
            if chunk.region.is_some_and(|viewed| viewed.backing == Backing::Hugetlb) {
                continue;
            }
            let region = chunk.region.filter(|_| may_lock);
            let is_locked = region.is_some_and(|viewed| self.space.is_locked(&viewed.region, &mut self.budget));
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
    /// The addresses of the top.
    top: Range<u64>,
    sums: Sums,
    kept: Kept,
    outcome: ArenaOutcome,
}

/// The end of a walk: the error is the outcome of an incomplete one.
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
    /// Walks the main arena: one piece up to the end of `top`, in which the program may have taken memory with `sbrk`.
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
                // The program has taken memory with `sbrk`, and malloc continued after it.
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

    /// Walks an arena of threads: its heaps, of which only the newest has the top.
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
        stretch.walk(words, first, &mut |runs, budget| {
            kept.add_chunks(runs, budget)?;
            runs.iter().try_for_each(|run| sums.add(*run, stretch.layout, budget))
        })
    }

    /// Adds the top, which ends the arena.
    fn add_top(&mut self, top: Range<u64>, budget: &mut Budget) -> Result<()> {
        self.top = top.clone();
        self.keep(top, PieceKind::Top, budget)
    }

    fn keep(&mut self, at: Range<u64>, kind: PieceKind, budget: &mut Budget) -> Result<()> {
        Ok(self.kept.add(HeapPiece::new(at.start, at.end, kind), budget)?)
    }
}

/// Returns the address at which chunks begin again after `from`: the first from which a walk over at least one chunk
/// reaches the end of a stretch.
fn next_stretch(words: &mut ProcessWords<'_>, stretch: &Stretch, from: u64) -> Result<Option<u64>> {
    let mut next = stretch.layout.first_chunk(from);
    while let Some(at) = next.filter(|at| *at < stretch.top) {
        words.budget().go_on()?;
        let mut runs = 0;
        let count = &mut |some: &[ChunkRun], _: &mut Budget| {
            runs += some.len();
            Ok(())
        };
        if stretch.walk(words, at, count)?.is_ok() && runs > 0 {
            return Ok(Some(at));
        }
        next = at.checked_add(stretch.layout.alignment);
    }
    // Only the top follows.
    Ok(next.filter(|at| *at == stretch.top))
}
