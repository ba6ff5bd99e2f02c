//! The headers of ELF files of any machine: core files, the kernel's memory, programs. `symbol` reads symbols with the
//! crate `object`, which the library does not need for headers.

/// Byte order and word size of an ELF file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfForm {
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// Whether the least significant byte comes first.
    pub is_little: bool,
}

impl ElfForm {
    /// Returns the size of an address in bytes.
    pub fn word_bytes(self) -> usize {
        if self.is_64 { 8 } else { 4 }
    }

    /// Reads a number of `size` bytes at an offset; `None` past the end.
    pub(super) fn number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.is_little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    }

    /// Reads a 16-bit number.
    pub fn short(self, bytes: &[u8], at: usize) -> Option<u16> {
        self.number(bytes, at, 2).map(|number| number as u16)
    }

    /// Reads a 32-bit number.
    pub fn int(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.number(bytes, at, 4).map(|number| number as u32)
    }

    /// Reads an address, or a number of that size.
    pub fn word(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.number(bytes, at, self.word_bytes())
    }

    /// Reads a 64-bit number.
    pub fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.number(bytes, at, 8)
    }

    /// Returns the low `size` bytes of a number, in the byte order of the file.
    pub fn bytes(self, number: u64, size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = number.to_le_bytes().into_iter().take(size).collect();
        if !self.is_little {
            bytes.reverse();
        }
        bytes
    }
}

/// The first fields of an ELF header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfStart {
    /// Byte order and word size.
    pub form: ElfForm,
    /// The type of the file (`e_type`): [`CORE`](Self::CORE), a program …
    pub kind: u16,
    /// The processor (`e_machine`).
    pub machine: u16,
}

impl ElfStart {
    /// The size of these fields in bytes.
    pub const BYTES: usize = 20;
    /// `ET_CORE`
    pub const CORE: u16 = 4;

    /// Decodes the first bytes of a file; `None` if it is not ELF.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [class, order] = *bytes.strip_prefix(b"\x7fELF")?.first_chunk()?;
        let form = ElfForm { is_64: class == 2, is_little: order != 2 };
        Some(ElfStart { form, kind: form.short(bytes, 16)?, machine: form.short(bytes, 18)? })
    }
}

/// An ELF header, as far as it describes program and section headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfHeader {
    /// The first fields of the header.
    pub start: ElfStart,
    /// The offset of the program headers.
    pub programs: u64,
    /// The size of one program header in bytes.
    pub program_bytes: u16,
    /// The number of program headers; `None` if it does not fit (`PN_XNUM`), and the first section header has it.
    pub program_count: Option<u16>,
    /// The offset of the section headers.
    pub sections: u64,
}

impl ElfHeader {
    /// The size of the header in 64-bit files. 32-bit files have 12 bytes less.
    pub const BYTES: usize = 64;

    /// Decodes the first bytes of a file; `None` if it is not ELF.
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

    /// Returns the size of a section header in bytes.
    pub fn section_bytes(self) -> u64 {
        if self.start.form.is_64 { 64 } else { 40 }
    }

    /// Returns the number of program headers from the first section header (`sh_info`).
    pub fn count_in_section(self, first: &[u8]) -> Option<u32> {
        self.start.form.int(first, if self.start.form.is_64 { 44 } else { 28 })
    }
}

/// A program header: a part of the file, and where it is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramHeader {
    /// The type of the segment (`p_type`).
    pub kind: u32,
    /// The rights: 1 executable, 2 writable, 4 readable.
    pub flags: u32,
    /// The offset of the segment in the file.
    pub offset: u64,
    /// The virtual address of the first byte.
    pub start: u64,
    /// The physical address of the first byte.
    pub physical: u64,
    /// Bytes of the segment that the file contains.
    pub stored: u64,
    /// Bytes of the segment in memory.
    pub size: u64,
}

impl ProgramHeader {
    /// `PT_LOAD`: a segment of memory.
    pub const LOAD: u32 = 1;
    /// `PT_NOTE`: notes.
    pub const NOTE: u32 = 4;
    /// `PT_GNU_RELRO`: memory that is read-only after relocation.
    pub const RELRO: u32 = 0x6474_e552;

    /// Returns the size of a program header in bytes.
    pub const fn bytes(form: ElfForm) -> u16 {
        if form.is_64 { 56 } else { 32 }
    }

    /// Decodes a program header; `None` if it is truncated.
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
