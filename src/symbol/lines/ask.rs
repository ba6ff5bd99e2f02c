//! Queries of lines, and the names of source files for completion.

use super::table::{AddressLine, CachedLines, DebugInfoCache, LineInfo, LineQuery};
use super::{Frame, NoLines, table};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::{Name, VirtualAddress};
use crate::symbol::module::LoadedCopy;
use crate::symbol::module_symbols::ModuleSymbols;
use crate::symbol::{Module, NoSymbols, TargetSymbols};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// The most places of one line: a program may map a library any number of times.
const MOST_PLACES: usize = 1 << 18;

/// The longest query. A longer one is given up, with a reason.
const LONGEST: Duration = Duration::from_secs(20);

/// The debug information about an address.
#[derive(Clone, Debug)]
pub struct LineAt {
    /// The module of the address, by its whole name in `maps`.
    pub module: Option<Name>,
    /// The start and end of the line's code, as the row of the line table has them.
    pub row: Option<(VirtualAddress, VirtualAddress)>,
    /// The function, and the callers into which it was inlined, the innermost first; empty if unknown.
    pub frames: Vec<Frame>,
    /// Why a part is unknown.
    pub missing: Option<NoLines>,
}

/// A run of code that was compiled from a line.
#[derive(Clone, Debug)]
pub struct LinePlace {
    /// The first address.
    pub start: VirtualAddress,
    /// The address after the last: `start`, if the line begins there but has no code.
    pub end: VirtualAddress,
    /// Whether the code is the first statement of the line in its function, or in this copy of an inlined function,
    /// where a debugger stops; or the first code, if the line has no statement there.
    pub is_first: bool,
    /// The functions there, if they were requested.
    pub known: Option<LineAt>,
}

/// The code of a source line.
#[derive(Clone, Debug, Default)]
pub struct LineSearch {
    /// The line with code: the requested one, or the next one that has code.
    pub line: Option<u64>,
    /// The places of the line's code, in order.
    pub places: Vec<LinePlace>,
    /// Whether any module was compiled from such a file.
    pub has_file: bool,
    /// Modules whose debug information could not be searched, with the reasons.
    pub unsearched: Vec<(Name, NoLines)>,
}

impl LineAt {
    /// Makes the answer that nothing is known, for this reason.
    fn unknown(module: Option<&Module>, why: NoLines) -> LineAt {
        LineAt { module: module.map(|module| module.name.clone()), row: None, frames: Vec::new(), missing: Some(why) }
    }
}

impl LineSearch {
    /// Returns where the line begins: once for each function, and for each copy of an inlined one.
    pub fn firsts(&self) -> Vec<VirtualAddress> {
        let firsts = self.places.iter().filter(|place| place.is_first);
        let mut firsts: Vec<VirtualAddress> = firsts.map(|place| place.start).collect();
        firsts.dedup();
        firsts
    }
}

impl TargetSymbols<'_> {
    /// Returns the line from which the code at `address` was compiled, and the functions around it.
    ///
    /// # Errors
    /// Fails on Ctrl-C.
    pub fn line_at(&self, address: VirtualAddress) -> Result<LineAt, OutOfBudget> {
        let Some((module, loaded, copy)) = self.copy_at(address) else {
            let module = self.module_at(address);
            let reason = module.and_then(|module| self.reason(module));
            let why = match (module, reason) {
                (None, _) => NoLines::NoModule,
                (Some(_), Some(NoSymbols::Interrupted)) => return Err(OutOfBudget::Interrupted),
                (Some(_), Some(reason)) => reason.into(),
                (Some(_), None) => NoLines::NotCovered,
            };
            return Ok(LineAt::unknown(module, why));
        };
        let mut budget = self.budget();
        let found = self.lines_of(&loaded.symbols, module, &mut budget).and_then(|lines| {
            let address = copy.file_address(address);
            let symbol = symbol_around(&loaded.symbols, address);
            lines.at(address, symbol.as_ref(), &self.target.modules, &mut budget)
        });
        match found {
            Ok(found) => Ok(line_at(module, copy, found)),
            Err(NoLines::Interrupted) => Err(OutOfBudget::Interrupted),
            Err(why) => Ok(LineAt::unknown(Some(module), why)),
        }
    }

    /// Finds the code of line `line` of `file` (its whole path or the end of it) in all programs and libraries, with
    /// the functions around the first `with_frames` places.
    ///
    /// # Errors
    /// Fails on Ctrl-C.
    pub fn find_line(&self, file: &str, line: u64, with_frames: usize) -> Result<LineSearch, OutOfBudget> {
        let mut search = LineSearch::default();
        let mut frames_left = with_frames;
        let mut budget = self.budget();
        let query = LineQuery { file: file.as_bytes(), line, with_frames };
        for (module, loaded) in self.programs() {
            let places = loaded.map_err(NoLines::from).and_then(|loaded| {
                let symbol = |address| symbol_around(&loaded.symbols, address);
                let lines = self.lines_of(&loaded.symbols, module, &mut budget)?;
                let found = lines.of_line(query, &symbol, &self.target.modules, &mut budget)?;
                Ok((loaded, found))
            });
            match places {
                Err(NoLines::Interrupted) => return Err(OutOfBudget::Interrupted),
                Err(why) => search.unsearched.push((module.file_name(), why)),
                Ok((loaded, places)) => {
                    search.has_file |= places.has_file;
                    if let Some(why) = places.missing {
                        search.unsearched.push((module.file_name(), why));
                    }
                    let Some(line) = places.line else {
                        continue;
                    };
                    if search.line.is_none_or(|known| line < known) {
                        search.line = Some(line);
                        search.places.clear();
                        frames_left = with_frames;
                    }
                    if search.line != Some(line) {
                        continue;
                    }
                    let more = places.places.len().saturating_mul(loaded.copies.len());
                    if search.places.len().saturating_add(more) > MOST_PLACES {
                        search.unsearched.push((module.file_name(), NoLines::TooLarge));
                    }
                    for (place, found) in places.places {
                        let room = MOST_PLACES.saturating_sub(search.places.len());
                        let copies = loaded.copies.iter().take(room);
                        search.places.extend(copies.map(|copy| {
                            let found = found.as_ref().filter(|_| frames_left > 0).cloned();
                            frames_left = frames_left.saturating_sub(usize::from(found.is_some()));
                            LinePlace {
                                start: copy.address(place.row.address),
                                end: copy.address(place.end),
                                is_first: place.is_first,
                                known: found.map(|found| line_at(module, copy, found)),
                            }
                        }));
                    }
                }
            }
        }
        // Units may share code. Of two rows for one place, the one with more facts is kept.
        let order = |place: &LinePlace| (place.start, place.end, !place.is_first, place.known.is_none());
        search.places.sort_by_cached_key(order);
        search.places.dedup_by_key(|place| (place.start, place.end));
        Ok(search)
    }

    /// Returns the budget of a query, which is limited because debug information is not trusted.
    pub(crate) fn budget(&self) -> Budget {
        self.symbols.budget().within(LONGEST)
    }

    /// Returns the debug information of a module, for one query.
    fn lines_of<'l>(
        &'l self,
        loaded: &'l ModuleSymbols,
        module: &Module,
        budget: &mut Budget,
    ) -> Result<QueriedLines<'l>, NoLines> {
        let (lines, cache) = (&loaded.lines, self.symbols.debug_info_cache());
        let read = |budget: &mut Budget| table::read(&loaded.sources, &module.name, budget);
        let mut known = lines.get(budget, read);
        if matches!(known, Err(NoLines::NoFile(NoSymbols::OutOfMemory))) {
            // The debug information of other modules is dropped to make room.
            cache.clear();
            known = lines.get(budget, read);
        }
        Ok(QueriedLines { known: known?, lines, cache })
    }
}

/// The debug information of a module during a query, which may read more of it. At the end it becomes the last used.
struct QueriedLines<'l> {
    known: Arc<LineInfo>,
    lines: &'l CachedLines,
    cache: &'l DebugInfoCache,
}

impl Deref for QueriedLines<'_> {
    type Target = LineInfo;

    fn deref(&self) -> &LineInfo {
        &self.known
    }
}

impl Drop for QueriedLines<'_> {
    fn drop(&mut self) {
        self.lines.touch(self.cache, &self.known);
    }
}

/// Returns the symbol that certainly contains an address: one without a size may end before it.
fn symbol_around(loaded: &ModuleSymbols, address: u64) -> Option<Name> {
    let (symbol, name) = loaded.symbol_at(address)?;
    (symbol.size > 0).then_some(name)
}

fn line_at(module: &Module, copy: &LoadedCopy, found: AddressLine) -> LineAt {
    let (row, end) = found.row;
    LineAt {
        module: Some(module.name.clone()),
        row: Some((copy.address(row.address), copy.address(end))),
        frames: found.frames,
        missing: found.missing,
    }
}

/// The programs and libraries whose source files are offered for completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourcesOf {
    /// Programs and libraries whose debug information was read before.
    Known,
    /// Known programs and libraries, and the executable, whose debug information is read if there is time.
    KnownAndProgram,
}

impl TargetSymbols<'_> {
    /// Returns the ends of source files' paths that begin with `begun`, in order, as they are displayed and typed: at
    /// most `limit`, and as many as are found in `time`.
    pub fn source_files(&self, begun: &str, of: SourcesOf, limit: usize, time: Duration) -> BTreeSet<String> {
        let mut budget = self.budget().within(time);
        let mut names = BTreeSet::new();
        // A program is mapped below its libraries.
        for (number, (module, loaded)) in self.programs().enumerate() {
            if names.len() >= limit || budget.look().is_err() {
                break;
            }
            let Ok(loaded) = loaded else {
                continue;
            };
            let names = &mut names;
            // Names found before the time was up still count.
            _ = match loaded.symbols.lines.if_cached() {
                Some(lines) => lines.add_source_files(begun, limit, names, &mut budget),
                None if number == 0 && of == SourcesOf::KnownAndProgram => self
                    .lines_of(&loaded.symbols, module, &mut budget)
                    .and_then(|lines| lines.add_source_files(begun, limit, names, &mut budget)),
                None => Ok(()),
            };
        }
        names
    }
}
