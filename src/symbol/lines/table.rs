//! The debug information of one file: what it says of an address, and of a line.

use super::names::{self, Called};
use super::path;
use super::rows;
use super::scopes::{self, Scope};
use super::sections::{Bytes, Sections};
use super::units::{Opener, Units};
use super::work::Work;
use super::{Frame, NoLines};
use crate::kernel::Name;
use crate::symbol::demangle::may_be_mangled;
use crate::symbol::source::Source;
use gimli::{Dwarf, Unit};

/// More places of one line are not told.
const MOST_PLACES: usize = 1000;

/// The debug information of a file.
pub(in crate::symbol) struct Lines {
    sections: Sections,
    units: Units,
}

/// What is known of an address: its frames, the innermost first, and why not all of them are.
#[derive(Default)]
pub(super) struct Found {
    pub(super) frames: Vec<Frame>,
    pub(super) missing: Option<NoLines>,
}

/// Where a line has code.
#[derive(Default)]
pub(super) struct Places {
    /// The line that has code: the one asked for, or the first behind it that has.
    pub(super) line: Option<u64>,
    /// File addresses, one for each function (or copy of an inlined one) in order.
    pub(super) addresses: Vec<u64>,
    /// Whether a unit has the file at all.
    pub(super) has_file: bool,
    /// Why some of the debug information could not be looked through.
    pub(super) missing: Option<NoLines>,
}

impl Lines {
    /// Reads the sections and finds the units; `None` if the file has no debug information.
    pub(super) fn read(source: &Source, work: &mut Work) -> Result<Option<Lines>, NoLines> {
        let Some(sections) = Sections::read(source, work)? else {
            return Ok(None);
        };
        let units = Units::read(&sections.dwarf(), work)?;
        Ok(Some(Lines { sections, units }))
    }

    /// How much memory this takes.
    pub(super) fn bytes(&self) -> u64 {
        self.sections.size.saturating_add(self.units.size())
    }

    /// What the file says of a file address that lies in `symbol` (as the file spells it).
    pub(super) fn at(
        &self,
        address: u64,
        symbol: Option<&Name>,
        work: &mut Work,
    ) -> Result<Found, NoLines> {
        let dwarf = self.sections.dwarf();
        let mut why = NoLines::NotCovered;
        let mut opener = Opener::default();
        for offset in self.units.covering(address) {
            work.look()?;
            let unit = opener.open_at(&dwarf, offset)?;
            match self.in_unit(&dwarf, &unit, address, symbol, work) {
                Ok(found) => return Ok(found),
                Err(passing) if passing.is_passing() => return Err(passing),
                Err(other) => why = other,
            }
        }
        match (why, &self.units.fault) {
            (NoLines::NotCovered, Some(fault)) => Err(fault.clone()),
            (why, _) => Err(why),
        }
    }

    fn in_unit(
        &self,
        dwarf: &Dwarf<Bytes<'_>>,
        unit: &Unit<Bytes<'_>>,
        address: u64,
        symbol: Option<&Name>,
        work: &mut Work,
    ) -> Result<Found, NoLines> {
        let row = rows::row_at(unit, address, work)?;
        let around = scopes::around(dwarf, unit, &[address], work);
        let (chain, mut missing) = match around {
            Ok(chains) => (chains.into_iter().next().unwrap_or_default(), None),
            Err(passing) if passing.is_passing() => return Err(passing),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let Some(row) = row else {
            let name = name_of(unit);
            return Err(match unit.line_program {
                None => NoLines::NoLineTable(name),
                Some(_) => NoLines::NoRow(name),
            });
        };
        if let Some(name) = split(dwarf, unit) {
            missing = Some(NoLines::Split(name));
        }
        let mut frames = vec![Frame {
            function: None,
            file: path::of_file(dwarf, unit, row.file),
            line: row.line,
            column: row.column,
        }];
        for scope in chain.iter().rev() {
            let function = match names::of_function(dwarf, &self.units, unit, scope.entry, work) {
                Ok(None) => None,
                Ok(Some(Called::Linked(name))) => Some(name),
                Ok(Some(Called::Plain(name))) => match symbol {
                    // `operator()` of what? The symbol says.
                    Some(symbol) if scope.call.is_none() && may_be_mangled(symbol.as_bytes()) => {
                        Some(symbol.clone())
                    }
                    _ => Some(name),
                },
                Err(passing) if passing.is_passing() => return Err(passing),
                Err(fault) => {
                    missing.get_or_insert(fault);
                    None
                }
            };
            if let Some(last) = frames.last_mut() {
                last.function = function;
            }
            if let Some(call) = scope.call {
                frames.push(Frame {
                    function: None,
                    file: path::of_file(dwarf, unit, call.file),
                    line: call.line,
                    column: call.column,
                });
            }
        }
        Ok(Found { frames, missing })
    }

    /// Where a line of a file has code; `wanted` is the end of the file's path.
    pub(super) fn of_line(
        &self,
        wanted: &[u8],
        line: u64,
        work: &mut Work,
    ) -> Result<Places, NoLines> {
        let dwarf = self.sections.dwarf();
        let mut places = Places {
            missing: self.units.fault.clone(),
            ..Places::default()
        };
        let mut opener = Opener::default();
        let mut groups: Vec<(usize, Vec<u64>)> = Vec::new();
        for &offset in &self.units.offsets {
            work.look()?;
            let searched = opener.open_at(&dwarf, offset).and_then(|unit| {
                let files = files_meant(&dwarf, &unit, wanted, work)?;
                places.has_file |= !files.is_empty();
                match files.is_empty() {
                    true => Ok(None),
                    false => first_rows(&unit, &files, line, work),
                }
            });
            match searched {
                Ok(None) => {}
                Ok(Some((line, addresses))) => {
                    if places.line.is_none_or(|known| line < known) {
                        places.line = Some(line);
                        groups.clear();
                    }
                    if places.line == Some(line) {
                        groups.push((offset, addresses));
                    }
                }
                Err(passing) if passing.is_passing() => return Err(passing),
                Err(fault) => _ = places.missing.get_or_insert(fault),
            }
        }
        for (offset, addresses) in groups {
            let unit = opener.open_at(&dwarf, offset)?;
            let chains = match scopes::around(&dwarf, &unit, &addresses, work) {
                Ok(chains) => chains,
                Err(passing) if passing.is_passing() => return Err(passing),
                Err(_) => vec![Vec::new(); addresses.len()],
            };
            places.addresses.extend(first_of_each(&addresses, &chains));
        }
        places.addresses.sort_unstable();
        places.addresses.dedup();
        Ok(places)
    }
}

/// The first address in each function.
fn first_of_each(addresses: &[u64], chains: &[Vec<Scope>]) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    let firsts = addresses.iter().zip(chains);
    firsts
        .filter(|(_, chain)| chain.last().is_none_or(|last| seen.insert(last.entry.0)))
        .map(|(&address, _)| address)
        .collect()
}

/// The numbers of the files that are meant.
fn files_meant(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    wanted: &[u8],
    work: &mut Work,
) -> Result<Vec<u64>, NoLines> {
    let Some(program) = &unit.line_program else {
        return Ok(Vec::new());
    };
    let header = program.header();
    let first = u64::from(header.version() <= 4);
    let mut files = Vec::new();
    for (number, file) in (first..).zip(header.file_names()) {
        work.step(1)?;
        let name = path::text(dwarf, unit, file.path_name()).unwrap_or_default();
        if path::file_name(name) == path::file_name(wanted)
            && path::of_file(dwarf, unit, number)
                .is_some_and(|path| path::is_meant(path.as_bytes(), wanted))
        {
            files.push(number);
        }
    }
    Ok(files)
}

/// The line that has code, `line` or the first behind it, and where each of its stretches begins, in order.
fn first_rows(
    unit: &Unit<Bytes<'_>>,
    files: &[u64],
    line: u64,
    work: &mut Work,
) -> Result<Option<(u64, Vec<u64>)>, NoLines> {
    let mut best: Option<(u64, Vec<u64>)> = None;
    // The line that a stretch was noted for, and where that goes on.
    let mut noted: Option<(u64, u64, u64)> = None;
    rows::each_row(unit, work, &mut |row, end| {
        let Some(found) = row
            .line
            .filter(|&found| found >= line && files.binary_search(&row.file).is_ok())
        else {
            return true;
        };
        let goes_on = noted == Some((row.file, found, row.address));
        if row.is_statement && !goes_on {
            match &mut best {
                Some((known, _)) if *known < found => {}
                Some((known, addresses)) if *known == found => {
                    if addresses.len() < MOST_PLACES {
                        addresses.push(row.address);
                    }
                }
                _ => best = Some((found, vec![row.address])),
            }
        }
        if row.is_statement || goes_on {
            noted = Some((row.file, found, end));
        }
        true
    })?;
    Ok(best.map(|(line, mut addresses)| {
        addresses.sort_unstable();
        addresses.dedup();
        (line, addresses)
    }))
}

/// What a unit is called: the source file it was compiled from.
fn name_of(unit: &Unit<Bytes<'_>>) -> Name {
    match &unit.name {
        Some(name) => Name::new(name.slice()),
        None => Name::from("without a name"),
    }
}

/// The file in which the functions of a unit are described, if it is not this one.
fn split(dwarf: &Dwarf<Bytes<'_>>, unit: &Unit<Bytes<'_>>) -> Option<Name> {
    unit.dwo_id?;
    let name = unit.dwo_name().ok()??;
    let mut path = unit
        .comp_dir
        .map(|folder| folder.slice().to_vec())
        .unwrap_or_default();
    let name = path::text(dwarf, unit, name)?;
    path::push(&mut path, name);
    Some(Name::new(path))
}
