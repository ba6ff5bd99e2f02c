//! The use of each page for the heaps of a process, found by one walk over all arenas when it is first needed.

use super::kept::Kept;
use super::pieces::{HeapPiece, PieceKind};
use super::recorded::is_recorded;
use super::uses::{HeapUses, PageUses};
use super::{ArenaOutcome, HeapSearch, MappedChunks, anonymous};
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
    let mut search = HeapSearch::new(space, budget.clone())?;
    search.kept = Kept::Pages(PageUses::new(space.page_size()));
    let mut uses = HeapUses::default();
    let mut is_whole = search.unsearched() == 0;
    while let Some((_, found)) = search.found.next() {
        match search.walk_again(&found)?.map(|(walk, _)| (walk.outcome, walk.kept)) {
            Some((ArenaOutcome::Complete, Kept::Pages(pages))) => uses.add(pages),
            _ => is_whole = false,
        }
    }
    for range in MappedChunks::of(space, budget.clone())?.ranges {
        let mut pages = PageUses::new(space.page_size());
        pages.add(HeapPiece::new(range.start().get(), range.end().get(), PieceKind::InUse), &mut budget)?;
        uses.add(pages);
    }
    let unknown = if is_whole { Vec::new() } else { anonymous(space) };
    Ok(uses.finish(&unknown, &mut budget)?)
}
