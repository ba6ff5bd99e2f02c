//! Whole files: the reader of blocks agrees with the grammar, also on damaged files.

use std::fs;
use std::path::Path;

use pmdb::command::LANGUAGE;
use pmdb::lang::script::{Block, Builder, Node};

use super::derive::Random;
use super::recognise::Recogniser;
use super::{grammar, seed_of};
use crate::sample::{self, sample};

/// Whether the lines form blocks, and each of them is in the language.
fn is_put_together(text: &str) -> bool {
    let mut builder = Builder::new(LANGUAGE);
    let mut whole = Block::default();
    for (index, line) in text.lines().enumerate() {
        match builder.push(index + 1, line) {
            Ok(statement) => whole.0.extend(statement),
            Err(_) => return false,
        }
    }
    builder.finish().is_ok() && is_parsed(&whole)
}

fn is_parsed(block: &Block) -> bool {
    block.0.iter().all(|statement| match &statement.node {
        // A line that is parsed later may be of a user's command; these files have none.
        Node::Text => LANGUAGE.parse_line(&statement.text).is_ok(),
        Node::If { then, otherwise, .. } => is_parsed(then) && is_parsed(otherwise),
        Node::While { body, .. } | Node::Foreach { body, .. } => is_parsed(body),
        Node::Define { body, .. } => is_parsed(body),
        Node::ParsedLine(_) | Node::Document { .. } | Node::Break | Node::Continue => true,
    })
}

/// What is put between the lines. A line that opens a block is wrong everywhere for want of its end: so there are whole
/// blocks too.
const INSERTED: &[&str] = &[
    "end",
    "else",
    "loop_break",
    "if 1",
    "end # x",
    "document d",
    "define d",
    "if 1\nelse\nend",
    "while 1\nend",
    "document d\nend",
    "define d\nend",
];

/// The lines with one of these texts at one place, by its number.
fn with_inserted(lines: &[String], number: usize) -> Vec<String> {
    let (before, behind) = lines.split_at(number / INSERTED.len());
    [before, &[INSERTED[number % INSERTED.len()].to_owned()], behind].concat()
}

/// One line more, less, or in another place.
fn damaged(lines: &[String], random: &mut Random) -> Vec<String> {
    let mut lines = lines.to_vec();
    match random.below(4) {
        0 => _ = lines.remove(random.below(lines.len())),
        1 => {
            let line = random.pick(&lines).clone();
            lines.insert(random.below(lines.len()), line);
        }
        2 => {
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(a, b);
        }
        _ => return with_inserted(&lines, random.below(lines.len() * INSERTED.len())),
    }
    lines
}

#[test]
fn files_and_grammar_agree() {
    let recogniser = Recogniser::of(&grammar(), "file");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for name in ["grammar/files", "scripts"] {
        for entry in fs::read_dir(folder.join(name)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|end| end == "pmdb") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 4, "{files:?}");
    for path in &files {
        let text = fs::read_to_string(path).expect("text");
        assert!(recogniser.accepts_file(&text), "not in the grammar: {path:?}");
        assert!(is_put_together(&text), "not put together: {path:?}");
    }
    let text = fs::read_to_string(folder.join("grammar/files/programs.pmdb")).expect("text");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut files: Vec<Vec<String>> =
        sample(0..lines.len() * INSERTED.len(), 24).map(|number| with_inserted(&lines, number)).collect();
    let seed = sample::number();
    for number in sample(0..400, 16) {
        let mut random = Random::new(seed_of(seed, number));
        let once = damaged(&lines, &mut random);
        files.push(if random.chance(30) { damaged(&once, &mut random) } else { once });
    }
    let (mut accepted, mut rejected) = (0, 0);
    for lines in files {
        let text = lines.join("\n");
        let expected = recogniser.accepts_file(&text);
        assert_eq!(is_put_together(&text), expected, "{text}");
        if expected { accepted += 1 } else { rejected += 1 }
    }
    assert!(accepted > 5 && rejected > 5, "{accepted} {rejected}");
}
