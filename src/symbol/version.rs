//! Symbol versions of a dynamic table: `malloc@@GLIBC_2.2.5`. They are read only for symbols that already match by
//! name.

use super::elf::{File, FileRange, Source, VersionTable};
use super::sources::Sources;
use super::table::Symbol;
use object::Endianness;
use object::elf::{VER_NDX_GLOBAL, Verdaux, Verdef, Vernaux, Verneed, VersionIndex, Versym, VersymIndex};
use object::pod::{self, Pod};

/// Larger tables of version names are not read: the C library's has less than 2 KiB.
const LARGEST: u64 = 1 << 20;

/// The version of a symbol.
pub(super) struct Version {
    /// Number in the table of version names; 0 and 1 have none.
    number: VersionIndex,
    /// Only for programs linked long ago: the plain name does not mean it.
    pub(super) is_old: bool,
}

impl Version {
    /// The version of a symbol, if its table has versions.
    pub(super) fn of(sources: &Sources, symbol: &Symbol) -> Option<Version> {
        let (Source { file, elf }, table) = sources.table(symbol.table)?;
        let offset = table.versions?.checked_add(2 * u64::from(symbol.number))?;
        let range = FileRange { offset, size: 2 };
        let bytes = file.read(range, "symbol versions").ok()?;
        let word = part::<Versym<Endianness>>(&bytes, 0)?.0.get(elf.endian);
        Some(Version { number: word.index(), is_old: word.is_hidden() })
    }

    /// Its name in the file: `GLIBC_2.2.5`.
    pub(super) fn name(&self, sources: &Sources, symbol: &Symbol) -> Option<Vec<u8>> {
        let (Source { file, elf }, _) = sources.table(symbol.table)?;
        if self.number <= VER_NDX_GLOBAL {
            return None;
        }
        let defined = elf.versions_defined.and_then(|table| {
            let bytes = table.read(file)?;
            let name = self.among_defined(&bytes, elf.endian)?;
            file.string(table.strings, name)
        });
        // The program's copy of a library's variable has the version that the program needs.
        defined.or_else(|| {
            let table = elf.versions_needed?;
            let bytes = table.read(file)?;
            let name = self.among_needed(&bytes, elf.endian)?;
            file.string(table.strings, name)
        })
    }

    fn among_defined(&self, bytes: &[u8], endian: Endianness) -> Option<u32> {
        let mut at = Some(0);
        while let Some(place) = at {
            let version = part::<Verdef<Endianness>>(bytes, place)?;
            if VersymIndex::from(version.vd_ndx.get(endian)).index() == self.number {
                let name = further(place, version.vd_aux.get(endian))?;
                let name = part::<Verdaux<Endianness>>(bytes, name)?;
                return Some(name.vda_name.get(endian));
            }
            at = further(place, version.vd_next.get(endian));
        }
        None
    }

    fn among_needed(&self, bytes: &[u8], endian: Endianness) -> Option<u32> {
        // In a hostile file the chains of different libraries may run into each other: the limit is on all steps
        // together.
        let mut steps = bytes.len() / size_of::<Vernaux<Endianness>>();
        let mut library = Some(0);
        while let Some(place) = library {
            let needed = part::<Verneed<Endianness>>(bytes, place)?;
            let mut at = further(place, needed.vn_aux.get(endian));
            while let Some(place) = at {
                steps = steps.checked_sub(1)?;
                let version = part::<Vernaux<Endianness>>(bytes, place)?;
                if version.vna_other(endian).index() == self.number {
                    return Some(version.vna_name.get(endian));
                }
                at = further(place, version.vna_next.get(endian));
            }
            library = further(place, needed.vn_next.get(endian));
        }
        None
    }
}

impl VersionTable {
    fn read(&self, file: &File) -> Option<Vec<u8>> {
        let range = Some(self.entries).filter(|range| range.size <= LARGEST)?;
        file.read(range, "version names").ok()
    }
}

/// The next link of a chain. A link that points back, or at itself, ends the chain.
fn further(at: usize, by: u32) -> Option<usize> {
    let by = usize::try_from(by).ok().filter(|&by| by > 0)?;
    at.checked_add(by)
}

fn part<T: Pod>(bytes: &[u8], at: usize) -> Option<&T> {
    let (part, _) = pod::from_bytes::<T>(bytes.get(at..)?).ok()?;
    Some(part)
}
