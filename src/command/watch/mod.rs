//! `watch RANGE …`: what changes while you look.

mod groups;
pub(super) mod records;

use super::change_groups::{GroupNames, changing_fact};
use super::floor::{About, Command, CommandName, Context, Error, Group, Nature, Outcome, example};
use super::named_pages::{PagesOfSymbols, names_in};
use super::pointers::note_value;
use super::region::unmapped;
use super::rows::{self, say_undecided};
use super::schedule::{SamplesEnd, Schedule};
use super::snapshot::seconds;
use super::timeline::TimelineBuilder;
use super::translate::brief;
use super::unobserved::{copies_elsewhere, note_forks, unobservable, writes_in_place};
use super::until::{self, Until};
use crate::eval::{self, Spans, Value, current_ranges};
use crate::inspect::fact::changing_facts;
use crate::inspect::{AddressSpace, Change, ChangeCounts, ChangeGroups, Evidence, FactReader, Survival, Watcher};
use crate::kernel::{Key, PageFact, PageSize};
use crate::lang::parser::{
    self, Parsed, Tokens, after, clause, each_once, hint_at_missing_with_of, key, time, watched, word,
};
use crate::lang::{Count, Expression, Range, Spanned, Time, WrittenKey, display};
use crate::process::Target;
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::render::units::size;
use crate::report::{EventKind, Numbers, Shape, SymbolBrief};
use crate::state::DebugState;
use crate::symbol::TargetSymbols;
use groups::KEYS;
use records::{Event, WatchStart, WatchSummary};
use std::fmt::{self, Formatter};
use std::time::{Duration, Instant, SystemTime};

/// `watch RANGE [every DURATION] [for DURATION] [count N] [until FILTER] [with KIND, …] [by KEY] [as timeline]`
#[derive(Debug)]
pub struct Watch {
    /// The pages.
    range: Spanned<Range>,
    /// Add changes up by this; show each change if absent.
    by: Option<WrittenKey>,
    /// Time between two samples; the command's default if absent.
    every: Option<Spanned<Time>>,
    /// Stop after this time.
    duration: Option<Spanned<Time>>,
    /// Stop after the row that reaches so many pages.
    count: Option<Spanned<Count>>,
    /// Stop when this holds.
    until: Option<Until>,
    /// Facts whose changes are shown only on request, in the order given, each once.
    with: Vec<PageFact>,
    /// Whether to draw a timeline instead of a line for each change.
    is_timeline: bool,
}

impl Command for Watch {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("watch").of_session(),
        group: Group::Time,
        summary: "report changes in a range",
        text: "\
Samples the range repeatedly and reports the changes between two samples (`help events`):

  page     came, went, moved to another frame or to another node (`changed node`), was swapped out or in, was copied on write, merged or unmerged (KSM)
  huge     a huge page was split or collapsed
  guard    a guard page was installed or removed
  region   appeared, grew, shrank or went
  process  executed another program, or exited

Options:

  every DURATION        the time between samples (default 100ms)
  for DURATION          end after this time
  count N               end after the row that reaches N changed pages; a change of a region or of the process \
                        counts as one
  until FILTER          end as soon as a page matches
  until all FILTER      end as soon as every page matches
  until none FILTER     end as soon as no page matches
  until rss(heap) < 1G  end as soon as the comparison holds
  with WORD, …          also changes of flags, mapcount or soft_dirty
  by KEY                at the end the sums for each region, state, node, flag …
  as timeline           a picture instead of lines

The first lines name the changes that this kernel or these rights do not show. Changes that are undone between two \
samples are not seen. Writes that leave a page in its place show only `with soft_dirty`.

Every watch ends with a summary, also after Ctrl-C. It counts pages that disappear with their region as gone. It \
ends with the net change of the bytes present and in swap. If samples needed longer than `every`, it shows how many \
were due. If `for` ends before `until` holds, that is an error with status 5. If the process exits first, the status \
is 3.

`by KEY` shows the net effect on present memory, and the number of samples with a change. A region that grows or \
shrinks remains one region, shown with all the addresses that it had. `by flags` and `by mapcount` need `with`.

`as timeline` draws a row for each page, or for a stretch of pages if there are many, and a column for each sample. \
Its letters are those of `map`. A star marks a change that leaves the letter as it is. On a terminal each picture \
replaces the one before. `> ./FILE.svg` writes it as SVG.",
        examples: &[
            example("watch demo_busy for 1s", "watch for one second"),
            example("watch demo_busy every 50ms count 2", "end after two changed pages"),
            example("watch demo_buffer for 200ms with flags, mapcount", "report changes of flags and map counts too"),
            example("watch demo_busy every 20ms for 500ms as timeline", "draw a column for each sample"),
            example("watch all for 1s by region", "add up the changes of each region"),
            example("watch demo_busy for 500ms by state", "add up the changes by the state after them"),
            example("watch demo_busy until present", "wait until the page is present"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (mut input, range) = watched(input)?;
        let (mut every, mut duration, mut count, mut until, mut with) = (None, None, None, None, None);
        let (mut timeline, mut by) = (None, None);
        while clause(&mut input, &mut every, after("every", time))?
            || clause(&mut input, &mut duration, after("for", time))?
            || clause(&mut input, &mut count, after("count", parser::count))?
            || clause(&mut input, &mut until, after("until", until::until))?
            || clause(&mut input, &mut with, after("with", each_once(changing_fact)))?
            || clause(&mut input, &mut timeline, after("as", word("timeline")))?
            || clause(&mut input, &mut by, after("by", key(KEYS)))?
        {}
        if with.is_none() {
            hint_at_missing_with_of(input, |word| changing_facts().any(|fact| fact.row().word == word));
        }
        let (with, is_timeline) = (with.unwrap_or_default(), timeline.is_some());
        Ok((input, Watch { range, by, every, duration, count, until, with, is_timeline }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.range.node)?;
        display::clause(f, "every", self.every.as_ref().map(|time| &time.node))?;
        display::clause(f, "for", self.duration.as_ref().map(|time| &time.node))?;
        display::clause(f, "count", self.count.as_ref().map(|count| &count.node))?;
        display::clause(f, "until", self.until.as_ref())?;
        let kinds: Vec<&str> = self.with.iter().map(|fact| fact.row().word).collect();
        display::clause(f, "with", (!kinds.is_empty()).then(|| kinds.join(", ")))?;
        display::clause(f, "as", self.is_timeline.then_some("timeline"))?;
        display::clause(f, "by", self.by.as_ref())
    }

    fn nature(&self) -> Nature {
        Nature { draws: self.is_timeline, ends_by_interrupt: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let time = |time| eval::time(time, context.state);
        let every = self.every.as_ref().map(time).transpose()?;
        let duration = self.duration.as_ref().map(time).transpose()?;
        let count = |count| eval::count(count, context.state);
        let count = self.count.as_ref().map(count).transpose()?;
        let target = context.target()?;
        let spans = eval::range(&self.range, context.state)?.addresses(|| {
            let message = "watch works on pages of the process, not on frames";
            eval::Error::new(self.range.at, message).hint("`walk pfn:A..pfn:B` shows frames as they are now")
        })?;
        self.refuse_nothing(count, duration)?;
        if self.until.is_none() {
            note_value(context, &self.range)?;
        }
        let every = every.unwrap_or(USUAL);
        let schedule = Schedule::new(every, &target.process)?;
        context.state.last_address = None;
        let space = eval::current_space(&spans, &target)?;
        refuse_unmapped(&self.range, &spans, &space, context)?;
        if let Some(until) = self.until.as_ref().filter(|until| until.filter.node.has_fields()) {
            // What cannot be answered is said before anything is shown.
            eval::page_filter(&until.filter, &space, context.state)?;
        }
        let wanted: Evidence = self.with.iter().filter_map(|fact| fact.need_of_samples()).collect();
        let by = self.by.as_ref().map(|by| groups::key(by, wanted, &space)).transpose()?;
        let ranges = current_ranges(&spans, &space, &context.state.symbols, &target);
        let pages = ranges.iter().map(|range| range.pages(space.page_size()));
        let mut blind = unobservable(&space, &ranges, wanted);
        blind.extend(writes_in_place(&space, wanted));
        blind.extend(copies_elsewhere(&space, &ranges, wanted, context.sink)?);
        let hides_writes = blind.iter().any(|blind| blind.kind == EventKind::Written);
        let start = WatchStart { pages: pages.sum(), every: every.as_secs_f64(), blind };
        let extra = space.obtainable(wanted | by.map(Key::need_of_samples).unwrap_or_default());
        context.sink.emit(&start)?;
        let mut watch = WatchRun {
            target: &target,
            state: context.state,
            spans: &spans,
            until: self.until.as_ref(),
            counts: ChangeCounts::default(),
            left: count.unwrap_or(u64::MAX),
            groups: by.map(|by| ChangeGroups::new(by, space.page_size())),
            samples: 0,
            schedule,
            has_said_undecided: false,
            timeline: self.is_timeline.then(|| TimelineBuilder::new(space.page_size())),
        };
        let began = Instant::now();
        let mut watcher = Watcher::new(extra);
        if let Some(ranges) = eval::fixed_ranges(&spans) {
            watcher = watcher.of_ranges(ranges);
        }
        let ended = watch.follow(context.sink, watcher, duration)?;
        let symbols = || PagesOfSymbols::new(names_in(&space, &context.state.symbols), space.page_size());
        let names = by.map(|by| GroupNames { by, reader: FactReader::of_pages(&space), symbols: symbols() });
        watch.close(began, ended, hides_writes, names, context.sink)?;
        ended.outcome(self.until.is_some())
    }
}

impl Watch {
    /// Refuses what could show nothing.
    fn refuse_nothing(&self, count: Option<u64>, duration: Option<Duration>) -> Result<(), Error> {
        if self.is_timeline && self.by.is_some() {
            return Err(Error::refused("`as timeline` and `by` cannot be combined", "leave one of the two out"));
        }
        if count == Some(0) {
            return Err(Error::nothing_wanted("count"));
        }
        if duration == Some(Duration::ZERO) {
            let hint = "leave it out, or write a time: `for 1s`";
            return Err(Error::refused("`for` must be longer than 0: a change needs two samples", hint));
        }
        Ok(())
    }
}

/// Time between two samples when none is given: short enough for a person, long enough to cost next to nothing.
const USUAL: Duration = Duration::from_millis(100);

/// Refuses a lone address in no region, as `region` does: `watch *p` means the page at the *value* of p. A range that
/// was written out is accepted, because a region may appear there.
fn refuse_unmapped(
    range: &Spanned<Range>,
    spans: &Spans,
    space: &AddressSpace,
    context: &mut Context,
) -> Result<(), Error> {
    let address = spans.start();
    if spans.size() > 1 || space.viewed_region(address).is_some() {
        return Ok(());
    }
    let space = AddressSpace::at(space.target(), address)?;
    if space.viewed_region(address).is_some() {
        return Ok(());
    }
    // A number in the first page is no address, nor is one that was read or computed.
    let is_address = matches!(range.node, Range::Expression(Expression::Integer(number)) if number >= 0x1000);
    match eval::value(range, context.state) {
        Ok(Value::Integer(number)) if !is_address => {
            let message = format!("`watch` reports changes of pages, and no page is at {address}");
            let hint = match range.node {
                Range::Expression(Expression::Integer(_)) => "expected memory, as in `watch [heap]`".to_owned(),
                _ => format!("to wait until a value changes: `watch ADDRESS until {} != {number}`", range.node),
            };
            Err(eval::Error::new(range.at, message).hint(hint).into())
        }
        _ => Err(unmapped(range.at, address, &space)?),
    }
}

struct WatchRun<'a> {
    target: &'a Target,
    state: &'a DebugState,
    spans: &'a Spans,
    until: Option<&'a Until>,
    counts: ChangeCounts,
    /// How much may still be counted.
    left: u64,
    /// Where changes add up instead of being shown.
    groups: Option<ChangeGroups<'a>>,
    samples: u64,
    schedule: Schedule,
    /// Whether the note was shown that `until` cannot be evaluated for some pages.
    has_said_undecided: bool,
    /// The picture of `as timeline`.
    timeline: Option<TimelineBuilder>,
}

impl WatchRun<'_> {
    /// Takes samples until there is a reason to end, and returns that.
    fn follow(
        &mut self,
        sink: &mut dyn Sink,
        mut watcher: Watcher,
        duration: Option<Duration>,
    ) -> Result<SamplesEnd, Error> {
        let began = Instant::now();
        loop {
            let sampled = self.sample(sink, &mut watcher);
            self.samples += 1;
            match sampled {
                Ok(Survival::Alive) if self.left == 0 => return Ok(SamplesEnd::Count),
                Ok(Survival::Alive) => {}
                Ok(Survival::Exited) => return Ok(SamplesEnd::Exited),
                Err(Error::Stopped(_)) if self.left == 0 => return Ok(SamplesEnd::Count),
                Err(error) => return SamplesEnd::of_error(error, sink),
            }
            match self.is_reached(sink) {
                Ok(true) => return Ok(SamplesEnd::Until),
                Ok(false) => {}
                Err(error @ Error::Stopped(_)) => return SamplesEnd::of_error(error, sink),
                // The target went during the sweep: the next sample reports it.
                Err(error) if error.status() == 3 => continue,
                Err(error) => return Err(error),
            }
            let Some(pause) = self.schedule.pause(began.elapsed(), duration) else {
                return Ok(SamplesEnd::Duration);
            };
            if let Err(stopped) = sink.wait(pause) {
                return SamplesEnd::of_error(stopped.into(), sink);
            }
        }
    }

    /// Shows the sums of all samples since `began`.
    fn close(
        self,
        began: Instant,
        ended: SamplesEnd,
        hides_writes: bool,
        names: Option<GroupNames<'_>>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        for (groups, names) in self.groups.into_iter().zip(&names) {
            groups::rows(groups.finish(), names).try_for_each(|row| sink.emit(&row))?;
        }
        let perhaps_copied = |kind| self.counts.kinds.contains_key(kind);
        if [EventKind::Moved, EventKind::ChangedNode, EventKind::CopiedOnWrite].iter().any(perhaps_copied) {
            note_forks(self.target, began.elapsed(), "two samples", sink)?;
        }
        sink.emit(&WatchSummary {
            samples: self.samples,
            missed: self.schedule.missed,
            seconds: began.elapsed().as_secs_f64(),
            events: Numbers(self.counts.kinds.into_iter().collect()),
            rows: Numbers(self.counts.rows.into_iter().collect()),
            effect: self.counts.effect,
            ended,
            hides_writes,
        })?;
        Ok(())
    }

    /// Takes one sample and shows what changed.
    fn sample(&mut self, sink: &mut dyn Sink, watcher: &mut Watcher) -> Result<Survival, Error> {
        let (target, symbols) = (self.target, &self.state.symbols);
        let time = seconds(SystemTime::now());
        let page = target.process.page_size();
        let names = symbols.on_demand(target);
        let mut look = watcher.look(target).with_budget(sink.budget());
        if let Some(timeline) = &mut self.timeline {
            timeline.end();
            look = look.with(Evidence::KINDS);
        }
        while let Some(space) = look.begin()? {
            let ranges = current_ranges(self.spans, &space, symbols, target);
            if let Some(timeline) = &mut self.timeline {
                timeline.begin(&space, &ranges, None);
            } else if let Some(groups) = &mut self.groups {
                groups.see(space.regions());
            }
            look.sample(ranges);
            while let Some(chunk) = look.next()? {
                if let Some(timeline) = &mut self.timeline {
                    timeline.see(&chunk);
                }
            }
        }
        for change in look.changes() {
            self.left = self.left.saturating_sub(self.counts.add(&change));
            if let Some(timeline) = &mut self.timeline {
                timeline.change(&change);
                continue;
            }
            if let Some(groups) = &mut self.groups {
                groups.add(&change, self.samples);
            }
            if self.groups.is_some() && change.region.is_some() {
                sink.check()?;
            } else {
                let ends = symbols_at_ends(&change, &names, page);
                sink.emit(&event(time, change, ends, target))?;
            }
            if self.left == 0 {
                return Ok(Survival::Alive);
            }
        }
        if let (Some(timeline), Survival::Alive) = (&mut self.timeline, look.survival()) {
            timeline.emit(sink)?;
        }
        Ok(look.survival())
    }

    /// Whether the condition of `until` holds now. Each call evaluates its functions anew.
    fn is_reached(&mut self, sink: &mut dyn Sink) -> Result<bool, Error> {
        let Some(Until { of, filter }) = self.until else {
            return Ok(false);
        };
        if !filter.node.has_fields() {
            return Ok(eval::comparison(filter, self.state)?);
        }
        let space = eval::current_space(self.spans, self.target)?;
        let filter = eval::page_filter(filter, &space, self.state)?;
        let ranges = current_ranges(self.spans, &space, &self.state.symbols, self.target);
        let mut pages = space.holds_for(*of, &ranges, &filter).with_budget(sink.budget());
        if let Some(stopped) = rows::pull(sink, "pages", || pages.next(), |(), _| Ok(()))? {
            return Err(stopped.into());
        }
        let (holds, undecided) = pages.finish();
        if undecided.pages() > 0 && !holds && !self.has_said_undecided {
            self.has_said_undecided = true;
            say_undecided(&undecided, "page", sink)?;
        }
        Ok(holds)
    }
}

/// The symbols at the first and the last byte of the pages.
pub(super) fn symbols_at_ends(change: &Change, names: &TargetSymbols, size: PageSize) -> [Option<SymbolBrief>; 2] {
    let pages = change.addresses(size).filter(|_| change.kind.is_of_pages());
    [pages.map(|pages| pages.start()), pages.and_then(|pages| pages.end().checked_sub(1))].map(|end| brief(names, end?))
}

fn event(time: f64, change: Change, [symbol, last_symbol]: [Option<SymbolBrief>; 2], target: &Target) -> Event {
    let detail = detail(&change, target);
    Event {
        time,
        address: change.address,
        pages: change.pages,
        kind: change.kind,
        before: change.before,
        after: change.after,
        region: change.region.map(|region| region.name),
        symbol,
        last_symbol,
        detail,
    }
}

/// What became of a region, or which program is executed, in words.
pub(super) fn detail(change: &Change, target: &Target) -> Option<String> {
    match (&change.kind, &change.region, &change.region_after) {
        (EventKind::Executed, ..) => {
            let status = target.process.status().ok();
            status.and_then(|status| status.executable).map(|program| program.to_string())
        }
        // Of a region that was split, a part has changed or gone.
        (EventKind::RegionChanged, Some(before), Some(after)) => {
            let part = change.range.unwrap_or(after.range);
            let (before, after) = (before.permissions, after.permissions);
            Some(format!("{part} was {before}, is {after}"))
        }
        (EventKind::RegionShrank, Some(before), _) => {
            Some(format!("was {}: {}", size(before.range.len()), before.range))
        }
        (EventKind::RegionGrew, _, Some(after)) => Some(format!("now {}: {}", size(after.range.len()), after.range)),
        (EventKind::RegionAppeared | EventKind::RegionWent, Some(region), None) => {
            Some(format!("{} {}", size(region.range.len()), region.permissions))
        }
        _ => None,
    }
}
