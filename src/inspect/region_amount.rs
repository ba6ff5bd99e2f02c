//! The amounts of memory of a region, by name, and the numbers of smaps for those that cannot be counted here.

use super::states::StateSet;
use super::stats::RegionStats;
use crate::kernel::smaps::Smaps;
use crate::kernel::words::worded;
use crate::report::Fact;

worded! {
    /// An amount of memory that is counted of a region: a number of [`RegionStats`]. Of several that are unknown, the
    /// first gives the reason.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum RegionAmount, word {
        /// Bytes of present pages.
        Present = "present",
        /// Bytes in swap.
        Swapped = "swapped",
        /// Bytes that the kernel counts as Rss.
        Rss = "rss",
        /// The proportional share.
        Pss = "pss",
        /// Bytes of frames that are mapped more than once.
        Shared = "shared",
        /// Bytes of frames that are mapped once.
        Exclusive = "exclusive",
        /// Bytes of huge pages.
        Huge = "huge",
    }
}

impl RegionStats {
    /// An amount, as far as it was counted: `swapped` may be only the most likely number.
    pub fn amount(&self, amount: RegionAmount) -> Fact<u64> {
        match amount {
            RegionAmount::Present => Ok(self.present),
            RegionAmount::Swapped => self.swapped.clone(),
            RegionAmount::Rss => self.rss.clone(),
            RegionAmount::Pss => self.pss.clone(),
            RegionAmount::Shared => self.shared.clone(),
            RegionAmount::Exclusive => self.private.clone(),
            RegionAmount::Huge => self.huge.clone(),
        }
    }

    /// An amount that is certain: the page map shows the pages, and their states do not leave it open.
    pub fn certain_amount(&self, amount: RegionAmount) -> Fact<u64> {
        let hidden = self.why_hidden();
        let uncertain = || self.uncertainly_swapped().filter(|_| amount == RegionAmount::Swapped);
        let unknown = hidden.or_else(|| uncertain().and_then(StateSet::uncertainty));
        unknown.map_or_else(|| self.amount(amount), Err)
    }

    /// Takes the numbers that cannot be counted from the smaps of the region: those of map counts, of the page of
    /// zeros, and of shared memory in swap (since Linux 4.5). If smaps counts as many pages in swap as may be there,
    /// all of them are.
    pub(super) fn take_from_smaps(&mut self, smaps: &Smaps) {
        if self.uncertainly_swapped().is_some()
            && self.swapped.as_ref().is_ok_and(|&at_most| smaps.field("Swap") == Some(at_most))
        {
            self.uncertain = None;
        }
        let numbers = [
            (&mut self.rss, smaps.field("Rss")),
            (&mut self.pss, smaps.field("Pss")),
            (&mut self.swapped, smaps.field("Swap")),
            (&mut self.private, Some(smaps.uss())),
            (&mut self.shared, Some(smaps.shared())),
        ];
        for (fact, bytes) in numbers {
            if let (Err(_), Some(bytes)) = (&fact, bytes) {
                *fact = Ok(bytes);
            }
        }
    }
}
