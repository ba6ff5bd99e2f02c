//! Page tables in the memory of a made kernel: the structures lie where a real one has them, the tables are built for
//! each processor.

use super::super::layout::Member;
use super::super::pages::PageRecords;
use super::super::tables::{AddressView, PageTables};
use super::super::way::{OwnerLayout, OwnerMember, TableLayout, TableMember, TableMembers};
use super::super::{FrameRecord, Image, RecordParts};
use super::kernel::{AARCH64, Kernel, MEMORY, PAGE, RECORDS, X86_64, region};
use super::owners::Known;
use super::tapes;
use crate::kernel::page_table::TableShape;
use crate::kernel::{FrameNumber, PageFlags, Region, TableBits, TableEntry};
use crate::sample::sample;
use std::collections::BTreeMap;

const PRESENT: u64 = 1 << 63;
const FILE: u64 = 1 << 61;
const OWN: u64 = 1 << 56;

/// Where the structures of Linux 6.12 have the members, in the order of [`TableMember::ALL`].
const OFFSETS: [u64; TableMember::ALL.len()] = [64, 32, 16, 8, 8, 0, 0, 8, 16, 72];

/// The same, in the order of [`OwnerMember::ALL`].
const OWNER: [u64; OwnerMember::ALL.len()] = [800, 1200, 1300, 1400, 1416, 0, 8];

/// A process: its page map and its first table.
#[derive(Clone, Default)]
struct Process {
    words: BTreeMap<u64, u64>,
    regions: Vec<Region>,
    top: u64,
    number: Option<u32>,
}

impl AddressView for Process {
    fn entries(&self, first: u64, into: &mut [u64]) -> Option<()> {
        for (page, word) in (first..).zip(into) {
            *word = self.words.get(&page).copied().unwrap_or_default();
        }
        Some(())
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn number(&self) -> Option<u32> {
        self.number
    }
}

/// A parent and its child after a fork: both have the same mapping of anonymous memory. Its reverse map has a node for
/// each, and one for a third process between them. All three are in the list of processes.
struct Family {
    kernel: Kernel,
    shape: TableShape,
    members: [Process; 2],
    /// The nodes of that list.
    listed: Vec<u64>,
}

/// Pages of the heap, the first of which both members share.
const HEAP: std::ops::Range<u64> = 0x555_5558..0x555_5568;
/// Its frame.
const SHARED: u64 = 0x2000;
const HUGE: u64 = 0x7ff_0000;
const GIGANTIC: u64 = 0x7c0_0000;

impl Family {
    fn new(machine: u16, levels: u8) -> Family {
        let mut kernel = Kernel::new(machine);
        let shape = kernel.shape(levels);
        let (_, tape) = tapes().next().expect("a tape");
        let mapping = tape.layout().at(Member::Mapping).expect("a member");
        let at = |member: TableMember| OFFSETS[member as usize];
        let of_owner = |member: OwnerMember| OWNER[member as usize];
        let junk = 0x1234_5678;
        let map = kernel.page(junk);
        let mut members = [Process::default(), Process::default()];
        let (mut nodes, mut listed) = (Vec::new(), Vec::new());
        for number in 0..3 {
            let [entry, place, space, thread] = [(); 4].map(|()| kernel.page(junk));
            let top = kernel.page(0);
            let facts = [
                (entry + at(TableMember::Of), map),
                (entry + at(TableMember::Mapping), place + 512),
                (place + 512 + at(TableMember::Start), HEAP.start * PAGE),
                (place + 512 + at(TableMember::End), HEAP.end * PAGE),
                (place + 512 + at(TableMember::Space), space + 512),
                (space + 512 + at(TableMember::Top), top),
                (space + 512 + of_owner(OwnerMember::Owner), thread),
                (thread + of_owner(OwnerMember::Space), space + 512),
                (thread + of_owner(OwnerMember::Process) - 4, (70 + number as u64) << 32 | 9),
                (entry + at(TableMember::Node) + at(TableMember::Left), 0),
                (entry + at(TableMember::Node) + at(TableMember::Right), 0),
            ];
            kernel.words.extend(facts);
            kernel.words.insert(thread + of_owner(OwnerMember::Leader), thread);
            nodes.push(entry + at(TableMember::Node));
            listed.push(thread + of_owner(OwnerMember::Listed));
            let Some(process) = members.get_mut(number) else {
                continue;
            };
            process.top = top;
            process.regions = vec![region(HEAP), region(HUGE..HUGE + 512), region(GIGANTIC..GIGANTIC + 512 * 512)];
            for page in HEAP.start..HEAP.start + 6 {
                let is_shared = page == HEAP.start;
                let frame = SHARED + (page - HEAP.start) + if is_shared { 0 } else { number as u64 * 0x100 };
                kernel.words.insert(RECORDS + frame * 64 + mapping, map | 1);
                let raw = kernel.raw(frame, 1, !is_shared);
                kernel.map(shape, top, page, 1, raw);
                process.words.insert(page, PRESENT | frame | if is_shared { 0 } else { OWN });
            }
            for (first, level, frame) in [(HUGE, 2, 0x4000), (GIGANTIC, 3, 0x80_0000)] {
                kernel.map(shape, top, first, level, kernel.raw(frame, level, true));
                for at in 0..shape.pages(level) {
                    process.words.insert(first + at, PRESENT | FILE | (frame + at));
                }
            }
        }
        let side = |member| nodes[2] + at(member);
        let tree = [
            (map + at(TableMember::Root), nodes[2]),
            (side(TableMember::Left), nodes[0]),
            (side(TableMember::Right), nodes[1]),
        ];
        kernel.words.extend(tree);
        for (&node, &next) in listed.iter().zip(listed.iter().cycle().skip(1)) {
            kernel.words.insert(node + of_owner(OwnerMember::Next), next);
            kernel.words.insert(next + of_owner(OwnerMember::Previous), node);
        }
        Family { kernel, shape, members, listed }
    }

    fn find(&self, member: usize, offsets: [u64; TableMember::ALL.len()]) -> crate::access::Result<PageTables> {
        self.find_by(member, offsets, OWNER)
    }

    fn find_by(
        &self,
        member: usize,
        offsets: [u64; TableMember::ALL.len()],
        owner: [u64; OwnerMember::ALL.len()],
    ) -> crate::access::Result<PageTables> {
        let layout = TableLayout { members: TableMembers(offsets), owner: Some(OwnerLayout(owner)) };
        let ground = Known { own_page: Some(SHARED), ..Known::default() };
        PageTables::find(&self.kernel.pages(), Some(&layout), &self.members[member], &ground)
    }
}

fn read(family: &Family, tables: &PageTables, first: u64, count: usize) -> Vec<Option<TableEntry>> {
    let mut entries = vec![None; count];
    tables.read(&family.kernel.pages(), first, &mut entries);
    entries
}

#[test]
fn the_entries_are_those_of_the_page_map() {
    for (machine, levels) in [(X86_64, 4), (X86_64, 5), (AARCH64, 4), (AARCH64, 3)] {
        let family = Family::new(machine, levels);
        for (number, process) in family.members.iter().enumerate() {
            let name = format!("{machine}, {levels} levels, process {number}");
            let tables = family.find(number, OFFSETS).expect(&name);
            assert_eq!((tables.top, tables.shape), (process.top, family.shape), "{name}");
            let heap = read(&family, &tables, HEAP.start - 4, 20);
            let frames: Vec<_> = heap.iter().map(|entry| entry.map(|entry| entry.frame.get())).collect();
            let expected: Vec<_> = (HEAP.start - 4..HEAP.start + 16)
                .map(|page| process.words.get(&page).map(|word| word & ((1 << 55) - 1)))
                .collect();
            assert_eq!(frames, expected, "{name}");
            let (shared, own) = (heap[4].expect("an entry").bits, heap[5].expect("an entry").bits);
            let read = TableBits::PRESENT | TableBits::USER | TableBits::ACCESSED;
            assert_eq!(shared - TableBits::NO_EXECUTE, read, "{name}");
            assert_eq!(own, TableBits::all(), "{name}");
        }
    }
}

#[test]
fn one_entry_of_an_upper_level_is_of_all_its_pages() {
    for (machine, levels) in [(X86_64, 4), (X86_64, 5), (AARCH64, 4), (AARCH64, 3)] {
        let family = Family::new(machine, levels);
        let tables = family.find(1, OFFSETS).expect("tables");
        // They begin and end within it.
        let huge = read(&family, &tables, HUGE - 3, 520);
        let frames: Vec<_> = huge.iter().map(|entry| entry.map(|entry| (entry.level, entry.frame.get()))).collect();
        let inside = (0x4000..0x4200).map(|frame| Some((2, frame)));
        let expected: Vec<_> = [None; 3].into_iter().chain(inside).chain([None; 5]).collect();
        assert_eq!(frames, expected, "{machine}, {levels} levels");
        let gigantic = read(&family, &tables, GIGANTIC + 262_142, 3);
        let frames: Vec<_> = gigantic.iter().map(|entry| entry.map(|entry| (entry.level, entry.frame.get()))).collect();
        assert_eq!(frames, [Some((3, 0x83_fffe)), Some((3, 0x83_ffff)), None], "{machine}, {levels} levels");
    }
}

#[test]
fn a_wrong_offset_leads_nowhere() {
    let family = Family::new(X86_64, 4);
    for &(member, places) in TableMember::ALL {
        let (structure, name) = places[0];
        for by in [-24, -16, -8, 8, 16, 24] {
            let mut offsets = OFFSETS;
            let Some(wrong) = offsets[member as usize].checked_add_signed(by) else {
                continue;
            };
            offsets[member as usize] = wrong;
            let found = [0, 1].map(|number| family.find(number, offsets).ok().map(|tables| tables.top));
            let right = family.members.each_ref().map(|process| process.top);
            let is_wrong = found.iter().zip(right).any(|(found, right)| found.is_some_and(|found| found != right));
            assert!(!is_wrong, "{structure}.{name} at {wrong}: the tables of another process");
            // The ends of a mapping prove nothing that the entries do not prove too.
            let is_needed = !matches!(member, TableMember::Start | TableMember::End);
            assert!(!is_needed || found.contains(&None), "{structure}.{name} at {wrong} is believed");
        }
    }
}

#[test]
fn tables_that_differ_from_the_page_map_are_not_believed() {
    let refusal = |change: &dyn Fn(&mut Family)| {
        let mut family = Family::new(X86_64, 4);
        change(&mut family);
        family.find(0, OFFSETS).err().map(|error| error.to_string())
    };
    assert_eq!(refusal(&|_| ()), None);
    let differs = "the kernel's records did not lead to page tables that agree with the page map";
    let unmapped = refusal(&|family| _ = family.members[0].words.remove(&(HEAP.start + 2)));
    assert_eq!(unmapped.as_deref(), Some(differs));
    let other = refusal(&|family| _ = family.members[0].words.insert(HEAP.start + 3, PRESENT | OWN | 0x2fff));
    assert_eq!(other.as_deref(), Some(differs));
    let more = refusal(&|family| _ = family.members[0].words.insert(HEAP.start + 9, PRESENT | OWN | 0x2fff));
    assert_eq!(more.as_deref(), Some(differs));
    // Right after a fork nothing but their owners tells the tables of the two.
    let shared = refusal(&|family| family.members[0].words.values_mut().for_each(|word| *word &= !OWN));
    assert!(shared.expect("a refusal").contains("every page of the process is shared"));
    let machine = refusal(&|family| family.kernel.machine = 22);
    assert_eq!(machine.as_deref(), Some("the page tables of this processor are unknown to pmdb"));
    let layout = PageTables::find(&Family::new(X86_64, 4).kernel.pages(), None, &Process::default(), &Known::default());
    assert!(layout.err().expect("a refusal").to_string().contains("layout"));
}

#[test]
fn the_owner_tells_tables_of_a_fork_apart() {
    let mut family = Family::new(X86_64, 4);
    for process in &mut family.members {
        process.words.values_mut().for_each(|word| *word &= !OWN);
    }
    assert!(family.find(0, OFFSETS).is_err());
    for (process, number) in family.members.iter_mut().zip([70, 71]) {
        process.number = Some(number);
    }
    for number in [0, 1] {
        assert_eq!(family.find(number, OFFSETS).expect("tables").top, family.members[number].top);
    }
    // The entries have to agree all the same, and a thread of another address space proves nothing.
    family.members[0].number = Some(71);
    assert!(family.find(0, OFFSETS).is_err());
    family.members[0].number = Some(72);
    assert!(family.find(0, OFFSETS).is_err());
    family.members[0].number = Some(70);
    let back = family.kernel.words.iter().find(|(_, word)| **word == 70 << 32 | 9).map(|(place, _)| place + 4);
    let thread = back.expect("a thread") - OWNER[OwnerMember::Process as usize];
    family.kernel.words.insert(thread + OWNER[OwnerMember::Space as usize], 0);
    assert!(family.find(0, OFFSETS).is_err());
}

/// Only its files are in memory, so no page of it has a reverse map.
fn in_swap() -> Family {
    let mut family = Family::new(X86_64, 4);
    for (process, number) in family.members.iter_mut().zip([70, 71]) {
        process.number = Some(number);
        process.words.retain(|page, _| !HEAP.contains(page));
    }
    family
}

#[test]
fn the_list_of_processes_leads_to_one_that_is_in_swap() {
    let mut family = in_swap();
    for number in [0, 1] {
        assert_eq!(family.find(number, OFFSETS).expect("tables").top, family.members[number].top);
    }
    // The entries have to agree all the same.
    family.members[0].words.insert(HUGE, PRESENT | FILE | 0x4001);
    assert!(family.find(0, OFFSETS).is_err());
    let mut family = in_swap();
    family.members[0].number = Some(80);
    assert!(family.find(0, OFFSETS).is_err());
    // Another pid namespace has other numbers.
    family.members[0].number = None;
    assert!(family.find(0, OFFSETS).is_err());
}

#[test]
fn a_list_that_proves_nothing_leads_nowhere() {
    for &(member, places) in OwnerMember::ALL {
        let (structure, name) = places[0];
        for by in sample([-16, -8, 8, 16], 4) {
            let mut owner = OWNER;
            let Some(wrong) = owner[member as usize].checked_add_signed(by) else {
                continue;
            };
            owner[member as usize] = wrong;
            let family = in_swap();
            let found = [0, 1].map(|number| family.find_by(number, OFFSETS, owner).ok().map(|tables| tables.top));
            assert!(found.contains(&None), "{structure}.{name} at {wrong} is believed");
            let right = family.members.each_ref().map(|process| process.top);
            let is_wrong = found.iter().zip(right).any(|(found, right)| found.is_some_and(|found| found != right));
            assert!(!is_wrong, "{structure}.{name} at {wrong}: the tables of another process");
        }
    }
    // A node that the kernel has removed, and a list that does not come back to its start.
    let (next, previous) = (OWNER[OwnerMember::Next as usize], OWNER[OwnerMember::Previous as usize]);
    let mut family = in_swap();
    for node in family.listed.clone() {
        family.kernel.words.insert(node + previous, 0xdead_0000_0000_0122);
    }
    assert!([0, 1].iter().all(|&number| family.find(number, OFFSETS).is_err()));
    let mut family = in_swap();
    family.members[0].number = Some(80);
    let last = family.listed[2];
    family.kernel.words.extend([(last + next, last), (last + previous, last)]);
    assert!(family.find(0, OFFSETS).is_err());
}

#[test]
fn a_reverse_map_without_end_is_left() {
    let mut family = Family::new(X86_64, 4);
    // The third node becomes its own child.
    let at = |member: TableMember| OFFSETS[member as usize];
    let root = family.kernel.words.iter().find(|(_, word)| **word == family.members[0].top).map(|(place, _)| *place);
    assert!(root.is_some());
    let nodes: Vec<u64> = family.kernel.words.keys().copied().collect();
    let tree = nodes.into_iter().find(|place| {
        let left = family.kernel.words[place];
        family.kernel.words.get(&(place - 8)).is_some_and(|right| *right > MEMORY && left > MEMORY)
            && place % PAGE == at(TableMember::Node) + at(TableMember::Left)
    });
    let left = tree.expect("the node with two children");
    let own = left - at(TableMember::Left);
    family.kernel.words.insert(left, own);
    assert!(family.find(0, OFFSETS).is_err());
    assert!(family.find(1, OFFSETS).is_ok());
}

/// Single pages of many kinds and a large folio across the end of a read.
#[test]
fn many_records_are_as_each_alone() {
    const FIRST: u64 = 0x3004;
    const FRAMES: u64 = 2500;
    const FOLIO: u64 = 0x3400;
    let (_, tape) = tapes().next().expect("a tape");
    let layout = tape.layout();
    let mut kernel = Kernel::new(X86_64);
    let mut put = |frame: u64, member: Member, size: u64, value: u64| {
        let place = RECORDS + frame * layout.page + layout.at(member).expect("a member");
        let word = kernel.words.entry(place & !7).or_default();
        let (shift, mask) = ((place & 7) * 8, if size == 4 { 0xffff_ffff } else { u64::MAX });
        *word = *word & !(mask << shift) | value << shift;
    };
    let bit = |flag: PageFlags| 1 << layout.flags.iter().find(|(one, _)| *one == flag).expect("a flag").1;
    for frame in FIRST..FIRST + FRAMES {
        let is_in_use = !frame.is_multiple_of(5);
        let flags = if is_in_use { bit(PageFlags::UPTODATE) | bit(PageFlags::LRU) } else { bit(PageFlags::RESERVED) };
        put(frame, Member::Flags, 8, flags);
        put(frame, Member::References, 4, frame % 7);
        put(frame, Member::Maps, 4, frame % 3);
        put(frame, Member::Mapping, 8, if is_in_use { 0x9001 + frame % 3 * 2 } else { 0 });
    }
    put(FOLIO, Member::Flags, 8, bit(PageFlags::COMPOUND_HEAD) | bit(PageFlags::UPTODATE));
    put(FOLIO, Member::Pages, 4, 8);
    for tail in FOLIO + 1..FOLIO + 8 {
        put(tail, Member::Compound, 8, (RECORDS + FOLIO * layout.page) | 1);
    }
    let pages = kernel.pages();
    let parts = RecordParts::all();
    let mut together = vec![FrameRecord::default(); FRAMES as usize];
    pages.read(FIRST, parts, &mut together);
    for (frame, record) in (FIRST..).zip(&together) {
        let mut alone = [FrameRecord::default()];
        pages.read(frame, parts, &mut alone);
        assert_eq!(*record, alone[0], "{frame:#x}");
        let folio = if (FOLIO..FOLIO + 8).contains(&frame) { (FOLIO, 3) } else { (frame, 0) };
        assert_eq!((record.head.map(FrameNumber::get), record.order), (Some(folio.0), Some(folio.1)), "{frame:#x}");
        assert_eq!(record.references, Some((folio.0 % 7) as u32), "{frame:#x}");
    }
}

#[test]
fn the_kernel_tells_how_many_levels_tables_have() {
    for (kernel, tape) in tapes() {
        let image = Image::open(tape.core()).expect(kernel);
        let pages = PageRecords::find(image, tape.layout(), &tape.ground()).expect(kernel);
        assert_eq!(PageTables::shape(&pages).map(|shape| shape.levels), Some(5), "{kernel}");
    }
}
