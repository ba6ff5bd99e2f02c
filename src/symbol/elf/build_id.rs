//! `.note.gnu.build-id`: a number that the linker computes from what it has linked. A program and its separate debug
//! file have the same.

use super::reader::Part;
use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// More sections or segments of notes are not read.
const MOST_NOTES: usize = 64;
/// A longer number is no build-id: linkers write 8 to 32 bytes.
const LONGEST: usize = 64;

/// The build-id of a file, if it has one.
pub(super) fn among<H: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    sections: &[H::SectionHeader],
    segments: &[H::ProgramHeader],
    data: Part<'_>,
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
pub(in crate::symbol) fn digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
