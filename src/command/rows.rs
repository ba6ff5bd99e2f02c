//! Rows of commands: which are shown (`limit`, `top`), the pulling of the questions that give them, the totals at their
//! end however they ended, and groups (`by`).

use super::floor::Error;
use crate::eval;
use crate::inspect::{
    self, Evidence, FactReader, Group, GroupCounts, Neighbours, PageSums, RowSweep, Selection, StateSet, Step, Totals,
};
use crate::kernel::{Key, PageField, PageSize, Region, VirtualAddress};
use crate::lang::{self, Language, Range, Spanned, Which, WrittenKey};
use crate::render::text::block::{DELETED, mapped_name, object_number};
use crate::render::units::counted;
use crate::render::{Record, Sink};
use crate::report::{EveryState, PageGroup, PagesByReason, PhysicalExtent, Reason, Stopped, WalkSummary, Why};
use crate::state::DebugState;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// A range as it was typed, for a sentence: in backticks if it is several words.
pub(super) fn name_of_range(range: &Spanned<Range>, language: Language, line: &str) -> String {
    let written = language.respelled(&format!("`{}`", range.node), line);
    if written.contains(' ') { written } else { written.trim_matches('`').to_owned() }
}

/// A step of several that takes longer shows its own progress.
pub const LONG_STEP: Duration = Duration::from_millis(500);

/// The result of a sweep.
pub(super) struct SweepEnd {
    /// The counts of the pages.
    pub totals: Totals,
    /// Whether regions changed meanwhile.
    pub changed: bool,
    /// Whether the rows were physically contiguous runs: the totals then show between which addresses these are.
    pub are_runs: bool,
    /// What is uncertain about the pages that the filter keeps and leaves out.
    pub selection: Selection,
    /// Whether pages in the totals count as untouched that may be in swap.
    pub hides_swapped: bool,
    /// Why it was stopped, if it was.
    pub stopped: Option<Stopped>,
}

impl SweepEnd {
    /// What was counted until the sweep was stopped.
    pub fn of(sums: PageSums, stopped: Option<Stopped>) -> Self {
        let PageSums { totals, changed, selection, hides_swapped, .. } = sums;
        SweepEnd { totals, changed, are_runs: false, selection, hides_swapped, stopped }
    }

    /// Adds the sink's answer to the last row. A closed output counts before an earlier Ctrl-C.
    pub fn add_stop(&mut self, answer: Result<(), Stopped>) {
        self.stopped = match (self.stopped, answer) {
            (_, Err(Stopped::Closed)) => Some(Stopped::Closed),
            (before, answer) => before.or(answer.err()),
        };
    }

    /// Notes that states in the totals are only the likeliest, for tables whose rows do not say so.
    pub fn say_uncertain(&self, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let Some(reason) = self.selection.uncertain.and_then(StateSet::uncertainty) else {
            return Ok(());
        };
        sink.note(format!("the states of pages that are not present are {reason}"))
    }

    /// Emits the totals. Returns the error of a stopped sweep.
    pub fn close(self, sink: &mut dyn Sink, cut_short: bool) -> Result<(), Error> {
        let undecided = say_undecided(&self.selection.undecided, "page", sink)?;
        if self.hides_swapped {
            sink.note("untouched pages of shared memory may be in swap: `walk RANGE where maybe_swapped` lists those")?;
        }
        let physical = self.totals.physical_extent().filter(|_| self.are_runs);
        let zeros = self.totals.zeros();
        if let Some(note) = eval::perhaps_zeros(&self.totals).filter(|_| self.are_runs) {
            sink.note(note)?;
        }
        let summary = WalkSummary {
            pages: self.totals.pages,
            bytes: self.totals.bytes(),
            runs: self.totals.runs(),
            longest_run_bytes: self.totals.longest_run_bytes(),
            longest_run_start: self.totals.longest_run_start(),
            physical: physical.map(|(lowest, highest)| PhysicalExtent { lowest, highest, zeros }),
            changed: self.changed,
            cut_short: cut_short || self.stopped.is_some(),
            undecided: undecided.pages,
            states: EveryState(self.totals.states().map()),
            why: undecided.why,
        };
        finish(&summary, self.stopped, sink)
    }
}

/// Emits the last record. Returns the error of a stopped sweep.
pub(super) fn finish(last: &dyn Record, stopped: Option<Stopped>, sink: &mut dyn Sink) -> Result<(), Error> {
    // Nobody reads the last record of a closed output.
    if stopped != Some(Stopped::Closed) {
        sink.emit(last)?;
    }
    stopped.map_or(Ok(()), |stopped| Err(stopped.into()))
}

/// Says that a filter leaves out so many pages or regions (`what`) because it cannot be evaluated for them.
pub(super) fn say_left_out(count: u64, what: &str, why: &str, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let pages = counted(count, what);
    sink.note(format!("left out: {pages} for which the filter cannot be evaluated ({why})"))
}

/// What a filter can neither keep nor leave out.
#[derive(Default)]
pub(super) struct Undecided {
    /// How many pages or frames.
    pub pages: u64,
    /// The reason for it.
    pub why: Why,
}

/// Says that a filter leaves out pages or frames (`what`) because it cannot be evaluated for them, if there are any.
pub(super) fn say_undecided(undecided: &PagesByReason, what: &str, sink: &mut dyn Sink) -> Result<Undecided, Stopped> {
    let Some(reason) = undecided.reason() else {
        return Ok(Undecided::default());
    };
    let pages = undecided.pages();
    let rights = if reason.remedy().is_some() { "; see `help rights`" } else { "" };
    say_left_out(pages, what, &format!("{}{rights}", reason.cause()), sink)?;
    Ok(Undecided { pages, why: because("undecided", reason) })
}

/// Pulls a question to its end: shows its progress in `what` (a plural noun), and gives `take` each answer. Returns why
/// it was stopped, if it was. Errors other than the sink's are passed on.
pub(super) fn pull<T>(
    sink: &mut dyn Sink,
    what: &'static str,
    mut next: impl FnMut() -> inspect::Result<Option<Step<T>>>,
    mut take: impl FnMut(T, &mut dyn Sink) -> Result<(), Error>,
) -> Result<Option<Stopped>, Error> {
    let mut pulled = || {
        while let Some(step) = next()? {
            match step {
                Step::Visited { done, total } => sink.progress(done, total, what)?,
                Step::Found(found) => take(found, sink)?,
            }
        }
        Ok(())
    };
    let pulled = pulled();
    stop_of_sweep(pulled, sink)
}

/// Why a sweep was stopped, if it was. Other errors are passed on.
pub(super) fn stop_of_sweep(pulled: Result<(), Error>, sink: &mut dyn Sink) -> Result<Option<Stopped>, Error> {
    match pulled {
        Ok(()) => Ok(None),
        // The engine may have noticed Ctrl-C before the sink: its answer is known here.
        Err(Error::Stopped(stopped)) => Ok(Some(sink.check().err().unwrap_or(stopped))),
        Err(error) => Err(error),
    }
}

/// Emits the records of the rows of neighbours that are wanted, then the totals. Returns where the row begins that
/// would be one too many.
pub(super) fn emit_rows<N: Neighbours, R: Record>(
    rows: RowSweep<N>,
    cut: Option<RowLimit>,
    sink: &mut dyn Sink,
    mut record: impl FnMut(&N::Row) -> R,
) -> Result<Option<VirtualAddress>, Error> {
    let mut rows = rows.limit(RowLimit::limit(cut).unwrap_or(u64::MAX)).with_budget(sink.budget());
    let mut largest = RowLimit::top(cut).map(Largest::new);
    let mut show = |row: N::Row, sink: &mut dyn Sink| match &mut largest {
        Some(largest) => {
            largest.add(N::size(&row), row);
            Ok(())
        }
        None => sink.emit(&record(&row)),
    };
    let stopped = pull(sink, "pages", || rows.next(), |row, sink| Ok(show(row, sink)?))?;
    let last = rows.take_last().filter(|_| stopped != Some(Stopped::Closed));
    let answer = last.map_or(Ok(()), |row| show(row, sink));
    show_largest(largest, "row", sink, |row, sink| sink.emit(&record(row)))?;
    let more = rows.more();
    let mut ended = SweepEnd { are_runs: N::ARE_RUNS, ..SweepEnd::of(rows.finish(), stopped) };
    ended.add_stop(answer);
    ended.close(sink, more.is_some())?;
    Ok(more)
}

/// How many rows are shown, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowLimit {
    pub which: Which,
    pub most: u64,
}

impl RowLimit {
    /// The cut of a line, with the value of its variable.
    ///
    /// # Errors
    /// The count is 0, or the variable holds no count.
    pub fn of(written: Option<&lang::LimitClause>, state: &DebugState) -> Result<Option<RowLimit>, Error> {
        let Some(written) = written else {
            return Ok(None);
        };
        let most = eval::count(&written.rows, state)?;
        let which = written.which;
        match (most, which) {
            (0, Which::First) => Err(Error::nothing_wanted("limit")),
            (0, Which::Largest) => Err(Error::nothing_wanted("top")),
            _ => Ok(Some(RowLimit { which, most })),
        }
    }

    /// How many, as a length.
    pub fn rows(self) -> usize {
        usize::try_from(self.most).unwrap_or(usize::MAX)
    }

    /// The N of `limit N`, for a stream that ends there.
    pub fn limit(cut: Option<RowLimit>) -> Option<u64> {
        cut.filter(|cut| cut.which == Which::First).map(|cut| cut.most)
    }

    /// The N of `top N`.
    pub fn top(cut: Option<RowLimit>) -> Option<u64> {
        cut.filter(|cut| cut.which == Which::Largest).map(|cut| cut.most)
    }
}

/// Keeps the first or the largest rows, and returns how many were left out.
pub(super) fn keep_shown<T, S: Ord>(rows: &mut Vec<T>, cut: Option<RowLimit>, size: impl Fn(&T) -> S) -> usize {
    if RowLimit::top(cut).is_some() {
        rows.sort_by_cached_key(|row| Reverse(size(row)));
    }
    let all = rows.len();
    rows.truncate(cut.map_or(all, RowLimit::rows));
    all - rows.len()
}

/// The end of the note about rows that are not shown.
pub const CUT: &str = " (the totals include them)";

/// Notes how many rows are not shown.
pub(super) fn note_hidden_rows(more: usize, what: &str, sink: &mut dyn Sink) -> Result<(), Stopped> {
    if more == 0 {
        return Ok(());
    }
    let rows = counted(more as u64, &format!("more {what}"));
    sink.note(format!("{rows}{CUT}"))
}

/// The largest of a stream of rows; among equals, the first.
pub(super) struct Largest<T, S = u64> {
    most: usize,
    seen: usize,
    /// By size, and among equals by the place in the stream.
    kept: BTreeMap<(S, Reverse<usize>), T>,
}

impl<T, S: Ord> Largest<T, S> {
    pub fn new(most: u64) -> Self {
        Largest { most: usize::try_from(most).unwrap_or(usize::MAX), seen: 0, kept: BTreeMap::new() }
    }

    pub fn add(&mut self, size: S, row: T) {
        self.kept.insert((size, Reverse(self.seen)), row);
        self.seen += 1;
        if self.kept.len() > self.most {
            self.kept.pop_first();
        }
    }

    /// The rows, the largest first, and how many were left out.
    pub fn finish(self) -> (Vec<T>, usize) {
        let more = self.seen - self.kept.len();
        (self.kept.into_values().rev().collect(), more)
    }
}

/// Shows the largest rows, if `top` asked for them, and notes how many others there are.
pub(super) fn show_largest<T, S: Ord>(
    largest: Option<Largest<T, S>>,
    what: &str,
    sink: &mut dyn Sink,
    mut emit: impl FnMut(&T, &mut dyn Sink) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let Some(largest) = largest else {
        return Ok(());
    };
    let (rows, more) = largest.finish();
    rows.iter().try_for_each(|row| emit(row, sink))?;
    note_hidden_rows(more, what, sink)
}

/// The keys of `by KEY` or `by KEY, KEY`; none for runs, which are a stream.
///
/// # Errors
/// Runs beside another key; a key twice; no flag of that name.
pub(super) fn groupings(written: &[WrittenKey]) -> Result<Option<(Key, Option<Key>)>, Error> {
    let refused = |message: &str| Error::refused(message, "write `walk RANGE by region, state`");
    let keys = written.iter().map(eval::key).collect::<Result<Vec<Key>, eval::Error>>()?;
    match *keys {
        [Key::Run] => Ok(None),
        [one] => Ok(Some((one, None))),
        [one, other] if one == other => Err(refused("the two keys of `by` are the same")),
        [Key::Run, _] | [_, Key::Run] => Err(refused("`run` cannot be combined with another key")),
        [one, other] => Ok(Some((one, Some(other)))),
        _ => Ok(None),
    }
}

/// What a sweep has to read for these keys.
///
/// # Errors
/// It cannot be known here.
pub(super) fn need_of_keys(reader: &FactReader, by: Key, and: Option<Key>) -> Result<Evidence, Error> {
    let mut need = Evidence::empty();
    for key in [Some(by), and].into_iter().flatten() {
        if let Key::Page(field) = key {
            need |= reader.require(field)?.unwrap_or_default();
        }
    }
    Ok(need)
}

/// A row for each of the groups `by` these keys, as many as are wanted, and a note of the others. `name` names regions
/// and symbols; other groups have the names of their facts.
pub(super) fn emit_groups(
    groups: GroupCounts,
    cut: Option<RowLimit>,
    size: PageSize,
    name: impl Fn(Group) -> Option<String>,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let GroupCounts { by, and, reader, pages: mut groups, .. } = groups;
    let cut = cut.or_else(|| usual_cut(by).filter(|_| and.is_none()));
    if cut.is_some_and(|cut| cut.which == Which::Largest) {
        // Stable: among equals, the first stays first.
        groups.sort_by_cached_key(|&(_, pages)| Reverse(pages));
    }
    let shown = cut.map_or(groups.len(), |cut| cut.rows());
    for &((first, second), pages) in groups.iter().take(shown) {
        let mut why = Why::default();
        let mut shown = |key, group| name(group).unwrap_or_else(|| name_of_group(&reader, key, group, &mut why));
        let key = shown(by, first);
        let second_key = and.zip(second).map(|(and, second)| shown(and, second));
        sink.emit(&PageGroup {
            by: by.to_string(),
            key,
            second_by: and.map(|and| and.to_string()),
            second_key,
            pages,
            bytes: pages.saturating_mul(size.bytes()),
            why,
        })?;
    }
    let rest = groups.get(shown..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(());
    }
    let pages = counted(rest.iter().map(|(_, pages)| pages).sum(), "page");
    sink.note(format!("{} with {pages}{CUT}", counted(rest.len() as u64, "more group")))
}

/// The largest groups by a fact that has many values.
pub(super) fn usual_cut(by: Key) -> Option<RowLimit> {
    let Key::Page(PageField::Fact(fact)) = by else {
        return None;
    };
    fact.most_groups().map(|most| RowLimit { which: Which::Largest, most })
}

/// The name of a group `by region`, here and in `watch` and `diff`.
pub(super) fn name_of_region(region: &Region) -> String {
    let Region { range, permissions, name, .. } = region;
    let name = if name.is_empty() { Cow::Borrowed("") } else { mapped_name(name, region.is_without_path()).1 };
    let deleted = if region.is_deleted_file() { DELETED } else { "" };
    let number = object_number(region.name.as_bytes(), region.object_number());
    format!("{range} {permissions} {name}{deleted}{number}").trim_end().to_owned()
}

/// The name of a group; why its pages may not belong to it is noted under the name of the fact.
pub(super) fn name_of_group(reader: &FactReader, key: Key, group: Group, why: &mut Why) -> String {
    match (key, group) {
        (Key::Page(field), Group::Known(answer)) => {
            let (name, reason) = reader.shown(field, answer);
            if let Some(reason) = reason {
                why.note(field.fact().row().word, &reason);
            }
            name
        }
        (_, Group::Average(count)) => format!("~{count}"),
        (Key::Symbol, _) => "no symbol".to_owned(),
        _ => "in no region".to_owned(),
    }
}

/// One reason.
fn because(field: &'static str, reason: Reason) -> Why {
    let mut why = Why::default();
    why.note(field, &reason);
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_of_equal_ones_the_first() {
        let mut largest = Largest::new(3);
        for (size, row) in [(1, "a"), (5, "b"), (3, "c"), (5, "d"), (3, "e")] {
            largest.add(size, row);
        }
        assert_eq!(largest.finish(), (vec!["b", "d", "c"], 2));
    }
}
