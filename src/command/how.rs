//! Runs a command; with `--how` it shows the reads behind the answer, after it.

use super::floor::{Context, Error, Outcome};
use crate::access::log::{LoggedRead, Reads, dump_of_any};
use crate::lang::{How, ParsedCommand};
use crate::render::columns::{Cell, Column, Table, none};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{Declared, Hex, Shape, Stopped};
use std::sync::Arc;

/// Runs a command, with its reads after `--how`.
pub(super) fn run(command: &dyn ParsedCommand, context: &mut Context) -> Outcome {
    let Some(found) = context.commands.find(command) else {
        return Err(Error::refused(format!("`{command}` is not a command"), "see `help`"));
    };
    match command.downcast_ref() {
        Some(How(_)) => with_reads(context, |context| found.run(context)),
        None => found.run(context),
    }
}

/// Runs a command, records its reads, and emits them when it has ended, even if it failed or was interrupted.
fn with_reads(context: &mut Context, command: impl FnOnce(&mut Context) -> Outcome) -> Outcome {
    let log = Arc::default();
    let before = context.state.record(&log);
    let outcome = command(context);
    let is_file = context.state.machine().is_captured();
    context.state.end_recording(before);
    let reads = log.take();
    match outcome {
        // Nobody reads any more.
        Err(Error::Stopped(Stopped::Closed)) => outcome,
        Err(_) if reads.kept.is_empty() => outcome,
        Err(error) => {
            // The command's own error matters more than one of the output.
            let _ = emit(context.sink, reads, is_file);
            Err(error)
        }
        Ok(flow) => {
            emit(context.sink, reads, is_file)?;
            Ok(flow)
        }
    }
}

/// What a capture or core answered cannot be read again from the files that it names.
fn emit(sink: &mut dyn Sink, reads: Reads, is_file: bool) -> Result<(), Stopped> {
    let Reads { kept, more_reads, more_words } = reads;
    let reads = kept.len() as u64;
    for read in kept {
        let read = record(read);
        sink.emit(&KernelRead { repeat: read.repeat.filter(|_| !is_file), ..read })?;
    }
    sink.emit(&ReadsSummary { reads, more_reads, more_words, repeat: (!is_file).then(dump_of_any) })
}

fn record(read: LoggedRead) -> KernelRead {
    KernelRead {
        file: read.file,
        offset: read.offset.map(Hex),
        length: read.length,
        words: read.words.into_iter().map(Hex).collect(),
        what: read.what,
        found: read.found,
        times: read.times,
        repeat: read.repeat,
    }
}

/// The records of `--how`.
pub(super) const RECORDS: &[Shape] = &[KernelRead::SHAPE, ReadsSummary::SHAPE];

record! {
    /// `--how`: a read that the answer used.
    pub struct KernelRead as "read" {
        /// The file: `/proc/812/pagemap`.
        file: String,
        /// Offset in bytes; `null` if the file was read whole, or without an offset.
        offset: Option<Hex>,
        /// Requested bytes.
        length: Option<u64>,
        /// The words that were read, if the file has a word for each page.
        words: Vec<Hex>,
        /// The meaning of the words, or the question.
        what: String,
        /// The answer where it is not words, or the error of a read that failed.
        found: Option<String>,
        /// Number of its reads, each time with the same result.
        times: u64,
        /// A shell command that reads the same; `null` where there is none.
        repeat: Option<String>,
    }

    /// The totals of the reads.
    pub struct ReadsSummary as "reads-summary" {
        /// Reads that are shown.
        reads: u64,
        /// Reads that are not.
        more_reads: u64,
        /// Words that were read and are not shown.
        more_words: u64,
        /// A command that reads any of the words again, with its OFFSET and FILE; `null` if they come from a capture.
        repeat: Option<String>,
    }
}

impl Record for KernelRead {
    fn write(&self, text: &mut Text) {
        if text.is_narrow() {
            words(self).for_each(|word| text.line(write_narrow, &word));
        } else {
            words(self).for_each(|word| text.row(&WORDS, &word));
        }
    }
}

impl Record for ReadsSummary {
    fn write(&self, text: &mut Text) {
        text.line(write_summary, self);
    }
}

/// The size of a word in files with one word for each page.
const WORD: u64 = 8;

/// A word of a read, or a read without words.
struct ReadWord {
    offset: Option<u64>,
    value: Option<Hex>,
    file: String,
    what: String,
}

/// `--how`
static WORDS: Table<ReadWord> = Table::of(&[
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

/// A word in two lines, where the table has no room: its file, and all else below.
fn write_narrow(lines: &mut Lines, word: &ReadWord) {
    lines.line().plain(&word.file);
    let line = lines.line();
    line.indent(4).pad_to(4);
    if let Some(offset) = word.offset {
        line.push(Role::Address, format!("{offset:#x}")).plain("  ");
    }
    if let Some(value) = word.value {
        line.push(Role::Raw, format!("{value:#018x}")).plain("  ");
    }
    line.prose(Role::Plain, &word.what);
}

/// The words of a read, each with its own offset; one row for a read without words.
fn words(read: &KernelRead) -> impl Iterator<Item = ReadWord> {
    let word = |index: usize| {
        let behind = index as u64 * WORD;
        ReadWord {
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
fn write_summary(lines: &mut Lines, summary: &ReadsSummary) {
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
    let text = match &summary.repeat {
        Some(repeat) => format!("to read a value yourself: {repeat}"),
        None => "the values come from the capture: these are the files of the machine that was captured".to_owned(),
    };
    line.indent(2).prose(Role::Note, &text);
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(read_of_words()),
            Box::new(read_of_text()),
            Box::new(read_of_behind()),
            Box::new(reads_summary()),
            Box::new(reads_summary_of_many()),
            Box::new(reads_summary_of_capture()),
        ]
    }

    pub fn read_of_words() -> KernelRead {
        KernelRead {
            file: "/proc/812/pagemap".into(),
            offset: Some(Hex(0x2aaaaaaac0)),
            length: Some(16),
            words: vec![Hex(0x8100_0000_001a_4eac), Hex(0)],
            what: "page-map entries from 0x555555558000 on".into(),
            found: None,
            times: 1,
            repeat: Some("xxd -s 0x2aaaaaaac0 -l 16 -c 8 -g 8 -e /proc/812/pagemap".into()),
        }
    }

    pub fn read_of_text() -> KernelRead {
        KernelRead {
            file: "/proc/zoneinfo".into(),
            offset: None,
            length: None,
            words: Vec::new(),
            what: "zones and nodes of frames".into(),
            found: Some("3 zones".into()),
            times: 2,
            repeat: Some("cat /proc/zoneinfo".into()),
        }
    }

    pub fn read_of_behind() -> KernelRead {
        KernelRead {
            file: "/proc/812/map_files/7ffff7dc0000-7ffff7de8000".into(),
            offset: Some(Hex(0x3000)),
            length: Some(4096),
            words: Vec::new(),
            what: "the page cache of 0x7ffff7dc3000..0x7ffff7dc4000 (SEEK_DATA, cachestat)".into(),
            found: Some("contents, cached".into()),
            times: 1,
            repeat: None,
        }
    }

    pub fn reads_summary() -> ReadsSummary {
        ReadsSummary {
            reads: 3,
            more_reads: 0,
            more_words: 0,
            repeat: Some("xxd -s OFFSET -l 8 -c 8 -g 8 -e FILE".into()),
        }
    }

    pub fn reads_summary_of_capture() -> ReadsSummary {
        ReadsSummary { repeat: None, ..reads_summary() }
    }

    pub fn reads_summary_of_many() -> ReadsSummary {
        ReadsSummary { more_reads: 12, more_words: 40_000, ..reads_summary() }
    }
}
