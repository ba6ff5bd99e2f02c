//! Tables whose rows are all there before the first is written: each column has one unit and the width that its cells
//! need. What is the same in all rows moves above the table where that makes room.

use super::bar::blocks;
use super::columns::{Align, Cell, CellText, Column, ends, place};
use super::theme::{Role, columns as columns_of};
use super::units::Scale;
use std::borrow::Cow;

/// The widest text that columns make room for: longer sentences wrap, and longer names are cut.
const WIDEST: usize = 44;

/// The rows of a table, held until it ends.
#[derive(Debug)]
pub struct HeldRows {
    /// Its columns.
    pub columns: Vec<Column>,
    /// The cells of each row.
    pub rows: Vec<Vec<Cell<'static>>>,
    /// Lines between rows, each with the number of rows before it.
    pub remarks: Vec<(usize, String)>,
    /// What all rows have in common: titles with the cells under them.
    pub above: Vec<(&'static str, Role, String)>,
}

impl HeldRows {
    /// The most rows: this bounds the memory, and how long the first of them waits.
    const MOST: usize = 256;

    /// Without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        HeldRows { columns, rows: Vec::new(), remarks: Vec::new(), above: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<Cell<'_>>) {
        self.rows.push(cells.into_iter().map(Cell::into_owned).collect());
    }

    /// Whether it can hold no more rows.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= Self::MOST
    }

    /// Fits the columns to the rows and to a terminal of `width` columns, where the declared ones would lose something.
    pub fn fit(&mut self, width: usize) {
        if self.rows.len() > 1 {
            self.align_units();
        }
        for index in (0..self.columns.len()).rev() {
            self.draw_bars(index);
        }
        let needs: Vec<usize> = (0..self.columns.len()).map(|index| self.need(index)).collect();
        let mut declared = Vec::new();
        for (index, &need) in needs.iter().enumerate() {
            let is_number = self.has_numbers(index);
            let column = &mut self.columns[index];
            // Numbers are never cut.
            if is_number {
                column.width = column.width.max(need);
            }
            declared.push(column.width);
        }
        let least: Vec<usize> = needs.iter().enumerate().map(|(index, need)| self.least(index, *need)).collect();
        if self.loses(&least, width) {
            self.make_room(width, (needs, least, declared));
        }
        (0..self.columns.len()).for_each(|index| self.write_keys_alike(index, width));
    }

    /// Fits the columns to the rows where nothing is cut: in a pipe or a file.
    pub fn fit_uncut(&mut self) {
        if self.rows.len() > 1 {
            self.align_units();
        }
        for index in 0..self.columns.len() {
            let cells = self.rows.iter().filter_map(|cells| cells.get(index));
            let widths = cells.map(|cell| columns_of(&cell.words.text()));
            let need = widths.fold(columns_of(self.columns[index].title), usize::max);
            let is_number = self.has_numbers(index);
            // Sentences side by side would read as one.
            let gap = usize::from(self.has_phrases(index));
            let column = &mut self.columns[index];
            // A longer text would only add blanks to the other rows.
            let most = if is_number { need } else { column.uncut.max(WIDEST) };
            column.uncut = (need + gap).min(most).max(column.width);
        }
    }

    /// Moves what all rows have above the table, cuts and wraps. Each column has the width that it needs, the least of
    /// it, and the declared one.
    fn make_room(&mut self, width: usize, (mut needs, mut least, mut declared): (Vec<usize>, Vec<usize>, Vec<usize>)) {
        self.set_widths(&least);
        let drawings = |columns: &[Column]| columns.iter().position(|column| column.is_drawing);
        while self.total() > width {
            let Some(index) = drawings(&self.columns).or_else(|| self.common()) else { break };
            if let (Some((role, text)), false) = (self.text_of_all(index), self.columns[index].is_drawing) {
                self.above.push((self.columns[index].title, role, text));
            }
            self.remove(index);
            _ = (needs.remove(index), least.remove(index), declared.remove(index));
        }
        if self.total() > width {
            self.shorten(&declared);
        }
        self.widen(&needs, width);
    }

    /// Writes all keys of a column in their short form where one of them needs it.
    fn write_keys_alike(&mut self, index: usize, width: usize) {
        if !self.columns[index].is_key {
            return;
        }
        let cells = self.rows.iter().filter_map(|cells| cells.get(index));
        let longest = cells.map(|cell| columns_of(&cell.words.text())).max().unwrap_or_default();
        let ends = ends(&self.columns, Some(width));
        let end = ends.iter().flatten().last().copied().unwrap_or_default();
        let column = &mut self.columns[index];
        if end.saturating_sub(column.width) + longest <= width {
            column.width = column.width.max(longest);
            return;
        }
        for cell in self.rows.iter_mut().filter_map(|cells| cells.get_mut(index)) {
            if let Some(short) = cell.short.take() {
                cell.words = CellText::Text(short);
            }
        }
    }

    fn has_numbers(&self, index: usize) -> bool {
        let is_address = |cell: &Cell<'_>| matches!(cell.words, CellText::Hexadecimal(_));
        let mut cells = self.rows.iter().filter_map(|cells| cells.get(index));
        self.columns[index].align == Align::Right || cells.any(is_address)
    }

    /// Cuts and wraps where not all columns fit.
    fn shorten(&mut self, declared: &[usize]) {
        let last = self.columns.len().saturating_sub(1);
        for (index, column) in self.columns.iter_mut().enumerate() {
            if column.may_cut || index == last {
                column.width = column.width.min(declared[index]);
            }
        }
    }

    /// Gives the room that is left to columns that would be cut.
    fn widen(&mut self, needs: &[usize], width: usize) {
        let ends = ends(&self.columns, Some(width));
        let mut free = width.saturating_sub(ends.iter().flatten().last().copied().unwrap_or(0));
        // The last one uses what is left.
        if let (Some(column), Some(need)) = (self.columns.last(), needs.last()) {
            free = free.saturating_sub(need.min(&WIDEST).saturating_sub(column.width));
        }
        for index in (0..self.columns.len()).filter(|index| ends[*index].is_some()) {
            // Sentences side by side would read as one.
            let gap = usize::from(index + 1 < self.columns.len() && self.has_phrases(index));
            let column = &mut self.columns[index];
            let missing = if column.may_cut { needs[index].saturating_sub(column.width) } else { 0 };
            let more = free.min(missing + gap);
            column.width += more;
            free -= more;
        }
    }

    fn has_phrases(&self, index: usize) -> bool {
        let is_phrase = |cell: &Cell<'_>| matches!(&cell.words, CellText::Text(text) if text.contains(' '));
        let mut cells = self.rows.iter().filter_map(|cells| cells.get(index));
        self.columns[index].align == Align::Left && cells.any(is_phrase)
    }

    fn set_widths(&mut self, widths: &[usize]) {
        self.columns.iter_mut().zip(widths).for_each(|(column, width)| column.width = *width);
    }

    /// Whether columns are left out, or cells are cut or out of place.
    fn loses(&self, needs: &[usize], width: usize) -> bool {
        let ends = ends(&self.columns, Some(width));
        let last = ends.iter().rposition(Option::is_some);
        let columns = self.columns.iter().zip(ends).zip(needs).enumerate();
        columns.into_iter().any(|(index, ((column, end), need))| match end {
            // What follows from other columns goes only after what says nothing.
            None => !column.is_repetition || self.has_column_of_zeros(),
            Some(end) if Some(index) == last => end + need > width + column.width,
            Some(_) => *need > column.width,
        })
    }

    /// Whether a column that can go has nothing but zeros.
    fn has_column_of_zeros(&self) -> bool {
        let is_zero = |index| self.text_of_all(index).is_some_and(|(_, text)| text == "0");
        (1..self.columns.len()).any(|index| !self.columns[index].is_key && is_zero(index))
    }

    fn total(&self) -> usize {
        let ends = place(&self.columns, &vec![true; self.columns.len()]);
        ends.iter().flatten().last().copied().unwrap_or(0)
    }

    /// The width that a column needs for the shortest form of each of its cells.
    fn need(&self, index: usize) -> usize {
        let column = &self.columns[index];
        let cells = self.rows.iter().filter_map(|cells| cells.get(index));
        let widths = cells.map(|cell| {
            let full = columns_of(&cell.words.text());
            cell.short.as_ref().map_or(full, |short| full.min(columns_of(short)))
        });
        let need = widths.fold(columns_of(column.title), usize::max);
        if column.is_drawing { column.width } else { need }
    }

    /// What of this it has to have.
    fn least(&self, index: usize, need: usize) -> usize {
        let column = &self.columns[index];
        let may_lack = column.may_cut || index + 1 == self.columns.len() && !column.is_key;
        if may_lack && need > WIDEST { column.width } else { need }
    }

    /// The column that can go first of those that are the same in all rows: never the one that names the rows.
    fn common(&self) -> Option<usize> {
        let is_common = |index: &usize| {
            let column = &self.columns[*index];
            !column.is_key && !column.title.is_empty() && self.text_of_all(*index).is_some()
        };
        (1..self.columns.len()).filter(is_common).max_by_key(|&index| (self.columns[index].rank, index))
    }

    /// What all rows have in a column, if they have the same, and its role.
    fn text_of_all(&self, index: usize) -> Option<(Role, String)> {
        let mut cells = self.rows.iter().filter_map(|cells| cells.get(index));
        let first = cells.next()?;
        let role = first.role.unwrap_or(self.columns[index].role);
        let text = first.words.text();
        if self.rows.len() > 1 && cells.clone().all(|cell| cell.words.text() == text) {
            return Some((role, text.into_owned()));
        }
        let is_nothing = |cell: &Cell<'_>| matches!(cell.words.text().as_ref(), "0" | "-");
        (is_nothing(first) && cells.all(is_nothing) && self.rows.len() > 1)
            .then(|| (Role::Dim, "0 where known".to_owned()))
    }

    /// Writes sizes in one unit: those of the table, if one suits all, or else those of each column, there in several
    /// units if need be.
    fn align_units(&mut self) {
        let size = |cell: &Cell<'_>| if let CellText::Size(bytes) = cell.words { Some(bytes) } else { None };
        let of_table = Scale::of(self.rows.iter().flatten().filter_map(size));
        for index in 0..self.columns.len() {
            let sizes = self.rows.iter().filter_map(|cells| cells.get(index)).filter_map(size);
            let of_column = || Scale::of(sizes.clone());
            let of_parts = || Scale::of_several_units(sizes.clone());
            let Some(scale) = of_table.or_else(of_column).or_else(of_parts) else {
                continue;
            };
            for cell in self.rows.iter_mut().filter_map(|cells| cells.get_mut(index)) {
                if let CellText::Size(bytes @ 1..) = cell.words {
                    cell.words = CellText::Text(Cow::Owned(scale.size(bytes)));
                }
            }
        }
    }

    /// Draws the bars of a column: the largest is a whole one. Rows that are alike have none.
    fn draw_bars(&mut self, index: usize) {
        // One row compares with nothing.
        if self.columns[index].is_drawing && self.rows.len() == 1 {
            return self.remove(index);
        }
        let part = |cell: &Cell<'_>| if let CellText::Bar(part) = cell.words { Some(part) } else { None };
        let parts = self.rows.iter().filter_map(|cells| cells.get(index)).filter_map(part);
        let (Some(least), Some(largest)) = (parts.clone().min(), parts.max()) else {
            return;
        };
        if least == largest {
            self.remove(index);
            return;
        }
        for cell in self.rows.iter_mut().filter_map(|cells| cells.get_mut(index)) {
            if let Some(part) = part(cell) {
                cell.words = CellText::Text(Cow::Owned(blocks(part, largest)));
            }
        }
    }

    fn remove(&mut self, index: usize) {
        self.columns.remove(index);
        self.rows.iter_mut().for_each(|cells| _ = cells.remove(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::bar::{BAR, bar, bar_of_largest};
    use crate::render::columns::TableLayout;
    use crate::render::theme::Theme;

    const COLUMNS: [Column; 4] = [
        Column::word("start", 6, Role::Address),
        Column::number("size", 8, Role::Size),
        Column::number("swapped", 8, Role::Size).rank(1),
        Column::name("name", 6, Role::Name),
    ];

    fn written(columns: &[Column], rows: Vec<Vec<Cell<'_>>>, width: usize) -> String {
        let mut held = HeldRows::new(columns.to_vec());
        rows.into_iter().for_each(|row| held.push(row));
        held.fit(width);
        let mut out = Vec::new();
        let mut layout = TableLayout::new(Theme::PLAIN, held.columns, Some(width));
        layout.heading(&mut out);
        held.rows.iter().for_each(|row| layout.row(row, &mut out));
        let above: String = held.above.iter().map(|(title, _, text)| format!("{title} {text}\n")).collect();
        above + std::str::from_utf8(&out).unwrap()
    }

    fn row(start: &str, size: u64, swapped: u64, name: &'static str) -> Vec<Cell<'static>> {
        vec![Cell::new(start.to_owned()), Cell::size(size), Cell::size(swapped), Cell::new(name)]
    }

    #[test]
    fn a_table_that_fits_stays_as_declared_with_one_unit() {
        let rows = || vec![row("a", 4 << 10, 0, "one"), row("b", 2 << 20, 0, "two")];
        let expected = "start      size  swapped  name\na         4 KiB        0  one\nb      2048 KiB        0  two\n";
        assert_eq!(written(&COLUMNS, rows(), 40), expected);
    }

    #[test]
    fn where_nothing_is_cut_columns_have_one_unit_too_and_room_for_their_rows() {
        let mut held = HeldRows::new([COLUMNS[0], COLUMNS[3], COLUMNS[1]].to_vec());
        held.push(vec![Cell::new("a"), Cell::new("a longer name"), Cell::size(4 << 10)]);
        held.push(vec![Cell::new("b"), Cell::new("two"), Cell::size(2 << 20)]);
        held.fit_uncut();
        let mut out = Vec::new();
        let mut layout = TableLayout::new(Theme::PLAIN, held.columns, None);
        held.rows.iter().for_each(|row| layout.row(row, &mut out));
        let expected = "a      a longer name     4 KiB\nb      two            2048 KiB\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_all_rows_have_moves_above_only_where_something_is_lost() {
        let rows = || vec![row("a", 4096, 0, "a longer name"), row("b", 8192, 0, "two")];
        let expected = "swapped 0\nstart  size  name\na     4 KiB  a longer name\nb     8 KiB  two\n";
        assert_eq!(written(&COLUMNS, rows(), 26), expected);
        assert!(!written(&COLUMNS, rows(), 60).contains("swapped 0"));
        // One row has nothing in common with others.
        let one = written(&COLUMNS, vec![row("a", 4096, 0, "a longer name")], 24);
        assert_eq!(one, "start  size  name\na     4 KiB  a longer n…\n");
        let nothing = vec![row("a", 4096, 0, "a longer name"), {
            let mut cells = row("b", 4096, 0, "two");
            cells[2] = Cell::new("-");
            cells
        }];
        assert!(written(&COLUMNS, nothing, 26).starts_with("swapped 0 where known\nstart  size"));
    }

    #[test]
    fn keys_of_one_column_have_one_form() {
        let columns = [COLUMNS[1], Column { is_key: true, ..Column::word("region", 8, Role::Plain) }];
        let row = |size, key: &'static str, short: &'static str| vec![Cell::size(size), Cell::new(key).or(short)];
        let rows = || vec![row(4096, "0x1000..0x2000 rw-p", "0x1000 rw-p"), row(8192, "0x30..0x40", "0x30")];
        let wide = written(&columns, rows(), 40);
        assert!(wide.contains("0x1000..0x2000 rw-p\n") && wide.contains("0x30..0x40\n"), "{wide}");
        let narrow = written(&columns, rows(), 25);
        assert!(narrow.contains(" 0x1000 rw-p\n") && narrow.contains(" 0x30\n"), "{narrow}");
    }

    #[test]
    fn the_first_column_and_keys_stay() {
        let mut columns = COLUMNS.to_vec();
        columns[3] = Column { is_key: true, ..columns[3] };
        let rows = vec![row("a", 4096, 0, "the same name"), row("a", 4096, 0, "the same name")];
        let table = written(&columns, rows, 15);
        assert!(table.starts_with("swapped 0\nsize 4 KiB\nstart name\na     "), "{table}");
    }

    #[test]
    fn a_bar_is_as_long_as_its_part_of_the_largest() {
        let columns = [COLUMNS[0], BAR, COLUMNS[3]];
        let row = |start: &'static str, part| vec![Cell::new(start), bar_of_largest(part), Cell::new("name")];
        let table = written(&columns, vec![row("a", 8), row("b", 4)], 40);
        assert_eq!(table, "start             name\na      ██████████ name\nb      █████      name\n");
        assert_eq!(written(&columns, vec![row("a", 8), row("b", 8)], 40), "start  name\na      name\nb      name\n");
        let share = vec![Cell::new("a"), bar(2, 2), Cell::new("name")];
        assert_eq!(written(&columns, vec![share], 40), "start  name\na      name\n");
    }
}
