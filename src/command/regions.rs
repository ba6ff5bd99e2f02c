//! `regions [TEXT] [where FILTER] [by KEY] [limit N|top N] [full]`: all regions.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::region;
use super::rows::{RowLimit, finish, note_hidden_rows, say_left_out, states_are, stop_of_sweep};
use super::symbols::pattern_text;
use crate::eval::{self, Scope as _, Spans, Value};
use crate::inspect::{AddressSpace, Backing, RegionStats, StateSet, ViewedRegion};
use crate::kernel::smaps::Smaps;
use crate::kernel::words::worded;
use crate::kernel::{AddressRange, PageSize};
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, filter, one_of, part_of_name, silent_word, word};
use crate::lang::{self, FilterExpression, FilterField as _, RegionField, Spanned, display};
use crate::process;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::text::pages::{remarks, total};
use crate::render::units::{counted, percent, size};
use crate::report::record::record;
use crate::report::{Declared, Fact, RegionReport, Shape, Stopped};
use nom::Parser;
use nom::combinator::opt;
use std::fmt::{self, Formatter};

worded! {
    /// The order of the rows of `regions`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RegionOrder, word {
        /// Largest first.
        Size = "size",
        /// Most resident first.
        Rss = "rss",
        /// By the name of the mapping.
        Name = "name",
        /// Largest proportional share first.
        Pss = "pss",
        /// Most in swap first.
        Swapped = "swapped",
        /// Most mapped as huge pages first.
        Huge = "huge",
        /// Most present first, the hugetlb pool included.
        Present = "present",
        /// Most bytes that are also mapped elsewhere first.
        Shared = "shared",
        /// Most bytes of exclusive pages first.
        Exclusive = "exclusive",
        /// By first address.
        Start = "start",
        /// By the address after the last.
        End = "end",
        /// By permissions, as text.
        Perms = "perms",
    }
}

impl RegionOrder {
    /// Whether this order needs the counts of the pages of a region.
    fn needs_stats(self) -> bool {
        is_amount(self) && self != RegionOrder::Size
    }
}

/// A column to sort by; `private` is another spelling of `exclusive`.
fn order_word(input: Tokens<'_>) -> Parsed<'_, RegionOrder> {
    match silent_word("private")(input) {
        Ok((behind, _)) => Ok((behind, RegionOrder::Exclusive)),
        Err(_) => one_of(input),
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

The totals cover all regions, also with `limit` and `top`. `rss` is `present` without pages of zeros and the hugetlb pool.

In a filter, name ~ \"REGEX\" matches a regular expression. `shared > 1M` compares the bytes in that column, and \
`shared` alone selects shared mappings. `exclusive > 1M` compares the bytes that are mapped only here.

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
        let asked = self;
        let cut = RowLimit::of(asked.cut.as_ref(), context.state)?;
        let order = order(asked.by, cut)?;
        let full = asked.is_full;
        let target = context.target()?;
        let space = AddressSpace::of(&target)?;
        let filter = asked.filter.as_ref().map(|filter| eval::region_filter(filter, context.state)).transpose()?;
        let name = asked.name.as_ref();
        let within = name.and_then(|name| range_in(context, name));
        let part = name.map(|name| pattern_text(context, name).node);
        let is_named = |viewed: &ViewedRegion| match (&within, &part) {
            (Some(spans), _) => {
                let overlaps = |span: &AddressRange| span.intersection(viewed.range()).is_some();
                spans.ranges().iter().any(overlaps)
            }
            (None, Some(part)) => viewed.region.name.to_string().contains(part.as_str()),
            (None, None) => true,
        };
        if let Some(part) = part.as_deref().filter(|part| within.is_none() && names_sorting(part))
            && !space.regions().iter().any(is_named)
        {
            let order = asked.by.unwrap_or(RegionOrder::Rss).word();
            let message = format!("no region has `{part}` in its name");
            return Err(Error::refused(message, format!("to sort: `regions by {order}`")));
        }
        if let Some(part) = part.as_deref().filter(|_| within.is_none() && !space.regions().iter().any(is_named)) {
            let parses = |filter: &&String| context.commands.language.parse_line(filter).is_ok();
            let conditions = [format!("regions where {part}"), format!("regions where {part} > 0")];
            let instead = match conditions.iter().find(parses) {
                Some(condition) => format!("as a condition: `{condition}`"),
                None => format!("for a symbol: `region {part}`"),
            };
            context.sink.note(format!("no region has `{part}` in its name; {instead}"))?;
        }
        if filter.as_ref().is_some_and(|filter| filter.needs_stats()) || order.is_some_and(RegionOrder::needs_stats) {
            target.process.require_page_map()?;
        }
        let of_maps = [RegionField::Private, RegionField::Shared, RegionField::Inode];
        let asks_maps =
            filter.as_ref().is_some_and(|filter| filter.fields().iter().any(|field| of_maps.contains(field)));
        if asks_maps && space.regions().iter().any(|viewed| viewed.region.permissions.sharing_unknown) {
            let what = "whether regions are shared is not in this core, nor are the inodes of their files";
            return Err(process::Error::not_available(what).into());
        }
        let has_pages = target.process.has_page_map();
        context.state.last_address = None;
        let asked_fields = filter.iter().flat_map(|filter| filter.fields()).map(|field| field.name());
        let named: Vec<_> = asked_fields.chain(order.map(RegionOrder::word)).collect();
        context.sink.name_columns(&named);
        let asks = |field| filter.as_ref().is_some_and(|filter| filter.asks(field));
        let wants = |by: RegionOrder, field| order == Some(by) || asks(field);
        let wants_pss = wants(RegionOrder::Pss, RegionField::Pss);
        // Not all are counted here, but smaps has them without needing further rights.
        let may_be_in_smaps = |stats: &RegionStats| {
            wants_pss && stats.pss.is_err()
                || wants(RegionOrder::Rss, RegionField::Rss) && stats.rss.is_err()
                || wants(RegionOrder::Shared, RegionField::SharedBytes) && stats.shared.is_err()
                || wants(RegionOrder::Exclusive, RegionField::ExclusiveBytes) && stats.private.is_err()
                || wants(RegionOrder::Swapped, RegionField::Swapped)
                    && (stats.swapped.is_err() || stats.uncertainly_swapped().is_some())
        };
        let mut smaps = full.then(|| region::smaps(&target, context.sink)).transpose()?;
        let mut summary = RegionsSummary {
            regions: 0,
            size: 0,
            present: has_pages.then_some(0),
            swapped: has_pages.then_some(0),
            changed: false,
            cut_short: false,
            undecided: 0,
        };
        let mut sorted: Vec<(Option<u64>, Box<RegionReport>)> = Vec::new();
        let mut uncertain: Option<StateSet> = None;
        // Regions that the filter can neither keep nor leave out.
        let mut undecided: Option<(u64, String)> = None;
        let is_unknown = |viewed: &&ViewedRegion| {
            let asks = || filter.as_ref().is_some_and(|filter| filter.holds(viewed, None).is_none());
            viewed.region.permissions.is_unknown && is_named(viewed) && asks()
        };
        let without_rights = space.regions().iter().filter(is_unknown).count() as u64;
        let mut unseen = (without_rights > 0).then(|| (without_rights, "their rights are not in this core".to_owned()));
        let mut of_the_kernel = 0u64;
        // Regions that cannot be sorted by their amount.
        let mut unranked = 0u64;
        // Conditions that need no counting come first: they exclude most regions before their pages are counted.
        let is_wanted = |viewed: &&ViewedRegion| {
            is_named(viewed)
                && filter.as_ref().is_none_or(|filter| filter.needs_stats() || filter.holds(viewed, None) == Some(true))
        };
        let wanted: Vec<AddressRange> = space.regions().iter().filter(is_wanted).map(|viewed| viewed.range()).collect();
        let total = wanted.len() as u64;
        let mut done = 0;
        let sink = &mut *context.sink;
        let mut counts = space.region_stats(&wanted, region::SHOWN).within(sink.budget());
        let mut pull = || -> Result<(), Error> {
            while let Some((viewed, stats)) = counts.next()? {
                sink.progress(done, total, "regions")?;
                done += 1;
                let mut stats = stats;
                if may_be_in_smaps(&stats) && stats.why_hidden().is_none() && viewed.is_in_rss().is_ok() {
                    if smaps.is_none() {
                        smaps = Some(region::smaps_if_readable(&target, sink)?);
                    }
                    if let Some(smaps) = Smaps::at(smaps.as_deref().unwrap_or_default(), viewed.range().start()) {
                        region::take_from_smaps(&mut stats, smaps);
                    }
                }
                let stats = &stats;
                let holds = filter
                    .as_ref()
                    .filter(|filter| filter.needs_stats())
                    .map_or(Some(true), |filter| filter.holds(viewed, Some(stats)));
                let unknown = |field, fact: &Fact<u64>| fact.clone().err().filter(|_| asks(field));
                let hidden = stats
                    .why_hidden()
                    .or_else(|| unknown(RegionField::Swapped, &stats.swapped))
                    .or_else(|| unknown(RegionField::Rss, &stats.rss))
                    .or_else(|| unknown(RegionField::Pss, &stats.pss))
                    .or_else(|| unknown(RegionField::SharedBytes, &stats.shared))
                    .or_else(|| unknown(RegionField::ExclusiveBytes, &stats.private))
                    .or_else(|| unknown(RegionField::Huge, &stats.huge));
                match (holds, stats.uncertain, hidden) {
                    (None, Some(states), _) => {
                        undecided.get_or_insert_with(|| (0, states_are(states))).0 += 1;
                    }
                    (None, None, Some(_)) if viewed.backing == Backing::Kernel => of_the_kernel += 1,
                    (None, None, Some(reason)) => {
                        unseen.get_or_insert_with(|| (0, reason.to_string())).0 += 1;
                    }
                    _ => {}
                }
                if holds != Some(true) {
                    continue;
                }
                uncertain = uncertain.or(stats.uncertainly_swapped());
                let mut report = Box::new(region::report(viewed, Some(stats)));
                if wants_pss {
                    report.pss = report.why.take("pss", stats.pss.clone());
                }
                if full {
                    region::add_smaps(&mut report, viewed, smaps.as_deref().unwrap_or_default());
                }
                summary.regions += 1;
                summary.size = summary.size.saturating_add(report.size);
                let present = stats.missing.is_none().then_some(stats.present);
                summary.present = summary.present.zip(present).map(|(sum, one)| sum + one);
                // Regions that the page map does not show at all add nothing, as for `present`.
                let swapped = report.swapped.or(stats.swapped.clone().ok());
                summary.swapped = summary.swapped.zip(swapped).map(|(sum, one)| sum + one);
                match order {
                    None if RowLimit::limit(cut).is_some_and(|most| summary.regions > most) => {}
                    None => sink.emit(&*report)?,
                    Some(order) => {
                        let amount = amount(order, stats, &report);
                        let is_known = amount.is_some() || stats.why_hidden().is_some() || viewed.is_in_rss().is_err();
                        unranked += u64::from(is_amount(order) && !is_known);
                        sorted.push((amount, report));
                    }
                }
            }
            Ok(())
        };
        let pulled = pull();
        let mut stopped = stop_of_sweep(pulled, context.sink)?;
        if stopped == Some(Stopped::Closed) {
            return Err(Stopped::Closed.into());
        }
        summary.changed = !counts.changed_ranges().is_empty();
        sorted.sort_by(|(amount, a), (other, b)| match order {
            Some(RegionOrder::Name) => a.name.cmp(&b.name),
            Some(RegionOrder::Start) => a.start.cmp(&b.start),
            Some(RegionOrder::End) => a.end.cmp(&b.end),
            Some(RegionOrder::Perms) => a.perms.to_string().cmp(&b.perms.to_string()),
            _ => other.cmp(amount),
        });
        let most = cut.map_or(usize::MAX, RowLimit::rows);
        sorted.truncate(most);
        for (_, report) in sorted {
            match context.sink.emit(&*report) {
                Ok(()) => {}
                Err(Stopped::Closed) => return Err(Stopped::Closed.into()),
                Err(Stopped::Interrupted) => {
                    stopped = Some(Stopped::Interrupted);
                    break;
                }
            }
        }
        summary.cut_short = stopped.is_some();
        let all = usize::try_from(summary.regions).unwrap_or(usize::MAX);
        note_hidden_rows(all.saturating_sub(most), "region", context.sink)?;
        if let Some(by) = order.filter(|_| unranked > 0) {
            let regions = counted(unranked, "region");
            context.sink.note(format!("sorted last: {regions} whose `{}` is unknown", by.word()))?;
        }
        for (regions, why) in [undecided, unseen].into_iter().flatten() {
            say_left_out(regions, "region", &why, context.sink)?;
            summary.undecided += regions;
        }
        // The same for every process, so the note appears once a session.
        if of_the_kernel > 0 && !std::mem::replace(&mut context.state.kernel_regions_noted, true) {
            let message = "left out: the kernel's own regions for which the filter is unknown, such as [vvar] (the page map does not show their pages)";
            context.sink.note(message)?;
        }
        if let Some(reason) = uncertain.and_then(StateSet::uncertainty) {
            context.sink.note(format!("the swapped bytes are {reason}"))?;
        }
        finish(&summary, stopped, context.sink)?;
        Ok(Flow::Done)
    }
}

/// The order that rows are sorted by: `top` alone is by size.
fn order(by: Option<RegionOrder>, cut: Option<RowLimit>) -> Result<Option<RegionOrder>, Error> {
    match (by, RowLimit::top(cut)) {
        (Some(order), Some(_)) if !is_amount(order) => {
            let word = order.word();
            let hint = format!("for the first N: `regions by {word} limit N`");
            Err(Error::refused(format!("`top` shows the largest, and `{word}` has no size"), hint))
        }
        (None, Some(_)) => Ok(Some(RegionOrder::Size)),
        (order, _) => Ok(order),
    }
}

/// Whether the largest comes first.
fn is_amount(order: RegionOrder) -> bool {
    !matches!(order, RegionOrder::Name | RegionOrder::Start | RegionOrder::End | RegionOrder::Perms)
}

/// The number that a row is sorted by; `None` for an unknown one, and in orders that begin with the lowest.
fn amount(order: RegionOrder, stats: &RegionStats, report: &RegionReport) -> Option<u64> {
    match order {
        RegionOrder::Size => Some(report.size),
        RegionOrder::Rss => stats.rss.clone().ok(),
        RegionOrder::Pss => report.pss,
        RegionOrder::Swapped => report.swapped,
        RegionOrder::Huge => report.huge,
        RegionOrder::Present => report.present,
        RegionOrder::Shared => report.shared,
        RegionOrder::Exclusive => report.private,
        RegionOrder::Name | RegionOrder::Start | RegionOrder::End | RegionOrder::Perms => None,
    }
}

/// Whether a text is how other programs begin to say in which order they list.
pub(super) fn names_sorting(text: &str) -> bool {
    ["sort", "sorted", "order", "ordered"].contains(&text) || text.starts_with("--sort")
}

/// The range that a variable holds, if the text is such a variable: the regions in it are then meant.
fn range_in(context: &Context, name: &Spanned<String>) -> Option<Spans> {
    match context.state.variable(name.node.strip_prefix('$')?)? {
        Value::Range(spans) | Value::Symbol(spans) => Some(spans),
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
        /// Bytes swapped, as far as the page map shows them; `null` if shared memory may be in swap, which only the
        /// kernel's own records show.
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
        text.line(write_summary, self);
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
    remarks(lines, summary.cut_short, summary.changed);
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
