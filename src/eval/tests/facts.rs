//! Each word about pages by a filter and by a group: the same pages, or the same reason, on machines that show
//! different things.

use super::World as Known;
use crate::eval;
use crate::inspect::{AddressSpace, Answer, FactReader, Group, GroupCounts, Groups, Question, Selection};
use crate::kernel::{Key, PageFact, PageField, PageFlags, State, ValueType, WordFile};
use crate::lang::{FilterExpression, FilterField, Span, Spanned};
use crate::process::fake::{FILE, HUGE, PRESENT, World, region};
use crate::report::Reason;
use std::collections::BTreeSet;

/// Small pages of its own, shared pages, a page of a file in the middle, a huge page, and untouched memory.
fn mapped(change: impl FnOnce(World) -> World) -> World {
    let mut file = region(0x5000, 8);
    file.inode = 7;
    let mut world = change(World::new([region(0x1000, 40), file, region(4 * HUGE * 16, 2 * HUGE)]));
    world.maps(0x1000, 10, 1 << 20);
    for page in 10..16 {
        world.entries.insert(0x1000 + page, PRESENT | ((2 << 20) + 2 * page));
        world.counts.insert((2 << 20) + 2 * page, 2);
        world.flags.insert((2 << 20) + 2 * page, (PageFlags::ANON | PageFlags::DIRTY).bits());
    }
    world.entries.insert(0x5001, PRESENT | FILE | 0x900);
    world.counts.insert(0x900, 3);
    world.maps_huge(4 * HUGE * 16, 64 * HUGE);
    world
}

/// What a group and a filter say of one word.
fn compare(name: &str, space: &AddressSpace, field: PageField) {
    let what = format!("{} in {name}", field.name());
    let reader = FactReader::of_pages(space);
    let scope = Known::default();
    let written = Spanned::new(FilterExpression::is(field), Span::default());
    let filter = eval::page_filter(&written, space, &scope);
    let need = match (reader.require(field), &filter) {
        (Ok(need), Ok(filter)) => {
            assert_eq!(need, Some(filter.need()), "{what}");
            need.unwrap_or_default()
        }
        (Err(_), Err(_)) => return,
        (grouped, filtered) => panic!("{what}: {grouped:?} beside {filtered:?}"),
    };
    let filter = filter.expect("a filter");
    let (mut kept, mut selection) = (0, Selection::default());
    let mut groups = Groups::new(Key::Page(field), FactReader::of_pages(space));
    let question = Question::of_kept(&filter, need);
    let mut sweep = space.pages(&space.spans(), question.clone());
    while let Some(chunk) = sweep.next().expect("a sweep") {
        chunk.pages().for_each(|page| groups.add(&page, chunk.region_index));
        kept += selection.matching_pages(chunk, &question).map(|page| page.pages).sum::<u64>();
    }
    let GroupCounts { reader, pages: groups, .. } = groups.finish();
    let pages = |wanted: Answer| {
        let groups = groups.iter().filter(|((group, _), _)| *group == Group::Known(wanted));
        groups.map(|(_, pages)| pages).sum::<u64>()
    };
    assert_eq!(kept, pages(Answer::Is(1)), "{what}");
    let unknown = groups.iter().filter_map(|&((group, _), pages)| match group {
        Group::Known(Answer::Unknown(gap)) if !gap.is_reported_apart() => Some((pages, reader.reason(gap, None))),
        _ => None,
    });
    let (mut undecided, mut reasons) = (0, BTreeSet::<Reason>::new());
    for (pages, reason) in unknown {
        undecided += pages;
        reasons.insert(reason);
    }
    assert_eq!(selection.undecided.pages(), undecided, "{what}: {reasons:?}");
    if reasons.len() == 1 {
        assert_eq!(selection.undecided.reason(), reasons.pop_first(), "{what}");
    }
}

#[test]
fn a_filter_and_a_group_agree_on_every_word() {
    let none = |world| world;
    let machines: [(&str, World); 9] = [
        ("all", mapped(none)),
        ("without a scan", mapped(|world| World { scans: false, ..world })),
        ("hidden frames", mapped(|world| World { hidden: true, ..world })),
        ("hidden frames, no scan", mapped(|world| World { hidden: true, scans: false, ..world })),
        ("no flags", mapped(|world| World { refused: vec![WordFile::FrameFlags], ..world })),
        ("no counts", mapped(|world| World { refused: vec![WordFile::FrameCounts], ..world })),
        ("averages", mapped(|world| World { average_counts: true, ..world })),
        ("merged pages somewhere", mapped(|world| World { merged_pages: 1, ..world })),
        (
            "merged pages, no flags",
            mapped(|world| World { merged_pages: 1, refused: vec![WordFile::FrameFlags], ..world }),
        ),
    ];
    for (name, world) in machines {
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        for field in PageField::all().filter(|field| field.value_type() == ValueType::Boolean) {
            compare(name, &space, field);
        }
    }
}

/// A page of a file has bit 61, so it does not matter what else is merged.
#[test]
fn a_kind_by_itself_needs_less_than_all_kinds() {
    let world = mapped(|world| World { merged_pages: 1, refused: vec![WordFile::FrameFlags], ..world });
    let (_, target) = world.target();
    let space = AddressSpace::of(&target).expect("a space");
    let reader = FactReader::of_pages(&space);
    let mut pages = space.pages(&space.spans(), reader.require(PageField::Fact(PageFact::Kind)).unwrap().unwrap());
    let (mut unknown, mut of_no_file) = (0, 0);
    while let Some(chunk) = pages.next().expect("a sweep") {
        for page in chunk.pages().filter(|page| page.state() == State::Present) {
            let is_unknown =
                matches!(reader.answer(PageField::Fact(PageFact::Kind), &page, chunk.region), Answer::Unknown(_));
            unknown += if is_unknown { page.pages } else { 0 };
            let file = reader.answer(PageField::Kind(crate::kernel::Kind::File), &page, chunk.region);
            of_no_file += if file == Answer::Is(0) { page.pages } else { 0 };
        }
    }
    assert!(unknown > 0);
    assert_eq!(of_no_file, 16 + HUGE);
}

/// Of a device mapping and of untouched memory there is no frame that could be huge.
#[test]
fn a_page_without_a_frame_is_neither_huge_nor_not_huge() {
    let (_, target) = mapped(|world| world).target();
    let space = AddressSpace::of(&target).expect("a space");
    let reader = FactReader::of_pages(&space);
    for state in State::ALL.iter().filter(|state| **state != State::Present) {
        for huge in [None, Some(false), Some(true)] {
            let page = crate::inspect::Page {
                huge,
                ..crate::inspect::Page::new(crate::kernel::VirtualAddress::new(0x1000), (*state).into())
            };
            for fact in [PageFact::Huge, PageFact::PmdMapped] {
                let answer = reader.answer(PageField::Fact(fact), &page, None);
                assert_eq!(answer.holds(), None, "{state:?} {huge:?}");
            }
        }
    }
}
