//! Tables whose rows stream: every column declares its width beforehand, so no row waits for another. A
//! column and the cells under it are declared together. Also the columns and cells that several tables have.

pub use super::cell::{Cell, CellText};
use super::text::block::{
    DELETED, mapped_file_name, mapped_name, object_number, region_file_name, region_name, symbol_text, word_for_missing,
};
use super::text::lines::{Line, Style};
use super::text::words;
use super::theme::{Role, Theme, columns, cut, printable_and_width};
use super::units::{Number, count, difference};
use crate::kernel::{Name, VirtualAddress};
use crate::report::{Fact, FrameWords, Reason, SymbolBrief};
use std::borrow::Cow;

/// The width that the last column needs to wrap under itself.
const LEAST: usize = 24;
/// The room that a name needs to be cut in the line and not to stand in the next.
const FEWEST: usize = 6;
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
    /// Whether another column has the same facts.
    pub is_repetition: bool,
    /// Whether it is only for people: not in a pipe or a file.
    pub is_drawing: bool,
    /// Whether rows are grouped by it.
    pub is_key: bool,
    /// Whether its cells need all rows, and these are not there.
    pub is_hidden: bool,
}

impl Column {
    /// A column of words that must stay whole.
    pub const fn word(title: &'static str, width: usize, role: Role) -> Self {
        Column {
            title,
            width,
            align: Align::Left,
            role,
            rank: 0,
            may_cut: false,
            uncut: width,
            is_repetition: false,
            is_drawing: false,
            is_key: false,
            is_hidden: false,
        }
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
    /// Not named among the columns that were left out: another one has the same facts.
    pub const fn repeats(self) -> Self {
        Column { is_repetition: true, ..self }
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

/// The shown columns and their places.
#[derive(Debug)]
pub struct TableLayout {
    columns: Vec<Column>,
    /// For each column the terminal column after it; `None` if it is left out.
    ends: Vec<Option<usize>>,
    width: Option<usize>,
    /// The current row; its memory is reused.
    line: Line,
    /// Whether a row had letters for flags.
    has_letters: bool,
}

impl TableLayout {
    /// Chooses the columns that fit `width`; all of them if it is not known (a pipe, a file).
    pub fn new(theme: Theme, mut columns: Vec<Column>, width: Option<usize>) -> Self {
        if width.is_none() {
            for column in &mut columns {
                column.width = column.uncut;
            }
        }
        TableLayout { ends: ends(&columns, width), columns, width, line: Line::new(theme, None), has_letters: false }
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
        columns.filter(|(column, end)| end.is_none() && !column.is_repetition).map(|(column, _)| column.title).collect()
    }

    /// Whether a row had letters for flags since the last time.
    pub fn take_letters(&mut self) -> bool {
        std::mem::take(&mut self.has_letters)
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
            let role = cell.role.unwrap_or(column.role);
            let place = CellPlace { column, end, role, is_last: Some(index) == last, whole: self.width };
            place.begin(line);
            match &cell.words {
                CellText::Hexadecimal(number) => place.number(Number::hexadecimal(*number), line),
                CellText::Size(bytes) => place.number(Number::size(*bytes), line),
                CellText::Count(number) => place.number(Number::count(*number), line),
                CellText::Bar(_) => {}
                CellText::Text(text) if place.is_last && !column.may_cut => {
                    place.wrap(text, cell.short.as_deref(), line);
                }
                CellText::Text(text) => {
                    let is_shortest = place.cut(text, cell.short.as_deref(), line);
                    self.has_letters |= cell.has_letters && is_shortest;
                }
            }
        }
        line.end(out);
    }
}

/// Where a cell of a row is written.
struct CellPlace<'a> {
    column: &'a Column,
    /// The terminal column after it.
    end: usize,
    role: Role,
    /// Whether it is the last one that is shown.
    is_last: bool,
    /// The columns of the terminal, if they are known.
    whole: Option<usize>,
}

impl CellPlace<'_> {
    /// Moves to the start of the column, at least one blank after the cell before it.
    fn begin(&self, line: &mut Line) {
        if line.column() > 0 {
            line.pad_to((line.column() + 1).max(match self.column.align {
                Align::Left => self.end - self.column.width,
                Align::Right => 0,
            }));
        }
    }

    /// Where a word of `width` columns begins, if there is room.
    fn first(&self, width: usize) -> usize {
        match self.column.align {
            Align::Right if self.whole.is_none_or(|whole| self.end <= whole) => self.end.saturating_sub(width),
            _ => 0,
        }
    }

    /// Goes on in a new line where a word of `width` columns would cross the edge: in a terminal of 40 columns.
    fn stay_inside<'l>(&self, width: usize, line: &'l mut Line) -> &'l mut Line {
        let is_beyond = |whole: usize| line.column() > INDENT && line.column() + width > whole;
        if self.whole.is_some_and(is_beyond) { line.indent(INDENT).new_line() } else { line }
    }

    fn number(&self, number: Number, line: &mut Line) {
        let width = number.columns();
        self.stay_inside(width, line.pad_to(self.first(width))).push_number(self.role, &number);
    }

    /// Writes a text that may take the rest of the line, and wraps.
    fn wrap(&self, text: &str, short: Option<&str>, line: &mut Line) {
        let room = self.whole.map(|whole| whole.saturating_sub(line.column()));
        let fits = |text: &str| room.is_none_or(|room| columns(text) <= room);
        let (text, width) = printable_and_width(short.filter(|_| !fits(text)).unwrap_or(text));
        line.pad_to(self.first(width));
        // Wrap under itself if there is room, also for its longest word. A path breaks anywhere.
        let whole_words = || text.split(' ').filter(|word| !word.contains('/'));
        let longest = || whole_words().map(columns).fold(LEAST, usize::max);
        let needs = |whole: &usize| if line.column() + width <= *whole { LEAST } else { longest() };
        match self.whole.filter(|whole| line.column() + needs(whole) <= *whole) {
            None => line.indent(INDENT),
            Some(_) => line.indent_here(),
        };
        line.limit(self.whole);
        match self.whole {
            // A sentence wraps between its words.
            Some(whole) if line.column() + width > whole => line.prose(self.role, &text),
            _ => line.push_measured(self.role, &text, width),
        };
        line.limit(None);
    }

    /// Writes a text that is cut to its column in a terminal. Returns whether it is in the shortest form that it has.
    fn cut(&self, text: &str, short: Option<&str>, line: &mut Line) -> bool {
        let (mut text, mut width) = printable_and_width(text);
        let mut is_shortest = short.is_none();
        if let Some(whole) = self.whole.filter(|_| self.column.may_cut) {
            let room = |line: &Line| whole.saturating_sub(line.column());
            let needed = short.map_or(width, |short| width.min(columns(short)));
            if self.is_last && needed.min(FEWEST) > room(line) {
                line.indent(INDENT).new_line();
            }
            let limit = if self.is_last { room(line) } else { self.column.width };
            if let Some(short) = short.filter(|_| width > limit) {
                (text, width) = printable_and_width(short);
                is_shortest = true;
            }
            if width > limit.max(1) {
                text = Cow::Owned(cut(&text, limit.max(1)).into_owned());
                width = columns(&text);
            }
        }
        let line = self.stay_inside(width, line.pad_to(self.first(width)));
        line.limit(self.whole).push_measured(self.role, &text, width).limit(None);
        is_shortest
    }
}

/// The ends of the columns that fit `width`; the highest rank is left out first.
pub(super) fn ends(columns: &[Column], width: Option<usize>) -> Vec<Option<usize>> {
    let mut shown: Vec<bool> = {
        let is_shown = |column: &Column| !column.is_hidden && (width.is_some() || !column.is_drawing);
        columns.iter().map(is_shown).collect()
    };
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

/// The ends of the columns that are shown.
pub(super) fn place(columns: &[Column], shown: &[bool]) -> Vec<Option<usize>> {
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

/// Makes the cell of a record in one column.
pub type MakeCell<T> = for<'a> fn(&Style, &'a T) -> Cell<'a>;

/// A column of a table whose rows are records of the type `T`.
pub struct ColumnOf<T> {
    column: Column,
    cell: MakeCell<T>,
}

impl Column {
    /// With the cells under it.
    pub const fn cell<T>(self, cell: MakeCell<T>) -> ColumnOf<T> {
        ColumnOf { column: self, cell }
    }
}

/// A kind of table whose rows are records of the type `T`.
pub struct Table<T: 'static> {
    columns: &'static [ColumnOf<T>],
    /// The title of a column that is left out.
    without: Option<&'static str>,
    /// The last columns, if these are group keys.
    keys: [Option<ColumnOf<T>>; 2],
}

/// What tells a table from others: its declaration, the column left out, and the titles of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableId(*const (), Option<&'static str>, [Option<&'static str>; 2]);

impl<T> Table<T> {
    /// With these columns.
    pub const fn of(columns: &'static [ColumnOf<T>]) -> Self {
        Table { columns, without: None, keys: [None, None] }
    }

    /// The same without the column of this title.
    pub fn without(&self, title: Option<&'static str>) -> Self {
        Table { without: title, ..Table::of(self.columns) }
    }

    /// The same with these group keys at the end, where they may be long.
    pub fn by(&self, keys: [Option<ColumnOf<T>>; 2]) -> Self {
        Table { keys, without: self.without, ..Table::of(self.columns) }
    }

    pub fn id(&self) -> TableId {
        let title = |key: &Option<ColumnOf<T>>| key.as_ref().map(|key| key.column.title);
        let [first, second] = &self.keys;
        let keys = [title(first), title(second)];
        TableId(self.columns.as_ptr().cast(), self.without, keys)
    }

    fn shown_columns(&self) -> impl Iterator<Item = &ColumnOf<T>> {
        let is_shown = |of: &&ColumnOf<T>| Some(of.column.title) != self.without;
        let keys = self.keys.iter().flatten();
        self.columns.iter().filter(is_shown).chain(keys)
    }

    /// Whether its columns need titles.
    pub fn has_heading(&self) -> bool {
        self.columns.iter().any(|of| !of.column.title.is_empty())
    }

    /// Its columns.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<_> = self.shown_columns().map(|of| of.column).collect();
        let keys = self.keys.iter().flatten().count();
        columns.iter_mut().rev().take(keys).for_each(|column| column.is_key = true);
        columns
    }

    /// The cells of a row.
    pub fn cells<'a>(&self, style: &Style, row: &'a T) -> Vec<Cell<'a>> {
        let mut cells = Vec::with_capacity(self.columns.len() + self.keys.len());
        cells.extend(self.shown_columns().map(|of| (of.cell)(style, row)));
        cells
    }
}

/// A region that rows are grouped by; where there is no room for `0x1000..0x2000 rw-p /usr/lib/libc.so.6`, it is
/// `0x1000 rw-p libc.so.6`.
pub fn region_key<'a>(key: impl Into<Cow<'a, str>>) -> Cell<'a> {
    let key = key.into();
    let Some((start, behind)) = key.split_once("..") else {
        return Cell::new(key);
    };
    let behind = behind.split_once(' ').map_or("", |(_, behind)| behind);
    let (permissions, path) = behind.split_once(' ').unwrap_or((behind, ""));
    let name = path.rsplit('/').next().unwrap_or_default();
    let short = format!("{start} {permissions} {name}").trim_end().to_owned();
    Cell::new(key).or(short)
}

/// A mapping that rows are grouped by; the end of its path where there is no room for all of it.
pub fn mapping_key<'a>(key: impl Into<Cow<'a, str>>) -> Cell<'a> {
    let key = key.into();
    let short = key.rsplit_once('/').map(|(_, file)| file.to_owned());
    let cell = Cell::new(key);
    match short {
        Some(short) => cell.or(short),
        None => cell,
    }
}

pub const START: Column = Column::word("start", 14, Role::Address);
pub const END: Column = Column::word("end", 14, Role::Address);
pub const SIZE: Column = Column::number("size", 8, Role::Size);
pub const PAGES: Column = Column::number("pages", 6, Role::Size);
pub const PERMISSIONS: Column = Column::word("perms", 5, Role::Plain);
pub const PID: Column = Column::number("pid", 7, Role::Size);
pub const REGION: Column = Column::name("region", 14, Role::Name);

/// What stands for a value that there is not.
pub fn none<'a>() -> Cell<'a> {
    Cell::of(Role::Dim, "-")
}

/// What stands for a value that is not known.
pub fn unknown<'a>() -> Cell<'a> {
    Cell::of(Role::Warn, "?")
}

/// The cell of a value that may not exist.
pub fn optional<'a, T>(value: &'a Option<T>) -> Cell<'a>
where
    &'a T: Into<CellText<'a>>,
{
    value.as_ref().map_or_else(none, Cell::new)
}

/// The cell of a fact, or the word for a missing one.
pub fn fact<'a, T>(fact: &'a Fact<T>) -> Cell<'a>
where
    &'a T: Into<CellText<'a>>,
{
    fact.as_ref().map_or_else(reason, Cell::new)
}

/// The word for a value that is missing for this reason.
pub fn reason<'a>(reason: &Reason) -> Cell<'a> {
    let (role, text) = word_for_missing(Some(reason));
    Cell::of(role, text)
}

/// The bytes from one address to another.
pub fn length<'a>(start: VirtualAddress, end: VirtualAddress) -> Cell<'a> {
    Cell::size(end.get().saturating_sub(start.get()))
}

/// A number of bytes; 0 is of less interest.
pub fn amount<'a>(bytes: u64) -> Cell<'a> {
    match bytes {
        0 => Cell::of(Role::Dim, CellText::Size(0)),
        bytes => Cell::size(bytes),
    }
}

/// `+12 KiB`: how a number of bytes changed.
pub fn change<'a>(before: u64, now: u64) -> Cell<'a> {
    if before == now { Cell::of(Role::Dim, "-") } else { Cell::new(difference(before, now)) }
}

pub fn map_count(words: &FrameWords) -> Cell<'_> {
    match &words.map_count {
        Ok(times) if !words.map_count_average => Cell::count(*times),
        Ok(times) => Cell::new(words::map_count(count(*times), true)),
        Err(why) => reason(why),
    }
}

pub fn symbol(symbol: &Option<SymbolBrief>) -> Cell<'_> {
    match symbol {
        Some(symbol) => Cell::new(symbol_text(symbol)),
        None => none(),
    }
}

/// The name of a region that there may not be; its file name where there is less room.
pub fn region_file<'a>(style: &Style, name: Option<&'a Name>) -> Cell<'a> {
    let Some(name) = name else {
        return none();
    };
    let (role, text) = match style.width {
        Some(_) => region_file_name(name),
        None => region_name(name),
    };
    Cell::of(role, text)
}

/// The name of a region, without its folder if there is no room for that. `object` is its number among those that
/// have the same name. Memory to which only the kernel gives a path `is_without_path`.
pub fn region<'a>(
    style: &Style,
    name: &'a Name,
    deleted: bool,
    object: Option<u64>,
    is_without_path: bool,
) -> Cell<'a> {
    let number = object_number(name.as_bytes(), object);
    let marked = |name: Cow<'a, str>| {
        let name = if deleted { name + DELETED } else { name };
        if number.is_empty() { name } else { Cow::Owned(format!("{name}{number}")) }
    };
    let (role, text) = mapped_name(name, is_without_path);
    let cell = Cell::of(role, marked(text));
    match style.width {
        Some(_) => cell.or(marked(mapped_file_name(name, is_without_path).1)),
        // Nothing is cut.
        None => cell,
    }
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
        TableLayout::new(Theme::PLAIN, COLUMNS.into(), width).row(&cells.map(Cell::new), &mut out);
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
            let mut layout = TableLayout::new(Theme::PLAIN, columns(), width);
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
    fn a_region_is_shortened_where_there_is_no_room() {
        let short = |key| region_key(key).short.map(Cow::into_owned);
        assert_eq!(short("0x1000..0x2000 r-xp /usr/lib/libc.so.6").as_deref(), Some("0x1000 r-xp libc.so.6"));
        assert_eq!(short("0x1000..0x2000 rw-p").as_deref(), Some("0x1000 rw-p"));
        assert_eq!(short("in no region"), None);
    }

    #[test]
    fn a_wider_address_moves_what_follows_it_once() {
        let mut layout = TableLayout::new(Theme::PLAIN, COLUMNS.into(), Some(26));
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
        assert_eq!(row(Some(1), ["0x123456789", "", "a", ""]), "0x123456789\n      a\n");
    }
}
