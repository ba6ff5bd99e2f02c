//! The place of an address in the heaps.

use super::kept::{Around, Kept};
use super::pieces::HeapPiece;
use super::{ArenaOutcome, HeapSearch, MappedChunks, anonymous};
use crate::budget::Budget;
use crate::inspect::{AddressSpace, Result};
use crate::kernel::{AddressRange, VirtualAddress};

/// The place of an address in the heaps of glibc.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HeapPlace {
    /// The address is in an arena.
    Arena {
        /// The number of the arena in the circular list of arenas; 0 is the main arena.
        number: usize,
        /// The address of the arena's head (`malloc_state`).
        head: VirtualAddress,
        /// The piece with the address: a chunk, or other memory.
        at: HeapPiece,
        /// The piece right before it.
        before: Option<HeapPiece>,
        /// The piece right after it.
        after: Option<HeapPiece>,
    },
    /// The address is in this chunk, which is a separate mapping.
    Mapping(AddressRange),
    /// The address is in no heap of glibc.
    Outside,
    /// The address may be in an arena that was not walked to its end, because of this outcome.
    Unknown(ArenaOutcome),
    /// The arenas were not found: the variables that lead to them are in swap, or too many.
    Unsearched,
}

impl HeapPlace {
    /// Walks the arenas, up to the one that has `address`.
    ///
    /// # Errors
    /// As [`HeapSearch::new`].
    pub fn of(space: &AddressSpace, address: VirtualAddress, budget: &Budget) -> Result<HeapPlace> {
        let mut search = HeapSearch::new(space, budget.clone())?;
        search.kept = Kept::Around(Around::new(address));
        let mut broken = None;
        while let Some((number, found)) = search.found.next() {
            let Some((walk, _)) = search.walk_again(&found)? else {
                return Ok(HeapPlace::Unsearched);
            };
            match (walk.outcome, walk.kept) {
                (ArenaOutcome::Complete, Kept::Around(around)) => {
                    if let Some(at) = around.at {
                        let (before, after) = (around.neighbour_before(), around.after);
                        let head = VirtualAddress::new(found.start);
                        return Ok(HeapPlace::Arena { number, head, at, before, after });
                    }
                }
                (outcome, _) => broken = broken.or(Some(outcome)),
            }
        }
        let mapped = MappedChunks::of(space, budget.clone())?.ranges.into_iter().find(|range| range.contains(address));
        let may_be = anonymous(space).iter().any(|range| range.contains(address));
        Ok(match (mapped, broken) {
            (Some(range), _) => HeapPlace::Mapping(range),
            (None, Some(outcome)) if may_be => HeapPlace::Unknown(outcome),
            (None, None) if may_be && search.unsearched() > 0 => HeapPlace::Unsearched,
            _ => HeapPlace::Outside,
        })
    }
}
