//! Symbols of running programs, compared with `nm` and with what the programs say about themselves; and files that
//! change.

use super::answers;
use super::sample::{self, sample};
use super::support::{Numbers, at, page_bytes, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::kernel::{Name, Region};
use pmdb::symbol::{Module, NamesIn, NoSymbols, SymbolKind, Symbols, TargetSymbols};
use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

mod archive;
mod lost;
mod made;
mod memory;
mod narrow;
pub(super) mod programs;
mod ranges;
mod stripped;
mod stubs;

pub const TESTS: &[Test] = &[
    ("symbols::statics_of_this_program", statics_of_this_program),
    ("symbols::this_program_as_nm_sees_it", this_program_as_nm_sees_it),
    ("symbols::the_c_library_as_nm_sees_it", the_c_library_as_nm_sees_it),
    ("symbols::the_shell_as_nm_sees_it", the_shell_as_nm_sees_it),
    ("symbols::however_a_program_is_linked", programs::however_a_program_is_linked),
    ("symbols::names_of_a_cpp_program", programs::names_of_a_cpp_program),
    ("symbols::the_vdso_has_symbols", the_vdso_has_symbols),
    ("symbols::the_vdso_of_a_core_has_symbols", the_vdso_of_a_core_has_symbols),
    ("symbols::a_file_mapped_as_data_is_no_second_copy", a_file_mapped_as_data_is_no_second_copy),
    ("symbols::a_file_that_changes_is_read_again", a_file_that_changes_is_read_again),
    ("symbols::more_libraries_than_files_may_be_open", more_libraries_than_files_may_be_open),
    ("symbols::what_does_not_fit_in_memory_is_refused", memory::what_does_not_fit_in_memory_is_refused),
    ("symbols::names_of_a_32_bit_program", narrow::names_of_a_32_bit_program),
    ("symbols::names_are_completed", names_are_completed),
    ("symbols::code_that_a_program_made", made::code_that_a_program_made),
    ("symbols::a_symbol_with_a_size_is_a_range", ranges::a_symbol_with_a_size_is_a_range),
    (
        "symbols::what_was_stripped_is_found_by_name_and_checksum",
        stripped::what_was_stripped_is_found_by_name_and_checksum,
    ),
    ("symbols::a_debug_file_that_is_installed_later_is_found", stripped::a_debug_file_that_is_installed_later_is_found),
    ("symbols::debug_files_for_a_program_in_another_root", stripped::debug_files_for_a_program_in_another_root),
    ("symbols::files_that_the_kernel_makes_up_are_not_read", stripped::files_that_the_kernel_makes_up_are_not_read),
    ("symbols::a_program_in_another_mount_namespace", stripped::a_program_in_another_mount_namespace),
    ("symbols::a_program_whose_file_is_gone", stripped::a_program_whose_file_is_gone),
    (
        "symbols::a_symbol_without_a_size_reaches_no_code_that_lost_its_names",
        lost::a_symbol_without_a_size_reaches_no_code_that_lost_its_names,
    ),
    ("symbols::an_indirect_function_is_its_resolver", lost::an_indirect_function_is_its_resolver),
    (
        "symbols::functions_of_a_program_with_debug_information_alone",
        lost::functions_of_a_program_with_debug_information_alone,
    ),
    ("symbols::a_program_that_is_not_executable_has_symbols", lost::a_program_that_is_not_executable_has_symbols),
    ("symbols::libraries_within_an_archive_have_symbols", archive::libraries_within_an_archive_have_symbols),
    ("symbols::stubs_have_the_names_of_what_they_call", stubs::stubs_have_the_names_of_what_they_call),
    (
        "symbols::the_copy_of_a_variable_is_the_one_that_is_used",
        stripped::the_copy_of_a_variable_is_the_one_that_is_used,
    ),
];

pub const SCENARIOS: &[Scenario] = &[
    ("statics", statics),
    ("own file", own_file),
    ("library", library),
    ("unexecutable", lost::unexecutable),
    ("stored", archive::stored),
];

/// Larger than what the page that ends the file can hold: most of it lies in anonymous memory.
static mut ZEROED_BUFFER: [u8; 256 * 1024] = [0; 256 * 1024];
static FILLED_BUFFER: [u8; 12_345] = [7; 12_345];

#[inline(never)]
fn a_function_with_a_name(value: u64) -> u64 {
    std::hint::black_box(value) + 1
}

fn statics(_: &[String]) {
    a_function_with_a_name(3);
    announce(format!(
        "{:p} {:p} {:p}",
        &raw const ZEROED_BUFFER,
        std::hint::black_box(&FILLED_BUFFER),
        a_function_with_a_name as fn(u64) -> u64
    ));
    wait();
}

/// Runs `look` on the names of a target as it is now.
pub(super) fn with_names<T>(
    symbols: &Symbols,
    target: &pmdb::process::Target,
    look: impl FnOnce(&TargetSymbols<'_>, &[Region]) -> T,
) -> T {
    let regions = target.process.regions().expect("its regions");
    look(&symbols.over(target, &regions), &regions)
}

fn statics_of_this_program() {
    let mut target = Target::start("statics", &[]);
    let words = target.numbers();
    let attached = target.attach();
    let symbols = Symbols::default();
    with_names(&symbols, &attached, |names, regions| {
        // What rustc does with constants.
        let constants = match std::env::consts::ARCH {
            "powerpc64" => ".data.rel.ro",
            _ => ".rodata",
        };
        let expected = [
            ("live::symbols::ZEROED_BUFFER", words[0], 256 * 1024, SymbolKind::Object, ".bss"),
            ("live::symbols::FILLED_BUFFER", words[1], 12_345, SymbolKind::Object, constants),
            ("live::symbols::a_function_with_a_name", words[2], 0, SymbolKind::Function, ".text"),
        ];
        for (name, address, size, kind, section) in expected {
            let found = names.find(None, name).expect(name);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].start, at(address), "{name}");
            // Often enough for an index to be built half-way.
            for offset in [0, 1, 100, 200, 300, 12_000, 100_000, 256 * 1024 - 1] {
                if offset >= found[0].size {
                    continue;
                }
                let symbol = names.at(at(address + offset)).expect(name);
                assert_eq!(symbol.name(), Name::from(name));
                assert_eq!((symbol.start, symbol.offset), (at(address), offset));
                assert_eq!(symbol.kind, kind);
                assert_eq!(symbol.section, Some(Name::from(section)));
                assert_eq!(names.section_at(at(address + offset)), symbol.section);
            }
            if size != 0 {
                assert_eq!(found[0].size, size);
            }
            let (module, file_address) = names.file_address(at(address)).expect("a module");
            assert_eq!(module.name, found[0].module);
            assert_eq!(file_address, found[0].file_address);
            let path = module.name.to_string();
            let back = names.address_in(&path, file_address.get()).expect("an address");
            assert_eq!(back, [at(address)]);
        }
        let middle = at(words[0] + 128 * 1024);
        let region = regions.iter().find(|one| one.range.contains(middle));
        assert_eq!(region.expect("its region").inode, 0, "the buffer was to reach into anonymous memory");
        for one in regions.iter().filter(|one| one.name.as_bytes() == b"[stack]") {
            assert_eq!(names.at(one.range.start()), None);
            assert!(names.module_at(one.range.start()).is_none());
        }
        assert_eq!(names.at(at(16)), None);
        assert_eq!(names.at(at(u64::MAX)), None);
    });
}

/// A symbol as `nm` prints it.
#[derive(Debug)]
struct NmSymbol {
    name: String,
    address: u64,
    size: u64,
    thread_local: bool,
}

/// What `nm` says of a file; `None` if there is no `nm`. A file without symbols gives none.
fn nm(file: &str) -> Option<Vec<NmSymbol>> {
    let mut found = Vec::new();
    for table in [&[][..], &["--dynamic"]] {
        let output = Command::new("nm")
            .args(["--defined-only", "--format=sysv", "--no-demangle"])
            .args(table)
            .arg(file)
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        found.extend(text.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, value, _, kind, size, _, section] = fields[..] else {
                return None;
            };
            if section == "*ABS*" || !["FUNC", "OBJECT", "IFUNC", "TLS", "NOTYPE"].contains(&kind) {
                return None;
            }
            Some(NmSymbol {
                name: name.to_owned(),
                address: u64::from_str_radix(value, 16).ok()?,
                size: u64::from_str_radix(size, 16).unwrap_or(0),
                thread_local: kind == "TLS",
            })
        }));
    }
    Some(found)
}

fn base(name: &str) -> &str {
    name.split_once('@').map_or(name, |(base, _)| base)
}

/// Compares the symbols of `module` with `nm`: some `count` places in them, or three places in each.
fn compare_with_nm(test: &str, names: &TargetSymbols<'_>, module: &Module, count: usize) {
    let path = module.name.to_string();
    compare_with_nm_of(test, names, &path, &path, count);
}

/// The same for the module `path`, whose file is elsewhere.
fn compare_with_nm_of(test: &str, names: &TargetSymbols<'_>, path: &str, file: &str, count: usize) {
    let Some(mut all) = nm(file) else {
        return skip(test, "there is no nm here");
    };
    all.retain(|one| !one.thread_local);
    let mut by_address: HashMap<u64, Vec<&NmSymbol>> = HashMap::new();
    for one in &all {
        by_address.entry(one.address).or_default().push(one);
    }
    let mut sized: Vec<&NmSymbol> = all.iter().filter(|one| one.size > 0).collect();
    if sized.is_empty() {
        return skip(test, &format!("{path} is stripped"));
    }
    sized.sort_by_key(|one| one.address);
    let mut random = Numbers(sample::number());
    let places: Vec<_> =
        sized.iter().flat_map(|one| [0, one.size - 1, random.below(one.size)].map(|offset| (*one, offset))).collect();
    let group = places.len().div_ceil(count);
    for (one, offset) in sample(places, group) {
        let place = names.address_in(path, one.address + offset).expect("an address");
        assert_eq!(place.len(), 1);
        let found = names
            .at(place[0])
            .unwrap_or_else(|| panic!("nothing at {:#x}, where nm has {one:?}", one.address + offset));
        // The symbol that starts last of those that cover the place.
        let start = sized[..sized.partition_point(|other| other.address <= one.address + offset)]
            .iter()
            .rev()
            .take(10_000)
            .find(|other| one.address + offset - other.address < other.size)
            .expect("itself at least")
            .address;
        assert_eq!(found.file_address.get(), start, "{found:?} for {one:?}+{offset:#x}");
        assert_eq!(found.file_address.get() + found.offset, one.address + offset);
        let mangled = String::from_utf8(found.mangled.as_bytes().to_vec()).expect("a name");
        assert!(
            by_address[&start].iter().any(|other| base(&other.name) == base(&mangled) && other.size == found.size),
            "{found:?} is not among {:?}",
            by_address[&start]
        );
    }
    for _ in 0..40 {
        let one = sized[random.below(sized.len() as u64) as usize];
        let found = names.find(Some(path), &one.name).expect("a search");
        let addresses: Vec<u64> = found.iter().map(|one| one.file_address.get()).collect();
        assert!(addresses.contains(&one.address), "{one:?} is not among {addresses:x?}");
    }
}

fn this_program_as_nm_sees_it() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let own = std::env::current_exe().expect("this program");
        let own = own.to_str().expect("a plain path").as_bytes();
        let module = names.modules().iter().find(|one| one.name.as_bytes() == own);
        let module = module.expect("this program among its modules");
        compare_with_nm("symbols::this_program_as_nm_sees_it", names, module, 750);
    });
}

fn the_c_library_as_nm_sees_it() {
    let test = "symbols::the_c_library_as_nm_sees_it";
    let mut target = Target::start("idle", &[]);
    target.line();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let libraries: Vec<&Module> = names
            .modules()
            .iter()
            .filter(|one| one.is_executable() && one.file_name().to_string().contains(".so"))
            .collect();
        if libraries.is_empty() {
            return skip(test, "this program is linked statically");
        }
        for library in libraries {
            compare_with_nm(test, names, library, 500);
        }
    });
}

fn the_shell_as_nm_sees_it() {
    let test = "symbols::the_shell_as_nm_sees_it";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo ready; read line"]);
    let mut target = Target::spawn(&mut command);
    target.line();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let shell = std::fs::canonicalize("/bin/sh").expect("a shell");
        let shell = Name::new(shell.to_str().expect("a plain path"));
        let module = names.modules().iter().find(|one| one.name == shell);
        compare_with_nm(test, names, module.expect("the shell"), 250);
    });
}

fn the_vdso_has_symbols() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let Some(vdso) = names.modules().iter().find(|one| one.is_vdso()) else {
            return skip("symbols::the_vdso_has_symbols", "this kernel lends none");
        };
        let reason = names.reason(vdso).map(|reason| reason.to_string());
        assert_eq!(reason, None, "the vdso gives symbols");
        let all = names.names(NamesIn::Module("[vdso]"), "", 1000, Duration::from_secs(10));
        let clock = all.iter().find(|name| name.to_string().ends_with("clock_gettime"));
        let clock = clock.expect("a clock among its names").to_string();
        let found = names.find(Some("vdso"), &clock).expect("a search");
        assert!(vdso.regions[0].range.contains(found[0].start));
        let symbol = names.at(found[0].start).expect("a symbol");
        assert_eq!((symbol.start, symbol.offset), (found[0].start, 0));
    });
}

/// Cores have it too: no file has its symbols.
fn the_vdso_of_a_core_has_symbols() {
    let test = "symbols::the_vdso_of_a_core_has_symbols";
    let mut target = Target::start("idle", &[]);
    target.line();
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let run = |words: &[&str]| {
        let command = Command::new(env!("CARGO_BIN_EXE_pmdb")).args(["-nx", "-batch"]).args(words).output();
        let output = command.expect("pmdb runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let pid = target.pid().to_string();
    let symbols = Symbols::default();
    let clock = with_names(&symbols, &target.attach(), |names, _| {
        let all = names.names(NamesIn::Module("[vdso]"), "", 1000, Duration::from_secs(10));
        let clock = all.iter().map(Name::to_string).find(|name| name.ends_with("clock_gettime"));
        clock.map(|name| names.find(Some("vdso"), &name).expect("a search")[0].start)
    });
    let Some(address) = clock else {
        return skip(test, "this kernel lends none");
    };
    let expected = run(&["-p", &pid, "-ex", &format!("info symbol {address}")]);
    assert!(expected.contains("clock_gettime in section .text of [vdso]"), "{expected}");
    run(&["-p", &pid, "-ex", &format!("export core {}", place("own"))]);
    let said = run(&["-c", &place("own"), "-ex", &format!("info symbol {address}")]);
    assert_eq!(said, expected);
    let words = ["-q", "-nx", "-batch", "-p", &pid, "-ex", &format!("gcore {}", place("gdb"))];
    let gdb = Command::new("gdb").args(words).stdin(Stdio::null()).output();
    if !gdb.is_ok_and(|output| output.status.success()) || !std::path::Path::new(&place("gdb")).exists() {
        return skip(test, "there is no gdb that can write cores here");
    }
    let said = run(&["-c", &place("gdb"), "-ex", &format!("info symbol {address}")]);
    assert_eq!(said, expected);
}

/// Maps the file of this program once more, as data.
fn own_file(_: &[String]) {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let file = std::fs::File::open("/proc/self/exe").expect("this program");
    let length = file.metadata().expect("its length").len() as usize;
    let map = |length| {
        // SAFETY: a fresh mapping of a file that nobody changes.
        let start = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
        start.expect("a mapping") as u64
    };
    announce(format!(
        "{:#x} {:#x} {:p}",
        map(length),
        map(page_bytes() as usize),
        a_function_with_a_name as fn(u64) -> u64
    ));
    wait();
}

fn a_file_mapped_as_data_is_no_second_copy() {
    let mut target = Target::start("own file", &[]);
    let words = target.numbers();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let found = names.find(None, "live::symbols::a_function_with_a_name").expect("a search");
        let starts: Vec<_> = found.iter().map(|one| one.start).collect();
        assert_eq!(starts, [at(words[2])]);
        let loaded = names.file_address(at(words[2])).expect("a file address").1;
        assert_eq!(names.at(at(words[0] + loaded.get())), None);
        assert_eq!(names.at(at(words[1] + 64)), None);
        assert!(names.module_at(at(words[0])).is_some());
    });
}

/// Loads a library and says so.
fn library(arguments: &[String]) {
    let is_loaded = |path: &String| {
        let path = std::ffi::CString::new(path.as_str()).expect("a path");
        // SAFETY: the library was compiled by the test and has no constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        !handle.is_null()
    };
    let all = arguments.iter().all(is_loaded);
    announce(if all { "loaded" } else { "failed" });
    wait();
}

fn a_file_that_changes_is_read_again() {
    let test = "symbols::a_file_that_changes_is_read_again";
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-shared", "-fPIC"];
    if !programs::is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let first = programs::compile(folder.path(), "first.so", "int before(int x) { return x * 3; }", &flags);
    let second = programs::compile(folder.path(), "second.so", "int behind(int x) { return x * 5; } int more;", &flags);
    let (first, second) = (first.expect("to compile"), second.expect("to compile"));
    let path = first.to_str().expect("a plain path");
    let mut target = Target::start("library", &[path]);
    if target.line() != "loaded" {
        return skip(test, "this program cannot load libraries");
    }
    let attached = target.attach();
    let symbols = Symbols::default();
    let count = |name: &str| {
        with_names(&symbols, &attached, |names, _| names.find(Some("first.so"), name).map(|found| found.len()))
    };
    assert_eq!(count("before").expect("a search"), 1);
    assert_eq!(count("behind").expect("a search"), 0);
    // Written into the same inode: only size and modification time tell.
    std::fs::write(&first, std::fs::read(&second).expect("the second")).expect("to overwrite");
    assert_eq!(count("before").expect("a search"), 0);
    assert_eq!(count("behind").expect("a search"), 1);
    let file = std::fs::File::options().write(true).open(&first).expect("the file");
    file.set_len(100).expect("to cut it short");
    count("behind").expect_err("no symbols in a stump");
    with_names(&symbols, &attached, |names, _| {
        let module = names.modules().iter().find(|one| one.is_called(b"first.so"));
        let reason = names.reason(module.expect("it is still mapped"));
        assert!(matches!(reason, Some(NoSymbols::CutShort(_))), "{reason:?}");
    });
}

fn more_libraries_than_files_may_be_open() {
    let test = "symbols::more_libraries_than_files_may_be_open";
    const LIBRARIES: usize = 300;
    let folder = tempfile::tempdir().expect("a folder");
    if !programs::is_installed("gcc") || !programs::is_installed("prlimit") {
        return skip(test, "there is no C compiler here, or no prlimit");
    }
    let source = "int in_each_of_them(int x) { return x * 3; }";
    let library = programs::compile(folder.path(), "one.so", source, &["-shared", "-fPIC"]);
    let library = library.expect("to compile");
    let copy = |number: usize| {
        let copy = folder.path().join(format!("copy{number}.so"));
        std::fs::copy(&library, &copy).expect("a copy");
        copy.to_str().expect("a plain path").to_owned()
    };
    let copies: Vec<String> = (0..LIBRARIES).map(copy).collect();
    let paths: Vec<&str> = copies.iter().map(String::as_str).collect();
    let mut target = Target::start("library", &paths);
    if target.line() != "loaded" {
        return skip(test, "this program cannot load libraries");
    }
    let lines = [
        "info modules",
        "info address in_each_of_them",
        "info symbols ^in_each_of",
        // By then the first ones have been closed.
        "info address copy0.so!in_each_of_them",
    ];
    let few = ["prlimit", "--nofile=64:64"];
    let said = answers::program(&few, target.pid(), true, &lines.map(str::to_owned));
    let records = said.lines().map(serde_json::from_str::<serde_json::Value>);
    let records: Vec<_> = records.map(|one| one.expect("a record")).collect();
    let of = |kind: &'static str| records.iter().filter(move |one| one["type"] == kind);
    let named = of("module").filter(|one| one["answers"] == "file");
    let named = named.filter(|one| one["name"].as_str().is_some_and(|name| name.contains("copy")));
    assert_eq!(named.count(), LIBRARIES);
    assert_eq!(of("symbol").count(), 2 * LIBRARIES + 1);
    target.send("");
}

fn names_are_completed() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let found = names.names(NamesIn::Program, "live::symbols::a_func", 100, Duration::from_secs(60));
        assert_eq!(found, [Name::from("live::symbols::a_function_with_a_name")]);
        let found = names.names(NamesIn::Program, "", 10, Duration::from_secs(60));
        assert_eq!(found.len(), 10);
        let found = names.names(NamesIn::Program, "live::", 100_000, Duration::ZERO);
        assert!(found.is_empty(), "no time, no names");
        assert!(names.names(NamesIn::Module("no-such-module"), "m", 10, Duration::from_secs(1)).is_empty());
    });
}
