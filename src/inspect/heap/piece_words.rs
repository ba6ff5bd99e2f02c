//! The pieces of an arena as 64-bit words, the form in which a capture without memory stores a heap.

use super::pieces::{HeapPiece, PieceKind};
use super::walk::FLAGS;
use crate::budget::{Budget, OutOfBudget};

/// The lowest bits of a word for each kind of piece; `NO_PIECE` is for memory that no piece describes.
const KINDS: [(PieceKind, u64); 4] =
    [(PieceKind::InUse, 0), (PieceKind::Free, 1), (PieceKind::Top, 2), (PieceKind::Other, 3)];
const NO_PIECE: u64 = 4;

/// The pieces of an arena as words, in address order.
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

/// Splits a word into the size of a piece and its kind; `None` for memory that no piece describes.
pub(super) fn split(word: u64) -> (u64, Option<PieceKind>) {
    let kind = KINDS.iter().find(|(_, bits)| *bits == word & FLAGS);
    (word & !FLAGS, kind.map(|(kind, _)| *kind))
}
