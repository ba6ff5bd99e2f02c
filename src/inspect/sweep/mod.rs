//! Sweeps: every command on pages gets them from [`sweep`].
//!
//! A [`plan`](plan::Plan) says which stretches to read and how. A [`batch`](batch::Batch) reads some of them into
//! [`pieces`](pieces::Pieces), and adds the words of their frames. Long sweeps read batches on several
//! [`threads`](super::ordered_pool::run). The visitor gets [`Chunk`]s in order, on the caller's thread. A chunk has the
//! raw words of one stretch, and makes pages from them on the fly. At no time are more than a few batches in memory.

mod backing;
mod batch;
mod changes;
mod chunk;
mod frames;
mod huge;
mod lookup;
mod marks;
mod owners;
mod pages;
mod pieces;
mod plan;
#[cfg(test)]
mod tests;

pub use chunk::Chunk;
pub use pages::Pages;

/// The raw words, for callers that compare without decoding.
pub(super) mod raw {
    pub(in crate::inspect) use super::chunk::{Content, Entries, UNREAD};
}

use super::Result;
use super::address_space::AddressSpace;
use super::filter::Question;
use super::ordered_pool::{self, Check, Planned, Producer, Work};
use super::page::Facts;
use crate::kernel::AddressRange;
use crate::report::Stopped;
use batch::Batch;
use changes::Changes;
use frames::Gather;
use plan::Plan;
use std::ops::ControlFlow;

/// The result of a sweep.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sweep {
    /// Regions of the spans that changed during the sweep: their pages may be from before or after the change.
    pub changed: Vec<AddressRange>,
}

/// Delivers all pages of `spans` (in order, disjoint) to `visit`, in address order. `check` is called between reads and
/// says whether to go on. Addresses in no region are left out, unless [`Facts::HOLES`](super::Facts::HOLES) asks for
/// them.
///
/// Fails when the target is gone or runs another program, when the kernel refuses a read (see [`AddressSpace::require`]
/// and [`AddressSpace::obtainable`]), and with [`Error::Stopped`](super::Error::Stopped) when `visit` or `check` stop
/// it.
pub fn sweep(
    space: &AddressSpace,
    spans: &[AddressRange],
    question: impl Into<Question>,
    check: &mut dyn FnMut() -> Result<(), Stopped>,
    visit: &mut dyn FnMut(&Chunk<'_>) -> Result<(), Stopped>,
) -> Result<Sweep> {
    let question = question.into().with_implied(space);
    let changes = Changes::among(space, spans);
    let need = question.need;
    let reader = Reader { space, question, changes: &changes };
    let mut delivery = Delivery { space, need, plan: Plan::new(space, spans, need), changes: &changes, check, visit };
    ordered_pool::run(&reader, &mut delivery)?;
    let changed = changes.finish()?;
    Ok(Sweep { changed })
}

/// Reads batches, on any thread.
struct Reader<'a> {
    space: &'a AddressSpace,
    question: Question,
    changes: &'a Changes<'a>,
}

impl Work for Reader<'_> {
    type Piece = Batch;
    type Scratch = Gather;

    fn work(&self, batch: &mut Batch, gather: &mut Gather, _: &mut Check<'_>) -> Result<()> {
        batch.fill(self.space, &self.question, gather)?;
        self.changes.compare()
    }
}

/// Plans batches, and delivers them to the visitor.
struct Delivery<'a> {
    space: &'a AddressSpace,
    need: Facts,
    plan: Plan<'a>,
    changes: &'a Changes<'a>,
    check: &'a mut dyn FnMut() -> Result<(), Stopped>,
    visit: &'a mut dyn FnMut(&Chunk<'_>) -> Result<(), Stopped>,
}

impl Producer<Batch> for Delivery<'_> {
    fn plan(&mut self, batch: &mut Batch) -> Result<Planned> {
        Ok(batch.plan(&mut self.plan)?)
    }

    fn deliver(&mut self, batch: &mut Batch) -> Result<ControlFlow<()>> {
        self.check()?;
        batch.deliver(self.space, self.need, self.visit)?;
        self.changes.delivered(batch.end());
        Ok(ControlFlow::Continue(()))
    }

    fn check(&mut self) -> Result<(), Stopped> {
        (self.check)()
    }
}
