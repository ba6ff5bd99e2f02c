//! Lines of text: one, made of printable pieces with roles whose columns are counted; and several, one below the other,
//! with their style.

use crate::render::theme::{Role, Theme, columns, printable};
use crate::render::units::Number;
use crate::render::units::local_zone;
use jiff::tz::TimeZone;
use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::rc::Rc;

/// What is shown beyond the usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum More {
    /// Small and repeated rows: limit or filter.
    SmallRows,
    /// These and the method: with `full`.
    All,
}

/// The column of the values of labelled lines.
pub const VALUE: usize = 10;

/// Lines of text under construction. A line ends where the next one begins.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) style: Style,
    text: Vec<u8>,
    last: Option<Line>,
}

impl Lines {
    pub(crate) fn new(style: Style) -> Self {
        Lines { style, text: Vec::new(), last: None }
    }

    /// Begins a line that wraps at the width of the terminal.
    pub fn line(&mut self) -> &mut Line {
        self.text();
        let line = Line::new(self.style.theme, self.style.width);
        self.last.insert(line)
    }

    /// Begins a labelled line; it wraps under its value.
    pub fn field(&mut self, label: &str) -> &mut Line {
        let line = self.line();
        line.push(Role::Label, label).indent_at(VALUE)
    }

    /// Adds a line that is complete.
    pub fn add(&mut self, mut line: Line) {
        line.end(self.text());
    }

    /// The text so far. The last line ends here.
    pub fn text(&mut self) -> &mut Vec<u8> {
        if let Some(mut line) = self.last.take() {
            line.end(&mut self.text);
        }
        &mut self.text
    }

    /// Writes the text, and forgets it.
    pub fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let written = out.write_all(self.text());
        self.text.clear();
        written
    }
}

/// The style of text.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) theme: Theme,
    /// Of the terminal, in columns; `None` for a pipe or a file.
    pub(crate) width: Option<usize>,
    /// Looked up with the first time that is shown.
    zone: OnceCell<TimeZone>,
    /// What was said before, where a remark about the kernel or rights is said once; `None` says each.
    said: Option<RemarksMade>,
    /// Whether the method of an answer and its small rows are shown too (`full`).
    pub(crate) is_full: bool,
}

/// The remarks that a session has made.
pub type RemarksMade = Rc<RefCell<HashSet<String>>>;

impl Style {
    /// With times in the local time zone.
    pub(crate) fn new(theme: Theme, width: Option<usize>) -> Self {
        Style { theme, width, zone: OnceCell::new(), said: None, is_full: false }
    }

    pub(crate) fn with_time_zone(self, zone: TimeZone) -> Self {
        Style { zone: OnceCell::from(zone), ..self }
    }

    pub(crate) fn with_remarks_once(self, said: RemarksMade) -> Self {
        Style { said: Some(said), ..self }
    }

    /// Whether a remark about the kernel or rights is to be made: what `reason` keeps from being known about `what`.
    pub(crate) fn is_news(&self, what: &str, reason: &str) -> bool {
        let remark = format!("{what}: {reason}");
        self.said.as_ref().is_none_or(|said| said.borrow_mut().insert(remark))
    }

    /// Whether it was not said yet what would help.
    pub(crate) fn is_new_remedy(&self, remedy: &str) -> bool {
        self.is_news("remedy", remedy)
    }

    /// Whether tables need short forms of long cells, such as letters in the place of flags.
    pub(crate) fn is_narrow(&self) -> bool {
        const WIDE: usize = 110;
        self.width.is_some_and(|width| width < WIDE)
    }

    /// The width of a picture.
    pub(crate) fn columns(&self) -> usize {
        self.width.unwrap_or(80)
    }

    /// The zone in which times are shown.
    pub(crate) fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(local_zone)
    }
}

/// A line (or, once wrapped, several) under construction.
#[derive(Debug)]
pub struct Line {
    theme: Theme,
    /// The text as bytes, because numbers come as bytes.
    text: Vec<u8>,
    column: usize,
    limit: Option<usize>,
    indent: usize,
    /// Blanks to write before the next piece. At the end of a line they are dropped.
    blanks: usize,
}

/// Enough blanks for most gaps.
const BLANKS: &[u8] = b"                                ";

impl Line {
    /// An empty line. [`word`](Self::word) and its kin wrap at `limit` columns, if there is one.
    pub fn new(theme: Theme, limit: Option<usize>) -> Self {
        Line { theme, text: Vec::with_capacity(128), column: 0, limit, indent: 0, blanks: 0 }
    }

    /// The same, wrapped from now on at `limit` columns.
    pub fn limit(&mut self, limit: Option<usize>) -> &mut Self {
        self.limit = limit;
        self
    }

    /// The column in which the next piece begins.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Wrapped lines begin where the next piece does, if there is room for words.
    pub fn indent_here(&mut self) -> &mut Self {
        if self.has_words_behind(self.column) {
            self.indent = self.column;
        }
        self
    }

    /// Whether most words fit in a line behind this column: a terminal may have 40.
    fn has_words_behind(&self, column: usize) -> bool {
        const ROOM: usize = 16;
        self.limit.is_none_or(|limit| column + ROOM.min(limit / 2) <= limit)
    }

    /// Wrapped lines begin in this column.
    pub fn indent(&mut self, column: usize) -> &mut Self {
        self.indent = column;
        self
    }

    /// Adds a piece as it is, printable.
    pub fn push(&mut self, role: Role, text: impl Display) -> &mut Self {
        let text = text.to_string();
        self.push_printable(role, &printable(&text))
    }

    /// Adds a piece that is printable already.
    pub fn push_printable(&mut self, role: Role, text: &str) -> &mut Self {
        self.push_measured(role, text, columns(text))
    }

    /// The same with a known width. A piece that does not fit continues in new lines at the indent.
    pub fn push_measured(&mut self, role: Role, text: &str, columns: usize) -> &mut Self {
        match self.limit {
            Some(limit) if self.column + columns > limit && !text.trim().is_empty() => {
                self.push_wrapped(role, text, limit)
            }
            _ => self.put(role, text, columns),
        }
    }

    /// Word by word, each in this line if it fits.
    fn push_wrapped(&mut self, role: Role, text: &str, limit: usize) -> &mut Self {
        let body = text.trim_end_matches(' ');
        let mut rest = body;
        while !rest.is_empty() {
            let word = rest.trim_start_matches(' ');
            let blanks = rest.len() - word.len();
            let end = word.find(' ').unwrap_or(word.len());
            let (word, behind) = word.split_at(end);
            let width = columns(word);
            if self.column > self.indent && self.column + blanks + width > limit {
                self.new_line()
            } else {
                self.pad_to(self.column + blanks)
            };
            self.put_parts(role, word, limit);
            rest = behind;
        }
        self.pad_to(self.column + (text.len() - body.len()))
    }

    /// Adds a word. A word that is longer than a line is broken behind one of its punctuation marks, if it has one.
    fn put_parts(&mut self, role: Role, word: &str, limit: usize) {
        let mut rest = word;
        while self.column + columns(rest) > limit {
            let room = limit.saturating_sub(self.column);
            let marks = rest.char_indices().filter(|(_, c)| "/,|;:".contains(*c));
            let fitting = marks
                .map(|(at, mark)| rest.split_at(at + mark.len_utf8()))
                .take_while(|(part, _)| columns(part) <= room)
                .last();
            let Some((part, behind)) = fitting.filter(|(_, behind)| !behind.is_empty()) else {
                break;
            };
            self.put(role, part, columns(part)).new_line();
            rest = behind;
        }
        self.put(role, rest, columns(rest));
    }

    /// A piece in this line, whatever its width.
    fn put(&mut self, role: Role, text: &str, columns: usize) -> &mut Self {
        self.column += columns;
        let body = match text.as_bytes().last() {
            Some(b' ') => text.trim_end_matches(' '),
            _ => text,
        };
        if !body.is_empty() {
            while self.blanks > 0 {
                let blanks = self.blanks.min(BLANKS.len());
                let blank = BLANKS.get(..blanks).unwrap_or_default();
                self.text.extend_from_slice(blank);
                self.blanks -= blanks;
            }
            match role {
                Role::Plain => self.text.extend_from_slice(body.as_bytes()),
                _ if !self.theme.is_coloured() => self.text.extend_from_slice(body.as_bytes()),
                role => {
                    let painted = self.theme.paint(role, body);
                    self.text.extend_from_slice(painted.as_bytes());
                }
            }
        }
        self.blanks += text.len() - body.len();
        self
    }

    /// Adds a number, in one piece with the blanks before it.
    pub fn push_number(&mut self, role: Role, number: &Number) -> &mut Self {
        match number.with_blanks(self.blanks) {
            Some(both) if role == Role::Plain || !self.theme.is_coloured() => {
                self.text.extend_from_slice(both);
                self.blanks = 0;
                self.column += number.columns();
                self
            }
            _ => self.push_measured(role, number.as_str(), number.columns()),
        }
    }

    /// Adds plain text.
    pub fn plain(&mut self, text: impl Display) -> &mut Self {
        self.push(Role::Plain, text)
    }

    /// Adds blanks up to `column`; none if the line is there already.
    pub fn pad_to(&mut self, column: usize) -> &mut Self {
        let missing = column.saturating_sub(self.column);
        self.blanks += missing;
        self.column += missing;
        self
    }

    /// Adds blanks up to `column`, and at least two.
    pub fn tab_to(&mut self, column: usize) -> &mut Self {
        let least = self.column + 2;
        self.pad_to(column.max(least))
    }

    /// The same, and wrapped lines begin there.
    pub fn indent_at(&mut self, column: usize) -> &mut Self {
        if self.has_words_behind(column) { self.tab_to(column).indent_here() } else { self.new_line() }
    }

    /// Adds a piece after `separator`, or at the start of a new line if it does not fit in this one.
    pub fn word(&mut self, separator: &str, role: Role, text: impl Display) -> &mut Self {
        let text = text.to_string();
        let separator = match self.blanks {
            0 => separator,
            _ => separator.trim_start(),
        };
        let fits = self.has_room(separator, columns(&printable(&text)));
        if self.column > self.indent {
            if fits {
                self.plain(separator);
            } else {
                self.plain(separator.trim_end());
                self.new_line();
            }
        }
        self.push(role, text)
    }

    /// Adds the words of `text`, wrapped; line ends in it are kept.
    pub fn prose(&mut self, role: Role, text: impl Display) -> &mut Self {
        let text = text.to_string();
        for (index, line) in text.trim().split('\n').enumerate() {
            if index > 0 {
                self.new_line();
            }
            self.fill(role, line);
        }
        self
    }

    /// Adds words, as many as fit in a line as one piece.
    fn fill(&mut self, role: Role, words: &str) {
        let mut piece = String::new();
        let mut width = 0;
        for (index, word) in units(words).enumerate() {
            let added = columns(&printable(word));
            if index == 0 {
                if self.column > self.indent && !self.has_room(" ", added) {
                    self.new_line();
                }
            } else if piece.is_empty() {
                // The line was broken at the first of two blanks.
            } else if self.has_room(" ", width + 1 + added) {
                piece.push(' ');
                width += 1;
            } else {
                self.word(" ", role, std::mem::take(&mut piece)).new_line();
                width = 0;
            }
            piece.push_str(word);
            width += added;
        }
        self.word(" ", role, piece);
    }

    /// Whether `width` columns fit in this line, after `separator` unless there are blanks already, and with room for a
    /// comma behind them: if the next piece goes to a new line, its separator stays in this one.
    fn has_room(&self, separator: &str, width: usize) -> bool {
        let between = if self.blanks > 0 || self.column == self.indent { 0 } else { columns(separator) };
        self.limit.is_none_or(|limit| self.column + between + width < limit)
    }

    /// Goes on in a new line, at the indent.
    pub fn new_line(&mut self) -> &mut Self {
        self.text.push(b'\n');
        self.column = 0;
        self.blanks = 0;
        self.pad_to(self.indent)
    }

    /// Adds the line to `out`, and empties it.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.text.push(b'\n');
        out.append(&mut self.text);
        (self.column, self.indent, self.blanks) = (0, 0, 0);
    }
}

/// The longest phrase in backticks that stays in one line.
const LONGEST_UNIT: usize = 32;

/// The words of a text. A short phrase in backticks, which is typed as it stands, is one of them.
fn units(words: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(words);
    std::iter::from_fn(move || {
        let text = rest?;
        let blanks = text.match_indices(' ').map(|(at, _)| at).chain([text.len()]);
        let is_whole = |end: &usize| text.get(..*end).is_some_and(|unit| unit.matches('`').count() % 2 == 0);
        let first = blanks.clone().next()?;
        let end = blanks.take_while(|end| *end <= LONGEST_UNIT).find(is_whole).unwrap_or(first);
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::theme::{Background, Theme};

    fn written(line: &mut Line) -> String {
        let mut out = Vec::new();
        line.end(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_wrap_under_the_first_one_and_only_where_the_width_is_known() {
        let fill = |limit| {
            let mut line = Line::new(Theme::PLAIN, limit);
            line.plain("flags").pad_to(8).indent_here();
            for word in ["uptodate", "lru", "active"] {
                line.word(", ", Role::Flag, word);
            }
            written(&mut line)
        };
        assert_eq!(fill(None), "flags   uptodate, lru, active\n");
        assert_eq!(fill(Some(22)), "flags   uptodate, lru,\n        active\n");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_stands_at_its_end() {
        for limit in 12..40 {
            let mut line = Line::new(Theme::PLAIN, Some(limit));
            for code in ["rd", "wr", "mr", "mw", "me"] {
                line.word(", ", Role::Flag, code).plain(" ").prose(Role::Dim, "may be so");
            }
            for line in written(&mut line).lines() {
                assert!(line.len() <= limit, "{limit}: {line:?}");
                assert_ne!(line.trim(), ",", "{limit}");
            }
        }
    }

    #[test]
    fn what_can_be_typed_stays_in_one_line() {
        let mut line = Line::new(Theme::PLAIN, Some(24));
        line.prose(Role::Plain, "attach with `gdb -p PID`, then `a phrase in backticks that is long`");
        let text = written(&mut line);
        let expected = ["attach with", "`gdb -p PID`, then `a", "phrase in backticks", "that is long`"];
        assert_eq!(text.lines().map(str::trim).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn whatever_is_pushed_stays_within_the_terminal() {
        let mut line = Line::new(Theme::PLAIN, Some(32));
        line.plain("region").pad_to(10).indent_here();
        line.plain("0x1000..0x2000").plain("  ").plain("rw-p");
        line.push(Role::Name, " /usr/lib/x86_64-linux-gnu/libc.so.6");
        let expected = [
            "region    0x1000..0x2000  rw-p",
            "          /usr/lib/",
            "          x86_64-linux-gnu/",
            "          libc.so.6",
        ];
        assert_eq!(written(&mut line).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn colours_take_no_columns_and_hostile_text_is_escaped() {
        let mut line = Line::new(Theme::new(Some(Background::Any)), None);
        line.push(Role::Name, "a\x1b[2Jb").push(Role::Address, "0x10").tab_to(4);
        assert_eq!(line.column(), "a\\x1b[2Jb0x10  ".len());
        let text = written(&mut line);
        assert!(text.starts_with("a\\x1b[2Jb\x1b["), "{text:?}");
        assert!(!text.contains("\x1b[2J"));
    }
}
