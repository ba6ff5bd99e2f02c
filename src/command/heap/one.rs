//! The heaps of one process.

use super::super::floor::{Context, Error};
use super::others::{self, OtherAllocator};
use super::records::HeapSummary;
use crate::command::heap_sentence;
use crate::inspect::AddressSpace;
use crate::inspect::heap::{HeapArena, HeapSearch, MappedChunks, has_heaps, resident_outside};
use crate::kernel::AddressRange;
use crate::process::Target;

/// The sums of a process, and its arenas.
pub(super) fn heaps(target: &Target, context: &mut Context) -> Result<(HeapSummary, Vec<HeapArena>), Error> {
    let space = AddressSpace::of(target)?;
    if !has_heaps(&space)? {
        return Err(Error::refused(
            "this file has no memory, and heaps are found by their contents",
            "capture the process `with heap` or `with memory`",
        ));
    }
    let budget = heap_sentence::steps(context.sink);
    let search = HeapSearch::new(&space, budget.clone())?;
    let unsearched = search.unsearched();
    let arenas = heap_sentence::arenas(search, context.sink)?;
    let mapped = MappedChunks::of(&space, budget.clone())?;
    let allocators = others::found(context, target, &space)?;
    let mut summary = HeapSummary {
        pid: target.process.identity().pid,
        process: target.process.identity().name,
        unsearched: Some(unsearched),
        allocators: Some(allocators.into_iter().map(OtherAllocator::word).collect()),
        ..HeapSummary::of(&arenas, &mapped)
    };
    if summary.resident.is_ok() {
        let known: Vec<AddressRange> =
            arenas.iter().flat_map(|arena| &arena.parts).chain(&mapped.ranges).copied().collect();
        let outside = resident_outside(&space, &known, &budget)?;
        summary.other = Ok(outside.bytes);
        summary.other_region = outside.largest.map(|(region, _)| region);
        summary.of_region = outside.largest.map(|(_, bytes)| bytes);
    }
    Ok((summary, arenas))
}
