//! What the kernel's own records lead to: from a frame to its mappings, and from a region to its pages in swap.

use super::machine::Machine;
use super::target_process::Process;
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::{AddressRange, FrameNumber, Region};
use crate::records::{OwnerDetail, RecordParts, RecordedMapper, SwappedRange};
use crate::source::RecordsOf;

impl Machine {
    /// The processes that may map a frame, each address space once, by the kernel's own records. They are no proof: a
    /// page counts if the page map of the process has the frame there, or if all entries that the records show are as
    /// many as the kernel counts. Each mapping looked at is a step. Calls `meanwhile` with them; if that returns true,
    /// the result is those that are still there then.
    ///
    /// # Errors
    /// As [`require_records`](Self::require_records); the kernel keeps no such record of the frame; the budget is over.
    pub fn mappers(
        &self,
        frame: FrameNumber,
        meanwhile: &mut dyn FnMut(&[RecordedMapper]) -> bool,
        budget: &mut Budget,
    ) -> Result<Vec<RecordedMapper>> {
        self.require_records(RecordParts::OWNER)?;
        self.source().kernel_records()?.mappers(frame.get(), meanwhile, budget)
    }

    /// What the kernel's own records lead to from a frame: the file that it is a page of, the free block that it is in,
    /// the slab cache or the page pool that it belongs to. `None` if they lead to none of these.
    ///
    /// # Errors
    /// As [`require_records`](Self::require_records); what they lead to was not proved, or changed during the read.
    pub fn owner_detail(&self, frame: FrameNumber) -> Result<Option<OwnerDetail>> {
        self.require_records(RecordParts::FOLIO)?;
        self.source().kernel_records()?.owner_detail(frame.get())
    }
}

impl Process {
    /// Whether the slots of shared memory in swap can be read here.
    ///
    /// # Errors
    /// They cannot, or the way to them was not proved.
    #[doc(hidden)]
    pub fn require_slots(&self) -> Result<()> {
        self.source().fetch(RecordsOf::Slots)
    }

    /// The pages of `range`, a part of `region`, that the shared memory of the region has in swap, in address order.
    /// Only pages whose page-map entries are empty can be.
    ///
    /// # Errors
    /// As [`require_slots`](Self::require_slots); the region has changed; the budget is over.
    #[doc(hidden)]
    pub fn slots(&self, region: &Region, range: AddressRange) -> Result<Vec<SwappedRange>> {
        self.source().kernel_records()?.slots(region, range, &mut self.budget())
    }
}
