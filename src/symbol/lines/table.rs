//! The debug information of one file: what it says of an address, and of a line.

use super::described::Described;
use super::frames::Compiled;
use super::places::{self, Place};
use super::rows::{self, Stretch};
use super::scopes;
use super::sections::{Bytes, PackageSections, Sections};
use super::shared::Shared;
use super::split::{self, Split};
use super::units::{Opener, Units};
use super::work::Work;
use super::{Frame, NoLines};
use crate::kernel::Name;
use crate::symbol::source::Source;
use crate::target::Modules;
use gimli::{Dwarf, Unit};

/// The debug information of a file.
pub(in crate::symbol) struct Lines {
    sections: Sections,
    units: Units,
    /// What it shares with other modules, or why that is not known; `None` if it shares nothing.
    shared: Option<Result<Shared, NoLines>>,
    /// The package with the units that were split off.
    package: Option<PackageSections>,
}

/// What is known of an address.
#[derive(Clone)]
pub(super) struct Found {
    /// The row it lies in.
    pub(super) row: Stretch,
    /// The innermost first.
    pub(super) frames: Vec<Frame>,
    /// Why not all of them are known.
    pub(super) missing: Option<NoLines>,
}

/// Where a line has code.
#[derive(Default)]
pub(super) struct Places {
    /// The line that has code: the one asked for, or the first behind it that has.
    pub(super) line: Option<u64>,
    /// In order; what is known of each of the first.
    pub(super) places: Vec<(Place, Option<Found>)>,
    /// Whether a unit has the file at all.
    pub(super) has_file: bool,
    /// Why some of the debug information could not be looked through.
    pub(super) missing: Option<NoLines>,
}

/// What is asked of a line.
#[derive(Clone, Copy)]
pub(super) struct LineQuery<'a> {
    /// The end of the file's path.
    pub(super) file: &'a [u8],
    pub(super) line: u64,
    /// Of how many places the frames are told.
    pub(super) with_frames: usize,
}

impl Lines {
    /// Reads the sections of `source`, which is called `path`, and finds the units; `None` if it has no debug information.
    pub(super) fn read(
        source: &Source,
        path: &Name,
        files: &dyn Modules,
        work: &mut Work,
    ) -> Result<Option<Lines>, NoLines> {
        let Some(sections) = Sections::read(source, work)? else {
            return Ok(None);
        };
        let units = Units::read(&sections.dwarf(), work)?;
        let mut room = sections.room();
        let shared = match Shared::read(source, path, files, room, work) {
            Some(Err(passing)) if passing.is_passing() => return Err(passing),
            shared => shared,
        };
        if let Some(Ok(shared)) = &shared {
            room = room.saturating_sub(shared.sections.size);
        }
        let package = match units.has_split {
            true => split::package_of(path, files, room, work)?,
            false => None,
        };
        Ok(Some(Lines {
            sections,
            units,
            shared,
            package,
        }))
    }

    /// How much memory this takes.
    pub(super) fn bytes(&self) -> u64 {
        let own = self.sections.size.saturating_add(self.units.size());
        let shared = self.shared.as_ref().and_then(|one| one.as_ref().ok());
        let shared = shared.map_or(0, |one| one.sections.size + one.units.size());
        let package = self.package.as_ref().map_or(0, |one| one.size);
        own.saturating_add(shared).saturating_add(package)
    }

    fn dwarf(&self) -> Dwarf<Bytes<'_>> {
        let mut dwarf = self.sections.dwarf();
        if let Some(Ok(shared)) = &self.shared {
            dwarf.set_sup(shared.sections.dwarf());
        }
        dwarf
    }

    /// What the file says of a file address that lies in `symbol` (as the file spells it).
    pub(super) fn at(
        &self,
        address: u64,
        symbol: Option<&Name>,
        files: &dyn Modules,
        work: &mut Work,
    ) -> Result<Found, NoLines> {
        let dwarf = self.dwarf();
        let mut why = NoLines::NotCovered;
        let mut opener = Opener::default();
        for offset in self.units.covering(address) {
            work.look()?;
            let unit = opener.open_at(&dwarf, offset)?;
            let row = match rows::row_at(&unit, address, work)? {
                Some(row) => row,
                None => {
                    let name = name_of(&unit);
                    why = match unit.line_program {
                        None => NoLines::NoLineTable(name),
                        Some(_) => NoLines::NoRow(name),
                    };
                    continue;
                }
            };
            return self.describing(&dwarf, &unit, files, work, |unit, missing, work| {
                let (chains, fault) = chains(unit, &[address], work)?;
                let chain = chains.into_iter().next().unwrap_or_default();
                let (frames, unnamed) = unit.frames(&row.0, &chain, symbol, work)?;
                Ok(Found {
                    row,
                    frames,
                    missing: missing.or(fault).or(unnamed),
                })
            });
        }
        match (why, &self.units.fault) {
            (NoLines::NotCovered, Some(fault)) => Err(fault.clone()),
            (why, _) => Err(why),
        }
    }

    /// Where a line of a file has code; `symbol` finds the symbol that an address lies in.
    pub(super) fn of_line(
        &self,
        query: LineQuery,
        symbol: &dyn Fn(u64) -> Option<Name>,
        files: &dyn Modules,
        work: &mut Work,
    ) -> Result<Places, NoLines> {
        let dwarf = self.dwarf();
        let mut places = Places {
            missing: self.units.fault.clone(),
            ..Places::default()
        };
        let mut opener = Opener::default();
        // The units that have the line, and the numbers that they have for the file.
        let mut having: Vec<(usize, Vec<u64>)> = Vec::new();
        for &offset in &self.units.offsets {
            work.look()?;
            let searched = opener.open_at(&dwarf, offset).and_then(|unit| {
                let files = places::files_meant(&dwarf, &unit, query.file, work)?;
                places.has_file |= !files.is_empty();
                let line = match files.is_empty() {
                    true => None,
                    false => places::line_with_code(&unit, &files, query.line, work)?,
                };
                Ok((line, files))
            });
            match searched {
                Ok((Some(line), files)) => {
                    if places.line.is_none_or(|known| line < known) {
                        places.line = Some(line);
                        having.clear();
                    }
                    if places.line == Some(line) {
                        having.push((offset, files));
                    }
                }
                Ok((None, _)) => {}
                Err(passing) if passing.is_passing() => return Err(passing),
                Err(fault) => _ = places.missing.get_or_insert(fault),
            }
        }
        let Some(line) = places.line else {
            return Ok(places);
        };
        for (offset, numbers) in having {
            let unit = opener.open_at(&dwarf, offset)?;
            let (rows, is_cut) = places::rows_of(&unit, &numbers, line, work)?;
            if is_cut {
                places.missing.get_or_insert(NoLines::TooLarge);
            }
            let with_frames = query.with_frames.saturating_sub(places.places.len());
            let found = self.describing(&dwarf, &unit, files, work, |unit, missing, work| {
                let addresses: Vec<u64> = rows.iter().map(|(row, _)| row.address).collect();
                let (chains, fault) = chains(unit, &addresses, work)?;
                let missing = missing.or(fault);
                let mut found = Vec::new();
                for place in places::joined(rows, chains) {
                    let known = match found.len() < with_frames {
                        true => {
                            let symbol = symbol(place.row.address);
                            let (frames, unnamed) =
                                unit.frames(&place.row, &place.chain, symbol.as_ref(), work)?;
                            Some(Found {
                                row: (place.row, place.end),
                                frames,
                                missing: missing.clone().or(unnamed),
                            })
                        }
                        false => None,
                    };
                    found.push((place, known));
                }
                Ok(found)
            });
            match found {
                Ok(found) => places.places.extend(found),
                Err(passing) if passing.is_passing() => return Err(passing),
                Err(fault) => _ = places.missing.get_or_insert(fault),
            }
        }
        Ok(places)
    }

    /// Hands `ask` a unit with what describes its functions, and why that is not all, if it was split and the rest is not there.
    fn describing<T>(
        &self,
        dwarf: &Dwarf<Bytes<'_>>,
        unit: &Unit<Bytes<'_>>,
        files: &dyn Modules,
        work: &mut Work,
        ask: impl FnOnce(&Compiled, Option<NoLines>, &mut Work) -> Result<T, NoLines>,
    ) -> Result<T, NoLines> {
        let shared = match &self.shared {
            None => Err(&NoLines::NotNamed),
            Some(Err(why)) => Err(why),
            Some(Ok(shared)) => Ok(&shared.units),
        };
        let itself = Described {
            dwarf,
            unit,
            units: &self.units,
            shared,
        };
        let object;
        let in_object = |work: &mut Work| match split::path_of(dwarf, unit) {
            Some(path) => split::object(&path, files, self.sections.room(), work).map(Some),
            None => Ok(None),
        };
        let packed = match (unit.dwo_id, &self.package) {
            (Some(id), Some(package)) => Split::in_package(package, dwarf, unit, id, work),
            _ => Ok(None),
        };
        let split = match (unit.dwo_id, packed) {
            (Some(id), Ok(None)) => match in_object(work) {
                Ok(Some(read)) => {
                    object = read;
                    Split::in_object(&object, dwarf, unit, id, work)
                }
                Ok(None) => Ok(None),
                Err(why) => Err(why),
            },
            (_, packed) => packed,
        };
        let (described, missing) = match &split {
            Ok(None) => (itself, None),
            Ok(Some(split)) => (
                Described {
                    dwarf: &split.dwarf,
                    unit: &split.unit,
                    units: Units::none(),
                    shared: Err(&NoLines::NotNamed),
                },
                None,
            ),
            Err(passing) if passing.is_passing() => return Err(passing.clone()),
            Err(why) => (itself, Some(why.clone())),
        };
        let compiled = Compiled {
            dwarf,
            unit,
            described,
        };
        ask(&compiled, missing, work)
    }
}

/// The functions around each of `addresses`, which are in order; none, and why, where that is damaged.
fn chains(
    unit: &Compiled,
    addresses: &[u64],
    work: &mut Work,
) -> Result<(Vec<Vec<scopes::Scope>>, Option<NoLines>), NoLines> {
    let Described { dwarf, unit, .. } = unit.described;
    match scopes::around(dwarf, unit, addresses, work) {
        Ok(chains) => Ok((chains, None)),
        Err(passing) if passing.is_passing() => Err(passing),
        Err(fault) => Ok((vec![Vec::new(); addresses.len()], Some(fault))),
    }
}

/// What a unit is called: the source file it was compiled from.
fn name_of(unit: &Unit<Bytes<'_>>) -> Name {
    match &unit.name {
        Some(name) => Name::new(name.slice()),
        None => Name::from("without a name"),
    }
}
