//! The smaps of the regions, read once and only when a fact needs it, because the kernel walks all page tables for it.

use super::super::{Error, Result};
use super::AddressSpace;
use crate::budget::Budget;
use crate::kernel::smaps::{Smaps, VmFlag};
use crate::kernel::{AddressRange, Region, VirtualAddress};

impl AddressSpace {
    /// Returns the smaps of all regions, read once; none if it cannot be read. If it needs more than the target's
    /// budget, facts that depend on it are missing, and [`check`](Self::check) fails.
    pub(super) fn smaps(&self) -> &[Smaps] {
        let mut budget = self.target().process.budget();
        let smaps = self.smaps_within(&mut budget);
        if let Err(why) = budget.check() {
            _ = self.0.cache.given_up.set(why);
        }
        smaps.unwrap_or_default()
    }

    /// Returns the smaps of all regions; `None` if it cannot be read, or the budget is used up.
    pub(in crate::inspect) fn smaps_within(&self, budget: &mut Budget) -> Option<&[Smaps]> {
        self.read_smaps(budget).ok()
    }

    /// Returns the smaps of all regions, read once. The kernel walks all page tables for it, which takes long for many
    /// regions and much memory.
    ///
    /// # Errors
    /// Smaps cannot be read, or the budget is used up.
    pub fn read_smaps(&self, budget: &mut Budget) -> Result<&[Smaps]> {
        let known = &self.0.cache.smaps;
        let smaps = match known.get() {
            Some(smaps) => smaps,
            None => {
                let smaps = self.0.target.process.smaps(budget);
                budget.check()?;
                known.get_or_init(|| smaps)
            }
        };
        Ok(smaps.as_deref().map_err(Clone::clone)?)
    }

    /// Returns the smaps of all regions; none if it cannot be read, as in a capture without it.
    ///
    /// # Errors
    /// The budget is used up.
    pub fn smaps_if_readable(&self, budget: &mut Budget) -> Result<&[Smaps]> {
        match self.read_smaps(budget) {
            Err(Error::OutOfBudget(why)) => Err(why.into()),
            smaps => Ok(smaps.unwrap_or_default()),
        }
    }

    /// Returns whether a child has none of the pages of `region` (MADV_WIPEONFORK, MAP_DROPPABLE), by its flags; false
    /// if they cannot be read.
    pub fn is_wiped_by_fork(&self, region: &Region, budget: &mut Budget) -> bool {
        let smaps = self.smaps_within(budget).unwrap_or_default();
        Smaps::flag_at(smaps, region.range.start(), "wf") == Some(true)
    }

    /// Returns the madvise settings of the region at `address`, by its flags; `None` unless smaps was already read.
    pub fn known_advice(&self, address: VirtualAddress) -> Option<Vec<&'static VmFlag>> {
        let smaps = self.0.cache.smaps.get()?.as_deref().ok()?;
        let smaps = Smaps::at(smaps, address)?;
        Some(smaps.flags().filter(|flag| flag.is_advice).collect())
    }

    /// Returns the number of pages of `ranges` in regions that the process locked in memory (mlock); `None` if that
    /// cannot be read.
    pub fn locked_pages(&self, ranges: &[AddressRange], budget: &mut Budget) -> Option<u64> {
        if self.target().process.locked_bytes() == Some(0) {
            return Some(0);
        }
        let locked = self.smaps_within(budget)?.iter().filter(|smaps| smaps.has_flag("lo"));
        // A range of one byte has its page.
        Some(locked.flat_map(|smaps| smaps.range.within(ranges)).map(|part| part.pages(self.page_size())).sum())
    }

    /// Returns whether the process asked for huge pages in `region` (MADV_HUGEPAGE); false if its flags cannot be read.
    pub(in crate::inspect) fn is_asked_huge(&self, region: &Region, budget: &mut Budget) -> bool {
        let smaps = self.smaps_within(budget).unwrap_or_default();
        Smaps::flag_at(smaps, region.range.start(), "hg") == Some(true)
    }

    /// Returns whether `region` is locked in memory (mlock); false if its flags cannot be read.
    pub(in crate::inspect) fn is_locked(&self, region: &Region, budget: &mut Budget) -> bool {
        let smaps = self.smaps_within(budget).unwrap_or_default();
        Smaps::flag_at(smaps, region.range.start(), "lo") == Some(true)
    }
}
