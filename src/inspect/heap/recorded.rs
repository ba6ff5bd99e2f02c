//! Heaps of a capture without memory: the sizes of their chunks, as a walk proved them.
//!
//! They are stored as 64-bit words. First come the bytes of variables that were not searched, the number of large
//! chunks that are separate mappings and both ends of each, the number of arenas and the address of each. Then for each
//! arena: its bytes from the kernel, the outcome of the walk and a number that belongs to it, the number of parts and
//! both ends of each, the address of the first piece, the number of pieces, and a word for each piece: its size, and
//! its kind in the lowest three bits.

use super::arena::{FoundArena, MOST_ARENAS};
use super::piece_words::split;
use super::pieces::HeapPiece;
use super::state::ArenaState;
use super::words::END_OF_MEMORY;
use crate::budget::Budget;
use crate::inspect::{AddressSpace, Error, Result};
use crate::kernel::{AddressRange, VirtualAddress};
use crate::report::Reason;

/// Returns whether a capture has the words of heaps.
///
/// # Errors
/// The capture is damaged.
pub(super) fn is_recorded(space: &AddressSpace) -> Result<bool> {
    Ok(space.target().process.heap_words(0)?.is_some())
}

/// The words of a capture, read in order. The file is not trusted.
pub(super) struct RecordedHeaps<'a> {
    space: &'a AddressSpace,
    read: std::vec::IntoIter<u64>,
    next: u64,
    /// Bytes of variables that were not searched.
    pub(super) unsearched: u64,
    /// Chunks that are separate mappings.
    pub(super) mapped: Vec<AddressRange>,
    pub(super) arenas: Vec<FoundArena>,
}

pub(super) fn damaged() -> Error {
    let reason = Reason::NotInFile("the sizes of chunks in this capture contradict each other".to_owned());
    Error::Unknown { what: "heaps", reason }
}

impl<'a> RecordedHeaps<'a> {
    /// Reads the words before the arenas; `None` if the capture has no heaps.
    pub(super) fn of(space: &'a AddressSpace, budget: &mut Budget) -> Result<Option<Self>> {
        if !is_recorded(space)? {
            return Ok(None);
        }
        let mut heaps = RecordedHeaps {
            space,
            read: Vec::new().into_iter(),
            next: 0,
            unsearched: 0,
            mapped: Vec::new(),
            arenas: Vec::new(),
        };
        heaps.unsearched = heaps.word(budget)?;
        heaps.mapped = heaps.ranges(budget)?;
        let arenas = heaps.word(budget)?;
        if arenas > MOST_ARENAS as u64 {
            return Err(damaged());
        }
        for number in 0..arenas {
            let start = heaps.word(budget)?;
            let state = ArenaState { bins: start, top: 0, next: 0, system_bytes: 0 };
            heaps.arenas.push(FoundArena { start, state, is_main: number == 0 });
        }
        Ok(Some(heaps))
    }

    fn word(&mut self, budget: &mut Budget) -> Result<u64> {
        if self.read.len() == 0 {
            budget.go_on()?;
            let read = self.space.target().process.heap_words(self.next)?.unwrap_or_default();
            self.next += read.len() as u64;
            self.read = read.into_iter();
        }
        self.read.next().ok_or_else(damaged)
    }

    /// Reads the number of ranges, then both ends of each; fails unless they are in order.
    fn ranges(&mut self, budget: &mut Budget) -> Result<Vec<AddressRange>> {
        let mut ranges: Vec<AddressRange> = Vec::new();
        for _ in 0..self.word(budget)? {
            budget.hold(size_of::<AddressRange>() as u64)?;
            let [start, end] = [self.word(budget)?, self.word(budget)?];
            let is_next = ranges.last().is_none_or(|last| last.end().get() <= start) && end < END_OF_MEMORY;
            let range = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
            ranges.push(range.filter(|_| is_next).ok_or_else(damaged)?);
        }
        Ok(ranges)
    }

    /// Reads the words of the next arena that come before its pieces.
    pub(super) fn arena(&mut self, budget: &mut Budget) -> Result<RecordedArena> {
        let system_bytes = self.word(budget)?;
        let ended = [self.word(budget)?, self.word(budget)?];
        Ok(RecordedArena { system_bytes, ended, parts: self.ranges(budget)? })
    }

    /// Calls `each` with the pieces of the arena that was read last.
    pub(super) fn pieces(
        &mut self,
        budget: &mut Budget,
        each: &mut impl FnMut(HeapPiece, &mut Budget) -> Result<()>,
    ) -> Result<()> {
        let mut at = self.word(budget)?;
        for _ in 0..self.word(budget)? {
            budget.go_on()?;
            let (bytes, kind) = split(self.word(budget)?);
            let end = at.checked_add(bytes).filter(|end| bytes > 0 && *end < END_OF_MEMORY).ok_or_else(damaged)?;
            if let Some(kind) = kind {
                each(HeapPiece::new(at, end, kind), budget)?;
            }
            at = end;
        }
        Ok(())
    }
}

/// An arena of a capture.
pub(super) struct RecordedArena {
    pub(super) system_bytes: u64,
    /// The number of the outcome of its walk, and a number that belongs to it.
    pub(super) ended: [u64; 2],
    pub(super) parts: Vec<AddressRange>,
}
