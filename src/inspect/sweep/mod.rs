//! The engine: every command that looks at pages has them delivered by [`sweep`].
//!
//! A [`plan`](plan::Plan) says which stretches to read and how, a [`batch`](batch::Batch) reads some of them and joins what is asked about
//! their frames, a [`Chunk`] gives the visitor the raw words of one stretch and makes pages of them on the fly. At no time are more
//! than a few batches in memory.

mod batch;
mod chunk;
mod frames;
mod plan;

pub use chunk::{Chunk, Pages};

/// The words as they were read, for whoever compares rather than decodes.
pub(super) mod raw {
    pub(in crate::inspect) use super::chunk::{Content, UNREAD};
}

use super::page::Need;
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
/// go on. What lies in no region is passed over, unless [`Need::HOLES`] asks for it.
///
/// Fails when the target is gone or runs another program, when the kernel refuses what `need` asks for (see
/// [`View::require`] and [`View::obtainable`]), and with [`Error::Stopped`] when `visit` or `check` say so.
pub fn sweep(
    view: &View<'_>,
    spans: &[AddressRange],
    need: Need,
    check: &mut dyn FnMut() -> Result<(), Stopped>,
    visit: &mut dyn FnMut(&Chunk<'_>) -> Result<(), Stopped>,
) -> Result<Sweep> {
    let mut plan = Plan::new(view, spans, need);
    let mut batch = Batch::default();
    loop {
        batch.clear();
        let mut steps = 0;
        while let Some(step) = plan.next()? {
            steps += 1;
            if !batch.add(step, view) {
                break;
            }
        }
        if steps == 0 {
            break;
        }
        check()?;
        batch.fill(view, need)?;
        for chunk in batch.chunks(view, need) {
            visit(&chunk)?;
        }
    }
    finish(view, spans)
}

/// Compares the regions with what they were at the start.
fn finish(view: &View<'_>, spans: &[AddressRange]) -> Result<Sweep> {
    let process = &view.target().process;
    match process.liveness()? {
        Liveness::Alive => {}
        Liveness::Executed => return Err(Error::Executed),
        Liveness::Exited => return Err(Error::Exited),
    }
    let now = process.regions()?;
    let changed = view
        .regions()
        .iter()
        .map(|viewed| &viewed.region)
        .filter(|before| {
            spans
                .iter()
                .any(|span| span.intersection(before.range).is_some())
        })
        .filter(|before| !is_still_there(before, &now))
        .map(|before| before.range)
        .collect();
    Ok(Sweep { changed })
}

fn is_still_there(before: &Region, now: &[Region]) -> bool {
    let index = now.partition_point(|region| region.range.start() < before.range.start());
    now.get(index) == Some(before)
}
