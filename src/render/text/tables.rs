//! Tables: a column and the cells under it are declared together.

use super::style::Style;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;

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
