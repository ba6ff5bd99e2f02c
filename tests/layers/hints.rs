//! The room of the language names no command: hints are in a room of their own.

use super::sources;
use super::texts::literals;
use pmdb::command::LANGUAGE;
use std::path::PathBuf;

/// Words of the language's own rules that are commands too: of blocks, of displays, of pipes, of functions
/// and fields, and the command whose format stands before its options.
const OWN: [&str; 16] = [
    "if",
    "else",
    "while",
    "foreach",
    "end",
    "loop_break",
    "loop_continue",
    "define",
    "document",
    "display",
    "pipe",
    "shell",
    "flags",
    "huge",
    "region",
    "x",
];

/// Whether a text is the name of a command, or has one in backticks.
fn names_command(text: &str) -> bool {
    let is_command = |word: &str| LANGUAGE.names().any(|name| name.name == word) && !OWN.contains(&word);
    let quoted = text.split('`').skip(1).step_by(2);
    is_command(text) || quoted.filter_map(|quoted| quoted.split([' ', '/']).next()).any(is_command)
}

#[test]
fn the_language_names_no_command() {
    let mut files = Vec::new();
    sources(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("lang/")) {
        let named = literals(file).into_iter().filter(|text| names_command(text));
        found.extend(named.map(|text| format!("{}: {text}", file.path)));
    }
    assert_eq!(found.join("\n"), "");
    assert!(names_command("walk") && names_command("for all: `walk all`") && !names_command("walks"));
}
