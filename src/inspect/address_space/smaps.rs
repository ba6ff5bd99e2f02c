//! What smaps says of the regions: read once, when a fact needs it, as the kernel walks all page tables for it.

use super::AddressSpace;
use crate::budget::Budget;
use crate::kernel::Region;
use crate::kernel::smaps::Smaps;

impl AddressSpace {
    /// Smaps of all regions, read once; empty if it cannot be read. If it is more than the target's budget allows, what
    /// depends on it is missing: [`check`](Self::check) says so.
    pub(super) fn smaps(&self) -> &[Smaps] {
        let mut budget = self.target().process.budget();
        let smaps = self.smaps_within(&mut budget);
        if let Err(why) = budget.check() {
            _ = self.0.cache.given_up.set(why);
        }
        smaps.unwrap_or_default()
    }

    /// The same; `None` if it cannot be read, or if the budget is over before.
    pub(in crate::inspect) fn smaps_within(&self, budget: &mut Budget) -> Option<&[Smaps]> {
        let known = &self.0.cache.smaps;
        if known.get().is_none() {
            let smaps = self.0.target.process.smaps(budget);
            budget.check().ok()?;
            _ = known.set(smaps);
        }
        known.get()?.as_deref().ok()
    }

    /// Whether a child begins with nothing in place of the pages of `region` (MADV_WIPEONFORK, MAP_DROPPABLE), by its
    /// flags; false where they cannot be read.
    pub fn is_wiped_by_fork(&self, region: &Region, budget: &mut Budget) -> bool {
        let smaps = self.smaps_within(budget).unwrap_or_default();
        Smaps::flag_at(smaps, region.range.start(), "wf") == Some(true)
    }

    /// Whether `region` is locked in memory (mlock); false where its flags cannot be read.
    pub(in crate::inspect) fn is_locked(&self, region: &Region, budget: &mut Budget) -> bool {
        let smaps = self.smaps_within(budget).unwrap_or_default();
        Smaps::flag_at(smaps, region.range.start(), "lo") == Some(true)
    }
}
