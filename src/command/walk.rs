//! `walk RANGE [where FILTER] [by KEY[, KEY]] [limit N|top N]`: the pages of a range.

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, Resume, example};
use super::frames;
use super::named_pages::{PagesOfSymbols, names_in};
use super::rows::{self, RowLimit, SweepEnd};
use crate::eval::{self, Extent, Spans};
use crate::inspect::{
    AddressSpace, Evidence, FactReader, Filter, Group as PageGroup, Groups, PageRow, PageRows, PhysicalRun,
    PhysicalRuns, Question, kind_unknown, no_scan,
};
use crate::kernel::{AddressRange, Key, Name, PageFact, PageField, State};
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, filter, key, mark, range};
use crate::lang::{self, KeyFacts, Range, Spanned, TakenKeys, WrittenKey, display};
use crate::report::{self, Fact, FrameWords, PagesRow, Reason};
use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// `walk RANGE [where FILTER] [by KEY[, KEY]] [limit N|top N]`
#[derive(Debug)]
pub struct Walk {
    /// The pages, or with `pfn:A..pfn:B` the frames.
    pub(super) range: Spanned<Range>,
    /// Which of them; all if absent.
    pub(super) filter: Option<Spanned<lang::FilterExpression<PageField>>>,
    /// Group by these, one or two; rows of neighbours if there are none.
    pub(super) by: Vec<WrittenKey>,
    /// Which of the rows; all if absent.
    pub(super) cut: Option<lang::LimitClause>,
}

impl Command for Walk {
    const ABOUT: About = About {
        name: CommandName::new("walk").short(&["w"]).how().alone_before(&["pfn:", "phys:"]),
        group: Group::Look,
        summary: "list the pages of a range, or page frames",
        text: "\
Lists the pages of a range. Neighbours with the same state, kind, flags and map count, and with consecutive frames, \
share a row. `mapcount` is the number of mappings of each frame. Untouched memory is skipped \
quickly. The totals come first, or last where the rows are very many.

  where FILTER  only pages that match: present, dirty, mapcount > 1 and more (`help filters`)
  by KEY        a row for each group, by one key or by two: `by region, state` (`help language` explains the keys)
  limit N       the first N rows; an empty line continues
  top N         the N largest rows, the largest first; the totals cover all

Keys are facts (state, kind, mapcount, order, node …), regions, symbols, runs of consecutive frames, and conditions \
on pages: `by dirty` has two rows. `~3` is an average of map counts over a large folio, which no filter matches. `by refcount` \
shows the 20 largest groups, unless `limit` or `top` is given.

`walk pfn:A..pfn:B` lists frames of physical memory instead of pages of the process. They can be grouped by \
single flags and by facts that frames have, such as `flags`, `order`, `node` and `mapcount`.

Conditions on frames never match a page without a frame, even negated: `dirty`, `not dirty` and `mapcount < 5` all \
leave out untouched pages. A filter on an unknown fact is an error, never false. Facts such as `zone` are \
compared with texts, and `~` matches a regular expression.

The kernel sets the THP flag on every large folio, however it is mapped. On pages that are not PMD-mapped, this flag \
is shown as `large_folio`. Filters and JSON keep the kernel's name, flags(thp). The field pmd_mapped (alias thp) \
means mapped by one PMD as a transparent huge page; `hugetlb` is the pool, and `huge` is both.",
        examples: &[
            example("walk demo_buffer", "list the pages of a symbol"),
            example("walk heap where present", "list the resident pages of the heap"),
            example("walk all where present by kind", "add up the whole process by kind"),
            example("walk demo_buffer where mapcount > 1", "list pages that are mapped more than once"),
            example("walk all where present by order", "add up memory by the size of its folios"),
            example("walk all where present by folio", "find large folios that are mapped unaligned or in part"),
            example("walk all where present by dirty", "count the pages with and without a flag"),
            example("walk all by region, state top 5", "show the five largest groups by two keys"),
            example("walk [stack] limit 4", "show four rows; an empty line continues"),
            example("walk pfn:0x1000..pfn:0x1010", "list frames of physical memory"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        pages(input, true)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.range.node)?;
        display::clause(f, "where", self.filter.as_ref().map(|filter| &filter.node))?;
        let keys: Vec<String> = self.by.iter().map(WrittenKey::to_string).collect();
        display::clause(f, "by", (!keys.is_empty()).then(|| keys.join(", ")))?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let spans = match eval::range(&self.range, context.state)? {
            Extent::Addresses(spans) => spans,
            Extent::Frames(frames) => return frames::walk(context, frames, self.filter.as_ref(), &self.by, cut),
        };
        let target = context.target()?;
        let space = AddressSpace::in_ranges(&target, spans.ranges())?;
        let filter = self.filter.as_ref().map(|filter| eval::page_filter(filter, &space, context.state)).transpose()?;
        context.state.last_address = None;
        let walk = WalkRun { space: &space, filter: filter.as_ref(), spans: &spans, cut };
        match rows::groupings(&self.by)? {
            Some(keys) => walk.groups(context, keys),
            None if self.by.is_empty() => walk.rows(context),
            None => walk.runs(context),
        }
    }
}

/// The keys of `walk … by`.
pub(super) const KEYS: TakenKeys = TakenKeys { facts: KeyFacts::All, others: &[Key::Region, Key::Symbol, Key::Run] };

/// The clauses of `walk` without `by`: a group has no address that a variable could hold.
pub(super) fn walk_rows(input: Tokens<'_>) -> Parsed<'_, Walk> {
    pages(input, false)
}

fn pages(input: Tokens<'_>, may_group: bool) -> Parsed<'_, Walk> {
    let (mut input, range) = range(input)?;
    let (mut where_, mut by, mut cut) = (None, None, None);
    while clause(&mut input, &mut where_, after("where", filter))?
        || (may_group && clause(&mut input, &mut by, after("by", group_keys))?)
        || clause(&mut input, &mut cut, cut_to)?
    {}
    Ok((input, Walk { range, filter: where_, by: by.unwrap_or_default(), cut }))
}

/// `KEY`, or `KEY, KEY`.
fn group_keys(input: Tokens<'_>) -> Parsed<'_, Vec<WrittenKey>> {
    let (behind, first) = key(KEYS)(input)?;
    let second = preceded(mark(","), cut(key(KEYS)));
    let (behind, second) = opt(second).parse(behind)?;
    Ok((behind, std::iter::once(first).chain(second).collect()))
}

/// The spans from where the same command stopped before.
pub(super) fn rest(spans: &Spans, resume: Option<Resume>) -> Vec<AddressRange> {
    match resume {
        Some(Resume::Address(from)) => {
            spans.ranges().iter().filter_map(|range| AddressRange::new(range.start().max(from), range.end())).collect()
        }
        _ => spans.ranges().to_vec(),
    }
}

struct WalkRun<'a> {
    space: &'a AddressSpace,
    filter: Option<&'a Filter>,
    spans: &'a Spans,
    cut: Option<RowLimit>,
}

/// Says that map counts may be too high.
pub(super) fn own_mappings_unknown(reason: &Reason) -> String {
    format!("map counts may include mappings of pmdb itself, which are unknown: {reason}")
}

impl WalkRun<'_> {
    /// The facts to read: all that the filter needs, and of the others those that are available.
    fn need(&self, shown: Evidence) -> Evidence {
        let asked = self.filter.map_or(Evidence::empty(), |filter| filter.need());
        // The totals count physical runs without the zero page. If only states matter, frames are not read for that.
        let counted = if (shown | asked).has_entries() { Evidence::KINDS } else { Evidence::empty() };
        self.space.obtainable(shown | counted) | asked | self.spans.holes()
    }

    /// Rows of neighbours.
    fn rows(&self, context: &mut Context) -> Outcome {
        let spans = rest(self.spans, context.resume);
        let shown = Evidence::KINDS | Evidence::FLAGS | Evidence::COUNTS | Evidence::HUGE | Evidence::ORDER;
        let shown = shown | self.space.device_frames(&spans);
        let mut with_own = 0;
        let rows = self.space.rows::<PageRows>(&spans, self.question(shown))?;
        let more = rows::emit_rows(rows, self.cut, context.sink, |row| {
            if row.page.own_mappings > 0 {
                with_own += row.page.pages;
            }
            self.record(row)
        })?;
        if with_own > 0 {
            let plural = if with_own == 1 { "" } else { "s" };
            context.sink.note(format!("pmdb itself maps {with_own} of these page{plural}: map counts include that"))?;
        }
        if let Some(reason) = self.space.own_mappings_unknown() {
            context.sink.note(own_mappings_unknown(&reason))?;
        }
        Ok(more.map_or(Flow::Done, |address| Flow::More(Resume::Address(address))))
    }

    fn record(&self, row: &PageRow) -> PagesRow {
        let page = &row.page;
        let available = self.space.availability();
        // Only a present page has a frame whose facts may be unknown.
        let absent = || match page.state() {
            State::Present => None,
            _ => Some(Reason::NotApplicable("no frame is mapped here")),
        };
        let unread = |fact: &Fact<()>| absent().or(fact.clone().err()).unwrap_or_else(Reason::words_hidden);
        PagesRow {
            start: page.address,
            end: page.end(self.space.page_size()),
            pages: page.pages,
            state: page.state(),
            kind: page.kind.ok_or_else(|| match (page.states.uncertainty(), row.region) {
                (Some(reason), _) => reason,
                (None, Some(_)) if page.state() == State::PfnMapped => kind_unknown(page),
                (None, Some(_)) => absent().unwrap_or_else(|| kind_unknown(page)),
                (None, None) => Reason::NotApplicable("it is in no region"),
            }),
            pfn: page.frame().ok_or_else(|| absent().unwrap_or(Reason::FrameHidden)),
            frames: row.frames,
            words: FrameWords {
                flags: page.flags.ok_or_else(|| unread(&available.flags)),
                map_count: page.map_count.ok_or_else(|| unread(&available.counts)),
                map_count_average: page.count_is_average,
                own_mappings: Some(page.own_mappings).filter(|&own| own > 0),
            },
            order: page.order.ok_or_else(|| unread(&available.flags)),
            huge: page.huge.ok_or_else(|| absent().unwrap_or_else(no_scan)),
            region: self.region_name(row.region),
            why: page.states.why("state"),
        }
    }

    fn region_name(&self, region: Option<usize>) -> Option<Name> {
        let viewed = self.space.viewed_regions().get(region?)?;
        Some(viewed.region.name.clone())
    }

    /// Groups of what pages have in common.
    fn groups(&self, context: &mut Context, (by, and): (Key, Option<Key>)) -> Outcome {
        let has = |one| by == one || and == Some(one);
        let reader = FactReader::of_pages(self.space);
        let need = rows::need_of_keys(&reader, by, and)?;
        let mut groups = Groups::new(by, reader).and(and);
        let names = has(Key::Symbol).then(|| names_in(self.space, &context.state.symbols));
        let mut symbols = names.map(|names| PagesOfSymbols::new(names, self.space.page_size()));
        let (spans, question) = (self.spans.ranges(), self.question(need));
        let mut pages = self.space.kept_pages(spans, question)?.with_budget(context.sink.budget());
        let next = || {
            pages.each(|page, region| match &mut symbols {
                None => groups.add(page, region),
                Some(symbols) => {
                    symbols.part(page).for_each(|(part, symbol)| groups.add_named(&part, region, symbol));
                }
            })
        };
        let stopped = rows::pull(context.sink, "pages", next, |(), _| Ok(()))?;
        let ended = SweepEnd::of(pages.finish(), stopped);
        let size = self.space.page_size();
        let name = |group| match (group, &symbols) {
            (PageGroup::Symbol(Some(number)), Some(symbols)) => Some(symbols.name(number)),
            (PageGroup::Region(Some(index)), _) => {
                self.space.viewed_regions().get(index).map(|viewed| rows::name_of_region(&viewed.region))
            }
            _ => None,
        };
        rows::emit_groups(groups.finish(), self.cut, size, name, context.sink)?;
        if !has(Key::Page(PageField::Fact(PageFact::State))) {
            ended.say_uncertain(context.sink)?;
        }
        ended.close(context.sink, false)?;
        Ok(Flow::Done)
    }

    /// The question for the sweep: for pages that the filter leaves out, only what it needs.
    fn question(&self, shown: Evidence) -> Question {
        Question::new(self.filter, self.need(shown))
    }

    /// Physically contiguous runs, as a stream.
    fn runs(&self, context: &mut Context) -> Outcome {
        self.space.require(Evidence::FRAMES)?;
        let size = self.space.page_size();
        let record = |run: &PhysicalRun| {
            let frame = match run.frame {
                _ if run.is_zero() => "zero page".to_owned(),
                Some(frame) => format!("pfn:{frame}"),
                None => run.states.likeliest().word().to_owned(),
            };
            let key = format!("{}..{} {frame}", run.start, run.end(size));
            let bytes = run.pages.saturating_mul(size.bytes());
            report::PageGroup {
                by: Key::Run.to_string(),
                key,
                second_by: None,
                second_key: None,
                pages: run.pages,
                bytes,
                why: run.states.why("state"),
            }
        };
        let spans = self.spans.ranges();
        let question = self.question(Evidence::FRAMES | self.space.device_frames(spans));
        rows::emit_rows(self.space.rows::<PhysicalRuns>(spans, question)?, self.cut, context.sink, record)?;
        Ok(Flow::Done)
    }
}
