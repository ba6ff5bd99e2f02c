//! The code of modules that other memory has replaced, with the part of the file that belongs there.

use super::super::AddressSpace;
use crate::kernel::{AddressRange, Region};
use crate::symbol::CodeSegment;
use std::ops::Range;

/// The part of a file that belongs to a stretch of memory.
#[derive(Clone, Debug)]
pub(super) struct FilePart {
    pub(super) range: AddressRange,
    /// The offset of its first byte in the file.
    pub(super) offset: u64,
    /// A region of the file, by which it is opened.
    pub(super) of_file: Region,
}

impl FilePart {
    /// Returns the part of a region that maps its own file.
    pub(super) fn mapped(region: &Region) -> FilePart {
        FilePart { range: region.range, offset: region.offset, of_file: region.clone() }
    }

    /// Returns the offset of the page in the file, and the bytes of the page that this part has.
    pub(super) fn in_page(&self, page: AddressRange) -> Option<(u64, Range<usize>)> {
        let both = self.range.intersection(page)?;
        let into = both.start().get() - page.start().get();
        let offset = self.offset.checked_add(both.start().get() - self.range.start().get())?.checked_sub(into)?;
        let from = usize::try_from(into).ok()?;
        Some((offset, from..from + usize::try_from(both.len()).ok()?))
    }
}

/// The private executable mappings of files, the code of modules that is mapped but not executable now, and the code of
/// modules that is not mapped from its file.
#[derive(Default)]
pub(super) struct Code {
    pub(super) mapped: Vec<AddressRange>,
    pub(super) replaced: Vec<FilePart>,
}

impl Code {
    /// Returns the code of a process.
    pub(super) fn of(space: &AddressSpace, segments: &[CodeSegment]) -> Code {
        let mut code = Code::default();
        for region in space.regions() {
            let is_file = region.inode != 0 && !region.is_without_path();
            if region.permissions.execute && !region.permissions.shared && is_file {
                code.mapped.push(region.range);
            }
        }
        let regions: Vec<&Region> = space.regions().collect();
        for segment in segments {
            let first = regions.partition_point(|region| region.range.end() <= segment.range.start());
            let touched = regions.get(first..).unwrap_or_default().iter();
            for (region, range) in touched.map_while(|one| Some((one, one.range.intersection(segment.range)?))) {
                let offset = segment.offset.saturating_add(range.start().get() - segment.range.start().get());
                let mapped = region.offset.saturating_add(range.start().get() - region.range.start().get());
                let of_file = &segment.of_file;
                let is_same = (region.device, region.inode) == (of_file.device, of_file.inode) && offset == mapped;
                match (is_same, region.permissions.execute, region.permissions.shared) {
                    (true, true, _) | (true, _, true) => {}
                    (true, false, false) => code.mapped.push(region.range),
                    (false, ..) => code.replaced.push(FilePart { range, offset, of_file: of_file.clone() }),
                }
            }
        }
        code.mapped.sort_by_cached_key(|range| range.start());
        code.mapped.dedup();
        // Segments of a damaged file may overlap.
        code.replaced.sort_by_cached_key(|part| part.range.start());
        code.replaced.dedup_by(|next, one| next.range.start() < one.range.end());
        code
    }
}
