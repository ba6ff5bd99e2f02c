//! Single pages, rows and totals of fake processes.

use super::{
    AddressSpace, Answer, Evidence, FactReader, Group, Groups, Neighbours, Page, PageRow, PageRows, PhysicalRuns,
    Totals,
};
use crate::kernel::{
    Key, Kind, Name, PageFact, PageField, PageFlags, PageMapEntry, PageSize, PhysicalAddress, State, VirtualAddress,
};
use crate::process::Target;
use crate::process::fake::{EXCLUSIVE, FILE, HUGE, PAGE, PRESENT, World, region};
use crate::report::Reason;
use std::sync::atomic::Ordering;

const SIZE: PageSize = PageSize::FOUR_KIB;

/// Sweeps everything and gives each page with its region.
fn each(target: &Target, need: Evidence, mut visit: impl FnMut(&Page, Option<usize>)) {
    let space = AddressSpace::of(target).expect("a space");
    let mut pages = space.pages(&space.spans(), need);
    while let Some(chunk) = pages.next().expect("a sweep") {
        chunk.pages().for_each(|page| visit(&page, chunk.region_index));
    }
}

fn rows(target: &Target, need: Evidence) -> Vec<PageRow> {
    let mut rows = PageRows::new(SIZE);
    let mut all = Vec::new();
    each(target, need, |page, region| all.extend(rows.push(page, region)));
    all.extend(rows.finish());
    all
}

#[test]
fn rows_join_neighbours_that_are_the_same() {
    let mut world = World::new([region(0x100, 20), region(0x114, 4)]);
    world.maps(0x100, 3, 500);
    // The frames go on, and so does a row across a folio's head and tails.
    world.maps(0x103, 4, 503);
    world.flags.insert(503, (PageFlags::ANON | PageFlags::COMPOUND_HEAD).bits());
    for frame in 504..507 {
        world.flags.insert(frame, (PageFlags::ANON | PageFlags::COMPOUND_TAIL).bits());
    }
    // Other frames, other counts, another region.
    world.maps(0x107, 2, 900);
    world.maps(0x109, 2, 902);
    for (page, frame) in [(0x109, 902), (0x10a, 903)] {
        world.entries.insert(page, PRESENT | frame);
        world.counts.insert(frame, 2);
    }
    world.maps(0x112, 2, 300);
    world.maps(0x114, 2, 302);
    let (_, target) = world.target();
    let brief = |row: &PageRow| (row.page.address.get() / PAGE, row.page.pages, row.region);
    let all = rows(&target, Evidence::FLAGS | Evidence::COUNTS);
    let briefs: Vec<_> = all.iter().map(brief).collect();
    assert_eq!(
        briefs,
        [
            (0x100, 7, Some(0)),
            (0x107, 2, Some(0)),
            (0x109, 2, Some(0)),
            (0x10b, 7, Some(0)),
            (0x112, 2, Some(0)),
            (0x114, 2, Some(1)),
            (0x116, 2, Some(1)),
        ]
    );
    assert_eq!(all[0].page.flags, Some(PageFlags::ANON), "what all of them have");
    // With hidden frames there are fewer rows. Physical runs do not end with regions.
    let mut runs = PhysicalRuns::new(SIZE);
    let mut lengths = Vec::new();
    each(&target, Evidence::ENTRIES, |page, _| lengths.extend(runs.push(page, None)));
    lengths.extend(runs.finish());
    let lengths: Vec<_> = lengths.iter().map(|run| (run.frame.map(|frame| frame.get()), run.pages)).collect();
    assert_eq!(lengths, [(Some(500), 7), (Some(900), 4), (None, 7), (Some(300), 4), (None, 2)]);
    let mut totals = Totals::new(SIZE, Evidence::ENTRIES);
    each(&target, Evidence::ENTRIES, |page, _| totals.add(page));
    assert_eq!((totals.runs(), totals.longest_run_bytes()), (Some(3), Some(7 * PAGE)));
    assert_eq!((totals.state(State::Present), totals.bytes()), (15, 24 * PAGE));
}

#[test]
fn the_zero_page_is_one_row_and_no_run() {
    let mut world = World::new([region(0x100, 20)]);
    for page in 0x100..0x108 {
        world.entries.insert(page, PRESENT | 1);
    }
    world.flags.insert(1, PageFlags::ZERO_PAGE.bits());
    world.maps(0x108, 4, 2);
    let (_, target) = world.target();
    for need in [Evidence::KINDS, Evidence::KINDS | Evidence::FLAGS | Evidence::COUNTS] {
        let lengths: Vec<u64> = rows(&target, need).iter().map(|row| row.page.pages).collect();
        assert_eq!(lengths, [8, 4, 8]);
        let mut runs = PhysicalRuns::new(SIZE);
        let mut all = Vec::new();
        let mut totals = Totals::new(SIZE, Evidence::ENTRIES);
        each(&target, need, |page, _| {
            all.extend(runs.push(page, None));
            totals.add(page);
        });
        all.extend(runs.finish());
        let brief: Vec<_> = all.iter().map(|run| (run.frame.map(|frame| frame.get()), run.pages, run.kind)).collect();
        let anonymous = Some(Kind::Anonymous);
        assert_eq!(brief, [(Some(1), 8, Some(Kind::Zero)), (Some(2), 4, anonymous), (None, 8, anonymous)]);
        assert_eq!(all.iter().filter(|run| run.is_zero()).count(), 1);
        assert_eq!((totals.runs(), totals.longest_run_bytes()), (Some(1), Some(4 * PAGE)));
        assert_eq!((totals.zeros(), totals.perhaps_zeros()), (8, 0));
    }
    // Without flags and kinds, only an entry of a page that is mapped here alone tells that it is none.
    for (bits, perhaps) in [(0, 12), (EXCLUSIVE, 0)] {
        let mut totals = Totals::new(SIZE, Evidence::ENTRIES);
        each(&target, Evidence::ENTRIES, |page, _| {
            let entry = PageMapEntry::new(page.entry.raw() & !EXCLUSIVE | bits);
            totals.add(&Page { kind: None, flags: None, entry, ..*page });
        });
        assert_eq!((totals.zeros(), totals.perhaps_zeros()), (0, perhaps));
    }
    let zeros = rows(&target, Evidence::KINDS)[0].page;
    let frames: Vec<_> = zeros.each(SIZE).map(|page| page.frame()).collect();
    assert_eq!(frames, vec![zeros.frame(); 8]);
}

#[test]
fn a_huge_page_is_one_row() {
    let mut world = World::new([region(0, 4 * HUGE)]);
    world.maps_huge(HUGE, 100 * HUGE);
    let (_, target) = world.target();
    let rows = rows(&target, Evidence::FLAGS | Evidence::COUNTS | Evidence::HUGE);
    let lengths: Vec<u64> = rows.iter().map(|row| row.page.pages).collect();
    assert_eq!(lengths, [HUGE, HUGE, 2 * HUGE]);
    assert_eq!(rows[1].page.huge, Some(true));
}

#[test]
fn groups_add_up() {
    let mut world = World::new([region(0x100, 100), region(0x200, 10)]);
    world.maps(0x100, 30, 500);
    world.maps(0x205, 3, 700);
    let (_, target) = world.target();
    let space = AddressSpace::of(&target).expect("a space");
    let grouped = |by: Key| {
        let reader = FactReader::of_pages(&space);
        let need = match by {
            Key::Page(field) => reader.require(field).expect("it can be known").unwrap_or_default(),
            _ => Evidence::empty(),
        };
        let mut groups = Groups::new(by, reader);
        each(&target, need, |page, region| groups.add(page, region));
        let groups = groups.finish().pages.into_iter();
        groups.map(|((group, _), pages)| (group, pages)).collect::<Vec<_>>()
    };
    let fact = |fact| Key::Page(PageField::Fact(fact));
    let known = |value| Group::Known(Answer::Is(value));
    assert_eq!(
        grouped(fact(PageFact::State)),
        [(known(State::Untouched as u64), 77), (known(State::Present as u64), 33)]
    );
    assert_eq!(grouped(Key::Page(PageField::State(State::Present))), [(known(0), 77), (known(1), 33)]);
    assert_eq!(grouped(Key::Region), [(Group::Region(Some(0)), 100), (Group::Region(Some(1)), 10)]);
    assert_eq!(grouped(fact(PageFact::Kind)), [(known(Kind::Anonymous as u64), 110)]);
    assert_eq!(grouped(fact(PageFact::Flags)), [(Group::Known(Answer::None), 77), (known(PageFlags::ANON.bits()), 33)]);
}

/// A file of a filesystem without a disk, mapped shared.
fn device_file(name: &str, offset: u64) -> crate::kernel::Region {
    let mut region = region(0x1000, 16);
    region.name = Name::from(name);
    region.inode = 7;
    region.offset = offset;
    region.permissions.shared = true;
    region
}

#[test]
fn physical_addresses_of_devices_come_from_the_file() {
    let address = VirtualAddress::new(0x1002 * PAGE + 5);
    let physical = |name: &str| {
        let (_, target) = World::new([device_file(name, 0xfe00_0000)]).target();
        let space = AddressSpace::at(&target, address).expect("a space");
        let detail = space.detail(address).expect("its detail");
        assert_eq!((detail.page.state(), detail.page.kind), (State::PfnMapped, Some(Kind::DeviceMemory)));
        detail.physical
    };
    let expected = Ok(PhysicalAddress::new(0xfe00_0000 + 2 * PAGE + 5));
    assert_eq!(physical("/dev/mem"), expected);
    assert_eq!(physical("/sys/devices/pci0000:00/0000:00:01.0/resource0"), expected);
    assert_eq!(physical("/sys/devices/pci0000:00/0000:00:01.0/resource2_wc"), expected);
    // A file that only has such a name is an ordinary one, whatever the address.
    let (_, target) = World::new([device_file("/tmp/resource0", 0xfe00_0000)]).target();
    let space = AddressSpace::at(&target, address).expect("a space");
    let detail = space.detail(address).expect("its detail");
    assert_eq!((detail.page.state(), detail.page.kind), (State::Untouched, Some(Kind::File)));
    assert!(matches!(detail.physical, Err(Reason::NotApplicable(_))));
}

#[test]
fn an_address_has_the_frame_and_the_offset_in_it() {
    let mut world = World::new([region(0x100, 2), region(0x200, 2)]);
    world.entries.insert(0x100, PRESENT | EXCLUSIVE | 0x1234);
    world.counts.insert(0x1234, 1);
    let (_, target) = world.target();
    let address = VirtualAddress::new(0x100 * PAGE + 0xabc);
    let space = AddressSpace::at(&target, address).expect("a space");
    let detail = space.detail(address).expect("its detail");
    assert_eq!(detail.physical, Ok(PhysicalAddress::new(0x0123_4abc)));
    assert_eq!((detail.map_count, detail.exclusive), (Ok(1), Ok(true)));
    assert_eq!(detail.page.address.get(), 0x100 * PAGE);
    // Between two regions, though only the one asked for was read.
    let between = VirtualAddress::new(0x150 * PAGE);
    let space = AddressSpace::at(&target, between).expect("a space");
    let detail = space.detail(between).expect("its detail");
    let (below, above) = detail.nearest.expect("neighbours");
    assert_eq!(below.map(|region| region.range.start().get()), Some(0x100 * PAGE));
    assert_eq!(above.map(|region| region.range.start().get()), Some(0x200 * PAGE));
    assert_eq!(detail.page.state(), State::Unmapped);
}

#[test]
fn exclusive_inside_a_huge_mapping_takes_a_map_count() {
    let page = |count, huge, bit: u64| Page {
        entry: crate::kernel::PageMapEntry::new(PRESENT | bit | 5),
        kind: Some(Kind::Anonymous),
        map_count: count,
        huge,
        ..Page::new(VirtualAddress::new(0), State::Present.into())
    };
    assert_eq!(page(None, Some(false), EXCLUSIVE).exclusive(), Some(true));
    assert_eq!(page(None, Some(false), 0).exclusive(), Some(false));
    assert_eq!(page(None, Some(true), EXCLUSIVE).exclusive(), None);
    assert_eq!(page(None, None, EXCLUSIVE).exclusive(), None);
    let merged = Page { kind: Some(Kind::Ksm), ..page(None, None, 0) };
    assert_eq!(merged.exclusive(), Some(false));
    assert_eq!(page(Some(1), Some(true), 0).exclusive(), Some(true));
    assert_eq!(page(Some(2), Some(true), EXCLUSIVE).exclusive(), Some(false));
}

#[test]
fn files_of_a_mounted_hugetlbfs_are_hugetlb_with_flags_and_without() {
    let device = crate::kernel::Device { major: 0, minor: 40 };
    let mut file = region(0x1000, 2 * HUGE);
    file.name = Name::from("/mnt/pool/file");
    file.inode = 7;
    file.device = device;
    file.permissions.shared = true;
    let mut world = World::new([file]);
    world.hugetlbfs = Some(device);
    world.entries.insert(0x1000, PRESENT | FILE | 0x200);
    let flags = PageFlags::HUGE | PageFlags::COMPOUND_HEAD;
    world.flags.insert(0x200, flags.bits());
    world.scans = false;
    let (_, target) = world.target();
    for need in [Evidence::HUGE, Evidence::HUGE | Evidence::FLAGS] {
        each(&target, need, |page, _| {
            let expected = (page.state() == State::Present).then_some(true);
            assert_eq!(page.huge, expected, "known without a scan");
        });
    }
    for need in [Evidence::ENTRIES, Evidence::KINDS | Evidence::CONTENT] {
        let mut kinds = Vec::new();
        each(&target, need, |page, _| kinds.push((page.state(), page.kind)));
        kinds.dedup();
        let hugetlb = Some(Kind::Hugetlb);
        assert_eq!(kinds, [(State::Present, hugetlb), (State::Untouched, hugetlb)]);
    }
}

#[test]
fn pages_with_one_frame_share_a_row() {
    let mut world = World::new([region(0x1000, 4 * HUGE)]);
    let ksm = (PageFlags::ANON | PageFlags::KSM).bits();
    // Three pages merged into one, two into another, and one into the first again.
    for (index, frame) in [0x700, 0x700, 0x700, 0x7f0, 0x7f0, 0x700].into_iter().enumerate() {
        world.entries.insert(0x1000 + index as u64, PRESENT | frame);
        world.flags.insert(frame, ksm);
        world.counts.insert(frame, 4);
    }
    // The huge zero page, twice.
    for index in 0..2 * HUGE {
        let frame = 0x8000 + index % HUGE;
        let page = 0x1000 + HUGE + index;
        world.entries.insert(page, PRESENT | FILE | frame);
        let part = match index % HUGE {
            0 => PageFlags::COMPOUND_HEAD,
            _ => PageFlags::COMPOUND_TAIL,
        };
        let flags = PageFlags::ZERO_PAGE | PageFlags::THP | part;
        world.flags.insert(frame, flags.bits());
    }
    world.huge = vec![0x1000 + HUGE, 0x1000 + 2 * HUGE];
    let (_, target) = world.target();
    let rows: Vec<_> = rows(&target, Evidence::KINDS | Evidence::FLAGS | Evidence::COUNTS)
        .into_iter()
        .filter(|row| row.page.state() == State::Present)
        .map(|row| {
            let frame = row.page.frame().map(|frame| frame.get());
            (frame, row.page.pages, row.frames)
        })
        .collect();
    assert_eq!(
        rows,
        [
            (Some(0x700), 3, Some(1)),
            (Some(0x7f0), 2, Some(1)),
            (Some(0x700), 1, None),
            (Some(0x8000), 2 * HUGE, Some(HUGE)),
        ]
    );
}

#[test]
fn a_byte_of_a_locked_region_counts_as_its_page() {
    use crate::budget::Budget;
    use crate::kernel::AddressRange;
    use crate::kernel::smaps::Smaps;
    let range = region(0x100, 8).range;
    let locked = Smaps {
        range,
        fields: Vec::new(),
        vm_flags: vec!["rd".to_owned(), "lo".to_owned()],
        may_be_huge: None,
        protection_key: None,
    };
    let (_, target) = World { smaps: vec![locked], ..World::new([region(0x100, 8)]) }.target();
    let space = AddressSpace::of(&target).expect("a space");
    let of = |bytes| AddressRange::of_length(VirtualAddress::new(0x102 * PAGE), bytes).expect("a range");
    for (bytes, pages) in [(1, 1), (PAGE, 1), (PAGE + 1, 2), (100 * PAGE, 6)] {
        assert_eq!(space.locked_pages(&[of(bytes)], &mut Budget::unlimited()), Some(pages), "{bytes}");
    }
}

/// A kernel that sets KPF_KSM on every anonymous page, and merges some.
#[test]
fn where_every_page_is_flagged_as_merged_the_region_decides() {
    use crate::kernel::smaps::Smaps;
    let bytes = 2 * PAGE;
    let offered = |at: u64, flag: &str, merged: Option<u64>| Smaps {
        range: region(at, 2).range,
        fields: [("Rss", Some(bytes)), ("Anonymous", Some(bytes)), ("KSM", merged)]
            .into_iter()
            .filter_map(|(field, bytes)| Some((field.to_owned(), bytes?)))
            .collect(),
        vm_flags: vec!["rd".to_owned(), flag.to_owned()],
        may_be_huge: None,
        protection_key: None,
    };
    let (ksm, own) = (Some(Kind::Ksm), Some(Kind::Anonymous));
    for (merged_pages, flag, merged, expected) in [
        (0, "mg", Some(bytes), own),
        (1, "mg", Some(bytes), ksm),
        (1, "mg", Some(PAGE), None),
        (1, "mg", Some(0), own),
        // Before Linux 6.6.
        (1, "mg", None, None),
        (1, "mr", None, own),
    ] {
        let mut world =
            World { merged_pages, smaps: vec![offered(0x100, flag, merged)], ..World::new([region(0x100, 2)]) };
        for page in 0..2 {
            world.entries.insert(0x100 + page, PRESENT | 0x700);
        }
        let flags = (PageFlags::ANON | PageFlags::KSM).bits();
        world.flags.insert(0x700, flags);
        world.counts.insert(0x700, 2);
        let (_, target) = world.target();
        let mut kinds = Vec::new();
        each(&target, Evidence::KINDS, |page, _| kinds.push(page.kind));
        kinds.dedup();
        assert_eq!(kinds, [expected], "{merged_pages} {flag} {merged:?}");
        let address = VirtualAddress::new(0x100 * PAGE);
        let space = AddressSpace::of(&target).expect("a space");
        let detail = space.detail(address).expect("its detail");
        assert_eq!(detail.page.kind, expected, "{merged_pages} {flag} {merged:?}");
        // An unknown kind has a reason that names the flag.
        let why = super::kind_unknown(&detail.page).to_string();
        assert!(why.contains("KPF_KSM"), "{why}");
    }
}

/// A write to a private device mapping makes a copy. The page map does not show it, but smaps counts its bytes.
#[test]
fn a_copied_page_of_a_device_mapping_has_no_physical_address_of_the_device() {
    use crate::kernel::smaps::Smaps;
    for (shared, anonymous, is_known) in
        [(true, Some(0), true), (false, Some(0), true), (false, Some(PAGE), false), (false, None, false)]
    {
        let mut device = region(0x100, 2);
        (device.name, device.inode, device.offset) = ("/dev/mem".into(), 3, 0xf_0000);
        device.permissions.shared = shared;
        let fields = anonymous.map(|bytes| ("Anonymous".to_owned(), bytes));
        let world = World {
            smaps: vec![Smaps {
                range: device.range,
                fields: fields.into_iter().collect(),
                vm_flags: vec!["pf".to_owned()],
                may_be_huge: None,
                protection_key: None,
            }],
            ..World::new([device])
        };
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let address = VirtualAddress::new(0x101 * PAGE);
        let detail = space.detail(address).expect("its detail");
        let (physical, kind) =
            if is_known { (Some(PhysicalAddress::new(0xf_1000)), Some(Kind::DeviceMemory)) } else { (None, None) };
        assert_eq!(detail.page.state(), State::PfnMapped);
        assert_eq!(detail.physical.clone().ok(), physical, "{shared} {anonymous:?}");
        assert_eq!(detail.page.kind, kind, "{shared} {anonymous:?}");
        each(&target, Evidence::KINDS, |page, _| assert_eq!(page.kind, kind));
    }
}

/// Before Linux 6.7 there is no scan. Page flags and smaps still show for most pages that no PMD maps them.
#[test]
fn without_a_scan_a_page_in_no_large_folio_is_not_huge() {
    use crate::kernel::smaps::Smaps;
    for (large, in_smaps, of_page, of_region) in [
        (false, None, Some(false), Some(0)),
        (true, None, None, None),
        (true, Some(0), Some(false), Some(0)),
        (true, Some(HUGE * PAGE), None, None),
    ] {
        let start = 4 * HUGE;
        let mut world = World::new([region(start, 2 * HUGE)]);
        world.scans = false;
        if large {
            world.maps_huge(start, 8 * HUGE)
        } else {
            world.maps(start, HUGE, 8 * HUGE)
        }
        let range = region(start, 2 * HUGE).range;
        let fields = in_smaps.map(|bytes| {
            [("AnonHugePages", bytes), ("ShmemPmdMapped", 0), ("FilePmdMapped", 0)]
                .map(|(field, bytes)| (field.to_owned(), bytes))
        });
        world.smaps = vec![Smaps {
            range,
            fields: fields.into_iter().flatten().collect(),
            vm_flags: Vec::new(),
            may_be_huge: None,
            protection_key: None,
        }];
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let detail = space.detail(VirtualAddress::new(start * PAGE)).expect("its detail");
        assert_eq!(detail.huge.ok(), of_page, "{large} {in_smaps:?}");
        space.require(Evidence::HUGE).expect("flags tell of small pages");
        each(&target, Evidence::HUGE, |page, _| {
            if page.state() == State::Present {
                assert_eq!(page.huge, (!large).then_some(false));
            }
        });
        let mut seen = None;
        let mut regions = space.region_stats(&space.spans(), Evidence::HUGE);
        while let Some((_, stats)) = regions.next().expect("stats") {
            seen = Some(stats.huge.ok());
        }
        assert_eq!(seen, Some(of_region), "{large} {in_smaps:?}");
    }
}

#[test]
fn frames_that_repeat_in_turn_share_a_row() {
    let page = |at: u64, pages: u64, frame: u64| Page {
        pages,
        entry: crate::kernel::PageMapEntry::new(PRESENT | frame),
        kind: Some(Kind::HugeZero),
        ..Page::new(VirtualAddress::new(at * PAGE), State::Present.into())
    };
    let mut rows = PageRows::new(SIZE);
    let mut all = Vec::new();
    for one in [
        page(0, 4, 100),
        page(4, 1, 100),
        page(5, 3, 101),
        page(8, 2, 100),
        // This frame is out of turn.
        page(10, 1, 100),
        // More frames than the repeated ones.
        page(11, 2, 100),
    ] {
        all.extend(rows.push(&one, None));
    }
    all.extend(rows.finish());
    let brief: Vec<_> = all.iter().map(|row| (row.page.pages, row.frames)).collect();
    assert_eq!(brief, [(10, Some(4)), (1, None), (2, None)]);
}

#[test]
fn regions_that_change_while_they_are_counted_are_named() {
    let (world, target) = World::new([region(0x1000, 10), region(0x2000, 10)]).target();
    let space = AddressSpace::of(&target).expect("a space");
    let mut counted = 0;
    let mut regions = space.region_stats(&space.spans(), Evidence::empty());
    while regions.next().expect("a region").is_some() {
        counted += 1;
        world.regions.lock().expect("a lock")[0] = region(0x1000, 11);
    }
    assert_eq!(counted, 2);
    assert_eq!(regions.changed_ranges(), [region(0x1000, 10).range]);
}

/// Very many regions are compared as the text of maps, as far as they have been counted. The list is decoded again only
/// if the text has changed.
#[test]
fn very_many_regions_that_change_are_named() {
    const COUNT: u64 = 5000;
    let at = |index: u64| region(0x1000 + index, 1);
    let changed_pages = |changes: Option<u64>| {
        let (world, target) = World::new((0..COUNT).map(at)).target();
        let space = AddressSpace::of(&target).expect("a space");
        let mut counted = 0;
        let mut counts = space.region_stats(&space.spans(), Evidence::empty());
        while counts.next().expect("a region").is_some() {
            if Some(counted) == changes {
                let mut regions = world.regions.lock().expect("a lock");
                regions[counted as usize].permissions.write = false;
            }
            counted += 1;
        }
        assert_eq!(counted, COUNT);
        let read = world.watched.region_reads.load(Ordering::Relaxed);
        (counts.changed_ranges().to_vec(), read)
    };
    // The last one is reported when all have been compared.
    for changed in [0, COUNT / 2, COUNT - 2] {
        let found = changed_pages(Some(changed));
        assert_eq!(found, (vec![at(changed).range], 2), "{changed}");
    }
    assert_eq!(changed_pages(None), (Vec::new(), 1));
}

/// Before the last read another mapping takes the place: the facts are of that one.
#[test]
fn the_facts_of_an_address_are_of_its_current_region() {
    let address = VirtualAddress::new(0x1000 * PAGE);
    let mut other = region(0x1000, 4);
    other.permissions.write = false;
    for then in [vec![other], Vec::new()] {
        let world = World::new([region(0x1000, 4)]);
        *world.then.lock().expect("a lock") = Some(then.clone());
        let (_, target) = world.target();
        let (space, detail) = AddressSpace::detail_at(&target, address).expect("its detail");
        assert_eq!(detail.region, then.first().cloned());
        assert_eq!(space.viewed_region(address).map(|one| &one.region), then.first());
        let state = if then.is_empty() { State::Unmapped } else { State::Untouched };
        assert_eq!(detail.page.state(), state);
    }
}
