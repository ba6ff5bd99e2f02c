//! `diff [A] [B]`: what changed between two snapshots, or since one.

mod records;

use super::capture;
use super::change_groups::{GroupNames, key_of_changes};
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::named_pages::{PagesOfSymbols, names_in};
use super::rows::{self, RowLimit, say_undecided};
use super::snapshot::{self, SnapshotPart, or_say, seconds, snapshot_called};
use super::unobserved::{note_forks, unobservable};
use super::watch::{detail, symbols_at_ends};
use crate::eval::{self, CommonSpans};
use crate::inspect::{
    self, AddressSpace, Change, ChangeCounts, ChangesOfGroup, Difference, Evidence, FactReader, Filter, FoundChanges,
};
use crate::kernel::{AddressRange, Key};
use crate::lang::parser::{
    Parsed, Tokens, after, clause, cut_to, filter, key, later, range, snapshot_file, snapshot_name,
};
use crate::lang::{self, FilterExpression, KeyFacts, PageField, Range, Spanned, TakenKeys, WrittenKey, display};
use crate::process::Target;
use crate::render::units::count;
use crate::render::{Record, Sink};
use crate::report::{Blind, EventKind, Numbers, Shape, Stopped};
use crate::state::{DebugState, NamedSnapshot};
use crate::symbol::TargetSymbols;
use nom::Parser;
use nom::combinator::{map, opt};
use records::{ChangeGroup, ChangeRow, DiffSummary};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Formatter};

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
        name: CommandName::new("diff").of_session().whole(),
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
  by KEY        a row for each state or NUMA node, or for each flag or map count that both snapshots have, after the \
                changes
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
shown as one move. A page that came and went again is not shown. One \
access can bring more than its page: a whole huge page, or neighbours of a page of a file. If the process forked after the first snapshot, a \
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
            example("snapshot before\ndiff before by node", "add up the changes by the NUMA node after them"),
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
        let (state, sink) = (&*context.state, &mut *context.sink);
        let sides = Sides::find(self, state, read.as_ref(), now.as_ref())?;
        let Sides { from, to } = sides;
        sides.refuse_other(&target)?;
        let space = AddressSpace::in_ranges(&target, from.snapshot.spans())?;
        let by = self.by.as_ref().map(|by| key_of_changes(by, sides.extra(), snapshot::how_to_keep)).transpose()?;
        // Snapshots have all facts but the zones of frames.
        space.require(by.map(Key::need_of_samples).unwrap_or_default() & Evidence::ZONES)?;
        let asked_for = self.range.as_ref().map(|range| snapshot::spans(range, state)).transpose()?;
        let CommonSpans { ranges, is_part } = from.compared(to, asked_for.as_ref())?;
        if is_part {
            sink.note("only the part that both snapshots cover was compared")?;
        }
        let filter = self.filter.as_ref().map(|filter| self.page_filter(filter, &space, state)).transpose()?;
        let symbols = || PagesOfSymbols::new(names_in(&space, &state.symbols), space.page_size());
        let reader = || FactReader::of_pages(&space);
        let mut names = by.map(|by| GroupNames { by, reader: reader(), symbols: symbols() });
        let difference = Difference::new(&space, &from.snapshot, &to.snapshot);
        let difference = difference.only(ranges.as_deref()).matching(filter.as_ref());
        let difference = match &mut names {
            Some(names) => difference.by(names.by, Some(names.symbol_at())),
            None => difference,
        };
        let comparison = compared(difference, sink)?;
        sides.say_of_kinds(&comparison.counts.kinds, &target, sink)?;
        let mut blind = unobservable(&space, from.snapshot.spans(), sides.extra());
        blind.extend(hidden_writes(from, to, ranges.as_deref(), no_contents));
        let summary = DiffSummary { blind, ..sides.summary(&comparison.counts, sink)? };
        match (comparison.groups, names) {
            (Some(groups), Some(names)) => show(summary, group_rows(groups, &names), cut, net, sink)?,
            _ => {
                let names = names_in(&space, &state.symbols);
                let rows = comparison.changes.into_iter().filter_map(|change| row(change, &names, &space));
                show(summary, rows.collect(), cut, |row| row.pages, sink)?
            }
        }
        Ok(Flow::Done)
    }
}

impl Diff {
    /// A filter tests pages as they are now.
    fn page_filter(
        &self,
        filter: &Spanned<FilterExpression<PageField>>,
        space: &AddressSpace,
        state: &DebugState,
    ) -> Result<Filter, Error> {
        if self.to.is_some() {
            let error = eval::Error::new(filter.at, "`where` tests pages as they are now");
            return Err(error.hint("compare with the present: `diff A where FILTER`").into());
        }
        Ok(eval::page_filter(filter, space, state)?)
    }
}

/// What changed. Notes what a filter leaves out.
fn compared(difference: Difference, sink: &mut dyn Sink) -> Result<FoundChanges, Error> {
    let mut difference = difference.with_budget(sink.budget());
    if let Some(stopped) = rows::pull(sink, "pages", || difference.next(), |(), _| Ok(()))? {
        if stopped == Stopped::Interrupted {
            sink.note(NOTHING_COMPARED)?;
        }
        return Err(stopped.into());
    }
    let found = difference.finish()?;
    say_undecided(&found.undecided, "page", sink)?;
    say_filtered(found.left_out, sink)?;
    Ok(found)
}

/// The two states that are compared.
#[derive(Clone, Copy)]
struct Sides<'a> {
    from: &'a NamedSnapshot,
    to: &'a NamedSnapshot,
}

impl<'a> Sides<'a> {
    /// Finds both states: `read` is that of a file, and `now` the present. The others are snapshots.
    fn find(
        asked: &Diff,
        state: &'a DebugState,
        read: Option<&'a NamedSnapshot>,
        now: Option<&'a NamedSnapshot>,
    ) -> Result<Self, Error> {
        let from = read.map_or_else(|| earlier(state, asked), Ok)?;
        match (now, &asked.to) {
            (Some(to), _) => Ok(Sides { from, to }),
            (None, Some(name)) => Ok(Sides { from, to: snapshot_called(state, name)? }),
            (None, None) => Err(no_snapshot()),
        }
    }

    fn refuse_other(self, target: &Target) -> Result<(), Error> {
        self.from.refuse_other(target)?;
        Ok(self.to.refuse_other(target)?)
    }

    /// What both keep beside the entries.
    fn extra(self) -> Evidence {
        self.from.snapshot.extra() & self.to.snapshot.extra()
    }

    /// Says why changes of these kinds may be others than they seem.
    fn say_of_kinds(self, kinds: &BTreeMap<EventKind, u64>, target: &Target, sink: &mut dyn Sink) -> Result<(), Error> {
        let perhaps_copied = [EventKind::Moved, EventKind::ChangedNode, EventKind::CopiedOnWrite];
        if perhaps_copied.iter().any(|kind| kinds.contains_key(kind)) && !target.machine.is_captured() {
            let within = self.from.time.min(self.to.time).elapsed().unwrap_or_default();
            note_forks(target, within, "the two states", sink)?;
        }
        let has_contents = [self.from, self.to].iter().any(|one| one.snapshot.has_contents());
        if kinds.contains_key(&EventKind::FlagsChanged) && has_contents {
            sink.note(FLAGS_OF_READING)?;
        }
        Ok(())
    }

    fn summary(self, counts: &ChangeCounts, sink: &mut dyn Sink) -> Result<DiffSummary, Error> {
        let Sides { from, to } = self;
        let seconds = seconds(to.time) - seconds(from.time);
        if seconds < 0.0 {
            sink.note(format!("`{}` is the later one: changes are shown backwards", from.name))?;
        }
        let is_whole = from.is_of_file || to.is_of_file;
        Ok(DiffSummary {
            from: from.name.clone(),
            to: to.name.clone(),
            seconds: if is_whole { seconds.round() } else { seconds },
            changes: Numbers(counts.kinds.clone().into_iter().collect()),
            effect: counts.effect,
            cut: 0,
            uncompared: to.snapshot.uncompared(&from.snapshot),
            blind: Vec::new(),
        })
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
        Some(without) => format!("the snapshot `{}` has no contents: make it `with content`", without.name),
        None => "writes in place show only after `snapshot NAME with content`".to_owned(),
    });
    Some(Blind { kind: EventKind::Written, reason })
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
fn earlier<'a>(state: &'a DebugState, asked: &Diff) -> Result<&'a NamedSnapshot, Error> {
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
    let earlier = match capture::open(&file.node, context.state) {
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

/// The row of a change; `None` for one of the whole process.
fn row(change: Change, names: &TargetSymbols, space: &AddressSpace) -> Option<ChangeRow> {
    let [symbol, last_symbol] = symbols_at_ends(&change, names, space.page_size());
    let start = change.address?;
    Some(ChangeRow {
        change: change.kind,
        start,
        end: change.addresses(space.page_size()).map_or(start, AddressRange::end),
        pages: change.pages,
        detail: detail(&change, space.target()),
        before: change.before,
        after: change.after,
        region: change.region.map(|region| region.name),
        symbol,
        last_symbol,
    })
}

/// The rows of the groups, the largest net effect first.
fn group_rows(groups: Vec<ChangesOfGroup>, names: &GroupNames) -> Vec<ChangeGroup> {
    let rows = by_name(groups, names).into_iter().map(|(key, of)| ChangeGroup {
        by: names.by.to_string(),
        key,
        region_bytes: of.region.as_ref().filter(|_| names.by == Key::Region).map(|region| region.range.len()),
        region: of.region.map(|region| region.name),
        pages: of.counts.pages,
        regions: of.counts.regions(),
        changes: Numbers(of.counts.kinds.into_iter().collect()),
        effect: of.counts.effect,
    });
    let mut rows: Vec<ChangeGroup> = rows.collect();
    rows.sort_by_cached_key(|row| Reverse((net(row), row.effect.swap_came.abs_diff(row.effect.swap_went), row.pages)));
    rows
}

/// The groups by their names: those of one name are one.
fn by_name(groups: Vec<ChangesOfGroup>, names: &GroupNames) -> BTreeMap<String, ChangesOfGroup> {
    let mut named: BTreeMap<String, ChangesOfGroup> = BTreeMap::new();
    for group in groups {
        match named.entry(names.name(&group)) {
            Entry::Occupied(mut first) => first.get_mut().counts += group.counts,
            Entry::Vacant(place) => _ = place.insert(group),
        }
    }
    named
}

fn net(group: &ChangeGroup) -> u64 {
    group.effect.came.abs_diff(group.effect.went)
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
