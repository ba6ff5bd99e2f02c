//! The headers of an ELF file: load segments, sections, the build-id, and where its symbol tables lie. Both widths,
//! both byte orders.
//!
//! Every count and offset in the file may be a lie. Each is checked against the file's length and a limit before it is
//! used.

use super::file::{BoundedFile, LabelledPart, Reader};
use super::section::{
    self, AddressedSection, Section, Segment, SymbolTable, VersionTable, layout, tables, version_table,
};
use crate::budget::Budget;
use crate::symbol::NoSymbols;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, elf, pod};

/// A file with more load segments is taken for damaged: linkers write between two and about ten.
const MOST_SEGMENTS: usize = 64;
/// More bytes of headers, notes and dynamic entries are not read: 100,000 sections have 6 MB of headers.
const MOST_BYTES: u64 = 32 << 20;
/// No more bytes of section names than this are read.
const MOST_SECTION_NAMES: u64 = 1 << 20;

/// The first bytes of a file, which are read at once: linkers put program headers and notes there.
const START: usize = 4 << 10;

/// What the headers say.
pub(in crate::symbol) struct Elf {
    pub(in crate::symbol) is_64: bool,
    pub(in crate::symbol) endian: Endianness,
    pub(in crate::symbol) machine: elf::Machine,
    pub(in crate::symbol) segments: Vec<Segment>,
    pub(in crate::symbol) sections: Vec<Section>,
    layout: Vec<AddressedSection>,
    section_names: Vec<u8>,
    /// The identity of the build, which the linker wrote.
    pub(in crate::symbol) build_id: Option<Vec<u8>>,
    /// `.gnu.version_d`: the version names of symbols that the file defines.
    pub(in crate::symbol) versions_defined: Option<VersionTable>,
    /// `.gnu.version_r`: the version names of symbols that it needs from others.
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

    /// The section of the running program that holds a file address, by number.
    pub(in crate::symbol) fn section_at(&self, address: u64) -> Option<u32> {
        let after = self.layout.partition_point(|one| one.start <= address);
        let placed = self.layout.get(after.checked_sub(1)?)?;
        (address < placed.end).then_some(placed.number)
    }

    /// Where sections of the running program begin and end.
    pub(in crate::symbol) fn section_bounds(&self) -> impl Iterator<Item = u64> {
        self.layout.iter().flat_map(|one| [one.start, one.end])
    }

    /// Whether an address lies after the bytes that its load segment has in the file: its memory starts as zeros, as in
    /// `.bss`.
    pub(in crate::symbol) fn is_zeroed(&self, address: u64) -> bool {
        self.segments.iter().any(|one| {
            let into = address.checked_sub(one.address);
            into.is_some_and(|into| (one.file_size..one.memory_size).contains(&into))
        })
    }

    /// The name of a section.
    pub(in crate::symbol) fn section_name(&self, number: u32) -> Option<&[u8]> {
        let section = self.sections.get(usize::try_from(number).ok()?)?;
        self.name_of(section).filter(|name| !name.is_empty())
    }

    /// The first section of that name.
    pub(in crate::symbol) fn section_called(&self, name: &[u8]) -> Option<&Section> {
        let mut sections = self.sections.iter();
        sections.find(|section| {
            let rest = usize::try_from(section.name).ok().and_then(|at| self.section_names.get(at..));
            matches!(rest.and_then(|rest| rest.strip_prefix(name)), Some([0, ..]))
        })
    }

    /// The name of a section.
    pub(in crate::symbol) fn name_of(&self, section: &Section) -> Option<&[u8]> {
        let rest = self.section_names.get(usize::try_from(section.name).ok()?..)?;
        rest.get(..memchr::memchr(0, rest)?)
    }

    /// Whether it has `.symtab`, which `strip` removes first.
    pub(in crate::symbol) fn has_full_table(&self) -> bool {
        self.tables.iter().any(|table| table.full)
    }

    /// Bytes in an address.
    pub(in crate::symbol) fn pointer_bytes(&self) -> u64 {
        if self.is_64 { 8 } else { 4 }
    }

    /// Bytes in an entry of a symbol table.
    pub(in crate::symbol) fn symbol_bytes(&self) -> u64 {
        if self.is_64 { size_of::<elf::Sym64<Endianness>>() as u64 } else { size_of::<elf::Sym32<Endianness>>() as u64 }
    }

    /// Whether `$x`, `$d` and the like are marks of this machine's assemblers between code and data, not names.
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
    // Each is passed over a few times.
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
        tables.extend(dynamic.find_map(|entries| section::table::<H>(file, endian, &segments, entries, read, budget)));
        layout = AddressedSection::of_segments(&segments);
    }
    let build_id = build_id::<H>(endian, headers, programs, reader.part("notes", "too many notes"));
    // Most of the file is read only if it is there: what the budget did not allow must not count as missing.
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

/// More sections or segments of notes are not read.
const MOST_NOTES: usize = 64;
/// A longer number is no build-id: linkers write 8 to 32 bytes.
const LONGEST: usize = 64;

/// The build-id of a file, if it has one.
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

/// Its digits, as `file` and gdb write them.
pub(in crate::symbol) fn build_id_digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
