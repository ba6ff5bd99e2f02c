//! A sample of the watched addresses.

use super::words::PageWords;
use crate::inspect::classify::{Backing, Place};
use crate::kernel::{AddressRange, Region, VirtualAddress};

/// The words and regions of the watched addresses at one time.
pub(super) struct Sample {
    pub words: PageWords,
    pub regions: Vec<(Region, Backing)>,
    pub spans: Vec<AddressRange>,
}

impl Sample {
    /// The region of `address`, and what classification needs to know of it.
    pub fn place(&self, address: VirtualAddress) -> Option<(&Region, Place)> {
        let after = self
            .regions
            .partition_point(|(region, _)| region.range.start() <= address);
        let (region, backing) = self.regions.get(after.checked_sub(1)?)?;
        region.range.contains(address).then_some((
            region,
            Place {
                backing: *backing,
                shared: region.permissions.shared,
                pfn_mapped: false,
                may_be_copied: false,
                may_be_huge: false,
                merged: Some(false),
            },
        ))
    }

    pub fn covers(&self, range: AddressRange) -> bool {
        self.spans
            .iter()
            .any(|span| span.intersection(range).is_some())
    }
}
