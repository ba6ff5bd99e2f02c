//! `huge [ADDR|RANGE]`: why memory is not on huge pages.

pub(super) mod reasons;
pub(super) mod records;

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::rows::{Largest, RowLimit, finish, name_of_range, note_hidden_rows, pull, show_largest};
use crate::eval::{self, AddressOrRange, Origin};
use crate::inspect::AddressSpace;
use crate::inspect::huge::{HugeCounts, HugeReason, HugeReport, HugeStretch, HugeSweep, HugeZeros};
use crate::kernel::AddressRange;
use crate::kernel::huge::HugeChoice;
use crate::lang::parser::{Parsed, Tokens, are_clauses, clause, cut_or_name, range, split_text, word};
use crate::lang::{self, Expression, Range, Spanned, WrittenName, display};
#[cfg(test)]
use crate::render::Record;
use crate::render::{More, Sink};
use crate::report::{Declared, HugeBy, HugePast, Reason, RegionBrief, Shape, Stopped, Why};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
use reasons::{HugePart, HugeRow};
use records::{HugePages, HugePiece, HugeSizeRow, HugeZerosRow};
use std::fmt::{self, Formatter};
use std::time::Duration;

/// `huge [RANGE] [with content] [limit N | top N] [full]`
#[derive(Debug)]
pub struct Huge {
    /// Of what; the whole process if absent.
    of: Option<Spanned<Range>>,
    /// Whether huge pages are read, for zero-filled subpages.
    reads_content: bool,
    /// Which huge pages with such pieces.
    cut: Option<lang::LimitClause>,
    /// Whether settings, rules and small reasons are shown.
    is_full: bool,
}

fn clauses(mut input: Tokens<'_>, of: Option<Spanned<Range>>) -> Parsed<'_, Huge> {
    let (mut content, mut cut, mut full) = (None, None, None);
    while clause(&mut input, &mut content, |input| preceded(word("with"), word("content")).parse(input))?
        || clause(&mut input, &mut cut, cut_or_name)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    Ok((input, Huge { of, reads_content: content.is_some(), cut, is_full: full.is_some() }))
}

impl Command for Huge {
    const RECORDS: &'static [Shape] = &[HugeRow::SHAPE, HugeSizeRow::SHAPE, HugeZerosRow::SHAPE, HugePages::SHAPE];

    const ABOUT: About = About {
        name: CommandName::new("huge").whole().how(),
        group: Group::Look,
        summary: "list why memory is not on huge pages",
        text: "\
Lists why memory is not on transparent huge pages. Resident small pages become huge by a thread of the kernel \
(khugepaged), and untouched memory by the next access (a page fault). Each has a table of the reasons why it would not \
make a huge page now. A range with few parts has a row for each of them. The columns:

  bytes      the memory that the reason concerns
  only this  the part of it without another reason: a change here has an effect
  mostly in  the region with most of it

The summary lists past obstacles if there is none now. Without /proc/kcore only pins of \
buffers that are registered with io_uring are visible. Free blocks are no reason: the kernel can \
make some by compaction.

  ADDR          only the huge page around the address
  RANGE         only the huge pages in the range, rounded to whole ones
  with content  read what is huge, and list its zero-filled subpages
  top N         the N huge pages with the most of these
  limit N       the first N of them
  full          also reasons of less than 1 %, the settings, the sizes that they allow, free blocks, and the pace of \
khugepaged",
        examples: &[
            example("huge", "list why memory is not on huge pages"),
            example("huge full", "show the settings too"),
            example("huge [heap] with content", "find zero-filled subpages of huge pages in the heap"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (behind, whole) = clauses(input, None)?;
        // Where no clause follows them, these words are names.
        if are_clauses(input, behind, whole.is_full) {
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

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.of.as_ref().map(|of| &of.node) {
            // Unquoted it is a word.
            Some(Range::Expression(Expression::Name(WrittenName(name)))) if name == "full" => f.write_str(" 'full'")?,
            Some(of) => write!(f, " {of}")?,
            None => {}
        }
        display::word_if(f, self.reads_content, "with content")?;
        display::cut(f, self.cut.as_ref())?;
        display::word_if(f, self.is_full, "full")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        if cut.is_some() && !self.reads_content {
            return Err(Error::refused(
                "`limit` and `top` are for the pieces of huge pages",
                "huge with content top 5",
            ));
        }
        if self.is_full {
            context.sink.show(More::All);
        }
        let target = context.target()?;
        let space = AddressSpace::of(&target)?;
        let ranges = match &self.of {
            None => space.spans(),
            Some(of) => match eval::subject(of, context.state).map_err(|error| meant(of, error))? {
                AddressOrRange::Address(address) => {
                    let none = || Error::refused(eval::in_no_region(address, &of.node), "`regions` lists them");
                    space.viewed_region(address).ok_or_else(none)?;
                    eval::note_one_huge_page(of, address, context.state);
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
        let hides_swapped = space.regions_in(&ranges).any(|viewed| space.hides_swapped(viewed));
        let summary = summary(&space, &sweep, &report, hides_swapped, stopped.is_some());
        if stopped != Some(Stopped::Closed) {
            zeros.finish(sink)?;
            let rows = rows(&space, &report, self.of.is_some());
            let (language, line) = (context.commands.language, &context.state.line);
            let range = self.of.as_ref().map(|range| name_of_range(range, language, line));
            sink.answer(records::answer(&summary, &rows, range.as_deref()))?;
            rows.iter().try_for_each(|row| sink.emit(row))?;
            sizes(&report, sink)?;
        }
        finish(&summary, stopped, sink)?;
        Ok(Flow::Done)
    }
}

/// The error, with a hint if the name is the rest of `huge pages`.
fn meant(of: &Spanned<Range>, error: eval::Error) -> eval::Error {
    match &*of.node.to_string() {
        "page" | "pages" => error.hint("`huge` alone is of all memory, and `huge RANGE` of a part of it"),
        _ => error,
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

/// The rows of the reasons, those of resident memory first, and of these the largest. Of a range with few parts they
/// have each.
fn rows(space: &AddressSpace, report: &HugeReport, is_range: bool) -> Vec<HugeRow> {
    const FEW: usize = 8;
    let parts = |reason: &HugeReason| reason.stretches.as_ref().map(Vec::len);
    let all: Option<usize> = report.reasons.iter().map(parts).sum();
    let has_parts = is_range && all.is_some_and(|all| all <= FEW);
    let mut rows: Vec<HugeRow> =
        report.reasons.iter().map(|reason| row(space, reason, &report.counts, has_parts)).collect();
    reasons::sort(&mut rows);
    rows
}

fn row(space: &AddressSpace, reason: &HugeReason, counts: &HugeCounts, has_parts: bool) -> HugeRow {
    let stretches = reason.stretches.iter().filter(|_| has_parts);
    let region = space.viewed_regions().get(reason.region);
    HugeRow {
        by: reason.by,
        reason: reason.reason,
        bytes: reason.bytes,
        of: match reason.by {
            HugeBy::Fault => counts.untouched,
            HugeBy::Khugepaged => counts.small + counts.swapped,
        },
        first: reason.first,
        only: reason.only,
        region: region.map(|viewed| RegionBrief::from(&viewed.region)),
        region_bytes: reason.region_bytes,
        parts: stretches.map(|all| all.iter().map(part).collect()).next(),
    }
}

fn part(stretch: &HugeStretch) -> HugePart {
    HugePart { start: stretch.range.start(), end: stretch.range.end(), bytes: stretch.bytes }
}

/// The rows of the sizes that the settings allow somewhere, or might, if memory asked for them.
fn sizes(report: &HugeReport, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let is_off = |choice: Option<HugeChoice>| choice.is_none_or(|choice| choice == HugeChoice::Never);
    let mut on = report.sizes.iter().filter(|one| !is_off(one.size.memory) || !is_off(one.size.shared));
    on.try_for_each(|one| {
        sink.emit(&HugeSizeRow {
            size: one.size.bytes,
            memory: one.size.memory,
            shared: one.size.shared,
            allowed: one.allowed,
        })
    })
}

/// Returns the bytes that khugepaged examines between two sleeps: so many pages, as whole huge pages.
fn scanned(space: &AddressSpace, pages: Option<u64>) -> Option<u64> {
    pages?.checked_mul(space.page_size().bytes())?.checked_next_multiple_of(space.huge_bytes())
}

/// Returns the least time of a pass of khugepaged, which examines all of these bytes in each, and `scanned` bytes
/// between two sleeps of `sleep` milliseconds.
fn shortest_pass(examined: u64, scanned: Option<u64>, sleep: Option<u64>) -> Duration {
    let sleeps = scanned.and_then(|scanned| examined.checked_div(scanned)).unwrap_or_default();
    Duration::from_millis(sleeps.saturating_mul(sleep.unwrap_or_default()))
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
    let order = u8::try_from((size >> space.page_size().shift()).trailing_zeros()).unwrap_or(u8::MAX);
    let unasked = || Reason::NotApplicable("contents were not looked at");
    let (zeros, unread) = match sweep.zeros() {
        Some((zeros, unread)) => (Ok(zeros), unread),
        None => (Err(unasked()), 0),
    };
    let early = report.touched_early;
    let possible = report.reasons.iter().find(|one| one.by == HugeBy::Khugepaged && one.reason.is_none());
    let scanned = scanned(space, settings.scanned);
    let examined = report.counts.huge + possible.map_or(0, |reason| reason.bytes);
    let (pins, why_pins) = sweep.known_pins();
    let mut why = Why::default();
    if let Some(reason) = why_pins {
        why.note("pins", reason);
    }
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
        advised_small: report.counts.advised_small,
        touched_early: early.map_or(0, |(_, bytes)| bytes),
        early_region: early.and_then(|(index, _)| Some(RegionBrief::from(&space.viewed_regions().get(index)?.region))),
        swapped: report.counts.swapped,
        hides_swapped,
        untouched: report.counts.untouched,
        zeros,
        unread,
        past: possible.map_or_else(Vec::new, |_| HugePast::ALL.to_vec()),
        free_blocks: target.machine.free_blocks().map(|blocks| blocks.of_order(order)).map_err(Reason::from),
        memory: settings.memory,
        shared: settings.shared,
        max_empty: settings.max_empty,
        max_swapped: settings.max_swapped,
        max_shared: settings.max_shared,
        scanned,
        sleep: settings.sleep,
        passes: target.process.khugepaged_passes(shortest_pass(examined, scanned, settings.sleep)),
        pins,
        why,
        changed: !sweep.changed_ranges().is_empty(),
        cut_short,
    }
}
