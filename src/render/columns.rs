//! Tables whose rows stream: every column declares its width beforehand, so no row waits for another.

use super::printable::{columns, cut, measured};
use super::text::lines::Line;
use super::theme::{Role, Theme};
use super::units::Number;
use crate::kernel::{FrameNumber, Name, PhysicalAddress, VirtualAddress};
use std::borrow::Cow;

/// The width that the last column needs to wrap under itself.
const LEAST: usize = 24;
/// The indent of its next lines otherwise.
const INDENT: usize = 6;

/// The alignment of text in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column as its table declares it.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Its usual width in terminal columns.
    pub width: usize,
    /// Where the text stands.
    pub align: Align,
    /// The role of its cells, unless a cell has its own.
    pub role: Role,
    /// Left out in a narrow terminal, the highest rank first; 0: never.
    pub rank: u8,
    /// Whether it may be cut, with `…`, if the terminal's width is known. Numbers may not.
    pub may_cut: bool,
    /// Its width if no terminal width is known, and so nothing is cut.
    pub uncut: usize,
}

impl Column {
    /// A column of words that must stay whole.
    pub const fn word(title: &'static str, width: usize, role: Role) -> Self {
        Column { title, width, align: Align::Left, role, rank: 0, may_cut: false, uncut: width }
    }
    /// A column of numbers, right-aligned.
    pub const fn number(title: &'static str, width: usize, role: Role) -> Self {
        Column { align: Align::Right, ..Column::word(title, width, role) }
    }
    /// A column of names that may be long.
    pub const fn name(title: &'static str, width: usize, role: Role) -> Self {
        Column { may_cut: true, ..Column::word(title, width, role) }
    }
    /// With another width if nothing is cut.
    pub const fn uncut(self, uncut: usize) -> Self {
        Column { uncut, ..self }
    }
    /// Left out in narrow terminals, higher ranks first.
    pub const fn rank(self, rank: u8) -> Self {
        Column { rank, ..self }
    }
    /// The same; if it is one of the `named`, all others are left out before it.
    pub fn hidden_late(self, named: &[&str]) -> Self {
        match self.rank {
            0 => self,
            _ if named.contains(&self.title) => self.rank(1),
            rank => self.rank(rank.saturating_add(1)),
        }
    }
}

/// A cell: its text, and its role if it is not the column's.
pub struct Cell<'a> {
    words: CellText<'a>,
    short: Option<Cow<'a, str>>,
    role: Option<Role>,
}

/// The text of a cell. Numbers become text only in the line itself, because long tables have very many.
pub enum CellText<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An address or a frame number.
    Hexadecimal(u64),
    /// A number of bytes.
    Size(u64),
    /// A number of things.
    Count(u64),
}

impl<'a> Cell<'a> {
    /// In the column's own role.
    pub fn new(words: impl Into<CellText<'a>>) -> Self {
        Cell { words: words.into(), short: None, role: None }
    }
    /// A number of things, as [`count`](super::units::count) writes it.
    pub fn count(number: u64) -> Self {
        Cell::new(CellText::Count(number))
    }
    /// A number of bytes, as [`size`](super::units::size) writes it.
    pub fn size(bytes: u64) -> Self {
        Cell::new(CellText::Size(bytes))
    }
    /// In another role.
    pub fn of(role: Role, words: impl Into<CellText<'a>>) -> Self {
        Cell { role: Some(role), ..Cell::new(words) }
    }
    /// With a shorter text for too little room, in a column that may be cut or in the last one.
    pub fn or(self, short: impl Into<Cow<'a, str>>) -> Self {
        Cell { short: Some(short.into()), ..self }
    }
}

macro_rules! words {
    ($($type:ty: $value:ident => $words:expr),+ $(,)?) => {
        $(impl<'a> From<$type> for CellText<'a> {
            fn from($value: $type) -> Self {
                $words
            }
        })+
    };
}

words!(
    &'a str: text => CellText::Text(Cow::Borrowed(text)),
    &'a String: text => CellText::Text(Cow::Borrowed(text)),
    String: text => CellText::Text(Cow::Owned(text)),
    Cow<'a, str>: text => CellText::Text(text),
    &'a Name: name => CellText::Text(name.escaped()),
    &'a VirtualAddress: address => CellText::Hexadecimal(address.get()),
    &'a PhysicalAddress: address => CellText::Hexadecimal(address.get()),
    &'a FrameNumber: frame => CellText::Hexadecimal(frame.get()),
    &'a u32: number => CellText::Text(number.to_string().into()),
);

/// The shown columns and their places.
#[derive(Debug)]
pub struct Layout {
    columns: Vec<Column>,
    /// For each column the terminal column after it; `None` if it is left out.
    ends: Vec<Option<usize>>,
    width: Option<usize>,
    /// The current row; its memory is reused.
    line: Line,
}

impl Layout {
    /// Chooses the columns that fit `width`; all of them if it is not known (a pipe, a file).
    pub fn new(theme: Theme, mut columns: Vec<Column>, width: Option<usize>) -> Self {
        if width.is_none() {
            for column in &mut columns {
                column.width = column.uncut;
            }
        }
        Layout { ends: ends(&columns, width), columns, width, line: Line::new(theme, None) }
    }

    /// Makes room for the addresses of this row. Returns whether columns have moved, so that the titles must be written
    /// again.
    pub fn widen(&mut self, cells: &[Cell<'_>]) -> bool {
        let mut is_wider = false;
        for ((column, end), cell) in self.columns.iter_mut().zip(&self.ends).zip(cells) {
            if let (CellText::Hexadecimal(number), Some(_)) = (&cell.words, end) {
                let width = Number::hexadecimal(*number).columns();
                is_wider |= width > column.width;
                column.width = column.width.max(width);
            }
        }
        if is_wider {
            self.ends = ends(&self.columns, self.width);
        }
        is_wider
    }

    /// The titles of the columns that do not fit the terminal.
    pub fn left_out(&self) -> Vec<&'static str> {
        let columns = self.columns.iter().zip(&self.ends);
        columns.filter(|(_, end)| end.is_none()).map(|(column, _)| column.title).collect()
    }

    /// Writes the titles.
    pub fn heading(&mut self, out: &mut Vec<u8>) {
        let title = |column: &Column| Cell::of(Role::Heading, column.title);
        let titles: Vec<Cell> = self.columns.iter().map(title).collect();
        self.row(&titles, out);
    }

    /// Writes a row whose addresses fit their columns. A cell of another column that is too wide uses the blanks of the
    /// next columns, and moves them to the right only if there are none left.
    pub fn row(&mut self, cells: &[Cell<'_>], out: &mut Vec<u8>) {
        let line = &mut self.line;
        let last = self.ends.iter().rposition(Option::is_some);
        let shown = self.columns.iter().zip(&self.ends).zip(cells).enumerate();
        for (index, ((column, end), cell)) in shown {
            let Some(end) = *end else { continue };
            let start = end - column.width;
            if line.column() > 0 {
                line.pad_to((line.column() + 1).max(match column.align {
                    Align::Left => start,
                    Align::Right => 0,
                }));
            }
            let role = cell.role.unwrap_or(column.role);
            let first = |width| match column.align {
                Align::Left => 0,
                Align::Right => end.saturating_sub(width),
            };
            let mut put = |number: Number| {
                line.pad_to(first(number.columns())).push_number(role, &number);
            };
            match &cell.words {
                CellText::Hexadecimal(number) => put(Number::hexadecimal(*number)),
                CellText::Size(bytes) => put(Number::size(*bytes)),
                CellText::Count(number) => put(Number::count(*number)),
                CellText::Text(text) if Some(index) == last && !column.may_cut => {
                    let room = self.width.map(|whole| whole.saturating_sub(line.column()));
                    let fits = |text: &str| room.is_none_or(|room| columns(text) <= room);
                    let short = cell.short.as_deref().filter(|_| !fits(text));
                    let (text, width) = measured(short.unwrap_or(text));
                    line.pad_to(first(width));
                    // Wrap under itself if there is room.
                    match self.width.filter(|whole| line.column() + LEAST <= *whole) {
                        None => line.indent(INDENT),
                        Some(_) => line.indent_here(),
                    };
                    line.limit(self.width).push_measured(role, &text, width).limit(None);
                }
                CellText::Text(text) => {
                    let (mut text, mut width) = measured(text);
                    if let Some(whole) = self.width.filter(|_| column.may_cut) {
                        let limit =
                            if Some(index) == last { whole.saturating_sub(line.column()) } else { column.width };
                        if let Some(short) = cell.short.as_deref().filter(|_| width > limit) {
                            (text, width) = measured(short);
                        }
                        if width > limit.max(1) {
                            text = Cow::Owned(cut(&text, limit.max(1)).into_owned());
                            width = columns(&text);
                        }
                    }
                    line.pad_to(first(width)).push_measured(role, &text, width);
                }
            }
        }
        line.end(out);
    }
}

/// The ends of the columns that fit `width`; the highest rank is left out first.
fn ends(columns: &[Column], width: Option<usize>) -> Vec<Option<usize>> {
    let mut shown = vec![true; columns.len()];
    loop {
        let ends = place(columns, &shown);
        let total = ends.iter().flatten().last().copied().unwrap_or(0);
        let next = (0..columns.len())
            .filter(|&index| shown[index] && columns[index].rank > 0)
            .max_by_key(|&index| columns[index].rank);
        match next {
            Some(index) if width.is_some_and(|width| total > width) => shown[index] = false,
            _ => return ends,
        }
    }
}

fn place(columns: &[Column], shown: &[bool]) -> Vec<Option<usize>> {
    let mut at = 0;
    let mut before = None;
    columns
        .iter()
        .zip(shown)
        .map(|(column, shown)| {
            if !shown {
                return None;
            }
            // Words right of a number need two blanks to stand apart from it.
            at += match (before, column.align) {
                (None, _) => 0,
                (Some(Align::Right), Align::Left) => 2,
                _ => 1,
            };
            at += column.width;
            before = Some(column.align);
            Some(at)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::word("start", 6, Role::Address),
        Column::number("size", 5, Role::Size).rank(1),
        Column::name("name", 6, Role::Name),
        Column::name("flags", 5, Role::Flag).rank(2),
    ];

    fn row(width: Option<usize>, cells: [&str; 4]) -> String {
        let mut out = Vec::new();
        Layout::new(Theme::PLAIN, COLUMNS.into(), width).row(&cells.map(Cell::new), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up_and_long_cells_take_the_blanks_of_the_next() {
        let row = |cells| row(None, cells);
        assert_eq!(row(["0x10", "1", "a", "b"]), "0x10       1  a      b\n");
        assert_eq!(row(["0x1000000", "1", "a", "b"]), "0x1000000  1  a      b\n");
        assert_eq!(row(["0x10", "1", "abcdefg", "b"]), "0x10       1  abcdefg b\n");
    }

    #[test]
    fn what_is_cut_in_a_terminal_lines_up_where_nothing_is() {
        let columns = || {
            let name = Column::name("name", 6, Role::Name).uncut(10);
            vec![name, Column::word("next", 4, Role::Plain)]
        };
        let table = |width| {
            let mut layout = Layout::new(Theme::PLAIN, columns(), width);
            let mut out = Vec::new();
            layout.heading(&mut out);
            let cells = ["abcdefghij", "one"].map(Cell::new);
            layout.row(&cells, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(table(None), "name       next\nabcdefghij one\n");
        assert_eq!(table(Some(40)), "name   next\nabcde… one\n");
    }

    #[test]
    fn a_wider_address_moves_what_follows_it_once() {
        let mut layout = Layout::new(Theme::PLAIN, COLUMNS.into(), Some(26));
        let address = |number: u64| CellText::Hexadecimal(number);
        let row = |number| [Cell::new(address(number)), Cell::new("1")];
        assert!(!layout.widen(&row(0xffff)));
        assert_eq!(layout.left_out(), [""; 0]);
        assert!(layout.widen(&row(0x10000)));
        assert!(!layout.widen(&row(0x10000)) && !layout.widen(&row(0x10)));
        let mut out = Vec::new();
        layout.heading(&mut out);
        let heading = String::from_utf8(out).unwrap();
        assert_eq!(heading, "start    size  name\n");
        assert_eq!(layout.left_out(), ["flags"]);
    }

    #[test]
    fn a_narrow_terminal_leaves_out_and_cuts_but_never_a_number() {
        let cells = ["0x10", "1234567", "abcdefghij", "flagged"];
        assert_eq!(row(Some(27), cells), "0x10 1234567  abcde… flagg…\n");
        assert_eq!(row(Some(20), cells), "0x10 1234567  abcde…\n");
        assert_eq!(row(Some(13), cells), "0x10   abcde…\n");
        assert_eq!(row(Some(1), ["0x123456789", "", "a", ""]), "0x123456789 a\n");
    }
}
