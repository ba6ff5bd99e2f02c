//! Debug information in additional files, which may be installed while pmdb runs.
//!
//! - Shared (`dwz -m`): several modules have one common file, mostly with names of inlined functions. Debug packages of
//!   Debian and Fedora have such files.
//! - Split: the program has only the line table of a unit. The description of its functions is in a separate file
//!   (`.dwo`), or in a package for all units (`.dwp`).

use super::sections::{PackageSections, SectionReader, Sections};
use super::units::{Opener, Units};
use super::{NoLines, path};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::Modules;
use crate::symbol::elf::{BoundedFile, ElfFile};
use crate::symbol::files::{self, as_elf};
use crate::symbol::reason::NoPart;
use gimli::{Dwarf, DwoId, SectionId, Unit};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A value that each query searches until it is found; then it is kept.
pub(super) struct UntilFound<T>(OnceLock<T>);

impl<T> Default for UntilFound<T> {
    fn default() -> Self {
        UntilFound(OnceLock::new())
    }
}

impl<T> UntilFound<T> {
    /// Returns the value: the kept one, or the one that `read` finds.
    pub(super) fn get(&self, read: impl FnOnce() -> Result<Option<T>, NoLines>) -> Result<Option<&T>, NoLines> {
        match self.if_found() {
            None => Ok(read()?.map(|found| self.0.get_or_init(|| found))),
            known => Ok(known),
        }
    }

    /// Returns the value, if it was found before.
    pub(super) fn if_found(&self) -> Option<&T> {
        self.0.get()
    }
}

/// The most bytes of `.gnu_debugaltlink`, a path and a build-id.
const LONGEST_LINK: u64 = 8192;

/// The debug information that several modules share.
pub(super) struct SharedFile {
    pub(super) sections: Sections,
    pub(super) units: Units,
}

/// A file's reference to shared debug information, and the information once it is found.
pub(super) struct SharedLink {
    link: AltLink,
    /// The path of the file with the reference.
    path: Name,
    found: UntilFound<SharedFile>,
}

impl SharedLink {
    /// Returns the reference in `source`, whose path is `path`; `None` if it shares nothing.
    pub(super) fn of(source: &ElfFile, path: &Name, budget: &mut Budget) -> Result<Option<SharedLink>, NoLines> {
        let link = AltLink::of(source, budget);
        budget.check()?;
        Ok(link.map(|link| SharedLink { link, path: path.clone(), found: UntilFound::default() }))
    }

    /// Returns the shared debug information, read on the first call.
    pub(super) fn get(&self, files: &Modules, room: u64, budget: &mut Budget) -> Result<&SharedFile, NoLines> {
        let shared = self.found.get(|| {
            let file = self.link.find(&self.path, files, budget)?;
            let sections = Sections::read_within(&file, room, |id| Some(id.name()), budget)?;
            let Some(sections) = sections else {
                return Ok(None);
            };
            let units = Units::list(&sections.dwarf(), budget)?;
            Ok(Some(SharedFile { sections, units }))
        })?;
        shared.ok_or_else(|| self.link.no_shared_lines(&self.path, NoPart::NotFound))
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn size(&self) -> u64 {
        let found = self.found.if_found();
        found.map_or(0, |one| one.sections.size + one.units.size())
    }
}

/// The contents of `.gnu_debugaltlink`.
struct AltLink {
    path: Vec<u8>,
    build_id: Vec<u8>,
}

impl AltLink {
    fn of(source: &ElfFile, budget: &mut Budget) -> Option<AltLink> {
        let bytes = source.section(b".gnu_debugaltlink", LONGEST_LINK, budget).ok()??;
        let mut id = object::read::Bytes(&bytes);
        let path = id.read_string().ok()?;
        (!path.is_empty() && !id.is_empty()).then(|| AltLink { path: path.to_vec(), build_id: id.0.to_vec() })
    }

    /// Opens the file at its path relative to `path`, or by its build-id. It is searched in the target's root, then in
    /// that of pmdb, where debug files for a program in another root are often installed.
    fn find(&self, path: &Name, files: &Modules, budget: &mut Budget) -> Result<ElfFile, NoLines> {
        let places = [self.place(path), files::place_of(&self.build_id)];
        let theirs = places.iter().map(|place| files.at_path(place));
        let ours = places.iter().map(|place| files.at_own_path(place));
        let mut refusal = NoPart::NotFound;
        for opened in theirs.chain(ours) {
            budget.look()?;
            let opened = match opened {
                Ok(bytes) => Ok(as_elf(bytes, budget)?),
                Err(error) => Err(error),
            };
            match opened {
                Ok(Some(found)) if found.elf.build_id.as_ref() == Some(&self.build_id) => {
                    return Ok(found);
                }
                Ok(Some(_)) => refusal = NoPart::OfAnotherBuild,
                Err(error) if matches!(refusal, NoPart::NotFound) => refusal = error.into(),
                Ok(None) | Err(_) => {}
            }
        }
        Err(self.no_shared_lines(path, refusal))
    }

    /// Returns the path where the file should be: relative paths begin in the directory of `path`.
    fn place(&self, path: &Name) -> Vec<u8> {
        let folder = memchr::memrchr(b'/', path.as_bytes()).map_or(0, |end| end + 1);
        let folder = path.as_bytes().get(..folder);
        let mut place = folder.unwrap_or_default().to_vec();
        super::path::push(&mut place, &self.path);
        place
    }

    fn no_shared_lines(&self, path: &Name, why: NoPart) -> NoLines {
        NoLines::Shared { file: Name::new(self.place(path)), why }
    }
}

/// The most bytes of `.dwo` files for one module: each has some tens or hundreds of kilobytes.
const MOST_KEPT: u64 = 64 << 20;

/// Returns the package for the file at `path`, if there is one. A look-up of a unit checks that it belongs to the
/// program.
pub(super) fn package_of(
    path: &Name,
    files: &Modules,
    room: u64,
    budget: &mut Budget,
) -> Result<Option<PackageSections>, NoLines> {
    let path = [path.as_bytes(), b".dwp"].concat();
    match as_elf(files.at_path(&path).unwrap_or_default(), budget)? {
        Some(source) => PackageSections::read_within(&source, room, budget),
        None => Ok(None),
    }
}

/// The split part of a unit.
pub(super) struct Split<'a> {
    pub(super) dwarf: Dwarf<SectionReader<'a>>,
    pub(super) unit: Unit<SectionReader<'a>>,
}

impl<'a> Split<'a> {
    /// Returns the split part of `skeleton` from a package; `None` if the package lacks it.
    pub(super) fn in_package(
        package: &'a PackageSections,
        dwarf: &Dwarf<SectionReader<'a>>,
        skeleton: &Unit<SectionReader<'a>>,
        id: DwoId,
        budget: &mut Budget,
    ) -> Result<Option<Split<'a>>, NoLines> {
        match package.package()?.find_cu(id, dwarf)? {
            Some(found) => Split::find(found, skeleton, id, budget),
            None => Ok(None),
        }
    }

    /// Returns the split part of `skeleton` from a separate file. Fails if the file lacks it.
    pub(super) fn in_object(
        object: &'a DwoFile,
        dwarf: &Dwarf<SectionReader<'a>>,
        skeleton: &Unit<SectionReader<'a>>,
        id: DwoId,
        budget: &mut Budget,
    ) -> Result<Split<'a>, NoLines> {
        let mut found = object.sections.dwarf();
        found.make_dwo(dwarf);
        Split::find(found, skeleton, id, budget)?
            .ok_or_else(|| NoLines::Split { file: object.path.clone(), why: NoPart::OfAnotherBuild })
    }

    fn find(
        dwarf: Dwarf<SectionReader<'a>>,
        skeleton: &Unit<SectionReader<'a>>,
        id: DwoId,
        budget: &mut Budget,
    ) -> Result<Option<Split<'a>>, NoLines> {
        let mut headers = dwarf.units();
        let mut opener = Opener::default();
        while let Some(header) = headers.next()? {
            budget.look()?;
            let mut unit = opener.open(&dwarf, header)?;
            if unit.dwo_id == Some(id) {
                unit.copy_relocated_attributes(skeleton);
                return Ok(Some(Split { dwarf, unit }));
            }
        }
        Ok(None)
    }
}

/// A file that describes the functions of a unit (`.dwo`).
pub(super) struct DwoFile {
    path: Name,
    /// The open file, to notice changes.
    file: BoundedFile,
    pub(super) sections: Sections,
}

impl DwoFile {
    /// Reads the file at `path`.
    pub(super) fn read(path: &Name, files: &Modules, room: u64, budget: &mut Budget) -> Result<DwoFile, NoLines> {
        let refused = |why| NoLines::Split { file: path.clone(), why };
        let found = files.at_path(path.as_bytes());
        let found = found.map_err(|error| refused(error.into()))?;
        let source = as_elf(found, budget)?.ok_or_else(|| refused(NoPart::NotFound))?;
        let sections = Sections::read_within(&source, room, SectionId::dwo_name, budget)?
            .ok_or_else(|| refused(NoPart::NotFound))?;
        Ok(DwoFile { path: path.clone(), file: source.file, sections })
    }
}

/// A cache of such files, limited in size, with the last used at the end.
#[derive(Default)]
pub(super) struct DwoCache(Mutex<VecDeque<Arc<DwoFile>>>);

impl DwoCache {
    /// Returns the file at `path`, if it is cached and unchanged.
    pub(super) fn get(&self, path: &Name) -> Option<Arc<DwoFile>> {
        let mut kept = self.lock();
        let number = kept.iter().position(|one| one.path == *path)?;
        let object = kept.remove(number)?;
        if !object.file.is_unchanged() {
            return None;
        }
        kept.push_back(Arc::clone(&object));
        Some(object)
    }

    /// Caches a file that has the wanted unit. A wrong one is not cached, because it may be replaced later.
    pub(super) fn keep(&self, object: &Arc<DwoFile>) {
        let mut kept = self.lock();
        kept.retain(|one| one.path != object.path);
        kept.push_back(Arc::clone(object));
        let mut total = total(&kept);
        while total > MOST_KEPT
            && let Some(oldest) = kept.pop_front()
        {
            total = total.saturating_sub(oldest.sections.size);
        }
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn size(&self) -> u64 {
        total(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<DwoFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn total(kept: &VecDeque<Arc<DwoFile>>) -> u64 {
    kept.iter().map(|one| one.sections.size).sum()
}

/// Returns the path of the file that describes the functions of a split unit.
pub(super) fn path_of(dwarf: &Dwarf<SectionReader<'_>>, skeleton: &Unit<SectionReader<'_>>) -> Option<Name> {
    let name = skeleton.dwo_name().ok()??;
    let folder = skeleton.comp_dir.map(|folder| folder.slice().to_vec());
    let mut path = folder.unwrap_or_default();
    path::push(&mut path, path::text(dwarf, skeleton, name)?);
    Some(Name::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_searched_for_again() {
        let slot = UntilFound::default();
        let mut reads = 0;
        let mut ask = |there: Result<Option<u8>, NoLines>| {
            let found = slot.get(|| {
                reads += 1;
                there
            });
            (found.ok().flatten().copied(), reads)
        };
        assert_eq!(ask(Ok(None)), (None, 1));
        assert_eq!(ask(Err(NoLines::TooLarge)), (None, 2));
        assert_eq!(ask(Ok(Some(7))), (Some(7), 3));
        assert_eq!(ask(Ok(Some(8))), (Some(7), 3));
    }
}
