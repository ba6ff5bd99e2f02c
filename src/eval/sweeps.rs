//! `count(R where F)` and other functions of the pages in a range, or of frames without a process.

use super::error::{Call, Error, Result};
use super::evaluator::Evaluator;
use super::filter::{frame_filter, page_filter};
use super::{Integer, Origin, Scope, Spans, Value};
use crate::inspect::{
    self, AddressSpace, Evidence, FrameSums, Page, Question, RegionAmount, Selection, Step, Sweep, Totals,
    ViewedRegion, kind_unknown, machine_frames,
};
use crate::kernel::smaps::Smaps;
use crate::kernel::words::Worded as _;
use crate::kernel::{AddressRange, FrameRange, PageFact, State, VirtualAddress};
use crate::lang::{FilterExpression, FilterField, Function, PageField, Span, Spanned};
use crate::render::units::counted;
use crate::report::Fact;

/// Returns whether a filter is about kinds of pages, which untouched pages have too, and not about states.
fn is_of_kinds(filter: &FilterExpression<PageField>) -> bool {
    let of = |is: fn(&str) -> bool| filter.has_field(is);
    of(|name| matches!(PageField::from_name(name), Some(PageField::Kind(_))))
        && !of(|name| PageField::from_name(name).is_some_and(|field| field.fact() == PageFact::State))
}

/// Returns the note about pages that are counted as runs, and may be zero pages, which are no run.
pub fn perhaps_zeros(totals: &Totals) -> Option<String> {
    let pages = totals.perhaps_zeros();
    let counted = counted(pages, "page");
    (pages > 0)
        .then(|| format!("{counted} of these runs may be zero pages, which are no run (unknown without page flags)"))
}

impl<'a> Evaluator<'a> {
    /// Makes the view of the range. If it has few regions, only these are read.
    fn view_within(&self, call: &Call, spans: &Spans) -> Result<AddressSpace> {
        let target = self.target(call.at, &call.name)?;
        AddressSpace::in_ranges(target, spans.ranges()).map_err(|cause| call.caused_by(cause))
    }

    /// Evaluates `count(R where F)` and the other functions that count pages.
    pub(super) fn count_pages(
        &self,
        function: Function,
        spans: &Spans,
        filter: Option<&Spanned<FilterExpression<PageField>>>,
        at: Span,
    ) -> Result<Value> {
        let call = Call::of(function.name(), at);
        let space = self.view_within(&call, spans)?;
        let written = filter;
        let filter = filter.map(|filter| page_filter(filter, &space, self.scope)).transpose()?;
        let own = match function {
            // The zero page is no run of the process's memory.
            Function::Runs | Function::Longest => Evidence::FRAMES | Evidence::KINDS,
            _ => Evidence::ANY_FRAME,
        };
        space.require(own.difference(Evidence::KINDS)).map_err(|cause| call.caused_by(cause))?;
        let need = space.obtainable(own) | spans.holes();
        let question = Question::new(filter.as_ref(), need);
        let mut totals = Totals::new(space.page_size(), question.need());
        let (mut first, mut last) = (None, None);
        let mut kept = self.pages(&call, &space, spans, question);
        'pages: while let Some(pages) = kept.next()? {
            for page in pages {
                totals.add(&page);
                first = first.or(Some(page.address));
                last = Some(page.end(space.page_size()));
                if function == Function::First {
                    break 'pages;
                }
            }
        }
        kept.finish()?;
        let untouched = totals.states().of(State::Untouched);
        if written.is_some_and(|filter| is_of_kinds(&filter.node)) && (1..totals.pages).contains(&untouched) {
            let untouched = counted(untouched, "page");
            let note = "of these are untouched: `rss(RANGE where FILTER)` adds up resident memory";
            self.scope.note(format!("{untouched} {note}"));
        }
        if matches!(function, Function::Runs | Function::Longest)
            && let Some(note) = perhaps_zeros(&totals)
        {
            self.scope.note(note);
        }
        let none = || {
            call.error(match (function, &filter) {
                (Function::Longest, None) => "no page in the range has a frame",
                (Function::Longest, Some(_)) => "no page that matches the filter has a frame",
                (_, None) => "nothing is mapped in the range",
                (_, Some(_)) => "no page of the range matches the filter",
            })
        };
        // A page may begin before the range does.
        let within = |address: VirtualAddress| {
            let span = spans.ranges().iter().find(|span| span.end() > address);
            Value::Address(span.map_or(address, |span| span.start().max(address)))
        };
        Ok(match function {
            Function::Bytes => Integer::from(totals.bytes()).into(),
            Function::Runs => Integer::from(totals.runs().unwrap_or_default()).into(),
            Function::Longest => {
                let run = totals.longest_run().ok_or_else(none)?;
                Value::Range(Spans::one(run, Origin::Written))
            }
            Function::First => within(first.ok_or_else(none)?),
            Function::Last => {
                let end: VirtualAddress = last.ok_or_else(none)?;
                let start = end.get().saturating_sub(space.page_size().bytes());
                within(VirtualAddress::new(start))
            }
            _ => Integer::from(totals.pages).into(),
        })
    }

    /// Returns the pages that match the question.
    pub(super) fn pages<'e>(
        &'e self,
        call: &'e Call,
        space: &AddressSpace,
        spans: &Spans,
        question: Question,
    ) -> MatchingPages<'e> {
        let sweep = space.pages(spans.ranges(), question.clone()).with_budget(self.scope.budget());
        let total = spans.ranges().iter().map(|span| span.pages(space.page_size())).sum();
        MatchingPages { scope: self.scope, call, sweep, question, selection: Selection::default(), done: 0, total }
    }

    /// Evaluates `rss(R where F)` and the other amounts, in bytes, as the sums of `regions` but only in the range.
    pub(super) fn amount(
        &self,
        function: Function,
        spans: &Spans,
        filter: Option<&Spanned<FilterExpression<PageField>>>,
        at: Span,
    ) -> Result<Value> {
        let need = match function {
            Function::Rss => Evidence::KINDS,
            Function::Pss | Function::Uss => Evidence::COUNTS,
            Function::Huge => Evidence::HUGE,
            _ => Evidence::empty(),
        };
        let call = Call::of(function.name(), at);
        let space = self.view_within(&call, spans)?;
        let filter = filter.map(|filter| page_filter(filter, &space, self.scope)).transpose()?;
        let (mut sum, mut known) = (Ok(0u64), false);
        let mut left_out = None;
        let mut regions = space.stats_of_pages(spans.ranges(), need, filter.as_ref()).with_budget(self.scope.budget());
        let (mut done, total) = (0u64, spans.ranges().iter().map(|span| span.pages(space.page_size())).sum());
        let mut look = |pages| {
            done = done.saturating_add(pages);
            self.scope.progress(done, total, "pages");
        };
        while let Some((viewed, stats)) = regions.next_watched(&mut look).map_err(|cause| call.caused_by(cause))? {
            // The kernel does not show device mappings, and does not count them either.
            let counted = stats.why_hidden().map_or_else(|| is_counted(function, viewed), Err);
            match counted {
                Err(reason) => left_out = left_out.or(Some(reason)),
                Ok(()) => {
                    known = true;
                    let more = stats.certain_amount(amount(function));
                    sum = sum.and_then(|sum| Ok(sum + more?));
                }
            }
        }
        if let Some(selection) = regions.selection() {
            is_decided(&call, selection)?;
        }
        let sum = match (sum, left_out) {
            (_, Some(reason)) if !known => Err(reason),
            // The kernel counts whole regions only.
            (sum, _) if filter.is_some() => sum,
            (Err(reason), _) => self.kernel_count(function, &space, spans)?.ok_or(reason),
            (sum, _) => sum,
        };
        sum.map(|bytes| Integer::from(bytes).into()).map_err(|reason| call.unknown("", &reason))
    }

    /// Returns the kernel's count (smaps), if the range consists of whole regions. All who may inspect the process may
    /// read it.
    fn kernel_count(&self, function: Function, space: &AddressSpace, spans: &Spans) -> Result<Option<u64>> {
        let count: fn(&Smaps) -> u64 = match function {
            Function::Rss => |smaps| smaps.field("Rss").unwrap_or_default(),
            Function::Pss => |smaps| smaps.field("Pss").unwrap_or_default(),
            Function::Uss => Smaps::uss,
            Function::Swapped => |smaps| smaps.field("Swap").unwrap_or_default(),
            _ => return Ok(None),
        };
        let is_whole = |span: &AddressRange| {
            let starts = space.viewed_region(span.start());
            let ends = space.viewed_region(VirtualAddress::new(span.end().get().saturating_sub(1)));
            starts.is_some_and(|region| region.range().start() == span.start())
                && ends.is_some_and(|region| region.range().end() == span.end())
        };
        if !spans.ranges().iter().all(is_whole) {
            return Ok(None);
        }
        let smaps = match space.read_smaps(&mut self.scope.budget()) {
            Ok(smaps) => smaps,
            Err(over @ inspect::Error::OutOfBudget(_)) => return Err(Error::inspection(Span::default(), "", over)),
            Err(_) => return Ok(None),
        };
        let counted = smaps.iter().filter(|one| spans.ranges().iter().any(|span| span.contains(one.range.start())));
        Ok(Some(counted.map(count).sum()))
    }

    /// Evaluates `name(R)` and `perms(R)`: the value that all regions of the range have, or an error.
    pub(super) fn mapping_word(&self, function: Function, spans: &Spans, at: Span) -> Result<Value> {
        let call = Call::of(function.name(), at);
        let overlaps = |range: &AddressRange| {
            spans.ranges().iter().any(|span| span.start() < range.end() && range.start() < span.end())
        };
        let mut words =
            self.regions(at, &call.name)?.iter().filter(|region| overlaps(&region.range)).map(
                |region| match function {
                    Function::Name => region.name.to_string(),
                    _ => region.permissions.to_string(),
                },
            );
        let first = words.next().ok_or_else(|| call.error("nothing is mapped there"))?;
        match words.find(|other| *other != first) {
            None => Ok(Value::Text(first)),
            Some(other) => {
                let why = format!("the range has several, for example {first} and {other}");
                let error = call.error(why);
                Err(error.hint("`foreach $r in regions` runs lines for each"))
            }
        }
    }

    /// Evaluates `state(A)` and `kind(A)`: a word as in `walk`; for a range, the word that all its pages have.
    pub(super) fn page_word(&self, function: Function, spans: &Spans, at: Span) -> Result<Value> {
        let call = Call::of(function.name(), at);
        let space = self.view_within(&call, spans)?;
        let need = match function {
            Function::Kind => space.obtainable(Evidence::KINDS),
            _ => Evidence::empty(),
        };
        let is_same = |first: &Page, page: &Page| match function {
            Function::State => first.state() == page.state(),
            _ => first.kind == page.kind,
        };
        let mut first_page: Option<Page> = None;
        let mut other = None;
        let mut kept = self.pages(&call, &space, spans, (need | spans.holes()).into());
        while other.is_none()
            && let Some(mut pages) = kept.next()?
        {
            first_page = first_page.or_else(|| pages.next());
            other = first_page.and_then(|first| Some((first, pages.find(|page| !is_same(&first, page))?)));
        }
        kept.finish()?;
        if let Some((first, other)) = other {
            let word = |page: &Page| match (function, page.kind) {
                (Function::Kind, Some(kind)) => kind.word(),
                _ => page.state().word(),
            };
            let (first, other) = (word(&first), word(&other));
            let error = call.error(format!("the pages of the range differ, for example {first} and {other}"));
            let by = function.name();
            return Err(error.hint(format!("`walk RANGE by {by}` counts them")));
        }
        let unknown = |reason| call.unknown("", &reason);
        let state = first_page.map_or(State::Unmapped, |page| page.state());
        if let Some(reason) = first_page.and_then(|page| page.states.uncertainty()) {
            return Err(unknown(reason));
        }
        let word = match (function, first_page.and_then(|page| page.kind)) {
            (Function::State, _) => state.word(),
            (_, Some(kind)) => kind.word(),
            (_, None) => {
                return Err(match first_page.filter(|_| state != State::Unmapped) {
                    Some(page) => unknown(kind_unknown(&page)),
                    None => {
                        let message = format!("{} is in no region: its page has no kind", spans.start());
                        Error::new(at, message)
                    }
                });
            }
        };
        Ok(Value::Text(word.to_owned()))
    }
}

/// The pages that match a question, chunk by chunk.
pub(super) struct MatchingPages<'e> {
    scope: &'e dyn Scope,
    call: &'e Call,
    sweep: Sweep,
    question: Question,
    selection: Selection,
    done: u64,
    total: u64,
}

impl MatchingPages<'_> {
    /// Returns the pages of the next chunk.
    pub fn next(&mut self) -> Result<Option<impl Iterator<Item = Page>>> {
        let Some(chunk) = self.sweep.next().map_err(|cause| self.call.caused_by(cause))? else {
            return Ok(None);
        };
        self.done = self.done.saturating_add(chunk.pages);
        self.scope.progress(self.done, self.total, "pages");
        Ok(Some(self.selection.matching_pages(chunk, &self.question)))
    }

    /// Ends the sweep, and fails if a page was undecided.
    pub fn finish(self) -> Result<()> {
        let MatchingPages { scope, call, sweep, selection, .. } = self;
        if !sweep.changed_ranges().is_empty() {
            scope.note(format!("the regions changed during {}: run it again for a consistent number", call.name));
        }
        is_decided(call, &selection)
    }
}

/// Fails if a filter neither keeps nor leaves out a page.
fn is_decided(call: &Call, selection: &Selection) -> Result<()> {
    selection.require_known().map_err(|cause| call.caused_by(cause))?;
    let Some(reason) = selection.undecided.reason() else {
        return Ok(());
    };
    let pages = counted(selection.undecided.pages(), "page");
    Err(call.unknown(format!(": whether the filter holds for {pages} is not certain"), &reason))
}

/// Returns whether a function counts the pages of a region.
fn is_counted(function: Function, viewed: &ViewedRegion) -> Fact<()> {
    match function {
        Function::Rss | Function::Pss | Function::Uss => viewed.is_in_rss(),
        _ => Ok(()),
    }
}

/// Returns the amount that a function computes.
fn amount(function: Function) -> RegionAmount {
    // The other amounts have the names of their functions.
    RegionAmount::from_word(function.name()).unwrap_or(RegionAmount::Exclusive)
}

impl Evaluator<'_> {
    /// Counts the frames that `walk pfn:A..pfn:B` would count.
    pub(super) fn counted_frames(
        &self,
        function: Function,
        range: FrameRange,
        filter: Option<&Spanned<FilterExpression<PageField>>>,
        at: Span,
    ) -> Result<Value> {
        let call = Call::of(function.name(), at);
        let called = &call.name;
        if matches!(function, Function::Runs | Function::Longest) {
            let message = format!("{called} works on pages of a process, not on frames");
            let hint = "`count(pfn:A..pfn:B where FILTER)` counts frames";
            return Err(Error::new(at, message).hint(hint));
        }
        let machine = self.scope.machine().ok_or_else(|| Error::no_target(at, called))?;
        let filter = filter.map(|filter| frame_filter(filter, machine, self.scope)).transpose()?;
        // Flags are read for every frame, whatever the filter needs, because they show which frames exist.
        let question = Question::new(filter.as_ref(), Evidence::FLAGS);
        let (mut first, mut last) = (None, None);
        let mut swept = machine_frames(machine, range, question).with_budget(self.scope.budget());
        while let Some(step) = swept.next().map_err(|cause| call.caused_by(cause))? {
            match step {
                Step::Visited { done, total } => self.scope.progress(done, total, "frames"),
                Step::Found(one) => {
                    first = first.or(Some(one.first));
                    last = one.first.checked_add(one.frames - 1);
                    if function == Function::First {
                        break;
                    }
                }
            }
        }
        let FrameSums { frames, undecided, .. } = swept.finish();
        if let Some(reason) = undecided.reason() {
            let frames = counted(undecided.pages(), "frame");
            return Err(call.unknown(format!(": whether the filter holds for {frames} is not certain"), &reason));
        }
        let found = |frame: Option<_>| {
            let none = || call.error("no frame of the range matches");
            frame.map(Value::Frame).ok_or_else(none)
        };
        match function {
            Function::First => found(first),
            Function::Last => found(last),
            Function::Bytes => self.bytes_of_pages(frames, at).map(Value::from),
            _ => Ok(Integer::from(frames).into()),
        }
    }
}
