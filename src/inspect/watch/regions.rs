//! The changes between two samples, and the comparison of regions.

use super::words::spanning;
use crate::kernel::{AddressRange, PageSize, Region, State, VirtualAddress};
use crate::report::{EventKind, NetEffect, PageFacts};
use std::collections::HashMap;

/// A range of addresses with a change of its region.
pub(super) struct RegionChange<'a> {
    pub kind: EventKind,
    pub range: AddressRange,
    pub before: Option<&'a Region>,
    pub after: Option<&'a Region>,
}

/// Compares two lists of regions in address order, by the mappings at each address: a region that a change of
/// permissions splits or joins has not gone.
pub(super) fn compare_regions<'a>(before: &[&'a Region], after: &[&'a Region]) -> Vec<RegionChange<'a>> {
    let lacks = |list: &[&Region], region: &Region| {
        let index = list.partition_point(|other| other.range.start() < region.range.start());
        list.get(index).copied() != Some(region)
    };
    let gone = before.iter().copied().filter(|one| lacks(after, one));
    let come = after.iter().copied().filter(|one| lacks(before, one));
    let (gone, come): (Vec<_>, Vec<_>) = (gone.collect(), come.collect());
    let mut changes = Vec::new();
    for &old in &gone {
        for new in overlapping(&come, old.range).filter(|new| is_same_mapping(old, new)) {
            if let Some(range) = old.range.intersection(new.range)
                && old.permissions != new.permissions
            {
                changes.push(RegionChange {
                    kind: EventKind::RegionChanged,
                    range,
                    before: Some(old),
                    after: Some(new),
                });
            }
        }
        for (range, rest) in parts(old, &come) {
            changes.push(RegionChange {
                kind: match rest {
                    Some(_) => EventKind::RegionShrank,
                    None => EventKind::RegionWent,
                },
                range,
                before: Some(old),
                after: rest,
            });
        }
    }
    for &new in &come {
        for (range, rest) in parts(new, &gone) {
            changes.push(RegionChange {
                kind: match rest {
                    Some(_) => EventKind::RegionGrew,
                    None => EventKind::RegionAppeared,
                },
                range,
                before: rest,
                after: Some(new),
            });
        }
    }
    changes.sort_by_cached_key(|change| change.range);
    changes
}

/// Returns the parts of `region` in which none of `others` is the same mapping. With each, it returns one of `others`
/// that is the same mapping elsewhere in `region`, if there is one.
fn parts<'a>(region: &Region, others: &[&'a Region]) -> Vec<(AddressRange, Option<&'a Region>)> {
    let kept: Vec<&Region> = overlapping(others, region.range).filter(|other| is_same_mapping(region, other)).collect();
    let rest = kept.first().copied();
    let mut parts = Vec::new();
    let mut from = region.range.start();
    for other in kept {
        parts.extend(AddressRange::new(from, other.range.start()).map(|part| (part, rest)));
        from = from.max(other.range.end());
    }
    parts.extend(AddressRange::new(from, region.range.end()).map(|part| (part, rest)));
    parts
}

fn overlapping<'a, 'b>(
    regions: &'b [&'a Region],
    range: AddressRange,
) -> impl Iterator<Item = &'a Region> + use<'a, 'b> {
    let first = regions.partition_point(|region| region.range.end() <= range.start());
    regions
        .get(first..)
        .unwrap_or_default()
        .iter()
        .copied()
        .take_while(move |region| region.range.start() < range.end())
}

/// Returns whether both regions are of one mapping, as far as `maps` shows: they have the same bytes of the same file
/// at the same address, or are private memory with the same name. Then their pages can be compared.
///
/// A file may be renamed or deleted, and memory may grow, merge and change its permissions: the mapping stays the same.
/// Private memory that replaces other private memory looks like the same mapping.
pub(super) fn is_same_mapping(a: &Region, b: &Region) -> bool {
    let has_path = |region: &Region| region.name.as_bytes().starts_with(b"/");
    let base = |region: &Region| region.offset.wrapping_sub(region.range.start().get());
    let is_same_object = if has_path(a) && has_path(b) {
        base(a) == base(b)
    } else {
        own_name(a) == own_name(b) && (!a.maps_object() || base(a) == base(b))
    };
    a.device == b.device && a.inode == b.inode && a.permissions.shared == b.permissions.shared && is_same_object
}

/// Returns the name that was given to a region. `[heap]` and `[stack]` are none: the kernel shows them for memory at a
/// certain address.
fn own_name(region: &Region) -> &[u8] {
    match region.name.as_bytes() {
        b"[heap]" | b"[stack]" => b"",
        name => name,
    }
}

/// A change between two samples.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The kind of change.
    pub kind: EventKind,
    /// The first address; `None` for a change of the whole process.
    pub address: Option<VirtualAddress>,
    /// The number of neighbouring pages; 0 for the whole process. In a watch, their frames are consecutive too, before
    /// and after, except those of pages that came, went or were swapped. For a region that went or shrank, the number
    /// of its pages that were in memory or in swap.
    pub pages: u64,
    /// The net effect on the memory of the process.
    pub effect: NetEffect,
    /// The addresses that changed, for a change of a region.
    pub range: Option<AddressRange>,
    /// The first page before the change.
    pub before: Option<PageFacts>,
    /// The first page after the change.
    pub after: Option<PageFacts>,
    /// The region. For a change of a region, it is the earlier one, unless the region is new.
    pub region: Option<Region>,
    /// The later region, for a change of a region that still exists.
    pub region_after: Option<Region>,
}

impl Change {
    /// Returns the addresses that changed, with pages of `size` bytes; `None` for a change of the whole process.
    pub fn addresses(&self, size: PageSize) -> Option<AddressRange> {
        self.range.or_else(|| AddressRange::of_length(self.address?, self.pages.saturating_mul(size.bytes())))
    }

    pub(crate) fn of_process(kind: EventKind) -> Change {
        Change {
            kind,
            address: None,
            pages: 0,
            effect: NetEffect::default(),
            range: None,
            before: None,
            after: None,
            region: None,
            region_after: None,
        }
    }
}

/// The place of the contents of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    Memory,
    Swap,
    Nowhere,
}

impl Residence {
    pub fn of(state: State) -> Residence {
        match state {
            // A migrating page keeps its memory: the frame that it leaves, or the one that it gets.
            State::Present | State::Migrating => Residence::Memory,
            State::Swapped => Residence::Swap,
            _ => Residence::Nowhere,
        }
    }
}

/// Returns the net effect on memory if pages of `bytes` bytes change from one state to another.
pub(super) fn effect(before: State, after: State, bytes: u64) -> NetEffect {
    let (before, after) = (Residence::of(before), Residence::of(after));
    let bytes_if = |residence| {
        let is_there = |one| one == residence;
        match (is_there(before), is_there(after)) {
            (false, true) => (bytes, 0),
            (true, false) => (0, bytes),
            _ => (0, 0),
        }
    };
    let ((came, went), (swap_came, swap_went)) = (bytes_if(Residence::Memory), bytes_if(Residence::Swap));
    NetEffect { came, went, swap_came, swap_went }
}

/// Gives each region a number. A region keeps it when it grows, shrinks, changes its permissions or is split. A region
/// that was unmapped and is mapped again in the same way gets its number again.
#[derive(Default)]
pub struct RegionGroups {
    /// The regions of the last sample, in address order.
    last: Vec<(Region, Option<usize>)>,
    /// All regions that were seen; only the last ones if there were too many.
    known: HashMap<Region, Option<usize>>,
    groups: Vec<Region>,
    /// The most regions that get numbers beside those of the first sample.
    most_later: Option<usize>,
    /// The most numbers, once a sample was seen.
    most: Option<usize>,
}

impl RegionGroups {
    /// Limits the number of regions that get numbers beside those of the first sample.
    pub fn of_at_most(later: usize) -> Self {
        RegionGroups { most_later: Some(later), ..RegionGroups::default() }
    }

    /// Continues with the regions of the next sample, in address order.
    pub fn see<'r>(&mut self, regions: impl Iterator<Item = &'r Region>) {
        let regions: Vec<&Region> = regions.collect();
        if regions.iter().copied().eq(self.last.iter().map(|(region, _)| region)) {
            return;
        }
        if let (None, Some(later)) = (self.most, self.most_later) {
            self.most = Some(regions.len() + later);
        }
        let now: Vec<(Region, Option<usize>)> =
            regions.into_iter().map(|region| (region.clone(), self.number(region))).collect();
        if self.most.is_some_and(|most| self.known.len() > 2 * most + now.len()) {
            self.known = self.last.iter().chain(&now).cloned().collect();
        }
        // The longest part of a region that was split determines its permissions.
        let mut shortest_first: Vec<&(Region, Option<usize>)> = now.iter().collect();
        shortest_first.sort_by_cached_key(|(region, _)| region.range.len());
        for (region, number) in shortest_first {
            if let Some(group) = number.and_then(|number| self.groups.get_mut(number)) {
                let range = spanning(group.range, region.range);
                *group = Region { range, ..region.clone() };
            }
        }
        self.last = now;
    }

    /// Returns the number of a region. A new region gets that of the last region with which it shares most addresses,
    /// if possible one with the same permissions. Returns `None` if the region appeared after there were too many.
    pub fn number(&mut self, region: &Region) -> Option<usize> {
        if let Some(number) = self.known.get(region) {
            return *number;
        }
        let first = self.last.partition_point(|(one, _)| one.range.end() <= region.range.start());
        let touched = self.last.iter().skip(first);
        let overlapping = touched.map_while(|(one, number)| Some((one, number, one.range.intersection(region.range)?)));
        let earlier = overlapping.filter(|(one, ..)| is_same_mapping(one, region));
        let closest = earlier.max_by_key(|(one, _, part)| (one.permissions == region.permissions, part.len()));
        let next = Some(self.groups.len()).filter(|number| self.most.is_none_or(|most| *number < most));
        let number = closest.map_or(next, |(_, number, _)| *number);
        if number == Some(self.groups.len()) {
            self.groups.push(region.clone());
        }
        self.known.insert(region.clone(), number);
        number
    }

    /// Returns the region with this number as it was seen last, with all addresses that it ever had.
    pub fn region(&self, number: usize) -> Option<&Region> {
        self.groups.get(number)
    }

    /// Discards the regions, so that no later one gets the number of an earlier one.
    pub fn forget(&mut self) {
        self.last.clear();
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Name, Permissions, VirtualAddress};
    use crate::process::fake;

    fn region(start: u64, end: u64, write: bool, name: &str) -> Region {
        Region {
            range: AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)).unwrap(),
            permissions: Permissions { read: true, write, ..Permissions::default() },
            offset: 0,
            device: Default::default(),
            inode: 0,
            name: Name::from(name),
            deleted: false,
        }
    }

    fn said(before: &[Region], after: &[Region]) -> Vec<(EventKind, u64, u64)> {
        let (before, after): (Vec<_>, Vec<_>) = (before.iter().collect(), after.iter().collect());
        compare_regions(&before, &after)
            .iter()
            .map(|change| {
                let range = change.range;
                (change.kind, range.start().get(), range.end().get())
            })
            .collect()
    }

    #[test]
    fn each_kind_of_change() {
        use EventKind::*;
        let heap = |end| region(0x1000, end, true, "[heap]");
        assert_eq!(said(&[heap(0x3000)], &[heap(0x3000)]), []);
        assert_eq!(said(&[heap(0x3000)], &[heap(0x5000)]), [(RegionGrew, 0x3000, 0x5000)]);
        assert_eq!(said(&[heap(0x5000)], &[heap(0x3000)]), [(RegionShrank, 0x3000, 0x5000)]);
        assert_eq!(said(&[], &[heap(0x2000)]), [(RegionAppeared, 0x1000, 0x2000)]);
        assert_eq!(said(&[heap(0x2000)], &[]), [(RegionWent, 0x1000, 0x2000)]);
    }

    #[test]
    fn a_stack_grows_downwards() {
        let stack = |start| region(start, 0x9000, true, "[stack]");
        assert_eq!(said(&[stack(0x7000)], &[stack(0x5000)]), [(EventKind::RegionGrew, 0x5000, 0x7000)]);
    }

    #[test]
    fn rights_of_a_part_split_no_region_away() {
        let whole = [region(0x1000, 0x6000, true, "")];
        let split =
            [region(0x1000, 0x2000, true, ""), region(0x2000, 0x3000, false, ""), region(0x3000, 0x6000, true, "")];
        let changed = [(EventKind::RegionChanged, 0x2000, 0x3000)];
        assert_eq!(said(&whole, &split), changed);
        assert_eq!(said(&split, &whole), changed);
    }

    #[test]
    fn a_hole_in_the_middle() {
        let whole = [region(0x1000, 0x6000, true, "")];
        let holed = [region(0x1000, 0x2000, true, ""), region(0x3000, 0x6000, true, "")];
        assert_eq!(said(&whole, &holed), [(EventKind::RegionShrank, 0x2000, 0x3000)]);
    }

    #[test]
    fn another_object_at_the_same_addresses() {
        assert_eq!(
            said(&[region(0x1000, 0x2000, true, "[anon:a]")], &[region(0x1000, 0x2000, true, "[anon:b]")]),
            [(EventKind::RegionWent, 0x1000, 0x2000), (EventKind::RegionAppeared, 0x1000, 0x2000)]
        );
    }

    #[test]
    fn what_is_one_mapping() {
        let memory = |name: &str| region(0x1000, 0x3000, true, name);
        let file = |name: &str, inode, offset| Region { inode, offset, ..memory(name) };
        let shared = |region: Region| {
            let permissions = Permissions { shared: true, ..region.permissions };
            Region { permissions, ..region }
        };
        // A part of a file mapping that was split begins later in the file.
        let later = Region { range: region(0x2000, 0x3000, true, "").range, ..file("/a", 7, 0x5000) };
        for (one, other, is_same) in [
            (memory(""), memory("[heap]"), true),
            (memory("[stack]"), memory(""), true),
            (memory(""), memory("[anon:a]"), false),
            (memory(""), memory("[vdso]"), false),
            (memory(""), file("/a", 7, 0), false),
            (file("/a", 7, 0x4000), file("/a", 7, 0x4000), true),
            (file("/a", 7, 0x4000), file("/renamed", 7, 0x4000), true),
            (file("/a", 7, 0x4000), later, true),
            (file("/a", 7, 0x4000), file("/a", 7, 0x5000), false),
            (file("/a", 7, 0x4000), file("/a", 8, 0x4000), false),
            (file("/a", 7, 0x4000), shared(file("/a", 7, 0x4000)), false),
            // The inode of the first System V segment is 0.
            (shared(file("/SYSV00000000", 0, 0)), shared(file("/SYSV00000000", 0, 0x1000)), false),
            (file("anon_inode:[a]", 9, 0), file("anon_inode:[b]", 9, 0), false),
        ] {
            assert_eq!(is_same_mapping(&one, &other), is_same, "{one:?}, {other:?}");
            assert_eq!(is_same_mapping(&other, &one), is_same, "{other:?}, {one:?}");
        }
    }

    fn with(start: u64, pages: u64, write: bool, name: &str) -> Region {
        let permissions = Permissions { read: true, write, ..Permissions::default() };
        Region { permissions, name: Name::from(name), ..fake::region(start, pages) }
    }

    /// Returns the numbers of the regions of each list in turn.
    fn numbers(lists: &[Vec<Region>]) -> (Vec<Vec<usize>>, RegionGroups) {
        let mut groups = RegionGroups::default();
        let each = |regions: &Vec<Region>| {
            groups.see(regions.iter());
            regions.iter().map(|region| groups.number(region).expect("a number")).collect()
        };
        (lists.iter().map(each).collect(), groups)
    }

    #[test]
    fn a_region_that_grows_and_shrinks_stays_one() {
        let heap = |pages| with(0x1000, pages, true, "[heap]");
        let stack = |start: u64| with(start, 0x9000 - start, true, "[stack]");
        let (found, groups) = numbers(&[
            vec![heap(4), stack(0x8000)],
            vec![heap(9), stack(0x7000)],
            vec![],
            vec![heap(9), stack(0x8000)],
        ]);
        assert_eq!(found, [vec![0, 1], vec![0, 1], vec![], vec![0, 1]]);
        assert_eq!(groups.region(0), Some(&heap(9)));
        assert_eq!(groups.region(1), Some(&stack(0x7000)), "all addresses that it had");
    }

    #[test]
    fn memory_of_other_rights_is_another_region_even_where_the_border_moves() {
        let arena = |used| vec![with(0x1000, used, true, ""), with(0x1000 + used, 100 - used, false, "")];
        let (found, groups) = numbers(&[arena(10), arena(20), arena(60)]);
        assert_eq!(found, [[0, 1], [0, 1], [0, 1]]);
        assert_eq!(groups.region(0), Some(&with(0x1000, 60, true, "")));
    }

    #[test]
    fn parts_belong_to_the_region_that_was_split() {
        let whole = with(0x1000, 10, true, "");
        let parts = vec![with(0x1000, 6, true, ""), with(0x1006, 1, false, ""), with(0x1007, 3, true, "")];
        let (found, groups) = numbers(&[vec![whole.clone()], parts]);
        assert_eq!(found, [vec![0], vec![0, 0, 0]]);
        assert_eq!(groups.region(0), Some(&whole));
    }

    /// Memory that grows is a different region in each sample.
    #[test]
    fn few_of_very_many_are_remembered() {
        let mut groups = RegionGroups::of_at_most(3);
        for pages in 1..1000 {
            let (grows, new) = (with(0x1000, pages, true, "[heap]"), with(0x2000 + 2 * pages, 1, true, ""));
            groups.see([&grows, &new].into_iter());
            assert_eq!(groups.number(&grows), Some(0));
            assert_eq!(groups.number(&new), (pages <= 4).then_some(pages as usize));
        }
        assert!(groups.groups.len() == 5 && groups.known.len() < 20, "{}", groups.known.len());
    }

    #[test]
    fn other_memory_at_the_same_place_is_another_region() {
        let one = with(0x1000, 4, true, "[anon:one]");
        let other = with(0x1000, 4, true, "[anon:other]");
        let neighbour = with(0x1004, 4, true, "[anon:one]");
        let (found, mut groups) = numbers(&[vec![one.clone()], vec![other], vec![one.clone(), neighbour]]);
        assert_eq!(found, [vec![0], vec![1], vec![0, 2]]);
        // The regions are discarded, as after an exec.
        groups.forget();
        assert_eq!(groups.number(&one), Some(3));
    }
}
