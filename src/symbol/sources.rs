//! The files of one module together: its own, its separate debug file, and the table that is compressed within its own.

use super::elf::{BoundedFile, Elf, ElfFile, SymbolTable, TOO_LARGE, expand_xz};
use super::separate::{Candidates, Separate};
use super::{NoSeparate, NoSymbols};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::{InMemory, Modules};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Larger `.gnu_debugdata`, compressed or not, is ignored: a browser's takes some megabytes.
const LARGEST_MINI: u64 = 256 << 20;
/// A longer decompression is given up; Ctrl-C ends it sooner.
const LONGEST_EXPANSION: Duration = Duration::from_secs(60);

/// Missing debug files are searched for again after this time. A search costs some dozen system calls a module, which a
/// loop in a command file would otherwise pay on each iteration.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// A module's files, and the symbol tables in them.
pub(super) struct Sources {
    /// The file that is mapped, or an image of it in memory.
    pub(super) image: ElfFile,
    /// The candidates for its separate debug file.
    separate: Candidates,
    /// When it was last searched for.
    looked: Mutex<Instant>,
    /// `.gnu_debugdata`, a small ELF file within the image, if there is no better table; or why it is not read.
    mini: Result<Option<(ElfFile, ExpandedBytes)>, NoSymbols>,
    /// The symbol tables that are searched, the fullest first.
    tables: Vec<(Origin, usize)>,
    /// For each section of the other file, its number in the image.
    renumbered: Vec<Option<u16>>,
}

/// Which of a module's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Image,
    Separate,
    Mini,
}

impl Sources {
    /// The files together. Whether `separate` belongs to `image` is checked at once only if its table is needed. An
    /// interrupted check, or an interrupted decompression, is an error.
    pub(super) fn new(image: ElfFile, separate: Candidates, expanded: &ExpandedMemory) -> Result<Sources, NoSymbols> {
        let is_full = |source: &ElfFile| source.elf.has_full_table();
        let has_table = is_full(&image)
            || match separate.chosen() {
                Ok(one) => is_full(&one.source),
                Err(reason) => reason.given_up().map_or(Ok(false), Err)?,
            };
        let mini = if has_table {
            Ok(None)
        } else {
            match mini(&image, expanded, &mut separate.budget().within(LONGEST_EXPANSION)) {
                Err(NoSymbols::Interrupted) => return Err(NoSymbols::Interrupted),
                mini => mini,
            }
        };
        let mut sources = Sources {
            image,
            separate,
            looked: Mutex::new(Instant::now()),
            mini,
            tables: Vec::new(),
            renumbered: Vec::new(),
        };
        if !is_full(&sources.image) {
            for origin in [Origin::Separate, Origin::Mini] {
                let Some(source) = sources.source(origin) else {
                    continue;
                };
                let full = source.elf.tables.iter().position(|table| table.full);
                if let Some(number) = full {
                    sources.renumbered = renumbered(&source.elf, &sources.image.elf);
                    sources.tables.push((origin, number));
                    break;
                }
            }
        }
        let own = 0..sources.image.elf.tables.len();
        sources.tables.extend(own.map(|number| (Origin::Image, number)));
        Ok(sources)
    }

    /// The image alone.
    #[cfg(test)]
    pub(super) fn alone(image: ElfFile) -> Sources {
        let sources = Sources::new(
            image,
            Candidates::none(NoSeparate::NotFound, &Budget::unlimited()),
            &ExpandedMemory::default(),
        );
        sources.unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Whether decompressed tables of it are in memory.
    pub(super) fn is_expanded(&self) -> bool {
        matches!(self.mini, Ok(Some(_)))
    }

    /// Why `.gnu_debugdata` is not used though there is no better table. A damaged or too large one counts as none.
    pub(super) fn no_debugdata(&self) -> Option<&NoSymbols> {
        self.mini.as_ref().err()
    }

    /// Whether it is not used because memory was short: there may be more later.
    pub(super) fn lacks_room(&self) -> bool {
        matches!(self.mini, Err(NoSymbols::NoRoom))
    }

    /// The budget of a query.
    pub(super) fn budget(&self) -> Budget {
        self.separate.budget()
    }

    /// Whether no file has changed since it was opened, and no debug file was installed.
    pub(super) fn are_unchanged(&self, modules: &Modules, now: Instant) -> bool {
        self.image.file.is_unchanged()
            && self.separate.are_unchanged()
            && (!self.looks_again(now) || self.separate.are_all(modules))
    }

    /// Whether it is time to look for new debug files.
    fn looks_again(&self, now: Instant) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = now.saturating_duration_since(*looked) >= BETWEEN_LOOKS;
        if is_time {
            *looked = now;
        }
        is_time
    }

    /// The separate debug file of the image. The first call may take a pass over the file.
    pub(super) fn separate(&self) -> Result<&Separate, NoSeparate> {
        self.separate.chosen()
    }

    /// The symbol tables in the order of the search.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&ElfFile, &SymbolTable)> {
        self.tables.iter().filter_map(|&place| self.table_of(place))
    }

    /// The same, each with its place in that order.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u8, (&ElfFile, &SymbolTable))> {
        (0..).zip(self.tables())
    }

    /// A symbol table by its place in that order.
    pub(super) fn table(&self, number: u8) -> Option<(&ElfFile, &SymbolTable)> {
        self.table_of(*self.tables.get(usize::from(number))?)
    }

    /// The number in the image of the section of a symbol; without sections in the image, the number of the segment of
    /// its address.
    pub(super) fn section_in_image(&self, table: u8, section: u16, address: u64) -> Option<u16> {
        if self.image.elf.sections.is_empty() {
            return u16::try_from(self.image.elf.section_at(address)?).ok();
        }
        match self.tables.get(usize::from(table))? {
            (Origin::Image, _) => Some(section),
            _ => *self.renumbered.get(usize::from(section))?,
        }
    }

    /// The file with the debug information (DWARF), and its path if it is not the image.
    pub(super) fn debug_source(&self) -> Result<(&ElfFile, Option<&Name>), NoSymbols> {
        if self.image.has_section(b".debug_info") {
            return Ok((&self.image, None));
        }
        match self.separate() {
            Ok(separate) => Ok((&separate.source, Some(&separate.path))),
            Err(reason) => Err(reason.given_up().unwrap_or(NoSymbols::NoDebugInformation(reason))),
        }
    }

    fn table_of(&self, (origin, number): (Origin, usize)) -> Option<(&ElfFile, &SymbolTable)> {
        let source = self.source(origin)?;
        Some((source, source.elf.tables.get(number)?))
    }

    fn source(&self, origin: Origin) -> Option<&ElfFile> {
        match origin {
            Origin::Image => Some(&self.image),
            Origin::Separate => self.separate().ok().map(|one| &one.source),
            Origin::Mini => self.mini.as_ref().ok()?.as_ref().map(|(mini, _)| mini),
        }
    }

    /// The file that gives the names of the module; `None` if none does.
    pub(super) fn answers(&self) -> Option<NamesFrom> {
        let &(origin, number) = self.tables.first()?;
        let (_, table) = self.table_of((origin, number))?;
        Some(match origin {
            Origin::Image if table.full => NamesFrom::Itself,
            Origin::Image => NamesFrom::DynamicTable,
            Origin::Separate => NamesFrom::DebugFile,
            Origin::Mini => NamesFrom::DebugData,
        })
    }
}

/// The file that gives the names of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamesFrom {
    /// The file that is mapped.
    Itself,
    /// A separate debug file.
    DebugFile,
    /// `.gnu_debugdata`, compressed within the file that is mapped.
    DebugData,
    /// The file that is mapped, but only with its exported and imported symbols.
    DynamicTable,
}

/// The small ELF file in `.gnu_debugdata`, as Fedora adds it: a table of the functions that `.dynsym` lacks.
fn mini(
    image: &ElfFile,
    expanded: &ExpandedMemory,
    budget: &mut Budget,
) -> Result<Option<(ElfFile, ExpandedBytes)>, NoSymbols> {
    let Some(bytes) = image.section(b".gnu_debugdata", LARGEST_MINI, budget)? else {
        return Ok(None);
    };
    let left = expanded.left();
    let bytes = expand_xz(&bytes, LARGEST_MINI.min(left), budget)?;
    let bytes = bytes.ok_or(if left < LARGEST_MINI { NoSymbols::NoRoom } else { TOO_LARGE })?;
    let kept = expanded.keep(bytes.len() as u64);
    let source = ElfFile::read(BoundedFile::new(Box::new(InMemory::file(bytes))), budget)?;
    Ok(Some((source, kept)))
}

/// The numbers in `image` of the sections of `other`: those at the same addresses.
fn renumbered(other: &Elf, image: &Elf) -> Vec<Option<u16>> {
    let of = |section: &super::elf::Section| {
        let number = section.is_loaded().then(|| image.section_at(section.address))??;
        u16::try_from(number).ok()
    };
    other.sections.iter().map(of).collect()
}

/// Bytes that are kept by default, of all modules together: a Fedora desktop's libraries take some tens of megabytes.
const MOST: u64 = 512 << 20;

/// The count. Clones share it.
#[derive(Clone)]
pub(super) struct ExpandedMemory {
    held: Arc<AtomicU64>,
    most: u64,
}

impl Default for ExpandedMemory {
    fn default() -> Self {
        ExpandedMemory::at_most(MOST)
    }
}

impl ExpandedMemory {
    /// An empty count with this limit.
    pub(super) fn at_most(most: u64) -> ExpandedMemory {
        ExpandedMemory { held: Arc::default(), most }
    }

    /// Bytes that may still be kept.
    pub(super) fn left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Whether so much is kept that tables not used for long should be dropped.
    pub(super) fn is_crowded(&self) -> bool {
        self.left() < self.most / 2
    }

    /// Counts bytes until the result is dropped.
    pub(super) fn keep(&self, bytes: u64) -> ExpandedBytes {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        ExpandedBytes { held: Arc::clone(&self.held), bytes }
    }
}

/// Bytes that are counted.
pub(super) struct ExpandedBytes {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for ExpandedBytes {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
