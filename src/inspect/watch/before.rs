//! What a look saw.

use super::memory::Memory;
use crate::inspect::classify::{Backing, Place};
use crate::kernel::{AddressRange, Region, VirtualAddress};

/// What a look saw: for the next one, the look before.
pub(super) struct Before {
    pub memory: Memory,
    pub regions: Vec<(Region, Backing)>,
    pub spans: Vec<AddressRange>,
}

impl Before {
    /// What was known of the place of `address`.
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
                may_be_huge: false,
            },
        ))
    }

    pub fn covers(&self, range: AddressRange) -> bool {
        self.spans
            .iter()
            .any(|span| span.intersection(range).is_some())
    }
}
