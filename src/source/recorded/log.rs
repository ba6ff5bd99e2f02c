//! The log of reads, of limited size.

use crate::source::Error;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// For each kind of file, the values of so many pages are kept, and as many reads without values.
const MOST: usize = 64;

/// Bytes in a word of the files that have one for each page.
pub(super) const WORD: u64 = 8;

/// One read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Read {
    /// The file: `/proc/812/pagemap`.
    pub file: String,
    /// The offset in bytes; `None` if it was read whole, or by another call.
    pub offset: Option<u64>,
    /// Bytes that were asked for.
    pub length: Option<u64>,
    /// The words read, for a file with a word for each page.
    pub words: Vec<u64>,
    /// What the words are of, or what the query was.
    pub what: String,
    /// The answer if it is not words, or the error of a read that failed.
    pub found: Option<String>,
    /// A shell command that reads the same.
    pub repeat: Option<String>,
    /// How often it was read, each time with the same result.
    pub times: u64,
}

/// The reads of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reads {
    /// In the order in which they were made.
    pub kept: Vec<Read>,
    /// Reads of which nothing is kept.
    pub more_reads: u64,
    /// Words that were read and are not kept.
    pub more_words: u64,
}

/// Collects reads, from several threads if a sweep has several.
#[derive(Default)]
pub struct Log(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    reads: Reads,
    /// The number of reads kept for each kind of file.
    by_kind: BTreeMap<&'static str, usize>,
}

impl Log {
    /// Removes and returns what was read so far.
    pub fn take(&self) -> Reads {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *kept).reads
    }

    /// Records a read of a file of the kind `kind`.
    pub(super) fn add(&self, kind: &'static str, mut read: Read) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { reads, by_kind } = &mut *kept;
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

    /// Records that a file was read whole: what was searched for in it, and what was found.
    pub(super) fn add_file(&self, kind: &'static str, file: String, what: &str, found: String) {
        self.add(
            kind,
            Read {
                repeat: Some(if file.ends_with(".gz") { format!("zcat {file}") } else { format!("cat {file}") }),
                file,
                what: what.to_owned(),
                found: Some(found),
                ..Read::default()
            },
        );
    }
}

/// The command that shows the first of `words` words of a file from `offset` on, one a line.
pub(super) fn dump(file: &str, offset: u64, words: usize) -> String {
    let length = words.clamp(1, MOST) as u64 * WORD;
    command(file, &format!("{offset:#x}"), &length.to_string())
}

/// The command that shows any one word.
pub fn dump_of_any() -> String {
    command("FILE", "OFFSET", "8")
}

fn command(file: &str, offset: &str, length: &str) -> String {
    let order = if cfg!(target_endian = "little") { " -e" } else { "" };
    format!("xxd -s {offset} -l {length} -c 8 -g 8{order} {file}")
}

/// A path quoted for a shell. Characters that a terminal must not get are escaped, so such a path does not work in a
/// shell.
pub(super) fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// What was found, in a few words, or the error.
pub(super) fn told<T>(result: &Result<T, Error>, tell: impl FnOnce(&T) -> String) -> String {
    match result {
        Ok(found) => tell(found),
        Err(error) => error.to_string(),
    }
}

/// `1 region`, `2 regions`.
pub(super) fn counted(number: usize, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_path_for_one_word() {
        for (path, word) in [
            ("/sys/fs/cgroup", "/sys/fs/cgroup"),
            ("/mnt/a b", "'/mnt/a b'"),
            ("/mnt/$(reboot);it's", "'/mnt/$(reboot);it'\\''s'"),
        ] {
            assert_eq!(quoted(path), word);
            let printed = std::process::Command::new("sh").args(["-c", &format!("printf %s {word}")]).output();
            assert_eq!(printed.expect("a shell").stdout, path.as_bytes());
        }
    }
}
