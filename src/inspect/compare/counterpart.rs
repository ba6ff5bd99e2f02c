//! The counterparts of regions: where another process maps the same memory.

use crate::kernel::{AddressRange, Device, Region, VirtualAddress};
use std::collections::HashMap;

/// The regions of the other process, by address and by file.
pub(super) struct Counterparts<'a> {
    /// The regions in address order.
    regions: Vec<&'a Region>,
    /// The regions of each file in the order of their offsets.
    by_file: HashMap<MappedFile, Vec<&'a Region>>,
}

/// A file, and the way in which it is mapped.
#[derive(PartialEq, Eq, Hash)]
struct MappedFile {
    device: Device,
    inode: u64,
    is_shared: bool,
    is_writable: bool,
    is_executable: bool,
}

impl MappedFile {
    fn of(region: &Region) -> MappedFile {
        MappedFile {
            device: region.device,
            inode: region.inode,
            is_shared: region.permissions.shared,
            is_writable: region.permissions.write,
            is_executable: region.permissions.execute,
        }
    }
}

impl<'a> Counterparts<'a> {
    /// Indexes the regions, which are in address order.
    pub fn new(regions: impl Iterator<Item = &'a Region>) -> Self {
        let regions: Vec<&Region> = regions.collect();
        let mut by_file: HashMap<MappedFile, Vec<&Region>> = HashMap::new();
        for region in regions.iter().filter(|region| region.maps_object()) {
            by_file.entry(MappedFile::of(region)).or_default().push(region);
        }
        for of_file in by_file.values_mut() {
            of_file.sort_by_cached_key(|region| region.offset);
        }
        Counterparts { regions, by_file }
    }

    /// Returns the address at which the other process maps what is in `part` of `region`: the same address, or that of
    /// the same bytes of the same file.
    pub fn of(&self, region: &Region, part: AddressRange) -> Option<VirtualAddress> {
        if self.is_at_same_address(region, part) {
            return Some(part.start());
        }
        let offset = region.file_offset(part.start())?;
        let of_file = self.by_file.get(&MappedFile::of(region))?;
        let behind = of_file.partition_point(|other| other.offset <= offset);
        let mut before = of_file.iter().take(behind).rev();
        let other = before.find(|other| offset - other.offset < other.range.len())?;
        other.range.start().checked_add(offset - other.offset)
    }

    fn is_at_same_address(&self, region: &Region, part: AddressRange) -> bool {
        let first = self.regions.partition_point(|other| other.range.end() <= part.start());
        let there = self.regions.iter().skip(first);
        let mut overlapping = there.take_while(|other| other.range.start() < part.end());
        overlapping.any(|other| {
            let both = part.start().max(other.range.start());
            (other.device, other.inode) == (region.device, region.inode)
                && other.permissions.shared == region.permissions.shared
                && other.name == region.name
                && other.file_offset(both) == region.file_offset(both)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::maps;

    fn counterpart(mine: &str, theirs: &str) -> Option<u64> {
        let [mine, theirs] = [mine, theirs].map(|text| maps::parse(text.as_bytes()).expect("maps"));
        let region = mine.first().expect("a region");
        let start = Counterparts::new(theirs.iter()).of(region, region.range);
        start.map(VirtualAddress::get)
    }

    #[test]
    fn a_region_matches_at_its_address_or_by_file_and_offset() {
        let file = "1000-3000 rw-p 4000 08:01 7 /a";
        for (mine, theirs, start) in [
            ("1000-3000 rw-p 0 00:00 0 ", "2000-9000 rw-p 0 00:00 0 ", Some(0x1000)),
            ("1000-3000 rw-p 0 00:00 0 ", "3000-9000 rw-p 0 00:00 0 ", None),
            ("1000-3000 rw-p 0 00:00 0 [heap]", "1000-3000 rw-p 0 00:00 0 ", None),
            (file, "1000-3000 rw-p 4000 08:01 7 /a", Some(0x1000)),
            (file, "1000-3000 rw-p 0 08:01 7 /a", None),
            (file, "1000-3000 rw-p 4000 08:01 8 /a", None),
            (file, "a000-f000 rw-p 3000 08:01 7 /a", Some(0xb000)),
            (file, "a000-f000 r--p 3000 08:01 7 /a", None),
            (file, "a000-f000 rw-s 3000 08:01 7 /a", None),
            // The mapping whose offset is nearest does not reach so far; another one does.
            (file, "a000-f000 rw-p 2000 08:01 7 /a\n10000-11000 rw-p 3000 08:01 7 /a", Some(0xc000)),
            // An offset near the end of what a file can have.
            (file, "a000-f000 rw-p fffffffffffff000 08:01 7 /a", None),
        ] {
            assert_eq!(counterpart(mine, theirs), start, "{mine} beside {theirs}");
        }
    }
}
