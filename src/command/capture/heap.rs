//! `capture FILE with heap`: the sizes of chunks, without any other word of memory.

use super::super::floor::Error;
use crate::budget::Budget;
use crate::inspect::AddressSpace;
use crate::inspect::heap::record;
use crate::process::Member;
use crate::render::text::lines::Lines;
use crate::render::units::{counted, size};

/// Heaps in a capture.
#[derive(Clone, Copy, Default)]
pub(super) struct HeapCounts {
    pub(super) bytes: u64,
    pub(super) chunks: u64,
    pub(super) arenas: u64,
    pub(super) incomplete: u64,
}

impl HeapCounts {
    /// Walks the heaps of a process, and writes the sizes of the chunks.
    pub(super) fn keep(&mut self, member: &Member, budget: &Budget) -> Result<(), Error> {
        let space = AddressSpace::of(&member.process)?;
        let mut counts = Default::default();
        self.bytes += member.keep_heap(|write| -> Result<(), Error> {
            counts = record(&space, budget, write)?;
            Ok(())
        })?;
        self.chunks += counts.chunks;
        self.arenas += counts.arenas;
        self.incomplete += counts.incomplete;
        Ok(())
    }

    pub(super) fn write(self, lines: &mut Lines) {
        let line = lines.line();
        if self.arenas == 0 {
            line.plain("no heap of glibc was found");
            return;
        }
        line.plain(format!("sizes of {} of the heap in {}", counted(self.chunks, "chunk"), size(self.bytes)));
        if self.incomplete > 0 {
            line.plain(format!(", {} left out: it could not be walked", counted(self.incomplete, "arena")));
        }
    }
}
