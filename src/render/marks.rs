//! The letters and colours of marks: the same in every picture.

use super::line::Line;
use super::text::lines::Lines;
use super::theme::Role;
use crate::report::{MapCells, Mark};
use std::collections::BTreeSet;

/// A cell of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub mark: Mark,
    pub mixed: bool,
    /// Whether it changed but has the same mark as before.
    pub again: bool,
}

impl Cell {
    /// A cell without pages; most are such in a sparse region.
    pub const EMPTY: Cell = Cell { mark: Mark::Nothing, mixed: false, again: false };

    /// Adds a page; the more important mark stays.
    pub fn add(&mut self, mark: Mark) {
        let before = self.mark;
        self.mark = before.min(mark);
        self.mixed |= before != Mark::Nothing && before != mark;
    }

    pub fn new(mark: Mark, mixed: bool) -> Self {
        Cell { mark, mixed, again: false }
    }

    /// The letter: a small one if the cell has other pages too.
    pub fn letter(self) -> char {
        match self.mixed {
            _ if self.again => '*',
            true => letter(self.mark).to_ascii_lowercase(),
            false => letter(self.mark),
        }
    }

    /// Joins several cells into one, with the most important mark.
    pub fn joined(cells: &[Cell]) -> Cell {
        let marks = cells.iter().map(|cell| cell.mark);
        let mark = marks.clone().min().unwrap_or(Mark::Nothing);
        let differ = marks.clone().any(|other| other != mark);
        Cell::new(mark, differ || cells.iter().any(|cell| cell.mixed))
    }

    /// Whether nothing is drawn in it.
    pub fn is_blank(self) -> bool {
        letter(self.mark) == ' '
    }
}

/// The cells of a record, one by one.
pub(crate) fn each(cells: &[MapCells]) -> Vec<Cell> {
    let each = cells.iter().flat_map(|cells| {
        let cell = Cell::new(cells.mark, cells.mixed);
        let count = usize::try_from(cells.cells).unwrap_or(usize::MAX);
        std::iter::repeat_n(cell, count)
    });
    each.collect()
}

/// The marks that were drawn, for the legend.
#[derive(Debug, Default)]
pub(crate) struct Legend {
    marks: BTreeSet<Mark>,
    mixed: bool,
    again: bool,
}

impl Legend {
    pub const TITLE: &str = "letters, the most important first:";

    pub fn add(&mut self, cell: Cell) {
        if cell.is_blank() {
            return;
        }
        self.marks.insert(cell.mark);
        self.mixed |= cell.mixed;
        self.again |= cell.again;
    }

    /// Takes the marks, the most important first, and the remarks out of the legend.
    pub fn take(&mut self) -> (impl Iterator<Item = Mark> + use<>, Vec<&'static str>) {
        let Legend { marks, mixed, again } = std::mem::take(self);
        let remarks =
            [(mixed, "a small letter: others too"), (again, "a star: changed, with the same letter as before")];
        let remarks = remarks.into_iter().filter(|(is, _)| *is);
        (marks.into_iter(), remarks.map(|(_, words)| words).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Adds the letters of cells to a line, to be explained.
    pub fn push_cells(&mut self, line: &mut Line, cells: &[Cell]) {
        for part in cells.chunk_by(|one, other| role(one.mark) == role(other.mark)) {
            let letters: String = part.iter().map(|cell| cell.letter()).collect();
            let role = part.first().map_or(Role::Plain, |cell| role(cell.mark));
            line.push(role, letters);
        }
        cells.iter().for_each(|cell| self.add(*cell));
    }

    /// Says what the letters mean, the most important first, and forgets them.
    pub fn write(&mut self, lines: &mut Lines) {
        if self.is_empty() {
            return;
        }
        let (marks, remarks) = self.take();
        let line = lines.line();
        line.indent(2).plain(Legend::TITLE);
        for mark in marks {
            let words = format!("{} {}", letter(mark), mark.word());
            line.word(" ", role(mark), words);
        }
        for remark in remarks {
            line.word("; ", Role::Plain, remark);
        }
    }
}

pub(crate) const fn letter(mark: Mark) -> char {
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
        Mark::Vdso => 'V',
        Mark::Zero => 'Z',
        Mark::Unknown => '?',
        Mark::Untouched => '.',
        Mark::Nothing => ' ',
    }
}

pub(crate) const fn role(mark: Mark) -> Role {
    match mark {
        Mark::Poisoned | Mark::Guard => Role::Bad,
        Mark::Swapped => Role::Warn,
        Mark::Huge => Role::Frame,
        Mark::PrivateCopy => Role::Symbol,
        Mark::Anonymous => Role::Good,
        Mark::Ksm | Mark::Shmem => Role::Keyword,
        Mark::File => Role::Address,
        Mark::Device | Mark::Vdso | Mark::Unknown => Role::Note,
        Mark::Zero | Mark::Untouched | Mark::Nothing => Role::Dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_has_its_own_letter() {
        let letters = Mark::ALL.iter().map(|mark| letter(*mark));
        assert_eq!(letters.collect::<BTreeSet<_>>().len(), Mark::ALL.len());
    }
}
