//! Records as text for a person at a terminal.

mod alike;
pub(crate) mod block;
pub(crate) mod changes;
pub(crate) mod explanation;
pub(crate) mod footnotes;
pub(crate) mod held;
pub(crate) mod lines;
pub(crate) mod message;
pub(crate) mod pages;
pub(crate) mod region;
mod timeline_rows;
pub(crate) mod translation;
mod verbatim;
pub(crate) mod words;

use super::columns::{Cell, CellText, Column, Table, TableId, TableLayout};
use super::fit::HeldRows;
use super::marks::Legend;
use super::theme::{Role, Theme};
use crate::render::timeline::{Timeline, TimelineDrawing};
use crate::render::units::{counted, size};
use crate::report::{Field, Why};
use alike::{AlikeRun, HeldBack};
use footnotes::Footnotes;
use jiff::tz::TimeZone;
use lines::{Lines, Style};
pub use lines::{More, RemarksMade};
use std::borrow::Cow;
use std::io::{self, Write};
pub use verbatim::TextColumn;

/// Writes records as text: tables with headings, blocks of labelled lines, single lines.
pub struct Text {
    lines: Lines,
    before: RecordForm,
    layout: Option<(TableId, TableLayout)>,
    /// The rows of the table so far, and whether it has a heading: its columns will fit them.
    held: Option<(TableId, HeldRows, bool)>,
    /// Whether a row since the last notes had letters for flags.
    has_letters: bool,
    footnotes: Footnotes,
    legend: Legend,
    drawing: TimelineDrawing,
    /// Columns of the open table that do not fit the terminal, until a note names them.
    left_out: Vec<&'static str>,
    /// The titles of columns that are left out last.
    named: Vec<&'static str>,
    /// The rows of a table that are too small for a line.
    folded: Option<(TableId, FoldedRows)>,
    /// Whether these, and repeated rows, have lines all the same.
    has_small_rows: bool,
    /// Neighbours that repeat.
    alike: AlikeRun<RecordForm, WriteHeld>,
    /// Where the answer to the rows goes.
    answer_place: AnswerPlace,
    /// Whether rows were written since the heading of a part of the answer.
    has_rows_above: bool,
    text_column: TextColumn,
}

/// The place of a sentence that answers, which is known only after the rows that it is to stand before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AnswerPlace {
    /// No row has come yet.
    NoRows,
    /// At this byte of the text, which is withheld until then.
    At(usize),
    /// It is there, or what stands after the place was written without it.
    Passed,
}

/// The most bytes that are withheld: the rows of a buffer of 64 MiB in single pages.
const MOST_WITHHELD: usize = 1 << 20;

/// Rows under 1 % of a table.
#[derive(Default)]
struct FoldedRows {
    /// Each as a name and an amount, if they are few.
    names: Vec<String>,
    rows: u64,
    bytes: u64,
    /// They are of a table of differences.
    are_differences: bool,
}

/// The form of a record, which decides where blank lines stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecordForm {
    Nothing,
    /// The sentence before the rows of an answer.
    Answer,
    Line,
    Block,
    /// A part of a picture, between addresses.
    Part,
    Row(TableId),
}

/// Writes a record that was held.
type WriteHeld = Box<dyn FnOnce(&mut Text)>;

/// Writes a record that is not a row of a table.
type WriteRecord<T> = fn(&mut Lines, &T);

impl Text {
    /// Text with this theme. `width` is the terminal's, in columns. Without one (a pipe, a file) nothing is cut,
    /// wrapped or left out. Times are in the local time zone.
    pub fn new(theme: Theme, width: Option<usize>) -> Self {
        Text {
            lines: Lines::new(Style::new(theme, width)),
            before: RecordForm::Nothing,
            layout: None,
            held: None,
            has_letters: false,
            footnotes: Footnotes::default(),
            legend: Legend::default(),
            drawing: TimelineDrawing::default(),
            left_out: Vec::new(),
            named: Vec::new(),
            folded: None,
            has_small_rows: false,
            alike: AlikeRun::new(),
            answer_place: AnswerPlace::NoRows,
            has_rows_above: false,
            text_column: TextColumn::default(),
        }
    }

    /// Text for a terminal of so many lines: each picture of a timeline replaces the one before.
    pub fn in_place(mut self, height: usize) -> Self {
        self.drawing = TimelineDrawing::in_place(height);
        self
    }

    /// The same, but a text of the user continues at the column where the one before ended.
    pub fn continuing(self, text_column: TextColumn) -> Self {
        Text { text_column, ..self }
    }

    /// The same, but a remark about the kernel or rights that `said` has is not repeated.
    pub fn with_remarks_once(mut self, said: RemarksMade) -> Self {
        self.lines.style = self.lines.style.with_remarks_once(said);
        self
    }

    /// As [`new`](Self::new), with times in `zone`.
    pub fn with_time_zone(theme: Theme, width: Option<usize>, zone: TimeZone) -> Self {
        let mut text = Text::new(theme, width);
        text.lines.style = text.lines.style.with_time_zone(zone);
        text
    }

    /// A row of a table.
    pub(crate) fn row<T>(&mut self, table: &Table<T>, row: &T) {
        let (id, has_heading) = (table.id(), table.has_heading());
        // A table that ends here has its own notes.
        self.separate(RecordForm::Row(id));
        let cells = table.cells(&self.lines.style, row);
        if self.folds_alike() {
            let columns = table.columns();
            if let Some((addresses, key)) = alike::of_cells(&columns, &cells) {
                let cells: Vec<_> = cells.into_iter().map(Cell::into_owned).collect();
                let write = move |text: &mut Text| text.add_row(id, has_heading, || columns, cells);
                return self.write_unless_alike(RecordForm::Row(id), addresses, key, write);
            }
        }
        self.add_row(id, has_heading, || table.columns(), cells);
    }

    /// Writes a record that shows `key` of the addresses from `start` to `end`, unless it is one more of many.
    fn write_unless_alike(
        &mut self,
        form: RecordForm,
        (start, end): (u64, u64),
        key: String,
        write: impl FnOnce(&mut Text) + 'static,
    ) {
        if !self.alike.goes_on(&form, start, &key) {
            self.end_alike();
        }
        if let Some(write) = self.alike.add(form, (start, end), key, Box::new(write)) {
            write(self);
        }
    }

    /// Writes the repeated neighbours that are held, or a line in their place.
    fn end_alike(&mut self) {
        match (self.alike.take_held(), &mut self.held) {
            (HeldBack::Each(all), _) => all.into_iter().for_each(|write| write(self)),
            (HeldBack::Remark(remark), Some((_, held, _))) => held.remarks.push((held.rows.len(), remark)),
            (HeldBack::Remark(remark), None) => self.write_remark(remark),
        }
    }

    /// Whether neighbours that repeat become one line: not in a pipe, and not if all rows are asked for.
    fn folds_alike(&self) -> bool {
        self.lines.style.width.is_some() && !self.has_small_rows
    }

    fn add_row(&mut self, id: TableId, has_heading: bool, columns: impl FnOnce() -> Vec<Column>, cells: Vec<Cell<'_>>) {
        if let Some((_, held, _)) = &mut self.held {
            held.push(cells);
            if held.is_full() {
                self.stop_holding();
            }
            return;
        }
        let is_open = matches!(&self.layout, Some(open) if open.0 == id);
        if !is_open {
            let columns = columns().into_iter().map(|column| column.hidden_late(&self.named)).collect();
            let mut held = HeldRows::new(columns);
            held.push(cells);
            self.held = Some((id, held, has_heading));
            return;
        }
        self.write_row(&cells, has_heading, is_open);
    }

    /// Writes a row of the open table, with a heading if it is the first or needs more room.
    fn write_row(&mut self, cells: &[Cell<'_>], has_heading: bool, is_open: bool) {
        let Some((_, layout)) = &mut self.layout else {
            return;
        };
        if layout.widen(cells) || !is_open {
            if has_heading {
                layout.heading(self.lines.text());
            }
            let missing = |title: &&str| !self.left_out.contains(title);
            let left_out: Vec<_> = layout.left_out().into_iter().filter(missing).collect();
            self.left_out.extend(left_out);
        }
        layout.row(cells, self.lines.text());
        self.has_letters |= layout.take_letters();
    }

    /// Writes the held rows of a table that has ended, in columns that fit them.
    fn write_held(&mut self) {
        let Some((id, mut held, has_heading)) = self.held.take() else {
            return;
        };
        match self.lines.style.width {
            Some(width) => held.fit(width),
            None => held.fit_uncut(),
        }
        let above = std::mem::take(&mut held.above);
        self.write_above(above);
        self.write_rows(id, held, has_heading);
        // Other rows may not fit these columns.
        self.layout = None;
    }

    /// Writes what all rows of a table have in common: `0 in all rows: huge, shared`
    fn write_above(&mut self, above: Vec<(&'static str, Role, String)>) {
        let (zeros, others): (Vec<_>, Vec<_>) = above.into_iter().partition(|(_, _, text)| text == "0");
        for (head, columns, has_text) in [("same in all rows:", others, true), ("0 in all rows:", zeros, false)] {
            if columns.is_empty() {
                continue;
            }
            let line = self.lines.line();
            line.push(Role::Label, head);
            let mut separator = " ";
            for (title, role, text) in columns {
                line.word(separator, role, if has_text { format!("{title} {text}") } else { title.to_owned() });
                separator = ", ";
            }
        }
    }

    /// Writes the held rows of a table that goes on, in the columns as declared.
    pub(super) fn stop_holding(&mut self) {
        let Some((id, mut held, has_heading)) = self.held.take() else {
            return;
        };
        for (column, cell) in held.columns.iter_mut().zip(held.rows.first().into_iter().flatten()) {
            column.is_hidden = matches!(cell.words, CellText::Bar(_));
        }
        self.write_rows(id, held, has_heading);
    }

    fn write_rows(&mut self, id: TableId, held: HeldRows, has_heading: bool) {
        let style = &self.lines.style;
        self.layout = Some((id, TableLayout::new(style.theme, held.columns, style.width)));
        let mut remarks = held.remarks.into_iter().peekable();
        for (index, cells) in held.rows.iter().enumerate() {
            if let Some((_, remark)) = remarks.next_if(|(rows, _)| *rows == index) {
                self.write_remark(remark);
            }
            self.write_row(cells, has_heading, index > 0);
        }
        remarks.for_each(|(_, remark)| self.write_remark(remark));
    }

    /// A line between the rows of a table.
    fn write_remark(&mut self, remark: String) {
        self.lines.line().indent(2).push(Role::Dim, remark);
    }

    /// A row of a table whose rows divide `whole` bytes, and the reasons of what it misses. Rows under 1 % become one
    /// line below the table, unless more is asked for. Without a `name` they are only counted there.
    pub(crate) fn row_of_share<T: Field>(
        &mut self,
        table: &Table<T>,
        row: &T,
        name: Option<&str>,
        (part, whole): (u64, u64),
    ) {
        if self.has_small_rows || part.saturating_mul(100) >= whole {
            return self.row_with_notes(table, row);
        }
        let id = table.id();
        if self.folded.as_ref().is_some_and(|(of, _)| *of != id) {
            self.write_held();
            self.write_folded();
        }
        let (_, folded) = self.folded.get_or_insert_with(|| (id, FoldedRows::default()));
        folded.names.extend(name.map(|name| format!("{name} {}", size(part))));
        folded.rows += 1;
        folded.bytes = folded.bytes.saturating_add(part);
    }

    /// A row of a table of differences, with its part of `whole` different bytes. Rows under 1 % and those without a
    /// difference become one line below the table, unless more is asked for.
    pub(crate) fn row_of_difference<T>(&mut self, table: &Table<T>, row: &T, (part, whole): (u64, u64)) {
        if part > 0 && part.saturating_mul(100) >= whole || self.has_small_rows {
            return self.row(table, row);
        }
        let id = table.id();
        let (_, folded) = self.folded.get_or_insert_with(|| (id, FoldedRows::default()));
        (folded.rows, folded.bytes) = (folded.rows + 1, folded.bytes.saturating_add(part));
        folded.are_differences = true;
    }

    fn write_folded(&mut self) {
        let Some((_, FoldedRows { mut names, rows, bytes, are_differences })) = self.folded.take() else {
            return;
        };
        let line = self.lines.line();
        line.indent(2);
        if are_differences && bytes == 0 {
            line.push(Role::Dim, format!("{} without a difference", counted(rows, "more row")));
            return;
        }
        line.push(Role::Dim, "under 1 % each:");
        if names.is_empty() {
            let more = if are_differences { "" } else { " (`full` lists them)" };
            names.push(format!("{}, {}{more}", counted(rows, "row"), size(bytes)));
        }
        let mut separator = " ";
        for name in names {
            line.word(separator, Role::Dim, name);
            separator = "; ";
        }
    }

    /// Whether the method of an answer and its small rows are shown.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.style.is_full
    }

    /// Whether a record needs more lines than in a wide terminal.
    pub(crate) fn is_narrow(&self) -> bool {
        self.lines.style.is_narrow()
    }

    /// A row of a table, and the reasons of what it misses.
    pub(crate) fn row_with_notes<T: Field>(&mut self, table: &Table<T>, row: &T) {
        self.row(table, row);
        self.footnotes.collect(&Why::of_record(row));
    }

    /// A row of a table, and the reasons of what it misses. Those of the kind "not applicable" are shown under a table
    /// without any value.
    pub(crate) fn row_with_reasons<T>(&mut self, table: &Table<T>, row: &T, why: &Why, has_values: bool) {
        self.row(table, row);
        self.footnotes.collect_with_nature(why, has_values);
    }

    /// Labelled lines that stand apart.
    pub(crate) fn block<T>(&mut self, write: WriteRecord<T>, record: &T) {
        self.separate(RecordForm::Block);
        write(&mut self.lines, record);
    }

    /// The sentence that answers.
    pub(super) fn answer(&mut self, sentence: &str) {
        self.separate(RecordForm::Answer);
        self.lines.line().indent(2).prose(Role::Plain, sentence);
    }

    /// The sentence that answers, where only all rows give it. It stands before them, unless they are too many to wait
    /// for it.
    pub(crate) fn answer_of_rows<T>(&mut self, write: WriteRecord<T>, record: &T) {
        let AnswerPlace::At(at) = self.answer_place else {
            return self.line(write, record);
        };
        let rows = self.lines.text().split_off(at);
        write(&mut self.lines, record);
        self.lines.line();
        self.lines.text().extend_from_slice(&rows);
        self.answer_place = AnswerPlace::Passed;
    }

    /// Whether rows were written for which the answer may still be placed above.
    pub(crate) fn awaits_answer(&self) -> bool {
        matches!(self.answer_place, AnswerPlace::At(_))
    }

    /// A line over the rows of one part of an answer. They have column titles of their own.
    pub(crate) fn heading_of_rows<T>(&mut self, write: WriteRecord<T>, record: &T) {
        let is_after_rows = std::mem::take(&mut self.has_rows_above);
        self.separate(if is_after_rows { RecordForm::Answer } else { RecordForm::Line });
        write(&mut self.lines, record);
        self.layout = None;
    }

    /// A line, or a few.
    pub(crate) fn line<T>(&mut self, write: WriteRecord<T>, record: &T) {
        self.separate(RecordForm::Line);
        write(&mut self.lines, record);
    }

    /// The notes under a table: the reasons for missing values, and the columns that did not fit.
    pub(crate) fn notes(&mut self) {
        self.end_alike();
        self.write_held();
        let left_out = std::mem::take(&mut self.left_out);
        if !left_out.is_empty() {
            let noun = if left_out.len() == 1 { "column" } else { "columns" };
            let names = left_out.join(", ");
            const REMEDY: &str = "widen the terminal, or use a pipe";
            let remedy = if self.lines.style.is_new_remedy(REMEDY) { format!(": {REMEDY}") } else { String::new() };
            self.lines.field("not shown").prose(Role::Dim, format!("{noun} {names}{remedy}"));
        }
        if std::mem::take(&mut self.has_letters) && self.lines.style.is_news("letters", "flags") {
            self.lines.field("letters").prose(Role::Dim, "`help flags` explains flags and their letters");
        }
        self.footnotes.write(&mut self.lines);
    }

    /// A blank line where one kind of output ends and another begins, and the footnotes of a table that ends. It ends a
    /// drawing.
    fn separate(&mut self, shape: RecordForm) {
        self.drawing.begin_below();
        if !self.alike.is_of(&shape) {
            self.end_alike();
        }
        if self.held.as_ref().is_some_and(|(of, ..)| shape != RecordForm::Row(*of)) {
            self.write_held();
        }
        if self.folded.as_ref().is_some_and(|(of, _)| shape != RecordForm::Row(*of)) {
            self.write_folded();
        }
        let blank = match (self.before, shape) {
            (RecordForm::Nothing, _) => false,
            (RecordForm::Row(open), RecordForm::Row(next)) => open != next,
            (RecordForm::Block, _) => true,
            (_, next) => !matches!(next, RecordForm::Line),
        };
        if blank {
            self.notes();
            self.lines.line();
        }
        self.before = shape;
        self.has_rows_above |= matches!(shape, RecordForm::Row(_));
        if matches!(shape, RecordForm::Row(_) | RecordForm::Part) && self.answer_place == AnswerPlace::NoRows {
            self.answer_place = AnswerPlace::At(self.lines.text().len());
        }
    }

    /// What it has drawn so far of a timeline.
    pub(crate) fn timeline(&mut self) -> &mut Timeline {
        &mut self.drawing.timeline
    }

    /// Draws the timeline after a sample.
    pub(crate) fn draw_timeline(&mut self) {
        self.write_held();
        self.drawing.draw_sample(&mut self.lines, &mut self.legend);
    }

    /// Draws the rest of the timeline, and says what the letters in pictures mean, if anything was drawn.
    pub(super) fn end_pictures(&mut self) {
        if !self.drawing.timeline.is_empty() || !self.legend.is_empty() {
            self.separate(RecordForm::Line);
            self.drawing.finish(&mut self.lines, &mut self.legend);
            self.legend.write(&mut self.lines);
        }
        self.drawing.timeline = Default::default();
    }

    /// The lines of a part of a picture, between two addresses, which show `key`.
    pub(crate) fn part_of_picture<T: Clone + 'static>(
        &mut self,
        draw: fn(&mut Lines, &mut Legend, &T),
        part: &T,
        addresses: (u64, u64),
        key: impl FnOnce() -> String,
    ) {
        self.separate(RecordForm::Part);
        if self.folds_alike() {
            let part = part.clone();
            let write = move |text: &mut Text| draw(&mut text.lines, &mut text.legend, &part);
            return self.write_unless_alike(RecordForm::Part, addresses, key(), write);
        }
        draw(&mut self.lines, &mut self.legend, part);
    }

    /// The user's own text. In a pipe or a file it is the same to the byte.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.write_held();
        let text = match self.lines.style.width {
            Some(width) => verbatim::broken(text, width, &self.text_column).into(),
            None => Cow::Borrowed(text),
        };
        self.lines.text().extend_from_slice(text.as_bytes());
    }

    /// Takes the titles of columns that are left out last, until the end of the command.
    pub(super) fn name_columns(&mut self, titles: &[&'static str]) {
        self.named = titles.to_vec();
    }

    /// Shows also small rows, and with `full` the method of an answer, until the end of the command.
    pub(super) fn show(&mut self, more: More) {
        self.has_small_rows = true;
        self.lines.style.is_full |= more == More::All;
    }

    /// Ends the output of a command.
    pub(super) fn end_command(&mut self) {
        self.end_alike();
        self.write_held();
        self.write_folded();
        // A failed command has no summary.
        self.end_pictures();
        self.notes();
        self.layout = None;
        self.named.clear();
        (self.has_small_rows, self.lines.style.is_full) = (false, false);
        self.before = RecordForm::Nothing;
        (self.answer_place, self.has_rows_above) = (AnswerPlace::NoRows, false);
    }

    /// Holds nothing back, because no record may follow for a while.
    pub(super) fn stop_waiting(&mut self) {
        self.stop_holding();
        if let AnswerPlace::At(_) = self.answer_place {
            self.answer_place = AnswerPlace::Passed;
        }
    }

    /// Writes what is complete.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if let AnswerPlace::At(_) = self.answer_place {
            if self.lines.text().len() <= MOST_WITHHELD {
                return Ok(());
            }
            self.answer_place = AnswerPlace::Passed;
        }
        self.lines.write(out)
    }
}
