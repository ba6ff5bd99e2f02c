//! What every command that goes through pages does: sweep, hand on, and close with totals however it ended.

use super::Error;
use crate::inspect::{self, Page, Question, Totals, View, classify};
use crate::kernel::{AddressRange, PageFlags, State};
use crate::lang::{self, GroupKey, PageField, Spanned};
use crate::report::{Note, Reason, Record, Sink, Stopped, WalkSummary};
use std::cell::RefCell;

/// The arguments of `walk`, as written.
pub(super) struct Arguments<'a> {
    pub range: &'a Spanned<lang::Range>,
    pub filter: Option<&'a Spanned<lang::Filter<PageField>>>,
    pub by: Option<GroupKey>,
    pub limit: Option<u64>,
}

/// What is known when a sweep has ended.
pub(super) struct Ended {
    /// Counts of what went by.
    pub totals: Totals,
    /// Whether regions changed meanwhile.
    pub changed: bool,
    /// Pages of which it could not be told what is behind them, and why not for the first.
    untold: Option<(u64, Reason)>,
    /// Why the states of some pages are not certain.
    doubt: Option<Reason>,
    /// Why it was broken off, if it was.
    pub stopped: Option<Stopped>,
}

impl Ended {
    /// Takes note of what the sink answered to the last row: a first Ctrl-C stays what it was.
    pub fn add_stop(&mut self, answer: Result<(), Stopped>) {
        self.stopped = match (self.stopped, answer) {
            (_, Err(Stopped::Closed)) => Some(Stopped::Closed),
            (before, answer) => before.or(answer.err()),
        };
    }

    /// Closes with the totals; what was broken off stays broken off.
    pub fn close(mut self, sink: &mut dyn Sink, cut_short: bool) -> Result<(), Error> {
        self.totals.finish();
        if let Some((pages, reason)) = &self.untold {
            let message = format!(
                "left out: whether {pages} untouched {} cached, swapped or past the end, which cannot be known here: {reason}",
                if *pages == 1 { "page is" } else { "pages are" },
            );
            sink.emit(Record::Note(Note { message }))?;
        }
        let doubtful = [
            State::Swapped,
            State::Poisoned,
            State::UffdWp,
            State::Migrating,
        ];
        if let Some(doubt) = self.doubt
            && doubtful.iter().any(|&state| self.totals.state(state) > 0)
        {
            let message = format!("the states of pages that are not present are {doubt}");
            sink.emit(Record::Note(Note { message }))?;
        }
        let summary = WalkSummary {
            pages: self.totals.pages,
            bytes: self.totals.bytes(),
            runs: self.totals.runs(),
            longest_run_bytes: self.totals.longest_run_bytes(),
            changed: self.changed,
            cut_short: cut_short || self.stopped.is_some(),
            states: self.totals.states(),
        };
        match self.stopped {
            Some(Stopped::Closed) => Err(Stopped::Closed.into()),
            Some(Stopped::Interrupted) => {
                sink.emit(Record::WalkSummary(summary))?;
                Err(Stopped::Interrupted.into())
            }
            None => Ok(sink.emit(Record::WalkSummary(summary))?),
        }
    }
}

/// Whether a sweep is to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    /// With the next page.
    On,
    /// No further: this page is not counted.
    NoFurther,
}

/// Sweeps `spans`; `each` takes every page with the index of its region, counts what it wants counted in the totals, and says
/// whether to go on.
pub(super) fn sweep<'f>(
    view: &View,
    spans: &[AddressRange],
    question: impl Into<Question<'f>>,
    sink: &mut dyn Sink,
    mut each: impl FnMut(&Page, Option<usize>, &mut Totals, &mut dyn Sink) -> Result<Go, Stopped>,
) -> Result<Ended, Error> {
    let mut totals = Totals::new(view.page());
    let total = spans.iter().map(|span| span.pages(view.page())).sum();
    let mut done = 0u64;
    let sink = RefCell::new(sink);
    let mut enough = false;
    let mut untold: Option<(u64, Reason)> = None;
    let mut doubt = None;
    let swept = inspect::sweep(
        view,
        spans,
        question,
        &mut || sink.borrow_mut().check(),
        &mut |chunk| {
            let sink = &mut **sink.borrow_mut();
            if let Some((pages, reason)) = chunk.untold() {
                untold.get_or_insert((0, reason)).0 += pages;
            }
            sink.progress(done, total, "pages")?;
            done = done.saturating_add(chunk.pages);
            for page in chunk.pages() {
                if doubt.is_none() {
                    doubt = classify::doubt(page.entry, view);
                }
                if each(&page, chunk.region_index, &mut totals, sink)? == Go::NoFurther {
                    enough = true;
                    return Err(Stopped::Closed);
                }
            }
            Ok(())
        },
    );
    let (changed, stopped) = match swept {
        Ok(sweep) => (!sweep.changed.is_empty(), None),
        Err(inspect::Error::Stopped(_)) if enough => (false, None),
        Err(inspect::Error::Stopped(stopped)) => (false, Some(stopped)),
        Err(error) => return Err(error.into()),
    };
    Ok(Ended {
        totals,
        changed,
        untold,
        doubt,
        stopped,
    })
}

/// A set of flags as the key of a group.
pub(super) fn flags_key(flags: PageFlags) -> String {
    match flags.names() {
        names if names.is_empty() => "none set".to_owned(),
        names => names.join(","),
    }
}
