//! The chunks with separate mappings that pointers lead to.

use super::mappings::{chunks_from, mapping_of};
use super::walk::ChunkLayout;
use super::words::ProcessWords;
use crate::budget::Budget;
use crate::inspect::Result;
use crate::kernel::AddressRange;
use crate::process::Target;
use std::collections::BTreeMap;

/// A chunk that is a separate mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::inspect) struct MappedChunk {
    pub(in crate::inspect) range: AddressRange,
    /// The address of its user data, if that is one of the pointers.
    pub(in crate::inspect) pointer: Option<u64>,
}

/// Finds the chunks that are separate mappings in `regions`: those whose user data begins at one of `pointers`, and in
/// the regions with such pointers also those that follow one of them or begin with the region. Returns them by their
/// starts. Regions and pointers are in address order.
pub(in crate::inspect) fn mapped_chunks(
    target: &Target,
    regions: &[AddressRange],
    pointers: &[u64],
    budget: &mut Budget,
) -> Result<BTreeMap<u64, MappedChunk>> {
    let layouts = ChunkLayout::of(target);
    let mut words = ProcessWords::new(target, budget);
    let mut found = BTreeMap::new();
    for &pointer in pointers {
        let mut heads = layouts.iter().filter(|layout| pointer.is_multiple_of(layout.alignment));
        let Some(chunk) = heads.find_map(|layout| pointer.checked_sub(layout.head())) else {
            continue;
        };
        let mapping = mapping_of(&mut words, chunk)?.filter(|mapping| mapping.outside(regions).next().is_none());
        found.extend(mapping.map(|range| (range.start().get(), MappedChunk { range, pointer: Some(pointer) })));
    }
    for region in regions {
        let next = pointers.get(pointers.partition_point(|pointer| *pointer < region.start().get()));
        if next.is_none_or(|next| *next >= region.end().get()) {
            continue;
        }
        // What is between those that were found, and after them.
        let inside = found.range(region.start().get()..region.end().get());
        let known: Vec<AddressRange> = inside.map(|(_, chunk)| chunk.range).collect();
        for rest in region.outside(&known) {
            for range in chunks_from(&mut words, &layouts, rest)? {
                found.entry(range.start().get()).or_insert(MappedChunk { range, pointer: None });
            }
        }
    }
    Ok(found)
}
