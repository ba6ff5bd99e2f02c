//! Queries of the kernel's records: the mappings of a frame, its owner, and the pages of a region in swap.

use super::machine::Machine;
use super::target_process::Process;
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::{AddressRange, FrameNumber, Region};
use crate::records::{OwnerDetail, RecordParts, RecordedMapper, SwappedRange};
use crate::source::RecordsOf;

impl Machine {
    /// Returns the processes that may map a frame, each address space once, by the kernel's records. They are no proof.
    /// A page counts if the page map of the process has the frame there, or if the records show as many entries as the
    /// kernel counts. Each mapping costs one step. Calls `meanwhile` with the mappings; if that returns true, the
    /// result has only those that still exist after it.
    ///
    /// # Errors
    /// Fails as [`require_records`](Self::require_records), if the kernel keeps no such record of the frame, or if the
    /// budget is over.
    pub fn mappers(
        &self,
        frame: FrameNumber,
        meanwhile: &mut dyn FnMut(&[RecordedMapper]) -> bool,
        budget: &mut Budget,
    ) -> Result<Vec<RecordedMapper>> {
        self.require_records(RecordParts::OWNER)?;
        self.source().kernel_records()?.mappers(frame.get(), meanwhile, budget)
    }

    /// Returns the object that a frame belongs to by the kernel's records: a file, a free block, a slab cache or a page
    /// pool. `None` if they lead to none of these.
    ///
    /// # Errors
    /// Fails as [`require_records`](Self::require_records), or if the record of the object was not proved, or changed
    /// during the read.
    pub fn owner_detail(&self, frame: FrameNumber) -> Result<Option<OwnerDetail>> {
        self.require_records(RecordParts::FOLIO)?;
        self.source().kernel_records()?.owner_detail(frame.get())
    }
}

impl Process {
    /// Checks that the swap slots of shared memory can be read here.
    ///
    /// # Errors
    /// Fails if they cannot be read, or the way to them was not proved.
    #[doc(hidden)]
    pub fn require_slots(&self) -> Result<()> {
        self.source().fetch(RecordsOf::Slots)
    }

    /// Returns the pages of `range`, a part of `region`, that the region's shared memory has in swap, in address order.
    /// Only pages with empty page-map entries can be among them.
    ///
    /// # Errors
    /// Fails as [`require_slots`](Self::require_slots), if the region has changed, or if the budget is over.
    #[doc(hidden)]
    pub fn slots(&self, region: &Region, range: AddressRange) -> Result<Vec<SwappedRange>> {
        self.source().kernel_records()?.slots(region, range, &mut self.budget())
    }
}
