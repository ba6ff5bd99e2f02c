//! A module whose file was read, and where it was loaded.

use super::SymbolAt;
use super::elf::Segment;
use super::load_bias::LoadedCopy;
use super::module_symbols::ModuleSymbols;
use super::table::Symbol;
use crate::kernel::{AddressRange, Name, PageSize, VirtualAddress};
use std::sync::Arc;

/// The symbols of a module, and its copies in the process.
pub(super) struct LoadedModule {
    /// Its whole name in `maps`.
    pub(super) name: Name,
    pub(super) symbols: Arc<ModuleSymbols>,
    pub(super) copies: Vec<LoadedCopy>,
}

impl LoadedModule {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.symbols.elf().segments
    }

    /// The extent of each copy.
    pub(super) fn hulls(&self, page: PageSize) -> Vec<AddressRange> {
        let hull = |copy: &LoadedCopy| copy.hull(self.segments(), page.bytes());
        self.copies.iter().filter_map(hull).collect()
    }

    /// The pages of each segment of each copy, `.bss` included.
    pub(super) fn memory(&self, page: PageSize) -> impl Iterator<Item = AddressRange> {
        self.copies.iter().flat_map(move |copy| {
            let segments = self.segments().iter();
            segments.filter_map(move |segment| copy.memory(segment, page.bytes()))
        })
    }

    /// A symbol, once for each copy.
    pub(super) fn in_each_copy(&self, symbol: &Symbol, mangled: &Name) -> impl Iterator<Item = SymbolAt> {
        let copies = self.copies.iter();
        copies.map(|copy| self.symbol_at(copy, symbol, mangled.clone(), 0))
    }

    /// A symbol in a copy; `offset` is the distance of the requested address from its start.
    pub(super) fn symbol_at(&self, copy: &LoadedCopy, symbol: &Symbol, mangled: Name, offset: u64) -> SymbolAt {
        let section = symbol.section.and_then(|number| self.symbols.elf().section_name(number.into()));
        SymbolAt {
            mangled,
            start: copy.address(symbol.address),
            size: symbol.size,
            offset,
            kind: symbol.kind,
            local: symbol.local,
            section: section.map(Name::copied),
            module: self.name.clone(),
            file_address: VirtualAddress::new(symbol.address),
        }
    }
}
