//! A module whose files were opened: their headers, the index that is built after several look-ups, the latest searches
//! by name, and the copies in the process.

use super::demangle::{NameQuery, plt_got_suffix, readable};
use super::elf::{Elf, Relocations, Segment};
use super::files::Sources;
use super::lines::CachedLines;
use super::lookup::{self, SymbolIndex};
use super::module::LoadedCopy;
use super::table::{self, NamedSymbols, StringTables, Symbol, SymbolPass};
use super::{NoSymbols, SymbolKind};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Name, PageSize, VirtualAddress};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The number of single look-ups after which an index is built.
const LOOK_UPS_BEFORE_INDEX: u32 = 4;

/// The longest pass over a module (with millions of hostile names). A longer one is given up, with a reason; Ctrl-C
/// ends it sooner.
const LONGEST_PASS: Duration = Duration::from_secs(60);

/// The files of a module, opened for their symbols. They stay open, so that their inodes are not reused.
pub(super) struct ModuleSymbols {
    pub(super) sources: Sources,
    /// The number of the last [`TargetSymbols`](super::TargetSymbols) for which the files were found unchanged.
    pub(super) seen: AtomicU64,
    look_ups: AtomicU32,
    index: OnceLock<Option<SymbolIndex>>,
    fault: OnceLock<NoSymbols>,
    relocations: Relocations,
    /// The results of the latest searches by name.
    pub(super) searches: SearchCache,
    /// The debug information of the module.
    pub(super) lines: CachedLines,
}

impl ModuleSymbols {
    pub(super) fn new(sources: Sources, seen: u64) -> Self {
        ModuleSymbols {
            sources,
            seen: AtomicU64::new(seen),
            look_ups: AtomicU32::new(0),
            index: OnceLock::new(),
            fault: OnceLock::new(),
            relocations: Relocations::default(),
            searches: SearchCache::default(),
            lines: CachedLines::default(),
        }
    }

    /// Returns the headers of the mapped file.
    pub(super) fn elf(&self) -> &Elf {
        &self.sources.image.elf
    }

    /// Returns the symbol of a file address and its name. For a stub or slot through which another file's function is
    /// called, that is the name of the function with a suffix.
    pub(super) fn symbol_at(&self, address: u64) -> Option<(Symbol, Name)> {
        let listed = self.table_symbol_at(address);
        if listed.as_ref().is_some_and(|(symbol, _)| symbol.size > 0) {
            return listed;
        }
        // `_GLOBAL_OFFSET_TABLE_` has no size, and would cover all slots.
        let image = &self.sources.image;
        table::import_at(image, &self.relocations, address, &mut self.budget()).or(listed)
    }

    /// Returns the stubs or slots for imported functions that `name` selects: `malloc@plt`, `malloc@got.plt`.
    pub(super) fn plt_got_called(&self, name: &str, budget: &mut Budget) -> Result<NamedSymbols, NoSymbols> {
        table::imports_called(&self.sources.image, &self.relocations, name, budget)
    }

    /// Returns the symbol of a table: the first few times by a pass over the tables, then by an index.
    fn table_symbol_at(&self, address: u64) -> Option<(Symbol, Name)> {
        if let Some(index) = self.index() {
            let (symbol, name) = index.symbol_at(address)?;
            return Some((symbol, Name::copied(name)));
        }
        if self.fault.get().is_some() {
            return None;
        }
        self.look_ups.fetch_add(1, Ordering::Relaxed);
        let symbol =
            lookup::look_up(&self.sources, address, &mut self.budget()).map_err(|reason| self.fail(reason)).ok()??;
        let name = table::name(&self.sources, &symbol)?;
        Some((symbol, Name::new(name)))
    }

    /// Returns whether the variable at a file address is a copy of a library's, which all files use. Fails if the
    /// search was given up.
    pub(super) fn is_copied_variable(&self, address: u64) -> Result<bool, NoSymbols> {
        let image = &self.sources.image;
        let targets = self.relocations.of(image, &mut self.budget())?;
        Ok(targets.copies.contains(&address))
    }

    /// Returns the file addresses of the slots that get the address of the function chosen by the resolver at a file
    /// address.
    pub(super) fn slots_of_resolver(&self, address: u64) -> Result<Vec<u64>, NoSymbols> {
        let targets = self.relocations.of(&self.sources.image, &mut self.budget())?;
        Ok(targets.indirect.get(&address).cloned().unwrap_or_default())
    }

    /// Returns the budget of a pass over the tables.
    pub(super) fn budget(&self) -> Budget {
        self.sources.budget().within(LONGEST_PASS)
    }

    /// Returns the index, after several look-ups; `None` also if the file cannot have one.
    fn index(&self) -> Option<&SymbolIndex> {
        if self.look_ups.load(Ordering::Relaxed) < LOOK_UPS_BEFORE_INDEX {
            return None;
        }
        if let Some(known) = self.index.get() {
            return known.as_ref();
        }
        let index = match SymbolIndex::build(&self.sources, &mut self.budget()) {
            Ok(index) => index,
            // The next command may build it.
            Err(NoSymbols::Interrupted) => return None,
            Err(reason) => {
                self.fail(reason);
                None
            }
        };
        self.index.get_or_init(|| index).as_ref()
    }

    /// Returns all symbols with all names, from the index or read now.
    pub(super) fn all(&self, budget: &mut Budget) -> Result<(SymbolPass<'_>, Arc<StringTables>), NoSymbols> {
        self.of_tables(Vec::new(), budget)
    }

    /// Returns the symbols of the tables that may contain the name of `query`, with the names of these tables.
    pub(super) fn where_named(
        &self,
        query: &NameQuery<'_>,
        budget: &mut Budget,
    ) -> Result<(SymbolPass<'_>, Arc<StringTables>), NoSymbols> {
        let may_name = |strings: &[u8]| query.may_be_among(strings);
        let index = self.index.get().and_then(Option::as_ref);
        let mut wanted = Vec::new();
        for (number, (source, table)) in self.sources.numbered_tables() {
            wanted.push(match index {
                Some(index) => may_name(index.names().of_table(number)),
                None => table::has(&source.file, table.strings, query.length(), &may_name, budget)?,
            });
        }
        self.of_tables(wanted, budget)
    }

    fn of_tables(
        &self,
        wanted: Vec<bool>,
        budget: &mut Budget,
    ) -> Result<(SymbolPass<'_>, Arc<StringTables>), NoSymbols> {
        let names = match self.index.get() {
            Some(Some(index)) => Arc::clone(index.names()),
            _ => Arc::new(StringTables::read_some(&self.sources, &wanted, budget)?),
        };
        Ok((SymbolPass::of_tables(&self.sources, wanted), names))
    }

    /// Keeps the first reason why the tables gave nothing. A search that was given up does not count, because another
    /// query may succeed.
    pub(super) fn fail(&self, reason: NoSymbols) {
        if !reason.is_passing() {
            _ = self.fault.set(reason);
        }
    }

    /// Returns why there are no symbols, as far as that is known without a pass over the tables.
    pub(super) fn fault(&self) -> Option<NoSymbols> {
        if self.sources.tables().next().is_none() { Some(self.sources.no_table()) } else { self.fault.get().cloned() }
    }
}

/// The most searches that are kept for one module.
const MOST: usize = 64;
/// The most matches of a search that is kept, and the longest query: so the caches of all modules stay small.
const MOST_MATCHES: usize = 16;
const LONGEST_QUERY: usize = 256;

/// The searches with their results, the latest last.
#[derive(Default)]
pub(super) struct SearchCache(Mutex<VecDeque<(Box<str>, NamedSymbols)>>);

impl SearchCache {
    /// Returns the kept result of a search for `query`.
    pub(super) fn find(&self, query: &str) -> Option<NamedSymbols> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, found) = kept.iter().find(|(of, _)| **of == *query)?;
        Some(found.clone())
    }

    /// Keeps the result of a finished search, in place of the oldest.
    pub(super) fn keep(&self, query: &str, found: &NamedSymbols) {
        if found.len() > MOST_MATCHES || query.len() > LONGEST_QUERY {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((query.into(), found.clone()));
    }
}

/// The symbols of a module, and its copies in the process.
pub(super) struct LoadedModule {
    /// The whole name of the module in `maps`.
    pub(super) name: Name,
    pub(super) symbols: Arc<ModuleSymbols>,
    pub(super) copies: Vec<LoadedCopy>,
}

impl LoadedModule {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.symbols.elf().segments
    }

    /// Returns the extent of each copy.
    pub(super) fn hulls(&self, page: PageSize) -> Vec<AddressRange> {
        let hull = |copy: &LoadedCopy| copy.hull(self.segments(), page.bytes());
        self.copies.iter().filter_map(hull).collect()
    }

    /// Returns the pages of each segment of each copy, including `.bss`.
    pub(super) fn memory(&self, page: PageSize) -> impl Iterator<Item = AddressRange> {
        self.copies.iter().flat_map(move |copy| {
            let segments = self.segments().iter();
            segments.filter_map(move |segment| copy.memory(segment, page.bytes()))
        })
    }

    /// Returns the pages of the writable segments of each copy, including `.bss`.
    pub(super) fn variables(&self, page: PageSize) -> impl Iterator<Item = AddressRange> {
        let writable = self.segments().iter().filter(|segment| segment.is_writable);
        writable.flat_map(move |segment| self.copies.iter().filter_map(move |copy| copy.memory(segment, page.bytes())))
    }

    /// Returns a symbol once for each copy.
    pub(super) fn in_each_copy(&self, symbol: &Symbol, mangled: &Name) -> impl Iterator<Item = SymbolAt> {
        let copies = self.copies.iter();
        copies.map(|copy| self.symbol_at(copy, symbol, mangled.clone(), 0))
    }

    /// Returns a symbol in a copy; `offset` is the distance of the requested address from its start.
    pub(super) fn symbol_at(&self, copy: &LoadedCopy, symbol: &Symbol, mangled: Name, offset: u64) -> SymbolAt {
        let section = symbol.section.and_then(|number| self.symbols.elf().section_name(number.into()));
        SymbolAt {
            mangled,
            start: copy.address(symbol.address),
            size: symbol.size,
            offset,
            kind: symbol.kind,
            is_local: symbol.is_local,
            section: section.map(Name::copied),
            module: self.name.clone(),
            file_address: VirtualAddress::new(symbol.address),
        }
    }
}

/// A symbol at its address in the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolAt {
    /// The name as the file spells it; [`SymbolAt::name`] is for display.
    pub mangled: Name,
    /// The address of the first byte in the process.
    pub start: VirtualAddress,
    /// The size in bytes; 0 if the file does not have it.
    pub size: u64,
    /// The distance of the requested address from the start; 0 for a query by name.
    pub offset: u64,
    /// The kind of the symbol.
    pub kind: SymbolKind,
    /// Whether the symbol is visible only in its file (static).
    pub is_local: bool,
    /// The ELF section of the symbol.
    pub section: Option<Name>,
    /// The module that defines the symbol, by its whole name in `maps`.
    pub module: Name,
    /// The address of the first byte in the file, as objdump shows it.
    pub file_address: VirtualAddress,
}

impl SymbolAt {
    /// Returns the demangled name for display, without hash and without a default version.
    pub fn name(&self) -> Name {
        readable(&self.mangled)
    }

    /// Returns whether this is only a stub or slot for an imported function: `malloc@plt`, `malloc@got.plt`. Each file
    /// has separate ones.
    pub fn is_plt_or_got(&self) -> bool {
        self.is_local && plt_got_suffix(self.mangled.as_bytes()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::NoSeparate;
    use crate::symbol::elf::{BoundedFile, ElfFile};
    use crate::symbol::expanded::ExpandedMemory;
    use crate::symbol::files::Candidates;
    use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn an_index_that_was_interrupted_is_built_later() {
        let bytes = Builder::with(vec![entry("main", 0x1000, 0x10, GLOBAL, FUNCTION)]).bytes();
        let image =
            ElfFile::read(BoundedFile::new(Box::new(crate::process::InMemory::file(bytes))), &mut Budget::unlimited())
                .expect("a program");
        let pressed = Arc::new(AtomicBool::new(false));
        let separate = Candidates::none(NoSeparate::NotFound, &Budget::until(Arc::clone(&pressed)));
        let sources = Sources::new(image, separate, &ExpandedMemory::default()).expect("its tables");
        let module = ModuleSymbols::new(sources, 1);
        module.look_ups.store(LOOK_UPS_BEFORE_INDEX, Ordering::Relaxed);
        pressed.store(true, Ordering::Relaxed);
        assert!(module.index().is_none());
        pressed.store(false, Ordering::Relaxed);
        assert!(module.index().is_some());
    }
}
