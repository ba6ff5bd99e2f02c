//! A target that has mapped a program of arbitrary bytes, and every query on it.

use crate::program::{self, TEXT};
use pmdb::budget::Budget;
use pmdb::kernel::WordFile;
use pmdb::kernel::{AddressRange, Device, Name, Permissions, Region, VirtualAddress};
use pmdb::process::{Error, Identity, InMemory, Modules, ReadAt, Result, Target};
use pmdb::source::{Asked, File, FileLocation, Question, Reply, Source};
use pmdb::symbol::{MatchStep, NamesIn, Symbols, TargetSymbols};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The addresses of the program's first byte, mapped as a file and as the vdso.
pub const BASE: u64 = 0x5555_5555_4000;
pub const LENT: u64 = 0x7fff_f000_0000;

/// The path of the target's perf map.
pub const PERF_MAP: &str = "/tmp/perf-77.map";

/// The status of a process that calls itself 77.
const STATUS: &[u8] = b"State:\tS (sleeping)\nTgid:\t77\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n";

/// Every file that is opened has these bytes.
struct OneFile(Vec<u8>);

impl Source for OneFile {
    fn identity(&self) -> Identity {
        Identity::default()
    }
    fn ask(&self, question: Question<'_>, _: &mut Budget) -> Result<Reply> {
        match question {
            Question::Text(file @ File::MainStatus) => file.reply(Ok(STATUS.to_vec())),
            question => Err(Error::NotAvailable { what: format!("no {question:?}") }),
        }
    }
    /// Nothing is resident.
    fn words(&self, _: WordFile, _: u64, into: &mut [u64]) -> Result<usize> {
        into.fill(0);
        Ok(into.len())
    }
    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        let is_there = match place {
            FileLocation::Path(path) => path.ends_with(b".debug"),
            FileLocation::OwnPath(_) => false,
            FileLocation::Region(_) | FileLocation::Trusted(..) | FileLocation::OwnVdso(_) => true,
        };
        let file = || Box::new(InMemory::file(self.0.clone())) as Box<dyn ReadAt>;
        Ok(is_there.then(file))
    }
}

pub fn region(start: u64, inode: u64, name: &str) -> Region {
    let end = VirtualAddress::new(start + 0x1000);
    Region {
        range: AddressRange::new(VirtualAddress::new(start), end).expect("a range"),
        permissions: Permissions { read: true, execute: true, ..Permissions::default() },
        offset: 0,
        device: Device { major: 8 * u32::from(inode != 0), minor: u32::from(inode != 0) },
        inode,
        name: Name::from(name),
        deleted: false,
    }
}

/// This process, with other files behind its regions: only these are read.
static TARGET: Mutex<Option<Target>> = Mutex::new(None);

/// Calls `with` with the names of a target that has mapped these bytes.
fn mapped<T>(bytes: &[u8], with: impl FnOnce(&TargetSymbols) -> T) -> T {
    let regions = [region(BASE, 77, "/usr/bin/server"), region(LENT, 0, "[vdso]")];
    with_names(bytes, &Symbols::default(), &regions, with)
}

/// Calls `with` with the names of a target that has such regions, all of its files being these bytes.
pub fn with_names<T>(bytes: &[u8], symbols: &Symbols, regions: &[Region], with: impl FnOnce(&TargetSymbols) -> T) -> T {
    let mut kept = TARGET.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let target = kept.get_or_insert_with(|| Target::attach(std::process::id()).expect("this process"));
    target.modules = Modules::new(Arc::new(OneFile(bytes.to_vec())));
    with(&symbols.over(target, regions))
}

/// All queries by address: names by a pass and by the index, sections, lines. Returns whether a line was found.
fn ask_addresses(names: &TargetSymbols) -> bool {
    let mut found = false;
    let offsets = [0, 0x10, 0x16, 0x18, 0x85, 0xc4, 0xd4, 0xe0, 0x100, 0x113, 0xdff];
    for (base, into) in offsets.iter().flat_map(|&into| [(BASE, into), (LENT, into)]) {
        let address = VirtualAddress::new(base + TEXT + into);
        if let Some(symbol) = names.at(address) {
            _ = (symbol.name().to_string(), symbol.module.to_string());
        }
        _ = names.section_at(address);
        if let Some((module, in_file)) = names.file_address(address) {
            _ = names.address_in(&module.file_name().to_string(), in_file.get());
        }
        let line = names.line_at(address);
        let line = line.expect("nobody stops it");
        for frame in &line.frames {
            found |= frame.line.is_some();
            _ = (frame.name(), frame.file.as_ref().map(Name::to_string));
        }
        _ = line.missing.map(|why| why.to_string());
    }
    found
}

/// All queries by name, and about the modules.
fn ask_names(names: &TargetSymbols) {
    for file in ["server.c", "shape.h", "/src/server.c"] {
        let lines = names.find_line(file, 3, 10);
        _ = lines.expect("nobody stops it");
    }
    for name in ["shapes::area", "clock@V_1.2", "environ", "malloc", "clock@plt", "clock@got.plt"] {
        _ = names.find(None, name);
    }
    _ = names.find(Some("server"), "data@V1");
    for beginning in ["", "clock@"] {
        _ = names.names(NamesIn::Program, beginning, 100, Duration::from_secs(1));
    }
    for step in names.matching(&|name| name.contains('a'), 100) {
        match step.expect("nobody stops it") {
            MatchStep::Symbol(symbol) => _ = symbol.name().to_string(),
            MatchStep::Incomplete(_, why) => _ = why.to_string(),
        }
    }
    for survey in names.surveys() {
        let survey = survey.expect("nobody stops it");
        _ = (survey.build_id, survey.answers.map_err(|why| why.to_string()));
    }
    for module in names.modules() {
        _ = names.reason(module).map(|why| why.to_string());
        _ = names.bss_of(&module.name);
    }
}

pub fn feed(bytes: &[u8]) {
    mapped(bytes, |names| {
        ask_addresses(names);
        ask_names(names);
    });
}

/// The seeds, checked to be valid: otherwise nothing after the first check would be reached.
pub fn sound_seeds() -> Vec<Vec<u8>> {
    let seeds = program::all();
    for (what, has_lines, bytes) in &seeds {
        mapped(bytes, |names| {
            let has_line = ask_addresses(names);
            assert_eq!(has_line, *has_lines, "{what}: whether a line is found");
            // Each of them has a function, or an exported one and the stub and slot of an imported one.
            let clock = names.find(Some("server"), "clock");
            let wanted = match clock.is_ok_and(|found| !found.is_empty()) {
                true if what.starts_with("without") => &[0x40][..],
                true => &[0x40, 0x100, 0x113],
                false => &[0, 0xe0],
            };
            for (base, into) in wanted.iter().flat_map(|&into| [(BASE, into), (LENT, into)]) {
                let symbol = names.at(VirtualAddress::new(base + TEXT + into));
                assert!(symbol.is_some(), "{what}: no symbol at {into:#x}");
            }
        });
    }
    seeds.into_iter().map(|(_, _, bytes)| bytes).collect()
}
