//! How small the seam of bytes is: the methods that a new source has to think of, and the lines of those that there are.

use super::{Source, sources};
use std::path::PathBuf;

/// The traits, and the most methods of each.
const MOST_METHODS: [(&str, usize); 2] = [("Source", 15), ("KernelRecords", 5)];

/// The most lines of all their implementations, without those of tests.
const MOST_LINES: usize = 650;

/// The blocks of a formatted text that begin a line with these words and the name of a trait.
fn blocks<'a>(text: &'a str, begins: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let first = format!("{begins} {name}");
    let places: Vec<usize> = text.match_indices(&first).map(|(at, _)| at).collect();
    places.into_iter().filter(|&at| at == 0 || text[..at].ends_with('\n')).filter_map(move |at| {
        let is_whole = text[at + first.len()..].starts_with([':', ' ']);
        let block = text[at..].split_once("\n}\n").map(|(block, _)| block);
        block.filter(|_| is_whole)
    })
}

fn methods(block: &str) -> usize {
    block.lines().filter(|line| line.starts_with("    fn ")).count()
}

fn faults(found: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut lines = 0;
    for (name, most) in MOST_METHODS {
        let traits: Vec<usize> =
            found.iter().flat_map(|source| blocks(&source.text, "pub trait", name).map(methods)).collect();
        match traits[..] {
            [count] if count <= most => {}
            [count] => faults.push(format!("`{name}` has {count} methods, more than {most}")),
            _ => faults.push(format!("`{name}` is declared {} times", traits.len())),
        }
        let implemented = format!("{name} for");
        for source in found.iter().filter(|source| !source.is_of_tests()) {
            lines += blocks(&source.text, "impl", &implemented).map(|block| block.lines().count() + 1).sum::<usize>();
        }
    }
    if lines > MOST_LINES {
        faults.push(format!("the sources have {lines} lines, more than {MOST_LINES}"));
    }
    faults
}

#[test]
fn the_seam_of_bytes_is_small() {
    let mut found = Vec::new();
    sources(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    assert_eq!(faults(&found), Vec::<String>::new());
}

#[test]
fn a_wide_seam_is_a_fault() {
    let methods = "    fn one(&self);\n".repeat(16);
    let line = "        line;\n".repeat(700);
    let found = [
        Source::new("source/mod.rs", &format!("pub trait Source: Send {{\n{methods}}}\n")),
        Source::new("source/kernel_records.rs", "pub trait KernelRecords {\n    fn one(&self);\n}\n"),
        Source::new("source/live/mod.rs", &format!("impl Source for Live {{\n{line}}}\n")),
        Source::new("process/fake/source.rs", &format!("impl Source for Fake {{\n{line}}}\n")),
    ];
    assert_eq!(
        faults(&found),
        ["`Source` has 16 methods, more than 15", "the sources have 702 lines, more than 650"].map(str::to_owned)
    );
}
