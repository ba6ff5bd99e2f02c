//! Reads the lines of command files from anything that can be opened, even if it is hostile or endless.

use super::interrupt::Interrupts;
use super::outcome::words;
use crate::report::Stopped;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The longest line in bytes, including continuation lines.
pub const LONGEST_LINE: usize = 1 << 20;

const CHUNK: usize = 16 << 10;

/// Lines from a file, a pipe or a terminal, read as they arrive.
#[derive(Debug)]
pub struct LineReader {
    source: OwnedFd,
    buffer: Vec<u8>,
    /// The number of bytes in the buffer that were returned.
    returned_bytes: usize,
    /// The number of bytes in the buffer that contain no line end.
    searched_bytes: usize,
    number: usize,
    /// Whether the rest of a line that was too long is skipped.
    is_skipping_line: bool,
    is_at_end: bool,
}

/// A line without its line end, with its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedLine {
    /// The number of the line, from 1 on.
    pub number: usize,
    /// The text, or why the line is not text.
    pub text: Result<String, BinaryLine>,
}

/// A line that is not text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BinaryLine {
    /// The fault of the line.
    pub message: &'static str,
    /// The text, with bytes that are not UTF-8 replaced.
    pub text: String,
    /// The number of characters before the fault.
    pub column: usize,
}

/// Why there is no next line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoLine {
    /// Ctrl-C was typed.
    Stopped(Stopped),
    /// The file cannot be read.
    Failed(Errno),
}

/// Opens a command file. The call never blocks, not even for a named pipe without a writer.
///
/// # Errors
/// Fails with a message without the path: `No such file or directory`, `is a folder`.
pub fn open(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(words)?;
    let stat = rustix::fs::fstat(&file).map_err(words)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Err("it is a directory".into()),
        _ => Ok(file),
    }
}

impl LineReader {
    /// Makes a reader of an open file.
    pub fn new(source: OwnedFd) -> Self {
        LineReader {
            source,
            buffer: Vec::new(),
            returned_bytes: 0,
            searched_bytes: 0,
            number: 0,
            is_skipping_line: false,
            is_at_end: false,
        }
    }

    /// Returns whether the source is a regular file, which has an end.
    pub fn are_of_a_file(&self) -> bool {
        rustix::fs::fstat(&self.source).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// Returns the next line, joined with its continuation lines; `None` at the end.
    ///
    /// # Errors
    /// Fails on Ctrl-C during the wait, and if a read fails.
    pub fn next(&mut self, interrupts: &Interrupts) -> Result<Option<NumberedLine>, NoLine> {
        let mut line = self.next_of_file(interrupts)?;
        while let Some(NumberedLine { text: Ok(text), .. }) = &mut line {
            if !text.ends_with('\\') || text.len() > LONGEST_LINE {
                break;
            }
            text.pop();
            match self.next_of_file(interrupts)? {
                Some(NumberedLine { text: Ok(more), .. }) => text.push_str(&more),
                Some(bad) => return Ok(Some(bad)),
                None => break,
            }
        }
        if let Some(NumberedLine { text, .. }) = &mut line
            && let Ok(joined) = text
            && joined.len() > LONGEST_LINE
        {
            *text = Err(too_long(joined.as_bytes()));
        }
        Ok(line)
    }

    /// Returns the next line without joining; `None` at the end.
    ///
    /// # Errors
    /// Fails as [`LineReader::next`].
    pub(super) fn next_of_file(&mut self, interrupts: &Interrupts) -> Result<Option<NumberedLine>, NoLine> {
        interrupts.check().map_err(NoLine::Stopped)?;
        loop {
            let unseen = self.buffer.get(self.searched_bytes..).unwrap_or_default();
            let end = unseen.iter().position(|&byte| byte == b'\n').map(|at| self.searched_bytes + at);
            match end {
                Some(end) => {
                    let line = self.take(end);
                    self.advance(end + 1);
                    if std::mem::take(&mut self.is_skipping_line) {
                        continue;
                    } else {
                        return Ok(Some(self.number_line(line)));
                    }
                }
                None if self.is_at_end => {
                    let line = self.take(self.buffer.len());
                    self.advance(self.buffer.len());
                    let over = line.is_empty() || std::mem::take(&mut self.is_skipping_line);
                    return Ok((!over).then(|| self.number_line(line)));
                }
                None => self.searched_bytes = self.buffer.len(),
            }
            if self.buffer.len() - self.returned_bytes > LONGEST_LINE {
                let line = self.take(self.buffer.len());
                self.advance(self.buffer.len());
                if !std::mem::replace(&mut self.is_skipping_line, true) {
                    return Ok(Some(self.number_line(line)));
                }
            }
            self.fill(interrupts)?;
        }
    }

    /// Returns whether the first bytes contain a zero byte, so that the file is binary.
    ///
    /// # Errors
    /// Fails on Ctrl-C during the wait, and if a read fails.
    pub fn are_binary(&mut self, interrupts: &Interrupts) -> Result<bool, NoLine> {
        if self.buffer.is_empty() && !self.is_at_end {
            self.fill(interrupts)?;
        }
        Ok(self.buffer.contains(&0))
    }

    fn advance(&mut self, end: usize) {
        self.returned_bytes = end;
        self.searched_bytes = end;
    }

    fn take(&self, end: usize) -> Vec<u8> {
        self.buffer.get(self.returned_bytes..end).unwrap_or_default().to_vec()
    }

    fn fill(&mut self, interrupts: &Interrupts) -> Result<(), NoLine> {
        self.buffer.drain(..self.returned_bytes);
        self.searched_bytes -= self.returned_bytes;
        self.returned_bytes = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + CHUNK, 0);
        let read = loop {
            if let Err(stopped) = interrupts.wait_readable(self.source.as_fd()) {
                self.buffer.truncate(old);
                return Err(NoLine::Stopped(stopped));
            }
            match rustix::io::read(&self.source, self.buffer.get_mut(old..).unwrap_or_default()) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                other => break other,
            }
        };
        self.buffer.truncate(old + *read.as_ref().unwrap_or(&0));
        self.is_at_end = read.map_err(NoLine::Failed)? == 0;
        Ok(())
    }

    fn number_line(&mut self, mut line: Vec<u8>) -> NumberedLine {
        self.number += 1;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if self.number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        NumberedLine { number: self.number, text: text_of(line) }
    }
}

/// Makes the fault of a line that is too long, with only its beginning.
fn too_long(line: &[u8]) -> BinaryLine {
    let text = String::from_utf8_lossy(line.get(..64).unwrap_or(line)).into_owned();
    BinaryLine { message: "the line is longer than 1 MiB", text, column: 0 }
}

fn text_of(line: Vec<u8>) -> Result<String, BinaryLine> {
    let bad = |message, fault: usize| {
        let before = line.get(..fault).unwrap_or_default();
        BinaryLine {
            message,
            text: String::from_utf8_lossy(&line).into_owned(),
            column: String::from_utf8_lossy(before).chars().count(),
        }
    };
    if line.len() > LONGEST_LINE {
        return Err(too_long(&line));
    }
    if let Some(fault) = line.iter().position(|&byte| byte == 0) {
        return Err(bad("a zero byte: this is a binary file, not a command file", fault));
    }
    match std::str::from_utf8(&line) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(bad("bytes that are not UTF-8 text", error.valid_up_to())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn lines(bytes: &[u8]) -> Vec<NumberedLine> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let interrupts = Interrupts::listen().unwrap();
        let mut lines = LineReader::new(file.into());
        std::iter::from_fn(|| lines.next(&interrupts).unwrap()).collect()
    }

    fn texts(bytes: &[u8]) -> Vec<Result<String, (&'static str, usize)>> {
        lines(bytes).into_iter().map(|line| line.text.map_err(|bad| (bad.message, bad.column))).collect()
    }

    #[test]
    fn ends_of_lines_are_not_part_of_them() {
        let expected = ["a", "", "b", "c"].map(|line| Ok(line.to_owned()));
        assert_eq!(texts(b"a\n\nb\r\nc"), expected);
        assert_eq!(texts(b"a\n\nb\r\nc\n"), expected);
        assert_eq!(texts(b"\xef\xbb\xbfa"), [Ok("a".to_owned())]);
        assert!(texts(b"").is_empty());
    }

    #[test]
    fn a_line_goes_on_behind_a_backslash() {
        let seen = texts(b"walk heap \\\n  where present\nend\\");
        let expected = ["walk heap   where present", "end"].map(|line| Ok(line.to_owned()));
        assert_eq!(seen, expected);
        assert_eq!(lines(b"a\\\nb\nc")[1].number, 3);
    }

    #[test]
    fn bad_lines_say_where_and_the_next_is_read() {
        let seen = texts(b"ok\n\xc3\xa4 \xff\nx\0y\nend");
        assert_eq!(seen.len(), 4);
        assert_eq!(seen[1], Err(("bytes that are not UTF-8 text", 2)));
        assert!(matches!(seen[2], Err((message, 1)) if message.contains("binary")));
        assert_eq!(seen[3], Ok("end".to_owned()));
    }

    #[test]
    fn a_zero_byte_at_the_beginning_shows_a_binary_file_and_no_line_is_lost_by_looking() {
        let look = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            let interrupts = Interrupts::listen().unwrap();
            let mut lines = LineReader::new(file.into());
            let binary = lines.are_binary(&interrupts).unwrap();
            let first = lines.next(&interrupts).unwrap();
            (binary, first.and_then(|line| line.text.ok()))
        };
        assert_eq!(look(b"a\nb\0"), (true, Some("a".to_owned())));
        assert_eq!(look(b"a\nb"), (false, Some("a".to_owned())));
        assert_eq!(look(b""), (false, None));
    }

    #[test]
    fn a_line_as_long_as_allowed_is_read_and_a_longer_one_is_passed_over() {
        let mut file = vec![b'('; LONGEST_LINE];
        assert_eq!(texts(&file)[0].as_ref().map(String::len), Ok(LONGEST_LINE));
        file.extend(vec![b'('; 3 * LONGEST_LINE]);
        file.extend(b"\nnext");
        let seen = lines(&file);
        assert_eq!(seen.len(), 2);
        assert!(seen[0].text.as_ref().is_err_and(|bad| bad.message.contains("longer") && bad.text.len() == 64));
        assert_eq!((seen[1].number, &seen[1].text), (2, &Ok("next".to_owned())));
        // Two that continue are one.
        let half = "(".repeat(LONGEST_LINE / 2);
        let seen = texts(format!("{half}\\\n{half}\\\n{half}\nnext").as_bytes());
        assert!(seen[0].as_ref().is_err_and(|(message, _)| message.contains("longer")), "{}", seen.len());
    }
}
