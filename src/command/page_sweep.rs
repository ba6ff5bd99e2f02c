//! The sweep of all commands over pages: rows, and totals at the end, however the sweep ended.

use super::Error;
use super::cut::{Cut, Largest, show_largest};
use crate::inspect::{self, AddressSpace, Neighbours, Page, Question, Selection, StateSet, Sweep, Totals};
use crate::kernel::{AddressRange, VirtualAddress};
use crate::render::units::counted;
use crate::render::{Record, Sink};
use crate::report::{EveryState, Stopped, WalkSummary};

/// The result of a sweep.
pub(super) struct SweepEnd {
    /// The counts of the pages.
    pub totals: Totals,
    /// Whether regions changed meanwhile.
    pub changed: bool,
    /// What is uncertain about the pages that the filter keeps and leaves out.
    pub selection: Selection,
    /// Why it was stopped, if it was.
    pub stopped: Option<Stopped>,
}

impl SweepEnd {
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
        if let Some(reason) = self.selection.unknown_content.reason() {
            // No page was kept: that none matches would be false.
            if self.totals.pages == 0 && self.stopped.is_none() {
                let what = "the contents of untouched pages (cached, swapped or past the end)";
                return Err(inspect::Error::Unknown { what, reason }.into());
            }
            let pages = self.selection.unknown_content.pages();
            let message = format!(
                "left out: {pages} untouched {} whose contents are unknown ({reason})",
                if pages == 1 { "page" } else { "pages" },
            );
            sink.note(message)?;
        }
        if let Some((pages, states)) = self.selection.undecided {
            say_left_out(pages, "page", &states_are(states), sink)?;
        }
        let summary = WalkSummary {
            pages: self.totals.pages,
            bytes: self.totals.bytes(),
            runs: self.totals.runs(),
            longest_run_bytes: self.totals.longest_run_bytes(),
            longest_run_start: self.totals.longest_run_start(),
            changed: self.changed,
            cut_short: cut_short || self.stopped.is_some(),
            states: EveryState(self.totals.states().map()),
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

/// The note that states of pages are uncertain, and why.
pub(super) fn states_are(states: StateSet) -> String {
    let reason = states.uncertainty().map(|reason| reason.to_string());
    format!("states are {}", reason.unwrap_or_default())
}

/// The pages of a sweep that its question keeps.
pub(super) struct PageSweep {
    pages: Sweep,
    question: Question,
    done: u64,
    total: u64,
    totals: Totals,
    selection: Selection,
}

/// Pages of one region or hole.
pub(super) struct KeptPages<'s, Pages> {
    /// The index of the region.
    pub region: Option<usize>,
    pub pages: Pages,
    /// To which the caller adds what it takes.
    pub totals: &'s mut Totals,
}

impl PageSweep {
    /// The next pages; `None` after the last.
    pub fn next<'s>(
        &'s mut self,
        sink: &mut dyn Sink,
    ) -> Result<Option<KeptPages<'s, impl Iterator<Item = Page> + use<'s>>>, Error> {
        let Some(chunk) = self.pages.next()? else {
            return Ok(None);
        };
        sink.progress(self.done, self.total, "pages")?;
        self.done = self.done.saturating_add(chunk.pages);
        let pages = self.selection.kept(chunk, &self.question);
        Ok(Some(KeptPages { region: chunk.region_index, pages, totals: &mut self.totals }))
    }
}

/// Sweeps `spans`: `pull` takes the pages that it wants. Errors other than the sink's are passed on.
pub(super) fn sweep(
    space: &AddressSpace,
    spans: &[AddressRange],
    question: impl Into<Question>,
    sink: &mut dyn Sink,
    pull: impl FnOnce(&mut PageSweep, &mut dyn Sink) -> Result<(), Error>,
) -> Result<SweepEnd, Error> {
    let question = question.into();
    let mut sweep = PageSweep {
        pages: space.pages(spans, question.clone()).within(sink.budget()),
        totals: Totals::new(space.page(), question.need()),
        question,
        done: 0,
        total: spans.iter().map(|span| span.pages(space.page())).sum(),
        selection: Selection::default(),
    };
    let stopped = stopped(pull(&mut sweep, sink), sink)?;
    let changed = !sweep.pages.changed().is_empty();
    Ok(SweepEnd { totals: sweep.totals, changed, selection: sweep.selection, stopped })
}

/// Why a sweep was stopped, if it was. Other errors are passed on.
pub(super) fn stopped(pulled: Result<(), Error>, sink: &mut dyn Sink) -> Result<Option<Stopped>, Error> {
    match pulled {
        Ok(()) => Ok(None),
        // The engine may have noticed Ctrl-C before the sink: its answer is known here.
        Err(Error::Stopped(stopped)) => Ok(Some(sink.check().err().unwrap_or(stopped))),
        Err(error) => Err(error),
    }
}

/// Sweeps `spans` and emits the records of the rows of neighbours that are wanted, then the totals. Returns where the
/// row begins that would be one too many.
pub(super) fn rows<N: Neighbours, R: Record>(
    space: &AddressSpace,
    spans: &[AddressRange],
    question: Question,
    cut: Option<Cut>,
    sink: &mut dyn Sink,
    mut record: impl FnMut(&N::Row) -> R,
) -> Result<Option<VirtualAddress>, Error> {
    let mut rows = N::new(space.page());
    let mut left = Cut::limit(cut).unwrap_or(u64::MAX);
    let mut largest = Cut::top(cut).map(Largest::new);
    let mut more = None;
    let mut ended = sweep(space, spans, question, sink, |sweep, sink| {
        while let Some(kept) = sweep.next(sink)? {
            for page in kept.pages {
                // Pages in the totals must also be in a row, even if the sink says to stop.
                let row = rows.push(&page, kept.region);
                left = left.saturating_sub(u64::from(row.is_some()));
                match left {
                    0 => more = Some(page.address),
                    _ => kept.totals.add(&page),
                }
                match (row, &mut largest) {
                    (None, _) => {}
                    (Some(row), Some(largest)) => largest.add(N::size(&row), row),
                    (Some(row), None) => sink.emit(&record(&row))?,
                }
                if more.is_some() {
                    return Ok(());
                }
            }
        }
        Ok(())
    })?;
    if more.is_none()
        && ended.stopped != Some(Stopped::Closed)
        && let Some(row) = rows.finish()
    {
        match &mut largest {
            Some(largest) => largest.add(N::size(&row), row),
            None => ended.add_stop(sink.emit(&record(&row))),
        }
    }
    show_largest(largest, "row", sink, |row, sink| sink.emit(&record(row)))?;
    ended.close(sink, more.is_some())?;
    Ok(more)
}
