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
/// comparison is of the mappings at the addresses.
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
    changes.sort_by_key(|change| change.range);
    changes
}

/// The parts of `region` where none of `others` is the same mapping, each with one of `others` that is elsewhere in
/// `region`.
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

/// Whether both are of one mapping, as far as `maps` shows: both have the same bytes of the same file at the same
/// address, or both are private memory of the same name. Their pages can be compared.
///
/// A file may be renamed or deleted, and memory may grow, merge and change its rights: it stays the same mapping.
/// Private memory that replaces private memory cannot be told from it.
pub(super) fn is_same_mapping(a: &Region, b: &Region) -> bool {
    let has_path = |region: &Region| region.name.as_bytes().starts_with(b"/");
    let base = |region: &Region| region.offset.wrapping_sub(region.range.start().get());
    let is_same_object = if has_path(a) && has_path(b) {
        base(a) == base(b)
    } else {
        own_name(a) == own_name(b) && (a.inode == 0 || base(a) == base(b))
    };
    a.device == b.device && a.inode == b.inode && a.permissions.shared == b.permissions.shared && is_same_object
}

/// The name that a region was given. `[heap]` and `[stack]` only say where it is: the kernel calls that part of the
/// memory so that has a certain address.
fn own_name(region: &Region) -> &[u8] {
    match region.name.as_bytes() {
        b"[heap]" | b"[stack]" => b"",
        name => name,
    }
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
}
