//! `regions [TEXT] [where FILTER] [by KEY] [limit N|top N] [full]`: all regions.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::region;
use super::rows::{RowLimit, finish, note_hidden_rows, pull, say_left_out};
use super::symbols::pattern_text;
use crate::eval::{self, RegionFilter, Scope as _, Spans, Value};
use crate::hint::names_sorting;
use crate::inspect::{AddressSpace, RegionAmount, RegionQuestion, RegionStats, RegionSums, StateSet, ViewedRegion};
use crate::kernel::PageSize;
use crate::kernel::smaps::Smaps;
use crate::kernel::words::worded;
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, filter, one_of, part_of_name, silent_word, word};
use crate::lang::{self, FilterExpression, FilterField as _, RegionField, Spanned, display};
use crate::process::{self, Target};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::text::pages::{remarks, total};
use crate::render::units::{count, counted, percent, size};
use crate::render::{More, Record, Sink};
use crate::report::record::record;
use crate::report::{Declared, RegionReport, Shape, Stopped};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};

worded! {
    /// What a region is, as a column to sort by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RegionColumn, word {
        /// Largest first.
        Size = "size",
        /// By the name of the mapping.
        Name = "name",
        /// By first address.
        Start = "start",
        /// By the address after the last.
        End = "end",
        /// By permissions, as text.
        Perms = "perms",
    }
}

/// The order of the rows of `regions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionOrder {
    /// Largest amount of memory first.
    Amount(RegionAmount),
    /// By another column.
    Column(RegionColumn),
}

impl RegionOrder {
    /// The amount of memory that is sorted by, if it is one.
    fn amount(self) -> Option<RegionAmount> {
        match self {
            RegionOrder::Amount(amount) => Some(amount),
            RegionOrder::Column(_) => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            RegionOrder::Amount(amount) => amount.word(),
            RegionOrder::Column(column) => column.word(),
        }
    }

    /// Whether the largest comes first.
    fn is_by_size(self) -> bool {
        matches!(self, RegionOrder::Amount(_) | RegionOrder::Column(RegionColumn::Size))
    }
}

/// A column to sort by; `private` is another spelling of `exclusive`.
fn order_word(input: Tokens<'_>) -> Parsed<'_, RegionOrder> {
    match silent_word("private")(input) {
        Ok((behind, _)) => Ok((behind, RegionOrder::Amount(RegionAmount::Exclusive))),
        Err(_) => alt((map(one_of, RegionOrder::Amount), map(one_of, RegionOrder::Column))).parse(input),
    }
}

/// The words that begin a clause of `regions`. A part of a name may stand before them.
const REGION_CLAUSES: &[&str] = &["where", "by", "limit", "top", "full"];

/// `regions [TEXT] [where FILTER] [by KEY] [limit N|top N] [full]`
#[derive(Debug)]
pub struct Regions {
    /// What the name must contain, or a variable that holds it.
    name: Option<Spanned<String>>,
    /// Which regions; all if absent.
    filter: Option<Spanned<FilterExpression<RegionField>>>,
    /// In which order; by address if absent.
    by: Option<RegionOrder>,
    /// Which of the rows; all if absent.
    cut: Option<lang::LimitClause>,
    /// Whether to add what only `smaps` knows.
    is_full: bool,
}

impl Command for Regions {
    const RECORDS: &'static [Shape] = &[RegionsSummary::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("regions").how(),
        group: Group::Look,
        summary: "list the regions, with the resident memory of each",
        text: "\
Lists the regions of the process with addresses, permissions, size, resident, shared and swapped bytes, and name.

  TEXT          only regions with this text in their name
  $NAME         only regions in the range that this variable holds
  where FILTER  only regions that match: size, present, pss, swapped, shared, exclusive, huge, name, perms and more \
                (`help filters`)
  by KEY        sorted by a column: amounts from the largest down, the others from the lowest up
  limit N       the first N rows
  top N         the N largest rows, by size or by the column of `by`
  full          also the fields that only smaps has

The totals cover all regions, also with `limit` and `top`. `rss` is `present` without zero pages and the hugetlb pool.

In a filter, name ~ \"REGEX\" matches a regular expression. `shared > 1M` compares the bytes in that column, and \
`shared` alone selects shared mappings. `exclusive > 1M` compares the bytes that are mapped only here.

`after FILE` is a region without a name that begins where writable data of FILE end, as `.bss` does.

The mark (deleted) after a name means that the file was deleted. A file whose own name ends in this way is shown with \
`\\x20` in place of the blank: `notes\\x20(deleted)`.",
        examples: &[
            example("regions", "list all regions, by address"),
            example("regions by rss", "list the most resident regions first"),
            example("regions where writable and rss > 64K", "list writable regions with more than 64 KiB resident"),
            example("regions libc", "list regions with libc in their name"),
            example("regions by pss top 5", "list the five largest proportional shares"),
            example("regions where name ~ \"\\.so\"", "list regions whose names match a regular expression"),
            example("regions where name == \"[heap]\"", "list the regions of one name"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (mut input, name) = opt(|input| part_of_name(input, REGION_CLAUSES)).parse(input)?;
        let (mut where_, mut by, mut cut, mut full) = (None, None, None, None);
        while clause(&mut input, &mut where_, after("where", filter))?
            || clause(&mut input, &mut by, after("by", order_word))?
            || clause(&mut input, &mut cut, cut_to)?
            || clause(&mut input, &mut full, word("full"))?
        {}
        Ok((input, Regions { name, filter: where_, by, cut, is_full: full.is_some() }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        display::write_quoted(f, self.name.as_ref().map(|name| name.node.as_str()))?;
        display::clause(f, "where", self.filter.as_ref().map(|filter| &filter.node))?;
        display::clause(f, "by", self.by.map(|by| by.word()))?;
        display::cut(f, self.cut.as_ref())?;
        display::word_if(f, self.is_full, "full")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let order = order(self.by, cut)?;
        let target = context.target()?;
        let space = AddressSpace::of(&target)?;
        let filter = self.filter.as_ref().map(|filter| eval::region_filter(filter, context.state)).transpose()?;
        let name = self.name.as_ref().map(|name| Named::of(name, context));
        let is_named = |viewed: &ViewedRegion| name.as_ref().is_none_or(|name| name.is_of(viewed));
        if let Some(Named::Part(part)) = &name
            && !space.viewed_regions().iter().any(is_named)
        {
            self.say_unnamed(part, context)?;
        }
        let asked = filter.as_ref().map(RegionFilter::amounts).unwrap_or_default();
        let question = RegionQuestion::new(&asked, |viewed, stats| match &filter {
            Some(filter) if is_named(viewed) => filter.holds(viewed, stats),
            _ => Some(is_named(viewed)),
        });
        let question = question.ranked(order.and_then(RegionOrder::amount)).swapped_by_smaps(self.is_full);
        let mut regions = space.kept_regions(question, region::SHOWN)?.with_budget(context.sink.budget());
        let fields = filter.as_ref().map_or(&[][..], RegionFilter::fields);
        refuse_unknown_sharing(fields, &space)?;
        if self.filter.is_some() || self.name.is_some() || self.is_full {
            context.sink.show(More::SmallRows);
        }
        context.state.last_address = None;
        let columns: Vec<_> = fields.iter().map(|field| field.name()).chain(order.map(RegionOrder::word)).collect();
        context.sink.name_columns(&columns);
        let smaps = self.is_full.then(|| space.read_smaps(&mut context.sink.budget())).transpose()?;
        let has_pss =
            order.and_then(RegionOrder::amount) == Some(RegionAmount::Pss) || fields.contains(&RegionField::Pss);
        let left = RowLimit::limit(cut).unwrap_or(u64::MAX);
        let mut rows = RegionRows { order, has_pss, smaps, left, sorted: Vec::new() };
        let next = || regions.next();
        let stopped = pull(context.sink, "regions", next, |(viewed, stats), sink| Ok(rows.add(viewed, &stats, sink)?))?;
        if stopped == Some(Stopped::Closed) {
            return Err(Stopped::Closed.into());
        }
        let sums = regions.finish();
        let stopped = match rows.emit_sorted(cut, context.sink) {
            Err(Stopped::Closed) => return Err(Stopped::Closed.into()),
            answer => stopped.or(answer.err()),
        };
        let most = cut.map_or(u64::MAX, |cut| cut.most);
        let more = usize::try_from(sums.regions.saturating_sub(most)).unwrap_or(usize::MAX);
        note_hidden_rows(more, "region", context.sink)?;
        let undecided = say_unknown(&sums, order, context)?;
        let summary = RegionsSummary {
            regions: sums.regions,
            size: sums.size,
            present: sums.present,
            swapped: sums.swapped,
            changed: sums.changed,
            cut_short: stopped.is_some(),
            undecided,
        };
        finish(&summary, stopped, context.sink)?;
        note_limit(&target, &space, context.sink)?;
        Ok(Flow::Done)
    }
}

impl Regions {
    /// Says what was probably meant by a text that no region has in its name.
    fn say_unnamed(&self, part: &str, context: &mut Context) -> Result<(), Error> {
        let message = format!("no region has `{part}` in its name");
        if names_sorting(part) {
            let order = self.by.unwrap_or(RegionOrder::Amount(RegionAmount::Rss)).word();
            return Err(Error::refused(message, format!("to sort: `regions by {order}`")));
        }
        let parses = |filter: &&String| context.commands.language.parse_line(filter).is_ok();
        let conditions = [format!("regions where {part}"), format!("regions where {part} > 0")];
        let instead = match conditions.iter().find(parses) {
            Some(condition) => format!("as a condition: `{condition}`"),
            None => format!("for a symbol: `region {part}`"),
        };
        Ok(context.sink.note(format!("{message}; {instead}"))?)
    }
}

/// The regions that are meant by a text.
enum Named {
    /// Regions in the range that a variable holds.
    In(Spans),
    /// Regions with this part in their names.
    Part(String),
}

impl Named {
    fn of(name: &Spanned<String>, context: &Context) -> Self {
        match name.node.strip_prefix('$').and_then(|variable| context.state.variable(variable)) {
            Some(Value::Range(spans) | Value::Symbol(spans)) => Named::In(spans),
            _ => Named::Part(pattern_text(context, name).node),
        }
    }

    fn is_of(&self, viewed: &ViewedRegion) -> bool {
        match self {
            Named::In(spans) => spans.ranges().iter().any(|span| span.intersection(viewed.range()).is_some()),
            Named::Part(part) => viewed.region.name.to_string().contains(part.as_str()),
        }
    }
}

/// Leads to the reasons why there are so many regions, if there may be few more.
fn note_limit(target: &Target, space: &AddressSpace, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let mappings = super::process::counted_regions(space.regions()).count() as u64;
    let Some(most) = super::process::used_limit(target, mappings) else { return Ok(()) };
    let used = format!("{} of {} mappings (vm.max_map_count)", count(mappings), count(most));
    sink.note(format!("the process has {used}; `info process` shows why they are not merged"))
}

/// Cores of other programs do not have all fields of maps.
fn refuse_unknown_sharing(fields: &[RegionField], space: &AddressSpace) -> Result<(), Error> {
    let of_maps = [RegionField::Private, RegionField::Shared, RegionField::Inode];
    let is_asked = fields.iter().any(|field| of_maps.contains(field));
    if is_asked && space.regions().any(|region| region.permissions.sharing_unknown) {
        let what = "whether regions are shared is not in this core, nor are the inodes of their files";
        return Err(process::Error::not_available(what).into());
    }
    Ok(())
}

/// The rows, which are emitted at once, or sorted first.
struct RegionRows<'a> {
    order: Option<RegionOrder>,
    /// Whether rows have the proportional share.
    has_pss: bool,
    /// The smaps of all regions, if that is asked for.
    smaps: Option<&'a [Smaps]>,
    /// How many rows may still be emitted at once.
    left: u64,
    /// The others, each with the number that it is sorted by.
    sorted: Vec<(Option<u64>, Box<RegionReport>)>,
}

impl RegionRows<'_> {
    fn add(&mut self, viewed: &ViewedRegion, stats: &RegionStats, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let mut report = region::report(viewed, Some(stats));
        if self.has_pss {
            report.pss = report.why.take("pss", stats.pss.clone());
        }
        if let Some(smaps) = self.smaps {
            region::add_smaps(&mut report, viewed, smaps);
        }
        match self.order {
            None if self.left == 0 => {}
            None => {
                self.left -= 1;
                sink.emit(&report)?;
            }
            Some(order) => self.sorted.push((sorted_by(order, viewed, stats), Box::new(report))),
        }
        Ok(())
    }

    fn emit_sorted(mut self, cut: Option<RowLimit>, sink: &mut dyn Sink) -> Result<(), Stopped> {
        self.sorted.sort_by(|(amount, a), (other, b)| match self.order {
            Some(RegionOrder::Column(RegionColumn::Name)) => a.name.cmp(&b.name),
            Some(RegionOrder::Column(RegionColumn::Start)) => a.start.cmp(&b.start),
            Some(RegionOrder::Column(RegionColumn::End)) => a.end.cmp(&b.end),
            Some(RegionOrder::Column(RegionColumn::Perms)) => a.perms.to_string().cmp(&b.perms.to_string()),
            _ => other.cmp(amount),
        });
        let most = cut.map_or(usize::MAX, RowLimit::rows);
        self.sorted.iter().take(most).try_for_each(|(_, report)| sink.emit(&**report))
    }
}

/// The kernel's own regions are the same in every process, so that this is noted once a session.
const OF_KERNEL: &str = "left out: the kernel's own regions for which the filter is unknown, such as [vvar] (the page map does not show their pages)";

/// Notes what is unknown of regions. Returns how many the filter leaves out because it cannot be evaluated.
fn say_unknown(sums: &RegionSums, order: Option<RegionOrder>, context: &mut Context) -> Result<u64, Stopped> {
    if let Some(by) = order.filter(|_| sums.unranked > 0) {
        let regions = counted(sums.unranked, "region");
        context.sink.note(format!("sorted last: {regions} whose `{}` is unknown", by.word()))?;
    }
    let undecided = [&sums.of_uncertain_states, &sums.undecided].into_iter().flatten();
    for (regions, why) in undecided.clone() {
        say_left_out(*regions, "region", &why.to_string(), context.sink)?;
    }
    if sums.of_kernel > 0 && context.state.noted.insert(OF_KERNEL.to_owned()) {
        context.sink.note(OF_KERNEL)?;
    }
    if let Some(reason) = sums.uncertain.and_then(StateSet::uncertainty) {
        context.sink.note(format!("the swapped bytes are {reason}"))?;
    }
    Ok(undecided.map(|(regions, _)| regions).sum())
}

/// The order that rows are sorted by: `top` alone is by size.
fn order(by: Option<RegionOrder>, cut: Option<RowLimit>) -> Result<Option<RegionOrder>, Error> {
    match (by, RowLimit::top(cut)) {
        (Some(order), Some(_)) if !order.is_by_size() => {
            let word = order.word();
            let hint = format!("for the first N: `regions by {word} limit N`");
            Err(Error::refused(format!("`top` shows the largest, and `{word}` has no size"), hint))
        }
        (None, Some(_)) => Ok(Some(RegionOrder::Column(RegionColumn::Size))),
        (order, _) => Ok(order),
    }
}

/// The number that a row is sorted by; `None` for an unknown one, and in orders that begin with the lowest.
fn sorted_by(order: RegionOrder, viewed: &ViewedRegion, stats: &RegionStats) -> Option<u64> {
    match order {
        RegionOrder::Amount(amount) if stats.why_hidden().is_none() => stats.amount(amount).ok(),
        RegionOrder::Column(RegionColumn::Size) => Some(viewed.range().len()),
        _ => None,
    }
}

record! {
    /// The totals of `regions`.
    pub struct RegionsSummary as "regions-summary" {
        /// Regions listed.
        regions: u64,
        /// Bytes they span.
        size: u64,
        /// Bytes present, as far as the page map shows them.
        present: Option<u64>,
        /// Bytes swapped, as far as the page map shows them; `null` if shared memory may be in swap, which only
        /// /proc/kcore shows.
        swapped: Option<u64>,
        /// Whether regions changed during the command.
        changed: bool,
        /// Whether the command was interrupted: the totals then cover what was seen.
        cut_short: bool,
        /// Regions that are left out because the filter cannot be evaluated for them. The kernel's own do not count.
        undecided: u64,
    }
}

impl Record for RegionsSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(write_summary, self);
        text.line(|lines, summary| remarks(lines, summary.cut_short, summary.changed), self);
        text.notes();
    }

    fn totals(&self, page: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", page.pages_in(self.size)), ("_bytes", self.size)]
    }
}

/// `23 regions, 12 MiB: 3 MiB present (25 %)`
fn write_summary(lines: &mut Lines, summary: &RegionsSummary) {
    let line = lines.line();
    line.plain(total(summary.regions, "region", summary.size));
    if let Some(present) = summary.present.filter(|_| summary.regions > 0) {
        line.plain(format!(": {} present", size(present)));
        if let Some(share) = percent(present, summary.size) {
            line.plain(format!(" ({share})"));
        }
    }
    if let Some(swapped) = summary.swapped.filter(|&swapped| swapped > 0) {
        line.plain(format!(", {} swapped", size(swapped)));
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(regions_summary())]
    }

    pub fn regions_summary() -> RegionsSummary {
        RegionsSummary {
            regions: 23,
            size: 12 << 20,
            present: Some(3 << 20),
            swapped: Some(8192),
            changed: true,
            cut_short: true,
            undecided: 0,
        }
    }
}
