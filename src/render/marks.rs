//! The marks of pictures: their letters, the same in every picture, and the rows and samples of a timeline.

use crate::kernel::Name;
use crate::render::line::Line;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::report::{MapCells, Mark, TimelineRow, TimelineSample};
use std::collections::{BTreeSet, VecDeque};

/// A cell of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PictureCell {
    pub mark: Mark,
    pub mixed: bool,
    /// Whether it changed but has the same mark as before.
    pub again: bool,
}

impl PictureCell {
    /// A cell without pages; most are such in a sparse region.
    pub const EMPTY: PictureCell = PictureCell { mark: Mark::Nothing, mixed: false, again: false };

    /// Adds a page; the more important mark stays.
    pub fn add(&mut self, mark: Mark) {
        let before = self.mark;
        self.mark = before.min(mark);
        self.mixed |= before != Mark::Nothing && before != mark;
    }

    pub fn new(mark: Mark, mixed: bool) -> Self {
        PictureCell { mark, mixed, again: false }
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
    pub fn joined(cells: &[PictureCell]) -> PictureCell {
        let marks = cells.iter().map(|cell| cell.mark);
        let mark = marks.clone().min().unwrap_or(Mark::Nothing);
        let differ = marks.clone().any(|other| other != mark);
        PictureCell::new(mark, differ || cells.iter().any(|cell| cell.mixed))
    }

    /// Whether nothing is drawn in it.
    pub fn is_blank(self) -> bool {
        letter(self.mark) == ' '
    }
}

/// The cells of a record, one by one.
pub(crate) fn each(cells: &[MapCells]) -> Vec<PictureCell> {
    let each = cells.iter().flat_map(|cells| {
        let cell = PictureCell::new(cells.mark, cells.mixed);
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
    pub const TITLE: &str = "legend:";

    pub fn add(&mut self, cell: PictureCell) {
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
        let remarks = [(mixed, "lower case: mixed cell"), (again, "star: changed, with the same letter as before")];
        let remarks = remarks.into_iter().filter(|(is, _)| *is);
        (marks.into_iter(), remarks.map(|(_, words)| words).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Adds the letters of cells to a line, to be explained.
    pub fn push_cells(&mut self, line: &mut Line, cells: &[PictureCell]) {
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

/// The rows, and the samples that are to be drawn.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    rows: Vec<TimelineRow>,
    samples: VecDeque<Sample>,
    /// The sample before the first of those.
    before: Option<Sample>,
    /// Samples that there were in all.
    pub number: u64,
}

#[derive(Debug)]
struct Sample {
    time: f64,
    cells: Vec<PictureCell>,
    changed: Vec<bool>,
}

/// A row as it is drawn.
pub(crate) struct Drawn<'a> {
    pub row: &'a TimelineRow,
    /// Where it ends, if several were joined.
    pub last: &'a TimelineRow,
    /// How many rows without pages in any sample are folded into this one.
    pub folded: u64,
    pub cells: Vec<PictureCell>,
}

impl Drawn<'_> {
    /// Whether nothing is there in any sample.
    fn is_quiet(&self) -> bool {
        self.cells.iter().all(|cell| cell.mark >= Mark::Untouched && !cell.again)
    }

    /// The name of its region, unless the row above has the same, and how many rows are folded into it.
    pub fn label(&self, above: Option<&Drawn<'_>>) -> String {
        let name = self.name(above).map(|name| name.file_name().to_string());
        let name = name.filter(|name| !name.is_empty()).unwrap_or_default();
        match self.folded {
            0 | 1 => name,
            rows if name.is_empty() => format!("({rows} rows)"),
            rows => format!("{name} ({rows} rows)"),
        }
    }

    /// The name of its region, unless the row above has the same.
    fn name(&self, above: Option<&Drawn<'_>>) -> Option<&Name> {
        let name = self.row.region.as_ref()?;
        let same = above.is_some_and(|above| above.last.region.as_ref() == Some(name));
        (!same).then_some(name)
    }
}

impl Timeline {
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Samples that are to be drawn.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// The times of the first and the last.
    pub fn times(&self) -> Option<(f64, f64)> {
        Some((self.samples.front()?.time, self.samples.back()?.time))
    }

    /// The most regions that share a row.
    pub fn row_regions(&self) -> u64 {
        self.rows.iter().map(|row| row.regions).max().unwrap_or(0)
    }

    /// Bytes in the largest row.
    pub fn row_bytes(&self) -> u64 {
        let bytes = |row: &TimelineRow| row.end.get().saturating_sub(row.start.get());
        self.rows.iter().map(bytes).max().unwrap_or(0)
    }

    pub fn add_row(&mut self, row: &TimelineRow) {
        self.rows.push(row.clone());
    }

    pub fn add_sample(&mut self, sample: &TimelineSample) {
        let (mut cells, mut changed) = (Vec::new(), Vec::new());
        for alike in &sample.cells {
            let cell = PictureCell::new(alike.mark, alike.mixed);
            let count = usize::try_from(alike.cells).unwrap_or(usize::MAX);
            // A sample has one cell for each row.
            let count = count.min(self.rows.len().saturating_sub(cells.len()));
            cells.extend(std::iter::repeat_n(cell, count));
            changed.extend(std::iter::repeat_n(alike.changed, count));
        }
        self.number += 1;
        self.samples.push_back(Sample { time: sample.time, cells, changed });
    }

    /// Leaves only the last `most` samples to be drawn.
    pub fn keep(&mut self, most: usize) {
        while self.samples.len() > most {
            self.before = self.samples.pop_front();
        }
    }

    /// The picture, with `together` rows in one. Neighbours of one region in which nothing is are folded.
    pub fn drawn(&self, together: usize) -> Vec<Drawn<'_>> {
        let groups = self.rows.chunks(together).enumerate();
        let mut folded: Vec<Drawn<'_>> = Vec::new();
        let drawn = groups.filter_map(|(index, rows)| {
            let first = index * together;
            let mut above = self.before.as_ref().map(|sample| sample.joined(first, rows.len()).0);
            let cells = self.samples.iter().map(|sample| {
                let (cell, changed) = sample.joined(first, rows.len());
                let is_same = above.replace(cell) == Some(cell);
                PictureCell { again: changed && is_same && !cell.is_blank(), ..cell }
            });
            Some(Drawn { row: rows.first()?, last: rows.last()?, folded: 1, cells: cells.collect() })
        });
        for row in drawn {
            match folded.last_mut() {
                Some(last) if last.is_quiet() && row.cells == last.cells && row.row.region == last.last.region => {
                    last.folded += 1;
                    last.last = row.last;
                }
                _ => folded.push(row),
            }
        }
        folded
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }
}

impl Sample {
    /// Neighbouring rows as one. Rows that this sample does not have yet count as blank.
    fn joined(&self, first: usize, count: usize) -> (PictureCell, bool) {
        let some = first.min(self.cells.len())..(first + count).min(self.cells.len());
        let cells = self.cells.get(some.clone()).unwrap_or_default();
        let changed = self.changed.get(some).unwrap_or_default();
        (PictureCell::joined(cells), changed.contains(&true))
    }
}

/// The columns of the ruler with the numbers above them: the first sample, and every tenth one that has room.
pub(crate) fn ruler(last: u64, samples: usize) -> Vec<(usize, u64)> {
    let first = last.saturating_sub(samples as u64) + 1;
    let mut ruler = vec![(0, first)];
    let mut free = first.to_string().len() + 1;
    for (column, sample) in (first..=last).enumerate() {
        let width = sample.to_string().len();
        if sample % 10 == 0 && column >= free && column + width <= samples {
            ruler.push((column, sample));
            free = column + width + 1;
        }
    }
    ruler
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_has_its_own_letter() {
        let letters = Mark::ALL.iter().map(|mark| letter(*mark));
        assert_eq!(letters.collect::<BTreeSet<_>>().len(), Mark::ALL.len());
    }

    #[test]
    fn the_ruler_numbers_every_tenth_sample() {
        assert_eq!(ruler(25, 25), [(0, 1), (9, 10), (19, 20)]);
        assert_eq!(ruler(1, 1), [(0, 1)]);
        assert_eq!(ruler(31, 12), [(0, 20), (10, 30)]);
        assert_eq!(ruler(31, 13), [(0, 19), (11, 30)]);
        // Neither one on the other nor half.
        assert_eq!(ruler(10, 2), [(0, 9)]);
    }
}
