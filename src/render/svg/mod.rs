//! Pictures as SVG: the same records and letters as in text. Other records become lines of text.

mod canvas;
mod cells;
mod map;
mod palette;
mod renderer;

use super::text::Text;
use super::text::lines::Lines;
use super::theme::{Theme, cut};
use super::units::counted;
use crate::render::marks::{Legend, PictureCell, Shown};
use crate::render::ruler;
use crate::render::text::lines::Style;
use crate::render::timeline::{self, Timeline};
use crate::report::{TimelineRow, TimelineSample};
use canvas::Canvas;
use cells::{cells_that_fit, meaning};
pub(crate) use map::DrawnRegion;

/// The default width in columns of text, and the smallest one.
const COLUMNS: usize = 160;
const FEWEST: usize = 60;
/// A piece of a timeline has a multiple of so many samples.
const SAMPLES: usize = 10;
/// The width of row labels: the address, and so many characters of the name.
const LABEL: usize = 280;
const NAME: usize = 16;
/// The width of the sizes in them.
const SIZES: usize = 28;

/// Holds the picture until the command ends: only then its size is known.
pub struct Svg {
    title: String,
    /// The width between the margins.
    width: usize,
    head: Lines,
    text: Text,
    /// Regions that are to be drawn.
    regions: Vec<DrawnRegion>,
    legend: Legend,
    timeline: Timeline,
    canvas: Canvas,
    /// What the picture shows, for people who do not see it.
    description: Vec<String>,
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
            regions: Vec::new(),
            legend: Legend::default(),
            timeline: Timeline::default(),
            canvas: Canvas::default(),
            description: Vec::new(),
        }
    }

    fn lines(&mut self, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            self.canvas.line(line);
        }
    }

    fn draw_heading(&mut self) {
        let head = std::mem::take(self.head.text());
        self.lines(&head);
    }

    /// A region of a map. All are drawn together, because they have one scale.
    pub(crate) fn add_region(&mut self, region: DrawnRegion) {
        self.regions.push(region);
    }

    /// The row of a timeline that its samples have a cell for.
    pub(crate) fn add_row(&mut self, row: &TimelineRow) {
        self.timeline.add_row(row);
    }

    fn label_width(&self) -> usize {
        if self.timeline.has_sizes() { LABEL + SIZES } else { LABEL }
    }

    /// The next sample of a timeline.
    pub(crate) fn add_sample(&mut self, sample: &TimelineSample) {
        self.timeline.add_sample(sample);
        let room = cells_that_fit(self.width.saturating_sub(self.label_width()), SAMPLES);
        if self.timeline.len() >= room {
            self.piece();
        }
    }

    /// Draws the regions or the rest of a timeline, and what the colours mean.
    pub(crate) fn end_pictures(&mut self) {
        self.piece();
        self.draw_legend();
        let regions = std::mem::take(&mut self.regions);
        if !regions.is_empty() {
            let said = map::draw(&mut self.canvas, self.width, &regions);
            self.description.push(format!("{}: {said}.", counted(regions.len() as u64, "region")));
            self.canvas.gap();
        }
    }

    /// Draws the samples so far, each row behind its address and region.
    fn piece(&mut self) {
        if self.timeline.is_empty() {
            return;
        }
        timeline::head(&mut self.head, &self.timeline, 1);
        self.canvas.gap();
        self.draw_heading();
        let label_width = self.label_width();
        let times: Vec<f64> = self.timeline.sample_times().collect();
        for (column, time) in ruler::seconds(&times, self.timeline.began()) {
            self.canvas.text(label_width + column * canvas::CELL_WIDTH, &time);
        }
        self.canvas.new_line();
        let processes = self.timeline.processes(cells_that_fit(self.width.saturating_sub(label_width), 1));
        if !processes.is_empty() {
            self.canvas.label(ruler::PROCESSES);
            for (column, mark) in processes {
                self.canvas.text(label_width + column * canvas::CELL_WIDTH, &mark);
            }
            self.canvas.new_line();
        }
        let drawn = self.timeline.rows_to_draw(1);
        let mut above = None;
        for row in &drawn {
            let label = format!("{}  {}", row.place(&self.timeline), cut(&row.label(above), NAME));
            self.canvas.label(&label);
            self.canvas.row(label_width, &row.cells, |some| {
                format!("{}: {}", row.extent(), meaning(row.cells.get(some.start)))
            });
            row.cells.iter().for_each(|cell| self.legend.add(*cell));
            above = Some(row);
        }
        self.canvas.gap();
        let rows = counted(drawn.len() as u64, "row");
        self.description.push(format!("{rows} of {}.", counted(self.timeline.len() as u64, "sample")));
        self.timeline.keep(0);
    }

    fn draw_legend(&mut self) {
        if self.legend.is_empty() {
            return;
        }
        let (marks, remarks) = self.legend.take(Shown::AsShapes);
        self.canvas.gap();
        let end = self.canvas.text(0, Legend::TITLE);
        let mut left = end + 2 * canvas::CELL_WIDTH;
        for mark in marks {
            let cell = PictureCell::new(mark, false);
            left = self.canvas.legend_entry(left, self.width, cell, mark.word());
        }
        for remark in remarks {
            left = self.canvas.legend_words(left, self.width, &remark);
        }
        self.canvas.new_line();
        self.canvas.gap();
    }
}
