//! `pins RANGE`: the references to pages by holder, their pins, and who may have pinned them.

mod records;

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::rows::{self, SweepEnd, finish};
use crate::eval::{self, Extent};
use crate::inspect::AddressSpace;
use crate::inspect::pins::{self, PinReport, PinStep, PinnedPages};
use crate::kernel::{AddressRange, PageSize};
use crate::lang::parser::{Parsed, Tokens, range};
use crate::lang::{Range, Spanned};
use crate::process::Target;
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{Declared, Shape, Stopped, Why};
use nom::Parser;
use nom::combinator::map;
pub(in crate::command) use records::{HeldPages, PinHolder, PinsSummary};
use std::fmt::{self, Formatter};

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
  other   the rest; 1 is normal (LRU batch), more are unexplained

Then lists buffers that are registered with io_uring and contain the pages, and file descriptors of RDMA and VFIO. \
Threads with a table of their own, descendants, and other processes that map the pages are searched too. Reads and writes with O_DIRECT pin pages for a moment, and the \
kernel does not list them.

Memory that is locked is not pinned: mlock keeps a page in memory, but not in its frame.

Without `struct page` (/proc/kcore, `help rights`) only the buffers and descriptors are listed, and which pages \
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
        let space = AddressSpace::in_ranges(&target, spans.ranges())?;
        context.state.last_address = None;
        let sink = &mut *context.sink;
        let mut search = space.pins(spans.ranges(), spans.holes())?.with_budget(sink.budget());
        let stopped =
            rows::pull(sink, "pages", || search.next(), |step, sink| Ok(show(step, space.page_size(), sink)?))?;
        let answer = search.take_last().map_or(Ok(()), |row| sink.emit(&held_pages(row, space.page_size())));
        let unknown = search.why_unknown().cloned();
        let PinReport { holders, sums, pages, .. } = search.finish();
        let mut ended = SweepEnd::of(pages, stopped);
        ended.add_stop(answer);
        for holder in &holders {
            ended.add_stop(sink.emit(&pin_holder(holder)));
        }
        ended.say_uncertain(sink)?;
        let mut why = Why::default();
        if let Some(reason) = &unknown {
            why.note("pins", reason);
        }
        let summary = PinsSummary {
            pages: sums.pages,
            pinned: sums.pinned,
            possibly_pinned: sums.possibly_pinned,
            unknown: sums.unknown,
            unlisted: sums.unlisted,
            vm_pin: unknown.and_then(|_| vm_pin(&target)),
            locked: space.locked_pages(spans.ranges(), &mut sink.budget()),
            hugetlb_bytes: sums.hugetlb.saturating_mul(space.page_size().bytes()),
            holders: holders.len() as u64,
            searched: sums.searched,
            cut_short: ended.stopped.is_some(),
            why,
        };
        finish(&summary, ended.stopped, sink)?;
        Ok(Flow::Done)
    }
}

/// What drivers account as pinned by the process.
fn vm_pin(target: &Target) -> Option<u64> {
    let status = target.process.status().ok()?;
    status.memory.iter().find(|(name, _)| name == "VmPin").map(|(_, bytes)| *bytes)
}

fn show(step: PinStep, size: PageSize, sink: &mut dyn Sink) -> Result<(), Stopped> {
    match step {
        PinStep::Row(row) => sink.emit(&held_pages(row, size)),
        PinStep::Unknown(pid, error) => {
            sink.note(format!("the file descriptors of process {pid} are unknown: {error}"))
        }
        PinStep::Searched { done, total } => sink.progress(done, total, "processes"),
    }
}

fn held_pages(row: PinnedPages, size: PageSize) -> HeldPages {
    HeldPages {
        start: row.pages.address,
        end: row.pages.end(size),
        pages: row.pages.pages,
        state: row.pages.state(),
        folio_bytes: row.folio_bytes(size),
        references: row.held.map(|held| held.references.into()),
        holders: row.holders,
        pins: row.pins,
        pins_at_most: row.pins_at_most,
        why: row.pages.states.why("state"),
    }
}

fn pin_holder(holder: &pins::PinHolder) -> PinHolder {
    PinHolder {
        pid: holder.process.pid,
        name: holder.process.name.clone(),
        device: holder.device,
        descriptor: holder.descriptor,
        thread: holder.thread,
        start: holder.buffer.map(AddressRange::start),
        bytes: holder.buffer.map(AddressRange::len),
    }
}
