//! Some steps of a plan, read together: first entries, then the words of their frames.

use super::super::address_space::AddressSpace;
use super::super::filter::Question;
use super::super::ordered_pool::Planned;
use super::super::page::Facts;
use super::chunk::Chunk;
use super::frames::Gather;
use super::pieces::{Pieces, Words};
use super::plan::{Action, Plan, READ_PAGES, Step};
use super::{backing, huge, lookup, marks, owners};
use crate::kernel::{AddressRange, PageMapEntry, VirtualAddress};
use crate::process;

/// Steps of one batch: enough that small regions share their reads of frames.
const STEPS: usize = 1024;

/// Steps and the words that were read. Its buffers are reused from batch to batch.
#[derive(Default)]
pub(super) struct Batch {
    steps: Vec<Step>,
    pieces: Pieces,
}

impl Batch {
    /// Takes the next steps of `plan`, until there is enough work.
    ///
    /// Fails when the target is gone.
    pub fn plan(&mut self, plan: &mut Plan) -> process::Result<Planned> {
        self.steps.clear();
        let mut pages = 0;
        while let Some(step) = plan.next()? {
            pages += plan.weight(&step);
            self.steps.push(step);
            if pages >= READ_PAGES {
                return Ok(Planned::Full);
            }
            if self.steps.len() == STEPS {
                break;
            }
        }
        Ok(if self.steps.is_empty() { Planned::Nothing } else { Planned::Small })
    }

    /// Reads what the steps ask for.
    ///
    /// Fails when the target is gone, or when the kernel refuses what is asked for.
    pub fn fill(&mut self, space: &AddressSpace, question: &Question, gather: &mut Gather) -> process::Result<()> {
        let pieces = &mut self.pieces;
        pieces.clear();
        let mut left = &self.steps[..];
        while let Some(step) = left.first() {
            let together = match step.action {
                Action::Read => left.windows(2).take_while(|pair| goes_on(pair)).count() + 1,
                _ => 1,
            };
            let (now, later) = left.split_at(together);
            match step.action {
                Action::Skip if step.region.is_none() => hole(pieces, space, step.range)?,
                Action::Skip => pieces.push(step.region, step.range, Words::Nothing),
                Action::Present => pieces.push(step.region, step.range, Words::Present),
                Action::Read => read(pieces, space, now, question)?,
                Action::ReadHuge => {
                    if !huge::read(pieces, space, step, question.need)? {
                        read(pieces, space, now, question)?;
                    }
                }
            }
            left = later;
        }
        if question.need.contains(Facts::CONTENT) {
            backing::find(pieces, space);
        }
        lookup::all(pieces, gather, space, question)?;
        if question.need.contains(Facts::OWNERS) {
            owners::set(pieces, gather, space, question.need)?;
        }
        Ok(())
    }

    /// Where what was read ends.
    pub fn end(&self) -> VirtualAddress {
        let last = self.steps.last();
        last.map_or(VirtualAddress::new(0), |step| step.range.end())
    }

    /// How many stretches were read.
    pub fn len(&self) -> usize {
        self.pieces.all.len()
    }

    /// One of the stretches that were read, in address order.
    pub fn chunk<'a>(&'a self, index: usize, space: &'a AddressSpace, need: Facts) -> Option<Chunk<'a>> {
        let piece = self.pieces.all.get(index)?;
        Some(self.pieces.chunk(piece, space, need))
    }
}

/// A hole between regions: the part within the page map, and the part past its end.
fn hole(pieces: &mut Pieces, space: &AddressSpace, range: AddressRange) -> process::Result<()> {
    let (inside, outside) = space.covered(range)?;
    if let Some(inside) = inside {
        pieces.push(None, inside, Words::Nothing);
    }
    if let Some(outside) = outside {
        pieces.push(None, outside, Words::Outside);
    }
    Ok(())
}

/// Reads every entry of adjoining steps with one system call: there may be very many small regions.
fn read(pieces: &mut Pieces, space: &AddressSpace, steps: &[Step], question: &Question) -> process::Result<()> {
    let page = space.page();
    let Some(start) = steps.first().map(|step| step.range.start()) else {
        return Ok(());
    };
    let entries = &mut pieces.entries;
    let mut first = entries.len();
    let pages: u64 = steps.iter().map(|step| step.range.pages(page)).sum();
    entries.resize(first + pages as usize, PageMapEntry::default());
    let into = entries.get_mut(first..).unwrap_or_default();
    let read = space.target().process.entries(page.index(start), into)?;
    entries.truncate(first + read);
    for step in steps {
        let pages = step.range.pages(page) as usize;
        let at = first..pieces.entries.len().min(first + pages);
        let end = page.bytes().saturating_mul(at.len() as u64);
        let (inside, outside) = match step.range.start().checked_add(end) {
            Some(end) if end < step.range.end() => {
                (AddressRange::new(step.range.start(), end), AddressRange::new(end, step.range.end()))
            }
            _ => (Some(step.range), None),
        };
        first = at.end;
        if let Some(inside) = inside {
            let marks = marks::ask(pieces, space, step.region, inside, at.clone(), question)?;
            let stride = 1;
            pieces.push(step.region, inside, Words::Read { at, marks, stride });
        }
        if let Some(outside) = outside {
            pieces.push(step.region, outside, Words::Outside);
        }
    }
    Ok(())
}

/// Whether the second of two steps is read in the same way as the first, and begins where that ends.
fn goes_on(pair: &[Step]) -> bool {
    matches!(pair, [step, next]
        if next.action == step.action && next.range.start() == step.range.end())
}
