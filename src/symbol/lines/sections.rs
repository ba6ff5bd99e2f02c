//! The `.debug_*` sections of a file, within bounds.

use super::NoLines;
use super::work::Work;
use crate::symbol::source::Source;
use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::Endianness;

/// More bytes of debug information than this are not kept for one file.
const MOST_BYTES: u64 = 1 << 30;

/// Nor more bytes of abbreviations: a browser's take some megabytes.
const MOST_ABBREVIATIONS: u64 = 64 << 20;

/// The sections that lines and functions are found by.
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

/// What gimli reads from.
pub(super) type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// The bytes of the sections.
pub(super) struct Sections {
    bytes: DwarfSections<Vec<u8>>,
    /// How many they are.
    pub(super) size: u64,
    endian: RunTimeEndian,
}

impl Sections {
    /// Reads them, expanded where they are compressed; `None` if the file has no debug information.
    pub(super) fn read(source: &Source, work: &mut Work) -> Result<Option<Sections>, NoLines> {
        if !source.has_section(b".debug_info") {
            return Ok(None);
        }
        let mut room = MOST_BYTES;
        let bytes = DwarfSections::load(|id: SectionId| {
            work.look()?;
            if !WANTED.contains(&id) {
                return Ok(Vec::new());
            }
            let most = match id {
                SectionId::DebugAbbrev => room.min(MOST_ABBREVIATIONS),
                _ => room,
            };
            let mut stopped = None;
            let mut go_on = || work.look().map_err(|why| stopped = Some(why)).is_ok();
            let read = source.section_while(id.name().as_bytes(), most, &mut go_on);
            if let Some(why) = stopped {
                return Err(why);
            }
            let bytes = read?.unwrap_or_default();
            room = room.saturating_sub(bytes.len() as u64);
            Ok::<_, NoLines>(bytes)
        })?;
        let endian = match source.elf.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        Ok(Some(Sections {
            bytes,
            size: MOST_BYTES - room,
            endian,
        }))
    }

    /// For gimli.
    pub(super) fn dwarf(&self) -> Dwarf<Bytes<'_>> {
        self.bytes
            .borrow(|bytes| EndianSlice::new(bytes, self.endian))
    }
}
