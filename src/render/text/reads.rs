//! The reads behind an answer (`--how`).

use super::Text;
use super::cells::none;
use super::lines::Lines;
use super::tables::Table;
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::report::{Hex, KernelRead, ReadsSummary};

impl Record for KernelRead {
    fn write(&self, text: &mut Text) {
        words(self).for_each(|word| text.row(&WORDS, &word));
    }
}

impl Record for ReadsSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }
}

/// The size of a word in files with one word for each page.
const WORD: u64 = 8;

/// A word of a read, or a read without words.
pub struct Word {
    offset: Option<u64>,
    value: Option<Hex>,
    file: String,
    what: String,
}

/// `--how`
pub static WORDS: Table<Word> = Table::of(&[
    Column::word("offset", 12, Role::Address).cell(|_, word| match word.offset {
        Some(offset) => Cell::new(format!("{offset:#x}")),
        None => none(),
    }),
    Column::word("value", 18, Role::Raw).cell(|_, word| match word.value {
        Some(value) => Cell::new(format!("{value:#018x}")),
        None => none(),
    }),
    Column::word("file", 20, Role::Plain).cell(|_, word| Cell::new(&word.file)),
    Column::word("what", 24, Role::Plain).cell(|_, word| Cell::new(&word.what)),
]);

/// The words of a read, each with its own offset; one row for a read without words.
pub fn words(read: &KernelRead) -> impl Iterator<Item = Word> {
    let word = |index: usize| {
        let behind = index as u64 * WORD;
        Word {
            offset: read.offset.map(|start| start.0.saturating_add(behind)),
            value: read.words.get(index).copied(),
            file: read.file.clone(),
            what: match index {
                0 => about(read),
                index => format!("the same, + {index}"),
            },
        }
    };
    (0..read.words.len().max(1)).map(word)
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

/// `12 reads; 40 more and 2,048 values are not shown`, and how to read a value again.
pub fn summary(lines: &mut Lines, summary: &ReadsSummary) {
    let line = lines.line();
    line.indent(2).plain(counted(summary.reads, "read"));
    match (summary.more_reads, summary.more_words) {
        (0, 0) => {}
        (0, words) => {
            let text = format!("{} more not shown", counted(words, "value"));
            line.word("; ", Role::Note, text);
        }
        (reads, words) => {
            let text = format!("{} and {} more not shown", counted(reads, "read"), counted(words, "value"));
            line.word("; ", Role::Note, text);
        }
    }
    let line = lines.line();
    let text = format!("to read a value yourself: {}", summary.repeat);
    line.indent(2).prose(Role::Note, &text);
}
