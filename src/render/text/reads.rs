//! The reads behind an answer (`--how`).

use super::style::Style;
use crate::render::columns::Cell;
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::report::{KernelRead, ReadsSummary};
use std::io::{self, Write};

/// The size of a word in files with one word for each page.
const WORD: u64 = 8;

/// A row for each word of a read, with its own offset; one row for a read without words.
pub fn rows(read: &KernelRead) -> Vec<Vec<Cell<'_>>> {
    let what = |index: u64| match index {
        0 => about(read),
        index => format!("the same, + {index}"),
    };
    let offset = |index: u64| {
        let offset = read
            .offset
            .map(|start| start.0.saturating_add(index * WORD));
        offset.map_or_else(none, |offset| Cell::new(format!("{offset:#x}")))
    };
    if read.words.is_empty() {
        return vec![vec![
            offset(0),
            none(),
            Cell::new(&read.file),
            Cell::new(what(0)),
        ]];
    }
    let words = (0u64..).zip(&read.words);
    words
        .map(|(index, word)| {
            vec![
                offset(index),
                Cell::new(format!("{word:#018x}")),
                Cell::new(&read.file),
                Cell::new(what(index)),
            ]
        })
        .collect()
}

/// `page-map entry of 0x7f…`, the answer, how often.
fn about(read: &KernelRead) -> String {
    let mut about = read.what.clone();
    if let Some(found) = &read.found {
        about.push_str(": ");
        about.push_str(found);
    }
    if read.times > 1 {
        about.push_str(&format!(" ({} times)", count(read.times)));
    }
    about
}

fn none() -> Cell<'static> {
    Cell::of(Role::Dim, "-")
}

/// `12 reads; 40 more and 2,048 values are not shown`, and how to read a value again.
pub fn summary(style: &Style, summary: &ReadsSummary, out: &mut dyn Write) -> io::Result<()> {
    let mut line = style.line();
    line.indent(2).plain(counted(summary.reads, "read"));
    match (summary.more_reads, summary.more_words) {
        (0, 0) => {}
        (0, words) => {
            let text = format!("{} more not shown", counted(words, "value"));
            line.word("; ", Role::Note, text);
        }
        (reads, words) => {
            let text = format!(
                "{} and {} more not shown",
                counted(reads, "read"),
                counted(words, "value")
            );
            line.word("; ", Role::Note, text);
        }
    }
    line.end(out)?;
    let mut line = style.line();
    let text = format!("to read a value yourself: {}", summary.repeat);
    line.indent(2).prose(Role::Note, &text);
    line.end(out)
}
