//! Queries of the kernel's records (`struct page` and others), for a source that can read them.

use super::class::questions_of;
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, TableEntry};
use crate::records::{FrameRecord, Meanwhile, OwnerDetail, RecordParts, RecordedMapper, SwappedRange};

/// Why no capture has the records.
const IN_NO_CAPTURE: &str = "no capture has the kernel's own records";

questions_of! {
    /// Records of the kernel that must be proved before they are used. A capture has the reason why records of frames
    /// could not be read.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum RecordsOf {
        /// These parts of the records of frames (`struct page`).
        Frames(parts: RecordParts) = "frames" => machine(Once, Nothing),
        /// The page tables of the process.
        PageTables = "page-tables" => process(Never(IN_NO_CAPTURE), Nothing),
        /// The slots of shared memory in swap.
        Slots = "slots" => process(Never(IN_NO_CAPTURE), Nothing),
    }
}

impl RecordsOf {
    /// Returns the name of the records, for the error of a source that lacks them.
    pub(super) fn what(self) -> &'static str {
        match self {
            RecordsOf::Frames(_) => "the kernel's own records of frames",
            RecordsOf::PageTables => "the page tables of a process",
            RecordsOf::Slots => "the slots of shared memory in swap",
        }
    }
}

/// Reads the kernel's records. Nothing is locked during the reading, so the objects to which they lead may have
/// changed.
pub trait KernelRecords {
    /// Reads the records of the frames from `first` on, with the proved ones of `parts`. Records of frames that are not
    /// memory are empty.
    fn frames(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()>;

    /// Returns the processes that may map a frame, which is no proof that they do. Each mapping costs one step.
    fn mappers(&self, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>>;

    /// Returns the object that a frame belongs to: a file, a free block, a slab cache, or a page pool; `None` if the
    /// records lead to none of these.
    fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>>;

    /// Reads the page-table entries that map the pages of the process from index `first` on; `None` for a page that is
    /// not mapped. An entry counts only if the page map has the same frame.
    fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()>;

    /// Returns the pages of `range`, a part of `region`, that the region's shared memory has in swap, in address order.
    /// The page map has no entries for them, so callers must use only those whose entries are empty. Each part of the
    /// page cache costs one step.
    fn slots(&self, region: &Region, range: AddressRange, budget: &mut Budget) -> Result<Vec<SwappedRange>>;
}
