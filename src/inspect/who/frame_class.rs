//! What the flags and the map count of a frame tell: where it can be mapped, and how often.

use crate::inspect::is_average;
use crate::kernel::PageFlags;
use crate::process::Machine;
use crate::report::{Fact, Reason};

/// Where a frame can be mapped, by its flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameClass {
    /// No process can map it, for this reason.
    Unmappable(&'static str),
    /// A page of the page cache, shared memory included: it is mapped only where that offset of that file is mapped.
    File,
    /// Anonymous memory, or a page inserted by a driver: anywhere, but probably at the same address in relatives.
    Anonymous,
    /// A page of zeros or a merged page: one mapping does not tell where others are.
    SharedConstant,
}

impl FrameClass {
    pub fn of(flags: &Fact<PageFlags>) -> Self {
        let flags = match flags {
            Ok(flags) => *flags,
            Err(Reason::NotApplicable(why)) => return FrameClass::Unmappable(why),
            Err(_) => return FrameClass::Anonymous,
        };
        // The page type shares a word of `struct page` with the map count, so a page with a type is not mapped. The
        // types come first: kernels from 6.12 on set false flags on pages of the slab.
        let types = [
            (PageFlags::BUDDY, "it is free"),
            (PageFlags::SLAB, "it belongs to the kernel's object allocator"),
            (PageFlags::PGTABLE, "it is a page table"),
            (PageFlags::OFFLINE, "it is offline"),
            (PageFlags::NOPAGE, "there is no memory at this frame number"),
        ];
        for (flag, why) in types {
            if flags.contains(flag) {
                return FrameClass::Unmappable(why);
            }
        }
        // A page inserted by a driver was never read in, so it is not UPTODATE.
        let in_page_cache = flags.contains(PageFlags::UPTODATE) && !flags.contains(PageFlags::ANON);
        if flags.intersects(PageFlags::ZERO_PAGE.union(PageFlags::KSM)) {
            FrameClass::SharedConstant
        } else if in_page_cache && !flags.contains(PageFlags::RESERVED) {
            FrameClass::File
        } else {
            FrameClass::Anonymous
        }
    }
}

/// Whether the map count of a frame is the number of its mappings.
pub fn is_counted(flags: &Fact<PageFlags>, count: &Fact<u64>, machine: &Machine) -> Fact<()> {
    let count = count.clone()?;
    let flags = flags.clone()?;
    if flags.contains(PageFlags::ZERO_PAGE) {
        Err(Reason::NotApplicable("the kernel does not count who maps the page of zeros"))
    } else if count == 0 {
        Err(Reason::NotApplicable("the kernel counts no mapping; those that it makes itself need not be counted"))
    } else if flags.contains(PageFlags::HUGE) && !flags.contains(PageFlags::ANON) {
        // Since 2.6.20 (CONFIG_ARCH_WANT_HUGE_PMD_SHARE): one page table, and one count, for several processes.
        Err(Reason::NotApplicable(
            "processes may share page tables for memory of the hugetlb pool, and count as one then",
        ))
    } else if is_average(machine, Some(flags), Some(count)) {
        Err(Reason::NotOnThisKernel(
            "its map count may be an average over a large folio (CONFIG_NO_PAGE_MAPCOUNT)".to_owned(),
        ))
    } else {
        Ok(())
    }
}
