//! The pieces of an arena: chunks, the top, and other memory.

use crate::kernel::VirtualAddress;
use crate::kernel::words::worded;

worded! {
    /// The kinds of pieces of a heap.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum PieceKind, word {
        /// A chunk that the program may have, or a freed one that a thread keeps for reuse.
        InUse = "in use",
        /// A free chunk.
        Free = "free",
        /// The free end of an arena, from which chunks are cut.
        Top = "top",
        /// Heads of the allocator, and memory that the program got with `sbrk`.
        Other = "other",
    }
}

/// A piece of a heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapPiece {
    /// The address of its first byte: for a chunk, that of its head.
    pub start: VirtualAddress,
    /// The size of the piece in bytes, head included.
    pub bytes: u64,
    /// The kind of the piece.
    pub kind: PieceKind,
}

impl HeapPiece {
    pub(super) fn new(start: u64, end: u64, kind: PieceKind) -> Self {
        HeapPiece { start: VirtualAddress::new(start), bytes: end.saturating_sub(start), kind }
    }

    /// Returns the address of the first byte after the piece.
    pub fn end(&self) -> VirtualAddress {
        VirtualAddress::new(self.start.get().saturating_add(self.bytes))
    }

    /// Returns whether `address` is one of the bytes of the piece.
    pub fn contains(&self, address: VirtualAddress) -> bool {
        self.start <= address && address < self.end()
    }
}
