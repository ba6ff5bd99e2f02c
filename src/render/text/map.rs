//! `map`: regions as blocks of cells.

use super::block::region_name;
use super::lines::Lines;
use crate::render::Record;
use crate::render::marks::{self, Cell, Legend};
use crate::render::svg::Svg;
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::{MapCells, MapRegion, Mark};

/// Blanks before a row of cells.
const INDENT: usize = 2;
/// The most rows of cells of a region.
const MOST_ROWS: usize = 4;

impl Record for MapRegion {
    fn write(&self, text: &mut Text) {
        text.picture(region, self);
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.heading(|lines| head(lines, self, 1));
        if !is_empty(self) {
            let cell_bytes = cell_bytes(self);
            let address = |cell: usize| {
                let bytes = (cell as u64).saturating_mul(cell_bytes);
                let address = self.start.checked_add(bytes).unwrap_or(self.end);
                address.min(self.end)
            };
            picture.cells(&marks::each(&self.cells), |start, end| format!("{}..{}", address(start), address(end)));
        }
        true
    }
}

/// `0x5600d2d30000..0x5600d2d40000 rw-p 64 KiB [heap] a cell is 4 KiB`, and its cells.
fn region(lines: &mut Lines, legend: &mut Legend, region: &MapRegion) {
    let room = lines.style.columns().saturating_sub(INDENT).max(8);
    let (cells, together) = fitting(&region.cells, room * MOST_ROWS);
    head(lines, region, together);
    if is_empty(region) {
        return;
    }
    for row in cells.chunks(room) {
        let line = lines.line();
        line.limit(None).plain(" ".repeat(INDENT));
        legend.push_cells(line, row);
    }
}

/// What the region is, and what a cell is if `together` of those of the record are drawn as one.
fn head(lines: &mut Lines, region: &MapRegion, together: u64) {
    let bytes = region.end.get().saturating_sub(region.start.get());
    let line = lines.line();
    line.indent(4).push(Role::Address, format!("{}..{}", region.start, region.end));
    if let Some(perms) = region.perms {
        line.plain(format!("  {perms}"));
    }
    line.plain("  ").push(Role::Size, size(bytes)).plain("  ");
    match &region.name {
        Some(name) => {
            let (role, name) = region_name(name);
            line.push(role, name);
        }
        None => _ = line.push(Role::Dim, "in no region"),
    }
    let told = match is_empty(region) {
        true if region.cells.iter().any(|cell| cell.mark == Mark::Untouched) => "untouched".to_owned(),
        true => "nothing".to_owned(),
        false => {
            let cell = cell_bytes(region).saturating_mul(together);
            format!("a cell is {}", size(cell))
        }
    };
    line.push(Role::Dim, format!("  {told}"));
}

/// Bytes that a cell of the record stands for.
fn cell_bytes(region: &MapRegion) -> u64 {
    let bytes = region.end.get().saturating_sub(region.start.get());
    let page = bytes / region.pages.max(1);
    region.cell_pages.saturating_mul(page)
}

/// Whether there is nothing to draw.
fn is_empty(region: &MapRegion) -> bool {
    region.cells.iter().all(|cell| cell.mark >= Mark::Untouched)
}

/// At most `most` cells, and how many cells of the record each of them joins.
fn fitting(cells: &[MapCells], most: usize) -> (Vec<Cell>, u64) {
    let each = marks::each(cells);
    let together = each.len().div_ceil(most).next_power_of_two();
    let joined = each.chunks(together).map(Cell::joined);
    (joined.collect(), together as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_do_not_fit_are_joined_and_say_so() {
        let cells = [
            MapCells { cells: 6, mark: Mark::Anonymous, mixed: false },
            MapCells { cells: 3, mark: Mark::Untouched, mixed: false },
        ];
        let letters = |most| {
            let (cells, together) = fitting(&cells, most);
            let text: String = cells.iter().map(|cell| cell.letter()).collect();
            (text, together)
        };
        assert_eq!(letters(16), ("AAAAAA...".to_owned(), 1));
        assert_eq!(letters(5), ("AAA..".to_owned(), 2));
        assert_eq!(letters(4), ("Aa.".to_owned(), 4));
    }
}
