//! The sections of an ELF file, and which of them hold symbols, names and versions. Files without section headers have
//! their symbols by the dynamic segment, which the dynamic linker uses.
//!
//! That segment gives addresses, not offsets, and no count of symbols. The count follows from the hash table, which
//! reaches every symbol that can be found by name.

use super::file::{BoundedFile, FileRange, LabelledPart};
use crate::budget::Budget;
use crate::symbol::NoSymbols;
use object::read::elf::{Dyn, FileHeader, GnuHashTable, ProgramHeader, SectionHeader};
use object::{Endianness, ReadRef, elf};
use std::collections::HashMap;

/// Larger symbol tables are not read (16 million symbols).
const LARGEST_TABLE: u64 = 384 << 20;

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
    pub(in crate::symbol) alignment: u64,
}

impl Section {
    /// What its header says.
    pub(in crate::symbol) fn of<S: SectionHeader<Endian = Endianness>>(header: &S, endian: Endianness) -> Self {
        Section {
            name: header.sh_name(endian),
            kind: header.sh_type(endian),
            flags: header.sh_flags(endian),
            address: header.sh_addr(endian).into(),
            offset: header.sh_offset(endian).into(),
            size: header.sh_size(endian).into(),
            link: header.sh_link(endian),
            alignment: header.sh_addralign(endian).into(),
        }
    }

    /// Its bytes in the file, if it has any.
    pub(in crate::symbol) fn in_file(&self) -> FileRange {
        FileRange { offset: self.offset, size: self.size }
    }

    /// Whether it is part of the running program.
    pub(in crate::symbol) fn is_loaded(&self) -> bool {
        self.flags.contains(elf::SHF_ALLOC)
    }

    /// Whether the file has bytes for it.
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
    pub(in crate::symbol) writable: bool,
    pub(in crate::symbol) executable: bool,
}

impl Segment {
    /// What its header says.
    pub(in crate::symbol) fn of<P: ProgramHeader<Endian = Endianness>>(header: &P, endian: Endianness) -> Self {
        Segment {
            offset: header.p_offset(endian).into(),
            file_size: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
            memory_size: header.p_memsz(endian).into(),
            writable: header.p_flags(endian).contains(elf::PF_W),
            executable: header.p_flags(endian).contains(elf::PF_X),
        }
    }
}

/// A symbol table, with its strings and versions.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbol) struct SymbolTable {
    pub(in crate::symbol) symbols: FileRange,
    pub(in crate::symbol) strings: FileRange,
    /// `.symtab`, which knows static functions too; otherwise `.dynsym`.
    pub(in crate::symbol) full: bool,
    /// Offset of `.gnu.version`, one 16-bit word for each symbol; only `.dynsym` has it.
    pub(in crate::symbol) versions: Option<u64>,
}

/// A table of version names, and its strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::symbol) struct VersionTable {
    pub(in crate::symbol) entries: FileRange,
    pub(in crate::symbol) strings: FileRange,
}

/// A section that has addresses in the running program.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbol) struct AddressedSection {
    pub(in crate::symbol) start: u64,
    pub(in crate::symbol) end: u64,
    pub(in crate::symbol) number: u32,
}

impl AddressedSection {
    /// The load segments, for a file without section headers: a symbol without a size reaches no further than its
    /// segment.
    pub(in crate::symbol) fn of_segments(segments: &[Segment]) -> Vec<AddressedSection> {
        let placed = (0..).zip(segments).map(|(number, segment)| AddressedSection {
            start: segment.address,
            end: segment.address.saturating_add(segment.memory_size),
            number,
        });
        apart(placed.collect())
    }
}

/// The sections that have addresses, in order. In an intact file they do not overlap; of those that do the first is
/// kept.
pub(in crate::symbol) fn layout(sections: &[Section]) -> Vec<AddressedSection> {
    let placed = (0..)
        .zip(sections)
        .filter(|(_, section)| {
            // .tbss takes no addresses: it is laid over what follows it.
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

/// In order, and without what overlaps.
fn apart(mut placed: Vec<AddressedSection>) -> Vec<AddressedSection> {
    placed.sort_by_key(|one| one.start);
    let mut end = 0;
    placed.retain(|one| {
        let free = one.start >= end;
        end = if free { one.end } else { end };
        free
    });
    placed
}

/// The first table of version names of a kind.
pub(in crate::symbol) fn version_table(sections: &[Section], wanted: elf::SectionType) -> Option<VersionTable> {
    let table = sections.iter().find(|section| section.kind == wanted)?;
    let strings = sections.get(usize::try_from(table.link).ok()?)?;
    Some(VersionTable { entries: table.in_file(), strings: strings.in_file() })
}

/// The symbol tables, `.symtab` first: it knows more.
pub(in crate::symbol) fn tables(file: &BoundedFile, sections: &[Section]) -> Result<Vec<SymbolTable>, NoSymbols> {
    let mut found = Vec::new();
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
        found.push(SymbolTable {
            full: wanted == elf::SHT_SYMTAB,
            symbols: section.in_file(),
            strings: strings.in_file(),
            versions: versions.map(|one| one.offset),
        });
    }
    Ok(found)
}

/// More entries than this are not read: linkers write some dozens.
const MOST_ENTRIES: usize = 4096;
/// Bytes of a hash table that are read at first, and at most.
const SMALLEST_HASH: u64 = 64 << 10;
const LARGEST_HASH: u64 = 64 << 20;

/// The symbol table that the entries of a dynamic segment name; `None` if they name none, or one that is not in the
/// file.
pub(in crate::symbol) fn table<H: FileHeader<Endian = Endianness>>(
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
    is_sound.then(|| SymbolTable { symbols, strings, full: false, versions: place(elf::DT_VERSYM) })
}

/// The number of symbols: each has a link in the chains.
fn count_by_hash(endian: Endianness, offset: u64, read: LabelledPart<'_>) -> Option<u32> {
    let header = read.read_at::<elf::HashHeader<Endianness>>(offset).ok()?;
    Some(header.chain_count.get(endian))
}

/// The number of symbols: one more than the last symbol of the last chain. The size of the table is not recorded, so
/// more of it is read until that chain ends. Without chains there are only the symbols before the table's first.
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

/// The file offset of an address.
fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    segments.iter().find_map(|one| {
        let into = address.checked_sub(one.address)?;
        (into < one.file_size).then(|| one.offset.checked_add(into))?
    })
}
