//! Where a huge mapping may be, as far as entries tell without a scan.

use super::super::address_space::AddressSpace;
use super::super::region::ViewedRegion;
use crate::kernel::{AddressRange, PageMapEntry};
use std::ops::Range;

/// The parts of `entries`, which are those of `range`, that may be a huge mapping or a part of one. Then both ends of an
/// aligned block are present, and their frames, unless hidden, are as far apart as the ends. A huge mapping lies whole
/// in its region.
pub(super) fn blocks<'e>(
    space: &AddressSpace,
    viewed: Option<&ViewedRegion>,
    range: AddressRange,
    entries: &'e [PageMapEntry],
) -> impl Iterator<Item = Range<usize>> + use<'e> {
    let page = space.page();
    let bytes = space.target().machine.huge_page_bytes();
    let pages = bytes.map_or(1, |bytes| (bytes >> page.shift()).max(1));
    let region = viewed.map_or(range, |viewed| viewed.region.range);
    let region = page.index(region.start())..page.index(region.end());
    let first = page.index(range.start());
    let mut index = first;
    std::iter::from_fn(move || {
        loop {
            let at = usize::try_from(index - first).ok().filter(|&at| at < entries.len())?;
            let start = index - index % pages;
            let end = start.saturating_add(pages);
            let length = usize::try_from(end - index).unwrap_or(usize::MAX);
            let block = at..at.saturating_add(length).min(entries.len());
            index = end;
            let part = entries.get(block.clone()).unwrap_or_default();
            if region.start <= start && end <= region.end && may_be_huge(part) {
                return Some(block);
            }
        }
    })
}

/// Whether these entries of one block may be of one huge mapping.
fn may_be_huge(part: &[PageMapEntry]) -> bool {
    let (Some(first), Some(last)) = (part.first(), part.last()) else {
        return false;
    };
    let whole = part.len() as u64 - 1;
    let apart = match (first.frame(), last.frame()) {
        (Some(first), Some(last)) => last.get().wrapping_sub(first.get()),
        _ => whole,
    };
    first.is_present() && last.is_present() && apart == whole
}
