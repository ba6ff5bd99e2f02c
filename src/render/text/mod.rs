//! Records as text for a person at a terminal.

mod block;
mod capabilities;
mod changes;
mod explanation;
mod flags;
mod footnotes;
mod line;
pub(super) mod look;
pub(super) mod map;
mod memory;
mod message;
mod reads;
mod region;
mod rows;
mod session;
mod tables;
pub(super) mod timeline;
mod totals;
mod translation;
mod watch;
mod who;
mod words;

use super::Renderer;
use super::columns::{Cell, Layout};
use super::marks::Legend;
use super::theme::{Role, Theme};
use crate::report::Record;
use footnotes::Footnotes;
use jiff::tz::TimeZone;
use look::Look;
use std::io::{self, Write};
use tables::Table;

/// Writes records as text: tables with headings, blocks of labelled lines, single lines.
pub struct Text {
    look: Look,
    before: Shape,
    layout: Option<(Table, Layout)>,
    footnotes: Footnotes,
    legend: Legend,
    drawing: timeline::Drawing,
    /// Columns of the open table that the terminal is too narrow for, until they have been named.
    left_out: Vec<&'static str>,
}

/// What a record looks like: it decides where blank lines stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Nothing,
    Line,
    Block,
    Row(Table),
}

impl Text {
    /// With this theme. `width` is the terminal's, in columns, and `None` for a pipe or a file: nothing is then cut, wrapped or
    /// left out. Times are in the local time zone.
    pub fn new(theme: Theme, width: Option<usize>) -> Self {
        Text {
            look: Look::new(theme, width),
            before: Shape::Nothing,
            layout: None,
            footnotes: Footnotes::default(),
            legend: Legend::default(),
            drawing: timeline::Drawing::default(),
            left_out: Vec::new(),
        }
    }

    /// For a terminal of so many lines, on which pictures that change are drawn anew in their place.
    pub fn in_place(mut self, height: usize) -> Self {
        self.drawing = timeline::Drawing::in_place(height);
        self
    }

    /// As [`new`](Self::new), with times in `zone`.
    pub fn with_time_zone(theme: Theme, width: Option<usize>, zone: TimeZone) -> Self {
        let mut text = Text::new(theme, width);
        text.look = text.look.with_time_zone(zone);
        text
    }

    fn row(&mut self, table: Table, cells: &[Cell<'_>], out: &mut dyn Write) -> io::Result<()> {
        let (theme, width) = (self.look.theme, self.look.width);
        let is_open = matches!(&self.layout, Some(open) if open.0 == table);
        if !is_open {
            self.layout = Some((table, Layout::new(theme, table.columns(), width)));
        }
        let Some((_, layout)) = &mut self.layout else {
            return Ok(());
        };
        if layout.widen(cells) || !is_open {
            if table.has_heading() {
                layout.heading(out)?;
            }
            let missing = |title: &&str| !self.left_out.contains(title);
            let left_out: Vec<_> = layout.left_out().into_iter().filter(missing).collect();
            self.left_out.extend(left_out);
        }
        layout.row(cells, out)
    }

    /// What belongs under a table: the reasons of what is missing in it, and the columns that are.
    fn notes(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let left_out = std::mem::take(&mut self.left_out);
        if !left_out.is_empty() {
            let why = "the terminal is too narrow";
            footnotes::line(&self.look, "no room", Role::Dim, &left_out, why, out)?;
        }
        self.footnotes.write(&self.look, out)
    }

    /// A blank line where one kind of output ends and another begins, and the footnotes of a table that ends.
    fn separate(&mut self, shape: Shape, out: &mut dyn Write) -> io::Result<()> {
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
        // `end` is for programs; `echo` is the user's own text, to the byte.
        match record {
            // An assertion that holds is silent, and one that fails is an error.
            Record::Hello(_) | Record::End(_) | Record::Assertion(_) => return Ok(()),
            Record::Text(text) => return out.write_all(text.text.as_bytes()),
            Record::TimelineRow(row) => {
                self.drawing.timeline.add_row(row);
                return Ok(());
            }
            Record::TimelineSample(seen) => {
                self.drawing.timeline.add_sample(seen);
                let Text {
                    look,
                    legend,
                    drawing,
                    ..
                } = self;
                return drawing.sampled(look, legend, out);
            }
            _ => self.drawing.interrupted(),
        }
        if let Record::Read(read) = record {
            self.separate(Shape::Row(tables::READS), out)?;
            let mut rows = reads::rows(read).into_iter();
            return rows.try_for_each(|cells| self.row(tables::READS, &cells, out));
        }
        let mut footnotes = Footnotes::default();
        if let Some((table, cells)) = rows::row(record, &self.look, &mut footnotes) {
            // What ends here has its own notes.
            self.separate(Shape::Row(table), out)?;
            self.footnotes.append(footnotes);
            return self.row(table, &cells, out);
        }
        self.separate(shape(record), out)?;
        let look = &self.look;
        match record {
            Record::Translation(translation) => translation::write(look, translation, out),
            Record::Explanation(explanation) => explanation::write(look, explanation, out),
            Record::Region(region) => region::write(look, region, out),
            Record::PageFlags(flags) => flags::write(look, flags, out),
            Record::Decoded(decoded) => flags::decoded(look, decoded, out),
            Record::WalkSummary(summary) => {
                map::legend(look, &mut self.legend, out)?;
                totals::walk_summary(look, summary, out)?;
                self.notes(out)
            }
            Record::FramesSummary(summary) => totals::frames_summary(look, summary, out),
            Record::WhoSummary(summary) => who::summary(look, summary, out),
            Record::MapRegion(region) => map::region(look, &mut self.legend, region, out),
            Record::RegionsSummary(summary) => {
                totals::regions_summary(look, summary, out)?;
                self.notes(out)
            }
            Record::DiffSummary(summary) => changes::summary(look, summary, out),
            Record::ComparisonSummary(summary) => changes::comparison_summary(look, summary, out),
            Record::SoftDirty(report) => changes::soft_dirty(look, report, out),
            Record::SoftDirtyCleared(report) => changes::soft_dirty_cleared(look, report, out),
            Record::WatchStart(start) => watch::start(look, start, out),
            Record::WatchSummary(summary) => {
                self.drawing.finish(look, &mut self.legend, out)?;
                map::legend(look, &mut self.legend, out)?;
                watch::summary(look, summary, out)
            }
            Record::ReadsSummary(summary) => reads::summary(look, summary, out),
            Record::Memory(memory) => memory::row(look, memory, out),
            Record::Match(place) => memory::found(look, place, out),
            Record::FindSummary(summary) => memory::find_summary(look, summary, out),
            Record::Patch(patch) => memory::patch(look, patch, out),
            Record::PatchedSummary(summary) => memory::patched_summary(look, summary, out),
            Record::Telescope(row) => memory::telescope(look, row, out),
            Record::Value(value) => session::value(look, value, out),
            Record::Display(display) => session::display(look, display, out),
            Record::Symbol(symbol) => session::symbol(look, symbol, out),
            Record::SymbolsSummary(summary) => session::symbols_summary(look, summary, out),
            Record::Line(report) => line::write(look, report, out),
            Record::Process(process) => session::process(look, process, out),
            Record::Capabilities(report) => capabilities::write(look, report, out),
            Record::Target(target) => session::target(look, target, out),
            Record::Help(help) => message::help(look, help, out),
            Record::Note(note) => message::note(look, note, out),
            Record::AssertionsSummary(summary) => message::assertions(look, summary, out),
            Record::Error(error) => message::error(look, error, out),
            // Rows, and what was written above.
            Record::Run(_)
            | Record::Pages(_)
            | Record::Frames(_)
            | Record::Group(_)
            | Record::Summary(_)
            | Record::Mapper(_)
            | Record::SymbolRow(_)
            | Record::Module(_)
            | Record::Event(_)
            | Record::TimelineRow(_)
            | Record::TimelineSample(_)
            | Record::Read(_)
            | Record::Snapshot(_)
            | Record::Change(_)
            | Record::EventGroup(_)
            | Record::ChangeGroup(_)
            | Record::Comparison(_)
            | Record::ComparisonGroup(_)
            | Record::ProcessEntry(_)
            | Record::Thread(_)
            | Record::Setting(_)
            | Record::History(_)
            | Record::Text(_)
            | Record::Assertion(_)
            | Record::Hello(_)
            | Record::End(_) => Ok(()),
        }
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.drawing.finish(&self.look, &mut self.legend, out)?;
        // Of a command that failed, and has no summary.
        map::legend(&self.look, &mut self.legend, out)?;
        self.drawing.timeline = Default::default();
        self.notes(out)?;
        self.layout = None;
        self.before = Shape::Nothing;
        Ok(())
    }
}

fn shape(record: &Record) -> Shape {
    match record {
        Record::Translation(_)
        | Record::Explanation(_)
        | Record::Region(_)
        | Record::PageFlags(_)
        | Record::Decoded(_)
        | Record::Line(_)
        | Record::Process(_)
        | Record::Capabilities(_)
        | Record::Help(_) => Shape::Block,
        _ => Shape::Line,
    }
}
