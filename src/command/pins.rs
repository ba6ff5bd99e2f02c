//! `pins RANGE`: the references to pages by holder, their pins, and who may have pinned them.

mod buffers;
mod held_rows;
mod records;

use super::account::family::descendants;
use super::rows::{self, finish};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::eval::{self, Extent};
use crate::inspect::who::{self, FrameQuestion, SearchEvent};
use crate::inspect::{self, AddressSpace, Evidence, Page, Pins};
use crate::kernel::{AddressRange, FrameNumber, PageSize, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, range};
use crate::lang::{Range, Spanned};
use crate::process::{self, Identity, Machine, PinningDescriptor, Process, Target};
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{Declared, Reason, Shape};
use buffers::whole_pages;
use held_rows::HeldRows;
use nom::Parser;
use nom::combinator::map;
pub(in crate::command) use records::{HeldPages, PinHolder, PinsSummary};
use std::collections::BTreeSet;
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
  pins    number of pins; maybe N in a page that is no large folio: 1024 other references look like a pin
  refs    all references to the folio; a pin of a page that is no large folio counts as 1024
  mapped  those of page tables
  cached  those of the page cache, of the swap cache and of the filesystem
  other   the rest; 1 is normal (a batch of the kernel), more are unexplained

Then lists buffers that are registered with io_uring and contain the pages, and file descriptors of RDMA and VFIO. \
Threads with a table of their own, descendants, and other processes that map the pages are searched too. Reads and writes with O_DIRECT pin pages for a moment, and the \
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
        records::samples::all()
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
        match space.require(Evidence::REFERENCES) {
            Err(inspect::Error::Unknown { reason, .. }) => {
                return list_without_records(context, &target, &space, &spans, reason);
            }
            other => other?,
        }
        let unproved = match space.require(Evidence::PINS) {
            Err(inspect::Error::Unknown { reason, .. }) => Some(reason),
            other => other.map(|()| None)?,
        };
        let mut listing = ListedPins { unproved, ..ListedPins::of(space.page()) };
        let own = target.process.pinning_descriptors();
        listing.add(&target.process.identity(), own, |_| true, context.sink)?;
        let mut shared = Vec::new();
        let (mut rows, facts) = (HeldRows::new(space.page()), Evidence::PINS | Evidence::KINDS | spans.holes());
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
            listing.search_descendants(&target, context.sink)?;
        }
        let ListedPins { found, mut summary, searched, .. } = listing;
        summary.searched = searched.len() as u64;
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
    let mut listing = ListedPins::of(size);
    let is_wanted = |buffer: &AddressRange| spans.ranges().iter().any(|range| range.intersection(*buffer).is_some());
    listing.add(&target.process.identity(), target.process.pinning_descriptors(), is_wanted, context.sink)?;
    listing.unlisted = spans.ranges().iter().map(|&range| (range, 0)).collect();
    listing.search_descendants(target, context.sink)?;
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

/// Ranges without a known buffer for which descendants are searched.
const MOST_UNLISTED: usize = 1024;
/// Frames of pinned rows for which other processes are searched.
const MOST_SEARCHED: usize = 4;

/// What was found so far.
struct ListedPins {
    size: PageSize,
    /// Why pins of large folios are unknown, if they are.
    unproved: Option<Reason>,
    /// Who may have pinned pages, and whether a pinned page is in the buffer.
    found: Vec<(bool, PinHolder)>,
    /// The processes whose descriptors were searched.
    searched: BTreeSet<u32>,
    /// Pinned memory that no buffer explains, and how many of the pages that were asked for it has.
    unlisted: Vec<(AddressRange, u64)>,
    summary: PinsSummary,
}

impl ListedPins {
    fn of(size: PageSize) -> Self {
        ListedPins {
            size,
            unproved: None,
            found: Vec::new(),
            searched: BTreeSet::new(),
            unlisted: Vec::new(),
            summary: PinsSummary::default(),
        }
    }

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
        self.searched.insert(identity.pid);
        for descriptor in descriptors {
            let holder = |buffer: Option<AddressRange>| PinHolder {
                pid: identity.pid,
                name: identity.name.clone(),
                device: descriptor.device.word(),
                descriptor: descriptor.number,
                thread: descriptor.thread,
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
    fn row(&mut self, row: &Page, shared: &mut Vec<(FrameNumber, Page)>) -> HeldPages {
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
                let may_be_kept = self.unlisted.len() < MOST_UNLISTED;
                self.unlisted.extend(pinned.filter(|_| may_be_kept).map(|pinned| (pinned, row.pages)));
                let is_shared = holders.as_ref().is_ok_and(|holders| holders.mappings > 1);
                let is_searched = is_shared && shared.len() < MOST_SEARCHED;
                shared.extend(row.frame().filter(|_| is_searched).map(|frame| (frame, *row)));
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
        (frame, row): (FrameNumber, Page),
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
        if is_listed {
            self.summary.unlisted -= row.pages;
            self.unlisted.retain(|(pinned, _)| !pinned.contains(row.address));
        }
        Ok(())
    }
}

impl ListedPins {
    /// Adds the descriptors of descendants. A child inherits a ring with the buffers that its parent registered, and
    /// may be the only one to have it still; it need not map the pages any more.
    fn search_descendants(&mut self, target: &Target, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.unlisted.is_empty() || target.machine.is_captured() {
            return Ok(());
        }
        let family = descendants(&target.machine, target.process.identity().pid)?;
        for one in family.iter().filter(|one| !self.searched.contains(&one.pid)).collect::<Vec<_>>() {
            // A process that has ended holds nothing.
            let Ok(opened) = target.machine.open(one) else { continue };
            // After exec its addresses are others, and its rings are closed.
            if opened.process.executable() != target.process.executable() {
                continue;
            }
            let before = self.found.len();
            let unlisted = std::mem::take(&mut self.unlisted);
            let is_in = |(pinned, _): &(AddressRange, u64), buffer| pinned.intersection(buffer).is_some();
            let has_one = |buffer: &AddressRange| unlisted.iter().any(|one| is_in(one, *buffer));
            self.add(&opened.process.identity(), opened.process.pinning_descriptors(), has_one, sink)?;
            for (is_likely, one) in self.found.iter_mut().skip(before) {
                *is_likely |= one.start.is_some();
            }
            let buffers: Vec<_> = self.found.iter().skip(before).filter_map(|(_, one)| one.buffer()).collect();
            let (listed, rest): (Vec<_>, Vec<_>) =
                unlisted.into_iter().partition(|one| buffers.iter().any(|&buffer| is_in(one, buffer)));
            self.unlisted = rest;
            self.summary.unlisted -= listed.iter().map(|(_, pages)| pages).sum::<u64>();
        }
        Ok(())
    }
}

impl PinHolder {
    /// The buffer, if the kernel lists one.
    fn buffer(&self) -> Option<AddressRange> {
        AddressRange::of_length(self.start?, self.bytes?)
    }
}
