//! Chunks for large requests (`mmap_threshold`), each of which has its own mapping.

use super::recorded::RecordedHeaps;
use super::resident::is_of_file;
use super::walk::{ChunkLayout, ChunkSum, FLAGS, IS_MAPPING};
use super::words::{ProcessWords, Words};
use crate::budget::Budget;
use crate::inspect::{AddressSpace, Result};
use crate::kernel::{AddressRange, VirtualAddress};

/// Chunks at the starts of anonymous regions whose heads mark them as separate mappings (IS_MMAPPED).
///
/// The allocator keeps no list of them, and the kernel joins neighbouring mappings to one region: chunks after memory
/// of another kind are not found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MappedChunks {
    /// The number of chunks, and their bytes.
    pub sum: ChunkSum,
    /// The mappings, in address order.
    pub ranges: Vec<AddressRange>,
}

impl MappedChunks {
    /// Finds the chunks that are separate mappings.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn of(space: &AddressSpace, mut budget: Budget) -> Result<MappedChunks> {
        if let Some(heaps) = RecordedHeaps::of(space, &mut budget)? {
            let mut chunks = MappedChunks { ranges: heaps.mapped, ..MappedChunks::default() };
            chunks.ranges.iter().for_each(|range| chunks.sum.add(range.len()));
            return Ok(chunks);
        }
        let layouts = ChunkLayout::of(space.target());
        let mut words = ProcessWords::new(space.target(), &mut budget);
        let mut chunks = MappedChunks::default();
        for region in space.regions() {
            let name = region.name.as_bytes();
            let is_candidate = !is_of_file(region)
                && (name.is_empty() || name.starts_with(b"[anon:"))
                && region.permissions.write
                && !region.permissions.shared;
            if !is_candidate {
                continue;
            }
            for range in chunks_from(&mut words, &layouts, region.range)? {
                words.budget().hold(size_of::<AddressRange>() as u64)?;
                chunks.sum.add(range.len());
                chunks.ranges.push(range);
            }
        }
        Ok(chunks)
    }
}

/// Returns the mapping that begins at `at` with a chunk.
fn chunk_at(words: &mut ProcessWords<'_>, layouts: &[ChunkLayout], at: u64) -> Result<Option<AddressRange>> {
    for chunk in layouts.iter().filter_map(|layout| layout.first_chunk(at)) {
        let found = mapping_of(words, chunk)?.filter(|mapping| mapping.start().get() == at);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the mapping of the chunk with this head, if it has its own. The head contains the distance from the start of
/// the mapping, and distance and size together are whole pages.
pub(super) fn mapping_of(words: &mut ProcessWords<'_>, chunk: u64) -> Result<Option<AddressRange>> {
    let w = words.pointer_bytes();
    let page = words.layout().page.bytes();
    let (Some(before), Some(head)) = (words.word(chunk)?, words.word(chunk + w)?) else {
        return Ok(None);
    };
    let Some(start) = chunk.checked_sub(before).filter(|start| head & FLAGS == IS_MAPPING && start % page == 0) else {
        return Ok(None);
    };
    let size = (head & !FLAGS).checked_add(before).filter(|size| size.is_multiple_of(page));
    Ok(size.and_then(|size| AddressRange::of_length(VirtualAddress::new(start), size)))
}

/// Returns the chunks that are separate mappings and follow one another from the start of `range` on.
pub(super) fn chunks_from(
    words: &mut ProcessWords<'_>,
    layouts: &[ChunkLayout],
    range: AddressRange,
) -> Result<Vec<AddressRange>> {
    let mut chunks = Vec::new();
    let mut at = range.start();
    while at < range.end() {
        words.budget().go_on()?;
        let Some(chunk) = chunk_at(words, layouts, at.get())?.filter(|chunk| chunk.end() <= range.end()) else {
            break;
        };
        at = chunk.end();
        chunks.push(chunk);
    }
    Ok(chunks)
}
