//! `watch … as timeline`: a row a page or a stretch of pages, a column a sample.

use super::map;
use super::style::Style;
use crate::render::line::Line;
use crate::render::marks::Legend;
use crate::render::printable::cut;
use crate::render::theme::Role;
use crate::render::timeline::{Timeline, ruler};
use crate::render::units::{counted, size, time_of_day};
use std::io::{self, Write};

/// The width if none is known.
const USUAL: usize = 80;
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
        Drawing {
            height: Some(height),
            ..Drawing::default()
        }
    }

    /// After a sample: draws the picture anew, or, in a stream, the next piece once it is as wide as the screen.
    pub fn sampled(
        &mut self,
        style: &Style,
        legend: &mut Legend,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let room = room(style, &self.timeline);
        let Some(height) = self.height else {
            return match self.timeline.len() >= room {
                true => self.piece(style, legend, out),
                false => Ok(()),
            };
        };
        self.timeline.keep(room);
        let rows = height.saturating_sub(OTHER_LINES).max(1);
        let together = self.timeline.rows().div_ceil(rows).max(1);
        let mut picture = Vec::new();
        draw(style, &self.timeline, together, legend, &mut picture)?;
        map::legend(style, legend, &mut picture)?;
        if self.above > 0 {
            write!(out, "\x1b[{}A\r", self.above)?;
        }
        self.above = 0;
        for line in picture.split_inclusive(|byte| *byte == b'\n') {
            out.write_all(line.strip_suffix(b"\n").unwrap_or(line))?;
            // What stood there before may have been longer.
            out.write_all(b"\x1b[K\n")?;
            self.above += 1;
        }
        out.write_all(b"\x1b[J")
    }

    /// Draws the last piece. The picture on the terminal stays, and the next one begins below it.
    pub fn finish(
        &mut self,
        style: &Style,
        legend: &mut Legend,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.above = 0;
        match self.height.is_some() || self.timeline.is_empty() {
            true => Ok(()),
            false => self.piece(style, legend, out),
        }
    }

    /// Other output follows: the next picture begins below it.
    pub fn interrupted(&mut self) {
        self.above = 0;
    }

    fn piece(&mut self, style: &Style, legend: &mut Legend, out: &mut dyn Write) -> io::Result<()> {
        if self.timeline.number > self.timeline.len() as u64 {
            out.write_all(b"\n")?;
        }
        draw(style, &self.timeline, 1, legend, out)?;
        self.timeline.keep(0);
        Ok(())
    }
}

/// Columns for cells.
fn room(style: &Style, timeline: &Timeline) -> usize {
    let width = style.width.unwrap_or(USUAL);
    width.saturating_sub(label(timeline) + 1).max(FEWEST)
}

/// Columns before the cells.
fn label(timeline: &Timeline) -> usize {
    let drawn = timeline.drawn(1);
    let address = drawn.iter().map(|drawn| drawn.row.start.to_string().len());
    address.max().unwrap_or(0) + 2 + NAME + 2
}

fn draw(
    style: &Style,
    timeline: &Timeline,
    together: usize,
    legend: &mut Legend,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(style, timeline, together).end(out)?;
    let label = label(timeline);
    let mut line = style.line();
    line.limit(None);
    for (column, number) in ruler(timeline.number, timeline.len()) {
        line.pad_to(label + column).push(Role::Dim, number);
    }
    line.end(out)?;
    let drawn = timeline.drawn(together);
    let mut above = None;
    for row in &drawn {
        let mut line = style.line();
        line.limit(None).push(Role::Address, row.row.start);
        line.plain("  ")
            .push(Role::Name, cut(&row.label(above), NAME));
        line.pad_to(label);
        map::push_cells(&mut line, legend, &row.cells);
        line.end(out)?;
        above = Some(row);
    }
    Ok(())
}

/// `samples 1 to 46, from 16:52:21 to 16:52:26; a row is at most 64 KiB`
pub(in crate::render) fn head(style: &Style, timeline: &Timeline, together: usize) -> Line {
    let mut line = style.line();
    line.indent(2);
    let first = (timeline.number + 1).saturating_sub(timeline.len() as u64);
    line.plain(match first == timeline.number {
        true => format!("sample {first}"),
        false => format!("samples {first} to {}", timeline.number),
    });
    if let Some((from, to)) = timeline.times() {
        let [from, to] = [from, to].map(|time| time_of_day(time, style.zone()));
        let times = match from == to {
            true => format!("at {from}"),
            false => format!("from {from} to {to}"),
        };
        line.word(", ", Role::Plain, times);
    }
    let told = match timeline.row_regions() {
        0 | 1 => size(timeline.row_bytes().saturating_mul(together as u64)),
        regions => counted(regions.saturating_mul(together as u64), "region"),
    };
    line.word("; ", Role::Dim, format!("a row is at most {told}"));
    line
}
