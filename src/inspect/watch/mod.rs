//! What changes between two looks at the same addresses. A look costs the reads of what is populated, and
//! a comparison of raw words; nothing is decoded where they are the same.

mod before;
mod change;
mod memory;
mod pages;
mod regions;
#[cfg(test)]
mod tests;

use super::page::Need;
use super::reason::no_scan;
use super::region::ViewedRegion;
use super::rules::Rules;
use super::sweep::{Sweep, sweep};
use super::view::View;
use super::{Backing, Error, Result};
use crate::kernel::{AddressRange, Region};
use crate::report::{EventKind, Reason, Stopped};
use crate::target::{self, Categories, Liveness, Target};
use before::Before;
use memory::Memory;
use pages::Merger;

pub use change::{Change, Tell};

/// Whether there is more to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// The target is there.
    GoOn,
    /// It has exited, which was said.
    Over,
}

/// Which addresses a look is about: asked at each, as regions come, grow and go.
pub type Spans<'a> = dyn FnMut(&View<'_>) -> Vec<AddressRange> + 'a;

/// Takes looks, and tells what changed since the one before.
#[derive(Default)]
pub struct Watcher {
    extra: Need,
    before: Option<Before>,
}

impl Watcher {
    /// Of `extra`, [`Need::FLAGS`], [`Need::COUNTS`] and [`Need::SOFT_DIRTY`] ask for changes of flags, map counts and soft-dirty
    /// bits too. Check them with [`View::require`] first.
    pub fn new(extra: Need) -> Watcher {
        Watcher {
            extra: extra & (Need::FLAGS | Need::COUNTS | Need::SOFT_DIRTY),
            before: None,
        }
    }

    /// Looks at the target and tells what changed since the last look; the first one has nothing to compare with. A new program
    /// starts anew. `check` is asked between reads.
    ///
    /// Fails when the kernel refuses a read, and when `check` or `tell` say so. That the target exits is no failure.
    pub fn look(
        &mut self,
        target: &Target,
        spans: &mut Spans<'_>,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        tell: &mut Tell<'_>,
    ) -> Result<Look> {
        match target.process.liveness()? {
            Liveness::Exited => return self.over(tell),
            Liveness::Executed => {
                self.before = None;
                tell(Change::of_process(EventKind::Executed))?;
            }
            Liveness::Alive => {}
        }
        match self.compare(target, spans, check, tell) {
            Ok(()) => Ok(Look::GoOn),
            // It went, or went on to another program, while it was being looked at: which of the two, the next look says.
            Err(Error::Exited | Error::Target(target::Error::Gone { .. })) => {
                match target.process.liveness()? {
                    Liveness::Exited => self.over(tell),
                    Liveness::Executed => self.executed(tell),
                    Liveness::Alive => Ok(Look::GoOn),
                }
            }
            Err(Error::Executed) => self.executed(tell),
            Err(error) => Err(error),
        }
    }

    fn over(&mut self, tell: &mut Tell<'_>) -> Result<Look> {
        self.before = None;
        tell(Change::of_process(EventKind::Exited))?;
        Ok(Look::Over)
    }

    fn executed(&mut self, tell: &mut Tell<'_>) -> Result<Look> {
        self.before = None;
        tell(Change::of_process(EventKind::Executed))?;
        Ok(Look::GoOn)
    }

    fn compare(
        &mut self,
        target: &Target,
        spans: &mut Spans<'_>,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        tell: &mut Tell<'_>,
    ) -> Result<()> {
        /// Looks in a row that may find regions come and gone under way, before one of them is taken as it is.
        const TRIES: u32 = 3;
        let mut tries = 0;
        let (view, now) = loop {
            tries += 1;
            let view = View::of(target)?;
            let (now, swept) = self.see(&view, spans(&view), check)?;
            if swept.changed.is_empty() || tries == TRIES {
                break (view, now);
            }
        };
        if let Some(before) = &self.before {
            tell_regions(before, &now, tell)?;
            let mut merger = Merger::new(before, &now, &view, self.extra);
            now.memory.differences(&before.memory, |page, then, now| {
                merger.push(page, then, now, tell)
            })?;
            merger.finish(tell)?;
        }
        self.before = Some(now);
        Ok(())
    }

    /// Sees what is there now.
    fn see(
        &self,
        view: &View<'_>,
        spans: Vec<AddressRange>,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
    ) -> Result<(Before, Sweep)> {
        let size = view.page();
        let extra = self.extra & (Need::FLAGS | Need::COUNTS);
        let need = view.obtainable(Need::HUGE) | extra | Need::ENTRIES;
        let nothing = Memory::default();
        let before = self
            .before
            .as_ref()
            .map_or(&nothing, |before| &before.memory);
        let mut memory = before.next();
        let swept = sweep(view, &spans, need, check, &mut |chunk| {
            memory.add(chunk, size, before);
            Ok(())
        })?;
        let regions = view
            .regions()
            .iter()
            .map(|viewed| (viewed.region.clone(), viewed.backing));
        let now = Before {
            memory,
            regions: regions.collect(),
            spans,
        };
        Ok((now, swept))
    }

    /// What a watch of `spans` cannot see here, each with the reason.
    pub fn blind(view: &View<'_>, spans: &[AddressRange], extra: Need) -> Vec<(EventKind, Reason)> {
        let mut blind = Vec::new();
        let available = view.availability();
        if let Err(reason) = &available.frames {
            blind.push((EventKind::Moved, reason.clone()));
            let partly = "only copies of file pages show: those of other pages show by their frames, which need CAP_SYS_ADMIN";
            blind.push((EventKind::CopiedOnWrite, Reason::not_permitted(partly)));
        }
        let is_watched = |viewed: &ViewedRegion| {
            let inside = |span: &AddressRange| span.intersection(viewed.range()).is_some();
            spans.iter().any(inside)
        };
        let mut shared_memory = view
            .regions()
            .iter()
            .filter(|viewed| viewed.backing == Backing::Shmem);
        if view.swap_in_use() && shared_memory.any(is_watched) {
            let nothing_left =
                "the page map keeps nothing of shared memory that goes to swap: it shows as went";
            let reason = Reason::NotOnThisKernel(nothing_left.into());
            blind.push((EventKind::SwappedOut, reason));
        }
        if !available.categories.contains(Categories::HUGE) {
            blind.push((EventKind::Split, no_scan()));
            blind.push((EventKind::Collapsed, no_scan()));
        }
        if extra.contains(Need::FLAGS)
            && let Err(reason) = &available.flags
        {
            blind.push((EventKind::FlagsChanged, reason.clone()));
        }
        if extra.contains(Need::COUNTS)
            && let Err(reason) = &available.counts
        {
            blind.push((EventKind::MapCountChanged, reason.clone()));
        }
        if let Err(reason) = &available.soft_dirty {
            blind.push((EventKind::SoftDirty, reason.clone()));
        }
        blind
    }
}

fn tell_regions(before: &Before, now: &Before, tell: &mut Tell<'_>) -> Result<()> {
    let regions = |look: &Before| -> Vec<Region> {
        look.regions
            .iter()
            .map(|(region, _)| region.clone())
            .collect()
    };
    if before.regions == now.regions {
        return Ok(());
    }
    for change in regions::compare(&regions(before), &regions(now)) {
        if before.covers(change.range) || now.covers(change.range) {
            tell(Change {
                kind: change.kind,
                address: Some(change.range.start()),
                pages: 0,
                before: None,
                after: None,
                region: change.before.clone().or(change.after.clone()),
                region_after: change.before.and(change.after),
            })?;
        }
    }
    Ok(())
}
