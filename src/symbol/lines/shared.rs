//! Debug information that several modules keep together in one file (`dwz -m`): mostly names of functions that were inlined. Debian's
//! and Fedora's debug packages have such files.

use super::NoLines;
use super::reason::NoPart;
use super::sections::Sections;
use super::units::Units;
use super::work::Work;
use crate::kernel::Name;
use crate::symbol::separate;
use crate::symbol::source::Source;
use crate::target::Modules;
use gimli::SectionId;

/// `.gnu_debugaltlink` is a path and a build-id.
const LONGEST_LINK: u64 = 8192;

/// What several modules keep together.
pub(super) struct Shared {
    pub(super) sections: Sections,
    pub(super) units: Units,
}

impl Shared {
    /// Reads what `source`, which is called `path`, says that it shares: from where it says, or from where the file of that build-id
    /// is kept. `None` if it shares nothing.
    pub(super) fn read(
        source: &Source,
        path: &Name,
        files: &dyn Modules,
        room: u64,
        work: &mut Work,
    ) -> Option<Result<Shared, NoLines>> {
        let link = Link::of(source)?;
        let mut refusal = NoPart::NotFound;
        for place in [link.place(path), separate::place_of(&link.build_id)] {
            match separate::open(files, &place) {
                Ok(Some(found)) if found.build_id().as_ref() == Some(&link.build_id) => {
                    let read = || {
                        let name = |id: SectionId| Some(id.name());
                        let Some(sections) = Sections::read_within(&found, room, name, work)?
                        else {
                            return Err(NoPart::NotFound.of_shared(place));
                        };
                        let units = Units::list(&sections.dwarf(), work)?;
                        Ok(Shared { sections, units })
                    };
                    return Some(read());
                }
                Ok(Some(_)) => refusal = NoPart::OfAnotherBuild,
                Ok(None) => {}
                Err(error) => refusal = error.into(),
            }
        }
        Some(Err(refusal.of_shared(link.place(path))))
    }
}

impl NoPart {
    fn of_shared(self, place: Vec<u8>) -> NoLines {
        NoLines::Shared {
            file: Name::new(place),
            why: self,
        }
    }
}

/// What `.gnu_debugaltlink` says.
struct Link {
    path: Vec<u8>,
    build_id: Vec<u8>,
}

impl Link {
    fn of(source: &Source) -> Option<Link> {
        let bytes = source.section(b".gnu_debugaltlink", LONGEST_LINK).ok()??;
        let end = memchr::memchr(0, &bytes)?;
        let (path, id) = bytes.split_at_checked(end)?;
        let id = id.get(1..)?;
        (!path.is_empty() && !id.is_empty()).then(|| Link {
            path: path.to_vec(),
            build_id: id.to_vec(),
        })
    }

    /// Where it should be: relative paths begin in the folder of the file called `path`.
    fn place(&self, path: &Name) -> Vec<u8> {
        let folder = memchr::memrchr(b'/', path.as_bytes()).map_or(0, |end| end + 1);
        let mut place = path.as_bytes().get(..folder).unwrap_or_default().to_vec();
        super::path::push(&mut place, &self.path);
        place
    }
}
