//! A timeline (`as timeline`): a row a page or a stretch of pages, a column a sample.

use crate::kernel::Name;
use crate::render::marks::{CountedPages, Legend, PageShare, PictureCell};
use crate::render::ruler;
use crate::render::text::block::{after_file, region_file_name};
use crate::render::text::lines::{Lines, Style};
use crate::render::theme::{Role, cut};
use crate::render::units::{counted, size, time_of_day};
use crate::report::{Mark, TimelineRow, TimelineSample};
use std::collections::VecDeque;

/// The rows, and the samples that are to be drawn.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    rows: Vec<TimelineRow>,
    samples: VecDeque<DrawnSample>,
    /// The sample before the first of those.
    before: Option<DrawnSample>,
    /// Samples that there were in all.
    pub number: u64,
    /// The time of the first of all.
    began: Option<f64>,
}

#[derive(Debug)]
struct DrawnSample {
    time: f64,
    cells: Vec<PictureCell>,
    changed: Vec<bool>,
    /// The processes that came and those that went.
    processes: [Vec<u32>; 2],
}

/// A row as it is drawn.
pub(crate) struct DrawnRow<'a> {
    pub row: &'a TimelineRow,
    /// Where it ends, if several were joined.
    pub last: &'a TimelineRow,
    /// How many rows without pages in any sample are folded into this one.
    pub folded: u64,
    /// How many rows from all over the picture are drawn as this one, because hardly any page of them was copied.
    small: u64,
    /// Bytes of the regions in it.
    bytes: u64,
    /// Regions in it besides the one that it is named after.
    others: u64,
    pub cells: Vec<PictureCell>,
}

impl DrawnRow<'_> {
    /// Whether nothing is there in any sample.
    fn is_quiet(&self) -> bool {
        self.cells.iter().all(|cell| cell.mark >= Mark::Untouched && !cell.is_repeated)
    }

    /// Whether it has no page of those that the picture is about.
    fn is_beside_the_question(&self) -> bool {
        self.is_quiet() && self.cells.iter().all(|cell| cell.share.is_some_and(|share| share.of == 0))
    }

    /// Whether it goes on with the region of a row, and with what is in it.
    fn is_of_region(&self, last: &DrawnRow<'_>) -> bool {
        let named = |row: &TimelineRow| (row.region.clone(), row.after.clone(), row.symbol.clone());
        named(self.row) == named(last.last)
    }

    /// Where it begins, and its size if the picture shows copied pages.
    pub fn place(&self, timeline: &Timeline) -> String {
        let columns = timeline.address_columns();
        let address = if self.small > 0 { String::new() } else { self.row.start.to_string() };
        let size = if timeline.has_sizes() { format!("  {:>SIZE$}", size(self.bytes)) } else { String::new() };
        format!("{address:<columns$}{size}")
    }

    /// What it is a row of: its addresses, or the rows in it.
    pub fn extent(&self) -> String {
        match self.small {
            0 => format!("{}..{}", self.row.start, self.last.end),
            rows => counted(rows, "row"),
        }
    }

    /// The most pages of it that were copied, of all samples.
    fn copied(&self) -> u64 {
        self.cells.iter().filter_map(|cell| cell.share).map(|share| share.pages).max().unwrap_or(0)
    }

    /// The name of its region, unless the row above has the same; how many other regions are in it, and how many rows
    /// are folded into it.
    pub fn label(&self, above: Option<&DrawnRow<'_>>) -> String {
        if self.small > 0 {
            return format!("{} more", self.small);
        }
        let name = self.name(above).map(|name| match (&self.row.symbol, &self.row.after) {
            (Some(symbol), _) => symbol.to_string(),
            (None, Some(file)) => after_file(file),
            (None, None) => region_file_name(name).1.into_owned(),
        });
        let name = name.unwrap_or_default();
        if self.others > 0 {
            let more = format!(" +{}", self.others);
            return format!("{}{more}", cut(&name, NAME.saturating_sub(more.len()))).trim_start().to_owned();
        }
        match self.folded {
            0 | 1 => name,
            rows if name.is_empty() => format!("({rows} rows)"),
            rows => format!("{name} ({rows} rows)"),
        }
    }

    /// The name of its region, unless the row above has the same.
    fn name(&self, above: Option<&DrawnRow<'_>>) -> Option<&Name> {
        let name = self.row.region.as_ref()?;
        let same = self.others == 0 && above.is_some_and(|above| self.is_of_region(above));
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

    /// The time of the first sample of all.
    pub fn began(&self) -> f64 {
        self.began.unwrap_or_default()
    }

    /// The time of each sample that is to be drawn.
    pub fn sample_times(&self) -> impl Iterator<Item = f64> {
        self.samples.iter().map(|sample| sample.time)
    }

    /// When processes came and went, in so many columns.
    pub fn processes(&self, columns: usize) -> Vec<(usize, String)> {
        ruler::processes(self.samples.iter().map(|sample| &sample.processes), columns)
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

    /// Populated bytes in the largest row, if rows were divided by them.
    fn row_populated(&self) -> Option<u64> {
        self.rows.iter().filter_map(|row| row.populated).max()
    }

    pub fn add_row(&mut self, row: &TimelineRow) {
        self.rows.push(row.clone());
    }

    pub fn add_sample(&mut self, sample: &TimelineSample) {
        let (mut cells, mut changed) = (Vec::new(), Vec::new());
        for alike in &sample.cells {
            let share = PageShare::new(alike.pages, alike.of, Some(CountedPages::Copied));
            let cell = PictureCell::new(alike.mark, alike.mixed).with(share);
            let count = usize::try_from(alike.cells).unwrap_or(usize::MAX);
            // A sample has one cell for each row.
            let count = count.min(self.rows.len().saturating_sub(cells.len()));
            cells.extend(std::iter::repeat_n(cell, count));
            changed.extend(std::iter::repeat_n(alike.changed, count));
        }
        self.number += 1;
        self.began.get_or_insert(sample.time);
        let processes = [sample.came.clone(), sample.went.clone()];
        self.samples.push_back(DrawnSample { time: sample.time, cells, changed, processes });
    }

    /// Leaves only the last `most` samples to be drawn.
    pub fn keep(&mut self, most: usize) {
        while self.samples.len() > most {
            self.before = self.samples.pop_front();
        }
    }

    /// The picture, with `together` rows in one. Neighbours of one region in which nothing is are folded.
    pub fn rows_to_draw(&self, together: usize) -> Vec<DrawnRow<'_>> {
        let groups = self.rows.chunks(together).enumerate();
        let mut folded: Vec<DrawnRow<'_>> = Vec::new();
        let drawn = groups.filter_map(|(index, rows)| {
            let first = index * together;
            let mut above = self.before.as_ref().map(|sample| sample.join_rows(first, rows.len()).0);
            let cells = self.samples.iter().map(|sample| {
                let (cell, changed) = sample.join_rows(first, rows.len());
                let is_same = above.replace(cell) == Some(cell);
                PictureCell { is_repeated: changed && is_same && !cell.is_blank(), ..cell }
            });
            let (row, last, others) = (rows.first()?, rows.last()?, other_regions(rows));
            let bytes = rows.iter().map(|row| row.bytes).sum();
            Some(DrawnRow { row, last, folded: 1, small: 0, bytes, others, cells: cells.collect() })
        });
        for row in drawn.filter(|row| !row.is_beside_the_question()) {
            match folded.last_mut() {
                Some(last) if last.is_quiet() && row.cells == last.cells && row.is_of_region(last) => {
                    last.folded += 1;
                    last.others += row.others;
                    last.bytes += row.bytes;
                    last.last = row.last;
                }
                _ => folded.push(row),
            }
        }
        fold_small(folded)
    }

    /// As many rows in one as it takes for at most `most` to be drawn.
    fn rows_together(&self, most: usize) -> usize {
        let all = self.rows.len().div_ceil(most).max(1);
        (1..all).find(|together| self.rows_to_draw(*together).len() <= most).unwrap_or(all)
    }

    /// Whether it shows copied pages: how many there may be is in the sizes of the rows.
    pub fn has_sizes(&self) -> bool {
        self.samples.iter().any(|sample| sample.cells.iter().any(|cell| cell.share.is_some()))
    }

    /// The columns of the longest address.
    fn address_columns(&self) -> usize {
        self.rows.iter().map(|row| row.start.to_string().len()).max().unwrap_or(0)
    }

    /// The columns of addresses, and of sizes if it has them.
    fn place_columns(&self) -> usize {
        self.address_columns() + if self.has_sizes() { 2 + SIZE } else { 0 }
    }

    /// Whether regions share rows, if so many rows are drawn as one.
    fn has_shared_rows(&self, together: usize) -> bool {
        self.rows.chunks(together).any(|rows| other_regions(rows) > 0)
    }
}

/// Joins the rows with less than a hundredth of the pages that were copied, if there are several. They are last.
fn fold_small(rows: Vec<DrawnRow<'_>>) -> Vec<DrawnRow<'_>> {
    let all: u64 = rows.iter().map(DrawnRow::copied).sum();
    let is_small = |row: &DrawnRow<'_>| row.copied().saturating_mul(100) < all;
    if rows.iter().filter(|row| is_small(row)).count() < 2 {
        return rows;
    }
    let (small, mut rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_small);
    let columns = 0..small.first().map_or(0, |row| row.cells.len());
    let column = |at| small.iter().filter_map(|row| row.cells.get(at).copied()).collect::<Vec<PictureCell>>();
    let joined = small.first().zip(small.last()).map(|(first, last)| DrawnRow {
        row: first.row,
        last: last.last,
        folded: 1,
        small: small.iter().map(|row| row.folded).sum(),
        bytes: small.iter().map(|row| row.bytes).sum(),
        others: 0,
        cells: columns.map(|at| PictureCell::join_cells(&column(at))).collect(),
    });
    rows.extend(joined);
    rows
}

/// Regions in neighbouring rows, without the first.
fn other_regions(rows: &[TimelineRow]) -> u64 {
    let is_other = |row: &TimelineRow, next: &TimelineRow| row.region != next.region || row.symbol != next.symbol;
    let differ = rows.windows(2).filter(|pair| matches!(pair, [row, next] if is_other(row, next))).count();
    differ as u64 + rows.iter().map(|row| row.regions.saturating_sub(1)).sum::<u64>()
}

impl DrawnSample {
    /// Neighbouring rows as one. Rows that this sample does not have yet count as blank.
    fn join_rows(&self, first: usize, count: usize) -> (PictureCell, bool) {
        let some = first.min(self.cells.len())..(first + count).min(self.cells.len());
        let cells = self.cells.get(some.clone()).unwrap_or_default();
        let changed = self.changed.get(some).unwrap_or_default();
        (PictureCell::join_cells(cells), changed.contains(&true))
    }
}

/// The most columns of a name.
const NAME: usize = 16;
/// The columns of a size.
const SIZE: usize = 8;
/// The fewest columns of cells, however narrow the terminal.
const FEWEST: usize = 8;
/// Lines of a picture beside its rows: the head, the rulers, the legend, and the line of the cursor.
const OTHER_LINES: usize = 7;

/// What was drawn, and where.
#[derive(Debug, Default)]
pub(super) struct TimelineDrawing {
    pub timeline: Timeline,
    /// The lines of the terminal, if each picture replaces the one before.
    height: Option<usize>,
    /// How many lines above the cursor the last picture has.
    above: usize,
}

impl TimelineDrawing {
    /// Drawn anew with each sample, on a terminal of so many lines.
    pub fn in_place(height: usize) -> Self {
        TimelineDrawing { height: Some(height), ..TimelineDrawing::default() }
    }

    /// After a sample: draws the picture anew, or, in a stream, the next piece once it is as wide as the screen.
    pub fn draw_sample(&mut self, lines: &mut Lines, legend: &mut Legend) {
        let room = room(&lines.style, &self.timeline);
        let Some(height) = self.height else {
            if self.timeline.len() >= room {
                self.piece(lines, legend);
            }
            return;
        };
        self.timeline.keep(room);
        let rows = height.saturating_sub(OTHER_LINES).max(1);
        let together = self.timeline.rows_together(rows);
        let before = lines.text().len();
        draw(lines, &self.timeline, together, legend);
        legend.write(lines);
        let out = lines.text();
        let picture = out.split_off(before);
        if self.above > 0 {
            out.extend_from_slice(format!("\x1b[{}A\r", self.above).as_bytes());
        }
        self.above = 0;
        for line in picture.split_inclusive(|byte| *byte == b'\n') {
            out.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
            // What stood there before may have been longer.
            out.extend_from_slice(b"\x1b[K\n");
            self.above += 1;
        }
        out.extend_from_slice(b"\x1b[J");
    }

    /// Draws the last piece. The picture on the terminal stays, and the next one begins below it.
    pub fn finish(&mut self, lines: &mut Lines, legend: &mut Legend) {
        self.above = 0;
        if self.height.is_none() && !self.timeline.is_empty() {
            self.piece(lines, legend);
        }
    }

    /// Other output follows: the next picture begins below it.
    pub fn begin_below(&mut self) {
        self.above = 0;
    }

    fn piece(&mut self, lines: &mut Lines, legend: &mut Legend) {
        if self.timeline.number > self.timeline.len() as u64 {
            lines.line();
        }
        draw(lines, &self.timeline, 1, legend);
        self.timeline.keep(0);
    }
}

/// Columns for cells.
fn room(style: &Style, timeline: &Timeline) -> usize {
    let label = label(timeline) + 1;
    style.columns().saturating_sub(label).max(FEWEST)
}

/// Columns before the cells.
fn label(timeline: &Timeline) -> usize {
    timeline.place_columns() + 2 + NAME + 2
}

fn draw(lines: &mut Lines, timeline: &Timeline, together: usize, legend: &mut Legend) {
    head(lines, timeline, together);
    let label = label(timeline);
    let line = lines.line();
    line.limit(None);
    let times: Vec<f64> = timeline.sample_times().collect();
    for (column, time) in ruler::seconds(&times, timeline.began()) {
        // Neither half nor beyond the edge.
        if column == 0 || column + time.len() <= times.len() {
            line.pad_to(label + column).push(Role::Dim, time);
        }
    }
    let processes = timeline.processes(room(&lines.style, timeline));
    if !processes.is_empty() {
        let line = lines.line();
        line.limit(None).push(Role::Dim, ruler::PROCESSES);
        processes.iter().for_each(|(column, mark)| _ = line.pad_to(label + column).push(Role::Note, mark));
    }
    let drawn = timeline.rows_to_draw(together);
    let mut above = None;
    for row in &drawn {
        let line = lines.line();
        line.limit(None).push(Role::Address, row.place(timeline));
        line.plain("  ").push(Role::Name, cut(&row.label(above), NAME));
        line.pad_to(label);
        legend.push_cells(line, &row.cells);
        above = Some(row);
    }
}

/// `samples 1 to 46, from 16:52:21 to 16:52:26; a row is at most 64 KiB`
pub(crate) fn head(lines: &mut Lines, timeline: &Timeline, together: usize) {
    let zone = lines.style.zone().clone();
    let line = lines.line();
    line.indent(2);
    let first = (timeline.number + 1).saturating_sub(timeline.len() as u64);
    line.plain(if first == timeline.number {
        format!("sample {first}")
    } else {
        format!("samples {first} to {}", timeline.number)
    });
    if let Some((from, to)) = timeline.times() {
        let [from, to] = [from, to].map(|time| time_of_day(time, &zone));
        let times = if from == to { format!("at {from}") } else { format!("from {from} to {to}") };
        line.word(", ", Role::Plain, times);
    }
    let of_rows = |of_one: u64| of_one.saturating_mul(together as u64);
    let most = match (timeline.row_populated(), timeline.row_regions()) {
        (Some(populated), _) => format!("{} of populated memory", size(of_rows(populated))),
        (None, 0 | 1) => size(of_rows(timeline.row_bytes())),
        (None, regions) => counted(of_rows(regions), "region"),
    };
    line.word("; ", Role::Dim, format!("rows of up to {most}"));
    if timeline.has_shared_rows(together) {
        line.word("; ", Role::Dim, "+N: so many other regions in the row");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::VirtualAddress;
    use crate::report::TimelineCells;

    /// A picture of rows of 1000 pages, with those that were copied in each of two samples.
    fn copies(rows: &[(&str, [u64; 2])]) -> Timeline {
        let mut timeline = Timeline::default();
        for (number, (name, _)) in (0..).zip(rows) {
            timeline.add_row(&TimelineRow {
                row: number,
                start: VirtualAddress::new(0x1000_0000 + (number << 24)),
                end: VirtualAddress::new(0x1000_0000 + (number << 24) + (1000 << 12)),
                pages: 1000,
                bytes: 1000 << 12,
                populated: None,
                region: Some(Name::default()),
                after: None,
                symbol: Some(Name::from(*name)),
                regions: 1,
            });
        }
        for sample in 0..2 {
            let cell = |copied: u64| TimelineCells {
                cells: 1,
                mark: if copied > 0 { Mark::Copied } else { Mark::Shared },
                mixed: false,
                pages: Some(copied),
                of: Some(1000),
                changed: false,
            };
            let cells = rows.iter().map(|(_, copied)| cell(copied[sample])).collect();
            timeline.add_sample(&TimelineSample { time: 0.0, cells, came: Vec::new(), went: Vec::new() });
        }
        timeline
    }

    /// The rows as they are drawn.
    fn drawn(timeline: &Timeline, together: usize) -> Vec<String> {
        let rows = timeline.rows_to_draw(together);
        let letters = |row: &DrawnRow<'_>| row.cells.iter().map(|cell| cell.letter()).collect::<String>();
        rows.iter().map(|row| format!("{}  {} {}", row.place(timeline), row.label(None), letters(row))).collect()
    }

    #[test]
    fn rows_with_hardly_any_copied_page_are_one() {
        let rows = [("*a", [0, 900]), ("*b", [0, 5]), ("*c", [0, 0]), ("*d", [99, 99]), ("*e", [0, 0])];
        let expected =
            ["0x10000000  4000 KiB  *a 09", "0x13000000  4000 KiB  *d 11", "            11.7 MiB  3 more 01"];
        assert_eq!(drawn(&copies(&rows), 1), expected);
        // One alone stays, and so do all as long as nothing is copied.
        assert_eq!(drawn(&copies(&[rows[0], rows[1], rows[3]]), 1).len(), 3);
        assert_eq!(drawn(&copies(&[rows[2], rows[4]]), 1).len(), 2);
    }

    #[test]
    fn as_few_rows_share_one_as_the_screen_needs() {
        let timeline = copies(&[("*a", [0, 900]), ("*b", [0, 0]), ("*c", [0, 0]), ("*d", [99, 99])]);
        assert_eq!([4, 3, 2, 1].map(|most| timeline.rows_together(most)), [1, 1, 2, 4]);
    }
}
