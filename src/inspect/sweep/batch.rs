//! Some steps of a plan, read together: first entries, with the categories that only PAGEMAP_SCAN tells and the backing
//! content of untouched pages, then the words of their frames.

use super::super::address_space::AddressSpace;
use super::super::classify::{Backing, KernelBehaviour as _};
use super::super::filter::Question;
use super::super::ordered_pool::TaskSize;
use super::super::page::Facts;
use super::chunk::{CategoryMark, Chunk, PageStretch, PageStretches, StretchWords};
use super::frames;
use super::frames::WantedFrames;
use super::plan::{Action, Plan, PlanStep, READ_PAGES};
use crate::kernel::{AddressRange, PageMapEntry, VirtualAddress};
use crate::process::{self, BackingRun, Categories, PopulatedRange};
use std::ops::Range;

/// Steps of one batch: enough that small regions share their reads of frames.
const STEPS: usize = 1024;

/// Steps and the words that were read. Its buffers are reused from batch to batch.
#[derive(Default)]
pub(super) struct Batch {
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
        if question.need.contains(Facts::CONTENT) {
            find_backing(stretches, space);
        }
        frames::look_up_frames(stretches, wanted, space, question)?;
        if question.need.contains(Facts::OWNERS) {
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
    pub fn chunk<'a>(&'a self, index: usize, space: &'a AddressSpace, need: Facts) -> Option<Chunk<'a>> {
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
    let page = space.page();
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
            let marks = scan_marks(stretches, space, step.region, inside, at.clone(), question)?;
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

/// Scans `range`, whose entries are `at`, for the categories that its entries do not tell. Returns the indices of the
/// marks; `None` if no category is needed, or the kernel has no scan.
///
/// Fails when the target is gone.
fn scan_marks(
    stretches: &mut PageStretches,
    space: &AddressSpace,
    region: Option<usize>,
    range: AddressRange,
    at: Range<usize>,
    question: &Question,
) -> process::Result<Option<Range<usize>>> {
    let target = space.target();
    let mut wanted = Categories::empty();
    if question.need.contains(Facts::HUGE) {
        wanted |= Categories::HUGE;
    }
    // The flags of a frame say whether it is the zero page; without them the scan does.
    if question.scans_for_zero(question.needed_of_all(space)) {
        wanted |= Categories::ZERO;
    }
    let viewed = region.and_then(|index| space.regions().get(index));
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
    let page = space.page();
    let huge_pages = target.machine.huge_page_bytes().map_or(1, |bytes| (bytes >> page.shift()).max(1));
    let of_region = viewed.map_or(range, |viewed| viewed.region.range);
    let of_region = page.index(of_region.start())..page.index(of_region.end());
    let asks = wanted.contains(Categories::ZERO) && entries.iter().any(may_be_zero)
        || wanted.contains(Categories::HUGE)
            && (hugetlb || may_hold_huge(entries, page.index(range.start()), huge_pages, of_region));
    let from = stretches.marks.len();
    if asks {
        // `HUGE` costs nothing more, and distinguishes the huge page of zeros from the small one.
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

/// Whether `entries` may hold a huge mapping, or a part of one. Then both ends of an aligned stretch of `pages` are
/// present, and their frames, unless hidden, are as far apart as the ends. `index` is the page index of the first
/// entry. A huge mapping lies whole in `region`.
fn may_hold_huge(entries: &[PageMapEntry], index: u64, pages: u64, region: Range<u64>) -> bool {
    let mut rest = entries;
    let mut index = index;
    while !rest.is_empty() {
        let start = index - index % pages;
        let end = start.saturating_add(pages);
        let (stretch, beyond) = rest.split_at(rest.len().min((end - index) as usize));
        if region.start <= start
            && end <= region.end
            && let (Some(first), Some(last)) = (stretch.first(), stretch.last())
        {
            let whole = stretch.len() as u64 - 1;
            let apart = match (first.frame(), last.frame()) {
                (Some(first), Some(last)) => last.get().wrapping_sub(first.get()),
                _ => whole,
            };
            if first.is_present() && last.is_present() && apart == whole {
                return true;
            }
        }
        index = end;
        rest = beyond;
    }
    false
}

/// Reads the backing content of the untouched pages of all stretches.
fn find_backing(stretches: &mut PageStretches, space: &AddressSpace) {
    for stretch in &mut stretches.all {
        stretch.content = backing_runs(space, stretch, &stretches.entries);
    }
}

/// The backing runs of all untouched pages of `stretch`. If they cannot be read, one run says why.
fn backing_runs(space: &AddressSpace, stretch: &PageStretch, entries: &[PageMapEntry]) -> Vec<BackingRun> {
    let region = stretch.region.and_then(|index| space.regions().get(index));
    let Some(region) = region.filter(|viewed| space.has_content(viewed)) else {
        return Vec::new();
    };
    let untouched = match &stretch.words {
        StretchWords::Nothing => Some(stretch.range),
        StretchWords::Read { at, stride: 1, .. } => {
            let entries = entries.get(at.clone()).unwrap_or_default();
            untouched_range(space, stretch.range, entries)
        }
        StretchWords::Read { .. } | StretchWords::Present | StretchWords::Outside => None,
    };
    let Some(range) = untouched else {
        return Vec::new();
    };
    space.backing_content(region, range)
}

/// From the first to the last untouched page.
fn untouched_range(space: &AddressSpace, range: AddressRange, entries: &[PageMapEntry]) -> Option<AddressRange> {
    let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
    let first = entries.iter().position(is_empty)? as u64;
    let last = entries.iter().rposition(is_empty)? as u64;
    let bytes = space.page().bytes();
    let start = range.start().checked_add(first * bytes)?;
    AddressRange::new(start, range.start().checked_add((last + 1) * bytes)?)
}
