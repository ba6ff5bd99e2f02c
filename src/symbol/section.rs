//! The sections of an ELF file, and which of them hold symbols, names and versions.

use super::NoSymbols;
use super::file::{File, FileRange};
use object::Endianness;
use object::elf;
use object::read::elf::{ProgramHeader, SectionHeader};

/// A symbol table of more bytes than this is not passed over (16 million symbols).
pub(super) const LARGEST_TABLE: u64 = 384 << 20;
/// More places with notes are not looked at.
pub(super) const MOST_NOTES: usize = 64;

/// A section header, as much of it as is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) name: u32,
    pub(super) kind: elf::SectionType,
    pub(super) flags: elf::SectionFlags,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
    pub(super) alignment: u64,
}

impl Section {
    /// What its header says.
    pub(super) fn of<S: SectionHeader<Endian = Endianness>>(
        header: &S,
        endian: Endianness,
    ) -> Self {
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

    /// Where its bytes are in the file, if it has any there.
    pub(super) fn in_file(&self) -> FileRange {
        FileRange {
            offset: self.offset,
            size: self.size,
        }
    }

    /// Whether it is part of the running program.
    pub(super) fn is_loaded(&self) -> bool {
        self.flags.contains(elf::SHF_ALLOC)
    }

    /// Whether the file has bytes for it.
    pub(super) fn has_bytes(&self) -> bool {
        self.kind != elf::SHT_NOBITS && self.size > 0
    }
}

/// Where notes lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notes {
    pub(super) bytes: FileRange,
    pub(super) alignment: u64,
}

/// Where the notes are that sections hold.
pub(super) fn notes(sections: &[Section]) -> Vec<Notes> {
    let notes = sections.iter().filter(|one| one.kind == elf::SHT_NOTE);
    let notes = notes.map(|one| Notes {
        bytes: one.in_file(),
        alignment: one.alignment,
    });
    notes.take(MOST_NOTES).collect()
}

/// A load segment (`PT_LOAD`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) file_size: u64,
    pub(super) address: u64,
    pub(super) memory_size: u64,
    pub(super) writable: bool,
    pub(super) executable: bool,
}

impl Segment {
    /// What its header says.
    pub(super) fn of<P: ProgramHeader<Endian = Endianness>>(
        header: &P,
        endian: Endianness,
    ) -> Self {
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

/// A symbol table and its company.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) symbols: FileRange,
    pub(super) strings: FileRange,
    /// `.symtab`, which knows static functions too; otherwise `.dynsym`.
    pub(super) full: bool,
    /// Offset of `.gnu.version`, one 16-bit word for each symbol; only `.dynsym` has it.
    pub(super) versions: Option<u64>,
}

/// Where a table of version names lies, and where its strings do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VersionTable {
    pub(super) entries: FileRange,
    pub(super) strings: FileRange,
}

/// A section that has addresses in the running program.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressedSection {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) number: u32,
}

impl AddressedSection {
    /// The load segments, for a file without section headers: a symbol without a size reaches no further than its segment.
    pub(super) fn of_segments(segments: &[Segment]) -> Vec<AddressedSection> {
        let placed = (0..)
            .zip(segments)
            .map(|(number, segment)| AddressedSection {
                start: segment.address,
                end: segment.address.saturating_add(segment.memory_size),
                number,
            });
        apart(placed.collect())
    }
}

/// The sections that have addresses, in order. They do not overlap in a sound file; of those that do the first is kept.
pub(super) fn layout(sections: &[Section]) -> Vec<AddressedSection> {
    let placed = (0..)
        .zip(sections)
        .filter(|(_, section)| {
            // .tbss takes no addresses: it is laid over what follows it.
            let thread_local = section.flags.contains(elf::SHF_TLS);
            section.is_loaded()
                && section.size > 0
                && !(thread_local && section.kind == elf::SHT_NOBITS)
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
pub(super) fn version_table(
    sections: &[Section],
    wanted: elf::SectionType,
) -> Option<VersionTable> {
    let table = sections.iter().find(|section| section.kind == wanted)?;
    let strings = sections.get(usize::try_from(table.link).ok()?)?;
    Some(VersionTable {
        entries: table.in_file(),
        strings: strings.in_file(),
    })
}

/// The symbol tables, `.symtab` first: it knows more.
pub(super) fn tables(file: &File, sections: &[Section]) -> Result<Vec<Table>, NoSymbols> {
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
        found.push(Table {
            full: wanted == elf::SHT_SYMTAB,
            symbols: section.in_file(),
            strings: strings.in_file(),
            versions: versions.map(|one| one.offset),
        });
    }
    Ok(found)
}
