//! Reads the parts of mapped files that names come from, for a capture.

use super::elf::{BoundedFile, Elf, ElfFile, Section};
use crate::budget::Budget;
use crate::process::ReadAt;

/// The most bytes of a section of code or data that are read. Larger ones are left out, because names are not in them.
const LARGEST_DATA: u64 = 256 << 10;
/// The number of bytes in one read.
const READ: usize = 64 << 10;

/// Reads the parts of an ELF file that names come from, so that a capture has them. Damaged parts are left out.
pub fn read_tables(file: Box<dyn ReadAt>, budget: &mut Budget) {
    let Ok(source) = ElfFile::read(BoundedFile::new(file), budget) else {
        return;
    };
    let mut buffer = vec![0; READ];
    for section in source.elf.sections.iter().filter(|section| is_wanted(&source.elf, section)) {
        let range = section.in_file();
        let mut at = range.offset;
        let end = range.offset.saturating_add(range.size).min(source.file.length());
        while at < end && budget.go_on().is_ok() {
            let part = usize::try_from(end - at).unwrap_or(READ).min(READ);
            match source.file.read_up_to(at, buffer.get_mut(..part).unwrap_or_default()) {
                Ok(read @ 1..) => at += read as u64,
                _ => break,
            }
        }
    }
}

fn is_wanted(elf: &Elf, section: &Section) -> bool {
    let name = elf.name_of(section).unwrap_or_default();
    let is_debug = name.starts_with(b".debug") || name.starts_with(b".zdebug");
    let is_data = section.kind == object::elf::SHT_PROGBITS && section.is_loaded();
    section.has_bytes() && !is_debug && (!is_data || section.size <= LARGEST_DATA)
}
