//! What is recorded of a frame.

use crate::access::Identity;
#[cfg(test)]
use crate::kernel::Region;
use crate::kernel::{AddressRange, Device, FrameNumber, PageFlags, Permissions, VirtualAddress};
use bitflags::bitflags;
use std::fmt;

bitflags! {
    /// Parts of a frame's record. Each is proved by itself.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct RecordParts: u32 {
        /// Flags, and which folio the frame is of.
        const FOLIO = 1 << 0;
        /// How many references the folio has.
        const REFERENCES = 1 << 1;
        /// How many mappings a page that is no large folio has.
        const MAPPINGS = 1 << 2;
        /// How many mappings a large folio has, those of all its pages together.
        const LARGE_MAPPINGS = 1 << 5;
        /// The count of pins that a large folio keeps.
        const PINS = 1 << 3;
        /// Whether the frame is anonymous memory, or of which file.
        const OWNER = 1 << 4;
    }
}

/// What the kernel records of a frame. What was not asked for, and what was not proved, is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FrameRecord {
    /// The first frame of its folio.
    pub head: Option<FrameNumber>,
    /// The logarithm of how many frames the folio has.
    pub order: Option<u8>,
    /// The flags of the folio, as far as `/proc/kpageflags` has them too.
    pub flags: Option<PageFlags>,
    /// References to the folio. A pin of a page that is no large folio counts as 1024 of them.
    pub references: Option<u32>,
    /// Mappings of the folio: a huge mapping is one.
    pub mappings: Option<u64>,
    /// Pins of the folio, where the kernel counts them apart from references: in large folios.
    pub pins: Option<u32>,
    /// What it is used for.
    pub owner: Option<FrameOwner>,
}

/// What a frame is used for, as its record says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FrameOwner {
    /// Memory without a file.
    Anonymous,
    /// Anonymous memory that was merged with equal pages.
    Merged,
    /// The page cache of a file, or shared memory.
    File(PageOfFile),
    /// The record names neither. Pages of the kernel, of drivers and free ones are like that.
    Unrecorded,
}

/// A process that may map a frame, and the pages at which it may.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordedMapper {
    /// The process.
    pub process: Identity,
    /// The pages, in address order.
    pub pages: Vec<RecordedPage>,
}

impl RecordedMapper {
    /// A process that may map a frame at these pages.
    #[cfg(test)]
    pub(crate) fn new(process: Identity, pages: Vec<RecordedPage>) -> Self {
        RecordedMapper { process, pages }
    }
}

/// Is called with the mappers that were found. If it returns true, the answer is those that are still there then.
pub type Meanwhile<'a> = &'a mut dyn FnMut(&[RecordedMapper]) -> bool;

/// A page that may map a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordedPage {
    /// Its first byte.
    pub address: VirtualAddress,
    /// Whether its entry in the page tables leads to the frame.
    pub is_mapped: bool,
    /// The range of the region that holds it.
    pub range: AddressRange,
    /// The permissions of that region.
    pub permissions: Permissions,
    /// Regions with the same number differ only in their ranges; `None` if that is not known.
    pub kind: Option<u64>,
}

impl RecordedPage {
    /// A page of a region.
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
    /// Which of its pages it is.
    pub index: u64,
}

/// What the kernel's records lead to from a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OwnerDetail {
    /// The file that it is a page of.
    File(NamedFile),
    /// The free block that it is in.
    Free(FreeBlock),
    /// The cache of the slab allocator that it belongs to.
    Slab(SlabCache),
    /// A page pool of the network stack.
    PagePool,
}

/// A file with its name. Somebody else chose its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFile {
    /// The file. The index is 0.
    pub file: PageOfFile,
    /// Its path below the root of its filesystem, which begins with `/`. It begins with `…/` if the upper directories
    /// are not known. What is in no directory, such as a memfd, has only a name. `None` if it has no name in memory.
    pub path: Option<Vec<u8>>,
    /// What the kernel calls its filesystem: mostly its device, or its type.
    pub filesystem: Vec<u8>,
    /// Whether that name is in no directory: the file was removed, or never was in one.
    pub is_deleted: bool,
}

/// A free block of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeBlock {
    /// Its first frame.
    pub first: FrameNumber,
    /// The logarithm of how many frames it has.
    pub order: u8,
}

/// A cache of the slab allocator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlabCache {
    /// Its name, as in `/proc/slabinfo`.
    pub name: Vec<u8>,
    /// The size of its objects.
    pub object_bytes: u32,
}

impl FrameRecord {
    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        *self != FrameRecord::default()
    }
}

/// What is known, in a few words.
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

/// Each part: what it is called, and the members of the kernel's structures that it is read from.
const PARTS: [(RecordParts, &str, &str); 6] = [
    (RecordParts::FOLIO, "flags and folios", "page.flags, page.compound_head"),
    (RecordParts::REFERENCES, "references", "page._refcount"),
    (RecordParts::MAPPINGS, "mappings", "page._mapcount"),
    (RecordParts::LARGE_MAPPINGS, "mappings of large folios", "folio._large_mapcount"),
    (RecordParts::PINS, "pins", "folio._pincount"),
    (RecordParts::OWNER, "owners", "page.mapping, inode.i_ino"),
];

impl RecordParts {
    /// What they are called.
    pub(super) fn names(self) -> String {
        self.joined(|row| row.1)
    }

    /// The members of structures that they are read from.
    pub(crate) fn members(self) -> String {
        self.joined(|row| row.2)
    }

    fn joined(self, column: fn(&(RecordParts, &'static str, &'static str)) -> &'static str) -> String {
        let words = PARTS.iter().filter(|(part, ..)| self.contains(*part)).map(column);
        words.collect::<Vec<_>>().join(", ")
    }
}
