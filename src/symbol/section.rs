//! The sections of an ELF file, and which of them hold symbols, names and versions.

use super::NoSymbols;
use super::file::File;
use object::Endianness;
use object::elf;
use object::endian::Endian;

/// A symbol table of more bytes than this is not passed over (16 million symbols).
pub(super) const LARGEST_TABLE: u64 = 384 << 20;
/// More places with notes are not looked at.
pub(super) const MOST_NOTES: usize = 64;
/// Names longer than this are not read on.
pub(super) const LONGEST_NAME: usize = 64 * 1024;

/// A section header, as much of it as is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) name: u32,
    pub(super) kind: elf::SectionType,
    pub(super) flags: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
    pub(super) alignment: u64,
}

impl Section {
    /// Whether the file has bytes for it.
    pub(super) fn has_bytes(&self) -> bool {
        self.kind != elf::SHT_NOBITS && self.size > 0
    }
}

/// Where notes lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notes {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) alignment: u64,
}

/// Where the notes are that sections hold.
pub(super) fn notes(sections: &[Section]) -> Vec<Notes> {
    let notes = sections.iter().filter(|one| one.kind == elf::SHT_NOTE);
    notes
        .take(MOST_NOTES)
        .map(|section| Notes {
            offset: section.offset,
            size: section.size,
            alignment: section.alignment,
        })
        .collect()
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

/// A symbol table and its company.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) strings: Strings,
    /// `.symtab`, which knows static functions too; otherwise `.dynsym`.
    pub(super) full: bool,
    /// Offset of `.gnu.version`, one 16-bit word for each symbol; only `.dynsym` has it.
    pub(super) versions: Option<u64>,
}

/// Where a string table lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Strings {
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// Where a table of version names lies, and where its strings do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VersionTable {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) strings: Strings,
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
            let thread_local = section.flags & elf::SHF_TLS.0 != 0;
            section.flags & elf::SHF_ALLOC.0 != 0
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

impl Strings {
    /// The string at `at`; `None` if it is empty, too long, or not in the table.
    pub(super) fn get(self, file: &File, at: u32) -> Option<Vec<u8>> {
        let room = self.size.checked_sub(u64::from(at))?;
        let offset = self.offset.checked_add(u64::from(at))?;
        let room = usize::try_from(room)
            .unwrap_or(usize::MAX)
            .min(LONGEST_NAME);
        let mut name = Vec::new();
        let mut wanted = 128;
        loop {
            let read = name.len();
            let next = room.min(wanted);
            if next <= read {
                return None;
            }
            name.resize(next, 0);
            let more = file
                .read_up_to(offset + read as u64, name.get_mut(read..)?)
                .ok()?;
            name.truncate(read + more);
            if let Some(end) = name.iter().skip(read).position(|&byte| byte == 0) {
                name.truncate(read + end);
                return (!name.is_empty()).then_some(name);
            }
            if more == 0 {
                return None;
            }
            wanted *= 4;
        }
    }
}

/// The first table of version names of a kind.
pub(super) fn version_table(
    sections: &[Section],
    wanted: elf::SectionType,
) -> Option<VersionTable> {
    let table = sections.iter().find(|section| section.kind == wanted)?;
    let strings = sections.get(usize::try_from(table.link).ok()?)?;
    Some(VersionTable {
        offset: table.offset,
        size: table.size,
        strings: Strings {
            offset: strings.offset,
            size: strings.size,
        },
    })
}

/// The symbol tables, `.symtab` first: it knows more.
pub(super) fn tables(file: &File, sections: &[Section]) -> Result<Vec<Table>, NoSymbols> {
    let mut found = Vec::new();
    for wanted in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let Some((number, section)) = sections
            .iter()
            .enumerate()
            .find(|(_, section)| section.kind == wanted && section.size > 0)
        else {
            continue;
        };
        let strings = usize::try_from(section.link)
            .ok()
            .and_then(|link| sections.get(link))
            .filter(|strings| strings.kind == elf::SHT_STRTAB)
            .ok_or(NoSymbols::Damaged("a symbol table without names"))?;
        if !file.holds(section.offset, section.size) {
            return Err(NoSymbols::CutShort("symbol table"));
        }
        if !file.holds(strings.offset, strings.size) {
            return Err(NoSymbols::CutShort("symbol names"));
        }
        if section.size > LARGEST_TABLE {
            return Err(NoSymbols::Damaged("a symbol table of implausible size"));
        }
        let versions = sections
            .iter()
            .find(|one| one.kind == elf::SHT_GNU_VERSYM && one.link as usize == number)
            .map(|one| one.offset);
        found.push(Table {
            full: wanted == elf::SHT_SYMTAB,
            offset: section.offset,
            size: section.size,
            strings: Strings {
                offset: strings.offset,
                size: strings.size,
            },
            versions,
        });
    }
    Ok(found)
}

/// A number of four or eight bytes.
pub(super) fn number(endian: Endianness, bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
        (Some(bytes), _) => endian.read_u64(*bytes),
        (None, Some(bytes)) => endian.read_u32(*bytes).into(),
        (None, None) => 0,
    }
}
