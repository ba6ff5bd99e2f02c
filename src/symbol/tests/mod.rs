//! Unit tests, with files that the tests write themselves: intact, odd and damaged.

pub(crate) mod builder;
#[cfg(feature = "cli")]
pub(crate) mod compiled;
mod dynamic;
mod hostile;
mod separate;
mod within_budget;

use super::elf::{BoundedFile, ElfFile};
use super::files::Sources;
use super::lookup;
use super::lookup::SymbolIndex;
use super::module_symbols::ModuleSymbols;
use super::table::{self, SymbolKind};
use crate::budget::Budget;
use crate::process::InMemory;
use builder::*;
use proptest::prelude::*;

/// The name at an address by one pass, after checking that the index says the same.
fn name_at(sources: &Sources, address: u64) -> Option<String> {
    let passed = lookup::look_up(sources, address, &mut Budget::unlimited()).unwrap();
    let index = SymbolIndex::build(sources, &mut Budget::unlimited()).unwrap().unwrap();
    let number = |symbol: &table::Symbol| (symbol.table, symbol.number);
    let indexed = index.symbol_at(address);
    assert_eq!(
        passed.as_ref().map(number),
        indexed.as_ref().map(|(symbol, _)| number(symbol)),
        "pass and index differ at {address:#x}"
    );
    let name = table::name(sources, &passed?)?;
    Some(String::from_utf8(name).unwrap())
}

fn names_at(symbols: Vec<Entry>, addresses: &[u64]) -> Vec<Option<String>> {
    let sources = Builder::with(symbols).sources();
    addresses.iter().map(|&one| name_at(&sources, one)).collect()
}

fn some(name: &str) -> Option<String> {
    Some(name.into())
}

#[test]
fn the_current_version_replaces_an_old_one_of_the_same_code() {
    let old_first = Builder::with(vec![
        entry("nap@V_1", 0x1000, 0x20, GLOBAL, FUNCTION),
        entry("nap@@V_2.17", 0x1000, 0x20, GLOBAL, FUNCTION),
        entry("rest_np@V_1", 0x1040, 0x20, GLOBAL, FUNCTION),
        entry("rest@V_1", 0x1040, 0x20, GLOBAL, FUNCTION),
        entry("rest_well@@V_2", 0x1040, 0x20, GLOBAL, FUNCTION),
    ]);
    let loaded = ModuleSymbols::new(old_first.sources(), 1);
    for _ in 0..8 {
        // By one pass over the table, then by the index.
        for (address, shown) in [(0x1004, "nap"), (0x1044, "rest_well")] {
            let (_, name) = loaded.symbol_at(address).unwrap();
            assert_eq!(super::demangle::readable(&name).to_string(), shown);
        }
    }
    let found = loaded.find("nap").unwrap();
    let names: Vec<String> = found.iter().map(|(_, name)| name.to_string()).collect();
    assert_eq!(names, ["nap@@V_2.17"]);
    let limits = super::search::Limits { symbols: 10, bytes: 1 << 20 };
    let is_nap = |name: &str| name.starts_with("nap");
    let listed = loaded.search_names(&is_nap, &limits, &mut Budget::unlimited());
    let listed = listed.unwrap().symbols;
    let names: Vec<String> =
        listed.iter().map(|symbol| String::from_utf8(table::name(&loaded.sources, symbol).unwrap()).unwrap()).collect();
    assert_eq!(names, ["nap@@V_2.17"]);
}

#[test]
fn both_widths_and_byte_orders() {
    for (is_64, little) in [(true, true), (true, false), (false, true), (false, false)] {
        let builder = Builder {
            is_64,
            little,
            dynamic: vec![entry("exported", 0x1100, 16, GLOBAL, FUNCTION)],
            ..Builder::with(vec![
                entry("main", 0x1000, 32, GLOBAL, FUNCTION),
                entry("buffer", 0x3010, 0x100, LOCAL, OBJECT),
            ])
        };
        let sources = builder.sources();
        assert_eq!(name_at(&sources, 0x101f), some("main"));
        assert_eq!(name_at(&sources, 0x1020), None);
        assert_eq!(name_at(&sources, 0x310f), some("buffer"));
        assert_eq!(name_at(&sources, 0x110f), some("exported"));
        let elf = &sources.image.elf;
        assert_eq!(elf.segments.len(), 2);
        assert_eq!(elf.segments[1].memory_size, 0x1000);
        let section = |address| elf.section_name(elf.section_at(address)?);
        assert_eq!(section(0x17ff), Some(&b".text"[..]));
        assert_eq!(section(0x1800), None);
        assert_eq!(section(0x3000), Some(&b".bss"[..]));
    }
}

#[test]
fn an_address_belongs_to_the_innermost_symbol_with_a_size() {
    let symbols = vec![
        entry("outer", 0x1000, 0x100, GLOBAL, FUNCTION),
        entry("inner", 0x1040, 0x10, LOCAL, FUNCTION),
        entry("label", 0x1020, 0, LOCAL, NOTYPE),
    ];
    assert_eq!(
        names_at(symbols, &[0x1000, 0x1020, 0x1040, 0x1050, 0x10ff, 0x1100]),
        [some("outer"), some("outer"), some("inner"), some("outer"), some("outer"), None]
    );
}

#[test]
fn a_symbol_without_a_size_reaches_to_the_next_one_in_its_section() {
    let symbols = vec![
        entry("_start", 0x1000, 0, GLOBAL, NOTYPE),
        entry("next", 0x1040, 0x10, GLOBAL, FUNCTION),
        entry("tail", 0x1700, 0, LOCAL, FUNCTION),
        entry("data_start", 0x2000, 0, WEAK, NOTYPE),
        Entry {
            // Where .data ends: its address is that of .bss, its section is not.
            section: DATA,
            ..entry("_edata", 0x3000, 0, GLOBAL, NOTYPE)
        },
    ];
    assert_eq!(
        names_at(symbols, &[0x103f, 0x1040, 0x1050, 0x17ff, 0x1800, 0x27ff, 0x3000]),
        [some("_start"), some("next"), None, some("tail"), None, some("data_start"), None]
    );
}

#[test]
fn rank_decides_between_symbols_with_the_same_start() {
    let symbols = vec![
        entry("local", 0x1000, 8, LOCAL, FUNCTION),
        entry("untyped", 0x1000, 8, GLOBAL, NOTYPE),
        entry("__internal", 0x1000, 8, GLOBAL, FUNCTION),
        entry("plainf64x", 0x1000, 8, WEAK, FUNCTION),
        entry("plain", 0x1000, 8, WEAK, FUNCTION),
        entry("sizeless", 0x1000, 0, GLOBAL, FUNCTION),
        entry("also_plain", 0x1000, 8, GLOBAL, FUNCTION),
    ];
    let builder = Builder { dynamic: vec![entry("dynamic", 0x1000, 8, GLOBAL, FUNCTION)], ..Builder::with(symbols) };
    assert_eq!(name_at(&builder.sources(), 0x1004), some("plain"));
}

#[test]
fn symbols_without_an_address_are_left_out() {
    let symbols = vec![
        entry("", 0x1000, 0x100, GLOBAL, FUNCTION),
        entry("section", 0x1000, 0x100, LOCAL, SECTION),
        entry("per_thread", 0x1000, 0x100, GLOBAL, TLS),
        Entry { section: ABSOLUTE, ..entry("VERSION_1.0", 0x1000, 0x100, GLOBAL, OBJECT) },
        Entry { section: 0, ..entry("imported", 0x1000, 0x100, GLOBAL, FUNCTION) },
        Entry {
            // A section that is not loaded.
            section: 5,
            ..entry("warning", 0x1000, 0x100, LOCAL, OBJECT)
        },
    ];
    assert_eq!(names_at(symbols, &[0x1000]), [None]);
}

#[test]
fn arm_mapping_symbols_are_no_names() {
    let symbols = vec![
        entry("function", 0x1001, 0, GLOBAL, FUNCTION),
        entry("$d", 0x1010, 0, LOCAL, NOTYPE),
        entry("$t.7", 0x1020, 0, LOCAL, NOTYPE),
        entry("$dollar", 0x1030, 0, LOCAL, NOTYPE),
    ];
    let arm = Builder { is_64: false, machine: 40, ..Builder::with(symbols.clone()) };
    assert_eq!(name_at(&arm.sources(), 0x1025), some("function"));
    assert_eq!(name_at(&arm.sources(), 0x1000), some("function"), "Thumb bit");
    assert_eq!(name_at(&arm.sources(), 0x1031), some("$dollar"));
    assert_eq!(names_at(symbols, &[0x1025]), [some("$t.7")]);
}

#[test]
fn an_index_takes_over_and_agrees() {
    let symbols = (0..50).map(|one| entry(&format!("f{one}"), 0x1000 + one * 16, 12, GLOBAL, FUNCTION)).collect();
    let loaded = ModuleSymbols::new(Builder::with(symbols).sources(), 1);
    for round in 0..50u64 {
        let (symbol, name) = loaded.symbol_at(0x1000 + round * 16 + 3).unwrap();
        assert_eq!(name.as_bytes(), format!("f{round}").as_bytes());
        assert_eq!((symbol.size, symbol.kind), (12, SymbolKind::Function));
        assert!(loaded.symbol_at(0x1000 + round * 16 + 12).is_none());
    }
}

fn found(builder: &Builder, query: &str) -> Vec<(String, u64)> {
    let loaded = ModuleSymbols::new(builder.sources(), 1);
    let matches = loaded.find(query).unwrap();
    let plain = |(symbol, name): (table::Symbol, crate::kernel::Name)| {
        let name = String::from_utf8(name.as_bytes().to_vec()).unwrap();
        (name, symbol.address)
    };
    matches.into_iter().map(plain).collect()
}

#[test]
fn names_are_found_as_people_type_them() {
    let area = "_ZN6shapes4areaERKNS_6circleEi";
    let drop = "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE";
    let builder = Builder::with(vec![
        entry("main", 0x1000, 8, GLOBAL, FUNCTION),
        entry(area, 0x1010, 8, GLOBAL, FUNCTION),
        entry(drop, 0x1020, 8, LOCAL, FUNCTION),
        entry("helper", 0x1030, 8, LOCAL, FUNCTION),
        entry("helper", 0x1040, 8, LOCAL, FUNCTION),
        entry("main_loop", 0x1050, 8, GLOBAL, FUNCTION),
        entry("_ZNSt6vectorIiSaIiEE9push_backEOi", 0x1060, 8, WEAK, FUNCTION),
        entry("_ZN5spaceplERKNS_1nES2_", 0x1070, 8, WEAK, FUNCTION),
        entry("_RNvCskwGfYPst2Cb_3foo16example_function", 0x1080, 8, GLOBAL, FUNCTION),
        entry("_ZTVN6shapes6circleE", 0x2000, 8, WEAK, OBJECT),
        entry("_ZThn16_N6shapes6circle4drawEv", 0x1090, 8, WEAK, FUNCTION),
    ]);
    let only = |query: &str, address| {
        let addresses: Vec<u64> = found(&builder, query).iter().map(|one| one.1).collect();
        assert_eq!(addresses, [address], "{query}");
    };
    only("main", 0x1000);
    only(area, 0x1010);
    only("shapes::area", 0x1010);
    only("shapes::area(shapes::circle const&, int)", 0x1010);
    only("shapes::area(shapes::circle const&,int)", 0x1010);
    only("core::fmt::Formatter::pad", 0x1020);
    only("std::vector<int, std::allocator<int> >::push_back", 0x1060);
    only("std::vector<int,std::allocator<int>>::push_back", 0x1060);
    only("space::operator+", 0x1070);
    only("foo::example_function", 0x1080);
    only("vtable for shapes::circle", 0x2000);
    only("non-virtual thunk to shapes::circle::draw()", 0x1090);
    assert_eq!(found(&builder, "helper").len(), 2);
    for absent in ["mai", "area", "shapes::", "Main", "", "shapes::area(int)"] {
        assert_eq!(found(&builder, absent), [], "{absent}");
    }
}

#[test]
fn a_current_version_goes_before_old_ones() {
    let full = Builder::with(vec![
        entry("memcpy@GLIBC_2.2.5", 0x1000, 8, GLOBAL, FUNCTION),
        entry("memcpy@@GLIBC_2.14", 0x1010, 8, GLOBAL, FUNCTION),
        entry("gone@GLIBC_2.2.5", 0x1020, 8, GLOBAL, FUNCTION),
    ]);
    assert_eq!(found(&full, "memcpy"), [("memcpy@@GLIBC_2.14".into(), 0x1010)]);
    assert_eq!(found(&full, "memcpy@GLIBC_2.2.5"), [("memcpy@GLIBC_2.2.5".into(), 0x1000)]);
    assert_eq!(found(&full, "gone"), [("gone@GLIBC_2.2.5".into(), 0x1020)]);
    for little in [true, false] {
        let stripped = Builder {
            little,
            dynamic: vec![entry("memcpy", 0x1000, 8, GLOBAL, FUNCTION), entry("memcpy", 0x1010, 8, GLOBAL, FUNCTION)],
            versions: vec![0x8002, 0x0003],
            ..Builder::default()
        };
        assert_eq!(found(&stripped, "memcpy"), [("memcpy".into(), 0x1010)]);
    }
}

#[test]
fn names_are_completed() {
    let builder = Builder::with(vec![
        entry("main", 0x1000, 8, GLOBAL, FUNCTION),
        entry("main_loop@@V1", 0x1010, 8, GLOBAL, FUNCTION),
        entry("_ZN6shapes4areaEi", 0x1020, 8, GLOBAL, FUNCTION),
        entry("_ZN6shapes4areaEd", 0x1030, 8, GLOBAL, FUNCTION),
        entry("_ZN6shapes6circle4drawEv", 0x1040, 8, GLOBAL, FUNCTION),
    ]);
    let loaded = ModuleSymbols::new(builder.sources(), 1);
    let complete = |prefix: &str, limit| {
        let mut budget = Budget::unlimited();
        let mut found = std::collections::BTreeSet::new();
        loaded.complete(prefix, limit, &mut budget, &mut found).unwrap();
        let text = |name: crate::kernel::Name| name.to_string();
        found.into_iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(complete("ma", 10), ["main", "main_loop"]);
    assert_eq!(complete("ma", 1).len(), 1);
    assert_eq!(complete("shapes::", 10), ["shapes::area", "shapes::circle::draw"]);
    assert_eq!(complete("shapes::ci", 10), ["shapes::circle::draw"]);
    assert_eq!(complete("_ZN6shapes6", 10), ["_ZN6shapes6circle4drawEv"]);
    assert_eq!(complete("area", 10), [""; 0]);
    assert_eq!(complete("", 10).len(), 4);
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let place = prop_oneof![0x1000u64..0x1040, 0x17f0u64..0x1800, 0x2000u64..0x2010];
    let size = prop_oneof![Just(0u64), 0u64..0x40, Just(u64::MAX), Just(0x1000)];
    (place, size, 0u8..3, 0u8..4, 0u16..5, "[_a-c]{1,4}").prop_map(|(value, size, binding, kind, section, name)| {
        Entry { section, ..entry(&name, value, size, binding, kind) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Whatever the table holds, the index answers as a pass over it does.
    #[test]
    fn pass_and_index_agree(
        symbols in prop::collection::vec(any_entry(), 1..40),
        dynamic in prop::collection::vec(any_entry(), 0..10),
    ) {
        let sources = Builder { dynamic, ..Builder::with(symbols) }.sources();
        for address in (0xff8..0x1050).chain(0x17e8..0x1808).chain(0x1ff8..0x2018).chain([0x2fff, 0x3000, u64::MAX]) {
            name_at(&sources, address);
        }
    }
}

/// Counts what is read of a file.
struct Counting {
    inner: Box<dyn crate::process::ReadAt>,
    reads: std::sync::Arc<std::sync::atomic::AtomicU64>,
    bytes: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl crate::process::ReadAt for Counting {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read_at(offset, into)?;
        let order = std::sync::atomic::Ordering::Relaxed;
        self.reads.fetch_add(1, order);
        self.bytes.fetch_add(read as u64, order);
        Ok(read)
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn fingerprint(&self) -> [u64; 4] {
        self.inner.fingerprint()
    }
}

#[test]
fn one_look_up_reads_the_table_once_and_one_name() {
    let symbols: Vec<Entry> = (0..20_000)
        .map(|one| {
            let name = format!("a_rather_long_name_that_takes_room_in_the_file_{one}");
            entry(&name, 0x1000 + one % 0x800, 1, GLOBAL, FUNCTION)
        })
        .collect();
    let table = 24 * (symbols.len() as u64 + 1);
    let inner = Box::new(InMemory::file(Builder::with(symbols).bytes()));
    let (reads, bytes) = Default::default();
    let counting = Counting { inner, reads: std::sync::Arc::clone(&reads), bytes: std::sync::Arc::clone(&bytes) };
    let loaded = ModuleSymbols::new(
        Sources::without_separate(
            ElfFile::read(BoundedFile::new(Box::new(counting)), &mut Budget::unlimited()).unwrap(),
        ),
        1,
    );
    assert!(loaded.symbol_at(0x1234).is_some());
    let order = std::sync::atomic::Ordering::Relaxed;
    let (reads, bytes) = (reads.load(order), bytes.load(order));
    assert!(bytes < table + 3 * 4096, "{bytes} bytes read for a table of {table}");
    assert!(reads < 32, "{reads} reads");
}

#[test]
fn a_search_passes_over_symbols_only_if_a_name_may_be_among_them() {
    let mangled = "_ZL8wantedifPv";
    let mut symbols: Vec<Entry> = (0..20_000)
        .map(|one| entry(&format!("a_name_in_a_long_table_{one}"), 0x1000 + one, 1, GLOBAL, FUNCTION))
        .collect();
    symbols.insert(10_000, entry(mangled, 0x500, 1, LOCAL, FUNCTION));
    let table = 24 * (symbols.len() as u64 + 1);
    let file = Builder::with(symbols).bytes();
    let names = (file.len() as u64).checked_sub(table).expect("a table");
    let read_by = |query: &str| {
        let bytes = std::sync::Arc::default();
        let inner = Box::new(InMemory::file(file.clone()));
        let counting = Counting { inner, reads: std::sync::Arc::default(), bytes: std::sync::Arc::clone(&bytes) };
        let loaded = ModuleSymbols::new(
            Sources::without_separate(
                ElfFile::read(BoundedFile::new(Box::new(counting)), &mut Budget::unlimited()).unwrap(),
            ),
            1,
        );
        let found = loaded.find(query).unwrap().len();
        (found, bytes.load(std::sync::atomic::Ordering::Relaxed) > names + 4096)
    };
    for absent in ["heap", "a_name_in_a_long_table_", "name_in_a_long_table", "a_name_in_a_long_table@V", "f::wanted"] {
        assert_eq!(read_by(absent), (0, false), "{absent}");
    }
    for known in ["wantedif", "wantedif(void*)", mangled, "a_name_in_a_long_table_19999"] {
        assert_eq!(read_by(known), (1, true), "{known}");
    }
    // The end of a name is no name.
    assert_eq!(read_by("name_in_a_long_table_19999"), (0, true));
}

#[test]
fn a_name_is_found_where_two_parts_of_the_table_meet() {
    // Each name begins at another distance from the end of what is read together.
    for before in (64 << 10) - 24..=(64 << 10) {
        let filler = "x".repeat(before - 3);
        let symbols = ["first", "wanted", "_Z4meanv", "last"].map(|name| entry(name, 0x1000, 1, GLOBAL, FUNCTION));
        let builder = Builder::with([vec![entry(&filler, 0x2000, 1, GLOBAL, FUNCTION)], symbols.into()].concat());
        for name in ["first", "wanted", "mean", "last"] {
            assert_eq!(found(&builder, name).len(), 1, "{name} after {before} bytes");
        }
    }
}

#[test]
fn a_repeated_search_for_a_name_reads_nothing() {
    let file = Builder::with(vec![entry("main", 0x1000, 0x20, GLOBAL, FUNCTION)]);
    let reads = std::sync::Arc::default();
    let counting = Counting {
        inner: Box::new(InMemory::file(file.bytes())),
        reads: std::sync::Arc::clone(&reads),
        bytes: std::sync::Arc::default(),
    };
    let source = ElfFile::read(BoundedFile::new(Box::new(counting)), &mut Budget::unlimited()).unwrap();
    let loaded = ModuleSymbols::new(Sources::without_separate(source), 1);
    let find = |name: &str| loaded.find(name).unwrap().len();
    let count = || reads.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((find("main"), find("absent")), (1, 0));
    let after_first = count();
    assert_eq!((find("main"), find("absent")), (1, 0));
    assert_eq!(count(), after_first);
    // The cache is limited: the oldest names are searched for again.
    for other in 0..100 {
        assert_eq!(find(&format!("other{other}")), 0);
    }
    assert_eq!(find("main"), 1);
}
