//! `compare PID …`: compares the attached process with others, page by page.

mod records;

use super::counterpart::Counterparts;
use super::cut::{self, Cut, say_cut};
use super::named_pages::{PagesOfSymbols, name_among_symbols};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, attach, example, ps, snapshot};
use crate::eval::{self, Origin, Spans, Value};
use crate::inspect::{AddressSpace, Facts, PageRelation, SharedPages, Snapshot};
use crate::kernel::words::worded;
use crate::kernel::{AddressRange, Region};
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, many, one_of, place, range, text, word};
use crate::lang::{self, Expected, Expression, Spanned, display};
use crate::process::{self, Target};
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{Shape, Stopped};
use crate::source::Identity;
use nom::Parser;
use nom::branch::alt;
use nom::combinator::map;
use records::{Comparison, ComparisonGroup, ComparisonSummary, SharedCounts};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

/// `compare PID …|children [in RANGE] [by KEY] [top N | limit N]`
#[derive(Debug)]
pub struct Compare {
    /// With which processes.
    with: Compared,
    /// Of what; all if absent.
    range: Option<Spanned<lang::Range>>,
    /// By what the pages add up; by region if absent.
    by: Option<CompareKey>,
    /// Which rows.
    cut: Option<lang::Cut>,
}

/// Which process `compare` compares with.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// Each of these: a process id, or a text that is the name of a process.
    Processes(Vec<Spanned<Expression>>),
    /// Each child of the attached process.
    Children,
}

worded! {
    /// What `compare … by KEY` groups pages by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CompareKey, word {
        /// The region.
        Region = "region",
        /// The symbol in which a page begins; where there is none, the region.
        Symbol = "symbol",
    }
}

impl Command for Compare {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("compare").whole(),
        group: Group::Time,
        summary: "compare the memory of two processes, as after a fork",
        text: "\
Compares the attached process with another one, region by region, and counts pages:

  shared   both map the same frame
  to copy  shared pages that the next write of the attached process copies
  copied   both have the page, in different frames
  here     only the attached process maps the page
  there    only the other process maps the page

After a fork, `copied` is the cost of copy-on-write so far, and `to copy` is the cost still possible.

  PROCESS    a process id, or a name as a text
  children   all child processes
  in RANGE   only this part
  by region  a row for each region
  by symbol  a row for each symbol, with the pages that begin in it
  limit N    the first N rows
  top N      the N largest rows

Several processes, or all `children`, are compared one after the other. Then only the sums of each are shown, with \
the kernel's own uss and pss (smaps_rollup). $_shared, $_copied and $_about_to_copy are the bytes of all.

Pages of a file never count as `to copy`: the first write copies them in any case. Pages of files and of shared \
memory under `here` and `there` need no copy: the other process can map them.

Regions match by address. A file that is mapped elsewhere matches by file and offset. A frame that the other process \
maps only elsewhere, such as one of merged pages (KSM), counts as shared too. The last line shows how much that is. \
Pages in the same swap slot count as shared.

Needs frame numbers (CAP_SYS_ADMIN).",
        examples: &[
            example("compare children", "compare with each child"),
            example("compare children by symbol", "list the variables that a fork has copied"),
            example("compare children in heap", "compare the heap with that of each child"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        input.expect(Expected::NamedProcess);
        let children = map(word("children"), |_| Compared::Children);
        let process = |input| alt((place, text)).parse(input);
        let processes = (process, many(process)).map(|(first, more)| [vec![first], more].concat());
        let processes = map(processes, Compared::Processes);
        let (mut input, with) = alt((children, processes)).parse(input)?;
        let (mut in_, mut by, mut cut) = (None, None, None);
        while clause(&mut input, &mut in_, after("in", range))?
            || clause(&mut input, &mut by, after("by", one_of))?
            || clause(&mut input, &mut cut, cut_to)?
        {}
        Ok((input, Compare { with, range: in_, by, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.with {
            Compared::Children => f.write_str(" children")?,
            Compared::Processes(processes) => {
                processes.iter().try_for_each(|process| write!(f, " {}", process.node))?
            }
        }
        display::clause(f, "in", self.range.as_ref().map(|range| &range.node))?;
        display::clause(f, "by", self.by.map(CompareKey::word))?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = Cut::of(self.cut.as_ref(), context.state)?;
        let target = context.target()?;
        let mine = target.process.identity().pid;
        let others = match &self.with {
            Compared::Processes(given) => {
                given.iter().map(|value| pid(value, context)).collect::<Result<Vec<u32>, Error>>()?
            }
            Compared::Children => children(&target, mine)?,
        };
        if others.contains(&mine) {
            return Err(Error::refused(
                format!("process {mine} is the attached one: it would be compared with itself"),
                "compare takes other processes; ps lists them",
            ));
        }
        let spans = self.range.as_ref().map(|range| snapshot::spans(range, context.state)).transpose()?;
        let space = AddressSpace::of(&target)?;
        space.require(Facts::FRAMES)?;
        // With a range, only its addresses are compared.
        let is_all = spans.as_ref().is_none_or(|spans| *spans.origin() == Origin::All);
        let ranges = match &spans {
            Some(spans) if !is_all => spans.ranges().to_vec(),
            _ => space.spans(),
        };
        let is_single = others.len() == 1;
        let state = &*context.state;
        let page = space.page();
        let mut symbols = (self.by == Some(CompareKey::Symbol)).then(|| {
            let names = state.symbols.over(&target, space.maps());
            PagesOfSymbols::new(names, page)
        });
        let sink = &mut *context.sink;
        let frames_of = |space: &AddressSpace, ranges: Vec<AddressRange>, sink: &mut dyn Sink| {
            Snapshot::take(space, ranges, Facts::FRAMES | Facts::KINDS, false, sink.budget())
        };
        let here = frames_of(&space, ranges.clone(), sink)?;
        let is_children = self.with == Compared::Children;
        let mut is_any = false;
        for other in others {
            let other = match Target::attach(other) {
                // An exited child has no memory, even if its parent has not waited for it yet.
                Err(process::Error::Gone { .. }) if is_children => continue,
                attached => attached?,
            };
            is_any = true;
            let space = AddressSpace::of(&other)?;
            let there = frames_of(&space, space.spans(), sink)?;
            let mut side = Side {
                here: &here,
                there: &there,
                other: other.process.identity(),
                rows: Vec::new(),
                symbols: symbols.as_mut(),
                groups: BTreeMap::new(),
                total: SharedCounts::default(),
            };
            let compared = side.regions_here(&ranges, sink)?;
            if is_all {
                side.regions_there(compared, sink)?;
            }
            match self.by {
                Some(CompareKey::Symbol) => side.show_groups(cut, sink)?,
                Some(CompareKey::Region) => side.show_rows(cut, sink)?,
                None if is_single => side.show_rows(cut, sink)?,
                None => {}
            }
            sink.emit(&ComparisonSummary {
                pid: mine,
                other: side.other.pid,
                process: side.other.name,
                page_size: page.bytes(),
                memory: (!is_single).then(|| ps::memory(&target.machine, side.other.pid)),
                counts: side.total,
            })?;
        }
        if is_any { Ok(Flow::Done) } else { Err(no_children(mine)) }
    }
}

/// A process id that was written as a value.
fn pid(value: &Spanned<lang::Expression>, context: &mut Context) -> Result<u32, Error> {
    let as_range = Spanned::new(lang::Range::Expression(value.node.clone()), value.at);
    if let Value::Text(name) = eval::value(&as_range, context.state)? {
        return Ok(attach::resolve(&name, context.sink)?.pid);
    }
    let number = eval::integer(value, context.state)?.get();
    u32::try_from(number).map_err(|_| {
        eval::Error::new(value.at, format!("{number} is not a process id")).hint("ps lists the processes").into()
    })
}

fn no_children(parent: u32) -> Error {
    Error::refused(format!("process {parent} has no children"), "compare PID takes any process")
}

fn children(target: &Target, parent: u32) -> Result<Vec<u32>, Error> {
    let all = target.machine.process_handles()?.processes;
    let children: Vec<u32> = all.iter().filter(|one| one.parent == parent).map(|one| one.pid).collect();
    if !children.is_empty() { Ok(children) } else { Err(no_children(parent)) }
}

/// Counts neighbouring pages with the same relation. In a read-only region no write can copy a page.
fn add(counts: &mut SharedCounts, pages: &SharedPages, is_writable: bool) {
    *match pages.relation {
        PageRelation::Shared | PageRelation::Elsewhere => &mut counts.shared,
        PageRelation::Different => &mut counts.copied,
        PageRelation::OnlyFirst => &mut counts.only_here,
        PageRelation::OnlySecond => &mut counts.only_there,
    } += pages.pages;
    if pages.relation == PageRelation::Elsewhere {
        counts.shared_elsewhere += pages.pages;
    }
    let is_shared = matches!(pages.relation, PageRelation::Shared | PageRelation::Elsewhere);
    if is_shared && pages.copied_by_next_write && is_writable {
        counts.about_to_copy += pages.pages;
    }
}

fn pages(counts: &SharedCounts) -> u64 {
    counts.shared + counts.copied + counts.only_here + counts.only_there
}

fn add_counts(sum: &mut SharedCounts, counts: SharedCounts) {
    sum.shared += counts.shared;
    sum.shared_elsewhere += counts.shared_elsewhere;
    sum.copied += counts.copied;
    sum.only_here += counts.only_here;
    sum.only_there += counts.only_there;
    sum.about_to_copy += counts.about_to_copy;
}

/// One comparison: the rows, and their sums.
struct Side<'a, 'n> {
    here: &'a Snapshot,
    there: &'a Snapshot,
    other: Identity,
    rows: Vec<Comparison>,
    /// To add up by symbol.
    symbols: Option<&'a mut PagesOfSymbols<'n>>,
    groups: BTreeMap<String, SharedCounts>,
    total: SharedCounts,
}

impl Side<'_, '_> {
    /// Compares the part of each region of the attached process that lies in `ranges`. Returns the compared ranges of
    /// the other process.
    fn regions_here(&mut self, ranges: &[AddressRange], sink: &mut dyn Sink) -> Result<Vec<AddressRange>, Stopped> {
        let counterparts = Counterparts::new(self.there.regions());
        let mut compared = Vec::new();
        for region in self.here.regions() {
            for part in region.range.within(ranges) {
                sink.check()?;
                let mut counts = SharedCounts::default();
                let is_writable = region.permissions.write;
                let start = counterparts.of(region, part);
                for pages in self.here.compare(part, self.there, start) {
                    add(&mut counts, &pages, is_writable);
                    if start.is_some() {
                        self.add_to_groups(region, &pages, is_writable);
                    }
                }
                if let Some(start) = start {
                    let end = start.checked_add(part.len()).unwrap_or(start);
                    compared.extend(AddressRange::new(start, end));
                } else {
                    self.add_to_group_of_region(region, counts);
                }
                self.row(region, part, counts);
            }
        }
        Ok(compared)
    }

    /// Adds the parts of the other process's regions that have no counterpart here.
    fn regions_there(&mut self, compared: Vec<AddressRange>, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let compared = Spans::new(compared, Origin::Written);
        let compared = compared.as_ref().map_or(&[][..], Spans::ranges);
        for region in self.there.regions() {
            sink.check()?;
            for rest in region.range.outside(compared) {
                let counts = SharedCounts {
                    only_there: self.there.populated_alone_in(rest, self.here),
                    ..SharedCounts::default()
                };
                self.add_to_group_of_region(region, counts);
                self.row(region, rest, counts);
            }
        }
        Ok(())
    }

    /// Symbols are those of the attached process; pages of the other process alone count for their region.
    fn add_to_groups(&mut self, region: &Region, pages: &SharedPages, is_writable: bool) {
        let Some(symbols) = &mut self.symbols else {
            return;
        };
        let groups = &mut self.groups;
        let mut parts = Vec::new();
        match pages.relation {
            PageRelation::OnlySecond => parts.push((pages.pages, None)),
            _ => symbols.split(pages.address, pages.pages, |_, count, symbol| {
                parts.push((count, symbol));
            }),
        }
        for (count, symbol) in parts {
            let name = symbol.map_or_else(|| name_among_symbols(&region.name), |symbol| symbols.name(symbol));
            let part = SharedPages { pages: count, ..pages.clone() };
            add(groups.entry(name).or_default(), &part, is_writable);
        }
    }

    fn add_to_group_of_region(&mut self, region: &Region, counts: SharedCounts) {
        if self.symbols.is_some() && counts != SharedCounts::default() {
            add_counts(self.groups.entry(name_among_symbols(&region.name)).or_default(), counts);
        }
    }

    fn row(&mut self, region: &Region, range: AddressRange, counts: SharedCounts) {
        if counts == SharedCounts::default() {
            return;
        }
        add_counts(&mut self.total, counts);
        self.rows.push(Comparison {
            other: self.other.pid,
            start: range.start(),
            end: range.end(),
            region: region.name.clone(),
            counts,
        });
    }

    fn show_rows(&mut self, cut: Option<Cut>, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let mut rows = std::mem::take(&mut self.rows);
        let more = cut::keep(&mut rows, cut, |row| pages(&row.counts));
        let mut rows = rows.into_iter();
        rows.try_for_each(|row| sink.emit(&row))?;
        say_cut(more, "region", sink)
    }

    /// The rows of `by symbol`, the most copied or about to be copied first.
    fn show_groups(&mut self, cut: Option<Cut>, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let mut groups: Vec<_> = std::mem::take(&mut self.groups).into_iter().collect();
        groups.sort_by_key(|(_, counts)| Reverse((counts.copied + counts.about_to_copy, counts.shared)));
        let more = cut::keep(&mut groups, cut, |(_, counts)| pages(counts));
        let mut groups = groups.into_iter();
        groups
            .try_for_each(|(symbol, counts)| sink.emit(&ComparisonGroup { other: self.other.pid, symbol, counts }))?;
        say_cut(more, "symbol", sink)
    }
}
