//! The log of the reads of a command, of limited size.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The most words that are kept for each kind of file. A read without words counts as one.
pub(crate) const MOST: usize = 64;

/// A read of a file, or a query of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoggedRead {
    /// The path of the file: `/proc/812/pagemap`.
    pub file: String,
    /// The offset in bytes; `None` if the file was read whole, or another call was made.
    pub offset: Option<u64>,
    /// The bytes that were asked for.
    pub length: Option<u64>,
    /// The words that were read, of a file with one word for each page.
    pub words: Vec<u64>,
    /// What the words are of, or what the query asked.
    pub what: String,
    /// The answer if it is not words, or the error of a failed read.
    pub found: Option<String>,
    /// A shell command that reads the same.
    pub repeat: Option<String>,
    /// How often the same read was made with the same result.
    pub times: u64,
}

/// The reads of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reads {
    /// The kept reads in the order in which they were made.
    pub kept: Vec<LoggedRead>,
    /// The number of reads that are not kept.
    pub more_reads: u64,
    /// The number of words that are not kept.
    pub more_words: u64,
}

/// A log to which several threads of a sweep may add reads.
#[derive(Default)]
pub struct Log(Mutex<LogState>);

#[derive(Default)]
struct LogState {
    reads: Reads,
    /// The number of words kept for each kind of file. A read without words counts as one.
    by_kind: BTreeMap<&'static str, usize>,
}

impl Log {
    /// Removes and returns the reads so far.
    pub fn take(&self) -> Reads {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *kept).reads
    }

    /// Adds a read of a file of the kind `kind`, or counts it if the same read is kept.
    pub(crate) fn add(&self, kind: &'static str, mut read: LoggedRead) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let LogState { reads, by_kind } = &mut *kept;
        let again = reads.kept.iter_mut().find(|before| {
            read.times = before.times;
            **before == read
        });
        if let Some(before) = again {
            before.times += 1;
            return;
        }
        read.times = 1;
        let used = by_kind.entry(kind).or_default();
        let room = MOST - *used;
        if room == 0 {
            reads.more_reads += 1;
            reads.more_words += read.words.len() as u64;
            return;
        }
        let more = read.words.len().saturating_sub(room);
        read.words.truncate(room);
        reads.more_words += more as u64;
        *used += read.words.len().max(1);
        reads.kept.push(read);
    }

    /// Adds the read of a whole file: what was searched for in it, and what was found.
    pub(crate) fn add_file(&self, kind: &'static str, file: String, what: &str, found: String) {
        self.add(
            kind,
            LoggedRead {
                repeat: Some(if file.ends_with(".gz") { format!("zcat {file}") } else { format!("cat {file}") }),
                file,
                what: what.to_owned(),
                found: Some(found),
                ..LoggedRead::default()
            },
        );
    }
}

/// Returns the command that shows one word of a file, with placeholders.
pub fn dump_of_any() -> String {
    dump_command("FILE", "OFFSET", "8")
}

/// Returns the command that shows these words of a file, one a line.
pub(crate) fn dump_command(file: &str, offset: &str, length: &str) -> String {
    let order = if cfg!(target_endian = "little") { " -e" } else { "" };
    format!("xxd -s {offset} -l {length} -c 8 -g 8{order} {file}")
}
