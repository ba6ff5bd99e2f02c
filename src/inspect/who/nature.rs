//! What a frame says of itself: how to look for its mappings, and how many there are.

use crate::inspect::is_average;
use crate::kernel::PageFlags;
use crate::report::{Fact, Reason};
use crate::target::Machine;

/// How to look for a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nature {
    /// Not at all: no process can map it.
    Unmappable(&'static str),
    /// A page of the page cache, shared memory among it: where that offset of that file is mapped, and nowhere else.
    File,
    /// Anonymous memory, or what a driver has inserted: anywhere, but probably where relatives have it.
    Anywhere,
    /// A page that is mapped all over the place: one mapping says nothing of the others.
    Everywhere,
}

impl Nature {
    pub fn of(flags: &Fact<PageFlags>) -> Self {
        let flags = match flags {
            Ok(flags) => *flags,
            Err(Reason::NotApplicable(why)) => return Nature::Unmappable(why),
            Err(_) => return Nature::Anywhere,
        };
        // These share a word of `struct page` with the map count: a page is of such a type or mapped, never both. They come first, as
        // kernels from 6.12 on set false flags on pages of the slab.
        let types = [
            (PageFlags::BUDDY, "it is free"),
            (
                PageFlags::SLAB,
                "it belongs to the kernel's object allocator",
            ),
            (PageFlags::PGTABLE, "it is a page table"),
            (PageFlags::OFFLINE, "it is offline"),
            (PageFlags::NOPAGE, "there is no memory at this frame number"),
        ];
        for (flag, why) in types {
            if flags.contains(flag) {
                return Nature::Unmappable(why);
            }
        }
        // What a driver has inserted was never read in, so it is not up to date.
        let in_page_cache = flags.contains(PageFlags::UPTODATE) && !flags.contains(PageFlags::ANON);
        if flags.intersects(PageFlags::ZERO_PAGE.union(PageFlags::KSM)) {
            Nature::Everywhere
        } else if in_page_cache && !flags.contains(PageFlags::RESERVED) {
            Nature::File
        } else {
            Nature::Anywhere
        }
    }
}

/// Whether the map count of a frame can be taken at its word.
pub fn is_counted(flags: &Fact<PageFlags>, count: &Fact<u64>, machine: &dyn Machine) -> Fact<()> {
    let count = count.clone()?;
    let flags = flags.clone()?;
    if flags.contains(PageFlags::ZERO_PAGE) {
        Err(Reason::NotApplicable(
            "the kernel does not count who maps the page of zeros",
        ))
    } else if count == 0 {
        Err(Reason::NotApplicable(
            "the kernel counts no mapping; those that it makes itself need not be counted",
        ))
    } else if flags.contains(PageFlags::HUGE) && !flags.contains(PageFlags::ANON) {
        // Since 2.6.20 (CONFIG_ARCH_WANT_HUGE_PMD_SHARE): one page table, and one count, for several processes.
        Err(Reason::NotApplicable(
            "processes may share page tables for memory of the hugetlb pool, and count as one then",
        ))
    } else if is_average(machine, Some(flags), Some(count)) {
        Err(Reason::NotOnThisKernel(
            "its map count may be an average over a large folio (CONFIG_NO_PAGE_MAPCOUNT)"
                .to_owned(),
        ))
    } else {
        Ok(())
    }
}
