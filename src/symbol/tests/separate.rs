//! Separate debug files and compressed sections: which are found, which are refused.

use super::super::elf::{BoundedFile, ElfFile, expand_xz, old_spelling};
use super::super::expanded::ExpandedMemory;
use super::super::files::{BETWEEN_LOOKS, NamesFrom, Sources};
use super::super::module_symbols::ModuleSymbols;
use super::super::{NoSeparate, NoSymbols, Symbols, TargetSymbols, files};
use super::builder::*;
use crate::budget::Budget;
use crate::kernel::{Name, VirtualAddress};
use crate::process::InMemory;
use crate::process::fake::Fake;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = "/usr/bin/program";
const ID: &[u8] = &[0xab, 0xcd, 0xef, 0x01];
const BY_ID: &str = "/usr/lib/debug/.build-id/ab/cdef01.debug";

fn source(bytes: Vec<u8>) -> ElfFile {
    ElfFile::read(BoundedFile::new(Box::new(InMemory::file(bytes))), &mut Budget::unlimited()).unwrap()
}

/// A stripped program with these sections.
fn stripped(sections: Vec<Extra>) -> Builder {
    Builder { dynamic: vec![entry("exported", 0x1100, 16, GLOBAL, FUNCTION)], sections, ..Builder::default() }
}

/// Its debug file.
fn debug_file(sections: Vec<Extra>) -> Vec<u8> {
    Builder { sections, ..Builder::with(vec![entry("hidden", 0x1000, 32, LOCAL, FUNCTION)]) }.bytes()
}

/// The files found for `program`, if only these exist.
fn find(program: &Builder, files: &[(&str, Vec<u8>)]) -> Result<String, NoSeparate> {
    let fake = files.iter().fold(Fake::new(), |fake, (name, bytes)| fake.file(name, bytes.clone()));
    let target = fake.target();
    let image = source(program.bytes());
    let modules = &target.modules;
    let separate = files::find(modules, &Name::from(PROGRAM), &image, &Arc::default()).unwrap();
    let path = separate.find_separate().map(|one| one.path.to_string());
    let loaded = ModuleSymbols::new(Sources::new(image, separate, &ExpandedMemory::default()).unwrap(), 1);
    let name = |address| loaded.symbol_at(address).map(|(_, name)| name.to_string());
    assert_eq!(name(0x1108).as_deref(), Some("exported"));
    assert_eq!(name(0x1004).as_deref(), path.is_ok().then_some("hidden"));
    path
}

fn sum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn by_build_id() {
    let program = stripped(vec![Extra::build_id(ID)]);
    let good = debug_file(vec![Extra::build_id(ID)]);
    assert_eq!(find(&program, &[(BY_ID, good)]).unwrap(), BY_ID);
    for wrong in [&[0xab, 0xcd, 0xef, 0x02][..], &[0xab, 0xcd, 0xef], &[]] {
        let other = debug_file(vec![Extra::build_id(wrong)]);
        let reason = find(&program, &[(BY_ID, other)]).unwrap_err();
        assert!(matches!(reason, NoSeparate::OfAnotherBuild { .. }), "{reason}");
    }
    let reason = find(&program, &[]).unwrap_err();
    assert!(matches!(reason, NoSeparate::NotFound), "{reason}");
    let reason = find(&program, &[(BY_ID, b"not an ELF file".to_vec())]).unwrap_err();
    assert!(matches!(reason, NoSeparate::NotFound), "{reason}");
    let reason = find(&stripped(vec![]), &[]).unwrap_err();
    assert!(matches!(reason, NoSeparate::NotNamed), "{reason}");
}

#[test]
fn a_debug_file_that_is_installed_later_is_noticed() {
    let wanted = debug_file(vec![]);
    let other = debug_file(vec![Extra::new(".comment", vec![1])]);
    let program = stripped(vec![Extra::build_id(ID), Extra::debuglink(b"p.debug", sum(&wanted))]);
    let image = source(program.bytes());
    let at = |files: &[(&str, &[u8])]| {
        let fake = files.iter().fold(Fake::new(), |fake, (name, bytes)| fake.file(name, bytes.to_vec()));
        fake.target().modules
    };
    let (beside, last) = ("/usr/bin/p.debug", "/usr/lib/debug/usr/bin/p.debug");
    let found_with = |files: &[(&str, &[u8])]| {
        let found = files::find(&at(files), &Name::from(PROGRAM), &image, &Arc::default()).unwrap();
        let path = found.find_separate().map(|one| one.path.to_string()).ok();
        assert!(found.are_all(&at(files)), "{files:?}");
        (found, path)
    };
    let (found, path) = found_with(&[]);
    assert_eq!(path, None);
    for place in [BY_ID, beside, last] {
        assert!(!found.are_all(&at(&[(place, &wanted)])), "{place}");
    }
    // One of another build is replaced by the right one.
    let (found, path) = found_with(&[(beside, &other)]);
    assert_eq!(path, None);
    assert!(!found.are_all(&at(&[(beside, &[&wanted[..], &[0]].concat())])));
    assert!(!found.are_all(&at(&[])));
    // The right one stays valid, even if it is renamed.
    let (found, path) = found_with(&[(last, &wanted)]);
    assert_eq!(path.as_deref(), Some(last));
    assert!(found.are_all(&at(&[])));
    assert!(!found.are_all(&at(&[(BY_ID, &wanted), (last, &wanted)])));
}

#[test]
fn debug_files_are_searched_for_again_after_a_while() {
    let start = Instant::now();
    let program = stripped(vec![Extra::build_id(ID)]);
    let image = source(program.bytes());
    let modules = Fake::new().target().modules;
    let separate = files::find(&modules, &Name::from(PROGRAM), &image, &Arc::default()).unwrap();
    let sources = Sources::new(image, separate, &ExpandedMemory::default()).unwrap();
    let wanted = debug_file(vec![Extra::build_id(ID)]);
    let installed = Fake::new().file(BY_ID, wanted).target().modules;
    assert!(sources.are_unchanged(&installed, start));
    let later = Instant::now() + BETWEEN_LOOKS;
    assert!(!sources.are_unchanged(&installed, later));
}

#[test]
fn by_name_and_checksum() {
    let good = debug_file(vec![]);
    for place in ["/usr/bin/p.debug", "/usr/bin/.debug/p.debug", "/usr/lib/debug/usr/bin/p.debug"] {
        let program = stripped(vec![Extra::debuglink(b"p.debug", sum(&good))]);
        assert_eq!(find(&program, &[(place, good.clone())]).unwrap(), place);
        let program = stripped(vec![Extra::debuglink(b"p.debug", sum(&good) ^ 1)]);
        let reason = find(&program, &[(place, good.clone())]).unwrap_err();
        assert!(matches!(reason, NoSeparate::OfAnotherBuild { .. }), "{reason}");
    }
    // A file of another build does not hide the right one.
    let other = debug_file(vec![Extra::new(".comment", vec![1])]);
    let program = stripped(vec![Extra::debuglink(b"p.debug", sum(&good))]);
    let files = [("/usr/bin/p.debug", other), ("/usr/lib/debug/usr/bin/p.debug", good)];
    assert_eq!(find(&program, &files).unwrap(), files[1].0);
}

#[test]
fn a_checksum_waits_until_it_is_needed_and_ends_with_ctrl_c() {
    let good = debug_file(vec![]);
    let target = Fake::new().file("/usr/bin/p.debug", good.clone()).target();
    let interrupts = Arc::new(AtomicBool::new(false));
    let interrupt = |is_on| interrupts.store(is_on, Ordering::Relaxed);
    let search = |program: &Builder| {
        let image = source(program.bytes());
        let budget = Budget::until(Arc::clone(&interrupts));
        files::find(&target.modules, &Name::from(PROGRAM), &image, &budget).map(|separate| (image, separate))
    };
    let link = || vec![Extra::debuglink(b"p.debug", sum(&good))];
    // Without a table of its own the file is needed at once.
    let (image, separate) = search(&stripped(link())).unwrap();
    interrupt(true);
    let refused = Sources::new(image, separate, &ExpandedMemory::default()).err();
    assert!(matches!(refused, Some(NoSymbols::Interrupted)));
    assert!(search(&stripped(link())).is_err(), "the search itself ends");
    // With one its names are known at once, and the file is chosen when lines are needed.
    interrupt(false);
    let full = Builder { sections: link(), ..Builder::with(vec![entry("main", 0x1000, 8, GLOBAL, FUNCTION)]) };
    let (image, separate) = search(&full).unwrap();
    interrupt(true);
    let sources = Sources::new(image, separate, &ExpandedMemory::default()).unwrap();
    let is_interrupted = |sources: &Sources| {
        matches!(sources.separate(), Err(NoSeparate::Interrupted))
            && matches!(sources.debug_source(), Err(NoSymbols::Interrupted))
    };
    assert!(is_interrupted(&sources));
    interrupt(false);
    assert!(sources.debug_source().is_ok());
    interrupt(true);
    assert!(sources.debug_source().is_ok(), "it is known by now");
}

#[test]
fn a_name_in_a_link_is_no_path() {
    let good = debug_file(vec![]);
    for name in [&b"../bin/p.debug"[..], b"/usr/bin/p.debug", b"..", b".", b"", &[b'a'; 256]] {
        let program = stripped(vec![Extra::debuglink(name, sum(&good))]);
        let reason = find(&program, &[("/usr/bin/p.debug", good.clone())]).unwrap_err();
        assert!(matches!(reason, NoSeparate::NotNamed), "{reason}");
    }
    for bytes in [vec![], vec![b'p'], b"p\0\0\0abc".to_vec(), vec![b'p'; 5000]] {
        let program = stripped(vec![Extra::new(".gnu_debuglink", bytes)]);
        let reason = find(&program, &[]).unwrap_err();
        assert!(matches!(reason, NoSeparate::NotNamed), "{reason}");
    }
}

#[test]
fn a_file_for_another_machine_is_refused() {
    let program = stripped(vec![Extra::build_id(ID)]);
    let other = Builder { machine: 183, sections: vec![Extra::build_id(ID)], ..Builder::default() };
    let reason = find(&program, &[(BY_ID, other.bytes())]).unwrap_err();
    assert!(matches!(reason, NoSeparate::OfAnotherBuild { .. }), "{reason}");
}

/// A compressed section of a 64-bit little-endian file that claims to expand to `size` bytes.
fn compressed(method: u32, size: u64, data: &[u8]) -> Extra {
    let mut bytes = [method.to_le_bytes(), [0; 4]].concat();
    bytes.extend(size.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(data);
    Extra { flags: 0x800, ..Extra::new(".debug_line", bytes) }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn compressed_sections_expand_within_limits() {
    let plain = b"line after line after line".repeat(100);
    let size = plain.len() as u64;
    let section = |extra: Extra| {
        let built = Builder { sections: vec![extra], ..Builder::default() };
        source(built.bytes()).section(b".debug_line", 1 << 20, &mut Budget::unlimited())
    };
    for extra in [
        Extra::new(".debug_line", plain.clone()),
        compressed(1, size, &zlib(&plain)),
        compressed(2, size, &zstd(&plain)),
        Extra::new(".zdebug_line", [b"ZLIB", &size.to_be_bytes()[..], &zlib(&plain)].concat()),
    ] {
        let name = extra.name;
        assert_eq!(section(extra).unwrap().as_ref(), Some(&plain), "{name}");
    }
    let bomb = zlib(&vec![0; 4 << 20]);
    for extra in [
        compressed(1, size + 1, &zlib(&plain)),
        compressed(1, 4 << 20, &bomb),
        compressed(1, u64::MAX, &bomb),
        compressed(1, size, &zlib(&plain)[..20]),
        compressed(2, size, &zlib(&plain)),
        compressed(3, size, &zlib(&plain)),
        compressed(2, 1 << 19, &[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff]),
        Extra::new(".zdebug_line", b"ZLIB".to_vec()),
        Extra::new(".zdebug_line", zlib(&plain)),
        Extra { flags: 0x800, ..Extra::new(".debug_line", vec![1; 23]) },
    ] {
        let shown = format!("{extra:?}");
        assert!(section(extra).is_err(), "{}", &shown[..60]);
    }
    assert!(section(Extra::new(".debug_info", plain)).unwrap().is_none());
    assert_eq!(old_spelling(b".text"), None);
}

#[test]
fn a_section_that_expands_a_hundredfold_is_refused_before_it_takes_memory() {
    for (size, is_refused) in [(1 << 20, false), (64 << 20, true)] {
        let zeros = vec![0; size];
        for extra in [
            compressed(1, size as u64, &zlib(&zeros)),
            compressed(2, size as u64, &zstd(&zeros)),
            Extra::new(".zdebug_line", [b"ZLIB", &(size as u64).to_be_bytes()[..], &zlib(&zeros)].concat()),
        ] {
            let built = Builder { sections: vec![extra], ..Builder::default() };
            let expanded = source(built.bytes()).section(b".debug_line", 1 << 30, &mut Budget::unlimited());
            match expanded {
                Ok(bytes) => assert_eq!((bytes, is_refused), (Some(zeros.clone()), false)),
                Err(reason) => {
                    assert!(is_refused && reason.to_string().contains("implausible"), "{reason}");
                }
            }
        }
    }
}

#[test]
fn reading_and_decompressing_can_be_interrupted() {
    let size = 12 << 20;
    // A section that expands to more than 64 times its size is refused, so some bytes are not zero.
    let sparse = |at: u64| match at % 32 {
        0 => {
            let mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
        }
        _ => 0,
    };
    let plain: Vec<u8> = (0..size).map(sparse).collect();
    for extra in [
        Extra::new(".debug_line", plain.clone()),
        compressed(1, size, &zlib(&plain)),
        compressed(2, size, &zstd(&plain)),
        Extra::new(".zdebug_line", [b"ZLIB", &size.to_be_bytes()[..], &zlib(&plain)].concat()),
    ] {
        let name = extra.name;
        let built = Builder { sections: vec![extra], ..Builder::default() };
        let source = source(built.bytes());
        let read = source.section(b".debug_line", 1 << 30, &mut Budget::unlimited().at_most(1));
        assert!(matches!(read, Err(NoSymbols::TooCostly)), "{name}");
        let whole = source.section(b".debug_line", 1 << 30, &mut Budget::unlimited()).unwrap();
        assert!(whole.is_some_and(|bytes| bytes == plain), "{name}");
    }
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// The file that gives the names of a stripped program with this `.gnu_debugdata`, and its symbol at 0x1004.
fn by_debugdata(bytes: Vec<u8>) -> (Option<NamesFrom>, Option<String>) {
    let program = stripped(vec![Extra::new(".gnu_debugdata", bytes)]);
    let loaded = ModuleSymbols::new(Sources::without_separate(source(program.bytes())), 1);
    let name = |address| loaded.symbol_at(address).map(|(_, name)| name.to_string());
    assert_eq!(name(0x1108).as_deref(), Some("exported"));
    (loaded.sources.answers(), name(0x1004))
}

#[test]
fn a_small_table_within_the_file() {
    let small = xz(&debug_file(vec![]));
    let (answers, name) = by_debugdata(small.clone());
    assert_eq!(answers, Some(NamesFrom::DebugData));
    assert_eq!(name.as_deref(), Some("hidden"));
    for damaged in [vec![1, 2, 3], small[..small.len() / 2].to_vec(), xz(b"no ELF file")] {
        let (answers, name) = by_debugdata(damaged);
        assert_eq!(answers, Some(NamesFrom::DynamicTable));
        assert_eq!(name, None);
    }
}

#[test]
fn decompressed_debugdata_is_limited() {
    let bytes = xz(&vec![0; 1 << 20]);
    let expanded = |most| expand_xz(&bytes, most, &mut Budget::unlimited()).unwrap();
    assert_eq!(expanded(1 << 20).unwrap().len(), 1 << 20);
    assert_eq!(expanded((1 << 20) - 1), None);
}

#[test]
fn decompressing_ends_with_ctrl_c_and_with_the_clock() {
    let bytes = xz(&vec![0; 8 << 20]);
    let refused = |mut budget| expand_xz(&bytes, 8 << 20, &mut budget).unwrap_err();
    let pressed = Budget::until(Arc::new(AtomicBool::new(true)));
    assert!(matches!(refused(pressed), NoSymbols::Interrupted));
    let over = Budget::unlimited().within(Duration::ZERO);
    assert!(matches!(refused(over), NoSymbols::TooCostly));
    // A module is not cached without its names after an interruption.
    let program = stripped(vec![Extra::new(".gnu_debugdata", xz(&debug_file(vec![])))]).bytes();
    let target = Fake::new().region(0x10_0000, 0x10_1000, "r-xp", 1, "/lib/1.so").file("/lib/1.so", program).target();
    let regions = target.process.regions().unwrap();
    let interrupts = Arc::new(AtomicBool::new(true));
    let symbols = Symbols::with_budget(Budget::until(Arc::clone(&interrupts)));
    let name = || {
        let view = symbols.over(&target, &regions);
        let found = view.at(VirtualAddress::new(0x10_0004));
        found.map(|one| one.name().to_string())
    };
    assert_eq!(name(), None);
    interrupts.store(false, Ordering::Relaxed);
    assert_eq!(name().as_deref(), Some("hidden"));
}

#[test]
fn a_debug_file_goes_before_a_small_table() {
    let program = stripped(vec![Extra::build_id(ID), Extra::new(".gnu_debugdata", xz(&debug_file(vec![])))]);
    let good = debug_file(vec![Extra::build_id(ID)]);
    assert_eq!(find(&program, &[(BY_ID, good)]).unwrap(), BY_ID);
}

#[test]
fn the_memory_of_many_compressed_tables_is_limited() {
    const FILES: u64 = 12;
    let table = debug_file(vec![]);
    let size = table.len() as u64;
    let program = stripped(vec![Extra::new(".gnu_debugdata", xz(&table))]).bytes();
    let start = |number: u64| 0x10_0000 + number * 0x10_0000;
    let fake = (0..FILES).fold(Fake::new(), |fake, number| {
        let name = format!("/lib/{number}.so");
        fake.region(start(number), start(number) + 0x1000, "r-xp", number + 1, &name).file(&name, program.clone())
    });
    let target = fake.target();
    let regions = target.process.regions().unwrap();
    let mut symbols = Symbols::default();
    symbols.expanded_memory = ExpandedMemory::at_most(4 * size);
    let name = |view: &TargetSymbols, number: u64| {
        let found = view.at(VirtualAddress::new(start(number) + 4));
        found.map(|one| one.name().to_string())
    };
    for number in (0..FILES).chain(0..FILES) {
        // Each command has its own view: tables that others used are dropped.
        let view = symbols.over(&target, &regions);
        assert_eq!(name(&view, number).as_deref(), Some("hidden"), "{number}");
        assert!(symbols.expanded_memory.bytes_left() >= size);
    }
    // In one view, some modules have no names.
    let view = symbols.over(&target, &regions);
    let named = (0..FILES).filter(|&number| name(&view, number).is_some());
    let named = named.count() as u64;
    assert!((2..=4).contains(&named), "{named}");
    // Each of them has a reason.
    let mut counted = (0, 0);
    for survey in view.surveys() {
        let survey = survey.unwrap();
        match (&survey.answers, survey.no_debugdata) {
            (Ok((NamesFrom::DebugData, _)), None) => counted.0 += 1,
            (Ok((NamesFrom::DynamicTable, _)), Some(NoSymbols::NoRoom)) => counted.1 += 1,
            (answers, why) => panic!("{answers:?}, {why:?}"),
        }
    }
    assert_eq!(counted, (named, FILES - named));
    drop(view);
    // As soon as there is room, they have names.
    for number in 0..FILES {
        let view = symbols.over(&target, &regions);
        assert_eq!(name(&view, number).as_deref(), Some("hidden"), "{number}");
    }
}
