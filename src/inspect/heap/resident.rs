//! Resident bytes of heaps and of other anonymous memory.

use crate::budget::Budget;
use crate::inspect::{AddressSpace, Evidence, Page, Result};
use crate::kernel::{AddressRange, Kind, Region, State, VirtualAddress};

/// Returns whether a page is present with its own memory, which a zero page does not have.
pub(super) fn in_memory(page: &Page) -> bool {
    page.state() == State::Present && !matches!(page.kind, Some(Kind::Zero | Kind::HugeZero))
}

/// Returns whether a region maps a file. Core files contain no inodes, but names of files are paths.
pub(super) fn is_of_file(region: &Region) -> bool {
    region.inode != 0 || region.name.as_bytes().starts_with(b"/")
}

/// Returns the ranges in address order, each address once.
pub(super) fn in_order(mut ranges: Vec<AddressRange>) -> Vec<AddressRange> {
    ranges.sort_by_cached_key(|range| range.start());
    let mut end = VirtualAddress::new(0);
    let mut disjoint = Vec::with_capacity(ranges.len());
    for range in ranges {
        disjoint.extend(AddressRange::new(range.start().max(end), range.end()));
        end = end.max(range.end());
    }
    disjoint
}

/// Returns the resident bytes of these ranges, without zero pages.
///
/// # Errors
/// The target is gone, or the budget is over.
pub fn resident(space: &AddressSpace, ranges: &[AddressRange], budget: &Budget) -> Result<u64> {
    let mut resident = 0;
    let mut pages =
        space.pages(&in_order(ranges.to_vec()), space.obtainable(Evidence::KINDS)).with_budget(budget.clone());
    while let Some(chunk) = pages.next()? {
        resident += chunk.pages().filter(in_memory).map(|page| page.bytes(space.page_size())).sum::<u64>();
    }
    Ok(resident)
}

/// Returns the resident bytes of anonymous memory outside of these ranges.
///
/// # Errors
/// The target is gone, or the budget is over.
pub fn resident_outside(space: &AddressSpace, ranges: &[AddressRange], budget: &Budget) -> Result<u64> {
    let known = in_order(ranges.iter().map(|range| range.to_pages(space.page_size())).collect());
    let others: Vec<AddressRange> = anonymous(space).iter().flat_map(|range| range.outside(&known)).collect();
    resident(space, &others, budget)
}

/// Returns the regions that a heap may be in: anonymous, writable and private memory, except for stacks that the kernel
/// names.
pub fn anonymous(space: &AddressSpace) -> Vec<AddressRange> {
    let may_hold = |region: &&Region| {
        let name = region.name.as_bytes();
        let is_named = name.starts_with(b"[") && name != b"[heap]" && !name.starts_with(b"[anon:");
        !is_of_file(region) && region.permissions.write && !region.permissions.shared && !is_named
    };
    space.regions().filter(may_hold).map(|region| region.range).collect()
}
