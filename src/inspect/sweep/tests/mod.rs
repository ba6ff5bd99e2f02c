//! Sweeps of fake processes: what comes, and what it costs.

mod frames;

use super::Sweep;
use crate::budget::{Budget, OutOfBudget};
use crate::inspect::{AddressSpace, Error, Evidence, Page};
use crate::kernel::{Kind, PageFlags, PageSize, Region, State, VirtualAddress};
use crate::process::fake::{EXCLUSIVE, FILE, HUGE, PAGE, PRESENT, World, region};
use crate::process::{BackingContent, Liveness, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn swept(target: &Target, need: Evidence) -> (Vec<Page>, Sweep) {
    let space = AddressSpace::of(target).expect("a space");
    let mut pages = Vec::new();
    let mut sweep = space.pages(&space.spans(), need);
    while let Some(chunk) = sweep.next().expect("a sweep") {
        pages.extend(chunk.pages());
    }
    (pages, sweep)
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Everything that was mapped comes, in order, once, with its entry; the rest of the regions is untouched.
fn assert_complete(world: &World, pages: &[Page]) {
    let regions = world.regions.lock().expect("a lock");
    let all: u64 = regions.iter().map(|region| region.range.len() / PAGE).sum();
    assert_eq!(pages.iter().map(|page| page.pages).sum::<u64>(), all);
    let mut expected = world.entries.iter();
    let mut end = 0;
    for page in pages {
        let first = page.address.get() / PAGE;
        assert!(first >= end, "in order");
        end = first + page.pages;
        if page.entry.raw() == 0 {
            assert_eq!(page.state(), State::Untouched);
            continue;
        }
        for one in page.each(PageSize::FOUR_KIB) {
            let (&index, &raw) = expected.next().expect("no page twice");
            assert_eq!((one.address.get() / PAGE, one.entry.raw()), (index, raw));
        }
    }
    assert_eq!(expected.next(), None, "none left out");
}

#[test]
fn a_small_region_is_read_straight() {
    let mut world = World::new([region(0x100, 64)]);
    world.maps(0x110, 8, 5000);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
    assert_eq!(pages.len(), 3, "neighbours that are the same come together: {pages:?}");
    assert_eq!((read(&world.entries_read), read(&world.scanned)), (64, 0));
}

#[test]
fn empty_memory_is_not_read() {
    let mut world = World::new([region(0x1000, 1 << 32)]);
    for part in 0..1000 {
        world.maps(0x1000 + part * 4_000_000, 1, 10_000 + 7 * part);
    }
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
    assert!(read(&world.entries_read) <= 2 * 1000, "{}", read(&world.entries_read));
    assert!(pages.len() < 2100, "{}", pages.len());
}

#[test]
fn dense_memory_is_hardly_scanned() {
    let pages_in = 300_000;
    let mut world = World::new([region(0x1000, pages_in)]);
    world.maps(0x1000, pages_in, 1 << 20);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
    assert_eq!(read(&world.entries_read), pages_in);
    let scanned = read(&world.scanned);
    assert!(scanned < pages_in / 8, "{scanned}");
}

#[test]
fn dense_then_empty_then_dense() {
    let mut world = World::new([region(0x1000, 1 << 30)]);
    world.maps(0x1000, 10_000, 1 << 20);
    world.maps(0x1000 + (1 << 29), 10_000, 1 << 21);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
    assert!(read(&world.entries_read) < 400_000, "{}", read(&world.entries_read));
}

/// The states in order, each with its number of consecutive pages.
fn states(pages: &[Page]) -> Vec<(State, u64)> {
    let mut states: Vec<(State, u64)> = Vec::new();
    for page in pages {
        match states.last_mut() {
            Some((state, pages)) if *state == page.state() => *pages += page.pages,
            _ => states.push((page.state(), page.pages)),
        }
    }
    states
}

#[test]
fn for_states_alone_present_pages_are_not_read() {
    let pages_in = 3_000_000;
    let mut world = World::new([region(0x1000, pages_in), region(0x2000_0000, 8 * HUGE)]);
    // Long stretches, some swap between them, and a part where every other page is missing.
    world.maps(0x1000, 200_000, 1 << 20);
    for page in 0..10 {
        world.entries.insert(0x1000 + 200_000 + page, 1 << 62 | 0x20);
    }
    world.maps(0x1000 + 300_000, 50_000, 1 << 21);
    for page in 0..20_000 {
        world.maps(0x1000 + 400_000 + 2 * page, 1, 5_000_000 + 3 * page);
    }
    world.maps_huge(0x2000_0000 + HUGE, 1 << 18);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::empty());
    let entries = read(&world.entries_read);
    // A region's first pages are always scanned. The last part is read, and a little beyond.
    assert!(entries < 100_000, "{entries}");
    let (plain, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &plain);
    assert_eq!(states(&pages), states(&plain));
    for page in pages.iter().filter(|page| page.state() == State::Present) {
        assert_eq!((page.frame(), page.kind), (None, None), "not looked at");
    }
    // Holes need no entries.
    let (with_holes, _) = swept(&target, Evidence::HOLES);
    assert_eq!(with_holes, pages);
}

#[test]
fn huge_mappings_that_are_split_under_way_are_read_page_by_page() {
    let mut world = World::new([region(0, 8 * HUGE)]);
    for part in 0..8 {
        world.maps_huge(part * HUGE, (100 + part) * HUGE);
    }
    // Two of the mappings that the scan calls huge were split: the last page of the third, and the first of the sixth,
    // lie elsewhere.
    world.entries.insert(3 * HUGE - 1, PRESENT | EXCLUSIVE | 7);
    world.entries.insert(5 * HUGE, PRESENT | EXCLUSIVE | 9);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
}

#[test]
fn without_a_scan_the_same_comes() {
    let mut world = World::new([region(0x1000, 50_000), region(0x20000, 10)]);
    world.maps(0x1100, 300, 1 << 20);
    world.maps(0x9000, 5000, 1 << 21);
    world.maps(0x20000, 1, 77);
    // A part of a large folio, which one PMD may map.
    for frame in 0..5000 {
        world.flags.insert((1 << 21) + frame, (PageFlags::ANON | PageFlags::COMPOUND_TAIL).bits());
    }
    world.scans = false;
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::HUGE | Evidence::KINDS);
    assert_complete(&world, &pages);
    let in_the_small = |page: &Page| page.address.get() >= 0x20000 * PAGE;
    let of_no_folio = |page: &Page| page.frame().is_some_and(|frame| frame.get() < 1 << 21);
    for page in pages {
        let huge = (in_the_small(&page) || of_no_folio(&page)).then_some(false);
        assert_eq!(page.huge, huge, "not told where there is room for one");
    }
}

#[test]
fn pages_come_one_by_one_if_asked_for() {
    let mut world = World::new([region(0x1000, 30)]);
    world.maps(0x1005, 10, 4000);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::EACH | Evidence::FRAMES);
    assert_eq!(pages.len(), 30);
    assert_complete(&world, &pages);
}

#[test]
fn holes_come_when_asked_for() {
    let (_, target) = World::new([region(0x1000, 10), region(0x2000, 10)]).target();
    let space = AddressSpace::of(&target).expect("a space");
    let span = region(0x800, 0x3000).range;
    let mut states = Vec::new();
    let mut all = space.pages(&[span], Evidence::HOLES);
    while let Some(chunk) = all.next().expect("a sweep") {
        states.extend(chunk.pages().map(|page| (page.state(), page.pages)));
    }
    use State::{Unmapped, Untouched};
    assert_eq!(states, [(Unmapped, 0x800), (Untouched, 10), (Unmapped, 0xff6), (Untouched, 10), (Unmapped, 0x17f6)]);
}

#[test]
fn beyond_the_page_map() {
    let kernel_half = (1 << 52) - 0xa00;
    let (_, target) = World::new([region(kernel_half, 1), region(kernel_half + 16, 1000)]).target();
    let (pages, _) = swept(&target, Evidence::KINDS | Evidence::FLAGS);
    assert!(pages.iter().all(|page| page.state() == State::Outside));
    assert_eq!(pages.iter().map(|page| page.pages).sum::<u64>(), 1001);
}

#[test]
fn many_cores_keep_the_order() {
    let pages_in = 600_000;
    let mut world = World::new([region(0x1000, pages_in), region(0x1_000_000, 100)]);
    for page in 0..pages_in {
        // Frames backwards, so that no two pages are the same run.
        let frame = 5_000_000 - 2 * page;
        world.entries.insert(0x1000 + page, PRESENT | EXCLUSIVE | frame);
    }
    world.maps(0x1_000_000, 50, 33);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
    assert_eq!(read(&world.entries_read), pages_in + 100);
    // And it can be stopped there too.
    let space = AddressSpace::of(&target).expect("a space");
    let interrupt = Arc::<AtomicBool>::default();
    let mut sweep = space.pages(&space.spans(), Evidence::ENTRIES).with_budget(Budget::until(Arc::clone(&interrupt)));
    for chunks in 0.. {
        if chunks == 10 {
            interrupt.store(true, Ordering::Relaxed);
        }
        match sweep.next() {
            Ok(chunk) => assert!(chunk.is_some() && chunks < 70, "{chunks}"),
            Err(error) => {
                assert!(matches!(error, Error::OutOfBudget(OutOfBudget::Interrupted)), "{error:?}");
                break;
            }
        }
    }
    assert!(matches!(sweep.next(), Ok(None)));
}

#[test]
fn changes_are_said() {
    let (world, target) = World::new([region(0x1000, 10), region(0x2000, 10)]).target();
    let space = AddressSpace::of(&target).expect("a space");
    world.regions.lock().expect("a lock")[1] = region(0x2000, 11);
    let mut again = space.pages(&space.spans(), Evidence::ENTRIES);
    while again.next().expect("a sweep").is_some() {}
    assert_eq!(again.changed_ranges(), [region(0x2000, 10).range]);
    for (now, error) in [(Liveness::Exited(None), "exited"), (Liveness::Executed, "executed")] {
        *world.watched.liveness.lock().expect("a lock") = Some(now);
        let mut gone = space.pages(&space.spans(), Evidence::ENTRIES);
        let gone = loop {
            match gone.next() {
                Ok(chunk) => assert!(chunk.is_some(), "it is {error}"),
                Err(gone) => break gone,
            }
        };
        assert!(gone.to_string().contains(error));
    }
}

#[test]
fn backing_content_is_read_only_where_it_matters() {
    let file = |start, pages, deleted| Region { inode: 7, name: "/data".into(), deleted, ..region(start, pages) };
    let regions = [
        region(0x1000, 10),
        file(0x2000, 10, false),
        file(0x3000, 10, false),
        file(0x1_0000, 5000, false),
        file(0x4_0000, 10, true),
    ];
    let mut world = World::new(regions);
    for page in [0x2000, 0x2004, 0x2009] {
        world.entries.insert(page, PRESENT | FILE | page);
    }
    for page in 0x3000..0x300a {
        world.entries.insert(page, PRESENT | FILE | page);
    }
    let is = |cached| BackingContent::Contents { cached };
    world.content.extend([
        (0x2001, is(true)),
        (0x2002, is(true)),
        (0x2003, is(false)),
        (0x2004, BackingContent::PastEnd),
        (0x2008, BackingContent::PastEnd),
        (0x1_0fff, is(false)),
    ]);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    assert_complete(&world, &pages);
    assert_eq!(read(&world.behind_asked), 0);
    assert!(pages.iter().all(|page| page.content.is_none()));

    let (pages, _) = swept(&target, Evidence::CONTENT);
    assert_complete(&world, &pages);
    // Not for memory without a file, nor where everything is mapped. The long region comes in two stretches.
    assert_eq!(read(&world.behind_asked), 4);
    let kind = |page: u64| {
        let holds = |one: &&Page| {
            one.range(PageSize::FOUR_KIB).is_some_and(|range| range.contains(VirtualAddress::new(page * PAGE)))
        };
        pages.iter().find(holds).expect("a page").kind
    };
    for (page, expected) in [
        (0x2000, Kind::File),
        (0x2001, Kind::Cached),
        (0x2002, Kind::Cached),
        (0x2003, Kind::NotCached),
        // A mapped page needs no backing content.
        (0x2004, Kind::File),
        (0x2008, Kind::PastEnd),
        (0x1_0ffe, Kind::File),
        (0x1_0fff, Kind::NotCached),
        (0x1_1000, Kind::File),
        (0x4_0000, Kind::File),
    ] {
        assert_eq!(kind(page), Some(expected), "{page:#x}");
    }
    let space = AddressSpace::of(&target).expect("a space");
    let mut unknown = 0;
    let mut pages = space.pages(&space.spans(), Evidence::CONTENT);
    while let Some(chunk) = pages.next().expect("a sweep") {
        let is_unknown = chunk.region.is_some_and(|viewed| viewed.why_content_unknown().is_some());
        let untouched = chunk.pages().filter(|page| page.state() == State::Untouched && page.content.is_none());
        unknown += untouched.map(|page| page.pages * u64::from(is_unknown)).sum::<u64>();
    }
    assert_eq!(unknown, 10);
}

#[test]
fn holes_after_the_end_of_the_page_map_are_outside() {
    use State::{Outside, Unmapped, Untouched};
    let (_, target) = World::new([region(0x1000, 10)]).target();
    let space = AddressSpace::of(&target).expect("a space");
    let end = 1 << 35;
    for (first, pages, expected) in [
        (0x1000, (1 << 52) - 0x1001, vec![(Untouched, 10), (Unmapped, end - 0x100a), (Outside, (1 << 52) - 1 - end)]),
        ((1 << 52) - 0x1000, 0xfff, vec![(Outside, 0xfff)]),
        (end - 1, 2, vec![(Unmapped, 1), (Outside, 1)]),
        (end - 2, 2, vec![(Unmapped, 2)]),
    ] {
        let mut states = Vec::new();
        let span = region(first, pages).range;
        let mut all = space.pages(&[span], Evidence::HOLES);
        while let Some(chunk) = all.next().expect("a sweep") {
            states.extend(chunk.pages().map(|page| (page.state(), page.pages)));
        }
        assert_eq!(states, expected, "{first:#x}");
        // A query of one address gives the same.
        let last = span.end().get() - 1;
        let detail = space.detail(VirtualAddress::new(last));
        let state = detail.expect("a detail").page.state();
        assert_eq!(Some(state), expected.last().map(|&(state, _)| state));
    }
}
