//! `grammar/accept` and `grammar/reject`: sentences with their trees, sentences with their exact messages.
//!
//! PMDB_BLESS=1 writes what the parser says into the files; then they are read by a person before they are committed.

use std::fs;
use std::path::{Path, PathBuf};

use pmdb::command::LANGUAGE;

use super::recognise::Recogniser;
use super::{grammar, is_answered};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar").join(folder);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder is there").map(|e| e.expect("readable").path()).collect();
    files.sort();
    files
}

fn bless() -> bool {
    std::env::var_os("PMDB_BLESS").is_some()
}

/// A sentence a line, below it, indented, its tree. `#!` begins a remark.
#[test]
fn accepted_sentences_have_their_trees() {
    let recogniser = Recogniser::new(&grammar());
    for file in files("accept") {
        let text = fs::read_to_string(&file).expect("readable");
        let mut now = String::new();
        for line in text.lines() {
            if line.starts_with("    ") {
                continue;
            }
            now.push_str(line);
            now.push('\n');
            if line.is_empty() || line.starts_with("#!") {
                continue;
            }
            assert!(recogniser.accepts(line), "not in the grammar: {line}");
            match LANGUAGE.parse_line(line) {
                Ok(tree) => now.push_str(&format!("    {tree:?}\n    = {}\n", tree)),
                Err(error) => panic!("{}\n{}", file.display(), error.draw(line)),
            }
        }
        compare(&file, &text, &now);
    }
}

/// A sentence, below it the rest of what is said about it; an empty line ends the entry.
#[test]
fn rejected_sentences_have_their_messages() {
    let recogniser = Recogniser::new(&grammar());
    for file in files("reject") {
        let text = fs::read_to_string(&file).expect("readable");
        let (mut now, mut wrong) = (Vec::new(), Vec::new());
        for entry in text.trim_end().split("\n\n") {
            let sentence = entry.lines().next().unwrap_or("");
            if sentence.starts_with("#!") {
                now.push(entry.to_owned());
                continue;
            }
            assert!(!recogniser.accepts(sentence), "in the grammar: {sentence}");
            let error = LANGUAGE.parse_line(sentence).expect_err(sentence);
            assert!(is_answered(&error), "{sentence}\n{error}");
            let command = error.hint.as_deref().and_then(wrong_commands);
            wrong.extend(command.map(|command| format!("{sentence}\nhints at\n{command}")));
            now.push(error.draw(sentence));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        compare(&file, &text, &format!("{}\n", now.join("\n\n")));
    }
}

/// The commands of pmdb that a hint names behind its last colon and cannot be run.
fn wrong_commands(hint: &str) -> Option<&str> {
    let (before, commands) = hint.rsplit_once(": ")?;
    let commands = commands.split("; ").next()?;
    let word = commands.split([' ', '/']).next()?;
    let is_command = LANGUAGE.first_words().any(|known| known == word) && !commands.contains('\u{2026}');
    let is_of_gdb = before.rsplit("; ").next()?.contains("in gdb");
    let parses = |command: &str| LANGUAGE.parse_line(&command.replace("FILTER", "present")).is_ok();
    let is_right = parses(commands) || commands.split(", ").all(parses);
    (is_command && !is_of_gdb && !is_right).then_some(commands)
}

fn compare(file: &Path, text: &str, now: &str) {
    if bless() {
        fs::write(file, now).expect("writable");
    } else {
        snapbox::assert_data_eq!(now, snapbox::Data::text(text).raw());
    }
}
