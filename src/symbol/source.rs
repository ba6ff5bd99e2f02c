//! A file with its headers read: a program or library, or the file that holds what was stripped from it.

use super::NoSymbols;
use super::build_id;
use super::contents;
use super::elf::Elf;
use super::file::{File, GoOn};
use super::section::Section;

/// An ELF file whose headers were read.
pub(super) struct Source {
    pub(super) file: File,
    pub(super) elf: Elf,
}

impl Source {
    /// Reads the headers.
    pub(super) fn read(file: File) -> Result<Source, NoSymbols> {
        let elf = Elf::read(&file)?;
        Ok(Source { file, elf })
    }

    /// The bytes of the first section of that name, expanded if they are compressed; `None` if there is no such section, or if it
    /// takes no room in this file. Sections that expand to more than `most` bytes are an error.
    pub(super) fn section(&self, name: &[u8], most: u64) -> Result<Option<Vec<u8>>, NoSymbols> {
        self.section_while(name, most, &mut || true)
    }

    /// The same, asking now and then whether to go on: large sections take long to read and to expand.
    pub(super) fn section_while(
        &self,
        name: &[u8],
        most: u64,
        go_on: &mut GoOn,
    ) -> Result<Option<Vec<u8>>, NoSymbols> {
        let Some(section) = self.elf.section_called(name) else {
            return contents::of_old_compressed(&self.file, &self.elf, name, most, go_on);
        };
        contents::of(&self.file, &self.elf, section, most, go_on)
    }

    /// Whether there is a section of that name, or of its old compressed spelling, with bytes in this file.
    pub(super) fn has_section(&self, name: &[u8]) -> bool {
        let has = |name: &[u8]| {
            self.elf
                .section_called(name)
                .is_some_and(Section::has_bytes)
        };
        has(name) || contents::old_spelling(name).is_some_and(|old| has(&old))
    }

    /// What the linker wrote in to tell this build from all others.
    pub(super) fn build_id(&self) -> Option<Vec<u8>> {
        build_id::of(&self.file, &self.elf)
    }
}
