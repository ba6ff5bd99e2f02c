//! Entries of the page tables of x86-64 and arm64 processors.

use super::{FrameNumber, PageSize};
use bitflags::bitflags;

bitflags! {
    /// The bits of an entry, with the same meanings for x86-64 and arm64.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct TableBits: u8 {
        /// The processor uses the entry. Otherwise an access faults although the page is there: PROT_NONE, or a hint
        /// for NUMA balancing.
        const PRESENT = 1 << 0;
        /// Writable.
        const WRITE = 1 << 1;
        /// User mode may access the page, not only the kernel.
        const USER = 1 << 2;
        /// Accessed since the kernel last cleared the bit.
        const ACCESSED = 1 << 3;
        /// Written to through this mapping.
        const DIRTY = 1 << 4;
        /// User mode may not execute instructions on the page.
        const NO_EXECUTE = 1 << 5;
    }
}

/// The entry of a page table that maps a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableEntry {
    /// The level of its table: 1 (PTE) maps one page, 2 (PMD) and 3 (PUD) map larger blocks.
    pub level: u8,
    /// The bits of the entry.
    pub bits: TableBits,
    /// The protection key, if the processor supports them.
    pub protection_key: Option<u8>,
    /// The frame of the page.
    pub frame: FrameNumber,
}

impl TableEntry {
    /// Returns the names of the set bits.
    pub fn names(&self) -> Vec<&'static str> {
        const NAMES: [(TableBits, &str); 6] = [
            (TableBits::PRESENT, "present"),
            (TableBits::WRITE, "write"),
            (TableBits::USER, "user"),
            (TableBits::ACCESSED, "accessed"),
            (TableBits::DIRTY, "dirty"),
            (TableBits::NO_EXECUTE, "no-execute"),
        ];
        NAMES.iter().filter(|(bit, _)| self.bits.contains(*bit)).map(|(_, name)| *name).collect()
    }
}

/// The meaning of an entry in the walk of a page table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableStep {
    /// An empty entry: no page was ever there.
    Empty,
    /// An entry that the processor does not use: of a page in swap, or, on arm64, of a page that nobody may access.
    Unused,
    /// The next table, at this physical address.
    Table(u64),
    /// Memory: the entry of the first page of the block.
    Leaf(TableEntry),
}

/// The processor that reads the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Processor {
    X86 {
        /// Bits that mark encrypted memory, and are not part of an address.
        encryption: u64,
    },
    Arm {
        /// Whether addresses have 52 bits with pages of 4 and 16 KiB too (LPA2).
        is_wide: bool,
    },
}

/// The kernel's description of the addresses in its page tables.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AddressBits {
    /// The bits that mark encrypted memory on x86-64.
    pub encryption: u64,
    /// Whether virtual addresses of arm64 have 52 bits. With pages of 4 and 16 KiB this needs LPA2.
    pub is_wide: bool,
}

/// The structure of the page tables of an address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableShape {
    processor: Processor,
    page_shift: u32,
    /// The level of the top table.
    pub levels: u8,
}

impl TableShape {
    /// Returns the possible structures of page tables on a processor with this `e_machine`, the usual ones first. Empty
    /// for processors whose tables are unknown to pmdb.
    pub fn of_machine(machine: u16, page: PageSize, bits: AddressBits) -> Vec<TableShape> {
        const X86_64: u16 = 62;
        const AARCH64: u16 = 183;
        let (x86, arm) = (Processor::X86 { encryption: bits.encryption }, Processor::Arm { is_wide: bits.is_wide });
        let (processor, levels): (_, &[u8]) = match (machine, page.shift()) {
            (X86_64, 12) => (x86, &[4, 5]),
            (AARCH64, 12) => (arm, &[4, 3, 5]),
            (AARCH64, 14) => (arm, &[3, 4, 2]),
            (AARCH64, 16) => (arm, &[3, 2]),
            _ => return Vec::new(),
        };
        let shape = |&levels| TableShape { processor, page_shift: page.shift(), levels };
        levels.iter().map(shape).collect()
    }

    /// Returns log2 of the number of entries in a table.
    fn table_shift(self) -> u32 {
        self.page_shift - 3
    }

    /// Returns the number of pages that an entry of this level spans.
    pub fn pages(self, level: u8) -> u64 {
        1 << (self.table_shift() * u32::from(level.saturating_sub(1)))
    }

    /// Returns the number of entries in a table.
    pub fn table_entries(self) -> u64 {
        1 << self.table_shift()
    }

    /// Returns the index of the entry that the page with this index uses, in a table of this level.
    pub fn slot(self, level: u8, page: u64) -> u64 {
        page / self.pages(level) % self.table_entries()
    }

    /// Returns whether these tables reach the page with this index. On x86-64 the upper half belongs to the kernel.
    pub fn reaches(self, page: u64) -> bool {
        let all = self.pages(self.levels).saturating_mul(self.table_entries());
        page < if matches!(self.processor, Processor::Arm { .. }) { all } else { all / 2 }
    }

    /// Decodes an entry of this level.
    pub fn step(self, raw: u64, level: u8) -> TableStep {
        match self.processor {
            _ if raw == 0 => TableStep::Empty,
            Processor::X86 { encryption } => self.step_of_x86(raw, level, encryption),
            Processor::Arm { is_wide } => self.step_of_arm(raw, level, is_wide),
        }
    }

    /// Returns whether an entry of this level may map memory.
    fn may_be_leaf(level: u8) -> bool {
        (1..=3).contains(&level)
    }

    /// Returns the first frame of the block at this physical address.
    fn frame(self, address: u64, level: u8) -> FrameNumber {
        FrameNumber::new((address >> self.page_shift) & !(self.pages(level) - 1))
    }

    /// Decodes an entry of x86-64 (arch/x86/include/asm/pgtable_types.h).
    fn step_of_x86(self, raw: u64, level: u8, encryption: u64) -> TableStep {
        const PRESENT: u64 = 1 << 0;
        /// Above the last level: the entry maps memory. In the last level the bit has another meaning.
        const LARGE: u64 = 1 << 7;
        /// In an entry that is not present: the page is there, but nobody may access it.
        const NO_ACCESS: u64 = 1 << 8;
        /// The saved dirty bit of a page that is not writable (Linux 6.6).
        const SAVED_DIRTY: u64 = 1 << 58;
        const KEY_SHIFT: u32 = 59;
        const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
        let is_present = raw & PRESENT != 0;
        let is_large = level > 1 && raw & LARGE != 0;
        let is_there = is_present || raw & NO_ACCESS != 0 || is_large;
        if !is_there || is_large && !Self::may_be_leaf(level) {
            return TableStep::Unused;
        }
        // The address in an entry that is not present is inverted, against L1 terminal faults.
        let address = if is_present { raw } else { !raw } & ADDRESS & !encryption;
        if level > 1 && !is_large {
            return if is_present { TableStep::Table(address) } else { TableStep::Unused };
        }
        let mut bits = TableBits::empty();
        bits.set(TableBits::PRESENT, is_present);
        bits.set(TableBits::WRITE, raw & 1 << 1 != 0);
        bits.set(TableBits::USER, raw & 1 << 2 != 0);
        bits.set(TableBits::ACCESSED, raw & 1 << 5 != 0);
        bits.set(TableBits::DIRTY, raw & (1 << 6 | SAVED_DIRTY) != 0);
        bits.set(TableBits::NO_EXECUTE, raw & 1 << 63 != 0);
        let protection_key = Some((raw >> KEY_SHIFT & 0xf) as u8);
        TableStep::Leaf(TableEntry { level, bits, protection_key, frame: self.frame(address, level) })
    }

    /// Decodes an entry of arm64 (arch/arm64/include/asm/pgtable-hwdef.h and pgtable-prot.h).
    fn step_of_arm(self, raw: u64, level: u8, is_wide: bool) -> TableStep {
        const VALID: u64 = 1 << 0;
        /// A table, or an entry of the last level.
        const TABLE: u64 = 1 << 1;
        const READ_ONLY: u64 = 1 << 7;
        const WRITE: u64 = 1 << 51;
        const DIRTY: u64 = 1 << 55;
        let is_leaf = level == 1 || raw & TABLE == 0;
        let is_damaged = level == 1 && raw & TABLE == 0 || is_leaf && !Self::may_be_leaf(level);
        if raw & VALID == 0 || is_damaged {
            return TableStep::Unused;
        }
        let above_page = |bits: u32| raw & ((1 << bits) - 1) & !((1 << self.page_shift) - 1);
        let address = match (self.page_shift, is_wide) {
            // With pages of 64 KiB bits 12 to 15 are free for the upper address bits.
            (16, _) => above_page(48) | (raw >> 12 & 0xf) << 48,
            // With LPA2 the upper address bits are in those of the shareability.
            (_, true) => above_page(50) | (raw >> 8 & 3) << 50,
            (_, false) => above_page(48),
        };
        if !is_leaf {
            return TableStep::Table(address);
        }
        let is_writable = raw & WRITE != 0;
        let mut bits = TableBits::PRESENT;
        bits.set(TableBits::WRITE, is_writable);
        bits.set(TableBits::USER, raw & 1 << 6 != 0);
        bits.set(TableBits::ACCESSED, raw & 1 << 10 != 0);
        bits.set(TableBits::DIRTY, raw & DIRTY != 0 || is_writable && raw & READ_ONLY == 0);
        bits.set(TableBits::NO_EXECUTE, raw & 1 << 54 != 0);
        TableStep::Leaf(TableEntry { level, bits, protection_key: None, frame: self.frame(address, level) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;

    fn shape(machine: u16, page: u64, levels: u8) -> TableShape {
        of(machine, page, levels, AddressBits { encryption: 1 << 47, is_wide: false })
    }

    fn of(machine: u16, page: u64, levels: u8, bits: AddressBits) -> TableShape {
        let page = PageSize::from_bytes(page).expect("a power of two");
        let all = TableShape::of_machine(machine, page, bits);
        all.into_iter().find(|shape| shape.levels == levels).expect("a shape")
    }

    fn leaf(step: TableStep) -> (u8, String, u64) {
        match step {
            TableStep::Leaf(entry) => (entry.level, entry.names().join(" "), entry.frame.get()),
            other => panic!("{other:?}"),
        }
    }

    fn is(level: u8, names: &str, frame: u64) -> (u8, String, u64) {
        (level, names.to_owned(), frame)
    }

    #[test]
    fn entries_of_x86() {
        let shape = shape(X86_64, 4096, 4);
        // Of an anonymous page that was written to, as seen on Linux 6.12.
        let written = shape.step(0x8000_0001_2345_6867, 1);
        assert_eq!(leaf(written), is(1, "present write user accessed dirty no-execute", 0x12_3456));
        assert_eq!(leaf(shape.step(0x0000_0000_0765_4025, 1)), is(1, "present user accessed", 0x7654));
        // Dirty, and no longer writable.
        let shared = 1 << 58 | 0x0765_4025;
        assert_eq!(leaf(shape.step(shared, 1)), is(1, "present user accessed dirty", 0x7654));
        // Large ones; bit 12 is no part of the address. In the last level bit 7 is none of the size.
        assert_eq!(leaf(shape.step(0x4020_10e7, 2)), is(2, "present write user accessed dirty", 0x4_0200));
        assert_eq!(leaf(shape.step(0x8000_0000_c000_00e5, 3)).0, 3);
        assert_eq!(leaf(shape.step(0x8000_0000_c000_10e5, 3)).2, 0xc_0000);
        assert_eq!(leaf(shape.step(0x0765_40a5, 1)), is(1, "present user accessed", 0x7654));
        assert_eq!(shape.step(0x0000_0000_c000_00e5, 4), TableStep::Unused);
        assert_eq!(shape.step(0x1234_5067, 2), TableStep::Table(0x1234_5000));
        // In encrypted memory.
        assert_eq!(shape.step(1 << 47 | 0x1234_5067, 4), TableStep::Table(0x1234_5000));
        // PROT_NONE: inverted, so that no cache line is guessed.
        let inverted = !0x0765_4000u64 & 0x000f_ffff_ffff_f000;
        let nobody = shape.step(inverted & !(1 << 47) | 0x160, 1);
        assert_eq!(leaf(nobody), is(1, "accessed dirty", 0x7654));
        assert_eq!(shape.step(0, 1), TableStep::Empty);
        // A swap entry: neither bit 0 nor bit 8.
        assert_eq!(shape.step(0x07ff_ffff_ffff_f600 & !0x1ff, 1), TableStep::Unused);
        let keyed = shape.step(5 << 59 | 0x0765_4025, 1);
        assert!(matches!(keyed, TableStep::Leaf(TableEntry { protection_key: Some(5), .. })), "{keyed:?}");
    }

    #[test]
    fn entries_of_arm() {
        let small = shape(AARCH64, 4096, 4);
        let written = 1 << 51 | 1 << 54 | 1 << 55 | 0x4765_4f43 & !(1 << 7);
        assert_eq!(leaf(small.step(written, 1)), is(1, "present write user accessed dirty no-execute", 0x4_7654));
        // Writable, but no processor has written to it: read-only until then.
        let clean = 1 << 51 | 0x4765_4fc3;
        assert_eq!(leaf(small.step(clean, 1)), is(1, "present write user accessed", 0x4_7654));
        assert_eq!(leaf(small.step(0x4765_4bc3, 1)), is(1, "present user", 0x4_7654));
        assert_eq!(leaf(small.step(0x4760_0fc1, 2)), is(2, "present user accessed", 0x4_7600));
        assert_eq!(small.step(0x1000_0000_4765_4003, 2), TableStep::Table(0x4765_4000));
        assert_eq!(small.step(0x4765_4fc1, 1), TableStep::Unused);
        assert_eq!(small.step(0x4765_4fc2, 1), TableStep::Unused);
        let large = shape(AARCH64, 65_536, 3);
        assert_eq!(leaf(large.step(0x4765_afc3, 1)).2, 0x4765 | 0xa << 32);
        // The shareability is no part of an address, unless that has 52 bits.
        let wide = |page, levels| of(AARCH64, page, levels, AddressBits { encryption: 0, is_wide: true });
        let far = 0x0020_0003_4765_4f43 | 2 << 50 | 3 << 48;
        assert_eq!(leaf(small.step(far, 1)).2, 0x0034_7654);
        assert_eq!(leaf(wide(4096, 5).step(far & !(3 << 8) | 2 << 8, 1)).2, (2 << 50 | 3 << 48 | 0x3_4765_4000) >> 12);
        assert_eq!(leaf(wide(16_384, 4).step(far | 3 << 8, 1)).2, (3 << 50 | 3 << 48 | 0x3_4765_4000) >> 14);
        assert_eq!(leaf(wide(65_536, 3).step(0x4765_afc3, 1)).2, 0x4765 | 0xa << 32);
        let table = wide(4096, 5).step(3 << 48 | 0x4765_4103, 2);
        assert_eq!(table, TableStep::Table(1 << 50 | 3 << 48 | 0x4765_4000));
        assert_eq!(large.pages(2), 8192);
        assert_eq!((large.slot(2, 8192 * 3 + 5), large.slot(1, 8192 * 3 + 5)), (3, 5));
    }

    #[test]
    fn tables_reach_half_of_the_addresses_or_all() {
        let four = shape(X86_64, 4096, 4);
        assert!(four.reaches((1 << 35) - 1) && !four.reaches(1 << 35));
        assert!(shape(X86_64, 4096, 5).reaches((1 << 44) - 1));
        assert!(shape(AARCH64, 4096, 4).reaches((1 << 36) - 1));
        let page = PageSize::FOUR_KIB;
        assert_eq!(TableShape::of_machine(21, page, AddressBits::default()), []);
    }
}
