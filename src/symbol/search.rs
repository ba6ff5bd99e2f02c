//! Finds the symbols of one module by name, and names with a prefix. Symbol versions (`malloc@@GLIBC_2.2.5`) are read
//! only for symbols whose names match.

use super::NoSymbols;
use super::demangle::{NameQuery, may_be_mangled, readable, split_version};
use super::elf::{BoundedFile, ElfFile, FileRange, VersionTable};
use super::files::Sources;
use super::module_symbols::ModuleSymbols;
use super::table::{NamedSymbols, Symbol, SymbolKind};
use crate::budget::Budget;
use crate::kernel::Name;
use object::Endianness;
use object::elf::{VER_NDX_GLOBAL, Verdaux, Verdef, Vernaux, Verneed, VersionIndex, Versym, VersymIndex};
use object::pod::{self, Pod};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The most symbols of one name that are listed.
const MOST_MATCHES: usize = 1000;
/// The bytes of a matching symbol besides its name.
const BESIDE_NAME: usize = size_of::<((Box<str>, u64), Symbol)>();

/// Limits on the symbols that match an expression.
pub(super) struct Limits {
    /// The most symbols.
    pub(super) symbols: usize,
    /// The most bytes for them and their names.
    pub(super) bytes: u64,
}

/// The result of [`ModuleSymbols::search_names`].
#[derive(Default)]
pub(super) struct MatchingSymbols {
    /// The symbols, by name.
    pub(super) symbols: Vec<Symbol>,
    /// Whether the last names were left out to save memory.
    pub(super) has_too_many: bool,
}

impl ModuleSymbols {
    /// Returns the symbols that `query` selects, including thread-local ones, stubs and slots. Old versions count only
    /// if there is no current one.
    pub(super) fn find(&self, query: &str) -> Result<NamedSymbols, NoSymbols> {
        if let Some(found) = self.searches.find(query) {
            return Ok(found);
        }
        let symbols = self.search(query, &mut self.budget());
        let symbols = symbols.inspect_err(|reason| self.fail(reason.clone()))?;
        if symbols.is_empty()
            && let Some(reason @ NoSymbols::TooCostly) = self.sources.no_debugdata()
        {
            // The table that was not decompressed may contain the name.
            return Err(reason.clone());
        }
        self.searches.keep(query, &symbols);
        Ok(symbols)
    }

    fn search(&self, query: &str, budget: &mut Budget) -> Result<NamedSymbols, NoSymbols> {
        let plt_got = self.plt_got_called(query, budget)?;
        let query = NameQuery::whole(query);
        let mut matches: Vec<(Symbol, Name, bool)> = Vec::new();
        let (mut symbols, names) = self.where_named(&query, budget)?;
        while matches.len() < MOST_MATCHES
            && let Some(symbol) = symbols.next(budget)?
        {
            let rest = names.from(&symbol);
            let is_match = query.is_spelled_by(rest)
                || query.version_of(rest).is_some_and(|wanted| self.has_version(&symbol, wanted, budget))
                || (may_be_mangled(rest) && names.get(&symbol).is_some_and(|name| query.is_meant_by(name)));
            if is_match && let Some(name) = names.get(&symbol) {
                let (base, old) = split_version(name);
                let known = matches.iter_mut().find(|(other, other_name, _)| {
                    other.address == symbol.address && split_version(other_name.as_bytes()).0 == base
                });
                let mut is_old = || old || self.version(&symbol, budget).is_some_and(|version| version.is_old);
                match known {
                    None => matches.push((symbol, Name::new(name), is_old())),
                    // The current version replaces an old one at the same address.
                    Some(known) if known.2 && !is_old() => *known = (symbol, Name::new(name), false),
                    Some(_) => {}
                }
            }
            budget.check()?;
        }
        if matches.iter().any(|(_, _, old)| !old) {
            matches.retain(|(_, _, old)| !old);
        }
        let listed = matches.into_iter().map(|(symbol, name, _)| (symbol, name));
        Ok(listed.chain(plt_got).take(MOST_MATCHES).collect())
    }

    /// Returns the symbols whose demangled or raw names `is_match` accepts, by name: the first ones that the `limits`
    /// allow. Thread-local symbols have no address and are left out.
    pub(super) fn search_names(
        &self,
        is_match: &dyn Fn(&str) -> bool,
        limits: &Limits,
        budget: &mut Budget,
    ) -> Result<MatchingSymbols, NoSymbols> {
        // A symbol in both tables is listed once, from the first table, even if only one table spells out its version.
        let mut by_name: BTreeMap<(Box<str>, u64), Symbol> = BTreeMap::new();
        let (mut bytes, mut too_many) = (0, false);
        let (mut symbols, names) = self.all(budget)?;
        while let Some(symbol) = symbols.next(budget)? {
            if symbol.kind != SymbolKind::Tls
                && let Some(raw) = names.get(&symbol)
            {
                let name = Name::new(raw);
                let shown = readable(&name).to_string();
                if is_match(&shown) || (may_be_mangled(raw) && is_match(&name.to_string())) {
                    let base = shown.split_once('@').map_or(&*shown, |(base, _)| base);
                    match by_name.entry((base.into(), symbol.address)) {
                        Entry::Vacant(place) => {
                            bytes += place.key().0.len() + BESIDE_NAME;
                            place.insert(symbol);
                        }
                        // The current version, whose name is shown without it, replaces an old one.
                        Entry::Occupied(mut place) if place.get().table == symbol.table && *shown == *base => {
                            place.insert(symbol);
                        }
                        Entry::Occupied(_) => {}
                    }
                }
            }
            while by_name.len() > limits.symbols || bytes as u64 > limits.bytes {
                too_many |= by_name.len() <= limits.symbols;
                let Some(((name, _), _)) = by_name.pop_last() else {
                    break;
                };
                bytes -= name.len() + BESIDE_NAME;
            }
        }
        Ok(MatchingSymbols { symbols: by_name.into_values().collect(), has_too_many: too_many })
    }

    fn version(&self, symbol: &Symbol, budget: &mut Budget) -> Option<Version> {
        Version::of(&self.sources, symbol, budget)
    }

    /// Returns whether a symbol has the version with this name, and it is current if the query requires that.
    fn has_version(&self, symbol: &Symbol, (wanted, current_only): (&[u8], bool), budget: &mut Budget) -> bool {
        self.version(symbol, budget).is_some_and(|version| {
            let name = version.name(&self.sources, symbol, budget);
            name.as_deref() == Some(wanted) && !(version.is_old && current_only)
        })
    }
}

/// The most bytes of a table of version names: that of the C library has less than 2 KiB.
const LARGEST: u64 = 1 << 20;

/// The version of a symbol. If the budget does not allow to read it, it counts as none, and the caller checks the
/// budget.
struct Version {
    /// The number in the table of version names; 0 and 1 have none.
    number: VersionIndex,
    /// Whether the version is only for programs that were linked long ago: the plain name does not select it.
    pub(super) is_old: bool,
}

impl Version {
    /// Returns the version of a symbol, if its table has versions.
    pub(super) fn of(sources: &Sources, symbol: &Symbol, budget: &mut Budget) -> Option<Version> {
        let (ElfFile { file, elf }, table) = sources.table(symbol.table)?;
        let offset = table.versions?.checked_add(2 * u64::from(symbol.number))?;
        let range = FileRange { offset, size: 2 };
        let bytes = file.read(range, "symbol versions", budget).ok()?;
        let word = part::<Versym<Endianness>>(&bytes, 0)?.0.get(elf.endian);
        Some(Version { number: word.index(), is_old: word.is_hidden() })
    }

    /// Returns the name of the version in the file: `GLIBC_2.2.5`.
    pub(super) fn name(&self, sources: &Sources, symbol: &Symbol, budget: &mut Budget) -> Option<Vec<u8>> {
        let (ElfFile { file, elf }, _) = sources.table(symbol.table)?;
        if self.number <= VER_NDX_GLOBAL {
            return None;
        }
        let defined = elf.versions_defined.and_then(|table| {
            let bytes = table.read(file, budget)?;
            let name = self.among_defined(&bytes, elf.endian, budget)?;
            file.string(table.strings, name)
        });
        // The program's copy of a library's variable has the version that the program needs.
        defined.or_else(|| {
            let table = elf.versions_needed?;
            let bytes = table.read(file, budget)?;
            let name = self.among_needed(&bytes, elf.endian, budget)?;
            file.string(table.strings, name)
        })
    }

    fn among_defined(&self, bytes: &[u8], endian: Endianness, budget: &mut Budget) -> Option<u32> {
        let mut at = Some(0);
        while let Some(place) = at {
            budget.go_on().ok()?;
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

    fn among_needed(&self, bytes: &[u8], endian: Endianness, budget: &mut Budget) -> Option<u32> {
        // In a hostile file the chains of different libraries may overlap, so the limit is on all steps together.
        let mut steps = bytes.len() / size_of::<Vernaux<Endianness>>();
        let mut library = Some(0);
        while let Some(place) = library {
            budget.go_on().ok()?;
            let needed = part::<Verneed<Endianness>>(bytes, place)?;
            let mut at = further(place, needed.vn_aux.get(endian));
            while let Some(place) = at {
                steps = steps.checked_sub(1)?;
                budget.go_on().ok()?;
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
    fn read(&self, file: &BoundedFile, budget: &mut Budget) -> Option<Vec<u8>> {
        let range = Some(self.entries).filter(|range| range.size <= LARGEST)?;
        file.read(range, "version names", budget).ok()
    }
}

/// Returns the next link of a chain. A link to itself or to an earlier one ends the chain.
fn further(at: usize, by: u32) -> Option<usize> {
    let by = usize::try_from(by).ok().filter(|&by| by > 0)?;
    at.checked_add(by)
}

fn part<T: Pod>(bytes: &[u8], at: usize) -> Option<&T> {
    let (part, _) = pod::from_bytes::<T>(bytes.get(at..)?).ok()?;
    Some(part)
}
