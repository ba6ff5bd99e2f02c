//! Split debug information: the program has only the line table of a unit. The description of its functions is in a
//! file of its own (`.dwo`), or in a package for all units (`.dwp`).

use super::NoLines;
use super::path;
use super::reason::NoPart;
use super::sections::{Bytes, PackageSections, Sections};
use super::units::Opener;
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::Modules;
use crate::symbol::elf::File;
use crate::symbol::separate::as_elf;
use gimli::{Dwarf, DwoId, SectionId, Unit};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of `.dwo` files for one module: each has some tens or hundreds of kilobytes.
const MOST_KEPT: u64 = 64 << 20;

/// The package for the file called `path`, if there is one. A look-up of a unit checks that it belongs to the program.
pub(super) fn package_of(
    path: &Name,
    files: &Modules,
    room: u64,
    budget: &mut Budget,
) -> Result<Option<PackageSections>, NoLines> {
    let path = [path.as_bytes(), b".dwp"].concat();
    match files.at_path(&path).map(as_elf) {
        Ok(Some(source)) => PackageSections::read_within(&source, room, budget),
        Ok(None) | Err(_) => Ok(None),
    }
}

/// The split part of a unit.
pub(super) struct Split<'a> {
    pub(super) dwarf: Dwarf<Bytes<'a>>,
    pub(super) unit: Unit<Bytes<'a>>,
}

impl<'a> Split<'a> {
    /// The split part of `skeleton`, from a package; `None` if the package lacks it.
    pub(super) fn in_package(
        package: &'a PackageSections,
        dwarf: &Dwarf<Bytes<'a>>,
        skeleton: &Unit<Bytes<'a>>,
        id: DwoId,
        budget: &mut Budget,
    ) -> Result<Option<Split<'a>>, NoLines> {
        match package.package()?.find_cu(id, dwarf)? {
            Some(found) => Split::find(found, skeleton, id, budget),
            None => Ok(None),
        }
    }

    /// The same, from a file of its own; an error if the file lacks it.
    pub(super) fn in_object(
        object: &'a Object,
        dwarf: &Dwarf<Bytes<'a>>,
        skeleton: &Unit<Bytes<'a>>,
        id: DwoId,
        budget: &mut Budget,
    ) -> Result<Split<'a>, NoLines> {
        let mut found = object.sections.dwarf();
        found.make_dwo(dwarf);
        Split::find(found, skeleton, id, budget)?
            .ok_or_else(|| NoLines::Split { file: object.path.clone(), why: NoPart::OfAnotherBuild })
    }

    fn find(
        dwarf: Dwarf<Bytes<'a>>,
        skeleton: &Unit<Bytes<'a>>,
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
pub(super) struct Object {
    path: Name,
    /// Kept to notice changes.
    file: File,
    pub(super) sections: Sections,
}

impl Object {
    /// Reads the file at `path`.
    pub(super) fn read(path: &Name, files: &Modules, room: u64, budget: &mut Budget) -> Result<Object, NoLines> {
        let refused = |why| NoLines::Split { file: path.clone(), why };
        let found = files.at_path(path.as_bytes());
        let found = found.map_err(|error| refused(error.into()))?;
        let source = as_elf(found).ok_or_else(|| refused(NoPart::NotFound))?;
        let sections = Sections::read_within(&source, room, SectionId::dwo_name, budget)?
            .ok_or_else(|| refused(NoPart::NotFound))?;
        Ok(Object { path: path.clone(), file: source.file, sections })
    }
}

/// A cache of these files, of limited size: the last used at the end.
#[derive(Default)]
pub(super) struct Objects(Mutex<VecDeque<Arc<Object>>>);

impl Objects {
    /// The file at `path`, if it is cached and unchanged.
    pub(super) fn get(&self, path: &Name) -> Option<Arc<Object>> {
        let mut kept = self.lock();
        let number = kept.iter().position(|one| one.path == *path)?;
        let object = kept.remove(number)?;
        if !object.file.is_unchanged() {
            return None;
        }
        kept.push_back(Arc::clone(&object));
        Some(object)
    }

    /// Caches a file that had the wanted unit: a wrong one may be replaced later.
    pub(super) fn keep(&self, object: &Arc<Object>) {
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

    /// Bytes of memory.
    pub(super) fn size(&self) -> u64 {
        total(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Object>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn total(kept: &VecDeque<Arc<Object>>) -> u64 {
    kept.iter().map(|one| one.sections.size).sum()
}

/// The path of the file that describes the functions of a split unit.
pub(super) fn path_of(dwarf: &Dwarf<Bytes<'_>>, skeleton: &Unit<Bytes<'_>>) -> Option<Name> {
    let name = skeleton.dwo_name().ok()??;
    let folder = skeleton.comp_dir.map(|folder| folder.slice().to_vec());
    let mut path = folder.unwrap_or_default();
    path::push(&mut path, path::text(dwarf, skeleton, name)?);
    Some(Name::new(path))
}
