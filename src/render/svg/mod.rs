//! Pictures as SVG: the same records and letters as in text. Other records become lines of text.

mod canvas;
mod renderer;

use super::text::Text;
use super::text::lines::Lines;
use super::theme::{Theme, cut};
use super::units::count;
use crate::render::marks::{self, Legend, PageShare, PictureCell, Timeline, ruler};
use crate::render::text::lines::Style;
use crate::report::{TimelineRow, TimelineSample};
use canvas::Canvas;

/// The default width in columns of text, and the smallest one.
const COLUMNS: usize = 160;
const FEWEST: usize = 60;
/// A row of a map has a multiple of so many cells, a piece of a timeline a multiple of so many samples.
const CELLS: usize = 32;
const SAMPLES: usize = 10;
/// The width of row labels: the address, and so many characters of the name.
const LABEL: usize = 280;
const NAME: usize = 18;

/// Holds the picture until the command ends: only then its size is known.
pub struct Svg {
    title: String,
    /// The width between the margins.
    width: usize,
    head: Lines,
    text: Text,
    legend: Legend,
    timeline: Timeline,
    canvas: Canvas,
}

impl Svg {
    /// An empty picture as wide as so many columns of text. The title is escaped here.
    pub fn new(title: impl Into<String>, columns: Option<usize>) -> Self {
        let columns = columns.unwrap_or(COLUMNS).max(FEWEST);
        Svg {
            title: title.into(),
            width: canvas::width(columns),
            head: Lines::new(Style::new(Theme::PLAIN, Some(columns))),
            text: Text::new(Theme::PLAIN, Some(columns)),
            legend: Legend::default(),
            timeline: Timeline::default(),
            canvas: Canvas::default(),
        }
    }

    fn lines(&mut self, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            self.canvas.line(line);
        }
    }

    /// Lines above what is drawn next.
    pub(crate) fn heading(&mut self, write: impl FnOnce(&mut Lines)) {
        write(&mut self.head);
        self.draw_heading();
    }

    fn draw_heading(&mut self) {
        let head = std::mem::take(self.head.text());
        self.lines(&head);
    }

    /// Rows of cells as wide as the picture. `place` says where the cells from one number to another lie.
    pub(crate) fn cells(&mut self, cells: &[PictureCell], place: impl Fn(usize, usize) -> String) {
        cells.iter().for_each(|cell| self.legend.add(*cell));
        let room = cells_that_fit(self.width, CELLS);
        for (number, row) in cells.chunks(room).enumerate() {
            let first = number * room;
            self.canvas.row(0, row, |some| {
                let place = place(first + some.start, first + some.end);
                format!("{place}: {}", meaning(row.get(some.start)))
            });
        }
        self.canvas.gap();
    }

    /// The row of a timeline that its samples have a cell for.
    pub(crate) fn add_row(&mut self, row: &TimelineRow) {
        self.timeline.add_row(row);
    }

    /// The next sample of a timeline.
    pub(crate) fn add_sample(&mut self, sample: &TimelineSample) {
        self.timeline.add_sample(sample);
        let room = cells_that_fit(self.width.saturating_sub(LABEL), SAMPLES);
        if self.timeline.len() >= room {
            self.piece();
        }
    }

    /// Draws the rest of a timeline, and what the colours mean.
    pub(crate) fn end_pictures(&mut self) {
        self.piece();
        self.draw_legend();
    }

    /// Draws the samples so far, each row behind its address and region.
    fn piece(&mut self) {
        if self.timeline.is_empty() {
            return;
        }
        marks::head(&mut self.head, &self.timeline, 1);
        self.canvas.gap();
        self.draw_heading();
        for (column, number) in ruler(self.timeline.number, self.timeline.len()) {
            let left = LABEL + column * canvas::CELL_WIDTH;
            self.canvas.text(left, &number.to_string());
        }
        self.canvas.new_line();
        let drawn = self.timeline.rows_to_draw(1);
        let mut above = None;
        for row in &drawn {
            let label = format!("{}  {}", row.row.start, cut(&row.label(above), NAME));
            self.canvas.label(&label);
            self.canvas.row(LABEL, &row.cells, |some| {
                let place = format!("{}..{}", row.row.start, row.last.end);
                format!("{place}: {}", meaning(row.cells.get(some.start)))
            });
            row.cells.iter().for_each(|cell| self.legend.add(*cell));
            above = Some(row);
        }
        self.canvas.gap();
        self.timeline.keep(0);
    }

    fn draw_legend(&mut self) {
        if self.legend.is_empty() {
            return;
        }
        let (marks, remarks) = self.legend.take();
        self.canvas.gap();
        let end = self.canvas.text(0, Legend::TITLE);
        let mut left = end + 2 * canvas::CELL_WIDTH;
        for mark in marks {
            let cell = PictureCell::new(mark, false);
            left = self.canvas.legend_entry(left, self.width, cell, mark.word());
        }
        self.canvas.new_line();
        for remark in remarks {
            self.canvas.line(&remark);
        }
        self.canvas.gap();
    }
}

/// The cells that fit, a multiple of `together`.
fn cells_that_fit(width: usize, together: usize) -> usize {
    let cells = width / canvas::CELL_WIDTH;
    (cells - cells % together).max(together)
}

/// What a cell shows, in words.
fn meaning(cell: Option<&PictureCell>) -> String {
    let Some(PictureCell { mark, is_mixed, is_repeated, share }) = cell else {
        return String::new();
    };
    if let Some(PageShare { pages, of: of @ 1.., what }) = share {
        return format!("{} of {} {}", count(*pages), count(*of), what.words());
    }
    let others = if *is_mixed { ", and others" } else { "" };
    let changed = if *is_repeated { ", changed" } else { "" };
    format!("{}{others}{changed}", mark.word())
}
