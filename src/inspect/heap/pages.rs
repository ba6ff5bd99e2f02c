//! The use of each page for the heaps of a process, found by one walk over all arenas when it is first needed.

use super::kept::Kept;
use super::pieces::{HeapPiece, PieceKind};
use super::recorded::is_recorded;
use super::uses::{FoundUses, HeapUses, PageUses};
use super::walk::ChunkLayout;
use super::{ArenaOutcome, FoundArena, HeapSearch, MappedChunks, Walk, anonymous};
use crate::budget::Budget;
use crate::inspect::memory::has_memory;
use crate::inspect::{AddressSpace, Error, Result};
use crate::report::Reason;

impl AddressSpace {
    /// Returns the uses of the pages of the heaps.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or Ctrl-C.
    pub(in crate::inspect) fn heap_uses(&self) -> Result<&HeapUses> {
        let uses = self.heap_cache().get_or_init(|| self.find_heap_uses());
        uses.as_ref().map_err(Clone::clone)
    }

    fn find_heap_uses(&self) -> Result<HeapUses> {
        require_memory(self)?;
        let budget = self.target().process.budget();
        // The variables that lead to the arenas may be in other regions.
        if self.is_complete() { find(self, budget) } else { find(&AddressSpace::of(self.target())?, budget) }
    }
}

/// Returns whether heaps can be found: not in a capture or core that has neither memory nor the sizes of chunks.
///
/// # Errors
/// The target is gone.
pub fn has_heaps(space: &AddressSpace) -> Result<bool> {
    Ok(is_recorded(space)? || has_memory(space)?)
}

/// Fails in a capture or core that has neither memory nor the sizes of chunks.
///
/// # Errors
/// The file has neither, or the target is gone.
pub fn require_memory(space: &AddressSpace) -> Result<()> {
    let reason = || {
        Reason::NotInFile(
            "the file has no memory, and heaps are found by their contents: capture the process `with heap`".to_owned(),
        )
    };
    if has_heaps(space)? { Ok(()) } else { Err(Error::Unknown { what: "heaps", reason: reason() }) }
}

fn find(space: &AddressSpace, mut budget: Budget) -> Result<HeapUses> {
    let mapped = MappedChunks::of(space, budget.clone())?;
    let mut search = HeapSearch::new(space, budget.clone())?.keeping_uses(mapped);
    while let Some((_, found)) = search.found.next() {
        search.walk_and_keep(&found)?;
    }
    finish(search.uses.take().unwrap_or_default(), space, &mut budget)
}

impl HeapSearch<'_> {
    /// The same, with the use of each page, which the address space has after the last arena: a sweep that asks for it
    /// then walks no arena again. `mapped` are the chunks that are separate mappings.
    pub fn keeping_uses(self, mapped: MappedChunks) -> Self {
        let kept = Kept::Pages(PageUses::new(self.space.page_size()));
        let uses = FoundUses { mapped: mapped.ranges, is_part: self.unsearched > 0, ..FoundUses::default() };
        HeapSearch { kept, uses: Some(uses), ..self }
    }

    /// Walks an arena, and keeps the uses of its pages, if that was asked for.
    pub(super) fn walk_and_keep(&mut self, found: &FoundArena) -> Result<Option<(Walk, ChunkLayout)>> {
        let mut walked = self.walk_again(found)?;
        if let Some(uses) = &mut self.uses {
            let whole = walked.as_mut().map(|(walk, _)| walk).filter(|walk| walk.outcome == ArenaOutcome::Complete);
            uses.add(match whole.map(|walk| std::mem::replace(&mut walk.kept, Kept::Nothing)) {
                Some(Kept::Pages(pages)) => Some(pages),
                _ => None,
            });
        }
        Ok(walked)
    }

    /// Gives the address space the uses, after the last arena. A part of it has those of the whole process.
    pub(super) fn cache_uses(&mut self) -> Result<()> {
        if let Some(uses) = self.uses.take().filter(|_| self.space.is_complete()) {
            let found = finish(uses, self.space, &mut self.budget)?;
            self.space.heap_cache().get_or_init(|| Ok(found));
        }
        Ok(())
    }
}

/// Returns the uses of all pages, with those of chunks that are separate mappings.
fn finish(found: FoundUses, space: &AddressSpace, budget: &mut Budget) -> Result<HeapUses> {
    let FoundUses { mut uses, mapped, is_part } = found;
    for range in mapped {
        let mut pages = PageUses::new(space.page_size());
        pages.add(HeapPiece::new(range.start().get(), range.end().get(), PieceKind::InUse), budget)?;
        uses.add(pages);
    }
    let unknown = if is_part { anonymous(space) } else { Vec::new() };
    Ok(uses.finish(&unknown, budget)?)
}
