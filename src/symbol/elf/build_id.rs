//! `.note.gnu.build-id`: a number that the linker computes from what it has linked. A program and its separate debug
//! file have the same.

use super::file::File;
use super::headers::Elf;
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::NoteIterator;

/// Larger notes are not searched: linkers write a few hundred bytes.
const LARGEST: u64 = 64 << 10;
/// A longer number is no build-id: linkers write 8 to 32 bytes.
const LONGEST: usize = 64;

/// The build-id of a file, if it has one.
pub(in crate::symbol) fn of(file: &File, elf: &Elf) -> Option<Vec<u8>> {
    elf.notes.iter().find_map(|notes| {
        let range = Some(notes.bytes).filter(|range| range.size <= LARGEST)?;
        let bytes = file.read(range, "notes").ok()?;
        among(&bytes, elf.endian, notes.alignment)
    })
}

/// The build-id among notes. Their headers are alike in 32-bit and 64-bit files.
fn among(bytes: &[u8], endian: Endianness, alignment: u64) -> Option<Vec<u8>> {
    type Notes<'a> = NoteIterator<'a, FileHeader64<Endianness>>;
    let mut notes = Notes::new(endian, alignment, bytes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        let id = note.desc();
        if note.name() == elf::ELF_NOTE_GNU
            && note.n_type(endian) == elf::NT_GNU_BUILD_ID
            && (2..=LONGEST).contains(&id.len())
        {
            return Some(id.to_vec());
        }
    }
    None
}

/// Its digits, as `file` and gdb write them.
pub(in crate::symbol) fn digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
