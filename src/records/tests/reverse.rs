//! The reverse map in the memory of a made kernel.

use super::super::layout::Member;
use super::super::reverse::{ReverseLayout, ReverseMap, ReverseMember, ReverseMembers};
use super::super::{RecordedMapper, RecordedPage};
use super::kernel::{Changes, Kernel, MEMORY, PAGE, RECORDS, X86_64};
use super::tapes;
use crate::access::Identity;
use crate::budget::Budget;
use crate::kernel::{AddressRange, PageFlags, VirtualAddress};
use ReverseMember::*;

const COUNT: usize = ReverseMember::ALL.len();

/// Where the structures of a kernel have the members, in the order of [`ReverseMember::ALL`].
const OFFSETS: [u64; COUNT] = [
    64, 32, 56, 8, 0, 72, 104, 128, 16, 8, 0, 8, 88, 16, 32, 80, 96, 40, 120, 320, 328, 336, 1024, 2048, 2416, 2440,
    2600, 2904,
];
/// Where a mapping has the name that its process gave it.
const GIVEN_NAME: u64 = 144;

const FRAME: u64 = 0x2000;
const INDEX: u64 = 1000;

/// A mapping: the process, the first page, the pages, and the page of the object that it begins with.
#[derive(Clone, Copy)]
struct Mapped(u32, u64, u64, u64);

/// A page with a reverse map.
#[derive(Clone)]
struct Page {
    kernel: Kernel,
    /// The anonymous memory or the page cache.
    map: u64,
    is_file: bool,
    /// The nodes, the structures of the mappings and the address spaces.
    nodes: Vec<u64>,
    mappings: Vec<u64>,
    spaces: Vec<u64>,
    /// The first tables.
    tops: Vec<u64>,
    /// Where mappings have their names.
    given_name: u64,
}

fn layout(offsets: [u64; COUNT], given_name: u64) -> ReverseLayout {
    ReverseLayout::new(ReverseMembers(offsets), Some(given_name))
}

fn at(member: ReverseMember) -> u64 {
    OFFSETS[member as usize]
}

impl Page {
    /// The tree is one of a search: nodes are sorted by their first pages, and each knows the last page below it.
    fn new(is_file: bool, mut all: Vec<Mapped>) -> Page {
        all.sort_by_key(|mapped| mapped.3);
        let mut kernel = Kernel::new(X86_64);
        let map = kernel.page(0x1234_5678);
        let [nodes, mappings, spaces, tops] = [(); 4].map(|()| Vec::new());
        let mut page = Page { kernel, map, is_file, nodes, mappings, spaces, tops, given_name: GIVEN_NAME };
        for Mapped(process, first, pages, index) in &all {
            let [entry, mapping, space, thread, open] = [(); 5].map(|()| page.kernel.page(0x1234_5678));
            let top = page.kernel.page(0);
            page.put(mapping, Start, first * PAGE);
            page.put(mapping, End, (first + pages) * PAGE);
            page.put(mapping, FirstPage, *index);
            page.put(mapping, Space, space);
            page.put(mapping, OpenFile, if is_file { open } else { 0 });
            page.put(mapping, Operations, 0);
            page.put(open, PageCache, if is_file { map } else { 0 });
            page.put(space, Top, top);
            page.put(space, Owner, thread);
            page.put(thread, SpaceOfThread, space);
            page.put(thread, Process, u64::from(*process));
            page.put(thread, Leader, thread);
            page.put(thread, StartTime, u64::from(*process) * 10_000_000 + 7);
            page.put(thread, ThreadName, u64::from_le_bytes(*b"relative"));
            page.kernel.words.insert(thread + at(ThreadName) + 8, 0);
            page.put(entry, EntryOf, map);
            page.put(entry, EntryMapping, mapping);
            page.nodes.push(if is_file { mapping + at(MappingNode) } else { entry + at(EntryNode) });
            page.mappings.push(mapping);
            page.spaces.push(space);
            page.tops.push(top);
        }
        let root = page.link(&all, 0..all.len()).0;
        page.put(map, if is_file { FileRoot } else { AnonymousRoot }, root);
        let (_, tape) = tapes().next().expect("a tape");
        let layout = tape.layout();
        let in_record = |member: Member| RECORDS + FRAME * 64 + layout.at(member).expect("a member");
        let (_, bit) = layout.flags.iter().find(|(flag, _)| *flag == PageFlags::UPTODATE).expect("a flag");
        let words = [
            (in_record(Member::Flags), 1 << bit),
            (in_record(Member::Mapping), map | u64::from(!is_file)),
            (in_record(Member::Index), INDEX),
        ];
        page.kernel.words.extend(words);
        page
    }

    fn put(&mut self, structure: u64, member: ReverseMember, value: u64) {
        self.kernel.words.insert(structure + at(member), value);
    }

    /// Links the nodes of these mappings. Returns the first of them, and the last page of all.
    fn link(&mut self, all: &[Mapped], range: std::ops::Range<usize>) -> (u64, u64) {
        if range.is_empty() {
            return (0, 0);
        }
        let middle = range.start + range.len() / 2;
        let (left, left_last) = self.link(all, range.start..middle);
        let (right, right_last) = self.link(all, middle + 1..range.end);
        let Mapped(_, _, pages, index) = all[middle];
        let last = (index + pages - 1).max(left_last).max(right_last);
        let node = self.nodes[middle];
        self.put(node, Left, left);
        self.put(node, Right, right);
        let (of, member) =
            if self.is_file { (self.mappings[middle], MappingLast) } else { (node - at(EntryNode), EntryLast) };
        self.put(of, member, last);
        (node, last)
    }

    fn mappers_within(&self, offsets: [u64; COUNT], mut budget: Budget) -> crate::access::Result<Vec<RecordedMapper>> {
        let pages = self.kernel.pages();
        let shape = Some(self.kernel.shape(4));
        let layout = layout(offsets, self.given_name);
        ReverseMap { pages: &pages, layout: &layout, shape }.mappers(FRAME, &mut |_| false, &mut budget)
    }

    /// The processes, with the page numbers.
    fn mappers(&self) -> Vec<(u32, Vec<u64>)> {
        let found = self.mappers_within(OFFSETS, Budget::unlimited()).expect("mappers");
        let pages = |pages: &[RecordedPage]| pages.iter().map(|page| page.address.get() / PAGE).collect::<Vec<_>>();
        found.iter().map(|one| (one.process.pid, pages(&one.pages))).collect()
    }

    /// Maps the frame at a page of the process whose mapping is the `nth`.
    fn map(&mut self, nth: usize, page: u64) {
        let shape = self.kernel.shape(4);
        let raw = self.kernel.raw(FRAME, 1, true);
        self.kernel.map(shape, self.tops[nth], page, 1, raw);
    }
}

/// A family that shares a page at the same address, two that have it elsewhere, and mappings of other pages.
fn family() -> Vec<Mapped> {
    let mut all: Vec<Mapped> = (10..50).map(|process| Mapped(process, 0x555, 4, INDEX - 1)).collect();
    all.extend((50..70).map(|process| Mapped(process, 0x555, 4, INDEX - 20)));
    all.extend((70..90).map(|process| Mapped(process, 0x555, 4, INDEX + 1)));
    all.extend([Mapped(5, 0x7000, 2000, 0), Mapped(4, 0x900, 1, INDEX)]);
    all
}

fn expected() -> Vec<(u32, Vec<u64>)> {
    let relatives = (10..50).map(|process| (process, vec![0x556]));
    [(4, vec![0x900]), (5, vec![0x7000 + INDEX])].into_iter().chain(relatives).collect()
}

#[test]
fn the_mappings_of_a_page_are_found() {
    for is_file in [false, true] {
        assert_eq!(Page::new(is_file, family()).mappers(), expected(), "{is_file}");
        assert_eq!(Page::new(is_file, Vec::new()).mappers(), [], "{is_file}");
    }
}

#[test]
fn a_process_with_two_mappings_is_one() {
    for is_file in [false, true] {
        let mut page = Page::new(is_file, vec![Mapped(7, 0x100, 9, INDEX - 8), Mapped(8, 0x200, 1, INDEX)]);
        let space = page.spaces[0];
        page.put(page.mappings[1], Space, space);
        assert_eq!(page.mappers(), [(7, vec![0x108, 0x200])], "{is_file}");
    }
}

#[test]
fn what_does_not_point_back_is_left_out() {
    for is_file in [false, true] {
        let whole = Page::new(is_file, family());
        let without = |process: u32| expected().into_iter().filter(|one| one.0 != process).collect::<Vec<_>>();
        // The mapping of process 5 is the first of all: its page begins with 0.
        let mut other_map = whole.clone();
        if is_file {
            let open = other_map.kernel.words[&(other_map.mappings[0] + at(OpenFile))];
            other_map.put(open, PageCache, MEMORY);
        } else {
            other_map.put(other_map.nodes[0] - at(EntryNode), EntryOf, MEMORY);
        }
        assert_eq!(other_map.mappers(), without(5), "{is_file}");
        // Its process has exited.
        let mut no_owner = whole.clone();
        no_owner.put(no_owner.spaces[0], Owner, 0);
        assert_eq!(no_owner.mappers(), without(5), "{is_file}");
        let mut other_space = whole.clone();
        let thread = other_space.kernel.words[&(other_space.spaces[0] + at(Owner))];
        other_space.put(thread, SpaceOfThread, 0);
        assert_eq!(other_space.mappers(), without(5), "{is_file}");
    }
}

#[test]
fn only_pages_whose_entries_lead_to_the_frame_are_named() {
    for is_file in [false, true] {
        let mut page = Page::new(is_file, (10..20).map(|process| Mapped(process, 0x555, 4, INDEX - 1)).collect());
        page.map(3, 0x556);
        page.map(7, 0x556);
        // Of another page.
        page.map(8, 0x557);
        let found = page.mappers_within(OFFSETS, Budget::unlimited()).expect("mappers");
        let processes: Vec<&Identity> = found.iter().map(|one| &one.process).collect();
        let relative = |pid: u32| Identity { pid, start_time: pid.into(), name: "relative".into() };
        assert_eq!(processes, [&relative(13), &relative(17)], "{is_file}");
        let address = |page: u64| VirtualAddress::new(page * PAGE);
        let range = AddressRange::new(address(0x555), address(0x559)).expect("pages");
        for mapper in found {
            let [RecordedPage { address: at, is_mapped: true, range: of, kind: Some(_), .. }] = mapper.pages[..] else {
                panic!("{mapper:?}");
            };
            assert_eq!((at, of), (address(0x556), range));
        }
    }
}

/// The kernel turns the tree while it is walked.
#[test]
fn a_mapping_that_is_met_twice_is_named_once() {
    for is_file in [false, true] {
        let mut page = Page::new(is_file, (10..17).map(|process| Mapped(process, 0x555, 4, INDEX - 1)).collect());
        let (first, last) = (page.nodes[0], page.nodes[6]);
        page.put(first, Left, last);
        let once: Vec<(u32, Vec<u64>)> = (10..17).map(|process| (process, vec![0x556])).collect();
        assert_eq!(page.mappers(), once, "{is_file}");
    }
}

#[test]
fn mappings_that_leave_meanwhile_are_left_out() {
    let mut page = Page::new(false, (10..110).map(|process| Mapped(process, 0x555, 4, INDEX - 1)).collect());
    (0..100).for_each(|nth| page.map(nth, 0x556));
    let words = page.kernel.words.clone();
    let entry = |raw: &&u64| **raw == page.kernel.raw(FRAME, 1, true);
    let (&entry, _) = words.iter().find(|(_, raw)| entry(raw)).expect("an entry");
    let owner = page.spaces[1] + at(Owner);
    let space_of_thread = words[&(page.spaces[2] + at(Owner))] + at(SpaceOfThread);
    for (leaves, expected) in [(None, 100), (Some(entry), 99), (Some(owner), 99), (Some(space_of_thread), 99)] {
        let changed = Changes::default();
        let pages = page.kernel.changing_pages(changed.clone());
        let map = ReverseMap { pages: &pages, layout: &layout(OFFSETS, GIVEN_NAME), shape: Some(page.kernel.shape(4)) };
        let mut leave = |found: &[RecordedMapper]| {
            assert_eq!(found.len(), 100);
            changed.lock().expect("a lock").extend(leaves.map(|place| (place, 0)));
            true
        };
        let found = map.mappers(FRAME, &mut leave, &mut Budget::unlimited()).expect("mappers");
        assert_eq!(found.len(), expected, "{leaves:x?}");
    }
}

#[test]
fn the_first_thread_has_the_name_and_the_start_time() {
    let mut page = Page::new(false, vec![Mapped(7, 0x100, 1, INDEX), Mapped(8, 0x100, 1, INDEX)]);
    let thread = |page: &Page, nth: usize| page.kernel.words[&(page.spaces[nth] + at(Owner))];
    let (one, other) = (thread(&page, 0), thread(&page, 1));
    page.put(one, Leader, other);
    let found = page.mappers_within(OFFSETS, Budget::unlimited()).expect("mappers");
    assert_eq!((found[0].process.pid, found[0].process.start_time), (7, 8));
}

/// Regions of one kind differ only in their ranges.
#[test]
fn a_kind_has_all_that_is_shown_of_a_region() {
    for is_file in [false, true] {
        let kinds = |change: &dyn Fn(&mut Page)| -> [Option<u64>; 2] {
            let mut page = Page::new(is_file, vec![Mapped(7, 0x100, 1, INDEX), Mapped(8, 0x900, 2, INDEX)]);
            for space in page.spaces.clone() {
                let far = [(HeapStart, 0x5000), (HeapEnd, 0x6000), (StackStart, 0x7000)];
                far.into_iter().for_each(|(member, at)| page.put(space, member, at * PAGE));
            }
            if is_file {
                let open = page.kernel.words[&(page.mappings[0] + at(OpenFile))];
                page.put(page.mappings[1], OpenFile, open);
            }
            change(&mut page);
            let found = page.mappers_within(OFFSETS, Budget::unlimited()).expect("mappers");
            [0, 1].map(|nth| found[nth].pages[0].kind)
        };
        let [one, other] = kinds(&|_| ());
        assert!(one.is_some() && one == other, "{is_file}");
        let differs = |member: ReverseMember, value: u64| {
            let change = |page: &mut Page| {
                let of_space = [HeapStart, HeapEnd, StackStart].contains(&member);
                let structure = if of_space { page.spaces[1] } else { page.mappings[1] };
                page.put(structure, member, value);
            };
            let [one, other] = kinds(&change);
            one != other
        };
        for bit in [1, 2, 4, 0x80] {
            assert!(differs(Flags, 0x1234_5678 ^ bit), "{is_file} {bit:#x}");
        }
        // VM_LOCKED is not shown.
        assert!(!differs(Flags, 0x1234_5678 ^ 0x2000), "{is_file}");
        assert!(differs(HeapStart, 0x901 * PAGE) && differs(HeapEnd, 0x800 * PAGE), "{is_file}");
        assert!(differs(StackStart, 0x901 * PAGE), "{is_file}");
        let named = |page: &mut Page| _ = page.kernel.words.insert(page.mappings[1] + GIVEN_NAME, 5);
        let [one, other] = kinds(&named);
        assert_ne!(one, other, "{is_file}");
        // From Linux 5.17 to 6.1 the node of a file's tree is in the place of the name.
        let [one, other] = kinds(&|page| page.given_name = at(MappingNode) + at(Left));
        assert!(one.is_some() && one == other, "{is_file}");
        if !is_file {
            // The vdso and its kin.
            assert!(differs(Operations, 9) && kinds(&|page| page.put(page.mappings[1], Operations, 9))[1].is_none());
        }
    }
}

#[test]
fn a_tree_without_end_is_left() {
    for is_file in [false, true] {
        let mut page = Page::new(is_file, family());
        let root = page.kernel.words[&(page.map + at(if is_file { FileRoot } else { AnonymousRoot }))];
        page.put(root, Left, root);
        let error = page.mappers_within(OFFSETS, Budget::unlimited()).expect_err("a tree without end");
        assert!(error.to_string().contains("too many"), "{error}");
        let error = page.mappers_within(OFFSETS, Budget::unlimited().at_most(10)).expect_err("few steps");
        assert!(matches!(error, crate::access::Error::OutOfBudget(_)), "{error}");
    }
}

#[test]
fn pages_without_a_reverse_map_have_no_mappers() {
    let (_, tape) = tapes().next().expect("a tape");
    let place = RECORDS + FRAME * 64 + tape.layout().at(Member::Mapping).expect("a member");
    for mapping in [0, 2, 3] {
        let mut page = Page::new(false, family());
        page.kernel.words.insert(place, mapping);
        assert!(page.mappers_within(OFFSETS, Budget::unlimited()).is_err(), "{mapping}");
    }
}

/// What a wrong layout leads to is no answer, but it has an end.
#[test]
fn wrong_offsets_lead_to_an_end() {
    for is_file in [false, true] {
        let page = Page::new(is_file, family());
        let pages = page.kernel.pages();
        for &(member, ..) in ReverseMember::ALL {
            for wrong in [0, 4, 8, 16, 24, 56, 64, 1 << 40, u64::MAX] {
                let mut offsets = OFFSETS;
                offsets[member as usize] = wrong;
                let mut budget = Budget::unlimited().at_most(10_000);
                let layout = layout(offsets, GIVEN_NAME);
                _ = ReverseMap { pages: &pages, layout: &layout, shape: None }.mappers(
                    FRAME,
                    &mut |_| false,
                    &mut budget,
                );
            }
        }
    }
}
