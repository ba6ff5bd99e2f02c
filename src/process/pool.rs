//! The hugetlb pools of the machine, and the NUMA nodes that have their pages.

use super::Machine;
use crate::source::KernelSetting;
use std::collections::BTreeSet;

impl Machine {
    /// The free pages of the hugetlb pool with pages of `bytes` bytes; with a node, those of this one. `None` when that
    /// cannot be known.
    pub fn free_pool_pages(&self, bytes: u64, node: Option<u32>) -> Option<u64> {
        self.setting(match node {
            Some(node) => KernelSetting::FreePoolPagesOf(node, bytes),
            None => KernelSetting::FreePoolPages(bytes),
        })
    }

    /// The pages of that pool that are reserved, and not yet used.
    pub fn reserved_pool_pages(&self, bytes: u64) -> Option<u64> {
        self.setting(KernelSetting::ReservedPoolPages(bytes))
    }

    /// The nodes that have memory; empty where that is unknown.
    pub fn nodes(&self) -> BTreeSet<u32> {
        self.zones().map(|zones| zones.iter().map(|zone| zone.node).collect()).unwrap_or_default()
    }
}
