//! The hugetlb pools of the machine, and the NUMA nodes of their pages.

use super::Machine;
use crate::source::KernelSetting;
use std::collections::BTreeSet;

impl Machine {
    /// Returns the number of free pages in the hugetlb pool with pages of `bytes` bytes, on one node if `node` is
    /// given. `None` if unknown.
    pub fn free_pool_pages(&self, bytes: u64, node: Option<u32>) -> Option<u64> {
        self.setting(match node {
            Some(node) => KernelSetting::FreePoolPagesOf(node, bytes),
            None => KernelSetting::FreePoolPages(bytes),
        })
    }

    /// Returns the number of pages in the pool that are reserved, and not yet used.
    pub fn reserved_pool_pages(&self, bytes: u64) -> Option<u64> {
        self.setting(KernelSetting::ReservedPoolPages(bytes))
    }

    /// Returns the nodes with memory; empty if unknown.
    pub fn nodes(&self) -> BTreeSet<u32> {
        self.zones().map(|zones| zones.iter().map(|zone| zone.node).collect()).unwrap_or_default()
    }
}
