//! Why an address has no line, or something about it is unknown.

use super::super::Test;
use super::super::support::skip;
use super::super::symbols::programs::{compile_with, is_installed};
use super::super::symbols::with_names;
use super::super::target::Target;
use super::programs::C_PROGRAM;
use pmdb::kernel::VirtualAddress;
use pmdb::symbol::{NoLines, Symbols, TargetSymbols};
use std::process::Command;

pub const TESTS: &[Test] = &[("lines::why_there_are_none", why_there_are_none)];

fn why_there_are_none() {
    let test = "lines::why_there_are_none";
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let missing = |name: &str, flags: &[&str], of: fn(&[u64], &TargetSymbols) -> VirtualAddress| {
        let program = compile_with("gcc", folder.path(), name, C_PROGRAM, flags);
        let mut target = Target::spawn(&mut Command::new(program.expect("to compile")));
        let words = target.numbers();
        let symbols = Symbols::default();
        let found = with_names(&symbols, &target.attach(), |names, _| {
            let found = names.line_at(of(&words, names));
            found.expect("an answer")
        });
        target.send("");
        (found.frames, found.missing.expect("a reason"))
    };
    let work: fn(&[u64], &TargetSymbols) -> VirtualAddress = |words, _| VirtualAddress::new(words[0]);
    let (frames, why) = missing("without", &["-O2"], work);
    assert!(frames.is_empty());
    assert!(matches!(why, NoLines::NoDebugInformation { .. }), "{why}");
    let (frames, why) = missing("nowhere", &["-O2", "-g"], |_, _| VirtualAddress::new(16));
    assert!(frames.is_empty() && matches!(why, NoLines::NoModule), "{why}");
    let (frames, why) = missing("kernel", &["-O2", "-g"], |_, names| {
        let vdso = names.modules().iter().find(|module| module.is_vdso());
        vdso.expect("a vdso").regions[0].range.start()
    });
    assert!(frames.is_empty(), "{frames:?}");
    assert!(matches!(why, NoLines::NoDebugInformation { .. }), "{why}");
}
