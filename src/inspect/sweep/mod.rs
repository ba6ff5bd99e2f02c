//! Sweeps: every command on pages gets them from [`AddressSpace::pages`].
//!
//! A [`plan`](plan::Plan) says which stretches to read and how. A [`batch`](batch::Batch) reads some of them into
//! [`stretches`](chunk::PageStretches), and adds the words of their frames. Long sweeps read batches on several
//! [`threads`](super::ordered_pool::Pool). Whoever pulls gets [`Chunk`]s in order. A chunk has the raw words of one
//! stretch, and makes pages from them on the fly. At no time are more than a few batches in memory.

mod batch;
mod changes;
mod chunk;
mod frames;
mod huge;
mod lookup;
mod pages;
mod plan;
#[cfg(test)]
mod tests;

pub use chunk::Chunk;
pub use pages::Pages;

/// The raw words, for callers that compare without decoding.
pub(super) mod raw {
    pub(in crate::inspect) use super::chunk::{ChunkContent, EntryWords, UNREAD};
}

use super::Result;
use super::address_space::AddressSpace;
use super::filter::Question;
use super::ordered_pool::{Pool, Work};
use crate::budget::Budget;
use crate::kernel::AddressRange;
use batch::Batch;
use changes::RegionChanges;
use frames::WantedFrames;
use plan::Plan;
use std::sync::Arc;

/// The pages of some ranges, chunk by chunk. Dropping it ends what is under way.
#[must_use]
pub struct Sweep {
    plan: Plan,
    pool: Pool<BatchReader>,
    reader: Arc<BatchReader>,
    /// The index of the next stretch of the batch that was pulled last.
    next: usize,
    changed: Vec<AddressRange>,
}

impl AddressSpace {
    /// The pages of `ranges` (in order, disjoint), in address order. Addresses in no region are left out, unless
    /// [`Facts::HOLES`](super::Facts::HOLES) asks for them.
    pub fn pages(&self, ranges: &[AddressRange], question: impl Into<Question>) -> Sweep {
        let question = question.into().with_implied(self);
        let plan = Plan::new(self, ranges, question.need);
        let reader =
            Arc::new(BatchReader { space: self.clone(), question, changes: RegionChanges::among(self, ranges) });
        let pool = Pool::new(Arc::clone(&reader), Budget::unlimited());
        Sweep { plan, pool, reader, next: 0, changed: Vec::new() }
    }
}

impl Sweep {
    /// The same, with what it may take.
    pub fn within(mut self, budget: Budget) -> Self {
        self.pool.set_budget(budget);
        self
    }

    /// The next pages; `None` after the last ones.
    ///
    /// # Errors
    /// The target is gone or runs another program, the kernel refuses a read (see [`AddressSpace::require`] and
    /// [`AddressSpace::obtainable`]), or the [budget](Self::within) is over.
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>> {
        Ok(if self.advance()? { self.chunk() } else { None })
    }

    /// Goes on to the next pages. False after the last ones.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.pool.is_closed() {
            return Ok(false);
        }
        while self.next == self.pool.task().len() {
            self.reader.changes.set_pulled(self.pool.task().end());
            if self.pool.next(|batch| Ok(batch.plan(&mut self.plan)?))?.is_none() {
                self.changed = self.reader.changes.finish()?;
                return Ok(false);
            }
            self.next = 0;
        }
        self.next += 1;
        Ok(true)
    }

    /// The pages that [`advance`](Self::advance) came to.
    pub(super) fn chunk(&self) -> Option<Chunk<'_>> {
        self.pool.task().chunk(self.next.checked_sub(1)?, &self.reader.space, self.reader.question.need)
    }

    /// Regions of the ranges that changed during the sweep, once it has ended: their pages may be from before or after
    /// the change.
    pub fn changed(&self) -> &[AddressRange] {
        &self.changed
    }
}

/// Reads batches, on any thread.
struct BatchReader {
    space: AddressSpace,
    question: Question,
    changes: RegionChanges,
}

impl Work for BatchReader {
    type Task = Batch;
    type Buffers = WantedFrames;

    fn work(&self, batch: &mut Batch, wanted: &mut WantedFrames, _: &mut Budget) -> Result<()> {
        batch.fill(&self.space, &self.question, wanted)?;
        self.changes.compare()
    }
}
