//! The headers of ELF files of any machine: of core files, of the kernel's memory, of programs. Whole files with their
//! symbols are read in `symbol`, with `object`, which the library does without.

/// How an ELF file writes numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfForm {
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// Whether the least significant byte comes first.
    pub is_little: bool,
}

impl ElfForm {
    /// Bytes of an address.
    pub fn word_bytes(self) -> usize {
        if self.is_64 { 8 } else { 4 }
    }

    /// The number of `size` bytes at an offset; `None` behind the end.
    pub(super) fn number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.is_little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    }

    /// A number of 16 bits.
    pub fn short(self, bytes: &[u8], at: usize) -> Option<u16> {
        self.number(bytes, at, 2).map(|number| number as u16)
    }

    /// A number of 32 bits.
    pub fn int(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.number(bytes, at, 4).map(|number| number as u32)
    }

    /// An address, or a number of its size.
    pub fn word(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.number(bytes, at, self.word_bytes())
    }

    /// A number of 64 bits.
    pub fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.number(bytes, at, 8)
    }

    /// The low `size` bytes of a number.
    pub fn bytes(self, number: u64, size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = number.to_le_bytes().into_iter().take(size).collect();
        if !self.is_little {
            bytes.reverse();
        }
        bytes
    }
}

/// What every ELF file begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfStart {
    /// How it writes numbers.
    pub form: ElfForm,
    /// What it is (`e_type`): [`CORE`](Self::CORE), a program …
    pub kind: u16,
    /// The processor (`e_machine`).
    pub machine: u16,
}

impl ElfStart {
    /// Bytes of it.
    pub const BYTES: usize = 20;
    /// `ET_CORE`
    pub const CORE: u16 = 4;

    /// Decodes the first bytes of a file; `None` if that is no ELF file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [class, order] = *bytes.strip_prefix(b"\x7fELF")?.first_chunk()?;
        let form = ElfForm { is_64: class == 2, is_little: order != 2 };
        Some(ElfStart { form, kind: form.short(bytes, 16)?, machine: form.short(bytes, 18)? })
    }
}

/// The header of an ELF file, as far as it says where the program headers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfHeader {
    /// What it begins with.
    pub start: ElfStart,
    /// Where the program headers begin.
    pub programs: u64,
    /// Bytes of one of them.
    pub program_bytes: u16,
    /// How many there are; `None` if there are too many for this field, and the first section header has it.
    pub program_count: Option<u16>,
    /// Where the section headers begin.
    pub sections: u64,
}

impl ElfHeader {
    /// Bytes of it in files of 64 bits. Those of 32 bits have 12 less.
    pub const BYTES: usize = 64;

    /// Decodes the first bytes of a file; `None` if that is no ELF file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        /// `PN_XNUM`
        const MANY: u16 = 0xffff;
        let start = ElfStart::parse(bytes)?;
        let form = start.form;
        let word = form.word_bytes();
        let short = |index: usize| form.short(bytes, 24 + 3 * word + 4 + 2 * index);
        Some(ElfHeader {
            start,
            programs: form.word(bytes, 24 + word)?,
            program_bytes: short(1)?,
            program_count: Some(short(2)?).filter(|&count| count != MANY),
            sections: form.word(bytes, 24 + 2 * word)?,
        })
    }

    /// Bytes of a section header.
    pub fn section_bytes(self) -> u64 {
        if self.start.form.is_64 { 64 } else { 40 }
    }

    /// How many program headers there are, by the first section header (`sh_info`).
    pub fn count_in_section(self, first: &[u8]) -> Option<u32> {
        self.start.form.int(first, if self.start.form.is_64 { 44 } else { 28 })
    }
}

/// A program header: a part of the file, and where it is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramHeader {
    /// What it is (`p_type`).
    pub kind: u32,
    /// 1 executable, 2 writable, 4 readable.
    pub flags: u32,
    /// Where it begins in the file.
    pub offset: u64,
    /// The address of its first byte in memory.
    pub start: u64,
    /// The same as a physical address.
    pub physical: u64,
    /// Bytes that the file has of it.
    pub stored: u64,
    /// Bytes that it has in memory.
    pub size: u64,
}

impl ProgramHeader {
    /// `PT_LOAD`: it is loaded.
    pub const LOAD: u32 = 1;
    /// `PT_NOTE`: notes.
    pub const NOTE: u32 = 4;
    /// `PT_GNU_RELRO`: what is read-only once the program has started.
    pub const RELRO: u32 = 0x6474_e552;

    /// Bytes of one.
    pub const fn bytes(form: ElfForm) -> u16 {
        if form.is_64 { 56 } else { 32 }
    }

    /// Decodes one; `None` if it is cut short.
    pub fn parse(form: ElfForm, bytes: &[u8]) -> Option<Self> {
        let word = |at| form.word(bytes, at);
        let (flags, [offset, start, physical, stored, size]) =
            if form.is_64 { (4, [8, 16, 24, 32, 40]) } else { (24, [4, 8, 12, 16, 20]) };
        Some(ProgramHeader {
            kind: form.int(bytes, 0)?,
            flags: form.int(bytes, flags)?,
            offset: word(offset)?,
            start: word(start)?,
            physical: word(physical)?,
            stored: word(stored)?,
            size: word(size)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_forms_are_read() {
        for (is_64, is_little) in [(true, true), (true, false), (false, true), (false, false)] {
            let form = ElfForm { is_64, is_little };
            let word = form.word_bytes();
            let mut bytes = b"\x7fELF".to_vec();
            bytes.extend([1 + u8::from(is_64), 2 - u8::from(is_little)]);
            bytes.resize(16, 0);
            let put = |bytes: &mut Vec<u8>, number: u64, size: usize| bytes.extend(form.bytes(number, size));
            [(4, 2), (62, 2), (1, 4), (7, word), (0x1234, word), (0x5678, word), (0, 4), (52, 2), (56, 2), (3, 2)]
                .into_iter()
                .for_each(|(number, size)| put(&mut bytes, number, size));
            let start = ElfStart { form, kind: ElfStart::CORE, machine: 62 };
            assert_eq!(ElfStart::parse(&bytes), Some(start));
            let header =
                ElfHeader { start, programs: 0x1234, program_bytes: 56, program_count: Some(3), sections: 0x5678 };
            assert_eq!(ElfHeader::parse(&bytes), Some(header));
            for cut in 0..bytes.len() {
                assert_eq!(ElfHeader::parse(&bytes[..cut]), None, "{cut}");
            }
            let many = bytes.len() - 2;
            bytes[many..].fill(0xff);
            assert_eq!(ElfHeader::parse(&bytes).map(|header| header.program_count), Some(None));
            let mut bytes = Vec::new();
            let fields = [(1, 4), (5, 4), (10, 8), (20, 8), (30, 8), (40, 8), (50, 8)];
            let mut fields = fields.map(|(number, size)| (number, if size == 8 { word } else { size })).to_vec();
            if !is_64 {
                let flags = fields.remove(1);
                fields.push(flags);
            }
            fields.into_iter().for_each(|(number, size)| put(&mut bytes, number, size));
            let header = ProgramHeader { kind: 1, flags: 5, offset: 10, start: 20, physical: 30, stored: 40, size: 50 };
            assert_eq!(ProgramHeader::parse(form, &bytes), Some(header));
            assert_eq!(ProgramHeader::parse(form, &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(ElfStart::parse(b"\x7fELG\x02\x01"), None);
    }
}
