//! The pieces of an arena.

use crate::kernel::VirtualAddress;
use crate::kernel::words::worded;

worded! {
    /// What lies in a part of a heap.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum PieceKind, word {
        /// A chunk that the program may have: freed chunks that threads keep for themselves are among them.
        InUse = "in use",
        /// A free chunk.
        Free = "free",
        /// The free end of an arena, from which chunks are cut.
        Top = "top",
        /// Heads of the allocator, and memory that the program got with `sbrk`.
        Other = "other",
    }
}

/// A part of a heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapPiece {
    /// Its first byte: of a chunk that of its head.
    pub start: VirtualAddress,
    /// Its size in bytes, with its head.
    pub bytes: u64,
    /// What it is.
    pub kind: PieceKind,
}

impl HeapPiece {
    pub(super) fn new(start: u64, end: u64, kind: PieceKind) -> Self {
        HeapPiece { start: VirtualAddress::new(start), bytes: end.saturating_sub(start), kind }
    }

    /// The first byte after it.
    pub fn end(&self) -> VirtualAddress {
        VirtualAddress::new(self.start.get().saturating_add(self.bytes))
    }

    /// Whether `address` is one of its bytes.
    pub fn contains(&self, address: VirtualAddress) -> bool {
        self.start <= address && address < self.end()
    }
}
