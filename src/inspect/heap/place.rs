//! Where in the heaps an address lies.

use super::kept::{Around, Kept};
use super::pieces::HeapPiece;
use super::{ArenaOutcome, HeapSearch, MappedChunks, anonymous};
use crate::budget::Budget;
use crate::inspect::{AddressSpace, Result};
use crate::kernel::{AddressRange, VirtualAddress};

/// Where in the heaps of glibc an address lies.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HeapPlace {
    /// In an arena.
    Arena {
        /// Its number in the circle of arenas; 0 is the main one.
        number: usize,
        /// Where its head (`malloc_state`) is.
        head: VirtualAddress,
        /// The chunk, or what else lies there.
        at: HeapPiece,
        /// What lies right before it.
        before: Option<HeapPiece>,
        /// What lies right after it.
        after: Option<HeapPiece>,
    },
    /// In a chunk that is a mapping of its own.
    Mapping(AddressRange),
    /// In no heap of glibc.
    Outside,
    /// The address may be in an arena that was not walked to its end, and this is why.
    Unknown(ArenaOutcome),
    /// The arenas were not found: their variables are in swap, or too many.
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
