//! The questions that a view answers about lines.

use super::table::{Found, Lines};
use super::work::{Stop, Work};
use super::{Frame, NoLines, kept};
use crate::kernel::{Name, VirtualAddress};
use crate::report::Stopped;
use crate::symbol::loaded::Loaded;
use crate::symbol::{Module, View};
use std::sync::Arc;

/// What debug information says of an address.
#[derive(Clone, Debug)]
pub struct LineAt {
    /// The module it belongs to, by its whole name in `maps`.
    pub module: Option<Name>,
    /// The function, and those it was inlined into, the innermost first; empty where nothing is known.
    pub frames: Vec<Frame>,
    /// Why not everything is known.
    pub missing: Option<NoLines>,
}

/// Where a line of the source has code.
#[derive(Clone, Debug, Default)]
pub struct LineSearch {
    /// The line that has code: the one asked for, or the first behind it that has.
    pub line: Option<u64>,
    /// Where, in order: once for each function, and for each copy of an inlined one.
    pub addresses: Vec<VirtualAddress>,
    /// Whether any module was compiled from such a file.
    pub has_file: bool,
    /// Modules that could not be asked, and why.
    pub silent: Vec<(Name, NoLines)>,
}

impl View<'_> {
    /// The line that `address` was compiled from, and the functions around it. `stop` is asked now and then whether to go on.
    ///
    /// # Errors
    /// What `stop` says.
    pub fn line_at(&self, address: VirtualAddress, stop: &mut Stop) -> Result<LineAt, Stopped> {
        let Some((module, placed, copy)) = self.copy_at(address) else {
            let module = self.module_at(address);
            let reason = module.and_then(|module| self.reason(module));
            return Ok(LineAt {
                module: module.map(|module| module.name.clone()),
                frames: Vec::new(),
                missing: Some(match (module, reason) {
                    (None, _) => NoLines::NoModule,
                    (Some(_), Some(reason)) => NoLines::NoFile(reason),
                    (Some(_), None) => NoLines::NotCovered,
                }),
            });
        };
        let mut work = Work::new(stop, self.symbols.interrupts());
        let found = self
            .lines_of(&placed.loaded, module, &mut work)
            .and_then(|lines| {
                let address = copy.file_address(address);
                let symbol = placed.loaded.symbol_at(address);
                lines.at(address, symbol.as_ref().map(|(_, name)| name), &mut work)
            });
        let Found { frames, missing } = match found {
            Err(NoLines::Stopped(stopped)) => return Err(stopped),
            Err(why) => Found {
                frames: Vec::new(),
                missing: Some(why),
            },
            Ok(found) => found,
        };
        Ok(LineAt {
            module: Some(module.name.clone()),
            frames,
            missing,
        })
    }

    /// Where line `line` of `file` (its whole path or the end of it) has code, in any program or library.
    ///
    /// # Errors
    /// What `stop` says.
    pub fn find_line(&self, file: &str, line: u64, stop: &mut Stop) -> Result<LineSearch, Stopped> {
        let mut search = LineSearch::default();
        let mut work = Work::new(stop, self.symbols.interrupts());
        for (module, placed) in self.programs() {
            let places = placed.map_err(NoLines::NoFile).and_then(|placed| {
                let lines = self.lines_of(&placed.loaded, module, &mut work)?;
                Ok((placed, lines.of_line(file.as_bytes(), line, &mut work)?))
            });
            match places {
                Err(NoLines::Stopped(stopped)) => return Err(stopped),
                Err(why) => search.silent.push((module.file_name(), why)),
                Ok((placed, places)) => {
                    search.has_file |= places.has_file;
                    if let Some(why) = places.missing {
                        search.silent.push((module.file_name(), why));
                    }
                    let Some(line) = places.line else {
                        continue;
                    };
                    if search.line.is_none_or(|known| line < known) {
                        search.line = Some(line);
                        search.addresses.clear();
                    }
                    if search.line == Some(line) {
                        let copies = placed.copies.iter().flat_map(|copy| {
                            let addresses = places.addresses.iter();
                            addresses.map(|&address| copy.address(address))
                        });
                        search.addresses.extend(copies);
                    }
                }
            }
        }
        search.addresses.sort_unstable();
        search.addresses.dedup();
        Ok(search)
    }

    /// The debug information of a module.
    fn lines_of(
        &self,
        loaded: &Loaded,
        module: &Module,
        work: &mut Work,
    ) -> Result<Arc<Lines>, NoLines> {
        let Loaded { lines, sources, .. } = loaded;
        lines.get(self.symbols.shelf(), work, |work| {
            kept::read(sources, &module.name, work)
        })
    }
}
