//! `pins` on made-up processes.

use super::{World, all, notes, records};
use crate::command::huge::reasons::HugeRow;
use crate::command::huge::records::HugePages;
use crate::command::pins::{HeldPages, PinHolder, PinsSummary};
use crate::kernel::{Device, PageFlags};
use crate::process::fake::{HUGE, PAGE, region};
use crate::process::{FrameOwner, FrameRecord, ProcessHandle, Target};
use crate::report::{HugeRefusal, KnownPins, PageGroup};
use std::collections::HashMap;
use std::sync::Arc;

fn record(order: u8, references: u32, mappings: u64, pins: Option<u32>) -> FrameRecord {
    let mut record = FrameRecord::default();
    (record.order, record.references, record.pins) = (Some(order), Some(references), pins);
    (record.flags, record.owner) = (Some(PageFlags::empty()), Some(FrameOwner::Anonymous));
    record.mappings = Some(mappings);
    record
}

/// A huge page and three small ones, of which the second, and the huge one, are pinned; and a descriptor of VFIO.
fn world(buffers: &[(u64, u64)]) -> World {
    let mut world = World::new([region(HUGE, HUGE + 4)]);
    world.maps_huge(HUGE, 8 * HUGE);
    world.maps(2 * HUGE, 3, 0x700);
    let mut records: HashMap<u64, FrameRecord> =
        (8 * HUGE..9 * HUGE).map(|frame| (frame, record(9, 2, 1, Some(1)))).collect();
    records.extend([(0x700, record(0, 1, 1, None)), (0x701, record(0, 1025, 1, None)), (0x702, record(0, 2, 1, None))]);
    world.records = Some(records);
    let rows = buffers.iter().map(|(page, pages)| format!("    0: {:#x}/{}\n", page * PAGE, pages * PAGE));
    let info = format!("pos:\t0\nUserBufs:\t{}\n{}", buffers.len(), rows.collect::<String>());
    world.descriptors =
        vec![("/dev/null", String::new()), ("anon_inode:[io_uring]", info), ("/dev/vfio/7", String::new())];
    world
}

type Rows = Vec<(u64, Option<u64>)>;
type Holders = Vec<(&'static str, u32)>;

fn pins(line: &str, target: Target) -> (Rows, Holders, PinsSummary) {
    let records = records(line, target);
    let rows = all::<HeldPages>(&records).map(|row| (row.pages, row.pins.clone().ok())).collect();
    let holders = all::<PinHolder>(&records).map(|one| (one.device.word(), one.descriptor)).collect();
    (rows, holders, all::<PinsSummary>(&records).next().expect("totals").clone())
}

#[test]
fn a_registered_buffer_explains_the_pins_of_its_folios() {
    // One page of the huge page, and the small one.
    let target = || world(&[(HUGE + 5, 1), (2 * HUGE + 1, 1), (0x9000, 4)]).target().1;
    let (rows, holders, summary) = pins("pins 0x200000..0x404000", target());
    // Any 1024 references of a small page look like a pin.
    assert_eq!(rows, [(HUGE, Some(1)), (1, Some(0)), (1, None), (1, Some(0)), (1, None)]);
    assert_eq!(holders, [("io_uring", 1), ("io_uring", 1)]);
    assert_eq!((summary.pages, summary.pinned, summary.possibly_pinned), (HUGE + 4, HUGE, 1));
    assert_eq!((summary.unlisted, summary.holders), (0, 2));
    // Another page of the huge page is held too.
    let (rows, holders, _) = pins("pins 0x300000, +4K", target());
    assert_eq!((rows, holders), (vec![(1, Some(1))], vec![("io_uring", 1)]));
}

#[test]
fn a_device_may_have_pinned_what_no_buffer_explains() {
    let (_, holders, summary) = pins("pins 0x400000..0x403000", world(&[(HUGE, 1)]).target().1);
    assert_eq!((holders, summary.unlisted, summary.possibly_pinned), (vec![("vfio", 2)], 1, 1));
    let without = World { descriptors: Vec::new(), ..world(&[]) };
    let (_, holders, summary) = pins("pins 0x400000..0x403000", without.target().1);
    assert_eq!((holders, summary.unlisted, summary.holders), (vec![], 1, 0));
}

/// The page was shared by a fork, and the child had registered it.
#[test]
fn buffers_of_other_processes_that_map_the_page_are_found() {
    let mut child = World { pid: 2, space: 1, ..world(&[(2 * HUGE + 1, 1), (HUGE, 1)]) };
    let mut parent = World { descriptors: Vec::new(), ..world(&[]) };
    for world in [&mut parent, &mut child] {
        world.counts.insert(0x701, 2);
        world.records.as_mut().expect("records").insert(0x701, record(0, 1026, 2, None));
    }
    let handle = ProcessHandle::of_numbers;
    parent.processes = vec![(handle(1, 0), None), (handle(2, 1), Some(Arc::new(child)))];
    let records = records("pins 0x400000..0x403000", parent.target().1);
    let holders: Vec<_> = all::<PinHolder>(&records).map(|one| (one.pid, one.start.map(|at| at.get()))).collect();
    assert_eq!(holders, [(2, Some((2 * HUGE + 1) * PAGE))]);
}

/// The parent registered a buffer, and closed its ring after a fork; the child no longer maps the page. A stranger has
/// a ring with a buffer of the same address and length.
#[test]
fn a_ring_that_only_a_child_has_is_found() {
    let child = |pid| {
        let own = World { pid, space: pid, executable: Some("/bin/a".into()), ..world(&[(2 * HUGE + 1, 1)]) };
        World { entries: std::collections::BTreeMap::new(), ..own }
    };
    let (heir, stranger) = (child(2), child(3));
    let other = World { executable: Some("/bin/b".into()), ..child(4) };
    let mut parent = World { descriptors: Vec::new(), executable: Some("/bin/a".into()), ..world(&[]) };
    let handle = ProcessHandle::of_numbers;
    let family = [(handle(2, 1), heir), (handle(3, 9), stranger), (handle(4, 1), other)];
    parent.processes = family.into_iter().map(|(one, world)| (one, Some(Arc::new(world)))).collect();
    parent.processes.push((handle(1, 0), None));
    let records = records("pins 0x400000..0x403000", parent.target().1);
    let holders: Vec<_> = all::<PinHolder>(&records).map(|one| (one.pid, one.start.map(|at| at.get()))).collect();
    assert_eq!(holders, [(2, Some((2 * HUGE + 1) * PAGE))]);
    assert_eq!(all::<PinsSummary>(&records).next().expect("totals").searched, 2);
}

#[test]
fn without_records_what_is_listed_is_an_answer() {
    // Two buffers that overlap, one that begins within a page, and one elsewhere.
    let buffers = [(2 * HUGE, 1), (2 * HUGE, 2), (HUGE + 7, 1), (0x9000, 4)];
    let world = |buffers| World { records: None, ..world(buffers) };
    let (rows, holders, summary) = pins("pins 0x400000..0x404000", world(&buffers).target().1);
    assert_eq!((rows, holders), (vec![], vec![("io_uring", 1), ("io_uring", 1), ("vfio", 2)]));
    assert_eq!((summary.pages, summary.pinned, summary.possibly_pinned, summary.unknown), (4, 0, 2, 1));
    let (_, holders, summary) = pins("pins 0x200000..0x404000", world(&buffers).target().1);
    assert_eq!((holders.len(), summary.possibly_pinned, summary.unknown), (4, 3, HUGE));
    // All pages of the range are in a buffer: no device is needed to explain anything.
    let (_, holders, summary) = pins("pins 0x400000..0x402000", world(&buffers).target().1);
    assert_eq!((holders, summary.unknown), (vec![("io_uring", 1), ("io_uring", 1)], 0));
    let (_, holders, summary) = pins("pins 0x400000..0x404000", world(&[]).target().1);
    assert_eq!((holders, summary.possibly_pinned, summary.unknown), (vec![("vfio", 2)], 0, 3));
}

/// Folios may each have another number of references: the largest groups are shown, and the others are counted.
#[test]
fn of_groups_by_references_the_largest_are_shown() {
    let target = || {
        let mut world = World::new([region(HUGE, 30)]);
        world.maps(HUGE, 30, 0x700);
        // Seven pages have one reference, and each of the others has another number.
        let of = |page: u64| (0x700 + page, record(0, 1 + page.saturating_sub(6) as u32, 1, None));
        world.records = Some((0..30).map(of).collect());
        world.target().1
    };
    for (line, rows, more) in [
        ("walk all by refcount", 20, "4 more groups with 4 pages (the totals include them)"),
        ("walk all by refcount top 3", 3, "21 more groups with 21 pages (the totals include them)"),
    ] {
        let records = records(line, target());
        let pages: Vec<u64> = all::<PageGroup>(&records).map(|group| group.pages).collect();
        assert_eq!((pages.len(), pages[0]), (rows, 7), "{line}");
        assert_eq!(notes(&records), [more], "{line}");
    }
}

/// A page that is pinned keeps the whole place of a huge page from khugepaged.
#[test]
fn pins_are_in_the_way_of_huge_pages() {
    let huge = |buffers: &[(u64, u64)], pinned: Option<bool>| {
        let mut world = World { huge: Vec::new(), ..world(buffers) };
        *world.regions.lock().expect("a lock") = vec![region(HUGE, HUGE)];
        world.maps(HUGE, HUGE, 8 * HUGE);
        world.records = pinned.map(|is_pinned| {
            let references = |frame| if is_pinned && frame == 8 * HUGE + 3 { 1025 } else { 1 };
            (8 * HUGE..9 * HUGE).map(|frame| (frame, record(0, references(frame), 1, None))).collect()
        });
        let records = records("huge", world.target().1);
        let is_refused = all::<HugeRow>(&records).any(|row| row.reason == Some(HugeRefusal::Held));
        (is_refused, all::<HugePages>(&records).next().expect("a sum").pins)
    };
    let (all_pins, registered) = (KnownPins::All, KnownPins::Registered);
    assert_eq!(huge(&[], None), (false, registered));
    assert_eq!(huge(&[(HUGE + 7, 1)], None), (true, registered));
    assert_eq!(huge(&[(2 * HUGE, 1)], None), (false, registered));
    assert_eq!(huge(&[], Some(true)), (true, all_pins));
    assert_eq!(huge(&[], Some(false)), (false, all_pins));
}

#[test]
fn buffers_that_cannot_be_listed_are_not_none() {
    let pages = |records| {
        let world = World { records, descriptors_fail: true, ..world(&[]) };
        all::<HugePages>(&super::records("huge", world.target().1)).next().expect("a sum").clone()
    };
    let unknown = pages(None);
    let why = unknown.why.of("pins").map(ToString::to_string).unwrap_or_default();
    assert!(unknown.pins == KnownPins::None && why.contains("/proc/1/fd"), "{:?} {why}", unknown.pins);
    let known = pages(Some(HashMap::new()));
    assert_eq!((known.pins, known.why.is_empty()), (KnownPins::All, true));
}

/// The kernel gives two places of a huge page, of which one is touched.
#[test]
fn of_the_hugetlb_pool_resident_bytes_count() {
    for has_records in [true, false] {
        let device = Device { major: 0, minor: 40 };
        let mut pool = region(HUGE, 2 * HUGE);
        (pool.name, pool.inode, pool.device) = ("/anon_hugepage".into(), 7, device);
        let mut world = World::new([pool]);
        world.hugetlbfs = Some(device);
        world.maps_huge(HUGE, 8 * HUGE);
        world.records = has_records.then(HashMap::new);
        let (.., summary) = pins("pins 0x200000..0x600000", world.target().1);
        assert_eq!((summary.pages, summary.hugetlb_bytes), (2 * HUGE, HUGE * PAGE));
    }
}
