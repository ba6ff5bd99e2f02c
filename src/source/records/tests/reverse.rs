//! The reverse map in the memory of a made kernel.

use super::super::layout::Member;
use super::super::reverse::{RecordedMapper, ReverseLayout, ReverseMap, ReverseMember};
use super::tables::{Kernel, MEMORY, PAGE, RECORDS, X86_64};
use super::tapes;
use crate::budget::Budget;
use crate::kernel::{PageFlags, VirtualAddress};
use ReverseMember::*;

const COUNT: usize = ReverseMember::ALL.len();

/// Where the structures of a kernel have the members, in the order of [`ReverseMember::ALL`].
const OFFSETS: [u64; COUNT] = [64, 32, 56, 8, 0, 72, 104, 128, 16, 8, 0, 8, 88, 16, 96, 40, 1024, 2048, 2416];

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
        let mut page = Page { kernel, map, is_file, nodes: Vec::new(), mappings: Vec::new(), spaces: Vec::new() };
        for Mapped(process, first, pages, index) in &all {
            let [entry, mapping, space, thread, open] = [(); 5].map(|()| page.kernel.page(0x1234_5678));
            page.put(mapping, Start, first * PAGE);
            page.put(mapping, End, (first + pages) * PAGE);
            page.put(mapping, FirstPage, *index);
            page.put(mapping, Space, space);
            page.put(mapping, OpenFile, open);
            page.put(open, PageCache, if is_file { map } else { 0 });
            page.put(space, Owner, thread);
            page.put(thread, SpaceOfThread, space);
            page.put(thread, Process, u64::from(*process));
            page.put(entry, EntryOf, map);
            page.put(entry, EntryMapping, mapping);
            page.nodes.push(if is_file { mapping + at(MappingNode) } else { entry + at(EntryNode) });
            page.mappings.push(mapping);
            page.spaces.push(space);
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

    fn mappers_within(&self, offsets: [u64; COUNT], mut budget: Budget) -> crate::source::Result<Vec<RecordedMapper>> {
        let pages = self.kernel.pages();
        ReverseMap { pages: &pages, layout: &ReverseLayout(offsets) }.mappers(FRAME, &mut budget)
    }

    /// The processes, with the page numbers.
    fn mappers(&self) -> Vec<(u32, Vec<u64>)> {
        let found = self.mappers_within(OFFSETS, Budget::unlimited()).expect("mappers");
        let pages = |pages: &[VirtualAddress]| pages.iter().map(|page| page.get() / PAGE).collect::<Vec<_>>();
        found.iter().map(|one| (one.pid, pages(&one.pages))).collect()
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
fn a_tree_without_end_is_left() {
    for is_file in [false, true] {
        let mut page = Page::new(is_file, family());
        let root = page.kernel.words[&(page.map + at(if is_file { FileRoot } else { AnonymousRoot }))];
        page.put(root, Left, root);
        let error = page.mappers_within(OFFSETS, Budget::unlimited()).expect_err("a tree without end");
        assert!(error.to_string().contains("too many"), "{error}");
        let error = page.mappers_within(OFFSETS, Budget::unlimited().at_most(10)).expect_err("few steps");
        assert!(matches!(error, crate::source::Error::OutOfBudget(_)), "{error}");
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
                _ = ReverseMap { pages: &pages, layout: &ReverseLayout(offsets) }.mappers(FRAME, &mut budget);
            }
        }
    }
}
