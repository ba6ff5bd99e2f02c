//! `translate RANGE`: where addresses physically live.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, Resume, example};
use super::rows::RowLimit;
use super::{rows, walk};
use crate::eval::{self, AddressOrRange, Spans};
use crate::inspect::{self, AddressSpace, Evidence, PageDetail, PhysicalRuns, frame_words, kind_unknown};
use crate::kernel::{FrameNumber, PageMapEntry, PageSize, PhysicalAddress, Region, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, cut_to, range};
use crate::lang::{self, Spanned, display};
use crate::process::{self, Target};
use crate::render::Record;
use crate::render::columns::{Cell, END, PAGES, SIZE, START, Table, fact, length};
use crate::render::text::Text;
use crate::render::text::pages::{FRAME, PHYSICAL, STATE, state};
use crate::report::record::record;
use crate::report::{
    Declared, Fact, FolioReport, FramePlace, FrameWords, Hex, NearestRegions, Reason, Shape, SwapSlot, SymbolBrief,
    Translation, Why,
};
use crate::symbol::{self, NoSymbols, Symbols};
use nom::Parser;
use nom::combinator::opt;
use std::fmt::{self, Formatter};

/// `translate RANGE`: an address, or a range for a row per physically contiguous run.
#[derive(Debug)]
pub struct Translate {
    range: Spanned<lang::Range>,
    /// Which of the rows; all if absent.
    cut: Option<lang::LimitClause>,
}

impl Command for Translate {
    const RECORDS: &'static [Shape] = &[ContiguousRun::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("translate").short(&["t"]).how(),
        group: Group::Look,
        summary: "find the physical address of a virtual address",
        text: "\
Translates an address, or each physically contiguous run of a range. Of a symbol with a size, shows the first byte \
in detail, then the runs if it spans pages. The last line of a range shows its lowest and its highest physical \
address. The answer for an address has these parts:

  physical address  frame × page size + offset in the page
  page-map entry    the raw 64 bits, each explained
  page table        the level of the page-table entry and its bits, if /proc/kcore can be read
  page              state and kind
  frame             flags, map count, zone and node
  place             region and symbol

Options:

  limit N  the first N rows
  top N    the N largest rows
  --how    also the reads that gave the answer, with file, offset and value, for xxd to show again (in other commands \
           too)

A frame number that the kernel hides is shown as hidden, with the reason. It is never 0. Does not read the target's \
memory, and changes nothing.",
        examples: &[
            example("translate demo_buffer", "translate a symbol: its first byte, then its runs"),
            example("t demo_buffer + 0x1234", "translate one byte of a buffer"),
            example("translate demo_buffer, +4p", "list the runs of four pages"),
            example("translate --how demo_buffer + 0x1234", "add the reads that gave the answer"),
            example("translate [stack]", "list the runs of a region"),
            example("translate all limit 20", "list twenty runs; an empty line continues"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (range, cut)) = (range, opt(cut_to)).parse(input)?;
        Ok((input, Translate { range, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.range.node)?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let target = context.target()?;
        match eval::subject(&self.range, context.state)? {
            AddressOrRange::Address(address) => {
                detail(context, &target, address)?;
                if let Some(pointer) = eval::null_pointer(address, &self.range.node) {
                    context.sink.note(format!("`{pointer}` is a null pointer"))?;
                }
            }
            AddressOrRange::Range(spans) => return runs(context, &target, &spans, cut),
            AddressOrRange::Sized(spans) => {
                if context.resume.is_none() {
                    detail(context, &target, spans.start())?;
                }
                let page = target.process.page_size();
                if spans.ranges().iter().any(|range| range.pages(page) > 1) {
                    return runs(context, &target, &spans, cut);
                }
            }
        }
        Ok(Flow::Done)
    }
}

/// All facts about one address.
fn detail(context: &mut Context, target: &Target, address: VirtualAddress) -> Result<(), Error> {
    context.state.last_address = Some(address);
    if let Err(error) = target.process.require_page_map() {
        let space = AddressSpace::at(target, address)?;
        let translation = without_page(&space, address, &context.state.symbols, &error.into())?;
        return Ok(context.sink.emit(&translation)?);
    }
    let (space, detail) = AddressSpace::detail_at(target, address)?;
    let too_long = detail.page.state() == State::Outside && detail.region.is_none();
    let translation = translation(&space, detail, &context.state.symbols);
    context.sink.emit(&translation)?;
    if too_long { Ok(note_shorter(context, target, address)?) } else { Ok(()) }
}

/// For an address outside of the page map: notes the mapped address with one digit less. One digit too many among
/// twelve is easily overlooked.
pub(super) fn note_shorter(context: &mut Context, target: &Target, address: VirtualAddress) -> Result<(), Error> {
    let digits = format!("{:x}", address.get());
    // The last digits first: people most often miscount zeros.
    for left_out in (0..digits.len()).rev() {
        let (before, rest) = digits.split_at(left_out);
        let shorter = format!("{before}{}", rest.get(1..).unwrap_or_default());
        let Ok(shorter) = u64::from_str_radix(&shorter, 16).map(VirtualAddress::new) else {
            continue;
        };
        if let Some(region) = target.process.region_at(shorter)? {
            let name = region.name.to_string();
            let message = format!("{shorter}, with one digit less, is mapped: {} {name}", region.range);
            return Ok(context.sink.note(message.trim_end())?);
        }
    }
    Ok(())
}

/// The symbol at an address, in short.
pub(super) fn symbol_at(
    symbols: &Symbols,
    target: &Target,
    regions: &[Region],
    address: VirtualAddress,
) -> Option<SymbolBrief> {
    brief(&symbols.over(target, regions), address)
}

/// The symbol at an address, in short, for look-ups of many addresses.
pub(super) fn brief(symbols: &symbol::TargetSymbols, address: VirtualAddress) -> Option<SymbolBrief> {
    let symbol = symbols.at(address)?;
    Some(SymbolBrief { name: symbol.name(), offset: symbol.offset, module: symbol.module.file_name() })
}

/// The record of one address. Regions are listed for its symbol only where it can have one.
pub(super) fn translation(space: &AddressSpace, detail: PageDetail, symbols: &Symbols) -> Translation {
    let page = space.page_size();
    let mut why = why_unknown(&detail);
    let symbol = symbol_or_why(space.target(), detail.region.as_ref(), detail.address, symbols, &mut why);
    let frame = detail.page.frame();
    let entry = detail.entry.ok_or(Reason::NotApplicable("the page map ends before this address"));
    let of_entry = |ask: fn(PageMapEntry) -> bool| entry.clone().map(ask);
    Translation {
        pid: space.target().process.identity().pid,
        address: detail.address,
        physical: detail.physical,
        pfn: detail.frame,
        pfn_hidden: of_entry(PageMapEntry::is_frame_hidden),
        state: Ok(detail.page.state()),
        kind: detail.page.kind,
        page_offset: page.offset(detail.address),
        page_size: page.bytes(),
        soft_dirty: detail.soft_dirty,
        exclusive: detail.exclusive,
        uffd_wp: of_entry(PageMapEntry::is_uffd_wp),
        guard: Ok(detail.page.state() == State::Guard),
        file_mapped: of_entry(PageMapEntry::is_file_or_shared),
        entry: entry.map(|entry| Hex(entry.raw())),
        huge: detail.huge,
        swap: detail.swap.map(|slot| SwapSlot {
            kind: slot.kind,
            offset: slot.offset,
            byte_offset: slot.offset.checked_mul(page.bytes()).map(Hex),
            device: space.swap_device(slot),
        }),
        words: FrameWords {
            own_mappings: detail.own_mappings.ok().filter(|&own| own > 0),
            ..frame_words(&space.target().machine, detail.flags, detail.map_count)
        },
        folio: match (detail.folio, frame) {
            (Ok((folio, mapping)), Some(frame)) => {
                Ok(FolioReport { mapped: Some(mapping), ..folio.report(frame, page) })
            }
            (Ok(_), None) => Err(Reason::Changed),
            (Err(reason), _) => Err(reason),
        },
        kernel_record: detail.record,
        table_entry: detail.table_entry.and_then(Fact::ok).map(Into::into),
        place: detail.place,
        region: detail.region.as_ref().map(Into::into),
        symbol,
        nearest: detail.nearest.map(|(below, above)| NearestRegions {
            below: below.as_ref().map(Into::into),
            above: above.as_ref().map(Into::into),
        }),
        why,
    }
}

/// Why facts of a page are unknown.
fn why_unknown(detail: &PageDetail) -> Why {
    let mut why = detail.page.states.why("state");
    if detail.page.kind.is_none() && detail.region.is_some() {
        let uncertainty = detail.page.states.uncertainty();
        let reason = uncertainty.unwrap_or_else(|| kind_unknown(&detail.page));
        why.note("kind", &reason);
    }
    // The kind is known, but not whether the file's page is cached.
    if let Err(reason @ (Reason::NotPermitted { .. } | Reason::NotOnThisKernel(_) | Reason::Changed)) = &detail.content
    {
        why.note("kind", reason);
    }
    if let Err(reason) = &detail.own_mappings {
        why.note("own_mappings", reason);
    }
    if let Some(Err(reason)) = &detail.table_entry {
        why.note("table_entry", reason);
    }
    why
}

/// The symbol at an address. If there is none, notes why.
fn symbol_or_why(
    target: &Target,
    region: Option<&Region>,
    address: VirtualAddress,
    symbols: &Symbols,
    why: &mut Why,
) -> Option<SymbolBrief> {
    let named = region.filter(|region| symbols.may_name(target, region))?;
    let regions = symbols.regions_for(target, named).ok()?;
    let names = symbols.over(target, &*regions);
    let symbol = brief(&names, address);
    if let (None, Some(reason)) = (&symbol, names.why_unnamed(address)) {
        why.note("symbol", &reason_without_symbol(reason));
    }
    symbol
}

/// The record of an address of a core file without a page map: its place is known, and its page is not.
pub(super) fn without_page(
    space: &AddressSpace,
    address: VirtualAddress,
    symbols: &Symbols,
    reason: &Reason,
) -> inspect::Result<Translation> {
    let target = space.target();
    let region = space.viewed_region(address).map(|viewed| &viewed.region);
    let nearest = if region.is_none() { Some(space.nearest(address)?) } else { None };
    let reason = if region.is_none() { Reason::NotApplicable("no frame is mapped here") } else { reason.clone() };
    let mut why = Why::default();
    let symbol = symbol_or_why(target, region, address, symbols, &mut why);
    if region.is_some() {
        why.note("kind", &reason);
    }
    Ok(Translation {
        pid: target.process.identity().pid,
        address,
        physical: Err(reason.clone()),
        pfn: Err(reason.clone()),
        pfn_hidden: Err(reason.clone()),
        state: if region.is_none() { Ok(State::Unmapped) } else { Err(reason.clone()) },
        kind: None,
        entry: Err(reason.clone()),
        page_offset: space.page_size().offset(address),
        page_size: space.page_size().bytes(),
        soft_dirty: Err(reason.clone()),
        exclusive: Err(reason.clone()),
        uffd_wp: Err(reason.clone()),
        guard: if region.is_none() { Ok(false) } else { Err(reason.clone()) },
        file_mapped: Err(reason.clone()),
        huge: Err(reason.clone()),
        swap: Err(reason.clone()),
        words: FrameWords::unknown(&reason),
        folio: Err(reason.clone()),
        kernel_record: None,
        table_entry: None,
        place: FramePlace::unknown(&reason),
        region: region.map(Into::into),
        symbol,
        nearest: nearest.map(|(below, above)| NearestRegions {
            below: below.as_ref().map(Into::into),
            above: above.as_ref().map(Into::into),
        }),
        why,
    })
}

/// Why an address has no symbol if its module has none.
fn reason_without_symbol(reason: NoSymbols) -> Reason {
    match reason {
        NoSymbols::Unreadable(process::Error::NotPermitted { what, remedy }) => {
            Reason::NotPermitted { what, remedy: Some(remedy).filter(|remedy| !remedy.is_empty()) }
        }
        reason => Reason::NotInFile(reason.to_string()),
    }
}

/// A row for each physically contiguous run.
fn runs(context: &mut Context, target: &Target, spans: &Spans, cut: Option<RowLimit>) -> Outcome {
    context.state.last_address = None;
    let space = AddressSpace::in_ranges(target, spans.ranges())?;
    let need = space.obtainable(Evidence::KINDS) | space.device_frames(spans.ranges()) | spans.holes();
    let rest = walk::rest(spans, context.resume);
    let record = |run: &inspect::PhysicalRun| row(run, space.page_size());
    let more = rows::emit_rows(space.rows::<PhysicalRuns>(&rest, need)?, cut, context.sink, record)?;
    Ok(more.map_or(Flow::Done, |address| Flow::More(Resume::Address(address))))
}

/// Why a row has no frame of its own.
const ALL_ZEROS: &str = "all its pages map the zero page";

fn row(run: &inspect::PhysicalRun, page: PageSize) -> ContiguousRun {
    let frame = run.frame.filter(|_| !run.is_zero());
    let pfn = frame.ok_or_else(|| match run.states.likeliest() {
        State::Present if run.is_zero() => Reason::NotApplicable(ALL_ZEROS),
        State::Present => Reason::FrameHidden,
        State::PfnMapped => {
            Reason::NotOnThisKernel("the kernel hides the frames of device mappings (VM_PFNMAP)".to_owned())
        }
        _ => Reason::NotApplicable("no frame is mapped here"),
    });
    ContiguousRun {
        start: run.start,
        end: run.end(page),
        physical: pfn.clone().and_then(|frame| {
            let too_large = Reason::NotApplicable("no physical address is that large");
            frame.physical(page).ok_or(too_large)
        }),
        pfn,
        pages: run.pages,
        state: run.states.likeliest(),
        why: run.states.why("state"),
    }
}

record! {
    /// A row of `translate RANGE`: physically contiguous pages.
    pub struct ContiguousRun as "run" with why if any {
        /// First virtual address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Physical address of the first byte: `phys` in filters.
        physical: Fact<PhysicalAddress>,
        /// First frame.
        pfn: Fact<FrameNumber>,
        /// Pages in it.
        pages: u64,
        /// Their state.
        state: State,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }
}

impl Record for ContiguousRun {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&RUNS, self);
    }

    fn address(&self) -> Option<VirtualAddress> {
        Some(self.start)
    }
}

/// `translate RANGE`
static RUNS: Table<ContiguousRun> = Table::of(&[
    START.cell(|_, run| Cell::new(&run.start)),
    END.rank(2).cell(|_, run| Cell::new(&run.end)),
    SIZE.cell(|_, run| length(run.start, run.end)),
    PAGES.rank(3).cell(|_, run| Cell::count(run.pages)),
    PHYSICAL.cell(|_, run| match &run.physical {
        Err(Reason::NotApplicable(ALL_ZEROS)) => Cell::new("zero page"),
        physical => fact(physical),
    }),
    FRAME.rank(1).cell(|_, run| fact(&run.pfn)),
    STATE.cell(|_, run| state(run.state)),
]);

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::{HIDDEN, pa, pfn, va};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(run()), Box::new(hidden_run())]
    }

    pub fn run() -> ContiguousRun {
        ContiguousRun {
            start: va(0x7ffff7dc0000),
            end: va(0x7ffff7dc8000),
            physical: Ok(pa(0x1a4eac000)),
            pfn: Ok(pfn(0x1a4eac)),
            pages: 8,
            state: State::Present,
            why: Why::default(),
        }
    }

    pub fn hidden_run() -> ContiguousRun {
        ContiguousRun {
            start: va(0x7ffff7dc8000),
            end: va(0x7ffff7dc9000),
            physical: Err(HIDDEN),
            pfn: Err(HIDDEN),
            pages: 1,
            ..run()
        }
    }
}
