//! What a sweep reads of frames: flags, map counts, orders, and which pages are zero pages.

use super::{assert_complete, read, swept};
use crate::inspect::{AddressSpace, Evidence, Filter, Question};
use crate::kernel::{Kind, PageFlags, PageSize, State};
use crate::process::fake::{FILE, HUGE, PAGE, PRESENT, World, region};
use std::sync::Arc;

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
            for one in page.each(PageSize::FOUR_KIB) {
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
        .flat_map(|page| page.each(PageSize::FOUR_KIB))
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
