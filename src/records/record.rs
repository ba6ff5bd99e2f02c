//! The record of a frame.

use crate::access::Identity;
#[cfg(test)]
use crate::kernel::Region;
use crate::kernel::{AddressRange, Device, FrameNumber, PageFlags, Permissions, VirtualAddress};
use bitflags::bitflags;
use std::fmt;

bitflags! {
    /// Parts of a frame's record. Each is proved separately.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct RecordParts: u32 {
        /// The flags, and the folio of the frame.
        const FOLIO = 1 << 0;
        /// The number of references to the folio.
        const REFERENCES = 1 << 1;
        /// The number of mappings of a page that is no large folio.
        const MAPPINGS = 1 << 2;
        /// The number of mappings of a large folio, including those of all its pages.
        const LARGE_MAPPINGS = 1 << 5;
        /// The count of pins of a large folio.
        const PINS = 1 << 3;
        /// The owner: anonymous memory, or a file.
        const OWNER = 1 << 4;
    }
}

/// The kernel's record of a frame. Parts that were not requested or not proved are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FrameRecord {
    /// The first frame of its folio.
    pub head: Option<FrameNumber>,
    /// log2 of the number of frames in the folio.
    pub order: Option<u8>,
    /// The flags of the folio that `/proc/kpageflags` has too.
    pub flags: Option<PageFlags>,
    /// References to the folio. A pin of a page that is no large folio counts as 1024 references.
    pub references: Option<u32>,
    /// Mappings of the folio: a huge mapping is one.
    pub mappings: Option<u64>,
    /// Pins of the folio, if the kernel counts them separately from references, as in large folios.
    pub pins: Option<u32>,
    /// The use of the frame.
    pub owner: Option<FrameOwner>,
}

/// The use of a frame, by its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FrameOwner {
    /// Memory without a file.
    Anonymous,
    /// Anonymous memory that was merged with equal pages.
    Merged,
    /// The page cache of a file, or shared memory.
    File(PageOfFile),
    /// The record has neither. Pages of the kernel and of drivers, and free pages, are such.
    Unrecorded,
}

/// A process that may map a frame, and the pages at which it may.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordedMapper {
    /// The process that may map the frame.
    pub process: Identity,
    /// The pages, in address order.
    pub pages: Vec<RecordedPage>,
}

impl RecordedMapper {
    /// Makes the record of a process that may map a frame at these pages.
    #[cfg(test)]
    pub(crate) fn new(process: Identity, pages: Vec<RecordedPage>) -> Self {
        RecordedMapper { process, pages }
    }
}

/// A function that is called with the mappers found. If it returns true, the result has only those that still exist
/// after the call.
pub type Meanwhile<'a> = &'a mut dyn FnMut(&[RecordedMapper]) -> bool;

/// A page that may map a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordedPage {
    /// The address of the first byte.
    pub address: VirtualAddress,
    /// Whether the page-table entry leads to the frame.
    pub is_mapped: bool,
    /// The range of the region.
    pub range: AddressRange,
    /// The permissions of the region.
    pub permissions: Permissions,
    /// A number that is equal for regions that differ only in their ranges; `None` if unknown.
    pub kind: Option<u64>,
}

impl RecordedPage {
    /// Makes the record of a page in a region.
    #[cfg(test)]
    pub(crate) fn new(address: VirtualAddress, is_mapped: bool, region: &Region, kind: Option<u64>) -> Self {
        RecordedPage { address, is_mapped, range: region.range, permissions: region.permissions, kind }
    }
}

/// A page of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageOfFile {
    /// The device of the file's filesystem.
    pub device: Device,
    /// The inode number of the file.
    pub inode: u64,
    /// The index of the page in the file.
    pub index: u64,
}

/// The object that a frame belongs to, by the kernel's records.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OwnerDetail {
    /// The file of the page.
    File(NamedFile),
    /// The free block of the frame.
    Free(FreeBlock),
    /// The slab cache of the frame.
    Slab(SlabCache),
    /// A page pool of the network stack.
    PagePool,
}

/// A file with its name, whose bytes are hostile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFile {
    /// The file, with index 0.
    pub file: PageOfFile,
    /// The path below the root of its filesystem, which begins with `/`, or with `…/` if the upper directories are
    /// unknown. A file in no directory, such as a memfd, has only a name. `None` if it has no name in memory.
    pub path: Option<Vec<u8>>,
    /// The kernel's name of the filesystem: mostly its device, or its type.
    pub filesystem: Vec<u8>,
    /// Whether the name is in no directory: the file was removed, or never was in one.
    pub is_deleted: bool,
}

/// A free block of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeBlock {
    /// The first frame of the block.
    pub first: FrameNumber,
    /// log2 of the number of frames in the block.
    pub order: u8,
}

/// A cache of the slab allocator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlabCache {
    /// The name of the cache, as in `/proc/slabinfo`.
    pub name: Vec<u8>,
    /// The size of an object in bytes.
    pub object_bytes: u32,
}

impl FrameRecord {
    /// Returns whether any part is known.
    pub fn is_known(&self) -> bool {
        *self != FrameRecord::default()
    }
}

/// Formats the known parts in a few words.
impl fmt::Display for FrameRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.references.map(|number| format!("{number} references")));
        parts.extend(self.mappings.map(|number| format!("{number} mappings")));
        parts.extend(self.pins.map(|number| format!("{number} pins")));
        parts.extend(self.order.map(|order| format!("order {order}")));
        parts.extend(self.owner.map(|owner| match owner {
            FrameOwner::Anonymous => "anonymous".to_owned(),
            FrameOwner::Merged => "merged".to_owned(),
            FrameOwner::File(page) => format!("page {} of inode {} on {}", page.index, page.inode, page.device),
            FrameOwner::Unrecorded => "no owner recorded".to_owned(),
        }));
        if parts.is_empty() { f.write_str("nothing") } else { f.write_str(&parts.join(", ")) }
    }
}

/// The parts, each with its name, and the members of kernel structures from which it is read.
const PARTS: [(RecordParts, &str, &str); 6] = [
    (RecordParts::FOLIO, "flags and folios", "page.flags, page.compound_head"),
    (RecordParts::REFERENCES, "references", "page._refcount"),
    (RecordParts::MAPPINGS, "mappings", "page._mapcount"),
    (RecordParts::LARGE_MAPPINGS, "mappings of large folios", "folio._large_mapcount"),
    (RecordParts::PINS, "pins", "folio._pincount"),
    (RecordParts::OWNER, "owners", "page.mapping, inode.i_ino"),
];

impl RecordParts {
    /// Returns the names of the parts.
    pub(super) fn names(self) -> String {
        self.joined(|row| row.1)
    }

    /// Returns the members of kernel structures from which the parts are read.
    pub(crate) fn members(self) -> String {
        self.joined(|row| row.2)
    }

    fn joined(self, column: fn(&(RecordParts, &'static str, &'static str)) -> &'static str) -> String {
        let words = PARTS.iter().filter(|(part, ..)| self.contains(*part)).map(column);
        words.collect::<Vec<_>>().join(", ")
    }
}
