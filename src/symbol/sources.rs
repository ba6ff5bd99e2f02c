//! The files that speak for one module together: its own, and what was stripped from it and is kept elsewhere.

use super::elf::Elf;
use super::section::Table;
use super::separate::Separate;
use super::source::Source;
use super::{NoSeparate, NoSymbols};
use object::elf;

/// A module's files, and the symbol tables in them.
pub(super) struct Sources {
    /// The file that is mapped, or an image of it in memory.
    pub(super) image: Source,
    /// The file that holds what was stripped from it.
    pub(super) separate: Result<Separate, NoSeparate>,
    /// The tables that are asked, the fullest first.
    tables: Vec<Origin>,
    /// For each section of the separate file its number in the image.
    renumbered: Vec<Option<u16>>,
}

/// Which table of which file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Image(usize),
    Separate(usize),
}

impl Sources {
    pub(super) fn new(image: Source, separate: Result<Separate, NoSeparate>) -> Sources {
        let mut tables = Vec::new();
        if !image.elf.has_full_table()
            && let Ok(separate) = &separate
        {
            let full = |(_, table): &(usize, &Table)| table.full;
            let full = separate.source.elf.tables.iter().enumerate().find(full);
            tables.extend(full.map(|(number, _)| Origin::Separate(number)));
        }
        tables.extend((0..image.elf.tables.len()).map(Origin::Image));
        let renumbered = match &separate {
            Ok(separate) => renumbered(&separate.source.elf, &image.elf),
            Err(_) => Vec::new(),
        };
        Sources {
            image,
            separate,
            tables,
            renumbered,
        }
    }

    /// Of the image alone.
    #[cfg(test)]
    pub(super) fn alone(image: Source) -> Sources {
        Sources::new(image, Err(NoSeparate::NotFound))
    }

    /// Whether nothing of it has changed since it was opened.
    pub(super) fn are_unchanged(&self) -> bool {
        let separate = self.separate.as_ref();
        self.image.file.is_unchanged()
            && separate.map_or(true, |separate| separate.source.file.is_unchanged())
    }

    /// The symbol tables in the order in which they are asked.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&Source, &Table)> {
        self.tables
            .iter()
            .filter_map(|&origin| self.table_of(origin))
    }

    /// A symbol table by its place in that order.
    pub(super) fn table(&self, number: u8) -> Option<(&Source, &Table)> {
        self.table_of(*self.tables.get(usize::from(number))?)
    }

    /// The image's number of the section that a symbol of a table says it is in.
    pub(super) fn section_in_image(&self, table: u8, section: u16) -> Option<u16> {
        match self.tables.get(usize::from(table))? {
            Origin::Image(_) => Some(section),
            Origin::Separate(_) => *self.renumbered.get(usize::from(section))?,
        }
    }

    #[expect(dead_code, reason = "for lines")]
    /// The file that holds the debug information: line tables, and what else DWARF tells.
    pub(super) fn debug_source(&self) -> Result<&Source, NoSymbols> {
        if self.image.has_section(b".debug_info") {
            return Ok(&self.image);
        }
        match &self.separate {
            Ok(separate) => Ok(&separate.source),
            Err(reason) => Err(NoSymbols::NoDebugInformation(reason.clone())),
        }
    }

    fn table_of(&self, origin: Origin) -> Option<(&Source, &Table)> {
        let (source, number) = match origin {
            Origin::Image(number) => (&self.image, number),
            Origin::Separate(number) => (&self.separate.as_ref().ok()?.source, number),
        };
        Some((source, source.elf.tables.get(number)?))
    }
}

/// The numbers in `image` of the sections of `other`: those at the same addresses.
fn renumbered(other: &Elf, image: &Elf) -> Vec<Option<u16>> {
    let of = |section: &super::section::Section| {
        let is_placed = section.flags & elf::SHF_ALLOC.0 != 0;
        let number = is_placed.then(|| image.section_at(section.address))??;
        u16::try_from(number).ok()
    };
    other.sections.iter().map(of).collect()
}
