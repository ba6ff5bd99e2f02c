//! The kernel's record of a frame (`struct page`), for several records.

use super::Fact;
use super::record::record;
use crate::kernel::words::worded;
use crate::kernel::{Device, FrameNumber, Name, TableBits, TableEntry};

/// The references that a pin of a page adds, unless the page is of a large folio (GUP_PIN_COUNTING_BIAS in
/// include/linux/mm.h).
pub const REFERENCES_OF_A_PIN: u64 = 1024;

worded! {
    /// The owner of a frame, as the kernel records it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum RecordedOwner, word {
        /// Anonymous memory.
        Anonymous = "anonymous",
        /// Anonymous memory that was merged (KSM).
        Merged = "merged",
        /// A file in the page cache.
        File = "file",
        /// Nobody: the frame is free.
        Free = "free",
        /// A cache of the slab allocator.
        Slab = "slab",
        /// A page table.
        PageTable = "page_table",
        /// The hugetlb pool, in no file and no mapping.
        HugetlbPool = "hugetlb_pool",
        /// A page pool of the network stack: a buffer of a network driver.
        PagePool = "page_pool",
        /// No record: other memory of the kernel and of drivers.
        Unrecorded = "unrecorded",
    }
}

impl RecordedOwner {
    /// Returns whether the frame has memory of processes or of files.
    pub fn has_contents(self) -> bool {
        matches!(self, RecordedOwner::Anonymous | RecordedOwner::Merged | RecordedOwner::File)
    }
}

record! {
    /// `struct page` of a frame, read from `/proc/kcore`, with the counts of its folio.
    #[derive(Eq)]
    pub struct KernelRecord within "kernel_record" {
        /// Number of references. A pin of a page that is no large folio counts as 1024.
        references: Fact<u64>,
        /// The references by holder.
        holders: Fact<Holders>,
        /// Number of pins: exact for large folios, and for other pages if the references that are left fit.
        pins: Fact<u64>,
        /// For a page that is no large folio: the most pins that its references allow, if the number is not known.
        [optional] pins_at_most: Option<u64>,
        /// Owner of the frame.
        owner: Fact<RecordedOwner>,
        /// The page of a file, for the owner `file`.
        [optional] file_page: Option<FilePage>,
        /// The free block that it is in, for the owner `free`.
        [optional] free_block: Option<FreeBlock>,
        /// The cache that it belongs to, for the owner `slab`.
        [optional] slab: Option<SlabPage>,
    }

    /// The entry of the page table that maps a page, read from `/proc/kcore`.
    #[derive(Copy, Eq)]
    pub struct TableEntryReport within "table_entry" {
        /// Level of its table: 1 (PTE) maps one page, 2 (PMD) and 3 (PUD) map larger blocks.
        level: u8,
        /// Whether the processor uses it. If not, an access is a fault though the page is there.
        present: bool,
        /// Whether the page is writable.
        write: bool,
        /// Whether programs may access it, and not only the kernel.
        user: bool,
        /// Whether it was accessed since the kernel last cleared the bit.
        accessed: bool,
        /// Whether it was written to through this mapping.
        dirty: bool,
        /// Whether programs cannot execute it.
        no_execute: bool,
        /// Its protection key (x86-64).
        [optional] protection_key: Option<u8>,
    }

    /// The references of a folio by holder.
    #[derive(Copy, Eq)]
    pub struct Holders {
        /// Mappings: one for each entry of a page table.
        mappings: u64,
        /// The page cache: one for each page.
        page_cache: u64,
        /// The swap cache: one for each page.
        swap_cache: u64,
        /// Data of the filesystem: one.
        filesystem: u64,
        /// Pins: 1024 for each, or one for each of a large folio. Those that are not known are among the others.
        pins: u64,
        /// The rest: work that is under way, and holders that the kernel does not list.
        others: u64,
    }

    /// A page of a file.
    #[derive(Eq)]
    pub struct FilePage within "kernel_record.file_page" {
        /// Device of the filesystem of the file.
        device: Device,
        /// Inode of the file.
        inode: u64,
        /// Index of the page in the file.
        index: u64,
        /// Path of the file below the root of its filesystem, wherever that is mounted. It begins with `/`, or with
        /// `…/` if its upper directories are not known. A file in no directory, such as a memfd, has only a name.
        path: Fact<Name>,
        /// Name of the filesystem in the kernel: mostly its device, or its type.
        filesystem: Fact<Name>,
        /// Whether the file was removed from its directory, or never was in one.
        [optional] deleted: bool,
    }

    /// A free block of memory.
    #[derive(Eq)]
    pub struct FreeBlock within "kernel_record.free_block" {
        /// Logarithm of its number of frames.
        order: Fact<u8>,
        /// Its first frame.
        head: Fact<FrameNumber>,
    }

    /// A page of the slab allocator.
    #[derive(Eq)]
    pub struct SlabPage within "kernel_record.slab" {
        /// Name of its cache, as in /proc/slabinfo.
        cache: Fact<Name>,
        /// Size of an object of the cache.
        object_bytes: Fact<u64>,
    }
}

impl From<TableEntry> for TableEntryReport {
    fn from(entry: TableEntry) -> Self {
        let has = |bit| entry.bits.contains(bit);
        TableEntryReport {
            level: entry.level,
            present: has(TableBits::PRESENT),
            write: has(TableBits::WRITE),
            user: has(TableBits::USER),
            accessed: has(TableBits::ACCESSED),
            dirty: has(TableBits::DIRTY),
            no_execute: has(TableBits::NO_EXECUTE),
            protection_key: entry.protection_key,
        }
    }
}
