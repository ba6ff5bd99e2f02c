//! Lines of running programs, compared with gdb's.

use super::super::Test;
use super::super::support::skip;
use super::super::symbols::programs::{compile_with, is_installed};
use super::super::symbols::with_names;
use super::super::target::Target;
use super::programs::C_PROGRAM;
use pmdb::kernel::VirtualAddress;
use pmdb::symbol::Symbols;
use std::path::Path;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[("lines::as_gdb_says", as_gdb_says)];

/// What gdb says of addresses of a process that is not running: `Line 6 of "plain.c" starts at …`.
fn gdb(program: &Path, commands: &[String]) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-q", "-batch"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let output = gdb.arg(program).stdin(Stdio::null()).output().expect("gdb");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn as_gdb_says() {
    let test = "lines::as_gdb_says";
    if !is_installed("gcc") || !is_installed("gdb") {
        return skip(test, "there is no gcc or no gdb here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, flags) in [("plain", &["-O2", "-g"][..]), ("whole-program", &["-O2", "-g", "-flto"])] {
        match compile_with("gcc", folder.path(), name, C_PROGRAM, flags) {
            Some(program) => each_line_as_gdb_says(&program),
            None => {
                assert!(name != "plain", "the program does not compile");
                skip(test, &format!("gcc {} does not work here", flags.join(" ")));
            }
        }
    }
}

/// Lines and files of the first bytes of `work`.
fn each_line_as_gdb_says(program: &Path) {
    let mut target = Target::spawn(&mut Command::new(program));
    let words = target.numbers();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        let addresses: Vec<VirtualAddress> = (0..40).map(|offset| VirtualAddress::new(words[0] + offset)).collect();
        let questions: Vec<String> = addresses
            .iter()
            .map(|&address| {
                let (_, address) = names.file_address(address).expect("in the program");
                format!("info line *{address}")
            })
            .collect();
        let text = gdb(program, &questions);
        let answers: Vec<&str> = text.lines().filter(|line| line.starts_with("Line ")).collect();
        assert_eq!(answers.len(), addresses.len(), "{text}");
        for (&address, answer) in addresses.iter().zip(answers) {
            let found = names.line_at(address).expect("an answer");
            let frame = &found.frames[0];
            let line = frame.line.expect("a line");
            let file = frame.file.as_ref().expect("a file").to_string();
            let expected = format!("Line {line} of \"{file}\"");
            assert!(answer.starts_with(&expected), "{address}: {expected}: {answer}");
        }
    });
    target.send("");
}
