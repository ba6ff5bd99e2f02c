//! What the kernel's own records lead to, of a source that can read them.

use super::class::questions_of;
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, TableEntry};
use crate::records::{FrameRecord, Meanwhile, OwnerDetail, RecordParts, RecordedMapper, SwappedRange};

/// Why no capture has them.
const IN_NO_CAPTURE: &str = "no capture has the kernel's own records";

questions_of! {
    /// Records of the kernel that have to be proved before they are believed. Of those of frames a capture has why they
    /// could not be read.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum RecordsOf {
        /// These parts of the records of frames.
        Frames(parts: RecordParts) = "frames" => machine(Once, Nothing),
        /// The page tables of the process.
        PageTables = "page-tables" => process(Never(IN_NO_CAPTURE), Nothing),
        /// The slots of shared memory in swap.
        Slots = "slots" => process(Never(IN_NO_CAPTURE), Nothing),
    }
}

impl RecordsOf {
    /// What a source that lacks them lacks.
    pub(super) fn what(self) -> &'static str {
        match self {
            RecordsOf::Frames(_) => "the kernel's own records of frames",
            RecordsOf::PageTables => "the page tables of a process",
            RecordsOf::Slots => "the slots of shared memory in swap",
        }
    }
}

/// Reads the kernel's own records. Nothing is locked meanwhile: what they lead to may have changed.
pub trait KernelRecords {
    /// The records of the frames from `first` on, with those of `parts` that are proved. Records of frames that are no
    /// memory are empty.
    fn frames(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()>;

    /// The processes that may map a frame: they are no proof. Each mapping looked at is a step.
    fn mappers(&self, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>>;

    /// What they lead to from a frame: the file, the free block, the slab cache, or a page pool; `None` if they lead to
    /// none of these.
    fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>>;

    /// The entries of page tables that map the pages of the process from page index `first` on; `None` where nothing is
    /// mapped. An entry counts only if the page map has the same frame.
    fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()>;

    /// The pages of `range`, a part of `region`, that the shared memory of the region has in swap, in address order.
    /// The page map has nothing for them, so they are only those among the pages that it shows as empty. Each part of
    /// the page cache is a step.
    fn slots(&self, region: &Region, range: AddressRange, budget: &mut Budget) -> Result<Vec<SwappedRange>>;
}
