//! The engine: every command that looks at pages has them delivered by [`sweep`].
//!
//! A [`plan`](plan::Plan) says which stretches to read and how. A [`batch`](batch::Batch) reads some of them into
//! [`pieces`](pieces::Pieces) and joins what is asked about their frames; long sweeps have batches read on all
//! [`cores`](super::cores::in_order). A [`Chunk`] gives the visitor, who sees them in order and on the caller's thread, the raw words of
//! one stretch and makes pages of them on the fly. At no time are more than a few batches in memory.

mod batch;
mod behind;
mod changes;
mod chunk;
mod frames;
mod huge;
mod lookup;
mod marks;
mod pages;
mod pieces;
mod plan;
#[cfg(test)]
mod tests;

pub use chunk::Chunk;
pub use pages::Pages;

/// The words as they were read, for whoever compares rather than decodes.
pub(super) mod raw {
    pub(in crate::inspect) use super::chunk::{Content, UNREAD};
}

use super::Result;
use super::cores::in_order;
use super::filter::Question;
use super::view::View;
use crate::kernel::AddressRange;
use crate::report::Stopped;
use batch::Batch;
use changes::Changes;
use plan::Plan;

/// How a sweep went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sweep {
    /// Regions of the spans that were no longer the same after they had been delivered; what was may be mixed.
    pub changed: Vec<AddressRange>,
}

/// Has all pages of `spans` (in order, disjoint) delivered to `visit`, in address order. `check` is asked between reads whether to
/// go on. What lies in no region is passed over, unless [`Need::HOLES`](super::Need::HOLES) asks for it.
///
/// Fails when the target is gone or runs another program, when the kernel refuses what is asked for (see
/// [`View::require`] and [`View::obtainable`]), and with [`Error::Stopped`] when `visit` or `check` say so.
pub fn sweep<'f>(
    view: &View<'_>,
    spans: &[AddressRange],
    question: impl Into<Question<'f>>,
    check: &mut dyn FnMut() -> Result<(), Stopped>,
    visit: &mut dyn FnMut(&Chunk<'_>) -> Result<(), Stopped>,
) -> Result<Sweep> {
    let question = question.into().with_implied(view);
    let mut plan = Plan::new(view, spans, question.need);
    let changes = Changes::among(view, spans);
    in_order(
        &mut |batch: &mut Batch| Ok(batch.plan(&mut plan)?),
        &|batch| {
            batch.fill(view, question)?;
            changes.look()
        },
        &mut |batch| {
            check()?;
            batch.deliver(view, question.need, visit)?;
            changes.delivered(batch.end());
            Ok(())
        },
    )?;
    let changed = changes.finish()?;
    Ok(Sweep { changed })
}
