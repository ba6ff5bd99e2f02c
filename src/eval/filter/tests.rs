//! Fields asked of made-up processes.

use super::*;
use crate::inspect::Error;
use crate::kernel::{Kind, State, VirtualAddress};
use crate::process::fake::{HUGE, PAGE, World, region};

#[test]
fn what_cannot_be_known_is_named_before_the_walk() {
    fn unknown_in(space: &AddressSpace, field: PageField) -> Option<&'static str> {
        match FactReader::of_pages(space).require_compared(field) {
            Err(Error::Unknown { what, .. }) => Some(what),
            Ok(_) => None,
            Err(other) => panic!("{other}"),
        }
    }
    let world = |hidden| World { scans: false, hidden, ..World::new([region(0x100, 10)]) };
    // Without a scan, flags show which pages are in no large folio. Where flags are hidden too, nothing tells.
    let (_, target) = world(true).target();
    let space = AddressSpace::of(&target).expect("a space");
    assert_eq!(unknown_in(&space, PageField::Fact(PageFact::PmdMapped)), Some("huge mappings"));
    let (_, target) = world(false).target();
    let space = AddressSpace::of(&target).expect("a space");
    let unknown = |field| unknown_in(&space, field);
    assert_eq!(unknown(PageField::Fact(PageFact::PmdMapped)), None);
    assert_eq!(unknown(PageField::Fact(PageFact::SoftDirty)), Some("soft-dirty bits"));
    for known in [
        PageField::State(State::Present),
        PageField::Flag(PageFlags::DIRTY),
        PageField::Fact(PageFact::MapCount),
        PageField::Kind(Kind::Zero),
        // Region by region: a filter has no answer for a page of which this is unknown.
        PageField::Kind(Kind::Cached),
    ] {
        assert_eq!(unknown(known), None);
    }
    let all = Evidence::HUGE | Evidence::FLAGS;
    assert_eq!(space.obtainable(all), all);
}

/// Where no huge mapping fits, the kernel's own mark is enough. Where one fits, nothing tells before Linux 6.7.
#[test]
fn exclusive_without_a_scan_and_without_counts() {
    let answers = |pages: u64, scans: bool| {
        let mut world = World { scans, hidden: true, ..World::new([region(HUGE, pages)]) };
        world.maps(HUGE, 3, 1 << 20);
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let asked =
            FactReader::of_pages(&space).require(PageField::Fact(PageFact::Exclusive)).map(Option::unwrap_or_default);
        let detail = space.detail(VirtualAddress::new(HUGE * PAGE)).expect("its detail");
        let mut swept = Vec::new();
        let mut pages = space.pages(&space.spans(), asked.clone().unwrap_or_default());
        while let Some(chunk) = pages.next().expect("a sweep") {
            let present = chunk.pages().filter(|page| page.state() == State::Present);
            swept.extend(present.map(|page| page.exclusive()));
        }
        (asked.is_ok(), detail.exclusive.ok(), swept)
    };
    let alone = Some(true);
    assert_eq!(answers(HUGE - 1, false), (true, alone, vec![alone]));
    assert_eq!(answers(HUGE, true), (true, alone, vec![alone]));
    let (asked, detail, swept) = answers(HUGE, false);
    assert_eq!((asked, detail), (false, None));
    assert!(swept.iter().all(Option::is_none), "{swept:?}");
}

/// An average over a folio is not the count of any of its pages: filters on counts have no answer for it.
#[test]
fn averages_are_compared_with_nothing() {
    let mut world = World::new([region(0x1000, 4)]);
    world.average_counts = true;
    world.maps(0x1000, 2, 1 << 20);
    let part = PageFlags::ANON | PageFlags::COMPOUND_HEAD | PageFlags::THP;
    world.flags.insert(1 << 20, part.bits());
    let (_, target) = world.target();
    let space = AddressSpace::of(&target).expect("a space");
    let reader = FactReader::of_pages(&space);
    let field = PageField::Fact(PageFact::MapCount);
    let need = reader.require(field).expect("it can be asked").unwrap_or_default();
    let mut counts = Vec::new();
    let mut pages = space.pages(&space.spans(), need);
    while let Some(chunk) = pages.next().expect("a sweep") {
        for page in chunk.pages().filter(|page| page.state() == State::Present) {
            let count = reader.answer(field, &page, chunk.region).value();
            counts.push((page.map_count, count));
        }
    }
    assert_eq!(counts, [(Some(1), None), (Some(1), Some(1))]);
}
