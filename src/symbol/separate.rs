//! Separate debug files: where what was stripped from a program or library is kept, and whether it was stripped from this one.
//!
//! Looked for as gdb does, in the target's own root: by build-id under `/usr/lib/debug/.build-id`, then by the name in
//! `.gnu_debuglink` beside the file, in `.debug` beside it, and under `/usr/lib/debug`. A file is taken only if it has the same
//! build-id, or the checksum that `.gnu_debuglink` asks for.

use super::NoSeparate;
use super::build_id;
use super::file::File;
use super::source::Source;
use crate::kernel::Name;
use crate::target::{self, Modules};
use flate2::Crc;
use object::Endianness;
use object::endian::Endian;

/// Where distributions keep them.
const FOLDER: &[u8] = b"/usr/lib/debug";
/// `.gnu_debuglink` is a file name and a number.
const LONGEST_LINK: u64 = 4096;
/// Longer names are not those of a file (NAME_MAX).
const LONGEST_NAME: usize = 255;
/// The checksum of larger files is not made up: it takes a pass over the whole file.
const LARGEST_CHECKED: u64 = 4 << 30;

/// A separate debug file that belongs to a module.
pub(super) struct Separate {
    /// Where it is, in the target's root.
    pub(super) path: Name,
    pub(super) source: Source,
}

/// The separate debug file of `image`, which is called `path`.
pub(super) fn find(
    modules: &dyn Modules,
    path: &Name,
    image: &Source,
) -> Result<Separate, NoSeparate> {
    if image.elf.has_full_table() && image.has_section(b".debug_info") {
        return Err(NoSeparate::NotNeeded);
    }
    let id = image.build_id();
    let link = Link::of(image);
    if id.is_none() && link.is_none() {
        return Err(NoSeparate::NotNamed);
    }
    let mut refusal = NoSeparate::NotFound;
    let mut tried =
        |candidate: Vec<u8>, check: &dyn Fn(&Source) -> bool| match open(modules, &candidate) {
            Ok(None) => None,
            Ok(Some(source)) if is_like(image, &source) && check(&source) => Some(Separate {
                path: Name::new(candidate),
                source,
            }),
            Ok(Some(_)) => {
                let path = Name::new(candidate);
                refusal = NoSeparate::OfAnotherBuild { path };
                None
            }
            Err(error) => {
                refusal = error.into();
                None
            }
        };
    if let Some(id) = &id {
        let found = tried(place_of(id), &|source| {
            source.build_id().as_ref() == Some(id)
        });
        if found.is_some() {
            return found.ok_or(NoSeparate::NotFound);
        }
    }
    let places = link.iter().flat_map(|link| link.places(path));
    for place in places {
        let check = |source: &Source| match (&id, source.build_id()) {
            (Some(id), Some(other)) => *id == other,
            _ => link
                .as_ref()
                .is_some_and(|link| sum(&source.file) == Some(link.sum)),
        };
        if let Some(found) = tried(place, &check) {
            return Ok(found);
        }
    }
    Err(refusal)
}

/// The ELF file at `path` in the target's root; `None` if there is none.
pub(super) fn open(modules: &dyn Modules, path: &[u8]) -> Result<Option<Source>, target::Error> {
    let bytes = modules.at_path(path)?;
    // What is no ELF file is no debug file, whatever it is called.
    Ok(bytes.and_then(|bytes| Source::read(File::new(bytes)).ok()))
}

/// Where the debug file of a build is kept.
pub(super) fn place_of(id: &[u8]) -> Vec<u8> {
    let digits = build_id::digits(id);
    let (folder, name) = digits.split_at_checked(2).unwrap_or((&digits, ""));
    [
        FOLDER,
        b"/.build-id/",
        folder.as_bytes(),
        b"/",
        name.as_bytes(),
        b".debug",
    ]
    .concat()
}

/// Whether `other` could have been stripped from `image`, and is not the same file.
fn is_like(image: &Source, other: &Source) -> bool {
    image.elf.is_64 == other.elf.is_64
        && image.elf.machine == other.elf.machine
        && image.elf.endian == other.elf.endian
        && !image.file.is_same_as(&other.file)
}

/// What `.gnu_debuglink` says.
struct Link {
    name: Vec<u8>,
    sum: u32,
}

impl Link {
    fn of(image: &Source) -> Option<Link> {
        let bytes = image.section(b".gnu_debuglink", LONGEST_LINK).ok()??;
        Link::parse(&bytes, image.elf.endian)
    }

    /// A name, its end, zeros up to a multiple of four, and the checksum of the file.
    fn parse(bytes: &[u8], endian: Endianness) -> Option<Link> {
        let end = memchr::memchr(0, bytes)?;
        let name = bytes.get(..end)?;
        let sum = bytes.get((end + 1).next_multiple_of(4)..)?.first_chunk()?;
        // It is the name of a file in folders that are ours to choose, not a path.
        let is_a_name = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && !name.contains(&b'/')
            && name != b"."
            && name != b"..";
        is_a_name.then(|| Link {
            name: name.to_vec(),
            sum: endian.read_u32(*sum),
        })
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

/// The checksum of a whole file, as `.gnu_debuglink` has it; `None` if it is too large or cannot be read.
fn sum(file: &File) -> Option<u32> {
    if file.length() > LARGEST_CHECKED {
        return None;
    }
    let mut crc = Crc::new();
    file.pass(0, file.length(), 1, "contents", &mut |bytes| {
        crc.update(bytes);
        std::ops::ControlFlow::Continue(())
    })
    .ok()?;
    Some(crc.sum())
}
