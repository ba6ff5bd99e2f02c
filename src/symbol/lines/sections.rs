//! The `.debug_*` sections of a file, within limits.

use super::NoLines;
use crate::budget::Budget;
use crate::symbol::elf::ElfFile;
use gimli::{Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::Endianness;

/// The most bytes of debug information for one file.
const MOST_BYTES: u64 = 1 << 30;

/// The most bytes of abbreviations: a browser has some megabytes.
const MOST_ABBREVIATIONS: u64 = 64 << 20;

/// The sections that lines and functions need.
const WANTED: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The reader type of gimli.
pub(super) type SectionReader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The bytes of the sections.
pub(super) struct Sections {
    bytes: DwarfSections<Vec<u8>>,
    /// The number of bytes of all sections.
    pub(super) size: u64,
    endian: RunTimeEndian,
}

impl Sections {
    /// Reads the sections, and decompresses them if needed; `None` if the file has no debug information.
    pub(super) fn read(source: &ElfFile, budget: &mut Budget) -> Result<Option<Sections>, NoLines> {
        Sections::read_within(source, MOST_BYTES, |id| Some(id.name()), budget)
    }

    /// Reads the sections that `name` names, in at most `room` bytes.
    pub(super) fn read_within(
        source: &ElfFile,
        room: u64,
        name: fn(SectionId) -> Option<&'static str>,
        budget: &mut Budget,
    ) -> Result<Option<Sections>, NoLines> {
        let information = name(SectionId::DebugInfo).unwrap_or_default();
        if !source.has_section(information.as_bytes()) {
            return Ok(None);
        }
        let mut loader = Loader { source, room, budget };
        let bytes = DwarfSections::load(|id| match name(id) {
            Some(name) if WANTED.contains(&id) => loader.load(id, name),
            _ => Ok::<_, NoLines>(Vec::new()),
        })?;
        Ok(Some(Sections { bytes, size: room - loader.room, endian: endian_of(source) }))
    }

    /// Returns how many bytes of further files may be kept besides this one.
    pub(super) fn room(&self) -> u64 {
        MOST_BYTES.saturating_sub(self.size)
    }

    /// Returns the sections for gimli.
    pub(super) fn dwarf(&self) -> Dwarf<SectionReader<'_>> {
        self.bytes.borrow(|bytes| EndianSlice::new(bytes, self.endian))
    }
}

/// The sections of a package of split debug information (`.dwp`).
pub(super) struct PackageSections {
    bytes: DwarfPackageSections<Vec<u8>>,
    pub(super) size: u64,
    endian: RunTimeEndian,
}

impl PackageSections {
    /// Reads the sections of a package; `None` if the file is not one.
    pub(super) fn read_within(
        source: &ElfFile,
        room: u64,
        budget: &mut Budget,
    ) -> Result<Option<PackageSections>, NoLines> {
        if !source.has_section(SectionId::DebugCuIndex.name().as_bytes()) {
            return Ok(None);
        }
        let mut loader = Loader { source, room, budget };
        // The index needs every section, wanted or not.
        let bytes = DwarfPackageSections::load(|id| match id.dwo_name() {
            Some(name) => loader.load(id, name),
            None => Ok::<_, NoLines>(Vec::new()),
        })?;
        Ok(Some(PackageSections { bytes, size: room - loader.room, endian: endian_of(source) }))
    }

    /// Returns the package for gimli.
    pub(super) fn package(&self) -> Result<DwarfPackage<SectionReader<'_>>, gimli::Error> {
        let empty = EndianSlice::new(&[], self.endian);
        self.bytes.borrow(|bytes| EndianSlice::new(bytes, self.endian), empty)
    }
}

/// Reads sections, up to a limit on their bytes.
struct Loader<'a> {
    source: &'a ElfFile,
    room: u64,
    budget: &'a mut Budget,
}

impl Loader<'_> {
    fn load(&mut self, id: SectionId, name: &str) -> Result<Vec<u8>, NoLines> {
        self.budget.look()?;
        let most = match id {
            SectionId::DebugAbbrev => self.room.min(MOST_ABBREVIATIONS),
            _ => self.room,
        };
        let bytes = self.source.section(name.as_bytes(), most, self.budget)?.unwrap_or_default();
        self.room = self.room.saturating_sub(bytes.len() as u64);
        Ok(bytes)
    }
}

fn endian_of(source: &ElfFile) -> RunTimeEndian {
    match source.elf.endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    }
}
