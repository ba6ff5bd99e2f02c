//! Damaged and hostile files: no panic, no hang, no unbounded memory, and a reason.

use super::super::elf::{BoundedFile, ElfFile, RelocationPass, Relocations};
use super::super::files::Sources;
use super::super::module_symbols::ModuleSymbols;
use super::super::{NoSeparate, NoSymbols, Symbols, demangle, files, search, table};
use super::Counting;
use super::builder::*;
use crate::budget::Budget;
use crate::kernel::Name;
use crate::process::fake::{Everywhere, Fake};
use crate::process::{InMemory, Modules, ReadAt};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);

/// Makes every query on one file.
fn exercise(bytes: Box<dyn ReadAt>) -> Result<(), NoSymbols> {
    let loaded = ModuleSymbols::new(
        Sources::without_separate(ElfFile::read(BoundedFile::new(bytes), &mut Budget::unlimited())?),
        1,
    );
    for address in [0, 0x1004, 0x1010, 0x2004, 0x3fff, u64::MAX, 0x1004] {
        loaded.symbol_at(address);
        if let Some(number) = loaded.elf().section_at(address) {
            loaded.elf().section_name(number);
        }
    }
    let image = &loaded.sources.image;
    for name in [&b".debug_info"[..], b".debug_line", b".gnu_debugdata"] {
        _ = image.section(name, 1 << 20, &mut Budget::unlimited());
        image.has_section(name);
    }
    let modules = Fake::new().target().modules;
    _ = files::find(&modules, &Name::from("/p"), image, &Budget::unlimited()).unwrap().find_separate();
    loaded.is_copied_variable(0x1004)?;
    for address in [0x1004, 0x2004, u64::MAX] {
        loaded.symbol_at(address);
    }
    let mut budget = Budget::unlimited().within(std::time::Duration::from_secs(1));
    for name in ["exported@plt", "exported@got.plt"] {
        loaded.plt_got_called(name, &mut budget)?;
    }
    let mut names = std::collections::BTreeSet::new();
    loaded.find("shapes::area")?;
    loaded.find("exported@V")?;
    loaded.complete("", 100, &mut budget, &mut names)?;
    loaded.fault().map_or(Ok(()), Err)
}

fn sound() -> Builder {
    Builder {
        dynamic: vec![entry("exported", 0x1010, 8, GLOBAL, FUNCTION)],
        versions: vec![2],
        sections: vec![
            Extra::build_id(&[1, 2, 3, 4]),
            Extra::debuglink(b"p.debug", 7),
            Extra { flags: 0x800, ..Extra::new(".debug_info", [&[1, 0, 0, 0, 0, 0, 0, 0, 8][..], &[0; 40]].concat()) },
            Extra::new(".zdebug_line", b"ZLIB\0\0\0\0\0\0\0\x08damaged".to_vec()),
            Extra::new(".gnu_debugdata", b"\xfd7zXZ\0\0\x04damaged".to_vec()),
            // An address, a copy relocation of x86-64, and an addend.
            Extra {
                kind: 4,
                flags: 2,
                ..Extra::new(".rela.dyn", [&[0, 0x30, 0, 0, 0, 0, 0, 0, 5][..], &[0; 15]].concat())
            },
        ],
        ..Builder::with(vec![
            entry("main", 0x1000, 8, GLOBAL, FUNCTION),
            entry("_ZN6shapes4areaEi", 0x1010, 8, GLOBAL, FUNCTION),
            entry("data", 0x2000, 0, GLOBAL, OBJECT),
            entry("bss", 0x3000, 0x100, LOCAL, OBJECT),
        ])
    }
}

#[test]
fn an_intact_file_has_no_fault() {
    assert!(exercise(Box::new(InMemory::file(sound().bytes()))).is_ok());
}

#[test]
fn no_elf_file() {
    for bytes in [&b""[..], b"\x7fEL", b"#!/bin/sh\n", &[0; 5000]] {
        let reason = exercise(Box::new(InMemory::file(bytes.to_vec()))).unwrap_err();
        assert!(matches!(reason, NoSymbols::NotElf), "{reason}");
    }
    let reason = exercise(Box::new(InMemory::file(b"\x7fELF\x07".to_vec()))).unwrap_err();
    assert!(matches!(reason, NoSymbols::Damaged(_)), "{reason}");
}

#[test]
fn files_that_end_early() {
    for is_64 in [true, false] {
        let bytes = Builder { is_64, ..sound() }.bytes();
        for end in 0..bytes.len() {
            assert!(exercise(Box::new(InMemory::file(bytes[..end].to_vec()))).is_err());
            // Here the reported length is more than there is to read.
            let bytes = bytes.clone();
            _ = exercise(Box::new(CutShort { bytes, end }));
        }
    }
}

/// A file of which only the first bytes are written; the rest is a hole of any size.
struct Sparse {
    start: Vec<u8>,
    length: u64,
}

impl ReadAt for Sparse {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let written = self.start.get(at..).unwrap_or_default();
        let written = &written[..written.len().min(wanted)];
        into[..wanted].fill(0);
        into[..written.len()].copy_from_slice(written);
        Ok(wanted)
    }
    fn len(&self) -> u64 {
        self.length
    }
    fn fingerprint(&self) -> [u64; 4] {
        [0, 0, self.length, 0]
    }
}

#[test]
fn implausible_counts_and_sizes() {
    let bytes = sound().bytes();
    let sections_at = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let damage = |at: usize, value: &[u8]| {
        let mut start = bytes.clone();
        start[at..at + value.len()].copy_from_slice(value);
        let length = 1 << 40;
        exercise(Box::new(Sparse { start, length })).unwrap_err()
    };
    let huge = (1u64 << 39).to_le_bytes();
    let size_of = |section: usize| sections_at + section * 64 + 32;
    // .symtab, .strtab, .dynsym
    for section in [4, 5, 6] {
        let reason = damage(size_of(section), &huge);
        assert!(matches!(reason, NoSymbols::Damaged(_)), "{reason}");
    }
    // A count of sections in the first section header.
    let mut start = bytes.clone();
    start[60..62].copy_from_slice(&[0, 0]);
    start[size_of(0)..size_of(0) + 8].copy_from_slice(&huge);
    let length = 1 << 50;
    let reason = exercise(Box::new(Sparse { start, length })).unwrap_err();
    assert!(matches!(reason, NoSymbols::Damaged(_)), "{reason}");
    // A symbol table that is its own string table.
    let reason = damage(sections_at + 4 * 64 + 40, &4u32.to_le_bytes());
    assert!(matches!(reason, NoSymbols::Damaged(_)), "{reason}");
}

/// The headers of a file may claim any size. What they name beside it is still read.
#[test]
fn headers_are_read_within_a_limit() {
    let twice = vec![Extra::build_id(&[9, 9]), Extra::build_id(&[1, 2])];
    let bytes = Builder { sections: twice, ..sound() }.bytes();
    let word = |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let section = |number: usize| word(40) + number * 64;
    let read = |damage: &[(usize, &[u8])]| {
        let mut start = bytes.clone();
        damage.iter().for_each(|(at, value)| start[*at..at + value.len()].copy_from_slice(value));
        ElfFile::read(BoundedFile::new(Box::new(Sparse { start, length: 1 << 40 })), &mut Budget::unlimited())
    };
    let reason = |damage: &[(usize, &[u8])]| read(damage).err().map(|reason| reason.to_string());
    // e_shnum, and sh_size of the first section header
    let many = reason(&[(60, &[0, 0]), (section(0) + 32, &[0, 0, 0, 1])]);
    assert_eq!(many.as_deref(), Some("damaged ELF file: too many sections"));
    // e_phnum, and sh_info of the first section header
    let many = reason(&[(56, &[0xff, 0xff]), (section(0) + 44, &[0, 0, 0, 1])]);
    assert_eq!(many.as_deref(), Some("damaged ELF file: too many program headers"));
    let notes = |size: u64| read(&[(section(10) + 32, &size.to_le_bytes())]).expect("headers").elf.build_id;
    assert_eq!(notes(18), Some(vec![9, 9]));
    assert_eq!(notes(1 << 39), Some(vec![1, 2]));
}

/// A file of which everything but the first bytes cannot be read.
struct Broken(Vec<u8>);

impl ReadAt for Broken {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        if offset > 0 {
            return Err(std::io::Error::from_raw_os_error(libc::EIO));
        }
        std::io::Read::read(&mut &*self.0, into)
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn fingerprint(&self) -> [u64; 4] {
        [0, 0, self.len(), 0]
    }
}

#[test]
fn a_read_that_fails_is_the_reason() {
    let source = ElfFile::read(BoundedFile::new(Box::new(Broken(sound().bytes()))), &mut Budget::unlimited());
    let reason = source.err().map(|reason| reason.to_string());
    assert!(reason.as_ref().is_some_and(|reason| reason.contains("os error 5")), "{reason:?}");
}

/// A debug file that is mostly a hole, whose checksum would take half a minute.
#[test]
fn checksums_of_huge_files_are_not_computed() {
    let length = 4 << 30;
    let huge = move || -> Box<dyn ReadAt> { Box::new(Sparse { start: Builder::default().bytes(), length }) };
    let program = Builder { sections: vec![Extra::debuglink(b"p.debug", 7)], ..Builder::default() };
    let image =
        ElfFile::read(BoundedFile::new(Box::new(InMemory::file(program.bytes()))), &mut Budget::unlimited()).unwrap();
    let everywhere = Modules::new(Arc::new(Everywhere(huge)));
    let found = files::find(&everywhere, &Name::from("/p"), &image, &Arc::default());
    let refusal = found.unwrap().find_separate().err();
    assert!(matches!(refusal, Some(NoSeparate::TooLarge { .. })), "{refusal:?}");
}

/// The same relocations listed a thousand times, or more of them than any program has.
#[test]
fn relocations_are_read_once_and_within_a_limit() {
    let built = Builder {
        sections: vec![Extra { kind: 4, flags: 2, ..Extra::new(".rela.dyn", vec![5; 24 << 10]) }],
        ..Builder::default()
    };
    let read = |step: u64, size: u64| {
        let mut start = built.bytes();
        let word = |at: usize| u64::from_le_bytes(start[at..at + 8].try_into().unwrap());
        let headers = usize::try_from(word(40)).unwrap();
        let count = usize::from(u16::from_le_bytes(start[60..62].try_into().unwrap()));
        let headers = start[headers..headers + count * 64].to_vec();
        let is_relocation = |header: &&[u8]| header[4] == 4;
        let template = headers.chunks(64).find(is_relocation).unwrap().to_vec();
        let begin = start.len() as u64;
        start[40..48].copy_from_slice(&begin.to_le_bytes());
        start[60..62].copy_from_slice(&(count as u16 + 1000).to_le_bytes());
        start.extend(headers);
        for number in 0..1000 {
            let mut header = template.clone();
            header[24..32].copy_from_slice(&(begin + number * step).to_le_bytes());
            header[32..40].copy_from_slice(&size.to_le_bytes());
            start.extend(header);
        }
        let (reads, bytes) = Default::default();
        let counting = Counting {
            inner: Box::new(Sparse { start, length: 1 << 40 }),
            reads: Arc::clone(&reads),
            bytes: Arc::clone(&bytes),
        };
        let image = ElfFile::read(BoundedFile::new(Box::new(counting)), &mut Budget::unlimited()).unwrap();
        let before = bytes.load(Ordering::Relaxed);
        Relocations::default().of(&image, &mut Budget::unlimited().within(MINUTE)).unwrap();
        bytes.load(Ordering::Relaxed) - before
    };
    assert!(read(0, 240 << 10) < 300 << 10);
    assert!(read(24, 240 << 10) < 300 << 10);
    assert!(read(1 << 20, 960 << 10) <= 96 << 20);
}

/// Many symbols of one very long name: only those that are shown are kept.
#[test]
fn matches_are_kept_within_the_limits() {
    let long = "n".repeat(60_000);
    let symbols = |name: &str, count: u64| {
        let entry = |one| entry(name, 0x1000 + one, 1, GLOBAL, FUNCTION);
        (0..count).map(entry).collect::<Vec<_>>()
    };
    let matches = |symbols: Vec<Entry>, most| {
        let loaded = ModuleSymbols::new(Builder::with(symbols).sources(), 1);
        let limits = search::Limits { symbols: most, bytes: 1_000_000 };
        let found = loaded.search_names(&|_| true, &limits, &mut Budget::unlimited());
        let found = found.unwrap();
        let places: Vec<u64> = found.symbols.iter().map(|one| one.address).collect();
        (places, found.has_too_many)
    };
    assert_eq!(matches(symbols("one", 5), 3), (vec![0x1000, 0x1001, 0x1002], false));
    let mut mixed = symbols("later", 2);
    mixed.push(entry("first", 0x1100, 1, GLOBAL, FUNCTION));
    assert_eq!(matches(mixed, 2), (vec![0x1100, 0x1000], false));
    let (places, too_many) = matches(symbols(&long, 40), usize::MAX);
    assert!(too_many);
    assert_eq!(places, (0x1000..0x1010).collect::<Vec<_>>());
    assert_eq!(matches(symbols(&long, 40), 1), (vec![0x1000], false));
}

#[test]
fn names_that_grow_when_demangled_are_given_up() {
    // Each template argument list repeats the one before it twice.
    let mut doubling = String::from("_Z1fI1aE");
    doubling.push('v');
    for round in 0..60 {
        doubling = format!("_Z1fI{}EvS{}_", "S_".repeat(2), char::from(b'0' + (round % 10) as u8));
    }
    let nested = format!("_Z1f{}i", "P".repeat(4000));
    let long = format!("_Z{}{}v", 9000, "a".repeat(9000));
    let rust = format!("_RNvC1a{}", "INtC1a1bB2_E".repeat(300));
    for name in [doubling, nested, long, rust, "_Z".into(), "_R".into(), "_ZN".into()] {
        for form in [demangle::NameForm::Full, demangle::NameForm::Path] {
            let demangled = demangle::demangle(name.as_bytes(), form);
            assert!(demangled.is_none_or(|text| text.len() <= 32 * 1024));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn flipped_bits(
        is_64: bool,
        little: bool,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..12),
    ) {
        let mut bytes = Builder { is_64, little, ..sound() }.bytes();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        _ = exercise(Box::new(InMemory::file(bytes)));
    }

    #[test]
    fn replaced_words(
        words in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just(u64::MAX), Just(0), Just(i64::MAX as u64), Just(0xffff_ffff), Just(1), any::<u64>()
        ]), 1..4),
    ) {
        let mut bytes = sound().bytes();
        for (at, word) in words {
            let at = at.index(bytes.len() - 8);
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        _ = exercise(Box::new(InMemory::file(bytes)));
    }

    #[test]
    fn any_mangled_name(tail in "[0-9A-Za-z_$.]{0,200}", prefix in "_Z|_R|_ZN|__Z") {
        let name = prefix + &tail;
        for form in [demangle::NameForm::Full, demangle::NameForm::Path] {
            demangle::demangle(name.as_bytes(), form);
        }
    }
}

/// Real files have what built ones lack: notes, relocations, hash tables, hundreds of symbols.
#[test]
fn flipped_bits_in_a_real_file() {
    let Ok(sound) = std::fs::read("/bin/sh") else {
        return crate::skips::skip("symbol::flipped_bits_in_a_real_file", "/bin/sh cannot be read here");
    };
    let head = 4096.min(sound.len());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for round in 0..200 {
        let mut bytes = sound.clone();
        if round % 2 == 1 && bytes.len() > 64 {
            // Without section headers the dynamic segment is used.
            bytes[40..48].fill(0);
            bytes[58..64].fill(0);
        }
        for _ in 0..8 {
            // Half of them in the headers at the beginning, and in the section headers at the end.
            let at = match random(4) {
                0 => random(head),
                1 => sound.len() - 1 - random(head),
                _ => random(sound.len()),
            };
            bytes[at] ^= 1 << random(8);
        }
        _ = exercise(Box::new(InMemory::file(bytes)));
    }
}

#[test]
fn a_file_that_is_not_opened_is_the_reason_for_everything_unknown() {
    let fake = Fake::new().region(0x10_0000, 0x10_1000, "r-xp", 7, "/opt/gone");
    let target = fake.target();
    let regions = target.process.regions().unwrap();
    let symbols = Symbols::default();
    let mut answers_of_all = Vec::new();
    for survey in symbols.over(&target, &regions).surveys() {
        let survey = survey.unwrap();
        answers_of_all.push([
            survey.answers.err().map(|why| why.to_string()),
            survey.build_id.err().map(|why| why.to_string()),
            survey.separate.err().map(|why| why.to_string()),
        ]);
    }
    let [[Some(answers), Some(build_id), Some(separate)]] = &answers_of_all[..] else {
        panic!("{answers_of_all:?}");
    };
    assert!(answers.contains("/opt/gone"), "{answers}");
    assert_eq!((build_id, separate), (answers, answers));
}

#[test]
fn a_search_for_names_of_stubs_can_be_interrupted() {
    let program = Builder {
        dynamic: (0..5000).map(|_| entry("exported", 0x1010, 8, GLOBAL, FUNCTION)).collect(),
        ..Builder::default()
    };
    let image =
        ElfFile::read(BoundedFile::new(Box::new(InMemory::file(program.bytes()))), &mut Budget::unlimited()).unwrap();
    let found = |mut budget: Budget| {
        let found = table::Import::imports_by_slot(&image, "exported", &mut budget);
        found.map(|found| found.len())
    };
    assert!(matches!(found(Budget::unlimited()), Ok(5000)));
    let pressed = Budget::until(Arc::new(AtomicBool::new(true)));
    assert!(matches!(found(pressed), Err(NoSymbols::Interrupted)));
}

#[test]
fn a_pass_over_relocations_can_be_interrupted() {
    let image =
        ElfFile::read(BoundedFile::new(Box::new(InMemory::file(sound().bytes()))), &mut Budget::unlimited()).unwrap();
    let pressed = Arc::new(AtomicBool::new(true));
    let visited = |budget: &mut Budget| {
        let (mut pass, mut visited) = (RelocationPass::new(&image), 0);
        loop {
            match pass.next(budget) {
                Ok(Some((_, part))) => visited += part.len(),
                ended => return (ended.err(), visited),
            }
        }
    };
    let (outcome, all) = visited(&mut Budget::unlimited().within(MINUTE));
    assert!(outcome.is_none() && all > 0, "{outcome:?}, {all}");
    let (outcome, none) = visited(&mut Budget::until(Arc::clone(&pressed)));
    assert!(matches!(outcome, Some(NoSymbols::Interrupted)));
    assert_eq!(none, 0);
    let over = std::time::Duration::ZERO;
    let (outcome, none) = visited(&mut Budget::unlimited().within(over));
    assert!(matches!(outcome, Some(NoSymbols::TooCostly)));
    assert_eq!(none, 0);
    // A pass that was given up is made again.
    let relocations = Relocations::default();
    let given_up = relocations.of(&image, &mut Budget::until(Arc::clone(&pressed)));
    assert!(given_up.is_err());
    let filled = relocations.of(&image, &mut Budget::unlimited().within(MINUTE));
    assert!(filled.is_ok());
}

#[test]
fn addresses_have_names_even_after_a_search_was_given_up() {
    let loaded = || {
        let image =
            ElfFile::read(BoundedFile::new(Box::new(InMemory::file(sound().bytes()))), &mut Budget::unlimited());
        ModuleSymbols::new(Sources::without_separate(image.unwrap()), 1)
    };
    for passing in [NoSymbols::TooCostly, NoSymbols::Interrupted] {
        let loaded = loaded();
        loaded.fail(passing);
        assert!(loaded.fault().is_none());
        assert!(loaded.symbol_at(0x1004).is_some());
        assert!(!loaded.find("exported").unwrap().is_empty());
    }
    let damaged = loaded();
    damaged.fail(NoSymbols::Damaged("symbol names of implausible size"));
    assert!(damaged.fault().is_some());
    assert!(damaged.symbol_at(0x1004).is_none());
}
