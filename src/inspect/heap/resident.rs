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
    Ok(resident_of(space, ranges, budget)?.bytes)
}

/// Resident bytes, and the region that has most of them.
#[derive(Clone, Copy, Default)]
pub struct ResidentBytes {
    /// Of all ranges.
    pub bytes: u64,
    /// The start of the region with most, and its bytes; `None` if nothing is resident.
    pub largest: Option<(VirtualAddress, u64)>,
}

fn resident_of(space: &AddressSpace, ranges: &[AddressRange], budget: &Budget) -> Result<ResidentBytes> {
    let mut resident = ResidentBytes::default();
    let mut of_region: Option<(VirtualAddress, u64)> = None;
    let need = space.obtainable(Evidence::KINDS) | Evidence::ANY_FRAME;
    let mut pages = space.pages(&in_order(ranges.to_vec()), need).with_budget(budget.clone());
    while let Some(chunk) = pages.next()? {
        let bytes = chunk.pages().filter(in_memory).map(|page| page.bytes(space.page_size())).sum::<u64>();
        resident.bytes += bytes;
        if let Some(start) = chunk.region.map(|viewed| viewed.region.range.start()).filter(|_| bytes > 0) {
            let before = of_region.filter(|(region, _)| *region == start).map_or(0, |(_, bytes)| bytes);
            of_region = Some((start, before + bytes));
            resident.largest = resident.largest.into_iter().chain(of_region).max_by_key(|(_, bytes)| *bytes);
        }
    }
    Ok(resident)
}

/// Returns the resident bytes of anonymous memory outside of these ranges.
///
/// # Errors
/// The target is gone, or the budget is over.
pub fn resident_outside(space: &AddressSpace, ranges: &[AddressRange], budget: &Budget) -> Result<ResidentBytes> {
    let known = in_order(ranges.iter().map(|range| range.to_pages(space.page_size())).collect());
    let others: Vec<AddressRange> = anonymous(space).iter().flat_map(|range| range.outside(&known)).collect();
    resident_of(space, &others, budget)
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
