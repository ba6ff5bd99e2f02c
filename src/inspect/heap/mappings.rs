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
        let layouts = ChunkLayout::all(space);
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
            let mut at = region.range.start().get();
            while at < region.range.end().get() {
                words.budget().go_on()?;
                let Some(range) = chunk_at(&mut words, &layouts, at)? else {
                    break;
                };
                if range.end() > region.range.end() {
                    break;
                }
                words.budget().hold(size_of::<AddressRange>() as u64)?;
                chunks.sum.add(range.len());
                chunks.ranges.push(range);
                at = range.end().get();
            }
        }
        Ok(chunks)
    }
}

/// Returns the mapping that begins at `at` with a chunk. The head of the chunk contains its distance from `at`, and
/// distance and size together are whole pages.
fn chunk_at(words: &mut ProcessWords<'_>, layouts: &[ChunkLayout], at: u64) -> Result<Option<AddressRange>> {
    let w = words.pointer_bytes();
    let page = words.layout().page.bytes();
    for chunk in layouts.iter().filter_map(|layout| layout.first_chunk(at)) {
        let (Some(before), Some(head)) = (words.word(chunk)?, words.word(chunk + w)?) else {
            return Ok(None);
        };
        let size = (head & !FLAGS).checked_add(before).filter(|size| *size > 0 && size.is_multiple_of(page));
        let is_sound = head & FLAGS == IS_MAPPING && before == chunk - at;
        let end = size.filter(|_| is_sound).and_then(|size| at.checked_add(size));
        if let Some(end) = end {
            return Ok(AddressRange::new(VirtualAddress::new(at), VirtualAddress::new(end)));
        }
    }
    Ok(None)
}
