//! The pager. As in gdb, long output stops at each screen with a question. Or output is held back while it fits the
//! screen, and the user's pager shows longer output.

use super::interrupt::Interrupts;
use super::shell::{self, ShellIo, ShellPermit};
use crate::command::LANGUAGE;
use crate::render::units::counted;
use crate::render::{cut, printable};
use crate::report::Stopped;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Child;
use unicode_width::UnicodeWidthChar;

const QUESTION: &str = "--Type <RET> for more, q to quit, c to continue without paging--";

/// The remark for a line between two steps of a command file that is not an answer.
const NOT_RUN: &str = "This was not run: type q first, then the command at the prompt.";

/// The remark for a line that is neither an answer nor a command.
const NO_ANSWER: &str = "\
Enter  show the next screen
q      stop
c      show the rest without stopping
/TEXT  continue at the next line with this text, n at the one after it
A line that is a command stops the output and runs.";

/// Counts rows, and stops with a question when the screen is full. A command in the place of an answer leaves it.
#[derive(Debug)]
pub struct Pager<'a> {
    interrupts: &'a Interrupts,
    /// The commands that the user has defined.
    user_commands: Vec<String>,
    /// The command that was typed in the place of an answer.
    command: Option<String>,
    height: usize,
    width: usize,
    rows: usize,
    is_paging: bool,
    search: Option<Search>,
    /// The text of the last search.
    sought: Option<String>,
}

/// A search for a line. Those before it are not shown.
#[derive(Debug)]
struct Search {
    text: String,
    skipped: u64,
    /// The last of the skipped lines.
    last: VecDeque<Vec<u8>>,
}

impl Search {
    fn finds(&self, line: &[u8]) -> bool {
        without_colours(&String::from_utf8_lossy(line)).contains(&self.text)
    }

    fn skip(&mut self, line: &[u8], kept: usize) {
        self.skipped += 1;
        self.last.push_back(line.to_vec());
        if self.last.len() > kept {
            self.last.pop_front();
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum PagerKey {
    More,
    Rest,
    Leave,
    /// Search for this, or again for the last.
    Search(Option<String>),
    /// Leave, and run this.
    Run(String),
}

impl<'a> Pager<'a> {
    /// Makes a pager for a screen of this size; `None` if the screen has no room for a row and the question.
    pub fn new(interrupts: &'a Interrupts, height: usize, width: usize, user_commands: Vec<String>) -> Option<Self> {
        let width = width.max(1);
        (height >= 2).then_some(Pager {
            interrupts,
            user_commands,
            command: None,
            height,
            width,
            rows: 0,
            is_paging: true,
            search: None,
            sought: None,
        })
    }

    /// Takes the command that was typed in the place of an answer.
    pub fn take_command(&mut self) -> Option<String> {
        self.command.take()
    }

    /// Writes text, and stops with a question at each full screen.
    ///
    /// # Errors
    /// Fails with `BrokenPipe` if the reader leaves, with `Interrupted` on Ctrl-C, and with the errors of `output`.
    pub fn write(&mut self, text: &[u8], output: &mut dyn Write) -> io::Result<()> {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let rows = rows(line, self.width);
            if self.is_paging && self.search.is_none() && self.rows > 0 && self.rows + rows >= self.height {
                self.ask(output)?;
            }
            match self.search.take() {
                Some(search) if search.finds(line) => {
                    writeln!(output, "({} skipped)", counted(search.skipped, "line"))?;
                    self.rows = 1;
                }
                Some(mut search) => {
                    search.skip(line, self.height.saturating_sub(2));
                    self.search = Some(search);
                    continue;
                }
                None => {}
            }
            self.rows += rows;
            output.write_all(line)?;
        }
        output.flush()
    }

    /// Ends the output: a search that has found nothing shows its last lines.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn finish(&mut self, output: &mut dyn Write) -> io::Result<()> {
        let Some(Search { text, skipped, last }) = self.search.take() else {
            return Ok(());
        };
        let skipped = match skipped - last.len() as u64 {
            0 => String::new(),
            skipped => format!("{} skipped: ", counted(skipped, "line")),
        };
        writeln!(output, "({skipped}no line has `{}`)", printable(&text))?;
        last.iter().try_for_each(|line| output.write_all(line))
    }

    fn ask(&mut self, output: &mut dyn Write) -> io::Result<()> {
        let key = loop {
            write!(output, "{}", question(self.width))?;
            output.flush()?;
            match read_answer(io::stdin().as_fd(), self.interrupts, &self.user_commands)? {
                Some(PagerKey::Search(None)) if self.sought.is_none() => {}
                Some(key) => break key,
                None => {}
            }
            writeln!(output, "{NO_ANSWER}")?;
        };
        match key {
            PagerKey::More => self.rows = 0,
            PagerKey::Rest => self.is_paging = false,
            PagerKey::Search(text) => {
                self.sought = text.or(self.sought.take());
                let search = |text| Search { text, skipped: 0, last: VecDeque::new() };
                self.search = self.sought.clone().map(search);
            }
            PagerKey::Leave => return Err(io::ErrorKind::BrokenPipe.into()),
            PagerKey::Run(line) => {
                self.command = Some(line);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    }
}

/// Asks a yes-or-no question. The end of the input means no.
///
/// # Errors
/// Fails with `Interrupted` on Ctrl-C, and with the errors of the terminal.
pub fn ask_yes_or_no(question: &str, interrupts: &Interrupts) -> io::Result<bool> {
    loop {
        let mut output = io::stdout();
        write!(output, "{question} (y or n) ")?;
        output.flush()?;
        match read_line(io::stdin().as_fd(), interrupts)?.as_deref().map(<[u8]>::first) {
            None | Some(Some(b'n' | b'N')) => return Ok(false),
            Some(Some(b'y' | b'Y')) => return Ok(true),
            Some(_) => writeln!(output, "Please answer y or n.")?,
        }
    }
}

/// Stops a command file after an answer. Returns whether it continues.
///
/// # Errors
/// Fails with `Interrupted` on Ctrl-C, and with the errors of the terminal.
pub fn wait_for_enter(interrupts: &Interrupts) -> io::Result<bool> {
    let mut output = io::stdout();
    loop {
        write!(output, "--Type <RET> for the next step, q to quit--")?;
        output.flush()?;
        match read_line(io::stdin().as_fd(), interrupts)? {
            Some(line) if line.is_empty() => return Ok(true),
            Some(line) if !is_letter(&line, b'q') => writeln!(output, "{NOT_RUN}")?,
            _ => return Ok(false),
        }
    }
}

/// Returns whether an answer is this letter.
fn is_letter(line: &[u8], letter: u8) -> bool {
    line.trim_ascii().eq_ignore_ascii_case(&[letter])
}

/// Reads the answer; `None` for a line that is neither an answer nor a command.
fn read_answer(
    input: BorrowedFd<'_>,
    interrupts: &Interrupts,
    user_commands: &[String],
) -> io::Result<Option<PagerKey>> {
    let Some(line) = read_line(input, interrupts)? else {
        return Ok(Some(PagerKey::Leave));
    };
    Ok(match &line {
        line if line.trim_ascii().is_empty() => Some(PagerKey::More),
        line if is_letter(line, b'q') => Some(PagerKey::Leave),
        line if is_letter(line, b'c') => Some(PagerKey::Rest),
        line if is_letter(line, b'n') => Some(PagerKey::Search(None)),
        line => {
            let line = String::from_utf8_lossy(line);
            if let Some(text) = line.strip_prefix('/') {
                return Ok(Some(PagerKey::Search(Some(text.to_owned()).filter(|text| !text.is_empty()))));
            }
            let first = line.split_whitespace().next().unwrap_or_default();
            let is_command = user_commands.iter().any(|name| name == first) || LANGUAGE.parse_line(&line).is_ok();
            is_command.then(|| PagerKey::Run(line.into_owned()))
        }
    })
}

/// Reads a line byte by byte, as gdb does, because the rest of the input is for the prompt. Returns the line, truncated
/// to the length of a line of a terminal; `None` at the end of the input.
fn read_line(input: BorrowedFd<'_>, interrupts: &Interrupts) -> io::Result<Option<Vec<u8>>> {
    const LONGEST: usize = 4096;
    let mut line = Vec::new();
    loop {
        if let Err(Stopped::Interrupted | Stopped::Closed) = interrupts.wait_readable(input) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut byte = [0];
        match rustix::io::read(input, &mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) if byte == *b"\n" => return Ok(Some(line)),
            Ok(_) if line.len() < LONGEST => line.push(byte[0]),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the question, cut to one row. The last column remains empty, because a terminal would wrap there.
fn question(width: usize) -> Cow<'static, str> {
    cut(QUESTION, width.saturating_sub(1))
}

/// Returns how many rows of the screen a line needs.
pub(super) fn rows(line: &[u8], width: usize) -> usize {
    columns(&String::from_utf8_lossy(line)).div_ceil(width).max(1)
}

/// Returns how many columns text needs, without colours.
fn columns(text: &str) -> usize {
    without_colours(text).chars().fold(0, |columns, c| match c {
        // A tab extends to the next eighth column.
        '\t' => columns + 8 - columns % 8,
        c => columns + c.width().unwrap_or(0),
    })
}

/// Returns text without colours: ESC [ digits and semicolons m
fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut chars = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => _ = chars.by_ref().find(|c| c.is_ascii_alphabetic()),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

/// The options of less, unless LESS is set: show colours, and leave the text on the screen at the end.
const LESS: &str = "RX";

/// The first rows of an output, with the pager that shows the output if it does not fit the screen.
#[derive(Debug)]
pub struct FirstRows {
    program: String,
    permit: ShellPermit,
    height: usize,
    width: usize,
    rows: usize,
    text: Vec<u8>,
}

impl FirstRows {
    /// Makes an empty buffer. `program` is a line for the shell; `height` and `width` are those of the screen.
    pub fn new(program: String, permit: ShellPermit, height: usize, width: usize) -> Self {
        FirstRows { program, permit, height, width: width.max(1), rows: 0, text: Vec::new() }
    }

    /// Adds text. Returns whether it still fits the screen, with a row for the prompt.
    pub fn hold(&mut self, text: &[u8]) -> bool {
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        self.rows += lines.map(|line| rows(line, self.width)).sum::<usize>();
        self.text.extend_from_slice(text);
        self.rows < self.height
    }

    /// Returns the held text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Starts the pager, which has read nothing yet.
    ///
    /// # Errors
    /// Fails if the shell cannot be started.
    pub fn start(&self) -> io::Result<Child> {
        let text = format!(": ${{LESS={LESS}}}; export LESS; {}", self.program);
        shell::reader(&text, ShellIo::Terminal, None, self.permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_takes_one_row() {
        assert_eq!(question(80), QUESTION);
        assert_eq!(question(usize::MAX), QUESTION);
        for width in [1, 2, 20, 40, QUESTION.len()] {
            assert!(columns(&question(width)) < width, "{width}");
            assert_eq!(rows(question(width).as_bytes(), width), 1);
        }
    }

    #[test]
    fn rows_follow_the_width_of_what_is_shown() {
        assert_eq!(rows(b"\n", 10), 1);
        assert_eq!(rows(b"0123456789\n", 10), 1);
        assert_eq!(rows(b"0123456789a\n", 10), 2);
        assert_eq!(rows(b"\x1b[1;31m0123456789\x1b[0m\n", 10), 1);
        assert_eq!(rows("\u{4e2d}".repeat(6).as_bytes(), 10), 2);
        assert_eq!(rows(b"\ta\tbc\n", 17), 2);
    }

    #[test]
    fn what_fits_the_screen_is_not_asked_about() {
        let interrupts = Interrupts::listen().unwrap();
        let mut pager = Pager::new(&interrupts, 4, 80, Vec::new()).unwrap();
        let mut screen = Vec::new();
        pager.write(b"one\ntwo\nthree\n", &mut screen).unwrap();
        assert_eq!(screen, b"one\ntwo\nthree\n");
    }

    #[test]
    fn answers_are_lines() {
        let interrupts = Interrupts::listen().unwrap();
        let answer = |typed: &str| {
            let (input, mut keys) = io::pipe().unwrap();
            keys.write_all(typed.as_bytes()).unwrap();
            drop(keys);
            read_answer(input.as_fd(), &interrupts, &["again".to_owned()]).unwrap()
        };
        assert_eq!(answer("\n"), Some(PagerKey::More));
        assert_eq!(answer("q\n"), Some(PagerKey::Leave));
        assert_eq!(answer("c\nmore"), Some(PagerKey::Rest));
        assert_eq!(answer(""), Some(PagerKey::Leave));
        // A command is no answer, whatever its first letter is.
        for command in ["compare children", "quit", "walk all where dirty by state top 5 | grep -c x", "again 3"] {
            assert_eq!(answer(&format!("{command}\n")), Some(PagerKey::Run(command.to_owned())));
        }
        assert_eq!(answer("/main\n"), Some(PagerKey::Search(Some("main".to_owned()))));
        assert_eq!((answer("/\n"), answer("n\n")), (Some(PagerKey::Search(None)), Some(PagerKey::Search(None))));
        for other in ["cc\n", "no\n", "y\n"] {
            assert_eq!(answer(other), None, "{other}");
        }
    }

    #[test]
    fn a_search_skips_lines_and_shows_the_last_ones_if_none_has_the_text() {
        let interrupts = Interrupts::listen().unwrap();
        let shown = |text: &str| {
            let mut pager = Pager::new(&interrupts, 5, 80, Vec::new()).unwrap();
            pager.search = Some(Search { text: text.to_owned(), skipped: 0, last: VecDeque::new() });
            let mut screen = Vec::new();
            pager.write(b"a\nb\nc\n", &mut screen).unwrap();
            pager.write(b"m\x1b[1mai\x1b[0mn\ne\n", &mut screen).unwrap();
            pager.finish(&mut screen).unwrap();
            String::from_utf8(screen).unwrap()
        };
        assert_eq!(shown("main"), "(3 lines skipped)\nm\x1b[1mai\x1b[0mn\ne\n");
        assert_eq!(shown("z"), "(2 lines skipped: no line has `z`)\nc\nm\x1b[1mai\x1b[0mn\ne\n");
    }

    #[test]
    fn rows_are_held_while_they_leave_one_for_the_prompt() {
        let mut held = FirstRows::new("less".to_owned(), ShellPermit::IN_A_TEST, 4, 10);
        assert!(held.hold(b"one\ntwo\n"));
        assert!(held.hold(b"three\n"));
        assert!(!held.hold(b"four\n"));
        assert_eq!(held.text(), b"one\ntwo\nthree\nfour\n");
        // A line that wraps takes two rows.
        let mut held = FirstRows::new("less".to_owned(), ShellPermit::IN_A_TEST, 2, 10);
        assert!(!held.hold(b"0123456789a\n"));
    }
}
