//! Answers within a budget of steps: whole or none, never cut short.

use super::super::{MatchStep, NoSymbols, Symbols};
use super::builder::{Builder, Entry, Extra, FUNCTION, GLOBAL, OBJECT, entry};
use crate::budget::Budget;
use crate::kernel::VirtualAddress;
use crate::process::Target;
use crate::process::fake::Fake;
use std::io::Write;

/// An answer as text, or `None` if the budget was spent.
type Answer = Option<String>;

/// Asks everything that one file can answer, each question with its own files: what one has read is not kept for the
/// next.
fn answers(target: &Target, steps: Option<u64>) -> Vec<(&'static str, Answer)> {
    let budget = || steps.map_or(Budget::unlimited(), |steps| Budget::unlimited().at_most(steps));
    let regions = target.process.regions().expect("its regions");
    let ask = |question: &dyn Fn(&super::super::TargetSymbols<'_>) -> Answer| {
        let symbols = Symbols::with_budget(budget());
        symbols.use_perf_maps(true);
        question(&symbols.over(target, &regions))
    };
    let found = |name: &'static str| {
        ask(&|view| match view.find(None, name) {
            Ok(found) => Some(format!("{found:?}")),
            Err(super::super::Error::NoSymbols { reason, .. }) if reason.is_passing() => None,
            Err(error) => Some(error.to_string()),
        })
    };
    let at = |address| ask(&|view| view.at(VirtualAddress::new(address)).map(|found| format!("{found:?}")));
    let on_demand = {
        let symbols = Symbols::with_budget(budget());
        symbols.on_demand(target).at(VirtualAddress::new(0x10_0004)).map(|found| format!("{found:?}"))
    };
    let matching = ask(&|view| {
        let mut found = Vec::new();
        for step in view.matching(&|_| true, u64::MAX) {
            match step {
                Ok(MatchStep::Symbol(symbol)) => found.push(symbol.name().to_string()),
                Err(_) | Ok(MatchStep::Incomplete(_, NoSymbols::TooCostly)) => return None,
                Ok(MatchStep::Incomplete(..)) => {}
            }
        }
        Some(format!("{found:?}"))
    });
    let surveyed = ask(&|view| {
        let mut text = String::new();
        for survey in view.surveys() {
            let survey = survey.ok()?;
            match (survey.answers, survey.no_debugdata) {
                (Err(NoSymbols::TooCostly), _) | (_, Some(NoSymbols::TooCostly)) => return None,
                (answers, _) => text += &format!("{answers:?} {:?}", survey.build_id),
            }
        }
        let jit = view.jit_survey().ok()?;
        Some(format!("{text} {jit:?}"))
    });
    vec![
        ("a name", found("last")),
        ("a demangled name", found("shapes::area")),
        ("no such name", found("missing")),
        ("an address", at(0x10_0004)),
        ("an address, with regions on demand", on_demand),
        ("a name in JIT code", found("made")),
        ("an address in JIT code", at(0x30_0014)),
        ("all names", matching),
        ("the module", surveyed),
    ]
}

#[track_caller]
fn holds(what: &str, target: &Target, expected: &[&str]) {
    let whole = answers(target, None);
    for (question, text) in whole.iter().map(|(question, answer)| (*question, answer.as_deref().unwrap_or_default())) {
        assert!(!expected.contains(&question) || text.len() > 2, "{what}, {question}: {text}");
    }
    let mut given_up = 0;
    let mut steps = 0;
    loop {
        let limited = answers(target, Some(steps));
        let open = limited.iter().zip(&whole).filter(|((question, answer), (_, whole))| {
            assert!(
                answer.is_none() || answer == whole,
                "{what}, {question}, {steps} steps: {answer:?}, not {whole:?}"
            );
            answer.is_none() && whole.is_some()
        });
        let open = open.count();
        given_up += open;
        if open == 0 {
            break;
        }
        assert!(steps < 1 << 32, "{what}: never enough steps");
        steps += 1 + steps / 8;
    }
    assert!(given_up > expected.len(), "{what}: few steps were enough");
}

fn named(count: u64) -> Vec<Entry> {
    let mut symbols: Vec<Entry> = (0..count)
        .map(|number| entry(&format!("name_{number}"), 0x1000 + number % 0x200, 1, GLOBAL, FUNCTION))
        .collect();
    symbols.push(entry("_ZN6shapes4areaEi", 0x1300, 8, GLOBAL, FUNCTION));
    symbols.push(entry("data", 0x2000, 8, GLOBAL, OBJECT));
    symbols.push(entry("last", 0x1400, 8, GLOBAL, FUNCTION));
    symbols
}

fn mapped(file: Vec<u8>) -> Target {
    Fake::new().region(0x10_0000, 0x10_1000, "r-xp", 1, "/lib/1.so").file("/lib/1.so", file).target()
}

#[test]
fn a_table_of_symbols() {
    let file = Builder::with(named(300));
    holds("a table", &mapped(file.bytes()), &["a name", "a demangled name", "an address", "all names", "the module"]);
}

#[test]
fn a_compressed_table() {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("a writer");
    writer.write_all(&Builder::with(named(300)).bytes()).expect("to compress");
    let bytes = writer.finish().expect("to compress");
    let file = Builder {
        dynamic: vec![entry("exported", 0x1010, 8, GLOBAL, FUNCTION)],
        sections: vec![Extra::new(".gnu_debugdata", bytes)],
        ..Builder::default()
    };
    holds("a compressed table", &mapped(file.bytes()), &["a name", "all names", "the module"]);
}

#[test]
fn a_separate_debug_file() {
    const ID: &[u8] = &[0xab, 0xcd, 0xef, 0x01];
    let debug = |sections| Builder { sections, ..Builder::with(named(300)) }.bytes();
    let of_build = debug(vec![Extra::build_id(ID)]);
    let linked = debug(Vec::new());
    let mut crc = flate2::Crc::new();
    crc.update(&linked);
    for (what, name, debug, path) in [
        ("by its build-id", Extra::build_id(ID), of_build, "/usr/lib/debug/.build-id/ab/cdef01.debug"),
        ("by its link", Extra::debuglink(b"1.debug", crc.sum()), linked, "/lib/.debug/1.debug"),
    ] {
        let program = Builder {
            dynamic: vec![entry("exported", 0x1010, 8, GLOBAL, FUNCTION)],
            sections: vec![name],
            ..Builder::default()
        };
        let fake = Fake::new().region(0x10_0000, 0x10_1000, "r-xp", 1, "/lib/1.so").file("/lib/1.so", program.bytes());
        let target = fake.file(path, debug).target();
        holds(what, &target, &["a name", "a demangled name", "an address", "all names", "the module"]);
    }
}

#[test]
fn a_perf_map() {
    let mut lines: String = (0..300).map(|number| format!("{:x} 8 name_{number}\n", 0x30_0100 + number * 8)).collect();
    lines += "300010 10 made\n300020 10 last\n300030 10 shapes::area\n";
    let target =
        Fake::new().region(0x30_0000, 0x30_1000, "r-xp", 0, "").file("/tmp/perf-4321.map", lines.into_bytes()).target();
    holds(
        "a perf map",
        &target,
        &["a name", "a demangled name", "a name in JIT code", "an address in JIT code", "all names", "the module"],
    );
}
