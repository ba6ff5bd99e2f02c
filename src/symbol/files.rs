//! The files of one module: the mapped file, its separate debug file, and the table that is compressed in the mapped
//! file.
//!
//! The search for the separate debug file is that of gdb, in the target's root: by build-id under
//! `/usr/lib/debug/.build-id`, then by the name in `.gnu_debuglink` next to the file, in `.debug` next to it, and under
//! `/usr/lib/debug`. Last, for processes in containers, comes the build-id where pmdb runs. A file is used only if it
//! has the same build-id, or the checksum in `.gnu_debuglink`. Places without a matching file are checked again after
//! some time, because packages may be installed.

use super::elf::{BoundedFile, Elf, ElfFile, FileRange, SymbolTable, TOO_LARGE, build_id_digits, expand_xz};
use super::expanded::{ExpandedBytes, ExpandedMemory};
use super::{NoSeparate, NoSymbols, described};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::Name;
use crate::process::{self, InMemory, Modules, ReadAt};
use flate2::Crc;
use object::read::Bytes;
use object::{Endianness, U32};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of `.gnu_debugdata`, compressed or not: a browser's has some megabytes.
const LARGEST_MINI: u64 = 256 << 20;
/// The longest decompression. Ctrl-C ends it sooner.
const LONGEST_EXPANSION: Duration = Duration::from_secs(60);

/// How long pmdb waits before it searches for missing debug files again. A search needs some dozen system calls a
/// module, which a loop in a command file would otherwise need in each iteration.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// A module's files, and the symbol tables in them.
pub(super) struct Sources {
    /// The mapped file, or an image of it in memory.
    pub(super) image: ElfFile,
    /// The candidates for the separate debug file.
    separate: Candidates,
    /// When the debug file was last searched.
    last_search: Mutex<Instant>,
    /// `.gnu_debugdata`, a small ELF file in the image, if there is no better table; or why it is not read.
    mini: Result<Option<(ElfFile, ExpandedBytes)>, NoSymbols>,
    /// The functions that the debug information describes, as an ELF file, if no file has a full table.
    described: Option<(ElfFile, ExpandedBytes)>,
    /// The symbol tables that are searched, the fullest first.
    tables: Vec<(ModulePart, usize)>,
    /// Whether the first table lists local symbols.
    lists_locals: OnceLock<bool>,
    /// For each section of the separate debug file, its number in the image.
    section_numbers: Vec<Option<u16>>,
}

/// One of the files of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ModulePart {
    Image,
    Separate,
    Mini,
    Described,
}

impl Sources {
    /// Returns why the files have no symbol table.
    pub(super) fn no_table(&self) -> NoSymbols {
        if self.image.file.has_sections() { NoSymbols::Stripped } else { NoSymbols::NotInCore }
    }

    /// Collects the files. Whether `separate` belongs to `image` is checked at once only if its table is needed. Fails
    /// if that check, or a decompression, is interrupted.
    pub(super) fn new(image: ElfFile, separate: Candidates, expanded: &ExpandedMemory) -> Result<Sources, NoSymbols> {
        let is_full = |source: &ElfFile| source.elf.has_full_table();
        let has_table = is_full(&image)
            || match separate.find_separate() {
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
            last_search: Mutex::new(Instant::now()),
            mini,
            described: None,
            tables: Vec::new(),
            lists_locals: OnceLock::new(),
            section_numbers: Vec::new(),
        };
        if !has_table && !matches!(sources.mini, Ok(Some(_))) {
            let mut budget = sources.budget().within(LONGEST_EXPANSION);
            let debug = sources.debug_source().ok().map(|(source, _)| source);
            sources.described =
                match debug.map(|debug| described::table_of(debug, &sources.image.elf, expanded, &mut budget)) {
                    Some(Err(NoSymbols::Interrupted)) => return Err(NoSymbols::Interrupted),
                    described => described.and_then(Result::ok).flatten(),
                };
        }
        if !is_full(&sources.image) {
            for origin in [ModulePart::Separate, ModulePart::Mini, ModulePart::Described] {
                let Some(source) = sources.source(origin) else {
                    continue;
                };
                let full = source.elf.tables.iter().position(|table| table.is_full);
                if let Some(number) = full {
                    sources.section_numbers = renumber_sections(&source.elf, &sources.image.elf);
                    sources.tables.push((origin, number));
                    break;
                }
            }
        }
        let own = 0..sources.image.elf.tables.len();
        sources.tables.extend(own.map(|number| (ModulePart::Image, number)));
        Ok(sources)
    }

    /// Makes the sources of an image alone.
    #[cfg(test)]
    pub(super) fn without_separate(image: ElfFile) -> Sources {
        let sources = Sources::new(
            image,
            Candidates::none(NoSeparate::NotFound, &Budget::unlimited()),
            &ExpandedMemory::default(),
        );
        sources.unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Returns whether decompressed tables of the module are in memory.
    pub(super) fn is_expanded(&self) -> bool {
        matches!(self.mini, Ok(Some(_))) || self.described.is_some()
    }

    /// Returns why `.gnu_debugdata` is not used though there is no better table. A damaged or too large one counts as
    /// missing.
    pub(super) fn no_debugdata(&self) -> Option<&NoSymbols> {
        self.mini.as_ref().err()
    }

    /// Returns whether `.gnu_debugdata` is not used because memory was short, which may change.
    pub(super) fn lacks_room(&self) -> bool {
        matches!(self.mini, Err(NoSymbols::NoRoom))
    }

    /// Returns the budget of a query.
    pub(super) fn budget(&self) -> Budget {
        self.separate.budget()
    }

    /// Returns whether no file has changed since it was opened, and no debug file was installed.
    pub(super) fn are_unchanged(&self, modules: &Modules, now: Instant) -> bool {
        self.image.file.is_unchanged()
            && self.separate.are_unchanged()
            && (!self.looks_again(now) || self.separate.are_all(modules))
    }

    /// Returns whether it is time to search for new debug files.
    fn looks_again(&self, now: Instant) -> bool {
        let mut looked = self.last_search.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = now.saturating_duration_since(*looked) >= BETWEEN_LOOKS;
        if is_time {
            *looked = now;
        }
        is_time
    }

    /// Returns the separate debug file of the image. The first call may need a pass over the file.
    pub(super) fn separate(&self) -> Result<&Separate, NoSeparate> {
        self.separate.find_separate()
    }

    /// Returns the symbol tables in the order of the search.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&ElfFile, &SymbolTable)> {
        self.tables.iter().filter_map(|&place| self.table_of(place))
    }

    /// Returns the symbol tables in the order of the search, each with its place in it.
    pub(super) fn numbered_tables(&self) -> impl Iterator<Item = (u8, (&ElfFile, &SymbolTable))> {
        (0..).zip(self.tables())
    }

    /// Returns a symbol table by its place in the order of the search.
    pub(super) fn table(&self, number: u8) -> Option<(&ElfFile, &SymbolTable)> {
        self.table_of(*self.tables.get(usize::from(number))?)
    }

    /// Returns the number in the image of a symbol's section; without sections in the image, the number of the segment
    /// of its address.
    pub(super) fn section_in_image(&self, table: u8, section: u16, address: u64) -> Option<u16> {
        if self.image.elf.sections.is_empty() {
            return u16::try_from(self.image.elf.section_at(address)?).ok();
        }
        match self.tables.get(usize::from(table))? {
            (ModulePart::Image, _) => Some(section),
            _ => *self.section_numbers.get(usize::from(section))?,
        }
    }

    /// Returns whether the tables list all symbols in a section of the image, including static ones: `strip` leaves
    /// only those that other files use, and `.gnu_debugdata` only adds functions.
    pub(super) fn lists_all(&self, section: u32) -> bool {
        match self.answers() {
            Some(NamesFrom::Itself | NamesFrom::DebugFile) => *self.lists_locals.get_or_init(|| {
                let table = self.tables.first().and_then(|&part| self.table_of(part));
                table.is_none_or(|(source, table)| source.elf.lists_locals(&source.file, table))
            }),
            Some(NamesFrom::DebugData) => self.image.elf.is_code(section),
            // Debug information mostly does not describe functions in assembler.
            Some(NamesFrom::DebugInformation | NamesFrom::DynamicTable) | None => false,
        }
    }

    /// Returns the file with the debug information (DWARF), and its path if it is not the image.
    pub(super) fn debug_source(&self) -> Result<(&ElfFile, Option<&Name>), NoSymbols> {
        if self.image.has_section(b".debug_info") {
            return Ok((&self.image, None));
        }
        match self.separate() {
            Ok(separate) => Ok((&separate.source, Some(&separate.path))),
            Err(reason) => Err(reason.given_up().unwrap_or(NoSymbols::NoDebugInformation(reason))),
        }
    }

    fn table_of(&self, (origin, number): (ModulePart, usize)) -> Option<(&ElfFile, &SymbolTable)> {
        let source = self.source(origin)?;
        Some((source, source.elf.tables.get(number)?))
    }

    fn source(&self, origin: ModulePart) -> Option<&ElfFile> {
        match origin {
            ModulePart::Image => Some(&self.image),
            ModulePart::Separate => self.separate().ok().map(|one| &one.source),
            ModulePart::Mini => self.mini.as_ref().ok()?.as_ref().map(|(mini, _)| mini),
            ModulePart::Described => self.described.as_ref().map(|(described, _)| described),
        }
    }

    /// Returns the file that has the names of the module; `None` if none has.
    pub(super) fn answers(&self) -> Option<NamesFrom> {
        let &(origin, number) = self.tables.first()?;
        let (_, table) = self.table_of((origin, number))?;
        Some(match origin {
            ModulePart::Image if table.is_full => NamesFrom::Itself,
            ModulePart::Image => NamesFrom::DynamicTable,
            ModulePart::Separate => NamesFrom::DebugFile,
            ModulePart::Mini => NamesFrom::DebugData,
            ModulePart::Described => NamesFrom::DebugInformation,
        })
    }
}

/// The file that has the names of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamesFrom {
    /// The mapped file.
    Itself,
    /// A separate debug file.
    DebugFile,
    /// `.gnu_debugdata`, compressed in the mapped file.
    DebugData,
    /// The functions that debug information describes, because the symbol table was stripped.
    DebugInformation,
    /// The mapped file, but only with its exported and imported symbols.
    DynamicTable,
}

/// Decompresses the small ELF file in `.gnu_debugdata`, as Fedora adds it: a table of the functions that `.dynsym`
/// lacks.
fn mini(
    image: &ElfFile,
    expanded: &ExpandedMemory,
    budget: &mut Budget,
) -> Result<Option<(ElfFile, ExpandedBytes)>, NoSymbols> {
    let Some(bytes) = image.section(b".gnu_debugdata", LARGEST_MINI, budget)? else {
        return Ok(None);
    };
    let left = expanded.bytes_left();
    let bytes = expand_xz(&bytes, LARGEST_MINI.min(left), budget)?;
    let bytes = bytes.ok_or(if left < LARGEST_MINI { NoSymbols::NoRoom } else { TOO_LARGE })?;
    let kept = expanded.keep(bytes.len() as u64);
    let source = ElfFile::read(BoundedFile::new(Box::new(InMemory::file(bytes))), budget)?;
    Ok(Some((source, kept)))
}

/// Returns for each section of `other` the number of the section of `image` at the same address.
fn renumber_sections(other: &Elf, image: &Elf) -> Vec<Option<u16>> {
    let of = |section: &super::elf::Section| {
        let number = section.is_loaded().then(|| image.section_at(section.address))??;
        u16::try_from(number).ok()
    };
    other.sections.iter().map(of).collect()
}

/// The directory in which distributions keep debug files.
const FOLDER: &[u8] = b"/usr/lib/debug";
/// The most bytes of `.gnu_debuglink`, a file name and a checksum.
const LONGEST_LINK: u64 = 4096;
/// The longest name of a file (NAME_MAX).
const LONGEST_NAME: usize = 255;
/// The most bytes that are read for checksums of one module: each needs a pass over a whole file. Larger debug files
/// mostly have a build-id.
const MOST_CHECKED: u64 = 1 << 30;

/// A separate debug file that belongs to a module.
pub(super) struct Separate {
    /// The path of the file in the target's root.
    pub(super) path: Name,
    /// The index of the place where the file was found.
    place: usize,
    pub(super) source: ElfFile,
    /// Whether the file has the module's build-id, so that nothing else must be checked.
    has_build_id: bool,
}

/// The files that may be the separate debug file of a module. The choice may need a checksum, so it is made by the
/// first query.
pub(super) struct Candidates {
    files: Vec<Separate>,
    /// The places that were searched, with the result of each.
    places: Vec<(DebugFileLocation, PlaceState)>,
    /// The checksum in `.gnu_debuglink`, if there is no build-id.
    checksum: Option<u32>,
    /// Why there is no debug file, if no candidate is the right one.
    refusal: NoSeparate,
    /// The index in `files` of the right one.
    chosen: OnceLock<Result<usize, NoSeparate>>,
    budget: Budget,
}

impl Candidates {
    /// Makes an empty list, with the reason.
    pub(super) fn none(refusal: NoSeparate, budget: &Budget) -> Candidates {
        Candidates {
            files: Vec::new(),
            places: Vec::new(),
            checksum: None,
            chosen: OnceLock::from(Err(refusal.clone())),
            refusal,
            budget: budget.clone(),
        }
    }

    /// Returns the file that belongs to the module. The end of the budget interrupts a long search, which can be
    /// repeated.
    pub(super) fn find_separate(&self) -> Result<&Separate, NoSeparate> {
        let number = match self.chosen.get() {
            Some(chosen) => chosen.clone(),
            None => match self.choose() {
                Err(reason) if reason.given_up().is_some() => Err(reason),
                chosen => self.chosen.get_or_init(|| chosen).clone(),
            },
        }?;
        self.files.get(number).ok_or(NoSeparate::NotFound)
    }

    fn choose(&self) -> Result<usize, NoSeparate> {
        let mut refusal = self.refusal.clone();
        let mut room = MOST_CHECKED;
        for (number, one) in self.files.iter().enumerate() {
            let file = &one.source.file;
            let Some(wanted) = self.checksum.filter(|_| !one.has_build_id) else {
                return Ok(number);
            };
            let path = || one.path.clone();
            room = match room.checked_sub(file.length()) {
                Some(rest) => rest,
                None => {
                    refusal = NoSeparate::TooLarge { path: path() };
                    continue;
                }
            };
            match checksum(file, &mut self.budget())? {
                Some(checksum) if checksum == wanted => return Ok(number),
                _ => refusal = NoSeparate::OfAnotherBuild { path: path() },
            }
        }
        Err(refusal)
    }

    /// Returns the budget of a query.
    pub(super) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Returns whether the files found are unchanged since they were opened.
    pub(super) fn are_unchanged(&self) -> bool {
        let mut files = self.files.iter();
        files.all(|one| one.source.file.is_unchanged())
    }

    /// Returns whether the other places have no new file.
    pub(super) fn are_all(&self, modules: &Modules) -> bool {
        // The chosen file remains valid, even if it is renamed.
        let chosen = match self.chosen.get() {
            Some(Ok(number)) => self.files.get(*number).map(|one| one.place),
            _ => None,
        };
        let places = self.places.iter().enumerate();
        let mut others = places.filter(|(number, _)| Some(*number) != chosen);
        others.all(|(_, (place, found))| PlaceState::of(&place.open(modules)) == *found)
    }
}

/// A place where a debug file may be.
enum DebugFileLocation {
    /// In the root directory of the target.
    Theirs(Vec<u8>),
    /// In the root directory of pmdb.
    Ours(Vec<u8>),
}

impl DebugFileLocation {
    fn path(&self) -> Name {
        let (DebugFileLocation::Theirs(path) | DebugFileLocation::Ours(path)) = self;
        Name::new(&**path)
    }

    fn open(&self, modules: &Modules) -> OpenResult {
        match self {
            DebugFileLocation::Theirs(path) => modules.at_path(path),
            DebugFileLocation::Ours(path) => modules.at_own_path(path),
        }
    }
}

type OpenResult = process::Result<Option<Box<dyn ReadAt>>>;

/// The result of a search at a place.
#[derive(PartialEq, Eq)]
enum PlaceState {
    Nothing,
    /// A file that was not opened.
    Refused,
    BoundedFile([u64; 4]),
}

impl PlaceState {
    fn of(opened: &OpenResult) -> PlaceState {
        match opened {
            Ok(None) => PlaceState::Nothing,
            Ok(Some(file)) => PlaceState::BoundedFile(file.fingerprint()),
            Err(_) => PlaceState::Refused,
        }
    }
}

/// Finds the files that may be the separate debug file of `image`, whose path is `path`.
///
/// # Errors
/// Fails if the budget is over before all places were searched.
pub(super) fn find(
    modules: &Modules,
    path: &Name,
    image: &ElfFile,
    budget: &Budget,
) -> Result<Candidates, OutOfBudget> {
    if image.elf.has_full_table() && image.has_section(b".debug_info") {
        return Ok(Candidates::none(NoSeparate::NotNeeded, budget));
    }
    let id = &image.elf.build_id;
    let mut searching = budget.clone();
    let link = DebugLink::of(image, &mut searching)?;
    if id.is_none() && link.is_none() {
        return Ok(Candidates::none(NoSeparate::NotNamed, budget));
    }
    let ids = || id.iter().map(|id| place_of(id));
    let links = link.iter().flat_map(|link| link.places(path));
    let places = ids().map(|place| (DebugFileLocation::Theirs(place), true));
    let places = places.chain(links.map(|place| (DebugFileLocation::Theirs(place), false)));
    let places = places.chain(ids().map(|place| (DebugFileLocation::Ours(place), true)));
    let mut candidates = Candidates {
        files: Vec::new(),
        places: Vec::new(),
        checksum: link.as_ref().map(|link| link.checksum),
        refusal: NoSeparate::NotFound,
        chosen: OnceLock::new(),
        budget: budget.clone(),
    };
    for (place, is_by_id) in places {
        searching.look()?;
        let opened = place.open(modules);
        let (number, path) = (candidates.places.len(), place.path());
        candidates.places.push((place, PlaceState::of(&opened)));
        let source = match opened {
            Ok(bytes) => as_elf(bytes, &mut searching)?,
            Err(error) => {
                candidates.refusal = error.into();
                continue;
            }
        };
        let Some(source) = source else {
            continue;
        };
        let (has_build_id, may_be) = match (id, &source.elf.build_id) {
            (Some(id), Some(other)) => (true, id == other),
            _ => (false, !is_by_id),
        };
        if !is_like(image, &source) || !may_be {
            candidates.refusal = NoSeparate::OfAnotherBuild { path };
            continue;
        }
        candidates.files.push(Separate { path, place: number, source, has_build_id });
        if has_build_id {
            break;
        }
    }
    Ok(candidates)
}

/// Returns the file if it is an ELF file, as all debug files are.
pub(super) fn as_elf(bytes: Option<Box<dyn ReadAt>>, budget: &mut Budget) -> Result<Option<ElfFile>, OutOfBudget> {
    let source = bytes.and_then(|bytes| ElfFile::read(BoundedFile::new(bytes), budget).ok());
    budget.check().map(|()| source)
}

/// Returns the path of the debug file with a build-id.
pub(super) fn place_of(id: &[u8]) -> Vec<u8> {
    let digits = build_id_digits(id);
    let (folder, name) = digits.split_at_checked(2).unwrap_or((&digits, ""));
    [FOLDER, b"/.build-id/", folder.as_bytes(), b"/", name.as_bytes(), b".debug"].concat()
}

/// Returns whether `other` may be a debug file of `image`, and is not the same file.
fn is_like(image: &ElfFile, other: &ElfFile) -> bool {
    image.elf.is_64 == other.elf.is_64
        && image.elf.machine == other.elf.machine
        && image.elf.endian == other.elf.endian
        && !image.file.is_same_as(&other.file)
}

/// The contents of `.gnu_debuglink`.
struct DebugLink {
    name: Vec<u8>,
    checksum: u32,
}

impl DebugLink {
    fn of(image: &ElfFile, budget: &mut Budget) -> Result<Option<DebugLink>, OutOfBudget> {
        let bytes = image.section(b".gnu_debuglink", LONGEST_LINK, budget).ok().flatten();
        budget.check()?;
        Ok(bytes.and_then(|bytes| DebugLink::parse(&bytes, image.elf.endian)))
    }

    /// Decodes a name, a zero byte, zeros up to a multiple of four, and the checksum of the file.
    fn parse(bytes: &[u8], endian: Endianness) -> Option<DebugLink> {
        let name = Bytes(bytes).read_string_at(0).ok()?;
        let checksum: &U32<Endianness> = Bytes(bytes).read_at((name.len() + 1).next_multiple_of(4)).ok()?;
        // The name must be a file name, not a path: the directories are fixed.
        let is_a_name =
            !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(&b'/') && name != b"." && name != b"..";
        is_a_name.then(|| DebugLink { name: name.to_vec(), checksum: checksum.get(endian) })
    }

    /// Returns the places for the debug file of a file with this path.
    fn places(&self, path: &Name) -> Vec<Vec<u8>> {
        let path = path.as_bytes();
        let Some(end) = memchr::memrchr(b'/', path) else {
            return Vec::new();
        };
        let folder = path.get(..=end).unwrap_or_default();
        vec![
            [folder, &self.name].concat(),
            [folder, b".debug/", &self.name].concat(),
            [FOLDER, folder, &self.name].concat(),
        ]
    }
}

/// Computes the checksum of a whole file, as in `.gnu_debuglink`; `None` if it cannot be read.
fn checksum(file: &BoundedFile, budget: &mut Budget) -> Result<Option<u32>, NoSeparate> {
    let mut crc = Crc::new();
    let whole = FileRange { offset: 0, size: file.length() };
    let mut pass = file.pass(whole, 1, "contents");
    let mut add_next = || Ok(pass.next(budget)?.map(|bytes| crc.update(bytes)));
    let passed = loop {
        match add_next() {
            Ok(Some(())) => {}
            ended => break ended,
        }
    };
    match passed {
        Err(NoSymbols::Interrupted) => Err(NoSeparate::Interrupted),
        Err(NoSymbols::TooCostly) => Err(NoSeparate::TooCostly),
        passed => Ok(passed.ok().map(|_| crc.sum())),
    }
}
