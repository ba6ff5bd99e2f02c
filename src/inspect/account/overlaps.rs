//! The memory that a process may map at several addresses: the parts of files and of shared memory that several regions
//! map.

use super::super::classify::Backing;
use super::super::region::ViewedRegion;
use crate::kernel::{AddressRange, VirtualAddress};

/// A part of an object that a region maps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// The device and inode number.
    object: (u32, u32, u64),
    /// The range of offsets in the object, from `first` to `end`.
    first: u64,
    end: u64,
    /// The address at which the first byte is mapped.
    at: VirtualAddress,
}

/// Returns the addresses of pages of files or of shared memory that another region also maps, in order. Only their
/// frames, and merged pages, can have several mappings in the process. Objects are compared by device and inode number;
/// if two have the same, it returns too many addresses.
pub(super) fn overlaps(regions: &[ViewedRegion]) -> Vec<AddressRange> {
    let objects = regions.iter().filter(|viewed| matches!(viewed.backing, Backing::File | Backing::Shmem));
    let mut parts: Vec<Part> = objects
        .map(|viewed| {
            let region = &viewed.region;
            Part {
                object: (region.device.major, region.device.minor, region.inode),
                first: region.offset,
                end: region.offset.saturating_add(region.range.len()),
                at: region.range.start(),
            }
        })
        .collect();
    parts.sort_unstable();
    let mut twice_mapped = Vec::new();
    // The part before this one that ends last. An overlap of this part with any other earlier part is also one with
    // this.
    let mut widest: Option<Part> = None;
    for &part in &parts {
        if let Some(before) = widest.filter(|before| before.object == part.object && part.first < before.end) {
            let end = part.end.min(before.end);
            twice_mapped.extend([before, part].iter().filter_map(|one| one.addresses(part.first, end)));
            widest = Some(if part.end > before.end { part } else { before });
        } else {
            widest = Some(part);
        }
    }
    AddressRange::joined(&twice_mapped)
}

impl Part {
    /// Returns the addresses of the bytes from `first` to `end` of the object.
    fn addresses(&self, first: u64, end: u64) -> Option<AddressRange> {
        let at = |offset: u64| self.at.checked_add(offset.checked_sub(self.first)?);
        AddressRange::new(at(first)?, at(end)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Region;
    use crate::process::fake;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A region of `pages` pages of object `inode` from page `offset` on.
    fn viewed(at: u64, inode: u64, offset: u64, pages: u64) -> ViewedRegion {
        let region = Region { inode, offset: offset * fake::PAGE, ..fake::region(at, pages) };
        ViewedRegion::new(region, if inode == 0 { Backing::Anonymous } else { Backing::File }, None)
    }

    fn pages(regions: &[ViewedRegion]) -> Vec<(u64, u64)> {
        let page = |address: VirtualAddress| address.get() / fake::PAGE;
        overlaps(regions).iter().map(|range| (page(range.start()), page(range.end()))).collect()
    }

    #[test]
    fn what_two_regions_map_is_found_in_both() {
        let regions = [
            viewed(100, 7, 0, 10),
            viewed(200, 7, 8, 10),
            viewed(300, 7, 30, 5),
            viewed(400, 8, 8, 10),
            viewed(500, 0, 0, 10),
            viewed(600, 0, 0, 10),
        ];
        assert_eq!(pages(&regions), [(108, 110), (200, 202)]);
    }

    proptest! {
        #[test]
        fn the_same_as_page_by_page(parts in proptest::collection::vec((1u64..3, 0u64..20, 1u64..15), 0..8)) {
            let regions: Vec<ViewedRegion> = parts
                .iter()
                .zip(0..)
                .map(|(&(inode, offset, pages), index)| viewed(100 * (index + 1), inode, offset, pages))
                .collect();
            let mut times = BTreeMap::new();
            let each = || parts.iter().zip(1..).flat_map(|(&(inode, offset, pages), index)| {
                (0..pages).map(move |page| (100 * index + page, (inode, offset + page)))
            });
            each().for_each(|(_, of)| *times.entry(of).or_insert(0) += 1);
            let expected: Vec<u64> = each().filter(|(_, of)| times[of] > 1).map(|(at, _)| at).collect();
            let found: Vec<u64> = pages(&regions).into_iter().flat_map(|(first, end)| first..end).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
