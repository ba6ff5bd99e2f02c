//! The engine: every command that looks at pages has them delivered by [`sweep`].
//!
//! A [`plan`](plan::Plan) says which stretches to read and how. A [`batch`](batch::Batch) reads some of them into
//! [`pieces`](pieces::Pieces) and joins what is asked about their frames; long sweeps have batches read on all
//! [`cores`](super::cores::in_order). A [`Chunk`] gives the visitor, who sees them in order and on the caller's thread, the raw words of
//! one stretch and makes pages of them on the fly. At no time are more than a few batches in memory.

mod batch;
mod behind;
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

use super::cores::in_order;
use super::filter::Question;
use super::view::View;
use super::{Error, Result};
use crate::kernel::{AddressRange, Region};
use crate::report::Stopped;
use crate::target::Liveness;
use batch::Batch;
use plan::Plan;

/// How a sweep went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sweep {
    /// Regions of the spans that were no longer the same at the end; what was delivered of them may be mixed.
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
    in_order(
        &mut |batch: &mut Batch| Ok(batch.plan(&mut plan)?),
        &|batch| Ok(batch.fill(view, question)?),
        &mut |batch| {
            check()?;
            Ok(batch.deliver(view, question.need, visit)?)
        },
    )?;
    finish(view, spans)
}

/// Compares the regions with what they were at the start.
fn finish(view: &View<'_>, spans: &[AddressRange]) -> Result<Sweep> {
    /// Regions that are sooner asked about one by one than found in the list of all.
    const FEW: usize = 8;
    let process = &view.target().process;
    match process.liveness()? {
        Liveness::Alive => {}
        Liveness::Executed => return Err(Error::Executed),
        Liveness::Exited => return Err(Error::Exited),
    }
    let touched = touched(view, spans);
    let mut changed = Vec::new();
    if touched.len() > FEW && view.is_unchanged()? {
        return Ok(Sweep::default());
    }
    if touched.len() <= FEW {
        for before in touched {
            let now = process.region_at(before.range.start())?;
            if now.is_none_or(|now| !is_same(before, &now)) {
                changed.push(before.range);
            }
        }
    } else {
        let mut now = process.regions()?.into_iter().peekable();
        // Both are in the order of their addresses.
        let mut is_there = |before: &Region| {
            while now
                .next_if(|now| now.range.start() < before.range.start())
                .is_some()
            {}
            now.peek().is_some_and(|now| is_same(before, now))
        };
        let gone = touched.into_iter().filter(|before| !is_there(before));
        changed.extend(gone.map(|before| before.range));
    }
    Ok(Sweep { changed })
}

/// The regions that `spans` touch.
fn touched<'v>(view: &'v View<'_>, spans: &[AddressRange]) -> Vec<&'v Region> {
    let mut touched: Vec<&Region> = Vec::with_capacity(spans.len());
    let mut first = 0;
    for span in spans {
        first = view.region_from(first, span.start());
        let inside = view
            .regions()
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(|viewed| viewed.range().start() < span.end())
            .map(|viewed| &viewed.region);
        touched.extend(inside);
    }
    touched.dedup_by_key(|region| region.range);
    touched
}

/// Whether it is the same region still. The name may change (`prctl` gives names) without a page being touched.
fn is_same(before: &Region, now: &Region) -> bool {
    before.range == now.range
        && before.permissions == now.permissions
        && before.offset == now.offset
        && before.device == now.device
        && before.inode == now.inode
}
