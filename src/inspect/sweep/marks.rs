//! The categories of pages, from PAGEMAP_SCAN. It scans only where the entries leave a question.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::filter::Question;
use super::super::kernel_behaviour::KernelBehaviour as _;
use super::super::page::Facts;
use super::chunk::Mark;
use super::pieces::Pieces;
use crate::kernel::{AddressRange, PageMapEntry};
use crate::process::{self, Categories, Populated};
use std::ops::{ControlFlow, Range};

/// Scans `range`, whose entries are `at`, for the categories that its entries do not tell. Returns the indices of the
/// marks; `None` if no category is needed, or the kernel has no scan.
///
/// Fails when the target is gone.
pub(super) fn ask(
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
