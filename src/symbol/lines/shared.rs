//! Debug information that several modules share in one file (`dwz -m`): mostly names of inlined functions. Debian's and
//! Fedora's debug packages have such files.

use super::NoLines;
use super::reason::NoPart;
use super::sections::Sections;
use super::units::Units;
use super::until_found::UntilFound;
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::Modules;
use crate::symbol::elf::Source;
use crate::symbol::separate;
use object::read::Bytes;

/// `.gnu_debugaltlink` is a path and a build-id.
const LONGEST_LINK: u64 = 8192;

/// The debug information that several modules share.
pub(super) struct Shared {
    pub(super) sections: Sections,
    pub(super) units: Units,
}

/// A file's reference to shared debug information, and that, once it is found.
pub(super) struct Sharing {
    link: Link,
    /// The path of the file itself.
    path: Name,
    found: UntilFound<Shared>,
}

impl Sharing {
    /// The reference in `source`, whose path is `path`; `None` if it shares nothing.
    pub(super) fn of(source: &Source, path: &Name) -> Option<Sharing> {
        Some(Sharing { link: Link::of(source)?, path: path.clone(), found: UntilFound::default() })
    }

    /// The shared debug information, read on the first call.
    pub(super) fn get(&self, files: &Modules, room: u64, budget: &mut Budget) -> Result<&Shared, NoLines> {
        let found = self.found.get(|| {
            let found = self.link.find(&self.path, files)?;
            let sections = Sections::read_within(&found, room, |id| Some(id.name()), budget)?;
            let Some(sections) = sections else {
                return Ok(None);
            };
            let units = Units::list(&sections.dwarf(), budget)?;
            Ok(Some(Shared { sections, units }))
        })?;
        found.ok_or_else(|| self.link.refused(&self.path, NoPart::NotFound))
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> u64 {
        let found = self.found.known();
        found.map_or(0, |one| one.sections.size + one.units.size())
    }
}

/// The contents of `.gnu_debugaltlink`.
struct Link {
    path: Vec<u8>,
    build_id: Vec<u8>,
}

impl Link {
    fn of(source: &Source) -> Option<Link> {
        let bytes = source.section(b".gnu_debugaltlink", LONGEST_LINK).ok()??;
        let mut id = Bytes(&bytes);
        let path = id.read_string().ok()?;
        (!path.is_empty() && !id.is_empty()).then(|| Link { path: path.to_vec(), build_id: id.0.to_vec() })
    }

    /// Opens the file: at its path relative to `path`, or by its build-id; in the target's root, or else in this
    /// machine's, as debug files for a program in another root are often installed only there.
    fn find(&self, path: &Name, files: &Modules) -> Result<Source, NoLines> {
        let places = [self.place(path), separate::place_of(&self.build_id)];
        let theirs = places.iter().map(|place| files.at_path(place));
        let ours = places.iter().map(|place| files.at_own_path(place));
        let mut refusal = NoPart::NotFound;
        for opened in theirs.chain(ours) {
            match opened.map(separate::as_elf) {
                Ok(Some(found)) if found.elf.build_id.as_ref() == Some(&self.build_id) => {
                    return Ok(found);
                }
                Ok(Some(_)) => refusal = NoPart::OfAnotherBuild,
                Err(error) if matches!(refusal, NoPart::NotFound) => refusal = error.into(),
                Ok(None) | Err(_) => {}
            }
        }
        Err(self.refused(path, refusal))
    }

    /// Where it should be: relative paths begin in the folder of `path`.
    fn place(&self, path: &Name) -> Vec<u8> {
        let folder = memchr::memrchr(b'/', path.as_bytes()).map_or(0, |end| end + 1);
        let folder = path.as_bytes().get(..folder);
        let mut place = folder.unwrap_or_default().to_vec();
        super::path::push(&mut place, &self.path);
        place
    }

    fn refused(&self, path: &Name, why: NoPart) -> NoLines {
        NoLines::Shared { file: Name::new(self.place(path)), why }
    }
}
