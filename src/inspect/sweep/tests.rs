//! Sweeps of fake processes: what comes, and what it costs.

use super::Sweep;
use crate::budget::{Budget, OutOfBudget};
use crate::inspect::{AddressSpace, Error, Evidence, Filter, Page, Question};
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
        for one in page.each(crate::kernel::PageSize::FOUR_KIB) {
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
fn huge_mappings_cost_one_entry_and_two_flag_words() {
    let mut world = World::new([region(0, 64 * HUGE)]);
    for part in 0..16 {
        world.maps_huge(4 * part * HUGE, (100 + 3 * part) * HUGE);
    }
    let (world, target) = world.target();
    let need = Evidence::HUGE | Evidence::FLAGS | Evidence::COUNTS;
    let (pages, _) = swept(&target, need);
    assert_complete(&world, &pages);
    let probe = read(&world.entries_read);
    assert!(probe <= 16, "{probe} entries");
    // One word of each file finds out whether it can be read.
    assert!(read(&world.flags_read) <= 2 * 16 + 1, "{}", read(&world.flags_read));
    assert!(read(&world.counts_read) <= 16 + 1, "{}", read(&world.counts_read));
    let heads = pages.iter().filter(|page| page.flags.is_some_and(|flags| flags.contains(PageFlags::COMPOUND_HEAD)));
    let heads: Vec<u64> = heads.map(|page| page.pages).collect();
    assert_eq!(heads, [1; 16]);
    let present = pages.iter().filter(|page| page.state() == State::Present);
    for page in present {
        assert_eq!((page.huge, page.map_count), (Some(true), Some(1)));
    }
}

#[test]
fn map_counts_that_differ_inside_a_huge_mapping() {
    let mut world = World::new([region(0, 8 * HUGE)]);
    for part in 0..8 {
        world.maps_huge(part * HUGE, (100 + part) * HUGE);
    }
    // A child maps all of the third, except a page that it copied.
    for page in 0..HUGE {
        let frame = 102 * HUGE + page;
        world.counts.insert(frame, if page == 7 { 1 } else { 2 });
        let flags = world.flags.get_mut(&frame).expect("flags");
        *flags &= !PageFlags::OWNER_2.bits();
    }
    let (world, target) = world.target();
    for need in [Evidence::HUGE | Evidence::COUNTS, Evidence::HUGE | Evidence::COUNTS | Evidence::FLAGS] {
        let (pages, _) = swept(&target, need);
        assert_complete(&world, &pages);
        for page in &pages {
            for one in page.each(crate::kernel::PageSize::FOUR_KIB) {
                let frame = one.frame().expect("a frame").get();
                assert_eq!(one.map_count, world.counts.get(&frame).copied(), "{one:?}");
                assert_eq!(one.huge, Some(true));
                if need.contains(Evidence::FLAGS) {
                    assert_eq!(one.flags.map(|flags| flags.bits()), world.flags.get(&frame).copied());
                }
            }
        }
    }
}

#[test]
fn words_of_frames_are_joined_in_any_order_of_frames() {
    let mut world = World::new([region(0x1000, 4000)]);
    // Scattered, backwards, some twice.
    for page in 0..2000u64 {
        let frame = 50_000 + (page * 7919) % 1500;
        world.entries.insert(0x1000 + page, PRESENT | frame);
        world.flags.insert(frame, frame << 8);
        world.counts.insert(frame, frame % 5);
    }
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::FLAGS | Evidence::COUNTS);
    assert_complete(&world, &pages);
    for page in pages.iter().filter(|page| page.state() == State::Present) {
        let frame = page.frame().expect("a frame").get();
        assert_eq!(page.flags.map(|flags| flags.bits()), Some(frame << 8));
        assert_eq!(page.map_count, Some(frame % 5));
    }
    // Frames that are near each other are read together, each about once.
    assert!(read(&world.flags_read) < 1600, "{}", read(&world.flags_read));
}

#[test]
fn only_possible_zero_pages_are_scanned_for() {
    let mut world = World::new([region(0x1000, 200), region(0x5000, 200)]);
    world.maps(0x1000, 100, 7000);
    world.entries.insert(0x5000, PRESENT | 1);
    world.entries.insert(0x5001, PRESENT | 9000);
    world.entries.insert(0x5002, PRESENT | FILE | 9001);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::KINDS);
    assert!(read(&world.scanned) <= 3, "{}", read(&world.scanned));
    let kinds: Vec<_> = pages.iter().filter(|page| page.state() == State::Present).map(|page| page.kind).collect();
    let anonymous = Some(Kind::Anonymous);
    assert_eq!(kinds, [anonymous, Some(Kind::Zero), anonymous, Some(Kind::HugeZero)]);
    let (pages, _) = swept(&target, Evidence::ENTRIES);
    let second = pages.iter().find(|page| page.address.get() == 0x5000 * PAGE);
    assert_eq!(second.and_then(|page| page.kind), None, "not looked at: not told");
}

#[test]
fn zero_pages_with_consecutive_frames_keep_them() {
    let mut world = World::new([region(0x1000, 3)]);
    world.maps(0x1000, 3, 9);
    for frame in 9..12 {
        world.flags.insert(frame, PageFlags::ZERO_PAGE.bits());
    }
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::KINDS | Evidence::FLAGS);
    assert!(pages.iter().all(|page| page.kind == Some(Kind::Zero)));
    assert_complete(&world, &pages);
}

#[test]
fn zero_pages_come_together_where_frames_are_hidden() {
    let mut world = World::new([region(0x1000, 3)]);
    for page in 0x1000..0x1003 {
        world.entries.insert(page, PRESENT | 1);
    }
    world.hidden = true;
    let (_, target) = world.target();
    let (pages, _) = swept(&target, Evidence::KINDS);
    let pages: Vec<_> = pages.iter().map(|page| (page.kind, page.pages)).collect();
    assert_eq!(pages, [(Some(Kind::Zero), 3)]);
}

/// The configuration of a kernel shows whether map counts are exact.
#[test]
fn the_configuration_is_read_only_for_huge_mappings() {
    for has_huge in [false, true] {
        let mut world = World::new([region(0x1000, HUGE)]);
        if has_huge {
            world.maps_huge(0x1000, 0x8000);
        } else {
            world.maps(0x1000, HUGE, 0x8000);
        }
        let log = Arc::default();
        let target = world.target().1.recorded(&log);
        _ = swept(&target, Evidence::OWNERS | Evidence::HUGE);
        let is_read = log.take().kept.iter().any(|read| read.file.contains("config"));
        assert_eq!(is_read, has_huge);
    }
}

/// Flags of a folio of this order from `frame` on.
fn make_folio(world: &mut World, frame: u64, order: u8) {
    for index in 0..1u64 << order {
        let flag = match index {
            0 => PageFlags::COMPOUND_HEAD,
            _ => PageFlags::COMPOUND_TAIL,
        };
        let flags = world.flags.entry(frame + index).or_default();
        *flags |= flag.bits();
    }
}

#[test]
fn orders_of_folios() {
    let mut world = World::new([region(0x1000, 3 * HUGE), region(0x8000, 10)]);
    // Pages by themselves, two whole folios, the middle of another, and a huge mapping.
    world.maps(0x1000, 4, 0x900);
    world.maps(0x1004, 8, 0x904);
    make_folio(&mut world, 0x904, 2);
    make_folio(&mut world, 0x908, 2);
    world.maps(0x8000, 3, 0xa05);
    make_folio(&mut world, 0xa00, 4);
    world.maps_huge(0x1000 + HUGE, 8 * HUGE);
    // The largest folio extends beyond its mapped pages.
    world.maps(0x8005, 1, 0x4000);
    make_folio(&mut world, 0x4000, 9);
    let (world, target) = world.target();
    let (pages, _) = swept(&target, Evidence::ORDER);
    let orders: Vec<_> = pages
        .iter()
        .filter(|page| page.state() == State::Present)
        .flat_map(|page| page.each(crate::kernel::PageSize::FOUR_KIB))
        .map(|page| page.order)
        .collect();
    let all = [(4, 0), (8, 2), (512, 9), (3, 4), (1, 9)];
    let expected: Vec<_> = all.iter().flat_map(|&(pages, order)| vec![Some(order); pages]).collect();
    assert_eq!(orders, expected);
    let mapped = 4 + 8 + 2 + 3 + 1;
    assert!(read(&world.flags_read) < mapped + 40, "{}", read(&world.flags_read));
    let untouched = pages.iter().find(|page| page.state() == State::Untouched);
    assert_eq!(untouched.expect("some").order, None);
}

#[test]
fn of_pages_that_a_filter_leaves_out_only_its_own_needs_are_read() {
    let pages_in = 20_000;
    let mut world = World::new([region(0x1000, pages_in), region(0x2000_0000, 2 * HUGE)]);
    world.maps(0x1000, pages_in, 1 << 20);
    world.maps_huge(0x2000_0000, 1 << 18);
    for frame in (1 << 20)..(1 << 20) + 10 {
        world.flags.insert(frame, PageFlags::DIRTY.bits());
    }
    let (world, target) = world.target();
    let space = AddressSpace::of(&target).expect("a space");
    let shown = Evidence::KINDS | Evidence::FLAGS | Evidence::COUNTS | Evidence::HUGE | Evidence::ORDER;
    let walk = |filter: &Filter| {
        let mut kept = Vec::new();
        let mut pages = space.pages(&space.spans(), Question::of_kept(filter, shown));
        while let Some(chunk) = pages.next().expect("a sweep") {
            kept.extend(chunk.pages().filter(|page| filter.matches(page, chunk.region)));
        }
        kept
    };
    let absent = Filter::new(Evidence::empty(), |page, _| page.state() != State::Present);
    let kept = walk(&absent);
    assert_eq!(kept.iter().map(|page| page.pages).sum::<u64>(), HUGE);
    assert_eq!((read(&world.flags_read), read(&world.counts_read)), (0, 0));
    // Flags decide. The rest is read only of the few that are kept.
    let dirty =
        Filter::new(Evidence::FLAGS, |page, _| page.flags.is_some_and(|flags| flags.contains(PageFlags::DIRTY)));
    let kept = walk(&dirty);
    assert_eq!(kept.iter().map(|page| page.pages).sum::<u64>(), 10);
    assert!(kept.iter().all(|page| page.map_count == Some(1) && page.order == Some(0)));
    assert_eq!(read(&world.counts_read), 10);
    // The pages that are kept are the same as without a filter.
    let present = Filter::new(Evidence::empty(), |page, _| page.state() == State::Present);
    let (all, _) = swept(&target, shown);
    let all: Vec<_> = all.into_iter().filter(|page| present.matches(page, None)).collect();
    assert_eq!(walk(&present), all);
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
        let detail = space.detail(crate::kernel::VirtualAddress::new(last));
        let state = detail.expect("a detail").page.state();
        assert_eq!(Some(state), expected.last().map(|&(state, _)| state));
    }
}
