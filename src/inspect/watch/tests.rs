//! Tests of samples of a fake process.

use super::*;
use crate::budget::tests::whole_or_given_up;
use crate::budget::{Budget, OutOfBudget};
use crate::inspect::{AddressSpace, Answer, Error, Evidence, Filter, Gap};
use crate::kernel::{Key, Name, PageFact, PageField, PageFlags, WordFile};
use crate::process::Target;
use crate::process::fake::{EXCLUSIVE, File, HUGE, PAGE, World, region};
use crate::report::{EventKind, PageFacts};

/// Takes a sample; `meanwhile` is run before the first read.
fn sample(watcher: &mut Watcher, target: &Target, meanwhile: impl FnOnce()) -> Vec<Change> {
    let mut meanwhile = Some(meanwhile);
    let look = watcher.sample(target, Budget::unlimited(), |space| {
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile();
        }
        space.spans()
    });
    let look = look.expect("a sample");
    assert_eq!(look.survival(), Survival::Alive);
    look.changes().collect()
}

#[test]
fn regions_that_change_during_a_sample_are_seen_as_they_are() {
    let mut world = World::new([region(0x1000, 10)]);
    world.maps(0x1000, 10, 500);
    let (world, target) = world.target();
    let mut watcher = Watcher::new(Evidence::empty());
    assert_eq!(sample(&mut watcher, &target, || ()), []);
    let mut other = region(0x1005, 5);
    other.name = Name::from("[anon:other]");
    let changes = sample(&mut watcher, &target, || {
        *world.regions.lock().expect("a lock") = vec![region(0x1000, 5), other.clone()];
    });
    let brief = |change: &Change| {
        let start = change.address.map(|address| address.get() / PAGE);
        (change.kind, start)
    };
    let briefs: Vec<_> = changes.iter().map(brief).collect();
    let at = Some(0x1005);
    assert_eq!(briefs, [(EventKind::RegionShrank, at), (EventKind::RegionAppeared, at), (EventKind::Came, at)]);
    // The pages of the old region went and those of the new one came, although their words are the same.
    let bytes = |change: &Change| (change.pages, change.effect.came / PAGE, change.effect.went / PAGE);
    assert_eq!(changes.iter().map(bytes).collect::<Vec<_>>(), [(5, 0, 5), (0, 0, 0), (5, 5, 0)]);
    assert_eq!(sample(&mut watcher, &target, || ()), []);
}

#[test]
fn a_sample_that_was_stopped_loses_nothing() {
    let mut world = World::new([region(0x1000, 10)]);
    world.maps(0x1000, 3, 500);
    let (_, target) = world.target();
    let mut watcher = Watcher::new(Evidence::empty());
    assert_eq!(sample(&mut watcher, &target, || ()), []);
    let stopped = watcher.sample(&target, Budget::unlimited().at_most(0), |space| space.spans());
    assert!(matches!(stopped.err(), Some(Error::OutOfBudget(OutOfBudget::Steps))));
    assert_eq!(sample(&mut watcher, &target, || ()), []);
}

#[test]
fn pages_that_move_share_a_row_where_their_frames_follow_each_other() {
    let base = || World::new([region(0x1000, 10)]);
    let watched = |before: World, after: World| {
        let mut watcher = Watcher::new(Evidence::empty());
        let ((_, before), (_, after)) = (before.target(), after.target());
        assert_eq!(sample(&mut watcher, &before, || ()), []);
        let changes = sample(&mut watcher, &after, || ());
        let frame = |facts: &Option<PageFacts>| Some(facts.as_ref()?.pfn?.get());
        let brief = |change: &Change| {
            let page = change.address.map_or(0, |address| address.get() / PAGE);
            let frames = (frame(&change.before), frame(&change.after));
            (change.kind, page, change.pages, frames.0, frames.1)
        };
        changes.iter().map(brief).collect::<Vec<_>>()
    };
    let scattered = || {
        let mut world = base();
        world.maps(0x1000, 2, 500);
        world.maps(0x1002, 1, 700);
        world.maps(0x1003, 1, 600);
        world
    };
    // The frames of pages that come or go do not separate changes.
    assert_eq!(watched(base(), scattered()), [(EventKind::Came, 0x1000, 4, None, Some(500))]);
    assert_eq!(watched(scattered(), base()), [(EventKind::Went, 0x1000, 4, Some(500), None)]);
    // The frames are consecutive before, but not after.
    let mut whole = base();
    whole.maps(0x1000, 4, 900);
    let moved = [
        (EventKind::Moved, 0x1000, 2, Some(900), Some(500)),
        (EventKind::Moved, 0x1002, 1, Some(902), Some(700)),
        (EventKind::Moved, 0x1003, 1, Some(903), Some(600)),
    ];
    assert_eq!(watched(whole, scattered()), moved);
    // Copies get new frames, and a collapse leaves frames that were anywhere.
    let mut forked = base();
    forked.maps(0x1000, 4, 900);
    forked.entries.values_mut().for_each(|entry| *entry &= !EXCLUSIVE);
    forked.counts.values_mut().for_each(|count| *count = 2);
    assert_eq!(watched(forked, scattered()), [(EventKind::CopiedOnWrite, 0x1000, 4, Some(900), Some(500))]);
    let huge = || World::new([region(HUGE, HUGE)]);
    // A source that does not show huge mappings, as a core, cannot show that one was made.
    let [mut without_scans, mut with_scans] = [huge(), huge()];
    without_scans.scans = false;
    without_scans.maps_huge(HUGE, 20 * HUGE);
    with_scans.maps_huge(HUGE, 20 * HUGE);
    assert_eq!(watched(without_scans, with_scans), []);
    let mut small = huge();
    (0..HUGE).for_each(|page| small.maps(HUGE + page, 1, 10 * HUGE - page));
    let mut collapsed = huge();
    collapsed.maps_huge(HUGE, 20 * HUGE);
    let one = [(EventKind::Collapsed, HUGE, HUGE, Some(10 * HUGE), Some(20 * HUGE))];
    assert_eq!(watched(small, collapsed), one);
    let mut guarded = base();
    (0..4).for_each(|page| _ = guarded.entries.insert(0x1000 + page, 1 << 62 | 31 | 4 << 5));
    guarded.swaps = true;
    assert_eq!(watched(scattered(), guarded), [(EventKind::GuardInstalled, 0x1000, 4, Some(500), None)]);
}

/// Returns pages in these frames. Those from 1000 on are on node 1.
fn two_nodes(frames: &[u64]) -> World {
    let zones =
        "Node 0, zone Normal\n spanned 1000\n start_pfn: 0\nNode 1, zone Normal\n spanned 1000\n start_pfn: 1000\n";
    let mut world = World::new([region(0x1000, 8)]);
    (0x1000..).zip(frames).for_each(|(page, frame)| world.maps(page, 1, *frame));
    world.texts.push((File::Zones, zones.to_owned()));
    world
}

/// Tiering moves pages between nodes.
#[test]
fn a_page_on_another_node_is_told_apart() {
    let world = |frames: [u64; 3]| two_nodes(&frames).target().1;
    let (before, after) = (world([10, 20, 1500]), world([1010, 30, 1600]));
    let mut watcher = Watcher::new(Evidence::empty());
    assert_eq!(sample(&mut watcher, &before, || ()), []);
    let mut changes = sample(&mut watcher, &after, || ());
    changes.sort_by_key(|change| change.address);
    let kinds: Vec<_> = changes.iter().map(|change| (change.kind, change.pages)).collect();
    assert_eq!(kinds, [(EventKind::ChangedNode, 1), (EventKind::Moved, 1), (EventKind::Moved, 1)]);
}

#[test]
fn changes_are_cut_where_the_node_differs_if_they_are_added_up_by_it() {
    let worlds = || (two_nodes(&[]), two_nodes(&[10, 20, 1500, 30, 1600, 1700, 2500]));
    let parts = |changes: &[Change]| {
        changes
            .iter()
            .map(|change| (change.pages, change.after.as_ref().and_then(|after| after.node)))
            .collect::<Vec<_>>()
    };
    let cut = [(2, Some(0)), (1, Some(1)), (1, Some(0)), (2, Some(1)), (1, None)];
    for (extra, expected) in [(Evidence::ZONES, cut.as_slice()), (Evidence::empty(), &[(7, None)])] {
        let (before, after) = worlds();
        let mut watcher = Watcher::new(extra);
        assert_eq!(sample(&mut watcher, &before.target().1, || ()), []);
        assert_eq!(parts(&sample(&mut watcher, &after.target().1, || ())), expected);
    }
    let (before, after) = worlds();
    let (before, after, space) = two_snapshots(before, after);
    let by = |key| Difference::new(&space, &before, &after).by(key, None).finish().expect("changes");
    let found = by(Key::Page(PageField::Fact(PageFact::Node)));
    assert_eq!(parts(&found.changes), cut);
    let groups = found.groups.expect("groups").into_iter();
    let groups: Vec<_> = groups.map(|of| (of.group, of.counts.pages, of.counts.effect.came / PAGE)).collect();
    let [first, second, nowhere] =
        [Answer::Is(0), Answer::Is(1), Answer::Unknown(Gap::NoZone)].map(ChangedGroup::Pages);
    assert_eq!(groups, [(first, 3, 3), (second, 3, 3), (nowhere, 1, 1)]);
    assert_eq!(parts(&by(Key::Change).changes), [(7, None)]);
}

/// The kernel gives all pages of a huge mapping bit 56 of the first page. Map counts are those of each page.
#[test]
fn a_copy_inside_a_huge_page() {
    for scans in [true, false] {
        let base = || World { scans, ..World::new([region(HUGE, HUGE)]) };
        let mut before = base();
        before.maps_huge(HUGE, 10 * HUGE);
        // After a fork, the child has written to the first page and to page 9.
        for page in 0..HUGE {
            before.counts.insert(10 * HUGE + page, if page == 0 || page == 9 { 1 } else { 2 });
            if let Some(flags) = before.flags.get_mut(&(10 * HUGE + page)) {
                *flags &= !PageFlags::OWNER_2.bits();
            }
        }
        let mut after = base();
        after.maps(HUGE, HUGE, 10 * HUGE);
        for (page, frame) in [(5, 7), (9, 8)] {
            after.maps(HUGE + page, 1, frame);
        }
        let (_, before) = before.target();
        let (_, after) = after.target();
        let mut watcher = Watcher::new(Evidence::empty());
        assert_eq!(sample(&mut watcher, &before, || ()), []);
        let changes = sample(&mut watcher, &after, || ());
        let moved = changes.iter().filter(|change| change.kind != EventKind::Split);
        let brief = |change: &Change| (change.kind, change.address.map(|address| address.get() / PAGE));
        let moved: Vec<_> = moved.map(brief).collect();
        assert_eq!(moved, [(EventKind::CopiedOnWrite, Some(HUGE + 5)), (EventKind::Moved, Some(HUGE + 9))], "{scans}");
    }
}

/// Changes of regions in a part of the process are the same, whether all regions are read or those around the part.
#[test]
fn regions_that_grow_into_a_range_and_out_of_it() {
    use EventKind::*;
    let watched = region(0x100_1000, 0x10).range;
    let guard = |start, pages| crate::kernel::Region { name: Name::from("[anon:other]"), ..region(start, pages) };
    let far = || region(0x200_0000, 4);
    for (before, after, expected) in [
        // The heap grows, from far below, and back.
        (vec![region(0x1000, 4)], vec![region(0x1000, 0x100_0008)], &[(RegionGrew, 0x100_1000, 8)][..]),
        (vec![region(0x1000, 0x100_0008)], vec![region(0x1000, 4)], &[(RegionShrank, 0x100_1000, 8)]),
        // A stack grows.
        (vec![far()], vec![region(0x100_100c, 0xff_eff8)], &[(RegionGrew, 0x100_100c, 4)]),
        // A region grows through the whole range.
        (vec![region(0x100_0000, 0x10)], vec![region(0x100_0000, 0x2000)], &[(RegionGrew, 0x100_1000, 0x10)]),
        (vec![far()], vec![region(0x100_1002, 4), far()], &[(RegionAppeared, 0x100_1002, 4)]),
        (vec![region(0x100_1002, 4), far()], vec![far()], &[(RegionWent, 0x100_1002, 4)]),
        (vec![region(0x100_0000, 0x2000)], vec![], &[(RegionWent, 0x100_1000, 0x10)]),
        // A hole appears in the range, and others beside it.
        (
            vec![region(0x100_0000, 0x2000)],
            vec![region(0x100_0000, 0x1004), guard(0x100_1004, 1), region(0x100_1006, 0xffa)],
            &[(RegionAppeared, 0x100_1004, 1), (RegionShrank, 0x100_1004, 2)],
        ),
        (vec![region(0x100_0000, 0x2000)], vec![region(0x100_0000, 4), region(0x100_0800, 0x1800)], &[]),
        (vec![region(0x1000, 4), far()], vec![region(0x2000, 4), guard(0x100_1010, 4)], &[]),
    ] {
        for queries in [true, false] {
            let (world, target) = World { queries, ..World::new(before.clone()) }.target();
            let mut watcher = Watcher::new(Evidence::empty()).of_ranges(&[watched]);
            let mut look = || {
                let look = watcher.sample(&target, Budget::unlimited(), |_| vec![watched]).expect("a sample");
                assert_eq!(look.survival(), Survival::Alive);
                let brief = |change: Change| {
                    let range = change.range.expect("a change of a region");
                    (change.kind, range.start().get() / PAGE, range.len() / PAGE)
                };
                look.changes().map(brief).collect::<Vec<_>>()
            };
            assert_eq!(look(), []);
            *world.regions.lock().expect("a lock") = after.clone();
            assert_eq!(look(), expected, "{queries}: {before:?} {after:?}");
            assert_eq!(look(), []);
        }
    }
}

/// If the other process maps the frame of a page elsewhere, the page at its place in the other is in another row.
#[test]
fn a_page_that_the_other_maps_elsewhere_and_what_that_has_in_its_place() {
    use PageRelation::*;
    let snapshot = |frames: &[(u64, u64)]| {
        let mut world = World::new([region(0x1000, 0x10)]);
        for &(page, frame) in frames {
            world.maps(0x1000 + page, 1, frame);
        }
        // Bit 56 would say that nobody else maps it.
        world.entries.values_mut().for_each(|entry| *entry &= !(1 << 56));
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        Snapshot::begin(&space, space.spans(), Evidence::FRAMES, false).finish().expect("a snapshot")
    };
    let here = snapshot(&[(0, 500), (1, 501), (2, 502), (4, 504), (5, 505)]);
    // 500 to 502 are two pages further, in place of 504 in one of them.
    let there = snapshot(&[(0, 700), (1, 701), (2, 500), (3, 501), (4, 502), (5, 505)]);
    let range = region(0x1000, 0x10).range;
    let rows = here.compare(range, &there, Some(range.start()));
    let rows = rows.map(|row| (row.relation, row.address.get() / PAGE - 0x1000, row.pages));
    assert_eq!(rows.collect::<Vec<_>>(), [(OnlySecond, 0, 2), (Elsewhere, 0, 3), (Different, 4, 1), (Shared, 5, 1)]);
}

/// Snapshots of a process before and after, and its address space then.
fn two_snapshots(before: World, after: World) -> (Snapshot, Snapshot, AddressSpace) {
    let [before, after] = [before, after].map(|world| AddressSpace::of(&world.target().1).expect("a space"));
    let snapshot = |space: &AddressSpace| {
        Snapshot::begin(space, space.spans(), Evidence::empty(), false).finish().expect("a snapshot")
    };
    (snapshot(&before), snapshot(&after), after)
}

#[test]
fn snapshots_are_compared_where_pages_match_now() {
    let mut after = World::new([region(0x1000, 10)]);
    after.maps(0x1000, 3, 500);
    after.maps(0x1006, 2, 600);
    let (before, after, space) = two_snapshots(World::new([region(0x1000, 10)]), after);
    let all = || Difference::new(&space, &before, &after);
    let brief = |found: &FoundChanges| {
        let change = |change: &Change| (change.kind, change.address.map(|at| at.get() / PAGE), change.pages);
        found.changes.iter().map(change).collect::<Vec<_>>()
    };
    let came = |page, pages| (EventKind::Came, Some(page), pages);
    let found = all().finish().expect("changes");
    assert_eq!(brief(&found), [came(0x1000, 3), came(0x1006, 2)]);
    assert_eq!((found.counts.pages, found.counts.effect.came, found.left_out), (5, 5 * PAGE, 0));
    let from = |first: u64| Filter::new(Evidence::EACH, move |page, _| page.address.get() / PAGE >= first);
    let part = [region(0x1001, 9).range];
    let found = all().only(Some(&part)).matching(Some(&from(0x1002))).finish().expect("changes");
    assert_eq!(brief(&found), [came(0x1002, 1), came(0x1006, 2)]);
    // The filter keeps pages, but none that changed.
    let found = all().only(Some(&part)).matching(Some(&from(0x1008))).finish().expect("changes");
    assert_eq!((brief(&found), found.left_out), (vec![], 4));
    let stopped = all().with_budget(Budget::unlimited().at_most(0)).finish();
    assert!(matches!(stopped.err(), Some(Error::OutOfBudget(OutOfBudget::Steps))));
}

#[test]
fn a_comparison_without_changes_can_be_stopped() {
    let world = || {
        let mut world = World::new([region(0x1000, 4), region(0x3000, 4)]);
        [0x1000, 0x3000].into_iter().for_each(|page| world.maps(page, 4, 500));
        world
    };
    let (before, after, space) = two_snapshots(world(), world());
    let given_up =
        whole_or_given_up(|budget| match Difference::new(&space, &before, &after).with_budget(budget).finish() {
            Ok(found) => Ok(found.changes),
            Err(Error::OutOfBudget(why)) => Err(why),
            Err(error) => panic!("{error}"),
        });
    assert!(given_up > 1, "{given_up}");
}

#[test]
fn a_comparison_that_failed_never_goes_on_without_its_filter() {
    let (before, after, _) = two_snapshots(World::new([]), World::new([region(0x1000, 4)]));
    let (_, target) = World { refused: vec![WordFile::PageMap], ..World::new([region(0x1000, 4)]) }.target();
    let space = AddressSpace::of(&target).expect("a space");
    let none = Filter::new(Evidence::empty(), |_, _| false);
    let mut difference = Difference::new(&space, &before, &after).matching(Some(&none));
    for _ in 0..2 {
        assert!(matches!(difference.next(), Err(Error::Target(_))));
    }
}
