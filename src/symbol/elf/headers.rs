//! The headers of an ELF file: load segments, sections and where its symbol tables lie. Both widths, both byte orders.
//!
//! Every count and offset in the file may be a lie. Each is checked against the file's length and a limit before it is
//! used.

use super::dynamic;
use super::file::{File, FileRange};
use super::section::{
    AddressedSection, MOST_NOTES, Notes, Section, Segment, Table, VersionTable, layout, notes, tables, version_table,
};
use crate::symbol::NoSymbols;
use object::Endianness;
use object::elf;
use object::pod;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// A file with more load segments is taken for damaged: linkers write between two and about ten.
const MOST_SEGMENTS: usize = 64;
/// A file with more sections is taken for damaged.
const MOST_SECTIONS: u64 = 1 << 18;
/// No more bytes of section names than this are read.
const MOST_SECTION_NAMES: u64 = 1 << 20;

/// What the headers say.
pub(in crate::symbol) struct Elf {
    pub(in crate::symbol) is_64: bool,
    pub(in crate::symbol) endian: Endianness,
    pub(in crate::symbol) machine: elf::Machine,
    pub(in crate::symbol) segments: Vec<Segment>,
    pub(in crate::symbol) sections: Vec<Section>,
    layout: Vec<AddressedSection>,
    section_names: Vec<u8>,
    /// Where its notes are.
    pub(in crate::symbol) notes: Vec<Notes>,
    /// `.gnu.version_d`: the version names of symbols that the file defines.
    pub(in crate::symbol) versions_defined: Option<VersionTable>,
    /// `.gnu.version_r`: the version names of symbols that it needs from others.
    pub(in crate::symbol) versions_needed: Option<VersionTable>,
    /// `.symtab` first, then `.dynsym`.
    pub(in crate::symbol) tables: Vec<Table>,
}

impl Elf {
    /// Reads the headers, not the tables.
    pub(in crate::symbol) fn read(file: &File) -> Result<Elf, NoSymbols> {
        let mut start = [0; size_of::<elf::FileHeader64<Endianness>>()];
        let length = file.read_up_to(0, &mut start)?;
        let start = start.get(..length).unwrap_or_default();
        if !start.starts_with(&elf::ELFMAG) {
            return Err(NoSymbols::NotElf);
        }
        match start.get(4).copied() {
            Some(2) => parse::<elf::FileHeader64<Endianness>>(file, start),
            Some(1) => parse::<elf::FileHeader32<Endianness>>(file, start),
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

    fn name_of(&self, section: &Section) -> Option<&[u8]> {
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

fn parse<H: FileHeader<Endian = Endianness>>(file: &File, start: &[u8]) -> Result<Elf, NoSymbols> {
    let (header, _) = pod::from_bytes::<H>(start).map_err(|()| NoSymbols::CutShort("file header"))?;
    let endian = header.endian().ok().filter(|_| header.is_supported());
    let endian = endian.ok_or(NoSymbols::Damaged("unknown byte order or version"))?;
    let headers = section_headers(file, header, endian)?;
    let programs = program_headers(file, header, endian, headers.first())?;
    let of_kind = |wanted| programs.iter().filter(move |one| one.p_type(endian) == wanted);
    let in_file =
        |one: &H::ProgramHeader| FileRange { offset: one.p_offset(endian).into(), size: one.p_filesz(endian).into() };
    let segments: Vec<Segment> = of_kind(elf::PT_LOAD).map(|one| Segment::of(one, endian)).collect();
    if segments.len() > MOST_SEGMENTS {
        return Err(NoSymbols::Damaged("too many load segments"));
    }

    let names = match header.e_shstrndx(endian) {
        elf::SHN_XINDEX => headers.first().map(|first| first.sh_link(endian)),
        number => number.index().map(u32::from),
    };
    let sections: Vec<Section> = headers.iter().map(|one| Section::of(one, endian)).collect();
    // Sections without names still count.
    let section_names = names
        .and_then(|number| sections.get(usize::try_from(number).ok()?))
        .and_then(|names| {
            let range = names.in_file().at_most(MOST_SECTION_NAMES);
            file.read(range, "section names").ok()
        })
        .unwrap_or_default();
    let mut notes = notes(&sections);
    if notes.is_empty() {
        // A file without section headers still has segments.
        let segments = of_kind(elf::PT_NOTE).take(MOST_NOTES);
        notes.extend(segments.map(|one| Notes { bytes: in_file(one), alignment: one.p_align(endian).into() }));
    }
    let mut tables = tables(file, &sections)?;
    let mut layout = layout(&sections);
    if sections.is_empty() {
        let mut dynamic = of_kind(elf::PT_DYNAMIC);
        let table = dynamic.find_map(|one| dynamic::table::<H>(file, endian, &segments, in_file(one)));
        tables.extend(table);
        layout = AddressedSection::of_segments(&segments);
    }
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
        notes,
    })
}

fn section_headers<H: FileHeader<Endian = Endianness>>(
    file: &File,
    header: &H,
    endian: Endianness,
) -> Result<Vec<H::SectionHeader>, NoSymbols> {
    let offset = header.e_shoff(endian).into();
    let read = |count| {
        let size = count * size_of::<H::SectionHeader>() as u64;
        file.table::<H::SectionHeader>(FileRange { offset, size }, "section headers")
    };
    if offset == 0 {
        return Ok(Vec::new());
    }
    if usize::from(header.e_shentsize(endian)) != size_of::<H::SectionHeader>() {
        return Err(NoSymbols::Damaged("unusual size of section headers"));
    }
    // From 0xff00 sections on the count is in the first header.
    let count = match header.e_shnum(endian) {
        0 => read(1)?.first().map_or(0, |one| one.sh_size(endian).into()),
        count => u64::from(count),
    };
    if count > MOST_SECTIONS { Err(NoSymbols::Damaged("too many sections")) } else { read(count) }
}

fn program_headers<H: FileHeader<Endian = Endianness>>(
    file: &File,
    header: &H,
    endian: Endianness,
    first_section: Option<&H::SectionHeader>,
) -> Result<Vec<H::ProgramHeader>, NoSymbols> {
    let count = match header.e_phnum(endian) {
        elf::PN_XNUM => first_section.map_or(0, |first| u64::from(first.sh_info(endian))),
        count => u64::from(count),
    };
    if count > 0 && usize::from(header.e_phentsize(endian)) != size_of::<H::ProgramHeader>() {
        return Err(NoSymbols::Damaged("unusual size of program headers"));
    }
    if count > MOST_SECTIONS {
        return Err(NoSymbols::Damaged("too many program headers"));
    }
    let offset = header.e_phoff(endian).into();
    let size = count * size_of::<H::ProgramHeader>() as u64;
    file.table(FileRange { offset, size }, "program headers")
}
