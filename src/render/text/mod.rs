//! Records as text for a person at a terminal.

mod block;
mod capabilities;
mod cells;
mod changes;
mod explanation;
mod flags;
mod footnotes;
mod line;
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
use crate::report::{Record, Why};
use footnotes::Footnotes;
use jiff::tz::TimeZone;
use std::io::{self, Write};
use style::Style;
use tables::{Table, TableId};

/// Writes records as text: tables with headings, blocks of labelled lines, single lines.
pub struct Text {
    style: Style,
    before: Shape,
    layout: Option<(TableId, Layout)>,
    footnotes: Footnotes,
    legend: Legend,
    drawing: timeline::Drawing,
    /// Columns of the open table that do not fit the terminal, until a note names them.
    left_out: Vec<&'static str>,
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
type WriteRecord<T> = fn(&Style, &T, &mut dyn Write) -> io::Result<()>;

impl Text {
    /// Text with this theme. `width` is the terminal's, in columns. Without one (a pipe, a file) nothing is cut, wrapped or
    /// left out. Times are in the local time zone.
    pub fn new(theme: Theme, width: Option<usize>) -> Self {
        Text {
            style: Style::new(theme, width),
            before: Shape::Nothing,
            layout: None,
            footnotes: Footnotes::default(),
            legend: Legend::default(),
            drawing: timeline::Drawing::default(),
            left_out: Vec::new(),
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
        text.style = text.style.with_time_zone(zone);
        text
    }

    /// A row of a table.
    fn row<T>(&mut self, table: &Table<T>, row: &T, out: &mut dyn Write) -> io::Result<()> {
        let id = table.id();
        // A table that ends here has its own notes.
        self.separate(Shape::Row(id), out)?;
        let (theme, width) = (self.style.theme, self.style.width);
        let is_open = matches!(&self.layout, Some(open) if open.0 == id);
        if !is_open {
            self.layout = Some((id, Layout::new(theme, table.columns(), width)));
        }
        let Some((_, layout)) = &mut self.layout else {
            return Ok(());
        };
        let cells = table.cells(&self.style, row);
        if layout.widen(&cells) || !is_open {
            if table.has_heading() {
                layout.heading(out)?;
            }
            let missing = |title: &&str| !self.left_out.contains(title);
            let left_out: Vec<_> = layout.left_out().into_iter().filter(missing).collect();
            self.left_out.extend(left_out);
        }
        layout.row(&cells, out)
    }

    /// A row of a table, and the reasons of what it misses.
    fn row_with_notes<T>(
        &mut self,
        table: &Table<T>,
        row: &T,
        why: &Why,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.row(table, row, out)?;
        self.footnotes.collect(why);
        Ok(())
    }

    /// Labelled lines that stand apart.
    fn block<T>(
        &mut self,
        write: WriteRecord<T>,
        record: &T,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.separate(Shape::Block, out)?;
        write(&self.style, record, out)
    }

    /// A line, or a few.
    fn line<T>(
        &mut self,
        write: WriteRecord<T>,
        record: &T,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.separate(Shape::Line, out)?;
        write(&self.style, record, out)
    }

    /// The notes under a table: the reasons for missing values, and the columns that did not fit.
    fn notes(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let left_out = std::mem::take(&mut self.left_out);
        if !left_out.is_empty() {
            let why = "the terminal is too narrow; a pipe shows all";
            footnotes::line(&self.style, "no room", Role::Dim, &left_out, why, out)?;
        }
        self.footnotes.write(&self.style, out)
    }

    /// A blank line where one kind of output ends and another begins, and the footnotes of a table that ends. It ends a drawing.
    fn separate(&mut self, shape: Shape, out: &mut dyn Write) -> io::Result<()> {
        self.drawing.interrupted();
        let blank = match (self.before, shape) {
            (Shape::Nothing, _) => false,
            (Shape::Row(open), Shape::Row(next)) => open != next,
            (before, next) => {
                before == Shape::Block || matches!(next, Shape::Block | Shape::Row(_))
            }
        };
        if blank {
            self.notes(out)?;
            out.write_all(b"\n")?;
        }
        self.before = shape;
        Ok(())
    }
}

impl Renderer for Text {
    fn record(&mut self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        match record {
            Record::Translation(translation) => self.block(translation::write, translation, out),
            Record::Explanation(explanation) => self.block(explanation::write, explanation, out),
            Record::Run(run) => self.row_with_notes(&pages::RUNS, run, &Why::of_row(run), out),
            Record::Pages(row) => {
                self.row_with_notes(&pages::PAGE_ROWS, row, &Why::of_row(row), out)
            }
            Record::Frames(frames) => self.row(&pages::FRAME_ROWS, frames, out),
            Record::WalkSummary(summary) => {
                self.separate(Shape::Line, out)?;
                map::legend(&self.style, &mut self.legend, out)?;
                totals::walk_summary(&self.style, summary, out)?;
                self.notes(out)
            }
            Record::FramesSummary(summary) => self.line(totals::frames_summary, summary, out),
            Record::Group(group) => {
                self.row_with_notes(&pages::groups(group), group, &group.why, out)
            }
            Record::MapRegion(region) => {
                self.separate(Shape::Line, out)?;
                map::region(&self.style, &mut self.legend, region, out)
            }
            Record::Summary(row) => {
                self.row_with_notes(&pages::SUMMARY, row, &Why::of_row(row), out)
            }
            Record::Mapper(mapper) => self.row(&who::MAPPERS, mapper, out),
            Record::WhoSummary(summary) => self.line(who::summary, summary, out),
            Record::Region(region) if region::is_row(region) => {
                self.row(&regions::table(region), region, out)?;
                let has_values = region.present.is_some();
                self.footnotes.collect_with_nature(&region.why, has_values);
                Ok(())
            }
            Record::Region(region) => self.block(region::write, region, out),
            Record::RegionsSummary(summary) => {
                self.line(totals::regions_summary, summary, out)?;
                self.notes(out)
            }
            Record::PageFlags(flags) => self.block(flags::write, flags, out),
            Record::Decoded(decoded) => self.block(flags::decoded, decoded, out),
            Record::Event(event) => self.row(&watch::EVENTS, event, out),
            Record::WatchStart(start) => self.line(watch::start, start, out),
            Record::EventGroup(group) => self.row(&watch::EVENT_GROUPS, group, out),
            Record::WatchSummary(summary) => {
                self.separate(Shape::Line, out)?;
                let style = &self.style;
                self.drawing.finish(style, &mut self.legend, out)?;
                map::legend(style, &mut self.legend, out)?;
                watch::summary(style, summary, out)
            }
            Record::TimelineRow(row) => {
                self.drawing.timeline.add_row(row);
                Ok(())
            }
            Record::TimelineSample(seen) => {
                self.drawing.timeline.add_sample(seen);
                self.drawing.sampled(&self.style, &mut self.legend, out)
            }
            Record::Snapshot(snapshot) => self.row(&changes::SNAPSHOTS, snapshot, out),
            Record::DiffSummary(summary) => self.line(changes::summary, summary, out),
            Record::Change(change) => self.row(&changes::CHANGES, change, out),
            Record::ChangeGroup(group) => self.row(&changes::groups(group), group, out),
            Record::Comparison(row) => self.row(&changes::COMPARISONS, row, out),
            Record::ComparisonGroup(row) => self.row(&changes::COMPARISON_GROUPS, row, out),
            Record::ComparisonSummary(summary) => {
                self.line(changes::comparison_summary, summary, out)
            }
            Record::SoftDirty(report) => self.line(changes::soft_dirty, report, out),
            Record::SoftDirtyCleared(report) => self.line(changes::soft_dirty_cleared, report, out),
            Record::Read(read) => {
                reads::words(read).try_for_each(|word| self.row(&reads::WORDS, &word, out))
            }
            Record::ReadsSummary(summary) => self.line(reads::summary, summary, out),
            Record::Memory(memory) => self.line(memory::row, memory, out),
            Record::Match(place) => self.line(memory::found, place, out),
            Record::FindSummary(summary) => self.line(memory::find_summary, summary, out),
            Record::Patch(patch) => self.line(memory::patch, patch, out),
            Record::PatchedSummary(summary) => self.line(memory::patched_summary, summary, out),
            Record::Telescope(row) => self.line(memory::telescope, row, out),
            Record::Value(value) => self.line(session::value, value, out),
            Record::Display(display) => self.line(session::display, display, out),
            Record::Symbol(symbol) => self.line(session::symbol, symbol, out),
            Record::SymbolRow(symbol) => self.row(&symbols::SYMBOLS, symbol, out),
            Record::SymbolsSummary(summary) => self.line(session::symbols_summary, summary, out),
            Record::Module(module) => self.row(&symbols::MODULES, module, out),
            Record::Line(report) => self.block(line::write, report, out),
            Record::Process(process) => self.block(session::process, process, out),
            Record::Capabilities(report) => self.block(capabilities::write, report, out),
            Record::ProcessEntry(process) => self.row(processes::table(process), process, out),
            Record::Thread(thread) => {
                self.row_with_notes(&processes::THREADS, thread, &Why::of_row(thread), out)
            }
            Record::Target(target) => self.line(session::target, target, out),
            Record::Setting(setting) => self.row(&session::SETTINGS, setting, out),
            Record::History(entry) => self.row(&session::HISTORY, entry, out),
            // The user's own text, to the byte.
            Record::Text(text) => out.write_all(text.text.as_bytes()),
            Record::Help(help) => self.block(message::help, help, out),
            Record::Note(note) => self.line(message::note, note, out),
            Record::AssertionsSummary(summary) => self.line(message::assertions, summary, out),
            Record::Error(error) => self.line(message::error, error, out),
            // An assertion that holds is silent, and one that fails is an error; the others are for programs.
            Record::Assertion(_) | Record::Hello(_) | Record::End(_) => Ok(()),
        }
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.drawing.finish(&self.style, &mut self.legend, out)?;
        // A failed command has no summary.
        map::legend(&self.style, &mut self.legend, out)?;
        self.drawing.timeline = Default::default();
        self.notes(out)?;
        self.layout = None;
        self.before = Shape::Nothing;
        Ok(())
    }
}
