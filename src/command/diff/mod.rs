//! `diff [A] [B]`: what changed between two snapshots, or since one.

mod records;

use super::capture;
use super::change_groups::{group_of_change, key_of_changes, name_of_group};
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::named_pages::{PagesOfSymbols, name_among_symbols, names_in};
use super::rows::{self, RowLimit, name_of_region, say_undecided};
use super::snapshot::{self, SnapshotPart, or_say, seconds, snapshot_called};
use super::translate::brief;
use super::unobserved::{note_forks, unobservable};
use super::watch::{detail, tally, with_average_mark};
use crate::eval::{self, CommonSpans, Origin, Spans};
use crate::inspect::{self, AddressSpace, Change, Evidence, FactReader, Question, RegionGroups};
use crate::kernel::{AddressRange, Key, Name, PageSize, Region};
use crate::lang::parser::{
    Parsed, Tokens, after, clause, cut_to, filter, key, later, range, snapshot_file, snapshot_name,
};
use crate::lang::{self, FilterExpression, KeyFacts, PageField, Range, Spanned, TakenKeys, WrittenKey, display};
use nom::Parser;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};

use crate::process::Target;
use crate::render::units::count;
use crate::render::{Record, Sink};
use crate::report::{Blind, EventKind, NetEffect, Numbers, Shape, Stopped};
use crate::state::NamedSnapshot;
use crate::symbol;
use records::{ChangeGroup, ChangeRow, DiffSummary};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// `diff [A | from FILE] [B] [in RANGE] [where FILTER] [by KEY] [top N | limit N]`
#[derive(Debug)]
pub struct Diff {
    /// The earlier snapshot; the last one taken if absent.
    from: Option<Spanned<String>>,
    /// The capture that has the earlier state, in place of a snapshot; a leading `~/` is still as typed.
    file: Option<Spanned<String>>,
    /// The later one; now if absent.
    to: Option<Spanned<String>>,
    /// In which range; all that both snapshots cover if absent.
    range: Option<Spanned<Range>>,
    /// Which pages, as they are now.
    filter: Option<Spanned<FilterExpression<PageField>>>,
    /// Group by this.
    by: Option<WrittenKey>,
    /// Which rows.
    cut: Option<lang::LimitClause>,
}

/// The keys of `diff … by`: those that snapshots do not hold are refused when the line runs.
const KEYS: TakenKeys = TakenKeys { facts: KeyFacts::OfChanges, others: &[Key::Region, Key::Symbol, Key::Change] };

impl Command for Diff {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("diff").whole(),
        group: Group::Time,
        summary: "show the changes between two snapshots, or since one",
        text: "\
Compares two snapshots, or one with the present (`now`). Without names, compares the last snapshot with the present.

  from FILE     a capture of the same process in place of the first snapshot (`help capture`); if two captures with \
                memory are compared, their contents are compared too
  in RANGE      only this part
  where FILTER  only pages that match now
  by region     a row for each region, even if it grew or shrank
  by symbol     a row for each symbol
  by change     a row for each kind of change
  by KEY        a row for each state, or for each flag or map count that both snapshots have, after the changes
  limit N       the first N rows
  top N         the N largest rows

The totals come first. Then each row is a region that appeared, grew, shrank or went, or neighbouring pages that \
changed in the same way. Pages came, went, moved, changed their node, were copied on write, merged, unmerged, swapped out or in, split or collapsed. Pages \
that were written in place are shown if the snapshots have `content`, or if the kernel tracks soft-dirty pages. `by` \
puts the largest net effect first. The column `regions` counts regions that appeared, grew, shrank or went.

$_came and $_went are the bytes that came and went, $_changes the number of changes. Functions such as changed(A, B \
in RANGE where FILTER) count pages in expressions (`help values`).

Pages of two mappings are never compared: where a region was replaced, all its pages went and those of the new one \
came. Anonymous memory in the place of other anonymous memory is not recognised as new. Nor is a page that the process \
freed and wrote again (MADV_DONTNEED, free): it has another frame, and is shown as moved. A page that moved twice is \
shown as one move. A page that came and went again is not shown. If the process forked after the first snapshot, a \
copied page is shown as moved: it was not shared before.",
        examples: &[
            example("snapshot\ndiff", "show the changes since the last snapshot"),
            example("snapshot before\ndiff before by region top 5", "show the regions that grew most since `before`"),
            example(
                "snapshot before\nsnapshot after\ndiff before after in demo_busy",
                "compare a symbol in two snapshots",
            ),
            example(
                "snapshot before\nsnapshot after\ndiff before after by state",
                "add up the changes by the state after them",
            ),
            example("capture demo.capture --overwrite\ndiff from demo.capture", "show the changes since a capture"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (mut input, mut file) = (input, None);
        clause(&mut input, &mut file, after("from", snapshot_file))?;
        let (input, from) = if file.is_some() { (input, None) } else { opt(snapshot_name).parse(input)? };
        let has_earlier = from.is_some() || file.is_some();
        let (mut input, to) = if has_earlier { map(opt(later), Option::flatten).parse(input)? } else { (input, None) };
        let (mut in_, mut where_, mut by, mut cut) = (None, None, None, None);
        while clause(&mut input, &mut in_, after("in", range))?
            || clause(&mut input, &mut where_, after("where", filter))?
            || clause(&mut input, &mut by, after("by", key(KEYS)))?
            || clause(&mut input, &mut cut, cut_to)?
        {}
        Ok((input, Diff { from, file, to, range: in_, filter: where_, by, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(" from")?;
            display::write_quoted(f, Some(&file.node))?;
        }
        for name in [&self.from, &self.to].into_iter().flatten() {
            write!(f, " {}", name.node)?;
        }
        display::clause(f, "in", self.range.as_ref().map(|range| &range.node))?;
        display::clause(f, "where", self.filter.as_ref().map(|filter| &filter.node))?;
        display::clause(f, "by", self.by.as_ref())?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let target = context.target()?;
        let read = self.file.as_ref().map(|file| captured(context, &target, file, self.range.as_ref()));
        let (read, no_contents) = read.transpose()?.map_or((None, None), |(read, blind)| (Some(read), blind));
        let now = match self.to {
            Some(_) => None,
            None => Some(present(context, self, read.as_ref())?),
        };
        let state = &*context.state;
        let from = read.as_ref().map_or_else(|| earlier(state, self), Ok)?;
        let to = match (&now, &self.to) {
            (Some(now), _) => now,
            (None, Some(name)) => snapshot_called(state, name)?,
            (None, None) => return Err(no_snapshot()),
        };
        for one in [from, to] {
            one.refuse_other(&target)?;
        }
        let space = AddressSpace::within(&target, from.snapshot.spans())?;
        let shared = from.snapshot.extra() & to.snapshot.extra();
        let by = self.by.as_ref().map(|by| key_of_changes(by, shared, snapshot::how_to_keep)).transpose()?;
        let range = self.range.as_ref();
        let asked_for = range.map(|range| snapshot::spans(range, state)).transpose()?;
        let CommonSpans { ranges, is_part } = from.compared(to, asked_for.as_ref())?;
        if is_part {
            say_partly_compared(context.sink)?;
        }
        let mut within = ranges;
        let compared = within.clone();
        if let Some(filter) = &self.filter {
            if now.is_none() {
                let error = eval::Error::new(filter.at, "`where` tests pages as they are now");
                return Err(error.hint("compare with the present: `diff A where FILTER`").into());
            }
            let ranges = within.unwrap_or_else(|| to.snapshot.spans().to_vec());
            let filter = eval::page_filter(filter, &space, state)?;
            let matching = matching_ranges(&space, &ranges, &filter, context.sink);
            if let Err(Error::Stopped(Stopped::Interrupted)) = matching {
                context.sink.note(NOTHING_COMPARED)?;
            }
            within = Some(matching?);
        }
        let names = names_in(&space, &state.symbols);
        let page = space.page();
        let mut regions = RegionGroups::default();
        regions.see(from.snapshot.regions());
        regions.see(to.snapshot.regions());
        let mut difference = Difference { page, target: &target, names, regions, rows: Vec::new() };
        from.snapshot.changes(&to.snapshot, within.as_deref(), &space).for_each(|change| difference.add(change));
        let Difference { mut rows, names, regions, .. } = difference;
        rows.sort_by_key(|row| row.record.start);
        if rows.is_empty() && self.filter.is_some() {
            let others = from.snapshot.changes(&to.snapshot, compared.as_deref(), &space);
            say_filtered(others.map(|change| change.pages).sum(), context.sink)?;
        }
        let changes = totals(&rows);
        let perhaps_copied =
            |kind| matches!(kind, EventKind::Moved | EventKind::ChangedNode | EventKind::CopiedOnWrite);
        if changes.iter().any(|(kind, _)| perhaps_copied(*kind)) && !target.machine.is_captured() {
            let within = from.time.min(to.time).elapsed().unwrap_or_default();
            note_forks(&target, within, "the two states", context.sink)?;
        }
        let flags_changed = changes.iter().any(|(kind, _)| *kind == EventKind::FlagsChanged);
        if flags_changed && [from, to].iter().any(|one| one.snapshot.has_contents()) {
            context.sink.note(FLAGS_OF_READING)?;
        }
        let mut blind = unobservable(&space, from.snapshot.spans(), shared);
        blind.extend(hidden_writes(from, to, compared.as_deref(), no_contents));
        let seconds = seconds(to.time) - seconds(from.time);
        if seconds < 0.0 {
            context.sink.note(format!("'{}' is the later one: changes are shown backwards", from.name))?;
        }
        let is_whole = from.is_of_file || to.is_of_file;
        let mut effect = NetEffect::default();
        rows.iter().for_each(|row| effect += row.effect);
        let summary = DiffSummary {
            from: from.name.clone(),
            to: to.name.clone(),
            seconds: if is_whole { seconds.round() } else { seconds },
            changes,
            effect,
            cut: 0,
            uncompared: to.snapshot.uncompared(&from.snapshot),
            blind,
        };
        match by {
            None => {
                let rows = rows.into_iter().map(|row| row.record).collect();
                show(summary, rows, cut, |row: &ChangeRow| row.pages, context.sink)?
            }
            Some(by) => {
                let symbols = PagesOfSymbols::new(names, page);
                let reader = FactReader::of_pages(&space);
                let groups = groups(by, &rows, symbols, &regions, &reader);
                show(summary, groups, cut, net, context.sink)?
            }
        }
        Ok(Flow::Done)
    }
}

const FLAGS_OF_READING: &str = "some flags may have changed because pmdb read the contents (referenced, idle, active)";

/// Why writes to pages that keep their frames do not show; `None` if all would show. A capture may give the reason.
fn hidden_writes(
    from: &NamedSnapshot,
    to: &NamedSnapshot,
    within: Option<&[AddressRange]>,
    of_capture: Option<String>,
) -> Option<Blind> {
    let without = match (from.snapshot.has_contents(), to.snapshot.has_contents()) {
        (true, true) => return None,
        (true, false) => Some(to),
        (false, true) => Some(from),
        (false, false) => None,
    };
    if !from.snapshot.hides_writes(&to.snapshot, within) {
        return None;
    }
    let reason = of_capture.unwrap_or_else(|| match without {
        Some(without) => format!("the snapshot '{}' has no contents: make it `with content`", without.name),
        None => "writes in place show only after `snapshot NAME with content`".to_owned(),
    });
    Some(Blind { kind: EventKind::Written, reason })
}

fn say_partly_compared(sink: &mut dyn Sink) -> Result<(), Stopped> {
    sink.note("only the part that both snapshots cover was compared")
}

fn say_filtered(pages: u64, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let message = match pages {
        0 => return Ok(()),
        1 => "the filter keeps no change; without it 1 page has changed".to_owned(),
        pages => format!("the filter keeps no change; without it {} pages have changed", count(pages)),
    };
    sink.note(message)
}

/// The earlier snapshot.
fn earlier<'a>(state: &'a crate::state::DebugState, asked: &Diff) -> Result<&'a NamedSnapshot, Error> {
    match &asked.from {
        Some(name) => snapshot_called(state, name),
        None => state.snapshots.iter().next_back().ok_or_else(no_snapshot),
    }
}

fn no_snapshot() -> Error {
    Error::refused("there is no snapshot", eval::NO_SNAPSHOT_HINT)
}

/// What is said after Ctrl-C.
const NOTHING_COMPARED: &str = "interrupted: nothing was compared, and the earlier snapshot is kept";

/// The earlier state, from a capture: with contents if both sides are files with memory. Otherwise also why there are
/// none.
fn captured(
    context: &mut Context,
    target: &Target,
    file: &Spanned<String>,
    range: Option<&Spanned<Range>>,
) -> Result<(NamedSnapshot, Option<String>), Error> {
    let is_snapshot = context.state.snapshots.iter().any(|snapshot| snapshot.name == file.node);
    let earlier = match capture::open(&file.node) {
        Err(error) if is_snapshot && !std::path::Path::new(&file.node).exists() => {
            let hint = format!("a file follows `from`; for the snapshot: `diff {}`", file.node);
            let refused = eval::Error::new(file.at, error.message()).hint(hint);
            return Err(eval::Error { code: error.code(), ..refused }.into());
        }
        earlier => earlier?,
    };
    let spans = range.map(|range| snapshot::spans(range, context.state)).transpose()?;
    let is_file = target.machine.is_captured();
    let has_memory = |target: &Target| inspect::has_memory(&AddressSpace::of(target)?);
    let name = lang::escape('"', &file.node);
    let (with, reason): (&[SnapshotPart], _) = match (has_memory(&earlier)?, is_file) {
        // Reading marks the pages of a process as used, so it takes a word.
        (true, false) => {
            (&[], Some(format!("for contents, write `snapshot old from {name} with content`, then `diff old`")))
        }
        (true, true) if has_memory(target)? => (&[SnapshotPart::Content], None),
        (true, true) => (&[], Some("the open capture has no memory (`capture FILE with memory`)".to_owned())),
        (false, _) => (&[], Some(format!("{name} has no memory (`capture FILE with memory`)"))),
    };
    Ok((snapshot::take(context, &earlier, file.node.clone(), spans, with)?, reason))
}

/// A snapshot of the present, with the range and the kept facts of the earlier one.
fn present(context: &mut Context, asked: &Diff, read: Option<&NamedSnapshot>) -> Result<NamedSnapshot, Error> {
    let target = context.target()?;
    let from = read.map_or_else(|| earlier(context.state, asked), Ok)?;
    from.refuse_other(&target)?;
    let (sink, symbols) = (&mut *context.sink, &context.state.symbols);
    let now = from.now(&target, symbols).and_then(|open| snapshot::finish(open, sink));
    or_say(now, NOTHING_COMPARED, sink)
}

/// The pages of `ranges` that the filter keeps, as ranges in order.
fn matching_ranges(
    space: &AddressSpace,
    ranges: &[AddressRange],
    filter: &inspect::Filter,
    sink: &mut dyn Sink,
) -> Result<Vec<AddressRange>, Error> {
    let mut found = Vec::new();
    let question = Question::of_kept(filter, Evidence::empty());
    let ended = rows::sweep(space, ranges, question, sink, |sweep, sink| {
        while let Some(kept) = sweep.next(sink)? {
            found.extend(kept.pages.filter_map(|page| page.range(space.page())));
        }
        Ok(())
    })?;
    if let Some(stopped) = ended.stopped {
        return Err(stopped.into());
    }
    say_undecided(&ended.selection.undecided, "page", sink)?;
    let spans = Spans::new(found, Origin::Written);
    Ok(spans.map_or(Vec::new(), |spans| spans.ranges().to_vec()))
}

/// A row, and what it adds to the totals.
struct RowWithEffect {
    record: ChangeRow,
    effect: NetEffect,
    /// The number of its region among the groups.
    group: Option<usize>,
}

/// Collects the rows of a diff.
struct Difference<'a> {
    page: PageSize,
    target: &'a Target,
    names: symbol::TargetSymbols<'a>,
    regions: RegionGroups,
    rows: Vec<RowWithEffect>,
}

impl Difference<'_> {
    fn add(&mut self, change: Change) {
        let Some(start) = change.address else {
            return;
        };
        let end = match change.range {
            Some(range) => range.end(),
            None => start.checked_add(change.pages << self.page.shift()).unwrap_or(start),
        };
        let symbol = |address| brief(&self.names, address).filter(|_| change.range.is_none());
        let (symbol, last_symbol) = (symbol(start), end.checked_sub(1).and_then(symbol));
        let group = change.region.as_ref().and_then(|region| self.regions.number(region));
        let effect = change.effect;
        let record = ChangeRow {
            change: change.kind,
            start,
            end,
            pages: change.pages,
            detail: detail(&change, self.target),
            before: change.before.map(|facts| with_average_mark(facts, self.target)),
            after: change.after.map(|facts| with_average_mark(facts, self.target)),
            region: change.region.map(|region: Region| region.name),
            symbol,
            last_symbol,
        };
        self.rows.push(RowWithEffect { record, effect, group });
    }
}

/// The number of pages of each kind of change, and of region changes. Pages that went with their region count as gone.
fn totals(rows: &[RowWithEffect]) -> Numbers<EventKind> {
    let mut totals: BTreeMap<EventKind, u64> = BTreeMap::new();
    for RowWithEffect { record: row, .. } in rows {
        tally(&mut totals, row.change, row.pages);
    }
    Numbers(totals.into_iter().collect())
}

/// Emits the totals, and then the rows or groups within the cut.
fn show<T: Record>(
    mut summary: DiffSummary,
    mut rows: Vec<T>,
    cut: Option<RowLimit>,
    size: impl Fn(&T) -> u64,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    summary.cut = rows::keep_shown(&mut rows, cut, size) as u64;
    sink.emit(&summary)?;
    rows.iter().try_for_each(|row| sink.emit(row))
}

/// Groups of rows, the largest net effect first. By symbol, a row is split between the symbols that its pages begin in.
fn groups(
    by: Key,
    rows: &[RowWithEffect],
    mut symbols: PagesOfSymbols,
    regions: &RegionGroups,
    reader: &FactReader,
) -> Vec<ChangeGroup> {
    let mut groups: BTreeMap<String, (ChangeGroup, BTreeMap<EventKind, u64>)> = BTreeMap::new();
    let mut add = |key: String, row: &RowWithEffect, pages: u64| {
        let (group, changes) = groups.entry(key).or_insert_with_key(|key| {
            let group = ChangeGroup {
                by: by.to_string(),
                key: key.clone(),
                region: row.record.region.clone().filter(|_| by == Key::Region),
                pages: 0,
                regions: 0,
                changes: Numbers(Vec::new()),
                effect: NetEffect::default(),
            };
            (group, BTreeMap::new())
        });
        tally(changes, row.record.change, pages);
        group.pages += pages;
        group.regions += u64::from(!row.record.change.is_of_pages());
        group.effect += row.effect.part(pages, row.record.pages);
    };
    for whole in rows {
        let row = &whole.record;
        let region = || name_among_symbols(row.region.as_ref().unwrap_or(&Name::default()));
        match by {
            Key::Page(field) => {
                let answer = group_of_change(field, row.after.as_ref());
                let name = answer.map(|answer| name_of_group(reader, field, answer));
                add(name.unwrap_or_else(|| row.change.words().to_owned()), whole, row.pages);
            }
            Key::Symbol if row.change.is_of_pages() => {
                let parts: Vec<_> = symbols.split(row.start, row.pages).collect();
                for (_, pages, symbol) in parts {
                    let key = symbol.map_or_else(region, |symbol| symbols.name(symbol));
                    add(key, whole, pages);
                }
            }
            Key::Symbol => add(region(), whole, row.pages),
            Key::Region => {
                let region = whole.group.and_then(|number| regions.region(number));
                add(region.map_or_else(String::new, name_of_region), whole, row.pages);
            }
            _ => add(row.change.words().to_owned(), whole, row.pages),
        }
    }
    let groups = groups.into_values();
    let groups =
        groups.map(|(group, changes)| ChangeGroup { changes: Numbers(changes.into_iter().collect()), ..group });
    let mut groups: Vec<ChangeGroup> = groups.collect();
    groups.sort_by_key(|group| {
        Reverse((net(group), group.effect.swap_came.abs_diff(group.effect.swap_went), group.pages))
    });
    groups
}

fn net(group: &ChangeGroup) -> u64 {
    group.effect.came.abs_diff(group.effect.went)
}
