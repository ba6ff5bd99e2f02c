//! What a flag means for the page that it is set on. The same bit means one thing for anonymous memory and another for
//! the page cache, and kernels set a few flags falsely.

use super::PageFlags;
use super::page_flags::FLAGS;

/// What the meaning of a flag depends on, besides the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlagContext {
    /// The first two numbers of the kernel release.
    pub kernel: (u32, u32),
    /// Flags that this kernel was found to set falsely; `None` when that was not checked.
    pub false_flags: Option<PageFlags>,
}

/// `all` without the false flags: bits that are really other data of the page.
pub fn believable(all: PageFlags, context: FlagContext) -> PageFlags {
    FLAGS
        .iter()
        .map(|info| info.flag)
        .filter(|&flag| all.contains(flag) && why_false(flag, all, context).is_some())
        .fold(all, PageFlags::difference)
}

/// What `flag` means for a page frame with the flags `all`.
pub fn explain(flag: PageFlags, all: PageFlags, context: FlagContext) -> &'static str {
    why_false(flag, all, context).or_else(|| in_context(flag, all, context.kernel)).unwrap_or_else(|| {
        let known = FLAGS.iter().find(|info| info.flag == flag);
        known.map_or("not known to this version of pmdb", |info| info.meaning)
    })
}

/// From this kernel on none sets KSM on all anonymous memory. Many do from 6.10 on; stable releases were fixed one by
/// one.
const KSM_FIXED: (u32, u32) = (7, 1);

/// Why `flag` does not hold, if it is known not to.
fn why_false(flag: PageFlags, all: PageFlags, context: FlagContext) -> Option<&'static str> {
    use PageFlags as F;
    // Slab pages keep other data where the mapping and the map count of a page are.
    let is_slab = all.contains(F::SLAB);
    match flag {
        F::ANON | F::KSM | F::MMAP if is_slab => {
            Some("not true: slab pages keep other data where the kernel reads this flag")
        }
        F::KSM if context.false_flags.is_some_and(|flags| flags.contains(F::KSM)) => {
            Some("no information: this kernel sets it on all anonymous memory")
        }
        F::KSM if all.contains(F::OWNER_2) => Some(
            "not true: a merged page is never exclusive (from Linux 6.10 on, some kernels set it on all anonymous memory)",
        ),
        _ => None,
    }
}

fn in_context(flag: PageFlags, all: PageFlags, kernel: (u32, u32)) -> Option<&'static str> {
    use PageFlags as F;
    let has = |one: F| all.contains(one);
    let is_slab = has(F::SLAB);
    let is_anonymous = has(F::ANON) && !is_slab;
    // Since 6.10 most bits of a page of a folio are those of its folio.
    let of_folio = all.intersects(F::COMPOUND_HEAD | F::COMPOUND_TAIL) && kernel >= (6, 10);
    Some(match flag {
        F::OWNER_2 if is_anonymous && kernel >= (5, 19) => "exclusive to one process: a write needs no copy",
        F::OWNER_2 if !is_anonymous => "its place on disk is known to the filesystem",
        F::OWNER_PRIVATE if has(F::SWAPCACHE) => "the same bit as swapcache",
        F::OWNER_PRIVATE => "used by its filesystem or driver",
        F::SWAPCACHE => "in the swap cache: it also has a slot in a swap area",
        F::SWAPBACKED if is_anonymous => "swapped out when it is reclaimed",
        F::SWAPBACKED => "shared memory (tmpfs, memfd): swapped out when it is reclaimed",
        F::RECLAIM if has(F::WRITEBACK) => "to be freed as soon as it has been written",
        F::RECLAIM => "a readahead mark: reading this page starts the next readahead",
        F::THP if has(F::ZERO_PAGE) => "part of the huge page of zeros",
        F::THP => "part of a large folio of any size, however it is mapped",
        F::ZERO_PAGE if has(F::THP) => "the shared huge page of zeros",
        F::MMAP if of_folio => "some page of its folio is mapped by a process",
        F::DIRTY if of_folio => "some page of its folio was written since it was last saved",
        F::DIRTY if is_anonymous => "written since it was last saved to swap",
        F::DIRTY if !has(F::SWAPBACKED) => "written since it was last saved to its file",
        F::REFERENCED if of_folio => "its folio was used since the last scan by reclaim",
        F::LRU if of_folio => "its folio is on a list of reclaimable pages",
        F::ACTIVE if is_slab => "a slab that a CPU is working on (older kernels)",
        F::ERROR if is_slab => "a slab with debugging on (older kernels)",
        F::ERROR if kernel >= (6, 12) => "has no meaning since Linux 6.12",
        F::KSM if ((6, 10)..KSM_FIXED).contains(&kernel) => {
            "merged by samepage merging, unless this is one of the kernels that set it on all anonymous memory (some from 6.10 on)"
        }
        F::KSM => "one frame for equal pages, merged by samepage merging: a write makes a copy",
        F::UNEVICTABLE if has(F::MLOCKED) => "not reclaimed: locked into memory",
        F::COMPOUND_HEAD if is_slab => "the first page of a slab",
        F::COMPOUND_TAIL if is_slab => "a later page of a slab",
        F::COMPOUND_HEAD if has(F::HUGE) => "the first page of a hugetlb page",
        F::COMPOUND_TAIL if has(F::HUGE) => "a later page of a hugetlb page",
        F::PRIVATE if !is_anonymous => "its filesystem has data about it (buffers)",
        F::RESERVED if has(F::ZERO_PAGE) => "not managed by the page allocator",
        F::RESERVED => "not managed by the page allocator: kernel, firmware or vdso",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use PageFlags as F;

    const NEW: (u32, u32) = (6, 18);

    fn said(flag: F, all: F, kernel: (u32, u32), false_flags: Option<F>) -> &'static str {
        let context = FlagContext { kernel, false_flags };
        explain(flag, all | flag, context)
    }

    #[test]
    fn the_same_bit_says_different_things() {
        let anonymous = F::ANON | F::MMAP | F::SWAPBACKED | F::UPTODATE;
        for (flag, all, kernel, part) in [
            (F::OWNER_2, anonymous, NEW, "exclusive to one process"),
            (F::OWNER_2, anonymous, (5, 15), "exclusive to one process (anonymous), or"),
            (F::OWNER_2, F::UPTODATE, NEW, "its place on disk"),
            (F::OWNER_PRIVATE, anonymous | F::SWAPCACHE, NEW, "same bit as swapcache"),
            (F::OWNER_PRIVATE, F::UPTODATE, NEW, "filesystem"),
            (F::RECLAIM, F::UPTODATE, NEW, "readahead mark"),
            (F::RECLAIM, F::WRITEBACK, NEW, "as soon as it has been written"),
            (F::THP, F::COMPOUND_HEAD, NEW, "of any size"),
            (F::THP, F::ZERO_PAGE, NEW, "huge page of zeros"),
            (F::MMAP, F::COMPOUND_TAIL, NEW, "some page of its folio"),
            (F::MMAP, F::COMPOUND_TAIL, (6, 1), "mapped by a process"),
            (F::MMAP, F::UPTODATE, NEW, "mapped by a process"),
            (F::DIRTY, F::UPTODATE, NEW, "saved to its file"),
            (F::DIRTY, anonymous, NEW, "saved to swap"),
            (F::SWAPBACKED, F::UPTODATE, NEW, "shared memory"),
            (F::ERROR, F::UPTODATE, NEW, "no meaning"),
            (F::from_bits_retain(1 << 27), F::UPTODATE, NEW, "not known"),
            (F::BUDDY, F::empty(), NEW, "free"),
        ] {
            let words = said(flag, all, kernel, None);
            assert!(words.contains(part), "{flag:?} of {all:?} on {kernel:?}: {words}");
        }
    }

    #[test]
    fn false_flags_are_explained_and_not_believed() {
        let anonymous = F::ANON | F::MMAP | F::UPTODATE;
        for (all, kernel, false_flags, expected) in [
            // As seen on slab pages of Linux 6.18 with KSM off.
            (F::from_bits_retain(0x20_1080), NEW, None, F::SLAB),
            (anonymous | F::KSM | F::OWNER_2, (6, 12), None, anonymous | F::OWNER_2),
            (anonymous | F::KSM, (6, 12), Some(F::KSM), anonymous),
            (anonymous | F::KSM, (6, 12), Some(F::empty()), anonymous | F::KSM),
            (anonymous | F::KSM, NEW, None, anonymous | F::KSM),
            (F::from_bits_retain(1 << 63), NEW, None, F::from_bits_retain(1 << 63)),
        ] {
            let context = FlagContext { kernel, false_flags };
            assert_eq!(believable(all, context), expected, "{all:?}");
        }
        assert!(said(F::KSM, F::ANON, (6, 12), Some(F::KSM)).contains("no information"));
        assert!(said(F::KSM, F::ANON, (6, 12), None).contains("unless"));
        assert!(said(F::KSM, F::ANON, (6, 1), None).contains("one frame for equal pages"));
        assert!(said(F::ANON, F::SLAB, NEW, None).contains("not true"));
    }

    #[test]
    fn every_flag_has_words_whatever_the_page() {
        for info in FLAGS {
            for all in [F::empty(), F::all(), F::SLAB, F::ANON, F::COMPOUND_TAIL] {
                for kernel in [(4, 2), (6, 1), NEW, (9, 0)] {
                    assert!(!said(info.flag, all, kernel, None).is_empty());
                }
            }
        }
    }
}
