//! The pieces of an arena in words: what a capture without memory has of a heap.

use super::pieces::{HeapPiece, PieceKind};
use super::walk::FLAGS;
use crate::budget::{Budget, OutOfBudget};

/// The bits of a piece that say what it is; one of these is for memory that no piece describes.
const KINDS: [(PieceKind, u64); 4] =
    [(PieceKind::InUse, 0), (PieceKind::Free, 1), (PieceKind::Top, 2), (PieceKind::Other, 3)];
const NO_PIECE: u64 = 4;

/// The pieces of an arena in words, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct PieceWords {
    pub(super) first: u64,
    next: u64,
    pub(super) words: Vec<u64>,
}

impl PieceWords {
    pub(super) fn add(&mut self, piece: HeapPiece, budget: &mut Budget) -> std::result::Result<(), OutOfBudget> {
        budget.hold(2 * size_of::<u64>() as u64)?;
        let start = piece.start.get();
        if self.words.is_empty() {
            self.first = start;
        } else if start > self.next {
            self.words.push((start - self.next) | NO_PIECE);
        }
        let kind = KINDS.iter().find(|(kind, _)| *kind == piece.kind).map_or(NO_PIECE, |(_, bits)| *bits);
        self.words.push((piece.bytes & !FLAGS) | kind);
        self.next = piece.end().get();
        Ok(())
    }
}

/// The size of a piece, and what it is; `None` for memory that no piece describes.
pub(super) fn split(word: u64) -> (u64, Option<PieceKind>) {
    let kind = KINDS.iter().find(|(_, bits)| *bits == word & FLAGS);
    (word & !FLAGS, kind.map(|(kind, _)| *kind))
}
