//! What the kernel's own records say of frames, beyond one record a frame.

use super::machine::Machine;
use crate::budget::Budget;
use crate::kernel::FrameNumber;
use crate::source::{RecordParts, RecordedMapper, Result};

impl Machine {
    /// The processes that may map a frame, each address space once, by the kernel's own records. They are no proof: a
    /// page counts only if the page map of the process has the frame there. Each mapping looked at is a step.
    ///
    /// # Errors
    /// As [`require_records`](Self::require_records); the kernel keeps no such record of the frame; the budget is over.
    pub fn mappers(&self, frame: FrameNumber, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
        self.require_records(RecordParts::OWNER)?;
        self.source().mappers(frame.get(), budget)
    }
}
