//! A file with its headers read: a program or library, or its separate debug file.

use super::contents;
use super::file::File;
use super::headers::Elf;
use super::section::Section;
use crate::budget::Budget;
use crate::symbol::NoSymbols;

/// An ELF file whose headers were read.
pub(in crate::symbol) struct Source {
    pub(in crate::symbol) file: File,
    pub(in crate::symbol) elf: Elf,
}

impl Source {
    /// Reads the headers.
    pub(in crate::symbol) fn read(file: File) -> Result<Source, NoSymbols> {
        Self::read_within(file, &mut Budget::unlimited())
    }

    /// The same within a budget.
    pub(in crate::symbol) fn read_within(file: File, budget: &mut Budget) -> Result<Source, NoSymbols> {
        let elf = Elf::read(&file, budget)?;
        Ok(Source { file, elf })
    }

    /// The bytes of the first section of that name, expanded if they are compressed; `None` if there is no such
    /// section, or if it has no bytes in this file. Sections that expand to more than `most` bytes are an error.
    pub(in crate::symbol) fn section(&self, name: &[u8], most: u64) -> Result<Option<Vec<u8>>, NoSymbols> {
        self.section_within(name, most, &mut Budget::unlimited())
    }

    /// The same within a budget, as large sections take long to read and to decompress.
    pub(in crate::symbol) fn section_within(
        &self,
        name: &[u8],
        most: u64,
        budget: &mut Budget,
    ) -> Result<Option<Vec<u8>>, NoSymbols> {
        let Some(section) = self.elf.section_called(name) else {
            return contents::of_old_compressed(&self.file, &self.elf, name, most, budget);
        };
        contents::of(&self.file, &self.elf, section, most, budget)
    }

    /// Whether there is a section of that name, or of its old compressed spelling, with bytes in this file.
    pub(in crate::symbol) fn has_section(&self, name: &[u8]) -> bool {
        let has = |name: &[u8]| self.elf.section_called(name).is_some_and(Section::has_bytes);
        has(name) || contents::old_spelling(name).is_some_and(|old| has(&old))
    }
}
