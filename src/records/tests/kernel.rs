//! A made kernel: memory that tests write into, and the file that shows it.

use super::super::bases::Bases;
use super::super::layout::PageLayout;
use super::super::pages::PageRecords;
use super::super::{Image, ReadCore};
use super::tapes;
use crate::kernel::page_table::{AddressBits, TableShape};
use crate::kernel::{AddressRange, Name, PageSize, Permissions, Region, VirtualAddress};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

pub(super) const PAGE: u64 = 4096;
pub(super) const MEMORY: u64 = 0xffff_8880_0000_0000;
pub(super) const RECORDS: u64 = 0xffff_ea00_0000_0000;
const RAM: u64 = 1 << 30;
pub(super) const X86_64: u16 = 62;
pub(super) const AARCH64: u16 = 183;

/// A kernel with the memory that tests write into it.
#[derive(Clone, Default)]
pub(super) struct Kernel {
    pub(super) words: BTreeMap<u64, u64>,
    pub(super) machine: u16,
    /// The next free physical address.
    free: u64,
}

/// Words that have changed since.
pub(super) type Changes = Arc<Mutex<BTreeMap<u64, u64>>>;

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
            into.fill(0);
            let start = match offset.checked_sub(PAGE) {
                None => {
                    for (byte, of_head) in into.iter_mut().zip(head.iter().skip(offset as usize)) {
                        *byte = *of_head;
                    }
                    return true;
                }
                Some(at) if at < RAM => MEMORY + at,
                Some(at) => RECORDS + at - RAM,
            };
            let here = start & !7..start + into.len() as u64;
            let changes = changes.lock().expect("a lock");
            for (&address, word) in words.range(here.clone()).chain(changes.range(here)) {
                for (address, byte) in (address..).zip(word.to_le_bytes()) {
                    let place = address.checked_sub(start).and_then(|at| into.get_mut(at as usize));
                    place.into_iter().for_each(|place| *place = byte);
                }
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
