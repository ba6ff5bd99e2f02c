//! The headers of an ELF file: load segments, sections, the build-id, and the places of its symbol tables. Both widths,
//! both byte orders.
//!
//! Every count and offset in the file may be false. Each is checked against the file's length and a limit before it is
//! used.
//!
//! For files without section headers, the dynamic segment has the place of the symbols, as for the dynamic linker. It
//! has addresses, not offsets, and no count of symbols. The count follows from the hash table, which contains every
//! symbol that can be found by name.

use super::file::{BoundedFile, FileRange, LabelledPart, Reader};
use crate::budget::Budget;
use crate::symbol::NoSymbols;
use object::read::elf::{Dyn, FileHeader, GnuHashTable, ProgramHeader, SectionHeader};
use object::{Endianness, ReadRef, elf, pod};
use std::collections::HashMap;

/// The most load segments of a file. More are damage: linkers write between two and about ten.
const MOST_SEGMENTS: usize = 64;
/// The most bytes of headers, notes and dynamic entries that are read: 100,000 sections have 6 MB of headers.
const MOST_BYTES: u64 = 32 << 20;
/// The most bytes of section names that are read.
const MOST_SECTION_NAMES: u64 = 1 << 20;

/// The first bytes of a file, which are read at once: linkers put program headers and notes there.
const START: usize = 4 << 10;

/// The length of the header up to the type of the file, in bytes.
pub(in crate::symbol) const PROGRAM_HEADER: usize = 18;

/// Returns whether a file that begins with `header` is an ELF program or library.
pub(in crate::symbol) fn is_program_header(header: &[u8; PROGRAM_HEADER]) -> bool {
    let kind = [header[16], header[17]];
    let kind = if header[5] == 2 { u16::from_be_bytes(kind) } else { u16::from_le_bytes(kind) };
    header.starts_with(b"\x7fELF") && matches!(kind, 2 | 3)
}

/// The decoded headers.
pub(in crate::symbol) struct Elf {
    pub(in crate::symbol) is_64: bool,
    pub(in crate::symbol) endian: Endianness,
    pub(in crate::symbol) machine: elf::Machine,
    pub(in crate::symbol) segments: Vec<Segment>,
    pub(in crate::symbol) sections: Vec<Section>,
    layout: Vec<AddressedSection>,
    section_names: Vec<u8>,
    /// The build-id, which the linker wrote.
    pub(in crate::symbol) build_id: Option<Vec<u8>>,
    /// `.gnu.version_d`: the version names of symbols that the file defines.
    pub(in crate::symbol) versions_defined: Option<VersionTable>,
    /// `.gnu.version_r`: the version names of symbols that the file needs from others.
    pub(in crate::symbol) versions_needed: Option<VersionTable>,
    /// `.symtab` first, then `.dynsym`.
    pub(in crate::symbol) tables: Vec<SymbolTable>,
}

impl Elf {
    /// Reads the headers, not the tables.
    pub(in crate::symbol) fn read(file: &BoundedFile, budget: &mut Budget) -> Result<Elf, NoSymbols> {
        let mut start = [0; START];
        let length = file.read_up_to(0, &mut start)?;
        let start = start.get(..length).unwrap_or_default();
        if !start.starts_with(&elf::ELFMAG) {
            return Err(NoSymbols::NotElf);
        }
        match start.get(4).copied() {
            Some(2) => parse::<elf::FileHeader64<Endianness>>(file, start, budget),
            Some(1) => parse::<elf::FileHeader32<Endianness>>(file, start, budget),
            _ => Err(NoSymbols::Damaged("neither 32-bit nor 64-bit")),
        }
    }

    /// Returns the number of the section in memory that contains a file address.
    pub(in crate::symbol) fn section_at(&self, address: u64) -> Option<u32> {
        let after = self.layout.partition_point(|one| one.start <= address);
        let placed = self.layout.get(after.checked_sub(1)?)?;
        (address < placed.end).then_some(placed.number)
    }

    /// Returns where sections in memory begin and end.
    pub(in crate::symbol) fn section_bounds(&self) -> impl Iterator<Item = u64> {
        self.layout.iter().flat_map(|one| [one.start, one.end])
    }

    /// Returns whether an address is after the bytes that its load segment has in the file, as in `.bss`: its memory
    /// starts as zeros.
    pub(in crate::symbol) fn is_zeroed(&self, address: u64) -> bool {
        self.segments.iter().any(|one| {
            let into = address.checked_sub(one.address);
            into.is_some_and(|into| (one.file_size..one.memory_size).contains(&into))
        })
    }

    /// Returns the name of a section, by number.
    pub(in crate::symbol) fn section_name(&self, number: u32) -> Option<&[u8]> {
        let section = self.sections.get(usize::try_from(number).ok()?)?;
        self.name_of(section).filter(|name| !name.is_empty())
    }

    /// Returns the place in the file of the bytes at a file address; `None` if no load segment has them.
    pub(in crate::symbol) fn in_file(&self, address: u64, size: u64) -> Option<FileRange> {
        Some(FileRange { offset: offset_of(&self.segments, address)?, size })
    }

    /// Returns whether a section, by number, contains code.
    pub(in crate::symbol) fn is_code(&self, number: u32) -> bool {
        let section = usize::try_from(number).ok().and_then(|number| self.sections.get(number));
        section.is_some_and(|section| section.flags.contains(elf::SHF_EXECINSTR))
    }

    /// Returns the first section with this name.
    pub(in crate::symbol) fn section_called(&self, name: &[u8]) -> Option<&Section> {
        let mut sections = self.sections.iter();
        sections.find(|section| {
            let rest = usize::try_from(section.name).ok().and_then(|at| self.section_names.get(at..));
            matches!(rest.and_then(|rest| rest.strip_prefix(name)), Some([0, ..]))
        })
    }

    /// Returns the name of a section.
    pub(in crate::symbol) fn name_of(&self, section: &Section) -> Option<&[u8]> {
        let rest = self.section_names.get(usize::try_from(section.name).ok()?..)?;
        rest.get(..memchr::memchr(0, rest)?)
    }

    /// Returns whether the file has `.symtab`, which `strip` removes first.
    pub(in crate::symbol) fn has_full_table(&self) -> bool {
        self.tables.iter().any(|table| table.is_full)
    }

    /// Returns whether `table` lists local symbols too: `strip -x` leaves only the names of source files.
    pub(in crate::symbol) fn lists_locals(&self, file: &BoundedFile, table: &SymbolTable) -> bool {
        /// Linkers write the local symbols of a source file after its name.
        const ENOUGH: u32 = 256;
        const KINDS: u8 = 0xf;
        let (size, kind_at) = if self.is_64 { (24, 4) } else { (16, 12) };
        let range = table.symbols.at_most(size as u64 * u64::from(table.locals.min(ENOUGH)));
        let mut bytes = vec![0; usize::try_from(range.size).unwrap_or_default()];
        let read = file.read_up_to(range.offset, &mut bytes).unwrap_or_default();
        let entries = bytes.get(..read).unwrap_or_default().chunks_exact(size).skip(1);
        let mut kinds = entries.filter_map(|entry| Some(entry.get(kind_at)? & KINDS)).filter(|&kind| kind != SECTION);
        let Some(first) = kinds.next() else {
            return true;
        };
        first != SOURCE_FILE || kinds.any(|kind| kind != SOURCE_FILE)
    }

    /// Returns the size of an address in bytes.
    pub(in crate::symbol) fn pointer_bytes(&self) -> u64 {
        if self.is_64 { 8 } else { 4 }
    }

    /// Returns the size of an entry in a symbol table, in bytes.
    pub(in crate::symbol) fn symbol_bytes(&self) -> u64 {
        if self.is_64 { size_of::<elf::Sym64<Endianness>>() as u64 } else { size_of::<elf::Sym32<Endianness>>() as u64 }
    }

    /// Returns whether `$x`, `$d` and the like are marks of this machine's assemblers between code and data, and not
    /// names.
    pub(in crate::symbol) fn has_mapping_symbols(&self) -> bool {
        matches!(self.machine, elf::EM_ARM | elf::EM_AARCH64 | elf::EM_RISCV | elf::EM_CSKY)
    }
}

fn parse<H: FileHeader<Endian = Endianness>>(
    file: &BoundedFile,
    start: &[u8],
    budget: &mut Budget,
) -> Result<Elf, NoSymbols> {
    let (header, _) = pod::from_bytes::<H>(start).map_err(|()| NoSymbols::CutShort("file header"))?;
    let endian = header.endian().ok().filter(|_| header.is_supported());
    let endian = endian.ok_or(NoSymbols::Damaged("unknown byte order or version"))?;
    let reader = Reader::new(file, start, budget.clone().holding(MOST_BYTES));
    let read = reader.part("section headers", "too many sections");
    let headers = header.section_headers(endian, read);
    let headers = headers.map_err(|_| reader.fault("unusual size of section headers"))?;
    let read = reader.part("program headers", "too many program headers");
    let programs = header.program_headers(endian, read);
    let programs = programs.map_err(|_| reader.fault("unusual size of program headers"))?;
    // Each header is visited a few times.
    budget.spend((headers.len() + programs.len()) as u64)?;
    let loaded = programs.iter().filter(|one| one.p_type(endian) == elf::PT_LOAD);
    let segments: Vec<Segment> = loaded.map(|one| Segment::of(one, endian)).collect();
    if segments.len() > MOST_SEGMENTS {
        return Err(NoSymbols::Damaged("too many load segments"));
    }

    let sections: Vec<Section> = headers.iter().map(|one| Section::of(one, endian)).collect();
    // Sections without names still count.
    let names = header.section_strings_index(endian, read).ok().and_then(|number| sections.get(number.0));
    let names = names.map(|names| names.in_file().at_most(MOST_SECTION_NAMES));
    let section_names = names.and_then(|range| file.read(range, "section names", budget).ok()).unwrap_or_default();
    let mut tables = tables(file, &sections)?;
    let mut layout = layout(&sections);
    if sections.is_empty() {
        let read = reader.part("dynamic segment", "too many dynamic entries");
        let mut dynamic = programs.iter().filter_map(|one| one.dynamic(endian, read).ok()?);
        tables
            .extend(dynamic.find_map(|entries| table_of_dynamic::<H>(file, endian, &segments, entries, read, budget)));
        layout = AddressedSection::of_segments(&segments);
    }
    let build_id = build_id::<H>(endian, headers, programs, reader.part("notes", "too many notes"));
    // Most parts of the file are optional: a read that the budget refused must not count as a missing part.
    reader.check()?;
    budget.check()?;
    Ok(Elf {
        is_64: header.is_type_64(),
        endian,
        machine: header.e_machine(endian),
        tables,
        versions_defined: version_table(&sections, elf::SHT_GNU_VERDEF),
        versions_needed: version_table(&sections, elf::SHT_GNU_VERNEED),
        layout,
        segments,
        sections,
        section_names,
        build_id,
    })
}

/// The most sections or segments of notes that are read.
const MOST_NOTES: usize = 64;
/// The longest build-id in bytes: linkers write 8 to 32.
const LONGEST: usize = 64;

/// Returns the build-id of a file, if it has one.
pub(super) fn build_id<H: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    sections: &[H::SectionHeader],
    segments: &[H::ProgramHeader],
    data: LabelledPart<'_>,
) -> Option<Vec<u8>> {
    let has_sections = sections.iter().any(|one| one.sh_type(endian) == elf::SHT_NOTE);
    // A file without section headers still has segments.
    let segments = if has_sections { &[] } else { segments };
    let in_sections = sections.iter().map(|one| one.notes(endian, data));
    let in_segments = segments.iter().map(|one| one.notes(endian, data));
    let read = in_sections.chain(in_segments).filter_map(Result::transpose).take(MOST_NOTES);
    let mut notes = read.flatten().flatten().flatten();
    let is_build_id = notes.find(|note| {
        note.name() == elf::ELF_NOTE_GNU
            && note.n_type(endian) == elf::NT_GNU_BUILD_ID
            && (2..=LONGEST).contains(&note.desc().len())
    });
    is_build_id.map(|note| note.desc().to_vec())
}

/// Formats a build-id in hexadecimal digits, as `file` and gdb write it.
pub(in crate::symbol) fn build_id_digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The most bytes of a symbol table that is read (16 million symbols).
const LARGEST_TABLE: u64 = 384 << 20;

/// `STT_SECTION` and `STT_FILE`
const SECTION: u8 = 3;
const SOURCE_FILE: u8 = 4;

/// A section header, as much of it as is used.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbol) struct Section {
    pub(in crate::symbol) name: u32,
    pub(in crate::symbol) kind: elf::SectionType,
    pub(in crate::symbol) flags: elf::SectionFlags,
    pub(in crate::symbol) address: u64,
    pub(in crate::symbol) offset: u64,
    pub(in crate::symbol) size: u64,
    pub(in crate::symbol) link: u32,
    pub(in crate::symbol) info: u32,
    pub(in crate::symbol) alignment: u64,
}

impl Section {
    /// Decodes a section header.
    pub(in crate::symbol) fn of<S: SectionHeader<Endian = Endianness>>(header: &S, endian: Endianness) -> Self {
        Section {
            name: header.sh_name(endian),
            kind: header.sh_type(endian),
            flags: header.sh_flags(endian),
            address: header.sh_addr(endian).into(),
            offset: header.sh_offset(endian).into(),
            size: header.sh_size(endian).into(),
            link: header.sh_link(endian),
            info: header.sh_info(endian),
            alignment: header.sh_addralign(endian).into(),
        }
    }

    /// Returns the place of its bytes in the file, which may be none.
    pub(in crate::symbol) fn in_file(&self) -> FileRange {
        FileRange { offset: self.offset, size: self.size }
    }

    /// Returns whether the section is in the memory of the running program.
    pub(in crate::symbol) fn is_loaded(&self) -> bool {
        self.flags.contains(elf::SHF_ALLOC)
    }

    /// Returns whether the file has bytes for the section.
    pub(in crate::symbol) fn has_bytes(&self) -> bool {
        self.kind != elf::SHT_NOBITS && self.size > 0
    }
}

/// A load segment (`PT_LOAD`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::symbol) struct Segment {
    pub(in crate::symbol) offset: u64,
    pub(in crate::symbol) file_size: u64,
    pub(in crate::symbol) address: u64,
    pub(in crate::symbol) memory_size: u64,
    pub(in crate::symbol) is_writable: bool,
    pub(in crate::symbol) is_executable: bool,
}

impl Segment {
    /// Decodes a program header.
    pub(in crate::symbol) fn of<P: ProgramHeader<Endian = Endianness>>(header: &P, endian: Endianness) -> Self {
        Segment {
            offset: header.p_offset(endian).into(),
            file_size: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
            memory_size: header.p_memsz(endian).into(),
            is_writable: header.p_flags(endian).contains(elf::PF_W),
            is_executable: header.p_flags(endian).contains(elf::PF_X),
        }
    }
}

/// A symbol table, with its strings and versions.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbol) struct SymbolTable {
    pub(in crate::symbol) symbols: FileRange,
    pub(in crate::symbol) strings: FileRange,
    /// Whether this is `.symtab`, which includes static functions; otherwise `.dynsym`.
    pub(in crate::symbol) is_full: bool,
    /// The number of local symbols, which are the first ones.
    locals: u32,
    /// Offset of `.gnu.version`, one 16-bit word for each symbol; only `.dynsym` has it.
    pub(in crate::symbol) versions: Option<u64>,
}

/// A table of version names, and its strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::symbol) struct VersionTable {
    pub(in crate::symbol) entries: FileRange,
    pub(in crate::symbol) strings: FileRange,
}

/// A section with addresses in the running program.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbol) struct AddressedSection {
    pub(in crate::symbol) start: u64,
    pub(in crate::symbol) end: u64,
    pub(in crate::symbol) number: u32,
}

impl AddressedSection {
    /// Makes sections of the load segments, for a file without section headers: a symbol without a size extends at most
    /// to the end of its segment.
    fn of_segments(segments: &[Segment]) -> Vec<AddressedSection> {
        let placed = (0..).zip(segments).map(|(number, segment)| AddressedSection {
            start: segment.address,
            end: segment.address.saturating_add(segment.memory_size),
            number,
        });
        apart(placed.collect())
    }
}

/// Returns the sections with addresses, in order. In an intact file they do not overlap; of overlapping ones the first
/// is kept.
pub(in crate::symbol) fn layout(sections: &[Section]) -> Vec<AddressedSection> {
    let placed = (0..)
        .zip(sections)
        .filter(|(_, section)| {
            // .tbss has no memory of the program: its addresses are those of the section after it.
            let thread_local = section.flags.contains(elf::SHF_TLS);
            section.is_loaded() && section.size > 0 && !(thread_local && section.kind == elf::SHT_NOBITS)
        })
        .map(|(number, section)| AddressedSection {
            start: section.address,
            end: section.address.saturating_add(section.size),
            number,
        });
    apart(placed.collect())
}

/// Sorts sections, and removes those that overlap an earlier one.
fn apart(mut placed: Vec<AddressedSection>) -> Vec<AddressedSection> {
    placed.sort_by_cached_key(|one| one.start);
    let mut end = 0;
    placed.retain(|one| {
        let free = one.start >= end;
        end = if free { one.end } else { end };
        free
    });
    placed
}

/// Returns the first table of version names of a kind.
fn version_table(sections: &[Section], wanted: elf::SectionType) -> Option<VersionTable> {
    let table = sections.iter().find(|section| section.kind == wanted)?;
    let strings = sections.get(usize::try_from(table.link).ok()?)?;
    Some(VersionTable { entries: table.in_file(), strings: strings.in_file() })
}

/// Finds the symbol tables, `.symtab` first, which has more symbols.
pub(in crate::symbol) fn tables(file: &BoundedFile, sections: &[Section]) -> Result<Vec<SymbolTable>, NoSymbols> {
    let mut tables = Vec::new();
    for wanted in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let is_wanted = |(_, one): &(u32, &Section)| one.kind == wanted && one.size > 0;
        let Some((number, section)) = (0..).zip(sections).find(is_wanted) else {
            continue;
        };
        let strings = usize::try_from(section.link)
            .ok()
            .and_then(|link| sections.get(link))
            .filter(|strings| strings.kind == elf::SHT_STRTAB)
            .ok_or(NoSymbols::Damaged("a symbol table without names"))?;
        if !file.holds(section.in_file()) {
            return Err(NoSymbols::CutShort("symbol table"));
        }
        if !file.holds(strings.in_file()) {
            return Err(NoSymbols::CutShort("symbol names"));
        }
        if section.size > LARGEST_TABLE {
            return Err(NoSymbols::Damaged("a symbol table of implausible size"));
        }
        let mut versions = sections.iter();
        let versions = versions.find(|one| one.kind == elf::SHT_GNU_VERSYM && one.link == number);
        tables.push(SymbolTable {
            is_full: wanted == elf::SHT_SYMTAB,
            locals: section.info,
            symbols: section.in_file(),
            strings: strings.in_file(),
            versions: versions.map(|one| one.offset),
        });
    }
    Ok(tables)
}

/// The most entries that are read: linkers write some dozens.
const MOST_ENTRIES: usize = 4096;
/// The bytes of a hash table that are read at first, and at most.
const SMALLEST_HASH: u64 = 64 << 10;
const LARGEST_HASH: u64 = 64 << 20;

/// Returns the symbol table to which the entries of a dynamic segment refer; `None` if they refer to none, or to one
/// that is not in the file.
fn table_of_dynamic<H: FileHeader<Endian = Endianness>>(
    file: &BoundedFile,
    endian: Endianness,
    segments: &[Segment],
    entries: &[H::Dyn],
    read: LabelledPart<'_>,
    budget: &mut Budget,
) -> Option<SymbolTable> {
    let entries = entries.iter().take(MOST_ENTRIES).map(|one| (one.tag(endian), one.val(endian)));
    let values: HashMap<_, _> = entries.take_while(|one| one.0 != elf::DT_NULL).collect();
    let place = |tag| offset_of(segments, *values.get(&tag)?);
    let strings = FileRange { offset: place(elf::DT_STRTAB)?, size: *values.get(&elf::DT_STRSZ)? };
    let count = match place(elf::DT_HASH).and_then(|at| count_by_hash(endian, at, read)) {
        Some(count) => count,
        None => count_by_gnu_hash::<H>(file, endian, place(elf::DT_GNU_HASH)?, budget)?,
    };
    let symbols = FileRange { offset: place(elf::DT_SYMTAB)?, size: u64::from(count) * size_of::<H::Sym>() as u64 };
    let is_sound = symbols.size <= LARGEST_TABLE && file.holds(symbols) && file.holds(strings);
    is_sound.then(|| SymbolTable { symbols, strings, is_full: false, locals: 0, versions: place(elf::DT_VERSYM) })
}

/// Returns the number of symbols: each has a link in the chains.
fn count_by_hash(endian: Endianness, offset: u64, read: LabelledPart<'_>) -> Option<u32> {
    let header = read.read_at::<elf::HashHeader<Endianness>>(offset).ok()?;
    Some(header.chain_count.get(endian))
}

/// Returns the number of symbols: one more than the last symbol of the last chain. The size of the table is not
/// recorded, so more of it is read until that chain ends. Without chains there are only the symbols before the table's
/// first.
fn count_by_gnu_hash<H: FileHeader<Endian = Endianness>>(
    file: &BoundedFile,
    endian: Endianness,
    offset: u64,
    budget: &mut Budget,
) -> Option<u32> {
    let rest = FileRange { offset, size: file.length().checked_sub(offset)?.min(LARGEST_HASH) };
    let mut size = SMALLEST_HASH;
    loop {
        let bytes = file.read(rest.at_most(size), "hash table", budget).ok()?;
        let table = GnuHashTable::<H>::parse(endian, &bytes).ok();
        let count = table.as_ref().and_then(|one| one.symbol_table_length(endian));
        if count.is_some() || size >= rest.size {
            return count.or_else(|| Some(table?.symbol_base()));
        }
        size *= 4;
    }
}

/// Returns the file offset of an address.
fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    segments.iter().find_map(|one| {
        let into = address.checked_sub(one.address)?;
        (into < one.file_size).then(|| one.offset.checked_add(into))?
    })
}
