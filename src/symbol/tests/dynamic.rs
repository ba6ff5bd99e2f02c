//! Symbols of a file without section headers.

use super::super::elf::{BoundedFile, ElfFile};
use super::super::files::{NamesFrom, Sources};
use super::super::module_symbols::ModuleSymbols;
use super::super::table::{self, SymbolKind, SymbolPass};
use crate::budget::Budget;
use crate::process::InMemory;
use std::collections::BTreeSet;

/// The C library that this test runs with, if it is a file with section headers; its bytes.
fn c_library() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("/libc.so.6"))?;
    let path = line.get(line.find('/')?..)?;
    let bytes = std::fs::read(path).ok()?;
    (bytes.get(4) == Some(&2) && bytes.get(5) == Some(&1)).then_some(bytes)
}

fn loaded(bytes: Vec<u8>) -> ModuleSymbols {
    let source = ElfFile::read(BoundedFile::new(Box::new(InMemory::file(bytes))), &mut Budget::unlimited()).unwrap();
    ModuleSymbols::new(Sources::without_separate(source), 1)
}

/// Addresses and names of the dynamic table.
fn exported(loaded: &ModuleSymbols) -> BTreeSet<(u64, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut symbols = SymbolPass::new(&loaded.sources);
    while let Some(symbol) = symbols.next(&mut Budget::unlimited()).unwrap() {
        let (_, table) = loaded.sources.table(symbol.table).unwrap();
        if !table.is_full && symbol.kind != SymbolKind::Tls {
            let name = table::name(&loaded.sources, &symbol).unwrap();
            found.insert((symbol.address, name));
        }
    }
    found
}

#[test]
fn a_file_without_section_headers_answers_by_its_dynamic_segment() {
    let Some(bytes) = c_library() else {
        let name = "symbol::a_file_without_section_headers";
        return crate::skips::skip(name, "no 64-bit little-endian libc.so.6 is mapped here");
    };
    let mut bare = bytes.clone();
    // e_shoff; e_shentsize, e_shnum and e_shstrndx
    bare[40..48].fill(0);
    bare[58..64].fill(0);
    let (whole, bare) = (loaded(bytes), loaded(bare));
    assert!(bare.elf().sections.is_empty());
    assert_eq!(bare.sources.answers(), Some(NamesFrom::DynamicTable));
    let names = exported(&whole);
    assert!(names.len() > 1000, "{}", names.len());
    assert_eq!(exported(&bare), names);
    for (address, _) in names.iter().step_by(97) {
        let name = |loaded: &ModuleSymbols| loaded.symbol_at(*address).map(|(_, name)| name);
        assert!(name(&bare).is_some(), "{address:#x}");
        if !whole.elf().has_full_table() {
            assert_eq!(name(&bare), name(&whole), "{address:#x}");
        }
    }
}
