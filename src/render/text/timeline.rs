//! `as timeline`: a row a page or a stretch of pages, a column a sample.

use super::lines::Lines;
use crate::render::marks::{Legend, Timeline, ruler};
use crate::render::printable::cut;
use crate::render::text::lines::Style;
use crate::render::theme::Role;
use crate::render::units::{counted, size, time_of_day};

/// The most columns of a name.
const NAME: usize = 16;
/// The fewest columns of cells, however narrow the terminal.
const FEWEST: usize = 8;
/// Lines of a picture beside its rows: the head, the ruler, the legend, and the line of the cursor.
const OTHER_LINES: usize = 6;

/// What was drawn, and where.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub timeline: Timeline,
    /// The lines of the terminal, if each picture replaces the one before.
    height: Option<usize>,
    /// How many lines above the cursor the last picture has.
    above: usize,
}

impl Drawing {
    /// Drawn anew with each sample, on a terminal of so many lines.
    pub fn in_place(height: usize) -> Self {
        Drawing { height: Some(height), ..Drawing::default() }
    }

    /// After a sample: draws the picture anew, or, in a stream, the next piece once it is as wide as the screen.
    pub fn sampled(&mut self, lines: &mut Lines, legend: &mut Legend) {
        let room = room(&lines.style, &self.timeline);
        let Some(height) = self.height else {
            if self.timeline.len() >= room {
                self.piece(lines, legend);
            }
            return;
        };
        self.timeline.keep(room);
        let rows = height.saturating_sub(OTHER_LINES).max(1);
        let together = self.timeline.rows().div_ceil(rows).max(1);
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
    pub fn interrupted(&mut self) {
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
    let drawn = timeline.drawn(1);
    let address = drawn.iter().map(|drawn| drawn.row.start.to_string().len());
    address.max().unwrap_or(0) + 2 + NAME + 2
}

fn draw(lines: &mut Lines, timeline: &Timeline, together: usize, legend: &mut Legend) {
    head(lines, timeline, together);
    let label = label(timeline);
    let line = lines.line();
    line.limit(None);
    for (column, number) in ruler(timeline.number, timeline.len()) {
        line.pad_to(label + column).push(Role::Dim, number);
    }
    let drawn = timeline.drawn(together);
    let mut above = None;
    for row in &drawn {
        let line = lines.line();
        line.limit(None).push(Role::Address, row.row.start);
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
    let told = match timeline.row_regions() {
        0 | 1 => size(timeline.row_bytes().saturating_mul(together as u64)),
        regions => counted(regions.saturating_mul(together as u64), "region"),
    };
    line.word("; ", Role::Dim, format!("at most {told} per row"));
}
