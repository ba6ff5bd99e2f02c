//! The list of all regions, which may be very long, read when it is first needed.

use super::Symbols;
use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::process::{FEW_REGIONS, Target};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The regions of a target. As long as all addresses lie in memory that can have no name, the list is not read.
#[derive(Default)]
pub(super) struct RegionsOnDemand {
    all: OnceLock<Vec<Region>>,
    asked: Mutex<Asked>,
}

/// The questions so far.
#[derive(Default)]
struct Asked {
    count: usize,
    /// The last answer: memory without names.
    unnamed: Option<AddressRange>,
}

impl RegionsOnDemand {
    /// All of them, in address order; none if they cannot be read.
    pub fn read(&self, target: &Target) -> &[Region] {
        self.all.get_or_init(|| target.process.regions().unwrap_or_default())
    }

    /// Whether the address certainly has no name. The answer is not sought where reading all regions is quicker.
    pub fn is_unnamed(&self, symbols: &Symbols, target: &Target, address: VirtualAddress) -> bool {
        if self.all.get().is_some() {
            return false;
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.unnamed.is_some_and(|range| range.contains(address)) {
            return true;
        }
        if asked.count == FEW_REGIONS {
            return false;
        }
        asked.count += 1;
        match target.process.queried(address) {
            Ok(Some(Some(region))) if !symbols.may_name(target, &region) => {
                asked.unnamed = Some(region.range);
                true
            }
            Ok(Some(None)) => true,
            _ => false,
        }
    }
}
