//! `pins RANGE`: the references to pages by holder, their pins, and who may have pinned them.

mod buffers;
mod held_rows;

use super::rows::{self, finish};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::eval::{self, Extent};
use crate::inspect::who::{self, FrameQuestion, SearchEvent};
use crate::inspect::{self, AddressSpace, Facts, Page, Pins};
use crate::kernel::{AddressRange, FrameNumber, Name, PageSize, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, range};
use crate::lang::{Range, Spanned};
use crate::process::{self, Identity, Machine, PinningDescriptor, Process, Target};
use crate::render::columns::{Cell, Column, PAGES, PID, START, Table, none, optional, reason as reason_cell};
use crate::render::text::lines::Lines;
use crate::render::text::{Text, pages, words};
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{Declared, Fact, Holders, Reason, Shape, Why};
use buffers::whole_pages;
use held_rows::HeldRows;
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};
use std::sync::Arc;

/// `pins RANGE`
#[derive(Debug)]
pub struct PinsOf(Spanned<Range>);

impl Command for PinsOf {
    const RECORDS: &'static [Shape] = &[HeldPages::SHAPE, PinHolder::SHAPE, PinsSummary::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("pins").whole().how(),
        group: Group::Look,
        summary: "list who holds pages, and whether they are pinned",
        text: "\
Lists the references to the pages of a range by holder, and how often the pages are pinned. A page that is pinned \
keeps its frame: a device may write there. Neighbours that are held alike share a row.

  folio   the size of the large folio that the page is part of; a pin of one page holds the whole folio
  pins    number of pins; <N where something else may have the references of a pin
  refs    all references to the folio; a pin of a page that is no large folio counts as 1024
  mapped  those of page tables
  cached  those of the page cache, of the swap cache and of the filesystem
  other   the rest; 1 is normal (a batch of the kernel), more are unexplained

Then lists buffers that are registered with io_uring and contain the pages, and file descriptors of RDMA and VFIO. \
Other processes that map the pages are searched too. Reads and writes with O_DIRECT pin pages for a moment, and the \
kernel does not list them.

Memory that is locked with mlock is not pinned: it stays in memory, and its frames may change (`explain`).

Without the kernel's own records of frames (`help rights`) only the buffers and descriptors are listed, and which pages \
of the range are in such a buffer.",
        examples: &[
            example("pins demo_buffer", "find out whether a buffer is pinned"),
            example("pins [heap]", "list the holders of the pages of a region"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(range, PinsOf).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.node)
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let spans = match eval::range(&self.0, context.state)? {
            Extent::Addresses(spans) => spans,
            Extent::Frames(_) => {
                let hint = "`walk pfn:A..pfn:B where pinned` lists frames";
                return Err(Error::refused("pins works on addresses, not on page frames", hint));
            }
        };
        let target = context.target()?;
        let space = AddressSpace::within(&target, spans.ranges())?;
        context.state.last_address = None;
        match space.require(Facts::REFERENCES) {
            Err(inspect::Error::Unknown { reason, .. }) => {
                return list_without_records(context, &target, &space, &spans, reason);
            }
            other => other?,
        }
        let unproved = match space.require(Facts::PINS) {
            Err(inspect::Error::Unknown { reason, .. }) => Some(reason),
            other => other.map(|()| None)?,
        };
        let mut listing =
            ListedPins { size: space.page(), unproved, found: Vec::new(), summary: PinsSummary::default() };
        let own = target.process.pinning_descriptors();
        listing.add(&target.process.identity(), own, |_| true, context.sink)?;
        let mut shared = Vec::new();
        let (mut rows, facts) = (HeldRows::new(space.page()), Facts::PINS | Facts::KINDS | spans.holes());
        let mut ended = rows::sweep(&space, spans.ranges(), facts, context.sink, |sweep, sink| {
            while let Some(kept) = sweep.next(sink)? {
                for page in kept.pages {
                    kept.totals.add(&page);
                    if let Some(row) = rows.push(&page, kept.region) {
                        sink.emit(&listing.row(&row, &mut shared))?;
                    }
                }
            }
            Ok(())
        })?;
        if let Some(row) = rows.take_last() {
            ended.add_stop(context.sink.emit(&listing.row(&row, &mut shared)));
        }
        if ended.stopped.is_none() {
            for row in shared {
                listing.search_others(&target.process, row, &target.machine, context.sink)?;
            }
        }
        let ListedPins { found, mut summary, .. } = listing;
        // A device may have pinned any page that no registered buffer explains.
        let is_likely =
            |(in_buffer, one): &&(bool, PinHolder)| *in_buffer || one.start.is_none() && summary.unlisted > 0;
        for (_, holder) in found.iter().filter(is_likely) {
            summary.holders += 1;
            ended.add_stop(context.sink.emit(holder));
        }
        ended.say_uncertain(context.sink)?;
        summary.cut_short = ended.stopped.is_some();
        finish(&summary, ended.stopped, context.sink)?;
        Ok(Flow::Done)
    }
}

/// Lists what `/proc` has where the kernel's records cannot be read. Pages in a registered buffer are possibly pinned:
/// others may be mapped there since.
fn list_without_records(
    context: &mut Context,
    target: &Target,
    space: &AddressSpace,
    spans: &eval::Spans,
    reason: Reason,
) -> Outcome {
    let size = space.page();
    let mut listing = ListedPins { size, unproved: None, found: Vec::new(), summary: PinsSummary::default() };
    let is_wanted = |buffer: &AddressRange| spans.ranges().iter().any(|range| range.intersection(*buffer).is_some());
    listing.add(&target.process.identity(), target.process.pinning_descriptors(), is_wanted, context.sink)?;
    let buffers = listing.found.iter().filter_map(|(_, holder)| holder.buffer());
    let buffers = whole_pages(buffers.collect(), size);
    let mut summary = PinsSummary { vm_pin: vm_pin(target), ..PinsSummary::default() };
    let mut ended = rows::sweep(space, spans.ranges(), spans.holes(), context.sink, |sweep, sink| {
        while let Some(kept) = sweep.next(sink)? {
            for page in kept.pages {
                kept.totals.add(&page);
                summary.pages += page.pages;
                if let (State::Present, Some(range)) = (page.state(), page.range(size)) {
                    let inside: u64 = range.within(&buffers).map(|part| part.pages(size)).sum();
                    summary.possibly_pinned += inside;
                    summary.unknown += page.pages - inside;
                }
            }
        }
        Ok(())
    })?;
    let is_likely = |start: Option<_>| start.is_some() || summary.unknown > 0;
    for (_, holder) in listing.found.iter().filter(|(_, holder)| is_likely(holder.start)) {
        summary.holders += 1;
        ended.add_stop(context.sink.emit(holder));
    }
    ended.say_uncertain(context.sink)?;
    context.sink.note(format!("only registered buffers and descriptors are listed: {reason}"))?;
    summary.cut_short = ended.stopped.is_some();
    finish(&summary, ended.stopped, context.sink)?;
    Ok(Flow::Done)
}

/// What drivers account as pinned by the process.
fn vm_pin(target: &Target) -> Option<u64> {
    let status = target.process.status().ok()?;
    status.memory.iter().find(|(name, _)| name == "VmPin").map(|(_, bytes)| *bytes)
}

/// Frames of pinned rows for which other processes are searched.
const MOST_SEARCHED: usize = 4;

/// What was found so far.
struct ListedPins {
    size: PageSize,
    /// Why pins of large folios are unknown, if they are.
    unproved: Option<Reason>,
    /// Who may have pinned pages, and whether a pinned page is in the buffer.
    found: Vec<(bool, PinHolder)>,
    summary: PinsSummary,
}

impl ListedPins {
    /// Adds the descriptors of a process, and of its buffers those that are wanted.
    fn add(
        &mut self,
        identity: &Identity,
        descriptors: process::Result<Vec<PinningDescriptor>>,
        is_wanted: impl Fn(&AddressRange) -> bool,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let descriptors = match descriptors {
            Ok(descriptors) => descriptors,
            Err(error) => {
                let message = format!("the file descriptors of process {} are unknown: {error}", identity.pid);
                return Ok(sink.note(message)?);
            }
        };
        for descriptor in descriptors {
            let holder = |buffer: Option<AddressRange>| PinHolder {
                pid: identity.pid,
                name: identity.name.clone(),
                device: descriptor.device.word(),
                descriptor: descriptor.number,
                start: buffer.map(|buffer| buffer.start()),
                bytes: buffer.map(|buffer| buffer.len()),
            };
            let buffers: Vec<_> = if descriptor.device.lists_buffers() {
                descriptor.buffers.iter().copied().filter(&is_wanted).map(Some).collect()
            } else {
                vec![None]
            };
            let new = buffers.into_iter().map(holder);
            let new: Vec<_> = new.filter(|new| self.found.iter().all(|(_, known)| known != new)).collect();
            self.found.extend(new.into_iter().map(|holder| (false, holder)));
        }
        Ok(())
    }

    /// The record of a row. Frames whose pins no buffer of the process explains, and which others map, go to `shared`.
    fn row(&mut self, row: &Page, shared: &mut Vec<(FrameNumber, u64)>) -> HeldPages {
        let (start, end) = (row.address, row.end(self.size));
        let absent = || match row.state() {
            State::Present => inspect::record_not_shown(),
            _ => Reason::NotApplicable("no frame is mapped here"),
        };
        let held = row.holders.ok_or_else(absent);
        let pins = held.clone().and_then(|held| match (held.pins, &self.unproved) {
            (Pins::Unknown, Some(reason)) => Err(reason.clone()),
            _ => held.pins(),
        });
        let holders = held.clone().and_then(|held| held.holders().ok_or_else(inspect::record_not_shown));
        let at_most = held.as_ref().ok().and_then(|held| match held.pins {
            Pins::AtMost(most) => Some(u64::from(most)),
            _ => None,
        });
        self.summary.pages += row.pages;
        match (&pins, at_most) {
            (Ok(0), _) => {}
            (Ok(_), _) => self.summary.pinned += row.pages,
            (Err(_), Some(_)) => self.summary.possibly_pinned += row.pages,
            (Err(Reason::NotApplicable(_)), None) => {}
            (Err(_), None) => self.summary.unknown += row.pages,
        }
        if let (Ok(held), true) = (&held, at_most.is_some() || pins.as_ref().is_ok_and(|&pins| pins > 0)) {
            // A pin holds the whole folio.
            let folio = self.size.bytes() << held.order;
            let begin = VirtualAddress::new(start.get() & !(folio - 1));
            let end = VirtualAddress::new(end.get().checked_next_multiple_of(folio).unwrap_or(u64::MAX));
            let pinned = AddressRange::new(begin, end);
            let mut is_listed = false;
            for (is_likely, one) in &mut self.found {
                if one.buffer().zip(pinned).is_some_and(|(buffer, pinned)| buffer.intersection(pinned).is_some()) {
                    (*is_likely, is_listed) = (true, true);
                }
            }
            if !is_listed {
                self.summary.unlisted += row.pages;
                let is_shared = holders.as_ref().is_ok_and(|holders| holders.mappings > 1);
                let is_searched = is_shared && shared.len() < MOST_SEARCHED;
                shared.extend(row.frame().filter(|_| is_searched).map(|frame| (frame, row.pages)));
            }
        }
        HeldPages {
            start,
            end,
            pages: row.pages,
            state: row.state(),
            folio_bytes: held.as_ref().ok().filter(|held| held.order > 0).map(|held| self.size.bytes() << held.order),
            references: held.map(|held| held.references.into()),
            holders,
            pins,
            pins_at_most: at_most,
            why: row.states.why("state"),
        }
    }

    /// Adds the descriptors of other processes that map a frame.
    fn search_others(
        &mut self,
        own: &Process,
        (frame, pages): (FrameNumber, u64),
        machine: &Arc<Machine>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let before = self.found.len();
        let mut search = who::who(machine, &FrameQuestion::of(frame))?.within(sink.budget());
        while let Some(step) = search.next()? {
            match step {
                SearchEvent::Visited { done, total } => sink.progress(done, total, "processes")?,
                SearchEvent::Found(mapper) if !mapper.process.is_same_process(&own.identity()) => {
                    // A process that has exited holds nothing.
                    let Some(target) = mapper.target().transpose() else { continue };
                    let descriptors = target.and_then(|target| target.process.pinning_descriptors());
                    let page = AddressRange::of_length(mapper.address, self.size.bytes());
                    let has_it = |buffer: &AddressRange| page.is_some_and(|page| page.intersection(*buffer).is_some());
                    self.add(&mapper.process, descriptors, has_it, sink)?;
                }
                SearchEvent::Found(_) => {}
            }
        }
        let mut is_listed = false;
        for (is_likely, one) in self.found.iter_mut().skip(before) {
            *is_likely |= one.start.is_some();
            is_listed |= *is_likely;
        }
        self.summary.unlisted -= if is_listed { pages } else { 0 };
        Ok(())
    }
}

impl PinHolder {
    /// The buffer, if the kernel lists one.
    fn buffer(&self) -> Option<AddressRange> {
        AddressRange::of_length(self.start?, self.bytes?)
    }
}

record! {
    /// A row of `pins`: neighbouring pages that are held alike.
    pub struct HeldPages as "held-pages" with why if any {
        /// First virtual address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Pages in it.
        pages: u64,
        /// Their state.
        state: State,
        /// The size of the large folios that they are part of: a pin of one page holds the whole folio.
        [optional] folio_bytes: Option<u64>,
        /// References to the folio of each. A pin of a page that is no large folio counts as 1024.
        references: Fact<u64>,
        /// The references by holder.
        holders: Fact<Holders>,
        /// Pins of each: exact for large folios, and for other pages if the references that are left fit.
        pins: Fact<u64>,
        /// The most pins that the references allow, if the number is not known.
        [optional] pins_at_most: Option<u64>,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }

    /// A buffer that is registered with io_uring, or a file descriptor of a device, which may have pinned the pages.
    pub struct PinHolder as "pin-holder" {
        /// The process.
        pid: u32,
        /// Its short name.
        name: Name,
        /// `io_uring`, `rdma` or `vfio`.
        device: &'static str,
        /// Its file descriptor.
        descriptor: u32,
        /// First byte of the buffer, in that process; `null` for a device, whose buffers the kernel does not list.
        start: Option<VirtualAddress>,
        /// Bytes of the buffer.
        bytes: Option<u64>,
    }

    /// The totals of `pins`.
    #[derive(Default)]
    pub struct PinsSummary as "pins-summary" {
        /// Pages that were looked at.
        pages: u64,
        /// Those of them that are pinned.
        pinned: u64,
        /// Those that may be pinned: their references are not explained.
        possibly_pinned: u64,
        /// Those whose pins are unknown.
        unknown: u64,
        /// Pages that are or may be pinned, but are in no registered buffer that was found.
        unlisted: u64,
        /// Bytes that drivers account as pinned by the process (VmPin), where the pages are unknown. Pins of vmsplice,
        /// O_DIRECT and many drivers are not among them.
        [optional] vm_pin: Option<u64>,
        /// Number of buffers and file descriptors that may have pinned them.
        holders: u64,
        /// Whether Ctrl-C ended it before the end.
        cut_short: bool,
    }
}

impl Record for HeldPages {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&HELD, self);
    }
}

/// The rows.
static HELD: Table<HeldPages> = Table::of(&[
    START.cell(|_, row| Cell::new(&row.start)),
    PAGES.cell(|_, row| Cell::count(row.pages)),
    Column::number("folio", 7, Role::Size).rank(2).cell(|_, row| row.folio_bytes.map_or_else(none, Cell::size)),
    Column::number("pins", 6, Role::Size).cell(|_, row| match (&row.pins, row.pins_at_most) {
        (Ok(pins @ 1..), _) => Cell::of(Role::Note, count(*pins)),
        (Err(_), Some(most)) => Cell::of(Role::Note, format!("<{}", most + 1)),
        (pins, _) => number(pins),
    }),
    Column::number("refs", 7, Role::Size).rank(3).cell(|_, row| number(&row.references)),
    Column::number("mapped", 6, Role::Size).rank(2).cell(|_, row| holders_cell(row, |holders| holders.mappings)),
    Column::number("cached", 6, Role::Size)
        .rank(2)
        .cell(|_, row| holders_cell(row, |holders| holders.page_cache + holders.swap_cache + holders.filesystem)),
    Column::number("other", 6, Role::Size).rank(2).cell(|_, row| holders_cell(row, |holders| holders.others)),
    Column::word("state", 10, Role::Plain)
        .rank(1)
        .cell(|_, row| Cell::of(words::state_role(row.state), row.state.word())),
]);

fn number<'a>(fact: &Fact<u64>) -> Cell<'a> {
    fact.as_ref().map_or_else(reason_cell, |&number| Cell::count(number))
}

fn holders_cell<'a>(row: &HeldPages, of: fn(&Holders) -> u64) -> Cell<'a> {
    row.holders.as_ref().map_or_else(reason_cell, |holders| Cell::count(of(holders)))
}

impl Record for PinHolder {
    fn write(&self, text: &mut Text) {
        text.row(&HOLDERS, self);
    }
}

/// What may have pinned them.
static HOLDERS: Table<PinHolder> = Table::of(&[
    PID.cell(|_, one| Cell::new(&one.pid)),
    Column::name("process", 15, Role::Name).cell(|_, one| Cell::new(&one.name)),
    Column::word("device", 8, Role::Plain).cell(|_, one| Cell::new(one.device)),
    Column::number("fd", 5, Role::Size).cell(|_, one| Cell::count(one.descriptor.into())),
    Column::word("buffer", 14, Role::Address).cell(|_, one| optional(&one.start)),
    Column::number("size", 8, Role::Size).rank(1).cell(|_, one| one.bytes.map_or_else(none, Cell::size)),
]);

impl Record for PinsSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
        text.notes();
    }
}

/// `16 pages: 8 pinned`, and what is unknown.
fn summary(lines: &mut Lines, summary: &PinsSummary) {
    let line = lines.line();
    line.indent(2).plain(counted(summary.pages, "page"));
    let mut before = ": ";
    let mut part = |role, text: String| _ = line.word(std::mem::replace(&mut before, ", "), role, text);
    match summary.pinned {
        // Those that are unknown may be.
        0 if summary.unknown > 0 || summary.vm_pin.is_some() && summary.possibly_pinned > 0 => {}
        0 => part(Role::Plain, "none pinned".to_owned()),
        pinned => part(Role::Note, format!("{} pinned", count(pinned))),
    }
    if summary.possibly_pinned > 0 {
        part(Role::Note, format!("{} possibly pinned", count(summary.possibly_pinned)));
    }
    if summary.unknown > 0 {
        part(Role::Warn, format!("{} unknown", count(summary.unknown)));
    }
    if let Some(bytes) = summary.vm_pin {
        let text = format!(
            "VmPin of the process is {}; vmsplice, O_DIRECT and many drivers hold pages that are not in it",
            size(bytes)
        );
        lines.line().indent(2).prose(Role::Plain, &text);
    }
    if summary.holders == 0 && summary.unlisted > 0 {
        lines.line().indent(2).prose(Role::Note, "nothing that the kernel lists has pinned them");
    }
    pages::remarks(lines, summary.cut_short, false);
}

/// Samples of its records.
#[cfg(test)]
mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let address = VirtualAddress::new;
        let pinned = Holders { mappings: 1, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 1024, others: 0 };
        let small = HeldPages {
            start: address(0x7f00_0000_1000),
            end: address(0x7f00_0000_3000),
            pages: 2,
            state: State::Present,
            folio_bytes: None,
            references: Ok(1025),
            holders: Ok(pinned),
            pins: Ok(1),
            pins_at_most: None,
            why: Why::default(),
        };
        let large = HeldPages {
            folio_bytes: Some(2 << 20),
            references: Ok(516),
            holders: Ok(Holders { page_cache: 512, pins: 3, ..pinned }),
            pins: Ok(3),
            ..small.clone()
        };
        let unclear = HeldPages {
            references: Ok(3000),
            holders: Ok(Holders { pins: 0, others: 2999, ..pinned }),
            pins: Err(Reason::NotOnThisKernel("1024 references look like one pin".into())),
            pins_at_most: Some(2),
            ..small.clone()
        };
        let absent = || Reason::NotApplicable("no frame is mapped here");
        let untouched = HeldPages {
            state: State::Untouched,
            references: Err(absent()),
            holders: Err(absent()),
            pins: Err(absent()),
            ..small.clone()
        };
        let buffer = PinHolder {
            pid: 812,
            name: "server".into(),
            device: "io_uring",
            descriptor: 6,
            start: Some(address(0x7f00_0000_1000)),
            bytes: Some(8192),
        };
        let device = PinHolder { device: "vfio", descriptor: 7, start: None, bytes: None, ..buffer.clone() };
        let found = PinsSummary { pages: 8, pinned: 4, possibly_pinned: 2, holders: 2, ..PinsSummary::default() };
        let unlisted = PinsSummary { unknown: 1, unlisted: 4, holders: 0, cut_short: true, ..found.clone() };
        let listed = PinsSummary {
            pages: 8,
            possibly_pinned: 2,
            unknown: 6,
            vm_pin: Some(8192),
            holders: 1,
            ..PinsSummary::default()
        };
        vec![
            Box::new(listed),
            Box::new(small),
            Box::new(large),
            Box::new(unclear),
            Box::new(untouched),
            Box::new(buffer),
            Box::new(device),
            Box::new(found),
            Box::new(unlisted),
            Box::new(PinsSummary { pages: 8, ..PinsSummary::default() }),
        ]
    }
}
