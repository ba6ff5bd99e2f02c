//! Modules: the regions that map one file, and the load bias, by which the addresses of the file are moved in the
//! process.
//!
//! A load segment puts the page of file offset `p_offset` at `bias + p_vaddr`. A region of the file has the address of
//! a file offset. Together they determine the bias. Offsets count from the start of the module's file, which may be in
//! an archive. One page of the file is often mapped twice, at the end of one segment and at the start of the next, so
//! that a single region may allow two biases: the one that explains most regions is right.

use super::archive::{FromStart, StoredFile};
use super::elf::Segment;
use crate::access;
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::{AddressRange, Device, Name, PageSize, Region, VirtualAddress};
use crate::process::{Modules, OpenedFile, Target};
use std::collections::{BTreeMap, HashMap};

/// The most anonymous regions between a module and the end of its `.bss`.
pub(super) const MOST_BSS_REGIONS: usize = 256;
/// The widest gap between these regions in bytes: linkers align segments to the largest page size that they support.
pub(super) const WIDEST_GAP: u64 = 2 << 20;

/// The regions of one file (or of the vdso), in address order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// The name in `maps`: a whole path, or `[vdso]`. In an archive both names: `/opt/base.apk!/lib/libmain.so`.
    pub name: Name,
    /// The device of the file's filesystem.
    pub device: Device,
    /// The inode of the file; 0 for the vdso.
    pub inode: u64,
    /// The offset of the module in the mapped file, in bytes: 0 unless that is an archive.
    pub start: u64,
    /// The regions of the file, at least one. The anonymous memory of `.bss` after them is not included.
    pub regions: Vec<Region>,
}

impl Module {
    /// Returns the part of its name after the last slash.
    pub fn file_name(&self) -> Name {
        self.name.file_name()
    }

    /// Returns the ranges of its regions. Those far from each other are separate, because the file may be mapped in
    /// several places.
    pub(super) fn extents(&self) -> Vec<AddressRange> {
        let mut extents: Vec<AddressRange> = Vec::new();
        for range in self.regions.iter().map(|region| region.range) {
            let before = extents.last().copied();
            let near = before.filter(|one| range.start().get().saturating_sub(one.end().get()) < WIDEST_GAP);
            match (near.and_then(|one| AddressRange::new(one.start(), range.end())), extents.last_mut()) {
                (Some(joined), Some(last)) => *last = joined,
                _ => extents.push(range),
            }
        }
        extents
    }

    /// Returns whether any region is executable: the module is a program or a library, not just a mapped data file.
    pub fn is_executable(&self) -> bool {
        self.regions.iter().any(|region| region.permissions.execute)
    }

    /// Returns whether the module is the vdso, which is only in memory.
    pub fn is_vdso(&self) -> bool {
        self.inode == 0
    }

    /// Returns the name of the mapped file in `maps`: that of the archive, if the module is in one.
    pub(super) fn mapped_name(&self) -> &Name {
        self.regions.first().map_or(&self.name, |region| &region.name)
    }

    /// Opens the file of the module.
    ///
    /// # Errors
    /// Fails if the file is not opened, or there is none.
    pub(crate) fn open(&self, modules: &Modules) -> OpenedFile {
        let region = self.regions.first().ok_or_else(|| access::Error::not_available("no region maps it"))?;
        let file = modules.open(region)?;
        Ok(if self.start == 0 { file } else { Box::new(FromStart::new(file, self.start)) })
    }

    /// Returns whether `name` selects the module: its whole path or file name, raw or as displayed, and `vdso` for
    /// `[vdso]`. The name of an archive selects all modules in it.
    pub fn is_called(&self, name: &[u8]) -> bool {
        let is_it = |one: &Name| {
            one.as_bytes() == name
                || one.file_name().as_bytes() == name
                || one.escaped().as_bytes() == name
                || one.escaped_file_name().as_bytes() == name
        };
        is_it(&self.name) || is_it(self.mapped_name()) || (self.is_vdso() && name == b"vdso")
    }
}

/// Returns whether a region belongs to a module: it maps a file, or is the vdso.
pub(super) fn belongs_to_module(region: &Region) -> bool {
    region.inode != 0 || region.name.as_bytes() == b"[vdso]"
}

/// Returns the parts of a load segment's `memory` in which `regions` map no file: `.bss`.
pub fn bss<'a>(
    memory: AddressRange,
    regions: impl IntoIterator<Item = &'a Region>,
) -> impl Iterator<Item = AddressRange> {
    let anonymous = regions.into_iter().filter(|region| !belongs_to_module(region));
    anonymous.filter_map(move |region| region.range.intersection(memory))
}

/// Returns the regions before `region`, down to the nearest one of a module, whose `.bss` it may be; `None` if only the
/// list of all regions has them.
pub(super) fn regions_before(target: &Target, region: &Region) -> access::Result<Option<Vec<Region>>> {
    target.process.nearest_below(region.range.start(), WIDEST_GAP, MOST_BSS_REGIONS, belongs_to_module)
}

/// Returns the anonymous regions after those of `modules`, which may be their `.bss`; `None` if only the list of all
/// regions has them.
pub(super) fn regions_after(target: &Target, modules: &[Region]) -> access::Result<Option<Vec<Region>>> {
    let mut regions = Vec::new();
    for (index, region) in modules.iter().enumerate() {
        let end = region.range.end();
        if modules.get(index + 1).is_some_and(|next| next.range.start() == end) {
            continue;
        }
        match target.process.nearest_above(end, WIDEST_GAP, MOST_BSS_REGIONS, belongs_to_module)? {
            Some(after) => regions.extend(after),
            None => return Ok(None),
        }
    }
    Ok(Some(regions))
}

/// Returns whether an address in `region` may have a name, without the list of all regions, which may be very long:
/// memory far above any file belongs to no module.
pub fn may_have_names(target: &Target, region: &Region) -> bool {
    belongs_to_module(region)
        || match regions_before(target, region) {
            Ok(Some(below)) => below.last().is_some_and(belongs_to_module),
            Ok(None) | Err(_) => true,
        }
}

/// Returns the modules among `regions` (in address order), in order of their first address. Without reading the files,
/// archives are not recognized.
pub fn modules(regions: &[Region]) -> Vec<Module> {
    group(regions, |_, _| None).0
}

/// Returns the modules, and for each region the index of its module. `stored` returns the file in an archive that a
/// region maps, with its number.
pub(super) fn group<'a, 's>(
    regions: impl IntoIterator<Item = &'a Region>,
    stored: impl Fn(usize, &Region) -> Option<&'s StoredFile>,
) -> (Vec<Module>, Vec<Option<usize>>) {
    let mut modules: Vec<Module> = Vec::new();
    let mut numbers: HashMap<(Device, u64, &Name, u64), usize> = HashMap::new();
    let of_region = regions
        .into_iter()
        .enumerate()
        .map(|(index, region)| {
            if !belongs_to_module(region) {
                return None;
            }
            let (name, start) = stored(index, region).map_or((&region.name, 0), |stored| (&stored.name, stored.start));
            let key = (region.device, region.inode, &region.name, start);
            let number = *numbers.entry(key).or_insert_with(|| {
                modules.push(Module {
                    name: name.clone(),
                    device: region.device,
                    inode: region.inode,
                    start,
                    regions: Vec::new(),
                });
                modules.len() - 1
            });
            if let Some(module) = modules.get_mut(number) {
                module.regions.push(region.clone());
            }
            Some(number)
        })
        .collect();
    (modules, of_region)
}

/// The most copies of one module. The dynamic linker loads at most 16.
const MOST_COPIES: usize = 64;

/// One copy of a module in the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LoadedCopy {
    /// Runtime address minus file address, modulo 2^64.
    bias: u64,
    /// The regions of the file that this bias explains.
    regions: Vec<AddressRange>,
}

impl LoadedCopy {
    /// Returns the file address of a runtime address.
    pub(super) fn file_address(&self, address: VirtualAddress) -> u64 {
        address.get().wrapping_sub(self.bias)
    }

    /// Returns the runtime address of a file address.
    pub(super) fn address(&self, file_address: u64) -> VirtualAddress {
        VirtualAddress::new(file_address.wrapping_add(self.bias))
    }

    /// Returns the pages of a load segment, including `.bss`; `None` if there are none.
    pub(super) fn memory(&self, segment: &Segment, page: u64) -> Option<AddressRange> {
        let start = self.address(segment.address).get() & !(page - 1);
        let end = segment.address.checked_add(segment.memory_size)?;
        let end = self.address(end).get().checked_next_multiple_of(page)?;
        AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end))
    }

    /// Returns the range from its first address to its last, including `.bss`.
    pub(super) fn hull(&self, segments: &[Segment], page: u64) -> Option<AddressRange> {
        let memory = segments.iter().filter_map(|one| self.memory(one, page));
        let start = self.regions.first()?.start();
        let end = self.regions.last()?.end();
        // Addresses in a damaged file are arbitrary.
        let last = memory.map(|range| range.end()).max();
        AddressRange::new(start, last.filter(|&last| last > end).unwrap_or(end))
    }

    /// Returns whether one of its regions contains `address`.
    pub(super) fn maps(&self, address: VirtualAddress) -> bool {
        self.regions.iter().any(|range| range.contains(address))
    }

    /// Returns whether `address` is in the memory of a load segment, including `.bss`.
    pub(super) fn loads(&self, segments: &[Segment], address: VirtualAddress) -> bool {
        in_segment(segments, self.file_address(address))
    }
}

/// Returns whether a file address is in the memory of a load segment.
pub(super) fn in_segment(segments: &[Segment], file_address: u64) -> bool {
    segments
        .iter()
        .any(|segment| file_address.checked_sub(segment.address).is_some_and(|into| into < segment.memory_size))
}

/// Finds the copies of `module`, the one with most regions first; none if the file is mapped as data.
pub(super) fn place(
    module: &Module,
    segments: &[Segment],
    page: PageSize,
    budget: &mut Budget,
) -> Result<Vec<LoadedCopy>, OutOfBudget> {
    let mut votes: HashMap<u64, u64> = HashMap::new();
    let mut all: Vec<Vec<(u64, usize)>> = Vec::new();
    for region in &module.regions {
        budget.spend(segments.len() as u64)?;
        let offset = region.offset.saturating_sub(module.start);
        all.push(candidates(region.range, offset, segments, page, module.is_vdso()));
    }
    for (region, biases) in module.regions.iter().zip(&all) {
        for &(bias, number) in biases {
            let segment = segments.get(number);
            let same = |one: fn(&Segment) -> bool, other: bool| {
                u64::from(segment.is_some_and(|segment| one(segment) == other))
            };
            // Permissions decide only between otherwise equal biases, because they change while a program starts.
            *votes.entry(bias).or_default() += 4
                + 2 * same(|segment| segment.is_executable, region.permissions.execute)
                + same(|segment| segment.is_writable, region.permissions.write);
        }
    }

    let mut copies: BTreeMap<u64, LoadedCopy> = BTreeMap::new();
    for (region, biases) in module.regions.iter().zip(&all) {
        // Of equal weights the first is chosen, in the order of the segments.
        let weight = |&&(bias, _): &&(u64, usize)| votes.get(&bias).copied().unwrap_or(0);
        let Some(&(bias, _)) = biases.iter().rev().max_by_key(weight) else {
            continue;
        };
        let copy = copies.entry(bias).or_insert_with(|| LoadedCopy { bias, regions: Vec::new() });
        copy.regions.push(region.range);
    }
    let begun = |copy: &LoadedCopy| {
        let starts = segments.iter().map(|segment| copy.address(segment.address));
        starts.filter(|&start| copy.maps(start)).count()
    };
    // A mapping of only the head of a file, made to inspect it, is not another copy of a library.
    let most = copies.values().map(begun).max();
    copies.retain(|_, copy| Some(begun(copy)) == most);
    let mut copies: Vec<LoadedCopy> = copies.into_values().collect();
    copies.sort_by_cached_key(|copy| std::cmp::Reverse(copy.regions.len()));
    copies.truncate(MOST_COPIES);
    Ok(copies)
}

/// Returns the biases that explain a mapping of the file from `offset` on at `range`, each with the number of its
/// segment. `is_whole` is for a vdso: the kernel maps the whole image, also the part after its last segment.
fn candidates(
    range: AddressRange,
    offset: u64,
    segments: &[Segment],
    page: PageSize,
    is_whole: bool,
) -> Vec<(u64, usize)> {
    let Some(last) = offset.checked_add(range.len() - 1) else {
        return Vec::new();
    };
    let moved = |segment: &Segment| segment.address.wrapping_sub(segment.offset);
    let mut candidates: Vec<(u64, usize)> = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        // Adjacent segments can share a region if they have the same bias. The part after the last segment is not
        // loaded.
        let ends_in_one =
            || segments.iter().any(|other| moved(other) == moved(segment) && pages_hold(other, last, page));
        if pages_hold(segment, offset, page) && (is_whole || ends_in_one()) {
            let bias = range.start().get().wrapping_sub(offset).wrapping_sub(moved(segment));
            if candidates.iter().all(|&(other, _)| other != bias) {
                candidates.push((bias, number));
            }
        }
    }
    candidates
}

/// Returns whether a file offset is in the pages with the segment's bytes.
fn pages_hold(segment: &Segment, offset: u64, page: PageSize) -> bool {
    let mask = page.bytes() - 1;
    segment.file_size > 0
        && offset >= segment.offset & !mask
        && segment.offset.checked_add(segment.file_size - 1).is_some_and(|last| offset <= last | mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Device, Name, Permissions};

    fn region(start: u64, length: u64, offset: u64, rights: &str) -> Region {
        let start = VirtualAddress::new(start);
        Region {
            range: AddressRange::new(start, start.checked_add(length).unwrap()).unwrap(),
            permissions: Permissions {
                read: rights.contains('r'),
                write: rights.contains('w'),
                execute: rights.contains('x'),
                shared: false,
                sharing_unknown: false,
                is_unknown: false,
            },
            offset,
            device: Device { major: 8, minor: 1 },
            inode: 7,
            name: Name::from("/usr/bin/program"),
            deleted: false,
        }
    }

    fn segment(offset: u64, address: u64, file_size: u64, memory_size: u64, rights: &str) -> Segment {
        Segment {
            offset,
            file_size,
            address,
            memory_size,
            is_writable: rights.contains('w'),
            is_executable: rights.contains('x'),
        }
    }

    /// The biases of the copies of a module with these regions.
    fn biases(regions: Vec<Region>, segments: &[Segment]) -> Vec<u64> {
        let module = super::super::modules(&regions).remove(0);
        let placed = place(&module, segments, PageSize::FOUR_KIB, &mut Budget::unlimited()).expect("no limit");
        placed.into_iter().map(|one| one.bias).collect()
    }

    /// The layout of a small program by GNU ld: the page of file offset 0x2000 is in the last two segments.
    const SEGMENTS: fn() -> Vec<Segment> = || {
        vec![
            segment(0, 0, 0x600, 0x600, "r"),
            segment(0x1000, 0x1000, 0x400, 0x400, "rx"),
            segment(0x2000, 0x2000, 0x100, 0x100, "r"),
            segment(0x2db0, 0x3db0, 0x260, 0x5000, "rw"),
        ]
    };

    const BASE: u64 = 0x5555_5555_4000;

    fn loaded(base: u64) -> Vec<Region> {
        vec![
            region(base, 0x1000, 0, "r"),
            region(base + 0x1000, 0x1000, 0x1000, "rx"),
            region(base + 0x2000, 0x1000, 0x2000, "r"),
            // RELRO: write-protected once it was relocated.
            region(base + 0x3000, 0x1000, 0x2000, "r"),
            region(base + 0x4000, 0x1000, 0x3000, "rw"),
        ]
    }

    #[test]
    fn a_program_that_may_be_anywhere() {
        assert_eq!(biases(loaded(BASE), &SEGMENTS()), [BASE]);
    }

    #[test]
    fn a_single_region_is_enough() {
        for kept in [0, 1, 2, 4] {
            let regions = vec![loaded(BASE).swap_remove(kept)];
            assert_eq!(biases(regions, &SEGMENTS()), [BASE], "region {kept}");
        }
    }

    #[test]
    fn a_program_with_fixed_addresses() {
        let mut segments = SEGMENTS();
        for segment in &mut segments {
            segment.address += 0x40_0000;
        }
        assert_eq!(biases(loaded(0x40_0000), &segments), [0]);
    }

    #[test]
    fn linked_above_where_it_was_loaded() {
        let mut segments = SEGMENTS();
        for segment in &mut segments {
            segment.address += 0x1000_0000;
        }
        let bias = 0x40_0000u64.wrapping_sub(0x1000_0000);
        assert_eq!(biases(loaded(0x40_0000), &segments), [bias]);
    }

    #[test]
    fn loaded_twice() {
        let mut regions = loaded(BASE);
        regions.extend(loaded(BASE + 0x10_0000));
        let mut found = biases(regions, &SEGMENTS());
        found.sort_unstable();
        assert_eq!(found, [BASE, BASE + 0x10_0000]);
    }

    #[test]
    fn regions_far_from_each_other_are_not_in_one_extent() {
        let mut regions = loaded(BASE);
        regions.extend(loaded(BASE + (1 << 45)));
        let extents = super::super::modules(&regions).remove(0).extents();
        let found: Vec<_> = extents.iter().map(|range| (range.start().get(), range.len())).collect();
        assert_eq!(found, [(BASE, 0x5000), (BASE + (1 << 45), 0x5000)]);
    }

    #[test]
    fn mapped_as_data() {
        let whole = region(BASE, 0x8000, 0, "r");
        assert_eq!(biases(vec![whole.clone()], &SEGMENTS()), [0; 0]);
        let mut both = loaded(BASE);
        both.push(region(BASE + 0x10_0000, 0x1000, 0, "r"));
        both.push(region(BASE + 0x20_0000, 0x8000, 0, "r"));
        assert_eq!(biases(both, &SEGMENTS()), [BASE]);
    }

    #[test]
    fn zeroed_memory_behind_the_file() {
        let module = super::super::modules(&loaded(BASE)).remove(0);
        let segments = SEGMENTS();
        let placed = place(&module, &segments, PageSize::FOUR_KIB, &mut Budget::unlimited()).expect("no limit");
        let loads = |address| placed[0].loads(&segments, VirtualAddress::new(BASE + address));
        assert!(loads(0x3db0) && loads(0x4010) && loads(0x8daf));
        assert!(!loads(0x8db0) && !loads(0x3daf));
    }

    #[test]
    fn segments_at_the_edges_of_the_number_range() {
        let edges = [0, 1, 0xfff, 0x1000, u64::MAX - 0xfff, u64::MAX];
        for offset in edges {
            for size in edges {
                let segments = [segment(offset, size, size, size, "r"), segment(size, offset, offset, 1, "x")];
                for start in [0, 0x1000, u64::MAX - 0x1fff] {
                    for at in [0, 0x1000, !0xfff] {
                        biases(vec![region(start, 0x1000, at, "r")], &segments);
                    }
                }
            }
        }
    }
}
