//! `explain huge [ADDR|RANGE]`: why memory is not on huge pages.

use super::huge_records::{HugePages, HugePiece, HugeRow, HugeSizeRow, HugeZerosRow};
use crate::command::floor::{Context, Error, Flow, Outcome};
use crate::command::rows::{Largest, RowLimit, finish, note_hidden_rows, pull, show_largest};
use crate::eval::{self, AddressOrRange, Origin};
use crate::inspect::AddressSpace;
use crate::inspect::huge::{HugeReason, HugeReport, HugeSweep, HugeZeros};
use crate::kernel::AddressRange;
use crate::kernel::huge::HugeChoice;
use crate::lang::parser::{Parsed, Tokens, clause, cut_or_name, range, split_text, word};
use crate::lang::{self, Range, Spanned, display};
use crate::render::Sink;
use crate::report::{HugeBy, HugePast, Reason, RegionBrief, Stopped};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// `[RANGE] [with content] [limit N | top N]`
#[derive(Debug)]
pub(super) struct ExplainHuge {
    /// Of what; the whole process if absent.
    of: Option<Spanned<Range>>,
    /// Whether huge pages are read, for zero-filled subpages.
    reads_content: bool,
    /// Which huge pages with such pieces.
    cut: Option<lang::LimitClause>,
}

/// What follows `huge`.
pub(super) fn huge(input: Tokens<'_>) -> Parsed<'_, ExplainHuge> {
    let (behind, whole) = clauses(input, None)?;
    // Where no clause follows them, these words are names.
    if behind.rest.len() < input.rest.len() {
        return Ok((behind, whole));
    }
    // `in` is a word here if a range follows, and a name otherwise.
    if let Ok((behind, of)) = preceded(word("in"), range).parse(input)
        && let Ok((behind, huge)) = clauses(behind, Some(of))
        && split_text(behind).0.is_empty()
    {
        return Ok((behind, huge));
    }
    let (behind, of) = opt(range).parse(input)?;
    clauses(behind, of)
}

fn clauses(mut input: Tokens<'_>, of: Option<Spanned<Range>>) -> Parsed<'_, ExplainHuge> {
    let (mut content, mut cut) = (None, None);
    while clause(&mut input, &mut content, |input| preceded(word("with"), word("content")).parse(input))?
        || clause(&mut input, &mut cut, cut_or_name)?
    {}
    Ok((input, ExplainHuge { of, reads_content: content.is_some(), cut }))
}

impl ExplainHuge {
    pub fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(" huge")?;
        if let Some(of) = &self.of {
            write!(f, " {}", of.node)?;
        }
        display::word_if(f, self.reads_content, "with content")?;
        display::cut(f, self.cut.as_ref())
    }

    pub fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        if cut.is_some() && !self.reads_content {
            return Err(Error::refused(
                "`limit` and `top` are for the pieces of huge pages",
                "explain huge with content top 5",
            ));
        }
        let target = context.target()?;
        let space = AddressSpace::of(&target)?;
        let ranges = match &self.of {
            None => space.spans(),
            Some(of) => match eval::subject(of, context.state)? {
                AddressOrRange::Address(address) => {
                    let none = || Error::refused(format!("{address} is in no region"), "`regions` lists them");
                    space.region(address).ok_or_else(none)?;
                    AddressRange::of_length(address, 1).into_iter().collect()
                }
                AddressOrRange::Sized(spans) | AddressOrRange::Range(spans) if *spans.origin() != Origin::All => {
                    spans.ranges().to_vec()
                }
                _ => space.spans(),
            },
        };
        let sink = &mut *context.sink;
        let mut sweep = space.huge(&ranges, self.reads_content, &sink.budget())?;
        let mut zeros = Zeros::new(cut);
        let stopped = pull(sink, "pages", || sweep.next(), |found, sink| Ok(zeros.add(&found, sink)?))?;
        let report = sweep.report();
        if stopped != Some(Stopped::Closed) {
            zeros.finish(sink)?;
            for reason in &report.reasons {
                sink.emit(&row(&space, reason))?;
            }
            sizes(&report, sink)?;
        }
        let hides_swapped = space.regions_in(&ranges).any(|viewed| space.hides_swapped(viewed));
        let summary = summary(&space, &sweep, &report, hides_swapped, stopped.is_some());
        finish(&summary, stopped, sink)?;
        Ok(Flow::Done)
    }
}

/// The rows of zero-filled subpages that are wanted.
struct Zeros {
    largest: Option<Largest<HugeZerosRow>>,
    left: u64,
    more: usize,
}

impl Zeros {
    fn new(cut: Option<RowLimit>) -> Self {
        Zeros { largest: RowLimit::top(cut).map(Largest::new), left: RowLimit::limit(cut).unwrap_or(u64::MAX), more: 0 }
    }

    fn add(&mut self, found: &HugeZeros, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let zeros = found.pieces.iter().map(|piece| piece.len()).sum();
        let row = HugeZerosRow {
            start: found.range.start(),
            end: found.range.end(),
            zeros,
            pieces: found.pieces.iter().map(|piece| HugePiece { start: piece.start(), end: piece.end() }).collect(),
        };
        match &mut self.largest {
            Some(largest) => largest.add(zeros, row),
            None if self.left > 0 => {
                self.left -= 1;
                sink.emit(&row)?;
            }
            None => self.more += 1,
        }
        Ok(())
    }

    fn finish(self, sink: &mut dyn Sink) -> Result<(), Stopped> {
        show_largest(self.largest, "huge page", sink, |row, sink| sink.emit(row))?;
        note_hidden_rows(self.more, "huge page", sink)
    }
}

fn row(space: &AddressSpace, reason: &HugeReason) -> HugeRow {
    let region = space.regions().get(reason.region);
    HugeRow {
        by: reason.by,
        reason: reason.reason,
        bytes: reason.bytes,
        first: reason.first,
        only: reason.only,
        region: region.map(|viewed| RegionBrief::from(&viewed.region)),
        region_bytes: reason.region_bytes,
    }
}

/// The rows of the sizes that the settings allow somewhere, or might, if memory asked for them.
fn sizes(report: &HugeReport, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let is_off = |choice: Option<HugeChoice>| choice.is_none_or(|choice| choice == HugeChoice::Never);
    let on = report.sizes.iter().filter(|one| !is_off(one.size.memory) || !is_off(one.size.shared));
    on.clone().try_for_each(|one| {
        sink.emit(&HugeSizeRow {
            size: one.size.bytes,
            memory: one.size.memory,
            shared: one.size.shared,
            allowed: one.allowed,
        })
    })
}

fn summary(
    space: &AddressSpace,
    sweep: &HugeSweep,
    report: &HugeReport,
    hides_swapped: bool,
    cut_short: bool,
) -> HugePages {
    let target = space.target();
    let settings = sweep.settings();
    let identity = target.process.identity();
    let size = space.huge_bytes();
    let order = u8::try_from((size >> space.page().shift()).trailing_zeros()).unwrap_or(u8::MAX);
    let unasked = || Reason::NotApplicable("contents were not looked at");
    let (zeros, unread) = match sweep.zeros() {
        Some((zeros, unread)) => (Ok(zeros), unread),
        None => (Err(unasked()), 0),
    };
    let is_possible = report.reasons.iter().any(|one| one.by == HugeBy::Khugepaged && one.reason.is_none());
    HugePages {
        pid: identity.pid,
        process: identity.name,
        kernel: target.machine.kernel().release,
        size,
        huge: report.counts.huge,
        unclear: report.counts.unclear,
        pool: report.counts.pool,
        huge_zeros: report.counts.huge_zeros,
        small: report.counts.small,
        swapped: report.counts.swapped,
        hides_swapped,
        untouched: report.counts.untouched,
        zeros,
        unread,
        past: if is_possible { HugePast::ALL.to_vec() } else { Vec::new() },
        free_blocks: target.machine.free_blocks().map(|blocks| blocks.of_order(order)).map_err(Reason::from),
        memory: settings.memory,
        shared: settings.shared,
        max_empty: settings.max_empty,
        max_swapped: settings.max_swapped,
        max_shared: settings.max_shared,
        changed: !sweep.changed_ranges().is_empty(),
        cut_short,
    }
}
