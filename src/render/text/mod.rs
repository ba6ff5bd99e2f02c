//! Records as text for a person at a terminal.

mod block;
mod capabilities;
mod cells;
mod changes;
mod explanation;
mod flags;
mod footnotes;
mod line;
pub(super) mod lines;
pub(super) mod map;
mod memory;
mod message;
mod pages;
mod processes;
mod reads;
mod region;
mod regions;
mod session;
pub(super) mod style;
mod symbols;
mod tables;
pub(super) mod timeline;
mod totals;
mod translation;
mod watch;
mod who;
mod words;

use super::Renderer;
use super::columns::Layout;
use super::marks::Legend;
use super::theme::{Role, Theme};
use crate::report::{Field, Record, Why};
use footnotes::Footnotes;
use jiff::tz::TimeZone;
use lines::Lines;
use std::io::{self, Write};
use style::Style;
use tables::{Table, TableId};

/// Writes records as text: tables with headings, blocks of labelled lines, single lines.
pub struct Text {
    lines: Lines,
    before: Shape,
    layout: Option<(TableId, Layout)>,
    footnotes: Footnotes,
    legend: Legend,
    drawing: timeline::Drawing,
    /// Columns of the open table that do not fit the terminal, until a note names them.
    left_out: Vec<&'static str>,
    /// The titles of columns that are left out last.
    named: Vec<&'static str>,
}

/// The form of a record, which decides where blank lines stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Nothing,
    Line,
    Block,
    Row(TableId),
}

/// Writes a record that is not a row of a table.
type WriteRecord<T> = fn(&mut Lines, &T);

impl Text {
    /// Text with this theme. `width` is the terminal's, in columns. Without one (a pipe, a file) nothing is cut,
    /// wrapped or left out. Times are in the local time zone.
    pub fn new(theme: Theme, width: Option<usize>) -> Self {
        Text {
            lines: Lines::new(Style::new(theme, width)),
            before: Shape::Nothing,
            layout: None,
            footnotes: Footnotes::default(),
            legend: Legend::default(),
            drawing: timeline::Drawing::default(),
            left_out: Vec::new(),
            named: Vec::new(),
        }
    }

    /// Text for a terminal of so many lines: each picture of a timeline replaces the one before.
    pub fn in_place(mut self, height: usize) -> Self {
        self.drawing = timeline::Drawing::in_place(height);
        self
    }

    /// As [`new`](Self::new), with times in `zone`.
    pub fn with_time_zone(theme: Theme, width: Option<usize>, zone: TimeZone) -> Self {
        let mut text = Text::new(theme, width);
        text.lines.style = text.lines.style.with_time_zone(zone);
        text
    }

    /// A row of a table.
    fn row<T>(&mut self, table: &Table<T>, row: &T) {
        let id = table.id();
        // A table that ends here has its own notes.
        self.separate(Shape::Row(id));
        let style = &self.lines.style;
        let cells = table.cells(style, row);
        let is_open = matches!(&self.layout, Some(open) if open.0 == id);
        if !is_open {
            let columns = table.columns().into_iter().map(|column| column.hidden_late(&self.named)).collect();
            let layout = Layout::new(style.theme, columns, style.width);
            self.layout = Some((id, layout));
        }
        let Some((_, layout)) = &mut self.layout else {
            return;
        };
        if layout.widen(&cells) || !is_open {
            if table.has_heading() {
                layout.heading(self.lines.text());
            }
            let missing = |title: &&str| !self.left_out.contains(title);
            let left_out: Vec<_> = layout.left_out().into_iter().filter(missing).collect();
            self.left_out.extend(left_out);
        }
        layout.row(&cells, self.lines.text());
    }

    /// A row of a table, and the reasons of what it misses.
    fn row_with_notes<T: Field>(&mut self, table: &Table<T>, row: &T) {
        self.row(table, row);
        self.footnotes.collect(&Why::of_record(row));
    }

    /// Labelled lines that stand apart.
    fn block<T>(&mut self, write: WriteRecord<T>, record: &T) {
        self.separate(Shape::Block);
        write(&mut self.lines, record);
    }

    /// A line, or a few.
    fn line<T>(&mut self, write: WriteRecord<T>, record: &T) {
        self.separate(Shape::Line);
        write(&mut self.lines, record);
    }

    /// The notes under a table: the reasons for missing values, and the columns that did not fit.
    fn notes(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if !left_out.is_empty() {
            let why = "the terminal is too narrow; a pipe shows all";
            footnotes::line(&mut self.lines, "no room", Role::Dim, &left_out, why);
        }
        self.footnotes.write(&mut self.lines);
    }

    /// A blank line where one kind of output ends and another begins, and the footnotes of a table that ends. It ends a
    /// drawing.
    fn separate(&mut self, shape: Shape) {
        self.drawing.interrupted();
        let blank = match (self.before, shape) {
            (Shape::Nothing, _) => false,
            (Shape::Row(open), Shape::Row(next)) => open != next,
            (before, next) => before == Shape::Block || matches!(next, Shape::Block | Shape::Row(_)),
        };
        if blank {
            self.notes();
            self.lines.line();
        }
        self.before = shape;
    }

    fn add(&mut self, record: &Record) {
        match record {
            Record::Translation(translation) => self.block(translation::write, translation),
            Record::Explanation(explanation) => self.block(explanation::write, explanation),
            Record::Run(run) => self.row_with_notes(&pages::RUNS, run),
            Record::Pages(row) => self.row_with_notes(&pages::PAGE_ROWS, row),
            Record::Frames(frames) => self.row_with_notes(&pages::FRAME_ROWS, frames),
            Record::WalkSummary(summary) => {
                self.separate(Shape::Line);
                map::legend(&mut self.lines, &mut self.legend);
                totals::walk_summary(&mut self.lines, summary);
                self.notes();
            }
            Record::FramesSummary(summary) => {
                self.line(totals::frames_summary, summary);
                self.notes();
            }
            Record::Group(group) => self.row_with_notes(&pages::groups(group), group),
            Record::MapRegion(region) => {
                self.separate(Shape::Line);
                map::region(&mut self.lines, &mut self.legend, region);
            }
            Record::Summary(row) => self.row_with_notes(&pages::SUMMARY, row),
            Record::Mapper(mapper) => self.row(&who::MAPPERS, mapper),
            Record::WhoSummary(summary) => self.line(who::summary, summary),
            Record::Region(region) if region::is_row(region) => {
                self.row(&regions::table(region), region);
                let has_values = region.present.is_some();
                self.footnotes.collect_with_nature(&region.why, has_values);
            }
            Record::Region(region) => self.block(region::write, region),
            Record::RegionsSummary(summary) => {
                self.line(totals::regions_summary, summary);
                self.notes();
            }
            Record::PageFlags(flags) => self.block(flags::write, flags),
            Record::Decoded(decoded) => self.block(flags::decoded, decoded),
            Record::Event(event) => self.row(&watch::EVENTS, event),
            Record::WatchStart(start) => self.line(watch::start, start),
            Record::EventGroup(group) => self.row(&watch::EVENT_GROUPS, group),
            Record::WatchSummary(summary) => {
                self.separate(Shape::Line);
                self.drawing.finish(&mut self.lines, &mut self.legend);
                map::legend(&mut self.lines, &mut self.legend);
                watch::summary(&mut self.lines, summary);
            }
            Record::TimelineRow(row) => self.drawing.timeline.add_row(row),
            Record::TimelineSample(seen) => {
                self.drawing.timeline.add_sample(seen);
                self.drawing.sampled(&mut self.lines, &mut self.legend);
            }
            Record::Snapshot(snapshot) => self.row(&changes::SNAPSHOTS, snapshot),
            Record::DiffSummary(summary) => self.line(changes::summary, summary),
            Record::Change(change) => self.row(&changes::CHANGES, change),
            Record::ChangeGroup(group) => self.row(&changes::groups(group), group),
            Record::Comparison(row) => self.row(&changes::COMPARISONS, row),
            Record::ComparisonGroup(row) => self.row(&changes::COMPARISON_GROUPS, row),
            Record::ComparisonSummary(summary) => self.line(changes::comparison_summary, summary),
            Record::SoftDirty(report) => self.line(changes::soft_dirty, report),
            Record::SoftDirtyCleared(report) => self.line(changes::soft_dirty_cleared, report),
            Record::Read(read) => {
                reads::words(read).for_each(|word| self.row(&reads::WORDS, &word));
            }
            Record::ReadsSummary(summary) => self.line(reads::summary, summary),
            Record::Memory(memory) => self.line(memory::row, memory),
            Record::Match(place) => self.line(memory::found, place),
            Record::FindSummary(summary) => self.line(memory::find_summary, summary),
            Record::Patch(patch) => self.line(memory::patch, patch),
            Record::PatchedSummary(summary) => self.line(memory::patched_summary, summary),
            Record::Telescope(row) => self.line(memory::telescope, row),
            Record::Value(value) => self.line(session::value, value),
            Record::Display(display) => self.line(session::display, display),
            Record::Symbol(symbol) => self.line(session::symbol, symbol),
            Record::SymbolRow(symbol) => self.row(&symbols::SYMBOLS, symbol),
            Record::SymbolsSummary(summary) => self.line(session::symbols_summary, summary),
            Record::Module(module) => self.row(&symbols::MODULES, module),
            Record::Line(report) => self.block(line::write, report),
            Record::Process(process) => self.block(session::process, process),
            Record::Capabilities(report) => self.block(capabilities::write, report),
            Record::ProcessEntry(process) => self.row(processes::table(process), process),
            Record::Thread(thread) => self.row_with_notes(&processes::THREADS, thread),
            Record::Target(target) => self.line(session::target, target),
            Record::Setting(setting) => self.row(&session::SETTINGS, setting),
            Record::History(entry) => self.row(&session::HISTORY, entry),
            // The user's own text, to the byte.
            Record::Text(text) => self.lines.text().extend_from_slice(text.text.as_bytes()),
            Record::Help(help) => self.block(message::help, help),
            Record::Note(note) => self.line(message::note, note),
            Record::AssertionsSummary(summary) => self.line(message::assertions, summary),
            Record::Error(error) => self.line(message::error, error),
            // An assertion that holds is silent, and one that fails is an error; the others are for programs.
            Record::Assertion(_) | Record::Hello(_) | Record::End(_) => {}
        }
    }
}

impl Renderer for Text {
    fn record(&mut self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        self.add(record);
        self.lines.write(out)
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.named = titles.to_vec();
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.drawing.finish(&mut self.lines, &mut self.legend);
        // A failed command has no summary.
        map::legend(&mut self.lines, &mut self.legend);
        self.drawing.timeline = Default::default();
        self.notes();
        self.layout = None;
        self.named.clear();
        self.before = Shape::Nothing;
        self.lines.write(out)
    }
}
