//! A target's perf map, and every query on it.

use crate::elf::{PERF_MAP, region, with_names};
use pmdb::kernel::VirtualAddress;
use pmdb::symbol::{MatchStep, NamesIn, Symbols, TargetSymbols};
use std::time::Duration;

/// Where the code is.
const CODE: u64 = 0x7f00_0000_0000;

/// Perf maps as JIT compilers write them: plain, with functions that overwrite others, with malformed lines.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        &b"7f0000000010 20 one\n7f0000000040 80 py::two:/srv/a b.py\n"[..],
        b"7f0000000000 800 whole\n7f0000000100 10 inner\n7f0000000100 8 newer\n0x7f0000000104 0x40 LazyCompile:~f x.js:1\n",
        b"\n\xff\xfe 1 x\n7f0000000ff0 ffffffffffffffff far\n7f0000000ff0 20 \x1b[31m\xff\n7f0000000020 10 half",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

pub fn feed(bytes: &[u8]) {
    let symbols = Symbols::default();
    symbols.use_perf_maps(true);
    with_names(bytes, &symbols, &[region(CODE, 0, "")], ask);
}

fn ask(names: &TargetSymbols) {
    for into in [0, 0x10, 0x2f, 0x40, 0x100, 0x104, 0x7ff, 0xff0, 0xfff] {
        let address = VirtualAddress::new(CODE + into);
        if let Some(symbol) = names.at(address) {
            // The symbol found covers the address, and is found by its name.
            assert_eq!(symbol.start.checked_add(symbol.offset), Some(address));
            assert!(symbol.offset < symbol.size);
            if let Ok(name) = std::str::from_utf8(symbol.mangled.as_bytes()) {
                let found = names.find(Some(PERF_MAP), name).expect("a list");
                let is_there = symbol.start.get() >= CODE
                    && names
                        .at(symbol.start)
                        .is_some_and(|one| (one.start, one.mangled) == (symbol.start, symbol.mangled.clone()));
                assert!(!is_there || !found.is_empty(), "{name:?}");
            }
            _ = (symbol.name().to_string(), symbol.module.to_string());
        }
    }
    _ = names.names(NamesIn::Program, "", 100, Duration::from_secs(1));
    let steps = names.matching(&|_| true, u64::MAX).map(|step| step.expect("nobody stops it"));
    let listed = steps.filter(|step| matches!(step, MatchStep::Symbol(_))).count() as u64;
    assert_eq!(names.jit_survey().expect("no limit").map_or(0, |made| made.functions.expect("a list")), listed);
}
