//! `map`: regions as blocks of cells.

use super::block::region_name;
use super::look::Look;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::{MapCells, MapRegion, Mark};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Where nothing is said of a width.
const USUAL: usize = 80;
/// Blanks before a row of cells.
const INDENT: usize = 2;
/// Rows of cells that a region has at most.
const MOST_ROWS: usize = 4;

/// The marks that were drawn, for the legend.
#[derive(Debug, Default)]
pub(super) struct Legend(BTreeSet<Mark>, bool);

/// `0x5600d2d30000..0x5600d2d40000  rw-p  64 KiB  [heap]  a cell is 4 KiB`, and its cells.
pub(super) fn region(
    look: &Look,
    legend: &mut Legend,
    region: &MapRegion,
    out: &mut dyn Write,
) -> io::Result<()> {
    let bytes = region.end.get().saturating_sub(region.start.get());
    let page = bytes / region.pages.max(1);
    let room = look.width.unwrap_or(USUAL).saturating_sub(INDENT).max(8);
    let (cells, together) = fitting(&region.cells, room * MOST_ROWS);
    let mut line = look.line();
    line.indent(4)
        .push(Role::Address, format!("{}..{}", region.start, region.end));
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
    let is_empty = |mark: Mark| mark >= Mark::Untouched;
    if cells.iter().all(|cell| is_empty(cell.mark)) {
        let nothing = cells.iter().any(|cell| cell.mark == Mark::Untouched);
        let words = if nothing { "untouched" } else { "nothing" };
        line.push(Role::Dim, format!("  {words}"));
        return line.end(out);
    }
    let cell = region
        .cell_pages
        .saturating_mul(page)
        .saturating_mul(together);
    line.push(Role::Dim, format!("  a cell is {}", size(cell)));
    line.end(out)?;
    for row in cells.chunks(room) {
        let mut line = look.line();
        line.limit(None).plain(" ".repeat(INDENT));
        for part in row.chunk_by(|one, other| role(one.mark) == role(other.mark)) {
            let letters: String = part.iter().map(|cell| cell.letter()).collect();
            line.push(
                part.first().map_or(Role::Plain, |cell| role(cell.mark)),
                letters,
            );
        }
        line.end(out)?;
    }
    for cell in &cells {
        legend.0.insert(cell.mark);
        legend.1 |= cell.mixed;
    }
    Ok(())
}

/// What the letters mean, the most important first.
pub(super) fn legend(look: &Look, legend: &mut Legend, out: &mut dyn Write) -> io::Result<()> {
    let Legend(marks, mixed) = std::mem::take(legend);
    if marks.is_empty() {
        return Ok(());
    }
    let mut line = look.line();
    line.indent(2).plain("letters, the most important first:");
    for mark in marks {
        line.word(" ", role(mark), format!("{} {}", letter(mark), mark.word()));
    }
    if mixed {
        line.word("; ", Role::Plain, "a small letter: others too");
    }
    line.end(out)
}

#[derive(Clone, Copy)]
struct Cell {
    mark: Mark,
    mixed: bool,
}

impl Cell {
    fn letter(self) -> char {
        match self.mixed {
            true => letter(self.mark).to_ascii_lowercase(),
            false => letter(self.mark),
        }
    }
}

/// At most `most` cells: as many of the record's together as that takes, and how many those are.
fn fitting(cells: &[MapCells], most: usize) -> (Vec<Cell>, u64) {
    let each = cells.iter().flat_map(|cells| {
        let cell = Cell {
            mark: cells.mark,
            mixed: cells.mixed,
        };
        let count = usize::try_from(cells.cells).unwrap_or(usize::MAX);
        std::iter::repeat_n(cell, count)
    });
    let each: Vec<Cell> = each.collect();
    let together = each.len().div_ceil(most).next_power_of_two();
    let joined = each.chunks(together).map(|cells| {
        let marks = cells.iter().map(|cell| cell.mark);
        let mark = marks.clone().min().unwrap_or(Mark::Nothing);
        let differ = marks.clone().any(|other| other != mark);
        Cell {
            mark,
            mixed: differ || cells.iter().any(|cell| cell.mixed),
        }
    });
    (joined.collect(), together as u64)
}

const fn letter(mark: Mark) -> char {
    match mark {
        Mark::Poisoned => '!',
        Mark::Guard => 'G',
        Mark::Swapped => 'W',
        Mark::Huge => 'H',
        Mark::PrivateCopy => 'C',
        Mark::Anonymous => 'A',
        Mark::Ksm => 'K',
        Mark::Shmem => 'S',
        Mark::File => 'F',
        Mark::Device => 'D',
        Mark::Zero => 'Z',
        Mark::Unknown => '?',
        Mark::Untouched => '.',
        Mark::Nothing => ' ',
    }
}

const fn role(mark: Mark) -> Role {
    match mark {
        Mark::Poisoned | Mark::Guard => Role::Bad,
        Mark::Swapped => Role::Warn,
        Mark::Huge => Role::Frame,
        Mark::PrivateCopy => Role::Symbol,
        Mark::Anonymous => Role::Good,
        Mark::Ksm | Mark::Shmem => Role::Physical,
        Mark::File => Role::Address,
        Mark::Device | Mark::Unknown => Role::Note,
        Mark::Zero | Mark::Untouched | Mark::Nothing => Role::Dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_do_not_fit_are_joined_and_say_so() {
        let cells = [
            MapCells {
                cells: 6,
                mark: Mark::Anonymous,
                mixed: false,
            },
            MapCells {
                cells: 3,
                mark: Mark::Untouched,
                mixed: false,
            },
        ];
        let letters = |most| {
            let (cells, together) = fitting(&cells, most);
            let text: String = cells.iter().map(|cell| cell.letter()).collect();
            (text, together)
        };
        assert_eq!(letters(16), ("AAAAAA...".to_owned(), 1));
        assert_eq!(letters(5), ("AAA..".to_owned(), 2));
        assert_eq!(letters(4), ("Aa.".to_owned(), 4));
        let marks = Mark::ALL.iter().map(|mark| letter(*mark));
        assert_eq!(marks.collect::<BTreeSet<_>>().len(), Mark::ALL.len());
    }
}
