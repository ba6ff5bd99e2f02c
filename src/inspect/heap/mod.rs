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
//!     println!("{}: {} bytes in use, {} free: {:?}", arena.address, arena.in_use.bytes, arena.free.bytes, arena.outcome);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod mappings;
mod state;
#[cfg(test)]
mod tests;
mod walk;
mod words;

use super::{AddressSpace, Backing, Facts, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, State, VirtualAddress};
use arena::FoundArena;
pub use mappings::MappedChunks;
use state::ArenaState;
use walk::{Broken, ChunkLayout, FLAGS, Stretch, StretchEnd};
pub use walk::{ChunkSum, HeapChunk};
use words::{ProcessWords, Words};

/// How often an arena is walked that changes meanwhile.
const TRIES: u32 = 3;

/// Classes of chunk sizes: powers of two.
const CLASSES: usize = 64;

/// The machine whose 32-bit programs align user data to 16 bytes (`EM_386`).
const I386: u16 = 3;

/// How an arena was walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArenaOutcome {
    /// All of it: the bytes are those that it has from the kernel.
    Complete,
    /// So many bytes of it were not found. What was found is a part.
    Part {
        /// Bytes that are missing.
        missing: u64,
    },
    /// The chunk at this address contradicted its neighbours each time: the program changed the heap meanwhile, or
    /// overwrote it.
    Broken(VirtualAddress),
    /// The head of the chunk at this address is not resident, so that nothing after it can be found.
    Absent(VirtualAddress),
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
    /// The same on pages that another process has too, since a fork: only the resident size of this process falls.
    pub shared: u64,
    /// The same in locked regions, which the kernel refuses.
    pub locked: u64,
}

/// The chunks of one class: from `smallest` to less than twice of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SizeClass {
    /// The size of the smallest chunk of the class.
    pub smallest: u64,
    /// Those in use.
    pub in_use: ChunkSum,
    /// Those that are free.
    pub free: ChunkSum,
}

/// An arena of glibc's `malloc`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapArena {
    /// Its number in the circle of arenas; 0 is the main one.
    pub number: usize,
    /// Where its head (`malloc_state`) is.
    pub address: VirtualAddress,
    /// Its memory.
    pub parts: Vec<AddressRange>,
    /// Bytes that it has from the kernel.
    pub system_bytes: u64,
    /// How it was walked: the sums hold for all of it only if it is complete.
    pub outcome: ArenaOutcome,
    /// Chunks in use.
    pub in_use: ChunkSum,
    /// Free chunks, without the top.
    pub free: ChunkSum,
    /// Bytes of free chunks on pages that chunks in use need too: no trim gives them back.
    pub between: u64,
    /// Bytes of the free chunk at its end, from which new ones are cut.
    pub top: u64,
    /// Bytes between its stretches that the program itself has taken (`sbrk`).
    pub foreign: u64,
    /// Chunks by size, the smallest first; classes without chunks are left out.
    pub sizes: Vec<SizeClass>,
    /// Resident bytes.
    pub resident: u64,
    /// What a trim would give back.
    pub trimmable: Trimmable,
}

/// The arenas of a process, walked one by one.
#[must_use]
pub struct HeapSearch<'a> {
    space: &'a AddressSpace,
    budget: Budget,
    layout: ChunkLayout,
    found: std::iter::Enumerate<std::vec::IntoIter<FoundArena>>,
}

/// What a walk adds up.
#[derive(Clone)]
struct Sums {
    in_use: ChunkSum,
    free: ChunkSum,
    between: u64,
    foreign: u64,
    sizes: [(ChunkSum, ChunkSum); CLASSES],
    trimmed: Vec<AddressRange>,
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            in_use: ChunkSum::default(),
            free: ChunkSum::default(),
            between: 0,
            foreign: 0,
            sizes: [(ChunkSum::default(), ChunkSum::default()); CLASSES],
            trimmed: Vec::new(),
        }
    }
}

impl Sums {
    fn add(&mut self, chunk: HeapChunk, layout: ChunkLayout, budget: &mut Budget) -> Result<()> {
        let class = chunk.size.checked_ilog2().unwrap_or_default() as usize;
        let (sum, of_class) = match (chunk.is_in_use, self.sizes.get_mut(class)) {
            (true, Some(sizes)) => (&mut self.in_use, &mut sizes.0),
            (false, Some(sizes)) => (&mut self.free, &mut sizes.1),
            (_, None) => return Ok(()),
        };
        sum.add(chunk.size);
        of_class.add(chunk.size);
        if chunk.is_in_use {
            return Ok(());
        }
        let trimmed = layout.trimmed(chunk.start.get(), chunk.size);
        self.between += chunk.size - trimmed.map_or(0, AddressRange::len);
        if let Some(range) = trimmed {
            budget.hold(size_of::<AddressRange>() as u64)?;
            self.trimmed.push(range);
        }
        Ok(())
    }

    fn classes(&self) -> Vec<SizeClass> {
        let classes = self.sizes.iter().enumerate().filter(|(_, (used, free))| used.chunks + free.chunks > 0);
        classes.map(|(log, &(in_use, free))| SizeClass { smallest: 1 << log, in_use, free }).collect()
    }
}

impl<'a> HeapSearch<'a> {
    /// Finds the arenas. There are none where no program or library has a heap of glibc.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn new(space: &'a AddressSpace, mut budget: Budget) -> Result<Self> {
        let process = &space.target().process;
        let layout = process.layout();
        let pointer_bytes = u64::from(layout.pointer_bytes);
        let is_narrow = pointer_bytes == 4 && process.machine() != Some(I386);
        let layout = ChunkLayout { pointer_bytes, alignment: if is_narrow { 8 } else { 16 }, page: layout.page };
        let found = arena::find(space, &mut ProcessWords::new(space.target(), &mut budget))?;
        Ok(HeapSearch { space, budget, layout, found: found.into_iter().enumerate() })
    }

    /// How many arenas are still to be walked.
    pub fn left(&self) -> usize {
        self.found.len()
    }

    /// The next arena.
    ///
    /// # Errors
    /// As [`HeapSearch::new`].
    pub fn next(&mut self) -> Result<Option<HeapArena>> {
        let Some((number, found)) = self.found.next() else {
            return Ok(None);
        };
        let mut walk = self.walk(&found)?;
        for _ in 1..TRIES {
            if walk.outcome == ArenaOutcome::Complete {
                break;
            }
            walk = self.walk(&found)?;
        }
        let Walk { state, parts, top, mut sums, outcome } = walk;
        if found.is_main && outcome == ArenaOutcome::Complete {
            sums.trimmed.extend(self.layout.trimmed_top(state.top, top));
        }
        Ok(Some(HeapArena {
            number,
            address: VirtualAddress::new(found.start),
            resident: resident(self.space, &parts, &self.budget)?,
            trimmable: self.trimmable(&sums.trimmed)?,
            parts,
            system_bytes: state.system_bytes,
            outcome,
            in_use: sums.in_use,
            free: sums.free,
            between: sums.between,
            top,
            foreign: sums.foreign,
            sizes: sums.classes(),
        }))
    }

    /// Walks an arena once.
    fn walk(&mut self, found: &FoundArena) -> Result<Walk> {
        let mut words = ProcessWords::new(self.space.target(), &mut self.budget);
        let state = ArenaState::at(&mut words, found.state.bins)?.unwrap_or(found.state);
        let mut walk =
            Walk { state, parts: Vec::new(), top: 0, sums: Sums::default(), outcome: ArenaOutcome::Complete };
        if !state.is_new() {
            let ended = if found.is_main {
                walk.main(&mut words, self.layout)?
            } else {
                let found = FoundArena { state, ..found.clone() };
                walk.of_threads(&mut words, self.layout, &found, self.space.huge_bytes())?
            };
            walk.outcome = match ended {
                Ok(0) => ArenaOutcome::Complete,
                Ok(missing) => ArenaOutcome::Part { missing },
                Err(Broken::Chunk(at)) => ArenaOutcome::Broken(VirtualAddress::new(at)),
                Err(Broken::Absent(at)) => ArenaOutcome::Absent(VirtualAddress::new(at)),
            };
        }
        Ok(walk)
    }

    /// What a trim of these ranges gives back: they are in order, but for the heaps of an arena.
    fn trimmable(&mut self, ranges: &[AddressRange]) -> Result<Trimmable> {
        let mut ranges = ranges.to_vec();
        ranges.sort_by_key(|range| range.start());
        let mut all = Trimmable::default();
        let need = self.space.obtainable(Facts::HUGE | Facts::ENTRIES);
        let mut pages = self.space.pages(&ranges, need).within(self.budget.clone());
        while let Some(chunk) = pages.next()? {
            // The pool takes back whole huge pages only.
            if chunk.region.is_some_and(|viewed| viewed.backing == Backing::Hugetlb) {
                continue;
            }
            let is_locked = chunk.region.is_some_and(|viewed| self.space.is_locked(&viewed.region, &mut self.budget));
            for page in chunk.pages().filter(|page| page.state() == State::Present) {
                let sum = match (is_locked, page.huge, page.entry.is_exclusive()) {
                    (true, ..) => &mut all.locked,
                    (false, Some(true), _) => &mut all.huge,
                    (false, _, false) => &mut all.shared,
                    (false, _, true) => &mut all.now,
                };
                *sum += page.bytes(self.layout.page);
            }
        }
        Ok(all)
    }
}

/// Resident bytes of these ranges, which are in order.
///
/// # Errors
/// The target is gone, or the budget is over.
pub fn resident(space: &AddressSpace, ranges: &[AddressRange], budget: &Budget) -> Result<u64> {
    let mut resident = 0;
    let mut pages = space.pages(ranges, Facts::empty()).within(budget.clone());
    while let Some(chunk) = pages.next()? {
        let present = chunk.pages().filter(|page| page.state() == State::Present);
        resident += present.map(|page| page.bytes(space.page())).sum::<u64>();
    }
    Ok(resident)
}

/// The regions that a heap may be in: anonymous, writable and private memory, but for stacks that the kernel names.
pub fn anonymous(space: &AddressSpace) -> Vec<AddressRange> {
    let may_hold = |region: &&Region| {
        let name = region.name.as_bytes();
        let is_named = name.starts_with(b"[") && name != b"[heap]" && !name.starts_with(b"[anon:");
        region.inode == 0 && region.permissions.write && !region.permissions.shared && !is_named
    };
    space.maps().filter(may_hold).map(|region| region.range).collect()
}

/// One walk over an arena.
struct Walk {
    state: ArenaState,
    parts: Vec<AddressRange>,
    top: u64,
    sums: Sums,
    outcome: ArenaOutcome,
}

/// How many bytes of an arena were not found, or what broke the walk.
type Ended = std::result::Result<u64, Broken>;

impl Walk {
    /// The main arena: one piece up to the end of `top`, in which the program may have taken memory for itself.
    fn main(&mut self, words: &mut ProcessWords<'_>, layout: ChunkLayout) -> Result<Ended> {
        let ArenaState { top, system_bytes, .. } = self.state;
        let Some(head) = words.word(top + layout.pointer_bytes)? else {
            return Ok(Err(Broken::Absent(top)));
        };
        let end = top.checked_add(head & !FLAGS);
        let range = end.and_then(|end| Some((end.checked_sub(system_bytes)?, end)));
        let Some((start, end)) = range else {
            return Ok(Err(Broken::Chunk(top)));
        };
        self.parts = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)).into_iter().collect();
        self.top = end - top;
        let stretch = Stretch { layout, top, end, is_of_threads: false };
        let mut first = layout.first_chunk(start);
        while let Some(at) = first {
            match self.stretch(words, &stretch, at)? {
                Err(broken) => return Ok(Err(broken)),
                Ok(StretchEnd::Top) => return Ok(Ok(0)),
                // The program has taken memory for itself, and then malloc went on after it.
                Ok(StretchEnd::Fence(fence)) => {
                    first = next_stretch(words, &stretch, fence)?;
                    let Some(next) = first else {
                        return Ok(Ok(end - fence));
                    };
                    self.sums.foreign += next - fence;
                }
            }
        }
        Ok(Err(Broken::Chunk(start)))
    }

    /// An arena of threads: its heaps, of which only the last has the top.
    fn of_threads(
        &mut self,
        words: &mut ProcessWords<'_>,
        layout: ChunkLayout,
        found: &FoundArena,
        huge_bytes: u64,
    ) -> Result<Ended> {
        let Some(heaps) = found.heaps(words, layout, huge_bytes)? else {
            return Ok(Err(Broken::Chunk(self.state.top)));
        };
        let mut bytes = 0;
        for heap in &heaps {
            bytes += heap.end - heap.start;
            self.parts.extend(heap.range());
            let stretch = Stretch { layout, top: self.state.top, end: heap.end, is_of_threads: true };
            match self.stretch(words, &stretch, heap.first)? {
                Err(broken) => return Ok(Err(broken)),
                Ok(StretchEnd::Top) => self.top = heap.end.saturating_sub(self.state.top),
                Ok(StretchEnd::Fence(end)) if heap.end.saturating_sub(end) < layout.alignment => {}
                Ok(StretchEnd::Fence(end)) => return Ok(Err(Broken::Chunk(end))),
            }
        }
        Ok(Ok(self.state.system_bytes.abs_diff(bytes)))
    }

    fn stretch(
        &mut self,
        words: &mut ProcessWords<'_>,
        stretch: &Stretch,
        first: u64,
    ) -> Result<std::result::Result<StretchEnd, Broken>> {
        let sums = &mut self.sums;
        stretch.walk(words, first, &mut |chunk, budget| sums.add(chunk, stretch.layout, budget))
    }
}

/// Where chunks begin again after `from`: the first place from which a walk comes to the end of a stretch.
fn next_stretch(words: &mut ProcessWords<'_>, stretch: &Stretch, from: u64) -> Result<Option<u64>> {
    let mut next = stretch.layout.first_chunk(from);
    while let Some(at) = next.filter(|at| *at < stretch.top) {
        words.budget().go_on()?;
        if stretch.walk(words, at, &mut |_, _| Ok(()))?.is_ok() {
            return Ok(Some(at));
        }
        next = at.checked_add(stretch.layout.alignment);
    }
    // Nothing but the top came after it.
    Ok(next.filter(|at| *at == stretch.top))
}
