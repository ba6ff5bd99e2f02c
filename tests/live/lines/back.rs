//! From a line to its code, and back.

use super::super::Test;
use super::super::support::skip;
use super::super::symbols::programs::{compile_with, is_installed};
use super::super::symbols::with_names;
use super::super::target::Target;
use super::addr2line::readelf_rows;
use super::programs::C_PROGRAM;
use pmdb::budget::{Budget, OutOfBudget};
use pmdb::kernel::{Name, VirtualAddress};
use pmdb::symbol::Symbols;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub const TESTS: &[Test] =
    &[("lines::there_and_back", there_and_back), ("lines::all_code_of_a_line", all_code_of_a_line)];

/// Every address of the program is found by its line, and by no other, as readelf has it.
fn all_code_of_a_line() {
    let test = "lines::all_code_of_a_line";
    if !is_installed("gcc") || !is_installed("readelf") {
        return skip(test, "there is no gcc or no readelf here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, flags) in [("whole-0", &["-O0", "-g"]), ("whole-2", &["-O2", "-g"]), ("whole-3", &["-O3", "-gdwarf-4"])]
    {
        let program = compile_with("gcc", folder.path(), name, C_PROGRAM, flags);
        let program = program.expect("to compile");
        let file = format!("{name}.c");
        let mut expected: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for row in readelf_rows(&program) {
            if row.file == file && row.line != "0" {
                let line = row.line.parse().expect("a number");
                expected.entry(line).or_default().extend(row.range);
            }
        }
        expected.retain(|_, addresses| !addresses.is_empty());
        assert!(expected.len() > 8, "{name}: {expected:?}");
        let mut target = Target::spawn(&mut Command::new(&program));
        target.line();
        let symbols = Symbols::default();
        with_names(&symbols, &target.attach(), |names, _| {
            for (&line, expected) in &expected {
                let found = names.find_line(&file, line, 0);
                let found = found.expect("an answer");
                assert_eq!(found.line, Some(line), "{name}: {found:?}");
                assert!(!found.firsts().is_empty(), "{name}:{line}");
                let mut told = BTreeSet::new();
                for place in &found.places {
                    let (_, start) = names.file_address(place.start).expect("in the program");
                    told.extend((0..place.end.get() - place.start.get()).map(|n| start.get() + n));
                }
                assert_eq!(told, *expected, "{name}:{line}");
            }
        });
        target.send("");
    }
}

fn there_and_back() {
    let test = "lines::there_and_back";
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile_with("gcc", folder.path(), "back", C_PROGRAM, &["-O2", "-g"]);
    let program = program.expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&program));
    let words = target.numbers();
    let pressed = Arc::new(AtomicBool::new(false));
    let symbols = Symbols::with_budget(Budget::until(Arc::clone(&pressed)));
    with_names(&symbols, &target.attach(), |names, _| {
        let search = |file: &str, line| {
            let found = names.find_line(file, line, 100);
            found.expect("an answer")
        };
        let line_of = |text: &str| {
            let before = C_PROGRAM.split(text).next().expect("a line");
            before.lines().count() as u64
        };
        // Inlined twice into one function: two copies, each in `work`.
        let squared = line_of("sink += x;");
        let found = search("back.c", squared);
        assert_eq!(found.line, Some(squared));
        assert!(found.firsts().len() >= 2, "{found:?}");
        for place in &found.places {
            let known = place.known.as_ref().expect("its functions");
            let functions: Vec<_> = known.frames.iter().map(|one| one.name()).collect();
            let expected = ["square", "twice", "work"].map(|name| Some(Name::from(name)));
            assert_eq!(functions, expected, "{place:?}");
        }
        // By its whole path, and for a line without code the next one that has.
        let whole = format!("{}/back.c", folder.path().display());
        let found = search(&whole, line_of("int main(void)"));
        assert_eq!(found.firsts(), [VirtualAddress::new(words[1])]);
        let found = search("back.c", 1);
        assert!(found.line.is_some_and(|line| line > 1), "{found:?}");
        let found = search("ack.c", 5);
        assert!(!found.has_file && found.places.is_empty(), "{found:?}");
        let found = search("back.c", 5000);
        assert!(found.has_file && found.places.is_empty(), "{found:?}");
        // An interrupted search finds nothing, and caches nothing that would be wrong later.
        pressed.store(true, Ordering::Relaxed);
        let stopped = names.find_line("back.c", 1, 100);
        assert!(matches!(stopped, Err(OutOfBudget::Interrupted)));
        pressed.store(false, Ordering::Relaxed);
        assert!(search("back.c", squared).firsts().len() >= 2);
    });
    // Ctrl-C ends every search, also in the middle.
    let symbols = Symbols::with_budget(Budget::until(Arc::new(AtomicBool::new(true))));
    with_names(&symbols, &target.attach(), |names, _| {
        let work = VirtualAddress::new(words[0]);
        let stopped = names.line_at(work);
        assert!(matches!(stopped, Err(OutOfBudget::Interrupted)), "{stopped:?}");
        let stopped = names.find_line("back.c", 1, 100);
        assert!(matches!(stopped, Err(OutOfBudget::Interrupted)), "{stopped:?}");
    });
    target.send("");
}
