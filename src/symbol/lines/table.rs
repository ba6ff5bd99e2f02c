//! The debug information of one file, with look-ups of an address and of a line; and a cache, limited in size, from
//! which an entry is dropped when its file changes.

use super::frames::{DescribingUnit, UnitWithLines};
use super::further_files::{self, DwoCache, DwoFile, SharedFile, SharedLink, Split, UntilFound};
use super::rows::{self, CodePlace, RowStretch};
use super::sections::{PackageSections, SectionReader, Sections};
use super::units::{Opener, Units};
use super::{Frame, NoLines, path, scopes};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::Modules;
use crate::symbol::elf::ElfFile;
use crate::symbol::files::Sources;
use crate::symbol::reason::or_fault;
use crate::symbol::{NoSeparate, NoSymbols};
use gimli::{Dwarf, Unit};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The debug information of a file.
pub(in crate::symbol) struct LineInfo {
    sections: Sections,
    units: Units,
    /// The path of the file.
    path: Name,
    /// The reference to debug information that other modules share; `None` if it shares nothing.
    shared_link: Option<SharedLink>,
    /// The package with split units.
    package: UntilFound<PackageSections>,
    /// The files of split units that are in no package.
    objects: DwoCache,
}

/// The shared debug information, or why it is unknown.
type SharedOrReason<'a> = Result<&'a SharedFile, NoLines>;

/// The debug information about an address.
#[derive(Clone)]
pub(super) struct AddressLine {
    /// The row that contains the address.
    pub(super) row: RowStretch,
    /// The frames at the address, the innermost first.
    pub(super) frames: Vec<Frame>,
    /// Why some frames are unknown.
    pub(super) missing: Option<NoLines>,
}

/// The code of a line.
#[derive(Default)]
pub(super) struct Places {
    /// The line with code: the requested one, or the next one that has code.
    pub(super) line: Option<u64>,
    /// The places in order, the first ones with their frames.
    pub(super) places: Vec<(CodePlace, Option<AddressLine>)>,
    /// Whether a unit has the file.
    pub(super) has_file: bool,
    /// Why some of the debug information could not be searched.
    pub(super) missing: Option<NoLines>,
}

/// The most bytes of names and paths of functions in total. Further places have no frames.
const MOST_TEXT: usize = 16 << 20;

/// A query for a line.
#[derive(Clone, Copy)]
pub(super) struct LineQuery<'a> {
    /// The end of the file's path.
    pub(super) file: &'a [u8],
    pub(super) line: u64,
    /// The number of places whose frames are wanted.
    pub(super) with_frames: usize,
}

impl LineInfo {
    /// Reads the sections of `source`, whose path is `path`, and finds the units; `None` if it has no debug
    /// information.
    pub(super) fn read(source: &ElfFile, path: &Name, budget: &mut Budget) -> Result<Option<LineInfo>, NoLines> {
        let Some(sections) = Sections::read(source, budget)? else {
            return Ok(None);
        };
        let units = Units::read(&sections.dwarf(), budget)?;
        Ok(Some(LineInfo {
            sections,
            units,
            path: path.clone(),
            shared_link: SharedLink::of(source, path, budget)?,
            package: UntilFound::default(),
            objects: DwoCache::default(),
        }))
    }

    /// Returns the memory in use in bytes, which queries may increase.
    pub(super) fn bytes(&self) -> u64 {
        let package = self.package.if_found().map_or(0, |one| one.size);
        [self.units.size(), self.shared_size(), package]
            .into_iter()
            .fold(self.sections.size, u64::saturating_add)
            .saturating_add(self.objects.size())
    }

    fn shared_size(&self) -> u64 {
        self.shared_link.as_ref().map_or(0, SharedLink::size)
    }

    /// Returns the debug information that is shared with other modules, or why it is unknown.
    fn shared_file(&self, files: &Modules, budget: &mut Budget) -> Result<SharedOrReason<'_>, NoLines> {
        let sharing = self.shared_link.as_ref();
        let shared = sharing.map(|one| one.get(files, self.sections.room(), budget));
        match shared.unwrap_or(Err(NoLines::NotNamed)) {
            Err(passing) if passing.is_passing() => Err(passing),
            known => Ok(known),
        }
    }

    fn dwarf<'a>(&'a self, shared: &SharedOrReason<'a>) -> Dwarf<SectionReader<'a>> {
        let mut dwarf = self.sections.dwarf();
        if let Ok(shared) = shared {
            dwarf.set_sup(shared.sections.dwarf());
        }
        dwarf
    }

    /// Returns the package with split units, if there is one.
    fn package(&self, files: &Modules, budget: &mut Budget) -> Result<Option<&PackageSections>, NoLines> {
        let room = self.sections.room().saturating_sub(self.shared_size());
        let read = || further_files::package_of(&self.path, files, room, budget);
        self.package.get(read)
    }

    /// Returns the debug information about a file address in `symbol` (as the file spells it).
    pub(super) fn at(
        &self,
        address: u64,
        symbol: Option<&Name>,
        files: &Modules,
        budget: &mut Budget,
    ) -> Result<AddressLine, NoLines> {
        let shared = self.shared_file(files, budget)?;
        let dwarf = self.dwarf(&shared);
        let mut why = NoLines::NotCovered;
        let mut opener = Opener::default();
        for offset in self.units.units_at(address, budget)? {
            budget.look()?;
            let unit = opener.open_at(&dwarf, offset)?;
            let row = match rows::row_at(&unit, address, budget)? {
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
            let (mut object, mut missing) = (None, None);
            let split = or_fault(self.split(&dwarf, &unit, files, budget, &mut object), &mut missing)?.flatten();
            let unit = self.unit_with_lines(&dwarf, &unit, &split, &shared);
            let chains = chains(&unit, &[address], &mut missing, budget)?;
            let chain = chains.into_iter().next().unwrap_or_default();
            let frames = unit.frames(&row.0, &chain, symbol, &mut missing, budget)?;
            return Ok(AddressLine { row, frames, missing });
        }
        match (why, &self.units.fault) {
            (NoLines::NotCovered, Some(fault)) => Err(fault.clone()),
            (why, _) => Err(why),
        }
    }

    /// Finds the code of a line of a file; `symbol` returns the symbol that contains an address.
    pub(super) fn of_line(
        &self,
        query: LineQuery,
        symbol: &dyn Fn(u64) -> Option<Name>,
        files: &Modules,
        budget: &mut Budget,
    ) -> Result<Places, NoLines> {
        let shared = self.shared_file(files, budget)?;
        let dwarf = self.dwarf(&shared);
        let mut places = Places { missing: self.units.fault.clone(), ..Places::default() };
        let mut opener = Opener::default();
        // The units with the line, and the numbers of the file in each.
        let mut having: Vec<(usize, Vec<u64>)> = Vec::new();
        for &offset in &self.units.offsets {
            budget.look()?;
            let searched = opener.open_at(&dwarf, offset).and_then(|unit| {
                let files = rows::files_meant(&dwarf, &unit, query.file, budget)?;
                places.has_file |= !files.is_empty();
                let line =
                    if files.is_empty() { None } else { rows::line_with_code(&unit, &files, query.line, budget)? };
                Ok((line, files))
            });
            if let Some((Some(line), files)) = or_fault(searched, &mut places.missing)? {
                if places.line.is_none_or(|known| line < known) {
                    places.line = Some(line);
                    having.clear();
                }
                if places.line == Some(line) {
                    having.push((offset, files));
                }
            }
        }
        let Some(line) = places.line else {
            return Ok(places);
        };
        let mut text = 0;
        for (offset, numbers) in having {
            let unit = opener.open_at(&dwarf, offset)?;
            let room = rows::MOST_ROWS.saturating_sub(places.places.len());
            let (rows, is_cut) = rows::rows_of(&unit, &numbers, line, room, budget)?;
            if is_cut {
                places.missing.get_or_insert(NoLines::TooLarge);
            }
            let (mut object, mut missing) = (None, None);
            let split = or_fault(self.split(&dwarf, &unit, files, budget, &mut object), &mut missing)?.flatten();
            let unit = self.unit_with_lines(&dwarf, &unit, &split, &shared);
            let addresses: Vec<u64> = rows.iter().map(|(row, _)| row.address).collect();
            let chains = chains(&unit, &addresses, &mut missing, budget)?;
            for mut place in rows::join_rows(rows, chains) {
                let known = if places.places.len() < query.with_frames && text < MOST_TEXT {
                    let symbol = symbol(place.row.address);
                    let mut missing = missing.clone();
                    let frames = unit.frames(&place.row, &place.chain, symbol.as_ref(), &mut missing, budget)?;
                    text += frames.iter().map(Frame::text).sum::<usize>();
                    Some(AddressLine { row: (place.row, place.end), frames, missing })
                } else {
                    None
                };
                // The chains are no longer needed, and may be numerous.
                place.chain = Vec::new();
                places.places.push((place, known));
            }
        }
        Ok(places)
    }

    /// Adds the ends of the paths of source files that begin with `begun`, as they are displayed, until there are
    /// `limit`.
    pub(super) fn add_source_files(
        &self,
        begun: &str,
        limit: usize,
        found: &mut BTreeSet<String>,
        budget: &mut Budget,
    ) -> Result<(), NoLines> {
        let last = begun.rsplit('/').next().unwrap_or_default();
        // An escaped name shares its prefix with the raw one, up to the first escaped byte.
        let plain = last.split('\\').next().unwrap_or_default();
        let wants = |name: &[u8]| begun.contains('/') || name.starts_with(plain.as_bytes());
        // The names in a shared file are not worth reading that file.
        let dwarf = self.sections.dwarf();
        let mut opener = Opener::default();
        for &offset in &self.units.offsets {
            budget.look()?;
            // The names of a damaged unit are left out.
            let Some(unit) = or_fault(opener.open_at(&dwarf, offset), &mut None)? else {
                continue;
            };
            for file in path::files(&dwarf, &unit, wants) {
                budget.go_on()?;
                if let Some((_, path)) = file {
                    let path = path.escaped();
                    let room = limit.saturating_sub(found.len());
                    found.extend(path::ends_begun(&path, begun).take(room).map(str::to_owned));
                }
            }
        }
        Ok(())
    }

    /// Returns the split part of a unit; `None` if the unit is not split. `object` keeps a separate file.
    fn split<'a>(
        &'a self,
        dwarf: &Dwarf<SectionReader<'a>>,
        unit: &Unit<SectionReader<'a>>,
        files: &Modules,
        budget: &mut Budget,
        object: &'a mut Option<Arc<DwoFile>>,
    ) -> Result<Option<Split<'a>>, NoLines> {
        let Some(id) = unit.dwo_id else {
            return Ok(None);
        };
        if let Some(package) = self.package(files, budget)?
            && let Some(split) = Split::in_package(package, dwarf, unit, id, budget)?
        {
            return Ok(Some(split));
        }
        let Some(path) = further_files::path_of(dwarf, unit) else {
            return Ok(None);
        };
        let object = object.insert(match self.objects.get(&path) {
            Some(kept) => kept,
            None => Arc::new(DwoFile::read(&path, files, self.sections.room(), budget)?),
        });
        let split = Split::in_object(object, dwarf, unit, id, budget)?;
        self.objects.keep(object);
        Ok(Some(split))
    }

    /// Returns a unit, with the unit that describes its functions: in its split part, if there is one.
    fn unit_with_lines<'s, 'a>(
        &'s self,
        dwarf: &'s Dwarf<SectionReader<'a>>,
        unit: &'s Unit<SectionReader<'a>>,
        split: &'s Option<Split<'a>>,
        shared: &'s SharedOrReason,
    ) -> UnitWithLines<'s, 'a> {
        let describing = match split {
            None => {
                DescribingUnit { dwarf, unit, units: &self.units, shared: shared.as_ref().map(|shared| &shared.units) }
            }
            Some(split) => DescribingUnit {
                dwarf: &split.dwarf,
                unit: &split.unit,
                units: Units::none(),
                shared: Err(&NoLines::NotNamed),
            },
        };
        UnitWithLines { dwarf, unit, describing }
    }
}

/// Returns the functions around each of `addresses`, which are in order; none, with the reason in `missing`, if their
/// description is damaged.
fn chains(
    unit: &UnitWithLines,
    addresses: &[u64],
    missing: &mut Option<NoLines>,
    budget: &mut Budget,
) -> Result<Vec<Vec<scopes::FunctionScope>>, NoLines> {
    let DescribingUnit { dwarf, unit, .. } = unit.describing;
    let chains = or_fault(scopes::around(dwarf, unit, addresses, budget), missing)?;
    Ok(chains.unwrap_or_else(|| vec![Vec::new(); addresses.len()]))
}

/// Returns the name of a unit: the source file from which it was compiled.
fn name_of(unit: &Unit<SectionReader<'_>>) -> Name {
    match &unit.name {
        Some(name) => Name::new(name.slice()),
        None => Name::from("without a name"),
    }
}

/// The most bytes of debug information for all modules together, unless one alone has more.
const MOST_BYTES: u64 = 1 << 30;

/// The debug information of one module, if it was read and is still cached.
type CacheEntry = Mutex<Option<Result<Arc<LineInfo>, NoLines>>>;

/// The debug information of a module, once a query has read it.
#[derive(Default)]
pub(in crate::symbol) struct CachedLines(Arc<CacheEntry>);

impl CachedLines {
    /// Returns the cached debug information, or what `read` reads.
    pub(super) fn get(
        &self,
        budget: &mut Budget,
        read: impl FnOnce(&mut Budget) -> Result<LineInfo, NoLines>,
    ) -> Result<Arc<LineInfo>, NoLines> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*kept {
            return known.clone();
        }
        let read = read(budget).map(Arc::new);
        if !matches!(&read, Err(why) if why.is_passing()) {
            *kept = Some(read.clone());
        }
        read
    }

    /// Makes it the last used in `cache`, with its size after a query. If the cache is full, the least recently used
    /// entries are dropped.
    pub(super) fn touch(&self, cache: &DebugInfoCache, lines: &LineInfo) {
        cache.put(&self.0, lines.bytes());
    }

    /// Returns the cached debug information, if no thread is reading it at the moment.
    pub(super) fn if_cached(&self) -> Option<Arc<LineInfo>> {
        let kept = self.0.try_lock().ok()?;
        kept.as_ref()?.as_ref().ok().cloned()
    }
}

/// The cache for all modules, which drops the least recently used entry.
pub(in crate::symbol) struct DebugInfoCache {
    /// The entries with their bytes, the last used at the end.
    kept: Mutex<VecDeque<(Weak<CacheEntry>, u64)>>,
    most: u64,
}

impl Default for DebugInfoCache {
    fn default() -> Self {
        DebugInfoCache { kept: Mutex::default(), most: MOST_BYTES }
    }
}

impl DebugInfoCache {
    /// Drops all entries.
    pub(super) fn clear(&self) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.iter().filter_map(|(one, _)| one.upgrade()).for_each(|one| {
            *one.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
    }

    fn put(&self, slot: &Arc<CacheEntry>, bytes: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Entries of closed files have already been dropped.
        kept.retain(|(one, _)| one.strong_count() > 0 && one.as_ptr() != Arc::as_ptr(slot));
        let mut total: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        while total.saturating_add(bytes) > self.most
            && let Some((oldest, its)) = kept.pop_front()
        {
            total = total.saturating_sub(its);
            if let Some(oldest) = oldest.upgrade() {
                *oldest.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
        kept.push_back((Arc::downgrade(slot), bytes));
    }
}

/// Reads the debug information in the files of the module `module`.
pub(super) fn read(sources: &Sources, module: &Name, budget: &mut Budget) -> Result<LineInfo, NoLines> {
    let none = |why| NoLines::NoDebugInformation { file: module.file_name(), why };
    match sources.debug_source() {
        Ok((source, path)) => {
            LineInfo::read(source, path.unwrap_or(module), budget)?.ok_or_else(|| none(NoSeparate::NotFound))
        }
        Err(NoSymbols::NoDebugInformation(why)) => Err(none(why)),
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::elf::BETWEEN_LOOKS;
    use crate::symbol::tests::builder::{Builder, Extra};

    #[test]
    fn the_least_recently_used_leave_a_full_cache() {
        let of = |size| Builder { sections: vec![Extra::new(".debug_info", vec![0; size])], ..Builder::default() };
        let cache = DebugInfoCache { most: 2500, ..DebugInfoCache::default() };
        let mut budget = Budget::unlimited();
        let mut reads = 0;
        let mut ask = |kept: &CachedLines, size| {
            let before = reads;
            let lines = kept.get(&mut budget, |budget| {
                reads += 1;
                read(&of(size).sources(), &Name::from("/m"), budget)
            });
            let lines = lines.expect("debug information");
            assert!(lines.bytes() >= size as u64);
            kept.touch(&cache, &lines);
            reads > before
        };
        let (first, second, third, large) =
            (CachedLines::default(), CachedLines::default(), CachedLines::default(), CachedLines::default());
        assert!(ask(&first, 1000) && ask(&second, 1000));
        assert!(!ask(&first, 1000) && !ask(&second, 1000));
        // There is no room for three: the first goes.
        assert!(ask(&third, 1000));
        assert!(!ask(&second, 1000) && !ask(&third, 1000));
        assert!(ask(&first, 1000));
        // An entry that is larger than the cache is kept alone.
        assert!(ask(&large, 5000) && !ask(&large, 5000));
        assert!(ask(&third, 1000));
        // The entry of a closed file makes room for others.
        drop(third);
        assert!(ask(&first, 1000) && ask(&second, 1000) && !ask(&first, 1000));
        cache.clear();
        assert!(ask(&first, 1000) && ask(&second, 1000));
    }

    #[test]
    fn what_took_too_long_to_read_is_read_again() {
        let sections = vec![Extra::new(".debug_info", vec![0; 4 * BETWEEN_LOOKS])];
        let sources = Builder { sections, ..Builder::default() }.sources();
        let get = |kept: &CachedLines, mut budget| {
            kept.get(&mut budget, |budget| read(&sources, &Name::from("/m"), budget)).map(|lines| lines.bytes())
        };
        for steps in 0..5 {
            let kept = CachedLines::default();
            let given_up = get(&kept, Budget::unlimited().at_most(steps));
            assert!(matches!(given_up, Err(NoLines::TooCostly)), "{steps} steps: {given_up:?}");
            assert!(get(&kept, Budget::unlimited()).is_ok(), "{steps} steps");
        }
    }
}
