//! Sweeps: every command on pages gets them from [`AddressSpace::pages`].
//!
//! A [`plan`](plan::Plan) says which stretches to read and how. A [batch](Batch) reads some of them into
//! [`stretches`](chunk::PageStretches), and adds the words of their frames. Long sweeps read batches on several
//! [`threads`](super::ordered_pool::Pool). Whoever pulls gets [`Chunk`]s in order. A chunk has the raw words of one
//! stretch, and makes pages from them on the fly. At no time are more than a few batches in memory.
//! A sweep compares its regions with those at its end, and reports those that changed.

mod behind;
mod chunk;
mod columns;
mod folios;
mod frames;
mod huge;
mod plan;
mod tables;
#[cfg(test)]
mod tests;
mod wanted;

pub(super) use chunk::ChunkPlace;
pub use chunk::{Chunk, ChunkPages};
pub(super) use columns::{Column, Columns, probed};

/// The raw words, for callers that compare without decoding.
pub(super) mod raw {
    pub(in crate::inspect) use super::chunk::{ChunkContent, EntryWords};
    pub(in crate::inspect) use super::columns::{Column, UNREAD};
}

use super::address_space::AddressSpace;
use super::classify::{Backing, KernelBehaviour as _};
use super::filter::{FieldsSeen, Question};
use super::ordered_pool::{Pool, TaskSize, Work};
use super::page::{Evidence, Page};
use super::region::ViewedRegion;
use super::states::StateSet;
use super::{Error, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, PageMapEntry, Region, VirtualAddress};
use crate::process::{self, Categories, Liveness, PopulatedRange};
use crate::report::PagesByReason;
use chunk::{CategoryMark, PageStretches, StretchWords};
use plan::{Action, Plan, PlanStep, READ_PAGES};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wanted::WantedFrames;

/// The pages of some ranges, chunk by chunk. Dropping it ends what is under way.
#[must_use]
pub struct Sweep {
    plan: Plan,
    pool: Pool<BatchReader>,
    reader: Arc<BatchReader>,
    /// The index of the next stretch of the batch that was pulled last.
    next: usize,
    changed: Vec<AddressRange>,
}

impl AddressSpace {
    /// The pages of `ranges` (in order, disjoint), in address order. Addresses in no region are left out, unless
    /// [`Evidence::HOLES`](super::Evidence::HOLES) asks for them.
    pub fn pages(&self, ranges: &[AddressRange], question: impl Into<Question>) -> Sweep {
        let question = question.into().with_implied(self);
        let plan = Plan::new(self, ranges, question.need);
        let reader =
            Arc::new(BatchReader { space: self.clone(), question, changes: RegionChanges::among(self, ranges) });
        let pool = Pool::new(Arc::clone(&reader), Budget::unlimited());
        Sweep { plan, pool, reader, next: 0, changed: Vec::new() }
    }
}

impl Sweep {
    /// The same, with what it may take.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.pool.set_budget(budget);
        self
    }

    /// The next pages; `None` after the last ones.
    ///
    /// # Errors
    /// The target is gone or runs another program, the kernel refuses a read (see [`AddressSpace::require`] and
    /// [`AddressSpace::obtainable`]), or the [budget](Self::with_budget) is over.
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        let chunk = self.chunk();
        self.reader.space.check()?;
        Ok(chunk)
    }

    /// Goes on to the next pages. False after the last ones.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.pool.is_closed() {
            return Ok(false);
        }
        if self.reader.question.need.contains(Evidence::HEAP) {
            self.reader.space.heap_uses()?;
        }
        while self.next == self.pool.task().len() {
            self.reader.changes.set_pulled(self.pool.task().end());
            if self.pool.next(|batch| Ok(batch.plan(&mut self.plan)?))?.is_none() {
                self.changed = self.reader.changes.finish()?;
                return Ok(false);
            }
            self.next = 0;
        }
        self.next += 1;
        Ok(true)
    }

    /// The pages that [`advance`](Self::advance) came to.
    pub(super) fn chunk(&self) -> Option<Chunk<'_>> {
        self.pool.task().chunk(self.next.checked_sub(1)?, &self.reader.space, self.reader.question.need)
    }

    /// Regions of the ranges that changed during the sweep, once it has ended: their pages may be from before or after
    /// the change.
    pub fn changed_ranges(&self) -> &[AddressRange] {
        &self.changed
    }
}

/// Reads batches, on any thread.
struct BatchReader {
    space: AddressSpace,
    question: Question,
    changes: RegionChanges,
}

impl Work for BatchReader {
    type Task = Batch;
    type Buffers = WantedFrames;

    fn work(&self, batch: &mut Batch, wanted: &mut WantedFrames, _: &mut Budget) -> Result<()> {
        batch.fill(&self.space, &self.question, wanted)?;
        self.changes.compare()
    }
}

/// Regions that are checked one by one: reading all takes longer.
const FEW: usize = 8;
/// Bytes of `maps` that the kernel may have written ahead of a read: the buffer that was asked for, and the rest of one
/// line. Each of the 4,096 bytes of its path may be an escape of four bytes (`seq_read_iter` in fs/seq_file.c).
const WRITTEN: usize = 32 << 10;

/// Checks whether the regions of some spans are still the same.
///
/// If there are many, the text of `maps` is compared with the earlier text. The worker threads do so between their
/// reads, each time as far as the sweep was pulled.
struct RegionChanges {
    space: AddressSpace,
    spans: Vec<AddressRange>,
    /// Where what was pulled ends.
    pulled_to: AtomicU64,
    text: Mutex<MapsComparison>,
}

/// The result of comparing the text of `maps` so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MapsComparison {
    /// This many bytes are the same.
    Same(usize),
    /// All of it is the same.
    SameToTheEnd,
    /// It differs, there is none, or it is not compared.
    Other,
}

impl RegionChanges {
    pub fn among(space: &AddressSpace, spans: &[AddressRange]) -> Self {
        let is_compared = space.maps_text().is_known() && touched_regions(space, spans).nth(FEW).is_some();
        let text = if is_compared { MapsComparison::Same(0) } else { MapsComparison::Other };
        RegionChanges {
            space: space.clone(),
            spans: spans.to_vec(),
            pulled_to: AtomicU64::new(0),
            text: Mutex::new(text),
        }
    }

    /// All regions below `end` have been pulled.
    pub fn set_pulled(&self, end: VirtualAddress) {
        self.pulled_to.store(end.get(), Ordering::Release);
    }

    /// Compares as far as was pulled, unless another thread is doing so.
    ///
    /// Fails when the target is gone.
    pub fn compare(&self) -> Result<()> {
        let Ok(mut text) = self.text.try_lock() else {
            return Ok(());
        };
        while let MapsComparison::Same(bytes) = *text {
            let end = VirtualAddress::new(self.pulled_to.load(Ordering::Acquire));
            let behind = self.space.maps_text().region_at(bytes + WRITTEN);
            if behind.is_none_or(|behind| behind > end) {
                break;
            }
            *text = self.compare_next(bytes)?;
        }
        Ok(())
    }

    fn compare_next(&self, bytes: usize) -> Result<MapsComparison> {
        let process = &self.space.target().process;
        Ok(match process.maps_unchanged_from(self.space.maps_text(), bytes)? {
            Some(0) => MapsComparison::SameToTheEnd,
            Some(more) => MapsComparison::Same(bytes + more),
            None => MapsComparison::Other,
        })
    }

    /// Returns the regions that have changed. All must have been pulled.
    ///
    /// Fails when the target is gone or runs another program.
    pub fn finish(&self) -> Result<Vec<AddressRange>> {
        let process = &self.space.target().process;
        match process.liveness()? {
            Liveness::Alive => {}
            Liveness::Executed => return Err(Error::Executed),
            Liveness::Exited(_) => return Err(Error::Exited),
        }
        let mut text = *self.text.lock().unwrap_or_else(PoisonError::into_inner);
        while let MapsComparison::Same(bytes) = text {
            text = self.compare_next(bytes)?;
        }
        if text == MapsComparison::SameToTheEnd {
            return Ok(Vec::new());
        }
        let touched = || touched_regions(&self.space, &self.spans);
        let mut changed = Vec::new();
        if touched().nth(FEW).is_none() {
            for before in touched() {
                let now = process.region_at(before.range.start())?;
                if now.is_none_or(|now| !is_same(before, &now)) {
                    changed.push(before.range);
                }
            }
        } else {
            let mut now = process.regions()?.into_iter().peekable();
            // Both are in the order of their addresses.
            let mut is_there = |before: &Region| {
                while now.next_if(|now| now.range.start() < before.range.start()).is_some() {}
                now.peek().is_some_and(|now| is_same(before, now))
            };
            let gone = touched().filter(|before| !is_there(before));
            changed.extend(gone.map(|before| before.range));
        }
        Ok(changed)
    }
}

/// The regions that `spans` touch, in address order.
fn touched_regions<'v>(
    space: &'v AddressSpace,
    spans: &'v [AddressRange],
) -> impl Iterator<Item = &'v Region> + use<'v> {
    let regions = space.viewed_regions();
    let mut first = 0;
    let inside = spans.iter().flat_map(move |span| {
        first = space.region_from(first, span.start());
        let rest = regions.get(first..).unwrap_or_default().iter();
        rest.take_while(|viewed| viewed.range().start() < span.end())
    });
    let mut last = None;
    inside.map(|viewed| &viewed.region).filter(move |region| last.replace(region.range) != Some(region.range))
}

/// Whether both are the same region. The name does not count: `prctl` can set it without changing a page.
fn is_same(before: &Region, now: &Region) -> bool {
    before.range == now.range
        && before.permissions == now.permissions
        && before.offset == now.offset
        && before.device == now.device
        && before.inode == now.inode
}

/// What is not certain about the pages that a question keeps and leaves out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Selection {
    /// The possible states of the first kept page whose state is uncertain.
    pub uncertain: Option<StateSet>,
    /// Pages that the question can neither keep nor leave out, because their state or another fact is unknown.
    pub undecided: PagesByReason,
    /// Whether the question keeps a page.
    has_kept: bool,
    fields: FieldsSeen,
}

impl Selection {
    /// Whether the question keeps a page.
    #[inline]
    pub(crate) fn keeps(&mut self, page: &Page, region: Option<&ViewedRegion>, question: &Question) -> bool {
        let Some(filter) = &question.filter else {
            return true;
        };
        let answer = filter.answer(page, region);
        self.fields.add(filter, page, region, answer.is_ok());
        let is_kept = self.undecided.or_count(page.pages, answer);
        self.has_kept |= is_kept;
        is_kept
    }

    /// The same, which notes what is uncertain about the pages that are kept.
    #[inline]
    pub(super) fn takes(&mut self, page: &Page, chunk: &Chunk<'_>, question: &Question) -> bool {
        let is_kept = self.keeps(page, chunk.region, question);
        if is_kept {
            self.uncertain = self.uncertain.or(page.states.if_uncertain());
        }
        is_kept
    }

    /// Fails if the question keeps no page, and a fact that it asks is unknown of all pages that have it. For a sweep
    /// that has ended.
    ///
    /// # Errors
    /// The fact, and the reason.
    pub fn require_known(&self) -> Result<()> {
        if self.has_kept {
            return Ok(());
        }
        match (self.fields.never_known(), self.undecided.reason()) {
            (Some(asked), Some(reason)) => {
                Err(Error::UnknownField { field: asked.field, at: asked.at.clone(), reason })
            }
            _ => Ok(()),
        }
    }

    /// The pages of a chunk that are kept.
    pub fn matching_pages<'c>(
        &'c mut self,
        chunk: Chunk<'c>,
        question: &'c Question,
    ) -> impl Iterator<Item = Page> + 'c {
        let mut pages = chunk.pages();
        let mut is_kept = move |page: &Page| self.takes(page, &chunk, question);
        // As `filter`, which copies a page twice.
        std::iter::from_fn(move || {
            loop {
                let next = pages.next();
                if next.as_ref().is_none_or(&mut is_kept) {
                    return next;
                }
            }
        })
    }
}

/// Steps of one batch: enough that small regions share their reads of frames.
const STEPS: usize = 1024;

/// Steps and the words that were read. Its buffers are reused from batch to batch.
#[derive(Default)]
struct Batch {
    steps: Vec<PlanStep>,
    stretches: PageStretches,
}

impl Batch {
    /// Takes the next steps of `plan`, until there is enough work.
    ///
    /// Fails when the target is gone.
    pub fn plan(&mut self, plan: &mut Plan) -> process::Result<TaskSize> {
        self.steps.clear();
        let mut pages = 0;
        while let Some(step) = plan.next()? {
            pages += plan.weight(&step);
            self.steps.push(step);
            if pages >= READ_PAGES {
                return Ok(TaskSize::Full);
            }
            if self.steps.len() == STEPS {
                break;
            }
        }
        Ok(if self.steps.is_empty() { TaskSize::Nothing } else { TaskSize::Small })
    }

    /// Reads what the steps ask for.
    ///
    /// Fails when the target is gone, or when the kernel refuses what is asked for.
    pub fn fill(
        &mut self,
        space: &AddressSpace,
        question: &Question,
        wanted: &mut WantedFrames,
    ) -> process::Result<()> {
        let stretches = &mut self.stretches;
        stretches.clear();
        let mut left = &self.steps[..];
        while let Some(step) = left.first() {
            let together = match step.action {
                Action::Read => left.windows(2).take_while(|pair| continues(pair)).count() + 1,
                _ => 1,
            };
            let (now, later) = left.split_at(together);
            match step.action {
                Action::Skip if step.region.is_none() => push_hole(stretches, space, step.range)?,
                Action::Skip => stretches.push(step.region, step.range, StretchWords::Nothing),
                Action::Present => stretches.push(step.region, step.range, StretchWords::Present),
                Action::Read => read_entries(stretches, space, now, question)?,
                Action::ReadHuge => {
                    if !frames::read_huge(stretches, space, step, question.need)? {
                        read_entries(stretches, space, now, question)?;
                    }
                }
            }
            left = later;
        }
        if question.need.intersects(Evidence::CONTENT | Evidence::SHARED_CONTENT) {
            behind::find_backing(stretches, space, question.need);
        }
        behind::find_slots(stretches, space)?;
        if question.need.contains(Evidence::TABLES) {
            tables::read_tables(stretches, space)?;
        }
        if question.need.contains(Evidence::DEVICE_FRAMES) {
            tables::read_devices(stretches, space)?;
        }
        frames::look_up_frames(stretches, wanted, space, question)?;
        if question.need.contains(Evidence::OWNERS) {
            frames::set_exclusive(stretches, wanted, space, question.need)?;
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
        self.stretches.all.len()
    }

    /// One of the stretches that were read, in address order.
    pub fn chunk<'a>(&'a self, index: usize, space: &'a AddressSpace, need: Evidence) -> Option<Chunk<'a>> {
        let stretch = self.stretches.all.get(index)?;
        Some(self.stretches.chunk(stretch, space, need))
    }
}

/// A hole between regions: the part within the page map, and the part past its end.
fn push_hole(stretches: &mut PageStretches, space: &AddressSpace, range: AddressRange) -> process::Result<()> {
    let (inside, outside) = space.split_at_map_end(range)?;
    if let Some(inside) = inside {
        stretches.push(None, inside, StretchWords::Nothing);
    }
    if let Some(outside) = outside {
        stretches.push(None, outside, StretchWords::Outside);
    }
    Ok(())
}

/// Reads every entry of adjoining steps with one system call: there may be very many small regions.
fn read_entries(
    stretches: &mut PageStretches,
    space: &AddressSpace,
    steps: &[PlanStep],
    question: &Question,
) -> process::Result<()> {
    let page = space.page_size();
    let Some(start) = steps.first().map(|step| step.range.start()) else {
        return Ok(());
    };
    let entries = &mut stretches.entries;
    let mut first = entries.len();
    let pages: u64 = steps.iter().map(|step| step.range.pages(page)).sum();
    entries.resize(first + pages as usize, PageMapEntry::default());
    let into = entries.get_mut(first..).unwrap_or_default();
    let read = space.target().process.entries(page.index(start), into)?;
    entries.truncate(first + read);
    for step in steps {
        let pages = step.range.pages(page) as usize;
        let at = first..stretches.entries.len().min(first + pages);
        let end = page.bytes().saturating_mul(at.len() as u64);
        let (inside, outside) = match step.range.start().checked_add(end) {
            Some(end) if end < step.range.end() => {
                (AddressRange::new(step.range.start(), end), AddressRange::new(end, step.range.end()))
            }
            _ => (Some(step.range), None),
        };
        first = at.end;
        if let Some(inside) = inside {
            let marks = scan_marks(stretches, space, PlanStep { range: inside, ..*step }, at.clone(), question)?;
            let stride = 1;
            stretches.push(step.region, inside, StretchWords::Read { at, marks, stride });
        }
        if let Some(outside) = outside {
            stretches.push(step.region, outside, StretchWords::Outside);
        }
    }
    Ok(())
}

/// Whether the second of two steps is read in the same way as the first, and begins where that ends.
fn continues(pair: &[PlanStep]) -> bool {
    matches!(pair, [step, next]
        if next.action == step.action && next.range.start() == step.range.end())
}

/// Scans the range of `step`, whose entries are `at`, for the categories that its entries do not tell. Returns the
/// indices of the marks; `None` if no category is needed, or the kernel has no scan.
///
/// Fails when the target is gone.
fn scan_marks(
    stretches: &mut PageStretches,
    space: &AddressSpace,
    step: PlanStep,
    at: Range<usize>,
    question: &Question,
) -> process::Result<Option<Range<usize>>> {
    let target = space.target();
    let PlanStep { region, range, .. } = step;
    let mut wanted = Categories::empty();
    if question.need.contains(Evidence::HUGE) {
        wanted |= Categories::HUGE;
    }
    // The flags of a frame say whether it is the zero page; without them the scan does.
    let viewed = region.and_then(|index| space.viewed_regions().get(index));
    if question.scans_for_zero(question.needed_of_all(space), viewed) {
        wanted |= Categories::ZERO;
    }
    let hugetlb = viewed.is_some_and(|viewed| viewed.backing == Backing::Hugetlb);
    // Only a scan shows hugetlb pages that are not present.
    if hugetlb {
        wanted |= Categories::HUGE | Categories::SWAPPED;
    }
    // If entries do not mark file pages that a PMD maps, only the scan distinguishes them from copies.
    if wanted.contains(Categories::ZERO) && !space.huge_files_are_marked() {
        wanted |= Categories::HUGE;
    }
    if wanted.is_empty() || !target.process.categories().contains(wanted) {
        return Ok(None);
    }
    let entries = stretches.entries.get(at).unwrap_or_default();
    let may_be_zero = |entry: &PageMapEntry| entry.is_present() && !entry.is_file_or_shared() && !entry.is_exclusive();
    let page = space.page_size();
    let asks = wanted.contains(Categories::ZERO) && entries.iter().any(may_be_zero)
        || wanted.contains(Categories::HUGE)
            && (hugetlb || huge::blocks(space, viewed, range, entries).next().is_some());
    let from = stretches.marks.len();
    if asks {
        // `HUGE` costs nothing more, and distinguishes the huge zero page from the small one.
        for stretch in target.process.populated(range, wanted | Categories::HUGE) {
            let PopulatedRange { range: found, categories, .. } = stretch?;
            if let Some(inside) = found.intersection(range) {
                let first = (page.index(inside.start()) - page.index(range.start())) as usize;
                let end = first + inside.pages(page) as usize;
                stretches.marks.push(CategoryMark { first, end, categories });
            }
        }
    }
    Ok(Some(from..stretches.marks.len()))
}
