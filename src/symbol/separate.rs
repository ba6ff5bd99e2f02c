//! Separate debug files: where they are, and whether they belong to this program or library.
//!
//! The search is gdb's, in the target's own root: by build-id under `/usr/lib/debug/.build-id`, then by the name in
//! `.gnu_debuglink` beside the file, in `.debug` beside it, and under `/usr/lib/debug`; and last, for processes in
//! containers, by build-id where pmdb itself runs. A file is used only if it has the same build-id, or the checksum in
//! `.gnu_debuglink`. Places without a matching file are checked again now and then, as packages may be installed
//! meanwhile.

use super::elf::{BoundedFile, ElfFile, FileRange, build_id_digits};
use super::{NoSeparate, NoSymbols};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::Name;
use crate::process::{self, Modules, ReadAt};
use flate2::Crc;
use object::read::Bytes;
use object::{Endianness, U32};
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Where distributions keep them.
const FOLDER: &[u8] = b"/usr/lib/debug";
/// `.gnu_debuglink` is a file name and a checksum.
const LONGEST_LINK: u64 = 4096;
/// Longer names are not those of a file (NAME_MAX).
const LONGEST_NAME: usize = 255;
/// The most bytes that are read for checksums of one module: each takes a pass over a whole file. Larger debug files
/// have a build-id these days.
const MOST_CHECKED: u64 = 1 << 30;

/// A separate debug file that belongs to a module.
pub(super) struct Separate {
    /// Where it is, in the target's root.
    pub(super) path: Name,
    /// The index of the place where it was found.
    place: usize,
    pub(super) source: ElfFile,
    /// Whether it has the module's build-id: then nothing is left to check.
    has_build_id: bool,
}

/// The files that may be the separate debug file of a module. The choice may take a checksum, so it is made on the
/// first query.
pub(super) struct Candidates {
    files: Vec<Separate>,
    /// The places that were searched, and what was found there.
    places: Vec<(DebugFileLocation, PlaceState)>,
    /// The checksum in `.gnu_debuglink`, if there is no build-id.
    checksum: Option<u32>,
    /// Why, if it is none of them.
    refusal: NoSeparate,
    /// Which of `files` it is.
    chosen: OnceLock<Result<usize, NoSeparate>>,
    budget: Budget,
}

impl Candidates {
    /// None, and why.
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

    /// The one that belongs to the module. The end of the budget ends a long search, which can then be repeated.
    pub(super) fn chosen(&self) -> Result<&Separate, NoSeparate> {
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

    /// The budget of a query.
    pub(super) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Whether the files found are unchanged since they were opened.
    pub(super) fn are_unchanged(&self) -> bool {
        let mut files = self.files.iter();
        files.all(|one| one.source.file.is_unchanged())
    }

    /// Whether the other places have no new file.
    pub(super) fn are_all(&self, modules: &Modules) -> bool {
        // The chosen file stays valid, even if it is renamed.
        let chosen = match self.chosen.get() {
            Some(Ok(number)) => self.files.get(*number).map(|one| one.place),
            _ => None,
        };
        let places = self.places.iter().enumerate();
        let mut others = places.filter(|(number, _)| Some(*number) != chosen);
        others.all(|(_, (place, found))| PlaceState::of(&place.open(modules)) == *found)
    }
}

/// Where a debug file may be.
enum DebugFileLocation {
    /// In the target's root.
    Theirs(Vec<u8>),
    /// Where pmdb runs.
    Ours(Vec<u8>),
}

impl DebugFileLocation {
    fn path(&self) -> Name {
        let (DebugFileLocation::Theirs(path) | DebugFileLocation::Ours(path)) = self;
        Name::new(&**path)
    }

    fn open(&self, modules: &Modules) -> Opened {
        match self {
            DebugFileLocation::Theirs(path) => modules.at_path(path),
            DebugFileLocation::Ours(path) => modules.at_own_path(path),
        }
    }
}

type Opened = process::Result<Option<Box<dyn ReadAt>>>;

/// What was found at a place.
#[derive(PartialEq, Eq)]
enum PlaceState {
    Nothing,
    /// A file that is not opened.
    Refused,
    BoundedFile([u64; 4]),
}

impl PlaceState {
    fn of(opened: &Opened) -> PlaceState {
        match opened {
            Ok(None) => PlaceState::Nothing,
            Ok(Some(file)) => PlaceState::BoundedFile(file.fingerprint()),
            Err(_) => PlaceState::Refused,
        }
    }
}

/// The files that may be the separate debug file of `image`, whose path is `path`.
///
/// # Errors
/// If the budget was over before all places were searched.
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
    let mut found = Candidates {
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
        let (number, path) = (found.places.len(), place.path());
        found.places.push((place, PlaceState::of(&opened)));
        let source = match opened {
            Ok(bytes) => as_elf(bytes, &mut searching)?,
            Err(error) => {
                found.refusal = error.into();
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
            found.refusal = NoSeparate::OfAnotherBuild { path };
            continue;
        }
        found.files.push(Separate { path, place: number, source, has_build_id });
        if has_build_id {
            break;
        }
    }
    Ok(found)
}

/// The file, if it is an ELF file: others are no debug files.
pub(super) fn as_elf(bytes: Option<Box<dyn ReadAt>>, budget: &mut Budget) -> Result<Option<ElfFile>, OutOfBudget> {
    let source = bytes.and_then(|bytes| ElfFile::read(BoundedFile::new(bytes), budget).ok());
    budget.check().map(|()| source)
}

/// The path of the debug file of a build.
pub(super) fn place_of(id: &[u8]) -> Vec<u8> {
    let digits = build_id_digits(id);
    let (folder, name) = digits.split_at_checked(2).unwrap_or((&digits, ""));
    [FOLDER, b"/.build-id/", folder.as_bytes(), b"/", name.as_bytes(), b".debug"].concat()
}

/// Whether `other` could have been stripped from `image`, and is not the same file.
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

    /// A name, a zero byte, zeros up to a multiple of four, and the checksum of the file.
    fn parse(bytes: &[u8], endian: Endianness) -> Option<DebugLink> {
        let name = Bytes(bytes).read_string_at(0).ok()?;
        let checksum: &U32<Endianness> = Bytes(bytes).read_at((name.len() + 1).next_multiple_of(4)).ok()?;
        // It must be a file name, not a path: the folders are fixed.
        let is_a_name =
            !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(&b'/') && name != b"." && name != b"..";
        is_a_name.then(|| DebugLink { name: name.to_vec(), checksum: checksum.get(endian) })
    }

    /// Where it may be, for a file called `path`.
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

/// The checksum of a whole file, as `.gnu_debuglink` has it; `None` if it cannot be read.
fn checksum(file: &BoundedFile, budget: &mut Budget) -> Result<Option<u32>, NoSeparate> {
    let mut crc = Crc::new();
    let whole = FileRange { offset: 0, size: file.length() };
    let passed = file.pass::<u8>(whole, "contents", budget, &mut |bytes, _| {
        crc.update(bytes);
        Ok(ControlFlow::Continue(()))
    });
    match passed {
        Err(NoSymbols::Interrupted) => Err(NoSeparate::Interrupted),
        Err(NoSymbols::TooCostly) => Err(NoSeparate::TooCostly),
        passed => Ok(passed.ok().map(|_| crc.sum())),
    }
}
