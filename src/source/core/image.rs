//! Mapped files in a core file.

use super::contents::Core;
use crate::access::ReadAt;
use crate::kernel::Region;
use crate::kernel::core_file::CoreMapping;
use crate::source::partial_image::hide_section_headers;
use std::sync::Arc;

/// A mapped file, as far as the core contains its mappings: its first page has the build-id, and its dynamic segment
/// the exported names.
pub(super) struct CoreImage {
    core: Arc<Core>,
    /// The parts in the core: offset in the file, length, and address.
    parts: Vec<(u64, u64, u64)>,
    length: u64,
    number: u64,
}

impl CoreImage {
    pub(super) fn of(core: &Arc<Core>, region: &Region) -> Option<Self> {
        let path = region.name.as_bytes();
        let of_file = core.notes.mappings.iter().filter(|mapping| mapping.path == path);
        let part = |mapping: &CoreMapping| (mapping.offset, mapping.range.len(), mapping.range.start().get());
        let parts: Vec<(u64, u64, u64)> = of_file.map(part).collect();
        let length = parts.iter().map(|(offset, length, _)| offset.saturating_add(*length)).max()?;
        Some(CoreImage { core: Arc::clone(core), parts, length, number: region.inode })
    }
}

impl ReadAt for CoreImage {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        if offset >= self.length || into.is_empty() {
            return Ok(0);
        }
        let missing = || std::io::Error::other("this part of the file is not in this core");
        let holds = |(start, length, _): &&(u64, u64, u64)| *start <= offset && offset - start < *length;
        let &(start, length, address) = self.parts.iter().find(holds).ok_or_else(missing)?;
        let room = usize::try_from(length - (offset - start)).unwrap_or(usize::MAX).min(into.len());
        let place = into.get_mut(..room).unwrap_or_default();
        let read = self.core.memory(address + (offset - start), place).map_err(std::io::Error::other)?;
        if read == 0 {
            return Err(missing());
        }
        hide_section_headers(self.core.notes.form.is_64, offset, place.get_mut(..read).unwrap_or_default());
        Ok(read)
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn has_sections(&self) -> bool {
        false
    }

    fn fingerprint(&self) -> [u64; 4] {
        [0, self.number, self.length, 0]
    }
}
