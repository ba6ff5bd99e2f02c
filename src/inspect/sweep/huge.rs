//! Where a huge mapping may be, as far as entries tell without a scan.

use super::super::address_space::AddressSpace;
use super::super::region::ViewedRegion;
use crate::kernel::{AddressRange, PageMapEntry};
use std::ops::Range;

/// The parts of `entries`, which are those of `range`, that may be a huge mapping or a part of one. Then both ends of
/// an aligned block are present, and their frames, unless hidden, are as far apart as the ends. A huge mapping lies
/// whole in its region.
pub(super) fn blocks<'e>(
    space: &AddressSpace,
    viewed: Option<&ViewedRegion>,
    range: AddressRange,
    entries: &'e [PageMapEntry],
) -> impl Iterator<Item = Range<usize>> + use<'e> {
    let page = space.page_size();
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

#[cfg(test)]
mod tests {
    use crate::inspect::{AddressSpace, Evidence, Page};
    use crate::process::Target;
    use crate::process::fake::{HUGE, PRESENT, World, region};
    use std::sync::atomic::{AtomicU64, Ordering};

    fn swept(target: &Target) -> Vec<Page> {
        let space = AddressSpace::of(target).expect("a space");
        let mut sweep = space.pages(&space.spans(), Evidence::COUNTS);
        let mut pages = Vec::new();
        while let Some(chunk) = sweep.next().expect("a sweep") {
            pages.extend(chunk.pages());
        }
        pages
    }

    fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    /// Bit 56 of small pages is a map count of 1: their counts are not read, and those of the others are.
    #[test]
    fn counts_are_read_only_where_the_entry_does_not_tell_them() {
        let mut world = World::new([region(0x1000, 2 * HUGE)]);
        // Every second frame: no block can be huge.
        for page in 0..HUGE {
            world.maps(0x1000 + page, 1, (1 << 20) + 2 * page);
        }
        let shared = (1 << 20) + 2 * 7;
        world.entries.insert(0x1000 + 7, PRESENT | shared);
        world.counts.insert(shared, 3);
        // A block of consecutive frames may be mapped by one PMD, whose bit is that of its first page.
        world.maps(0x1000 + HUGE, HUGE, 1 << 22);
        world.counts.insert((1 << 22) + 9, 2);
        let (world, target) = world.target();
        let pages = swept(&target);
        let counted = |count| {
            let counted = pages.iter().filter(|page| page.map_count == Some(count));
            counted.map(|page| page.pages).sum::<u64>()
        };
        assert_eq!((counted(1), counted(2), counted(3)), (2 * HUGE - 2, 1, 1));
        assert_eq!(read(&world.counts_read), 1 + HUGE);
    }

    /// Where the kernel does not count each page, bit 56 tells only whether the folio has one owner.
    #[test]
    fn averages_are_read_for_every_page() {
        let mut world = World { average_counts: true, ..World::new([region(0x1000, 16)]) };
        for page in 0..16 {
            world.maps(0x1000 + page, 1, (1 << 20) + 2 * page);
        }
        let (world, target) = world.target();
        let _ = swept(&target);
        assert!(read(&world.counts_read) >= 16);
    }
}
