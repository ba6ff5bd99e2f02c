//! Small ELF files, written field by field from the format's tables, in either width and byte order.

use super::super::elf::{BoundedFile, ElfFile};
use super::super::files::Sources;
use crate::budget::Budget;
use crate::process::{InMemory, ReadAt};

/// A file that ends before its reported length, as one does that is truncated during the read.
pub(crate) struct CutShort {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: usize,
}

impl ReadAt for CutShort {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = self.bytes.get(at..self.end).unwrap_or_default();
        std::io::Read::read(&mut rest, into)
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn fingerprint(&self) -> [u64; 4] {
        [0, 0, self.len(), 0]
    }
}

pub(crate) const LOCAL: u8 = 0;
pub(crate) const GLOBAL: u8 = 1;
pub(crate) const WEAK: u8 = 2;
pub(crate) const NOTYPE: u8 = 0;
pub(crate) const OBJECT: u8 = 1;
pub(crate) const FUNCTION: u8 = 2;
pub(crate) const SECTION: u8 = 3;
pub(crate) const TLS: u8 = 6;
pub(crate) const ABSOLUTE: u16 = 0xfff1;
/// Numbers of the sections that every built file has.
pub(crate) const TEXT: u16 = 1;
pub(crate) const DATA: u16 = 2;
pub(crate) const BSS: u16 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) binding: u8,
    pub(crate) kind: u8,
    pub(crate) section: u16,
}

pub(crate) fn entry(name: &str, value: u64, size: u64, binding: u8, kind: u8) -> Entry {
    let section = match value {
        0x3000.. => BSS,
        0x2000.. => DATA,
        _ => TEXT,
    };
    Entry { name: name.into(), value, size, binding, kind, section }
}

/// `.text` at 0x1000, `.data` at 0x2000, `.bss` at 0x3000, each of 0x800 bytes; two load segments.
#[derive(Clone, Debug)]
pub(crate) struct Builder {
    pub(crate) is_64: bool,
    pub(crate) little: bool,
    pub(crate) machine: u16,
    pub(crate) symbols: Vec<Entry>,
    pub(crate) dynamic: Vec<Entry>,
    /// `.gnu.version` words for `dynamic`, without the null symbol's.
    pub(crate) versions: Vec<u16>,
    /// Further sections.
    pub(crate) sections: Vec<Extra>,
}

/// A further section: its name, kind and flags as the format numbers them, and its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Extra {
    /// A section without special fields.
    pub(crate) fn new(name: &'static str, bytes: Vec<u8>) -> Extra {
        Extra { name, kind: 1, flags: 0, bytes }
    }

    /// The note with a build-id, in little-endian order.
    pub(crate) fn build_id(id: &[u8]) -> Extra {
        let mut bytes = [4u32.to_le_bytes(), (id.len() as u32).to_le_bytes(), 3u32.to_le_bytes()].concat();
        bytes.extend(b"GNU\0");
        bytes.extend(id);
        Extra { kind: 7, ..Extra::new(".note.gnu.build-id", bytes) }
    }

    /// `.gnu_debuglink`: a name and a checksum.
    pub(crate) fn debuglink(name: &[u8], sum: u32) -> Extra {
        let mut bytes = name.to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        bytes.extend(sum.to_le_bytes());
        Extra::new(".gnu_debuglink", bytes)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            is_64: true,
            little: true,
            machine: 62,
            symbols: Vec::new(),
            dynamic: Vec::new(),
            versions: Vec::new(),
            sections: Vec::new(),
        }
    }
}

impl Builder {
    pub(crate) fn with(symbols: Vec<Entry>) -> Self {
        Builder { symbols, ..Builder::default() }
    }

    pub(in crate::symbol) fn sources(&self) -> Sources {
        let file = BoundedFile::new(Box::new(InMemory::file(self.bytes())));
        Sources::without_separate(ElfFile::read(file, &mut Budget::unlimited()).expect("a sound file"))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let header_size = if self.is_64 { 64 } else { 52 };
        let segment_size = if self.is_64 { 56 } else { 32 };
        let mut out = Out { bytes: vec![0; header_size + 2 * segment_size], is_64: self.is_64, little: self.little };
        let (symbols, symbol_names) = self.table(&self.symbols);
        let (dynamic, dynamic_names) = self.table(&self.dynamic);
        let mut versions = out.empty();
        versions.half(0);
        self.versions.iter().for_each(|&word| versions.half(word));
        let mut names = b"\0.text\0.data\0.bss\0.symtab\0.strtab\0.dynsym\0.dynstr\0.gnu.version\0.shstrtab\0".to_vec();
        for extra in &self.sections {
            names.extend(extra.name.as_bytes());
            names.push(0);
        }
        let mut sections = out.empty();
        let name_at = |wanted: &str| {
            let wanted = format!("\0{wanted}\0");
            let at = names.windows(wanted.len()).position(|one| one == wanted.as_bytes());
            at.map_or(0, |at| at as u32 + 1)
        };
        let mut count = 0u16;
        let mut section = |name: &str, kind: u32, flags: u64, address: u64, offset: usize, size: usize, link: u32| {
            sections.word(name_at(name));
            sections.word(kind);
            sections.long(flags);
            sections.long(address);
            sections.long(offset as u64);
            sections.long(size as u64);
            sections.word(link);
            sections.word(0);
            sections.long(1);
            sections.long(0);
            count += 1;
        };
        section("", 0, 0, 0, 0, 0, 0);
        section(".text", 1, 6, 0x1000, 0, 0x800, 0);
        section(".data", 1, 3, 0x2000, 0, 0x800, 0);
        section(".bss", 8, 3, 0x3000, 0, 0x800, 0);
        let parts: [(&str, u32, u64, &[u8], u32); 6] = [
            (".symtab", 2, 0, &symbols, 5),
            (".strtab", 3, 0, &symbol_names, 0),
            (".dynsym", 11, 0, &dynamic, 7),
            (".dynstr", 3, 0, &dynamic_names, 0),
            (".gnu.version", 0x6fff_ffff, 0, &versions.bytes, 6),
            (".shstrtab", 3, 0, &names, 0),
        ];
        let extra = self.sections.iter();
        let extra = extra.map(|one| (one.name, one.kind, one.flags, one.bytes.as_slice(), 0));
        for (name, kind, flags, bytes, link) in parts.into_iter().chain(extra) {
            // Odd offsets on purpose: nothing may rely on alignment.
            out.bytes.push(0);
            section(name, kind, flags, 0, out.bytes.len(), bytes.len(), link);
            out.bytes.extend(bytes);
        }
        let sections_at = out.bytes.len() as u64;
        out.bytes.extend(sections.bytes);

        let mut start = out.empty();
        let class = if self.is_64 { 2 } else { 1 };
        let order = if self.little { 1 } else { 2 };
        start.bytes.extend([0x7f, b'E', b'L', b'F', class, order, 1]);
        start.bytes.resize(16, 0);
        start.half(3);
        start.half(self.machine);
        start.word(1);
        start.long(0x1000);
        start.long(header_size as u64);
        start.long(sections_at);
        start.word(0);
        start.half(header_size as u16);
        start.half(segment_size as u16);
        start.half(2);
        start.half(if self.is_64 { 64 } else { 40 });
        start.half(count);
        start.half(9);
        // (flags, offset, address, bytes in the file, bytes in memory)
        for (flags, offset, address, in_file, in_memory) in
            [(5, 0, 0x1000, 0x800, 0x800), (6, 0x800, 0x2800, 0x800, 0x1000)]
        {
            start.word(1);
            if self.is_64 {
                start.word(flags);
            }
            [offset, address, address, in_file, in_memory].into_iter().for_each(|value| start.long(value));
            if !self.is_64 {
                start.word(flags);
            }
            start.long(0x1000);
        }
        out.bytes[..start.bytes.len()].copy_from_slice(&start.bytes);
        out.bytes
    }

    fn table(&self, entries: &[Entry]) -> (Vec<u8>, Vec<u8>) {
        let mut names = vec![0];
        let mut out = Out { bytes: Vec::new(), is_64: self.is_64, little: self.little };
        if entries.is_empty() {
            return (out.bytes, names);
        }
        out.bytes.resize(if self.is_64 { 24 } else { 16 }, 0);
        for one in entries {
            let name = if one.name.is_empty() { 0 } else { names.len() as u32 };
            names.extend(one.name.as_bytes());
            names.push(0);
            out.word(name);
            let info = one.binding << 4 | one.kind;
            if self.is_64 {
                out.bytes.extend([info, 0]);
                out.half(one.section);
                out.long(one.value);
                out.long(one.size);
            } else {
                out.long(one.value);
                out.long(one.size);
                out.bytes.extend([info, 0]);
                out.half(one.section);
            }
        }
        (out.bytes, names)
    }
}

struct Out {
    bytes: Vec<u8>,
    is_64: bool,
    little: bool,
}

impl Out {
    fn empty(&self) -> Out {
        Out { bytes: Vec::new(), ..*self }
    }
    fn put(&mut self, value: u64, size: usize) {
        if self.little {
            self.bytes.extend(&value.to_le_bytes()[..size])
        } else {
            self.bytes.extend(&value.to_be_bytes()[8 - size..])
        }
    }
    fn half(&mut self, value: u16) {
        self.put(value.into(), 2);
    }
    fn word(&mut self, value: u32) {
        self.put(value.into(), 4);
    }
    fn long(&mut self, value: u64) {
        self.put(value, if self.is_64 { 8 } else { 4 });
    }
}
