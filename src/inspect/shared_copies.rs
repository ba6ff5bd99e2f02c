//! Whether other processes map private memory too, as after a fork.

use super::page::{Evidence, Page};
use super::region::ViewedRegion;
use super::{AddressSpace, Result};
use crate::budget::Budget;
use crate::kernel::AddressRange;

impl AddressSpace {
    /// Whether private memory in `ranges` (in order, disjoint) is now mapped by another process too: it can copy a page
    /// of it, which leaves the page where it is here. Ends at the first such page.
    ///
    /// # Errors
    /// Those of [`Sweep::next`](super::Sweep::next).
    pub fn shares_private_memory(&self, ranges: &[AddressRange], budget: Budget) -> Result<bool> {
        let is_private = |viewed: &&ViewedRegion| viewed.region.permissions.write && !viewed.region.permissions.shared;
        let private: Vec<AddressRange> =
            self.viewed_regions().iter().filter(is_private).map(ViewedRegion::range).collect();
        let private: Vec<AddressRange> = ranges.iter().flat_map(|range| range.within(&private)).collect();
        let is_shared = |page: &Page| {
            let entry = page.entry;
            entry.is_present() && !entry.is_file_or_shared() && !entry.is_exclusive() && !page.is_zero()
        };
        let need = Evidence::ENTRIES | self.obtainable(Evidence::KINDS);
        let mut pages = self.pages(&private, need).with_budget(budget);
        while let Some(chunk) = pages.next()? {
            if chunk.pages().any(|page| is_shared(&page)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
