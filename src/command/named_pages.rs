//! `by symbol`: the symbol in which a page begins, or the variable that points to its memory. An array of pointers is
//! one group.

use crate::inspect::{AddressNames, AddressSpace, Page, parts_by_symbol};
use crate::kernel::{Name, PageSize, VirtualAddress, maps};
use crate::render::text::block::{DELETED, SHARED_ANONYMOUS, mapped_name, object_number, region_name};
use crate::symbol::{self, Symbols};
use std::collections::HashMap;

/// The key for pages that begin in no symbol: the name of their region.
pub(super) fn name_among_symbols(region: &Name) -> String {
    region_name(region).1.into_owned()
}

/// The name of a file or an object that regions map, with a mark if it was deleted.
pub(super) fn name_of_mapping(name: &Name, is_deleted: bool, is_without_path: bool) -> String {
    mapped_name(name, is_without_path).1.into_owned() + if is_deleted { DELETED } else { "" }
}

/// The name of what a group maps, with its number if it may share the name with others.
pub(super) fn named_object(key: &str, number: Option<u64>) -> String {
    let is_shared = key.ends_with(DELETED) || key == SHARED_ANONYMOUS || maps::is_of_kernel(key.as_bytes());
    key.to_owned() + &object_number(key.as_bytes(), number.filter(|_| is_shared))
}

/// The names of addresses in the space. If it has only some regions, the others are read when a name needs them.
pub(super) fn names_in<'a>(space: &'a AddressSpace, symbols: &'a Symbols) -> symbol::TargetSymbols<'a> {
    let target = space.target();
    if space.is_complete() { symbols.over(target, space.regions()) } else { symbols.on_demand(target) }
}

/// Numbers for the names of the addresses at which pages begin.
pub(super) struct PagesOfSymbols<'a> {
    names: AddressNames<'a>,
    size: PageSize,
    /// The name of each number.
    called: Vec<String>,
    /// The numbers, by the first address with the name.
    numbers: HashMap<VirtualAddress, u32>,
}

impl<'a> PagesOfSymbols<'a> {
    pub fn new(symbols: symbol::TargetSymbols<'a>, size: PageSize) -> Self {
        let names = AddressNames::new(symbols);
        PagesOfSymbols { names, size, called: Vec::new(), numbers: HashMap::new() }
    }

    /// The names of addresses.
    pub fn names(&self) -> &AddressNames<'a> {
        &self.names
    }

    /// The name that a number stands for.
    pub fn name(&self, number: u32) -> String {
        let name = usize::try_from(number).ok().and_then(|at| self.called.get(at));
        name.cloned().unwrap_or_default()
    }

    /// The pages in parts, each with the number of the symbol in which its pages begin. Memory that can have no symbol,
    /// and the inside of a symbol that is longer than a page, needs no look-up for each page.
    pub fn part(&mut self, pages: &Page) -> impl Iterator<Item = (Page, Option<u32>)> {
        let parts = parts_by_symbol(self.size, pages.address, pages.pages, |address| self.at(address));
        parts.map(|(address, count, symbol)| (Page { address, pages: count, ..*pages }, symbol))
    }

    /// The number of the symbol at an address where a page begins, and how many pages begin in it from there on.
    pub fn at(&mut self, address: VirtualAddress) -> (Option<u32>, u64) {
        let name = match self.names.group_or_unnamed(address) {
            Ok(name) => name,
            Err(bytes) => return (None, bytes.div_ceil(self.size.bytes()).max(1)),
        };
        let next = u32::try_from(self.called.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(name.start).or_insert(next);
        if number == next {
            self.called.push(format!("{} of {}", name.name, name.module));
        }
        (Some(number), name.left.div_ceil(self.size.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A private mapping of the device is no object.
    #[test]
    fn shared_memory_without_a_name_has_its_number() {
        let name = Name::from("/dev/zero");
        let of_mapping = |is_without_path| name_of_mapping(&name, false, is_without_path);
        assert_eq!(named_object(&of_mapping(true), Some(1030)), "(shared anonymous), inode 1030");
        assert_eq!(of_mapping(false), "/dev/zero");
        assert_eq!(name_of_mapping(&Name::from("/memfd:ring"), false, true), "/memfd:ring");
    }
}
