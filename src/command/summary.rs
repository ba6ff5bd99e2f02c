//! `summary [RANGE] [limit N | top N]`: pages counted by the flags of their frames. `summary frames [full]`: all frames
//! by class.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::rows::{RowLimit, SweepEnd, keep_shown, note_hidden_rows};
use super::{frames, rows};
use crate::eval::{self, Extent, Spans};
use crate::inspect::account::frame_account;
use crate::inspect::{AddressSpace, Evidence, FlagCounts, machine_frames};
use crate::kernel::{AddressRange, FrameNumber, FrameRange, PageFlags, PageSize, State};
use crate::lang::parser::{Parsed, Tokens, clause, cut_or_name, range, split_text, word};
use crate::lang::{self, Expected, Expression, Range, Spanned, WrittenName, display};
use crate::process::Machine;
use crate::render::columns::{Cell, Column, SIZE, Table, none, optional, unknown};
use crate::render::text::Text;
use crate::render::text::pages::{FLAGS, MANY_PAGES, names_or_letters, state};
use crate::render::text::words::frame_class;
use crate::render::theme::Role;
use crate::render::units::count;
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{Declared, Fact, FrameClass, Reason, Shape, Stopped, Why};
use nom::Parser;
use nom::combinator::opt;
use std::cmp::Reverse;
use std::fmt::{self, Formatter};

/// `summary [frames | RANGE] [limit N | top N] [full]`
#[derive(Debug)]
pub struct Summary {
    of: Summed,
    /// Which rows.
    cut: Option<lang::LimitClause>,
}

/// What is counted.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
enum Summed {
    /// The whole process.
    Process,
    /// All frames of physical memory.
    Frames {
        /// Whether combinations of flags are shown too.
        is_full: bool,
    },
    /// The pages, or with `pfn:A..pfn:B` the frames, of a range.
    Range(Spanned<Range>),
}

impl Command for Summary {
    const RECORDS: &'static [Shape] = &[SummaryRow::SHAPE, SummaryClass::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("summary").how().alone_before(&["frames", "pfn:", "phys:"]),
        group: Group::Look,
        summary: "count pages by the flags of their frames",
        text: "\
Counts the pages of the process, or of a range, for each combination of flags, as the kernel's tool page-types does. \
The most frequent combination comes first.

  RANGE             the pages of a range
  pfn:A..pfn:B      these frames of physical memory; no target is needed
  frames            all frames of physical memory, by class; no target is needed
  frames full       the same, with the combinations of flags
  limit N, top N    only the N most frequent combinations

A row shows the number of pages, their size, and their flags as letters (those of page-types) and by name. Names that \
do not fit on the screen are letters too (`help flags`). Pages \
without a frame are counted by their state. The flag thp is set in every large folio, even if no huge page is mapped.

Frames without any flag are memory that the kernel itself uses, memory that was never used, or frame numbers without \
memory. `flags` and `decode VALUE as flags` explain each flag.",
        examples: &[
            example("summary", "count the pages of the process"),
            example("summary [heap]", "count the pages of a region"),
            example("summary demo_buffer", "count the pages of a symbol"),
            example("summary pfn:0x1000..pfn:0x2000", "count frames of physical memory"),
            example("summary top 5", "show the five most frequent combinations"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        input.expect(Expected::Word("frames"));
        if let Ok((behind, _)) = word("frames")(input)
            && let Ok((behind, mut summary)) = limited(behind, Summed::Frames { is_full: false })
            && let Ok((behind, full)) = opt(word("full")).parse(behind)
            && split_text(behind).0.is_empty()
        {
            summary.of = Summed::Frames { is_full: full.is_some() };
            return Ok((behind, summary));
        }
        let (behind, whole) = limited(input, Summed::Process)?;
        // Where no number follows them, these words are names.
        if behind.rest.len() < input.rest.len() {
            return Ok((behind, whole));
        }
        let (behind, of) = opt(range).parse(input)?;
        limited(behind, of.map_or(Summed::Process, Summed::Range))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.of {
            Summed::Process => {}
            Summed::Frames { .. } => f.write_str(" frames")?,
            Summed::Range(range) => match &range.node {
                Range::Expression(Expression::Name(WrittenName(name))) if name == "frames" => {
                    f.write_str(" 'frames'")?;
                }
                range => write!(f, " {range}")?,
            },
        }
        display::cut(f, self.cut.as_ref())?;
        display::word_if(f, matches!(self.of, Summed::Frames { is_full: true }), "full")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        match &self.of {
            Summed::Process => pages(context, None, cut),
            Summed::Frames { is_full } => classes(context, *is_full, cut),
            Summed::Range(range) => match eval::range(range, context.state)? {
                Extent::Addresses(spans) => pages(context, Some(spans), cut),
                Extent::Frames(range) => frames(context, range, cut),
            },
        }
    }
}

/// `limit N` or `top N`, if it follows.
fn limited(mut input: Tokens<'_>, of: Summed) -> Parsed<'_, Summary> {
    let mut cut = None;
    clause(&mut input, &mut cut, cut_or_name)?;
    Ok((input, Summary { of, cut }))
}

/// Frames up to the end of the last zone.
pub(super) fn all_frames(machine: &Machine) -> Result<FrameRange, Error> {
    let end = machine.zones()?.end().unwrap_or_default();
    FrameRange::new(FrameNumber::default(), end)
        .ok_or_else(|| Error::refused("/proc/zoneinfo lists no memory", "name the frames: `summary pfn:A..pfn:B`"))
}

fn pages(context: &mut Context, spans: Option<Spans>, cut: Option<RowLimit>) -> Outcome {
    let target = context.target()?;
    let space = AddressSpace::of(&target)?;
    let holes = spans.as_ref().map_or(Evidence::empty(), Spans::holes);
    let ranges: Vec<AddressRange> = match &spans {
        Some(spans) => {
            context.state.last_address = None;
            spans.ranges().to_vec()
        }
        None => space.spans(),
    };
    let mut counts = FlagCounts::default();
    let facts = space.obtainable(Evidence::FLAGS) | Evidence::ENTRIES | holes;
    let mut pages = space.kept_pages(&ranges, facts)?.with_budget(context.sink.budget());
    let next = || pages.each(|page, _| counts.add(page.states, page.flags, page.pages));
    let stopped = rows::pull(context.sink, "pages", next, |(), _| Ok(()))?;
    let ended = SweepEnd::of(pages.finish(), stopped);
    let unreadable = space.availability().flags.clone().err();
    let mut rows = counts.finish();
    let more = keep_shown(&mut rows, cut, |(_, pages)| *pages);
    for ((states, flags), pages) in rows {
        let flags = flags.ok_or_else(|| match states.likeliest() {
            State::Present => unreadable.clone().unwrap_or_else(Reason::words_hidden),
            _ => Reason::NotApplicable("no frame is mapped here"),
        });
        let why = states.why("state");
        let row = row(flags, Some(states.likeliest()), pages, space.page_size(), why);
        context.sink.emit(&row)?;
    }
    note_hidden_rows(more, "row", context.sink)?;
    ended.close(context.sink, false)?;
    Ok(Flow::Done)
}

fn frames(context: &mut Context, range: FrameRange, cut: Option<RowLimit>) -> Outcome {
    let machine = context.state.machine().clone();
    let size = machine.page_size();
    let mut counts = FlagCounts::default();
    let mut kept = machine_frames(&machine, range, Evidence::FLAGS).with_budget(context.sink.budget());
    let next = || kept.next();
    let stopped = rows::pull(context.sink, "frames", next, |frames, _| {
        counts.add_frames(&machine, &frames);
        Ok(())
    })?;
    emit_flags(counts, cut, size, context.sink)?;
    frames::close(&kept.finish(), stopped, size, context.sink)?;
    Ok(Flow::Done)
}

/// The combinations of flags, those of the most frames first.
fn emit_flags(counts: FlagCounts, cut: Option<RowLimit>, size: PageSize, sink: &mut dyn Sink) -> Result<(), Stopped> {
    let offline = counts.offline();
    if offline > 0 {
        sink.note(format!("{offline} of the frames without flags are in offline blocks of memory"))?;
    }
    let mut rows = counts.finish();
    let more = keep_shown(&mut rows, cut, |(_, frames)| *frames);
    for ((_, flags), frames) in rows {
        sink.emit(&row(flags.ok_or_else(Reason::words_hidden), None, frames, size, Why::default()))?;
    }
    note_hidden_rows(more, "row", sink)
}

/// All frames by class; the combinations of flags only if they are asked for.
fn classes(context: &mut Context, is_full: bool, cut: Option<RowLimit>) -> Outcome {
    let machine = context.state.machine().clone();
    let (range, size) = (all_frames(&machine)?, machine.page_size());
    let mut account = frame_account(&machine, range).with_budget(context.sink.budget());
    let mut counts = (is_full || cut.is_some()).then(FlagCounts::default);
    let stopped = rows::pull(
        context.sink,
        "frames",
        || account.next(),
        |frames, _| {
            if let Some(counts) = &mut counts {
                counts.add_frames(&machine, &frames);
            }
            Ok(())
        },
    )?;
    let sums = account.finish();
    let row = |(&class, &pages): (&FrameClass, &u64)| SummaryClass { class, pages, bytes: pages << size.shift() };
    let mut classes: Vec<SummaryClass> = sums.classes.iter().map(row).collect();
    classes.sort_by_cached_key(|row| Reverse(row.pages));
    classes.iter().try_for_each(|row| context.sink.emit(row))?;
    if sums.holes > 0 {
        context.sink.note(format!("{} frame numbers are holes or memory of devices", count(sums.holes)))?;
    }
    if let Some(counts) = counts {
        emit_flags(counts, cut, size, context.sink)?;
    }
    if let Some(swept) = &sums.swept {
        frames::close(swept, stopped, size, context.sink)?;
    }
    Ok(Flow::Done)
}

fn row(flags: Fact<PageFlags>, state: Option<State>, pages: u64, size: PageSize, why: Why) -> SummaryRow {
    SummaryRow {
        letters: flags.as_ref().ok().map(|flags| flags.letters()),
        flags,
        state,
        pages,
        bytes: pages.saturating_mul(size.bytes()),
        why,
    }
}

record! {
    /// A row of `summary`.
    pub struct SummaryRow as "summary" with why if any {
        /// The flags by name.
        flags: Fact<PageFlags>,
        /// The flags as letters, as the kernel's page-types writes them.
        letters: Option<String>,
        /// The state of the pages; `null` for physical frames, which have none.
        state: Option<State>,
        /// Number of pages.
        pages: u64,
        /// The same in bytes.
        bytes: u64,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }
}

record! {
    /// A row of `summary frames`: all frames of one class.
    pub struct SummaryClass as "summary-class" {
        /// The class.
        class: FrameClass,
        /// Number of frames.
        pages: u64,
        /// The same in bytes.
        bytes: u64,
    }
}

impl Record for SummaryClass {
    fn write(&self, text: &mut Text) {
        text.row(&CLASSES, self);
    }
}

static CLASSES: Table<SummaryClass> = Table::of(&[
    MANY_PAGES.cell(|_, row| Cell::count(row.pages)),
    SIZE.cell(|_, row| Cell::size(row.bytes)),
    Column::word("class", 24, Role::Plain).cell(|_, row| Cell::new(frame_class(row.class))),
]);

impl Record for SummaryRow {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&SUMMARY, self);
    }
}

/// `summary`
static SUMMARY: Table<SummaryRow> = Table::of(&[
    MANY_PAGES.cell(|_, row| Cell::count(row.pages)),
    SIZE.cell(|_, row| Cell::size(row.bytes)),
    Column::word("raw", 18, Role::Raw).rank(1).cell(|_, row| match &row.flags {
        Ok(flags) => Cell::new(format!("{:#018x}", flags.bits())),
        Err(_) => none(),
    }),
    Column::word("letters", 38, Role::Flag).rank(2).repeats().cell(|_, row| optional(&row.letters)),
    FLAGS.cell(|style, row| match (&row.flags, row.state) {
        // Beside page-types' letters, under the kernel's names.
        (Ok(_), _) => names_or_letters(style, &row.flags, true),
        (Err(_), Some(State::Present)) => unknown(),
        (Err(_), Some(other)) => state(other),
        (Err(_), None) => unknown(),
    }),
]);

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    const FRAME_FLAGS: PageFlags = PageFlags::from_bits_retain(0x400005868);

    pub fn all() -> Vec<Box<dyn Record>> {
        let class = SummaryClass { class: FrameClass::PageCache, pages: 4_456_448, bytes: 17 << 30 };
        vec![Box::new(class), Box::new(summary()), Box::new(summary_without_frame()), Box::new(summary_unreadable())]
    }

    pub fn summary() -> SummaryRow {
        SummaryRow {
            flags: Ok(FRAME_FLAGS),
            letters: Some(FRAME_FLAGS.letters()),
            state: Some(State::Present),
            pages: 40_512,
            bytes: 40_512 << 12,
            why: Why::default(),
        }
    }

    pub fn summary_without_frame() -> SummaryRow {
        SummaryRow {
            flags: Err(Reason::NotApplicable("no frame is mapped here")),
            letters: None,
            state: Some(State::Swapped),
            pages: 12,
            bytes: 12 << 12,
            why: Why::default(),
        }
    }

    pub fn summary_unreadable() -> SummaryRow {
        let denied = Reason::not_permitted("/proc/kpageflags may be read by root alone");
        SummaryRow { state: Some(State::Present), flags: Err(denied), ..summary_without_frame() }
    }
}
