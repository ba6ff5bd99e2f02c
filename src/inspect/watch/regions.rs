//! Changes of regions between two samples.

use crate::kernel::{AddressRange, Region};
use crate::report::EventKind;

/// A range of addresses whose region has changed.
pub(super) struct RegionChange<'a> {
    pub kind: EventKind,
    pub range: AddressRange,
    pub before: Option<&'a Region>,
    pub after: Option<&'a Region>,
}

/// Compares two lists in address order. A region split or joined by a change of permissions has not gone: the
/// comparison is of the objects at the addresses.
pub(super) fn compare<'a>(before: &[&'a Region], after: &[&'a Region]) -> Vec<RegionChange<'a>> {
    let lacks = |list: &[&Region], region: &Region| {
        let index = list.partition_point(|other| other.range.start() < region.range.start());
        list.get(index).copied() != Some(region)
    };
    let gone = before.iter().copied().filter(|one| lacks(after, one));
    let come = after.iter().copied().filter(|one| lacks(before, one));
    let (gone, come): (Vec<_>, Vec<_>) = (gone.collect(), come.collect());
    let mut changes = Vec::new();
    for &old in &gone {
        for new in overlapping(&come, old.range).filter(|new| is_same_object(old, new)) {
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
    changes.sort_by_key(|change| change.range);
    changes
}

/// The parts of `region` where none of `others` maps the same object, each with one of `others` that maps it elsewhere
/// in `region`.
fn parts<'a>(region: &Region, others: &[&'a Region]) -> Vec<(AddressRange, Option<&'a Region>)> {
    let kept: Vec<&Region> = overlapping(others, region.range).filter(|other| is_same_object(region, other)).collect();
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

/// Whether both map the same object, with the same bytes at the same address.
fn is_same_object(a: &Region, b: &Region) -> bool {
    let base = |region: &Region| region.offset.wrapping_sub(region.range.start().get());
    a.device == b.device
        && a.inode == b.inode
        && a.name == b.name
        && a.permissions.shared == b.permissions.shared
        && (a.inode == 0 || base(a) == base(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Name, Permissions, VirtualAddress};

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
        compare(&before, &after)
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
            said(&[region(0x1000, 0x2000, true, "a")], &[region(0x1000, 0x2000, true, "b")]),
            [(EventKind::RegionWent, 0x1000, 0x2000), (EventKind::RegionAppeared, 0x1000, 0x2000)]
        );
    }
}
