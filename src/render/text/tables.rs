//! Tables: a column and the cells under it are declared together. Also the columns and cells that several tables have.

use crate::kernel::{Name, VirtualAddress};
use crate::render::columns::{Cell, CellText, Column};
use crate::render::text::block::{missing, region_file_name, region_name, symbol_text};
use crate::render::text::lines::Style;
use crate::render::text::words;
use crate::render::theme::Role;
use crate::render::units::count;
use crate::report::{Fact, FrameWords, Reason, SymbolBrief};

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
        Table { keys, ..Table::of(self.columns) }
    }

    pub fn id(&self) -> TableId {
        let title = |key: &Option<ColumnOf<T>>| key.as_ref().map(|key| key.column.title);
        let [first, second] = &self.keys;
        let keys = [title(first), title(second)];
        TableId(self.columns.as_ptr().cast(), self.without, keys)
    }

    fn shown(&self) -> impl Iterator<Item = &ColumnOf<T>> {
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
        self.shown().map(|of| of.column).collect()
    }

    /// The cells of a row.
    pub fn cells<'a>(&self, style: &Style, row: &'a T) -> Vec<Cell<'a>> {
        let mut cells = Vec::with_capacity(self.columns.len() + self.keys.len());
        cells.extend(self.shown().map(|of| (of.cell)(style, row)));
        cells
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
    let (role, text) = missing(Some(reason));
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

/// The name of a region, without its folder if there is no room for that.
pub fn region<'a>(style: &Style, name: &'a Name, deleted: bool) -> Cell<'a> {
    let deleted = if deleted { " (deleted)" } else { "" };
    let (role, text) = region_name(name);
    let cell = Cell::of(role, text + deleted);
    match style.width {
        Some(_) => cell.or(region_file_name(name).1 + deleted),
        // Nothing is cut.
        None => cell,
    }
}
