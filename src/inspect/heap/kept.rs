//! Data about the pieces of an arena that a walk keeps beside their sums. The pieces are added in address order.

use super::piece_words::PieceWords;
use super::pieces::HeapPiece;
use super::uses::PageUses;
use super::walk::ChunkRun;
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::VirtualAddress;

/// The data that a walk keeps.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Nothing,
    /// The use of each page.
    Pages(PageUses),
    /// The pieces in words, for a capture.
    Words(PieceWords),
    /// The pieces around an address.
    Around(Around),
}

impl Kept {
    pub(super) fn add_chunks(&mut self, runs: &[ChunkRun], budget: &mut Budget) -> Result<(), OutOfBudget> {
        match self {
            Kept::Nothing => Ok(()),
            _ => runs.iter().flat_map(|run| run.pieces()).try_for_each(|piece| self.add(piece, budget)),
        }
    }

    pub(super) fn add(&mut self, piece: HeapPiece, budget: &mut Budget) -> Result<(), OutOfBudget> {
        match self {
            Kept::Nothing => Ok(()),
            Kept::Pages(pages) => pages.add(piece, budget),
            Kept::Words(words) => words.add(piece, budget),
            Kept::Around(around) => {
                around.add(piece);
                Ok(())
            }
        }
    }
}

/// The piece at an address and those beside it.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) address: VirtualAddress,
    pub(super) before: Option<HeapPiece>,
    pub(super) at: Option<HeapPiece>,
    pub(super) after: Option<HeapPiece>,
}

impl Around {
    pub(super) fn new(address: VirtualAddress) -> Self {
        Around { address, before: None, at: None, after: None }
    }

    fn add(&mut self, piece: HeapPiece) {
        match self.at {
            None if piece.contains(self.address) => self.at = Some(piece),
            None => self.before = Some(piece),
            Some(at) if self.after.is_none() && piece.start == at.end() => self.after = Some(piece),
            Some(_) => {}
        }
    }

    /// Returns the piece before it, if no other memory lies between them.
    pub(super) fn neighbour_before(&self) -> Option<HeapPiece> {
        self.before.filter(|before| self.at.is_some_and(|at| before.end() == at.start))
    }
}
