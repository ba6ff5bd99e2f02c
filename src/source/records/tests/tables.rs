//! Page tables in the memory of a made kernel: the structures lie where a real one has them, the tables are built for
//! each processor.

use super::super::bases::Bases;
use super::super::layout::{Member, PageLayout};
use super::super::pages::PageRecords;
use super::super::tables::{AddressView, PageTables};
use super::super::way::{OwnerLayout, OwnerMember, TableLayout, TableMember, TableMembers};
use super::super::{FrameRecord, Image, ReadCore, RecordParts};
use super::tapes;
use crate::kernel::VirtualAddress;
use crate::kernel::page_table::{AddressBits, TableShape};
use crate::kernel::{AddressRange, FrameNumber, Name, PageFlags, PageSize, Permissions, Region, TableBits, TableEntry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

pub(super) const PAGE: u64 = 4096;
pub(super) const MEMORY: u64 = 0xffff_8880_0000_0000;
pub(super) const RECORDS: u64 = 0xffff_ea00_0000_0000;
const RAM: u64 = 1 << 30;
const PRESENT: u64 = 1 << 63;
const FILE: u64 = 1 << 61;
const OWN: u64 = 1 << 56;
pub(super) const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// Where the structures of Linux 6.12 have the members, in the order of [`TableMember::ALL`].
const OFFSETS: [u64; TableMember::ALL.len()] = [64, 32, 16, 8, 8, 0, 0, 8, 16, 72];

/// The same, in the order of [`OwnerMember::ALL`].
const OWNER: OwnerLayout = OwnerLayout([800, 1200, 1300]);

/// A kernel with the memory that tests write into it.
#[derive(Clone, Default)]
pub(super) struct Kernel {
    pub(super) words: BTreeMap<u64, u64>,
    machine: u16,
    /// The next free physical address.
    free: u64,
}

/// Words that have changed since.
pub(super) type Changes = Arc<Mutex<BTreeMap<u64, u64>>>;

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

pub(super) fn region(pages: std::ops::Range<u64>) -> Region {
    let [start, end] = [pages.start, pages.end].map(|page| VirtualAddress::new(page * PAGE));
    Region {
        range: AddressRange::new(start, end).expect("pages"),
        permissions: Permissions::default(),
        offset: 0,
        device: Default::default(),
        inode: 0,
        name: Name::default(),
        deleted: false,
    }
}

impl Kernel {
    pub(super) fn new(machine: u16) -> Kernel {
        Kernel { machine, free: 0x10_0000, ..Kernel::default() }
    }

    /// Puts bytes at an address.
    pub(super) fn put(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let word = self.words.entry(at & !7).or_default();
            let mut whole = word.to_le_bytes();
            whole[(at & 7) as usize] = *byte;
            *word = u64::from_le_bytes(whole);
        }
    }

    /// Memory for a structure or a table, full of numbers that lead nowhere.
    pub(super) fn page(&mut self, filling: u64) -> u64 {
        let physical = self.free;
        self.free += PAGE;
        for at in (0..PAGE).step_by(8) {
            self.words.insert(MEMORY + physical + at, filling);
        }
        MEMORY + physical
    }

    pub(super) fn shape(&self, levels: u8) -> TableShape {
        let all = TableShape::of_machine(self.machine, PageSize::FOUR_KIB, AddressBits::default());
        all.into_iter().find(|shape| shape.levels == levels).expect("a shape")
    }

    /// Puts an entry into a table of this level, and makes the tables on the way.
    pub(super) fn map(&mut self, shape: TableShape, top: u64, page: u64, level: u8, raw: u64) {
        let mut table = top;
        for upper in (level + 1..=shape.levels).rev() {
            let place = table + shape.slot(upper, page) * 8;
            if self.words.get(&place).copied().unwrap_or_default() == 0 {
                let next = self.page(0) - MEMORY;
                self.words.insert(place, next | if self.machine == X86_64 { 0x67 } else { 3 });
            }
            table = MEMORY + (self.words[&place] & 0xf_ffff_f000);
        }
        self.words.insert(table + shape.slot(level, page) * 8, raw);
    }

    /// The entry of a page that was written to, and of one that was only read.
    pub(super) fn raw(&self, frame: u64, level: u8, is_written: bool) -> u64 {
        let address = frame * PAGE;
        match (self.machine, level) {
            (X86_64, 1) if is_written => 1 << 63 | address | 0x867,
            (X86_64, 1) => address | 0x25,
            (X86_64, _) => address | 0xe7,
            (_, 1) if is_written => 1 << 51 | 1 << 54 | 1 << 55 | address | 0xf43,
            (_, 1) => 1 << 54 | address | 0xfc3,
            _ => 1 << 51 | 1 << 55 | address | 0xf41,
        }
    }

    fn image(&self, changes: Changes) -> Image {
        Image::open(self.changing_core(changes)).expect("headers")
    }

    /// The file of its memory.
    pub(super) fn core(&self) -> ReadCore {
        self.changing_core(Changes::default())
    }

    fn changing_core(&self, changes: Changes) -> ReadCore {
        let header = |kind: u32, start: u64, physical: u64, offset: u64, length: u64| {
            let mut bytes = [kind.to_le_bytes(), 0u32.to_le_bytes()].concat();
            let numbers = [offset, start, physical, length, length, PAGE];
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            bytes
        };
        let records = RAM / PAGE * 64;
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18..20].copy_from_slice(&self.machine.to_le_bytes());
        head[32] = 64;
        head[54] = 56;
        head[56] = 2;
        head.extend(header(1, MEMORY, 0, PAGE, RAM));
        head.extend(header(1, RECORDS, u64::MAX, PAGE + RAM, records));
        let words = self.words.clone();
        Box::new(move |offset, into| {
            for (at, byte) in (offset..).zip(into) {
                let address = match at.checked_sub(PAGE) {
                    None => {
                        *byte = head.get(at as usize).copied().unwrap_or_default();
                        continue;
                    }
                    Some(at) if at < RAM => MEMORY + at,
                    Some(at) => RECORDS + at - RAM,
                };
                let changes = changes.lock().expect("a lock");
                let word = changes.get(&(address & !7)).or_else(|| words.get(&(address & !7)));
                let word = word.copied().unwrap_or_default();
                *byte = word.to_le_bytes()[(address & 7) as usize];
            }
            true
        })
    }

    pub(super) fn pages(&self) -> PageRecords {
        self.changing_pages(Changes::default())
    }

    /// The same of a kernel that changes.
    pub(super) fn changing_pages(&self, changes: Changes) -> PageRecords {
        Self::pages_of(self.image(changes))
    }

    /// The records of the pages of a made kernel.
    pub(super) fn pages_of(image: Image) -> PageRecords {
        static LAYOUT: OnceLock<PageLayout> = OnceLock::new();
        let layout = LAYOUT.get_or_init(|| tapes().next().expect("a tape").1.layout()).clone();
        let bases = Bases { memory: MEMORY, records: RECORDS };
        PageRecords { image, layout, page_bytes: PAGE, bases }
    }
}

/// A parent and its child after a fork: both have the same mapping of anonymous memory. Its reverse map has a node for
/// each, and one for a third process between them.
struct Family {
    kernel: Kernel,
    shape: TableShape,
    members: [Process; 2],
}

/// Pages of the heap, the first of which both members share.
const HEAP: std::ops::Range<u64> = 0x555_5558..0x555_5568;
const HUGE: u64 = 0x7ff_0000;
const GIGANTIC: u64 = 0x7c0_0000;

impl Family {
    fn new(machine: u16, levels: u8) -> Family {
        let mut kernel = Kernel::new(machine);
        let shape = kernel.shape(levels);
        let (_, tape) = tapes().next().expect("a tape");
        let mapping = tape.layout().at(Member::Mapping).expect("a member");
        let at = |member: TableMember| OFFSETS[member as usize];
        let junk = 0x1234_5678;
        let map = kernel.page(junk);
        let mut members = [Process::default(), Process::default()];
        let mut nodes = Vec::new();
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
                (space + 512 + OWNER.at(OwnerMember::Owner), thread),
                (thread + OWNER.at(OwnerMember::Space), space + 512),
                (thread + OWNER.at(OwnerMember::Process) - 4, (70 + number as u64) << 32 | 9),
                (entry + at(TableMember::Node) + at(TableMember::Left), 0),
                (entry + at(TableMember::Node) + at(TableMember::Right), 0),
            ];
            kernel.words.extend(facts);
            nodes.push(entry + at(TableMember::Node));
            let Some(process) = members.get_mut(number) else {
                continue;
            };
            process.top = top;
            process.regions = vec![region(HEAP), region(HUGE..HUGE + 512), region(GIGANTIC..GIGANTIC + 512 * 512)];
            for page in HEAP.start..HEAP.start + 6 {
                let is_shared = page == HEAP.start;
                let frame = 0x2000 + (page - HEAP.start) + if is_shared { 0 } else { number as u64 * 0x100 };
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
        Family { kernel, shape, members }
    }

    fn find(&self, member: usize, offsets: [u64; TableMember::ALL.len()]) -> crate::source::Result<PageTables> {
        let layout = TableLayout { members: TableMembers(offsets), owner: Some(OWNER) };
        PageTables::find(&self.kernel.pages(), Some(&layout), &self.members[member])
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
    let layout = PageTables::find(&Family::new(X86_64, 4).kernel.pages(), None, &Process::default());
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
    let thread = back.expect("a thread") - OWNER.at(OwnerMember::Process);
    family.kernel.words.insert(thread + OWNER.at(OwnerMember::Space), 0);
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
