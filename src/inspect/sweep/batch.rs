//! Some steps of a plan, read together: first entries, with the categories that only PAGEMAP_SCAN tells and the backing
//! content of untouched pages, then the words of their frames.

use super::super::address_space::AddressSpace;
use super::super::classify::{Backing, KernelBehaviour as _};
use super::super::filter::Question;
use super::super::ordered_pool::Planned;
use super::super::page::Facts;
use super::chunk::{Chunk, Mark, Piece, Pieces, Words};
use super::frames::Gather;
use super::plan::{Action, Plan, READ_PAGES, Step};
use super::{huge, lookup};
use crate::kernel::{AddressRange, PageMapEntry, VirtualAddress};
use crate::process::{self, BackingRun, Categories, Populated};
use std::ops::{ControlFlow, Range};

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
            find_backing(pieces, space);
        }
        lookup::all(pieces, gather, space, question)?;
        if question.need.contains(Facts::OWNERS) {
            lookup::set_exclusive(pieces, gather, space, question.need)?;
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
            let marks = scan_marks(pieces, space, step.region, inside, at.clone(), question)?;
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

/// Scans `range`, whose entries are `at`, for the categories that its entries do not tell. Returns the indices of the
/// marks; `None` if no category is needed, or the kernel has no scan.
///
/// Fails when the target is gone.
fn scan_marks(
    pieces: &mut Pieces,
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
    if question.scans_for_zero(question.first(space)) {
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
    let entries = pieces.entries.get(at).unwrap_or_default();
    let may_be_zero = |entry: &PageMapEntry| entry.is_present() && !entry.is_file_or_shared() && !entry.is_exclusive();
    let page = space.page();
    let huge_pages = target.machine.huge_page_bytes().map_or(1, |bytes| (bytes >> page.shift()).max(1));
    let of_region = viewed.map_or(range, |viewed| viewed.region.range);
    let of_region = page.index(of_region.start())..page.index(of_region.end());
    let asks = wanted.contains(Categories::ZERO) && entries.iter().any(may_be_zero)
        || wanted.contains(Categories::HUGE)
            && (hugetlb || may_hold_huge(entries, page.index(range.start()), huge_pages, of_region));
    let from = pieces.marks.len();
    if asks {
        let marks = &mut pieces.marks;
        let mut visit = |stretch: Populated| {
            if let Some(inside) = stretch.range.intersection(range) {
                let index = page.index(inside.start()) - page.index(range.start());
                marks.push(Mark {
                    first: index as usize,
                    end: (index + inside.pages(page)) as usize,
                    categories: stretch.categories,
                });
            }
            ControlFlow::Continue(())
        };
        // `HUGE` costs nothing more, and distinguishes the huge page of zeros from the small one.
        let wanted = wanted | Categories::HUGE;
        target.process.populated(range, wanted, &mut visit)?;
    }
    Ok(Some(from..pieces.marks.len()))
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

/// Reads the backing content of the untouched pages of all pieces.
fn find_backing(pieces: &mut Pieces, space: &AddressSpace) {
    for piece in &mut pieces.all {
        piece.content = runs(space, piece, &pieces.entries);
    }
}

/// The backing runs of all untouched pages of `piece`. If they cannot be read, one run says why.
fn runs(space: &AddressSpace, piece: &Piece, entries: &[PageMapEntry]) -> Vec<BackingRun> {
    let region = piece.region.and_then(|index| space.regions().get(index));
    let Some(region) = region.filter(|viewed| space.has_content(viewed)) else {
        return Vec::new();
    };
    let untouched = match &piece.words {
        Words::Nothing => Some(piece.range),
        Words::Read { at, stride: 1, .. } => {
            let entries = entries.get(at.clone()).unwrap_or_default();
            untouched(space, piece.range, entries)
        }
        Words::Read { .. } | Words::Present | Words::Outside => None,
    };
    let Some(range) = untouched else {
        return Vec::new();
    };
    space.backing_content(region, range)
}

/// From the first to the last untouched page.
fn untouched(space: &AddressSpace, range: AddressRange, entries: &[PageMapEntry]) -> Option<AddressRange> {
    let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
    let first = entries.iter().position(is_empty)? as u64;
    let last = entries.iter().rposition(is_empty)? as u64;
    let bytes = space.page().bytes();
    let start = range.start().checked_add(first * bytes)?;
    AddressRange::new(start, range.start().checked_add((last + 1) * bytes)?)
}
