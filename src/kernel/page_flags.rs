//! The 64 bits that `/proc/kpageflags` gives for a page frame: their names, their letters, and what each means for the
//! page that it is set on.
//!
//! The meaning of a bit depends on the page (anonymous memory or page cache), and some kernels set a few flags falsely.

use bitflags::bitflags;

/// A page flag, with its name and meaning.
#[derive(Clone, Copy, Debug)]
pub struct FlagInfo {
    /// The flag.
    pub flag: PageFlags,
    /// The kernel's name of the flag, in lower case.
    pub name: &'static str,
    /// The meaning of the flag when it is set, in a few words.
    pub meaning: &'static str,
}

/// Declares the flags, and the table of them.
macro_rules! flags {
    ($($flag:ident = $bit:literal, $name:literal, $meaning:literal;)*) => {
        bitflags! {
            /// Flags of a page frame. Unknown bits are kept: newer kernels have more.
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
            #[repr(transparent)]
            pub struct PageFlags: u64 {
                $(
                    #[doc = concat!("Bit ", $bit, ": ", $meaning, ".")]
                    const $flag = 1 << $bit;
                )*
                // Keeps bits that newer kernels set.
                const _ = !0;
            }
        }

        /// Every known flag, by bit.
        pub const FLAGS: &[FlagInfo] = &[
            $(FlagInfo { flag: PageFlags::$flag, name: $name, meaning: $meaning },)*
        ];
    };
}

flags! {
    LOCKED = 0, "locked", "held during I/O or migration; mlock sets mlocked";
    ERROR = 1, "error", "failed in I/O (never set since Linux 6.12)";
    REFERENCED = 2, "referenced", "used since the last scan by reclaim";
    UPTODATE = 3, "uptodate", "has valid contents";
    DIRTY = 4, "dirty", "written since it was last saved (anonymous memory: marked by reclaim)";
    LRU = 5, "lru", "on a list of reclaimable pages";
    ACTIVE = 6, "active", "on the active list";
    SLAB = 7, "slab", "part of a kernel object allocator";
    WRITEBACK = 8, "writeback", "being written to disk or swap";
    RECLAIM = 9, "reclaim", "freed after writeback, or marked for readahead";
    BUDDY = 10, "buddy", "free, in the buddy allocator";
    MMAP = 11, "mmap", "mapped by a process";
    ANON = 12, "anon", "anonymous memory";
    SWAPCACHE = 13, "swapcache", "has a copy in a swap area";
    SWAPBACKED = 14, "swapbacked", "swapped out when it is reclaimed";
    COMPOUND_HEAD = 15, "compound_head", "the first page of a folio";
    COMPOUND_TAIL = 16, "compound_tail", "a later page of a folio";
    HUGE = 17, "huge", "from the hugetlb pool";
    UNEVICTABLE = 18, "unevictable", "cannot be reclaimed";
    HWPOISON = 19, "hwpoison", "failed in hardware";
    NOPAGE = 20, "nopage", "no memory at this frame number";
    KSM = 21, "ksm", "merged by samepage merging";
    THP = 22, "thp", "part of a large folio";
    OFFLINE = 23, "offline", "logically offline (balloon)";
    ZERO_PAGE = 24, "zero_page", "the shared zero page";
    IDLE = 25, "idle", "not used since it was marked idle";
    PGTABLE = 26, "pgtable", "a page table";
    RESERVED = 32, "reserved", "not managed by the page allocator";
    MLOCKED = 33, "mlocked", "locked into memory";
    OWNER_2 = 34, "owner_2", "exclusive to one process (anonymous), or mapped to disk (file)";
    PRIVATE = 35, "private", "has filesystem data";
    PRIVATE_2 = 36, "private_2", "has further filesystem data";
    OWNER_PRIVATE = 37, "owner_private", "used by its filesystem or driver";
    ARCH = 38, "arch", "specific to the architecture";
    UNCACHED = 39, "uncached", "mapped uncached";
    SOFTDIRTY = 40, "softdirty", "soft-dirty";
    ARCH_2 = 41, "arch_2", "specific to the architecture";
    ARCH_3 = 42, "arch_3", "specific to the architecture (arm64: memory tags)";
}

impl PageFlags {
    /// Returns the name, if exactly one flag is set and it has a name.
    pub fn known_name(self) -> Option<&'static str> {
        let known = FLAGS.iter().find(|info| info.flag == self);
        known.map(|info| info.name)
    }
    /// Returns the names of the set flags, lowest bit first; a bit without a name is written as `bit27`.
    pub fn names(self) -> Vec<std::borrow::Cow<'static, str>> {
        let name = |(bit, flag): (u32, PageFlags)| match flag.known_name() {
            Some(name) => name.into(),
            None => format!("bit{bit}").into(),
        };
        self.each().map(name).collect()
    }
    /// Whether the page is one of a large folio whose mappings some kernels count only as a whole
    /// (CONFIG_NO_PAGE_MAPCOUNT, Linux 6.15): the map count that they give for it is an average. Pages of the hugetlb
    /// pool are mapped whole or not at all.
    pub fn is_in_large_folio(self) -> bool {
        self.intersects(PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL) && !self.contains(PageFlags::HUGE)
    }
    /// Returns whether these are the flags of a page that was freed with MADV_FREE: other anonymous memory is backed by
    /// swap. Before Linux 6.10 only the head of a folio has its flags, and those of a tail show nothing.
    pub fn is_lazily_freed(self) -> bool {
        self.contains(PageFlags::ANON | PageFlags::LRU) && !self.contains(PageFlags::SWAPBACKED)
    }
    /// Returns each set flag with the number of its bit, also flags without a name.
    pub fn each(self) -> impl Iterator<Item = (u32, PageFlags)> {
        (0..64).map(|bit| (bit, PageFlags::from_bits_retain(1 << bit))).filter(move |&(_, flag)| self.contains(flag))
    }
    /// Returns the flag with this name, in any case; `bitNN` is the flag without a name at bit NN.
    pub fn from_flag_name(name: &str) -> Option<PageFlags> {
        let known = FLAGS.iter().find(|info| info.name.eq_ignore_ascii_case(name)).map(|info| info.flag);
        known.or_else(|| {
            let bit: u32 = name.strip_prefix("bit")?.parse().ok()?;
            (bit < 64).then(|| PageFlags::from_bits_retain(1 << bit))
        })
    }
}

/// A letter for each flag of [`FLAGS`], as in page-types (tools/mm/page-types.c). Two letters differ: page-types uses
/// that of `arch_2` for the first page of a folio, and does not have `arch_3`.
const LETTERS: &str = "LERUDlASWIBMasbHTGuXnxtozigrmdPpOhcf23";

impl PageFlags {
    /// Returns the letters of the set flags, without places for the others.
    pub fn set_letters(self) -> String {
        self.letters().replace('_', "")
    }

    /// Returns one character for each known flag: its letter if it is set, otherwise `_`. A `+` at the end represents
    /// flags without a name.
    pub fn letters(self) -> String {
        let mut rest = self;
        let mut row: String = FLAGS
            .iter()
            .zip(LETTERS.chars())
            .map(|(info, letter)| {
                rest.remove(info.flag);
                if self.contains(info.flag) { letter } else { '_' }
            })
            .collect();
        if !rest.is_empty() {
            row.push('+');
        }
        row
    }
}

/// The facts that the meaning of a flag depends on, besides the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlagContext {
    /// Major and minor number of the kernel release.
    pub kernel: (u32, u32),
    /// Flags that this kernel was found to set falsely; `None` if that was not checked.
    pub false_flags: Option<PageFlags>,
}

/// Returns `all` without the false flags: bits in which the kernel keeps other data of the page.
pub fn believable(all: PageFlags, context: FlagContext) -> PageFlags {
    FLAGS
        .iter()
        .map(|info| info.flag)
        .filter(|&flag| all.contains(flag) && why_false(flag, all, context).is_some())
        .fold(all, PageFlags::difference)
}

/// Returns whether a frame with the flags `all` has `flag`, and no other flag shows that the bit is other data.
pub fn holds(flag: PageFlags, all: PageFlags) -> bool {
    all.contains(flag) && why_false(flag, all, FlagContext::default()).is_none()
}

/// Returns the meaning of `flag` on a page frame with the flags `all`.
pub fn explain(flag: PageFlags, all: PageFlags, context: FlagContext) -> &'static str {
    why_false(flag, all, context).or_else(|| in_context(flag, all, context.kernel)).unwrap_or_else(|| {
        let known = FLAGS.iter().find(|info| info.flag == flag);
        known.map_or("not known to this version of pmdb", |info| info.meaning)
    })
}

/// The first kernel of which no release sets KSM on all anonymous memory. From 6.10 on many did; stable releases were
/// fixed one by one.
const KSM_FIXED: (u32, u32) = (7, 1);

/// Returns why `flag` does not hold, if it is known to be false.
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
        F::OWNER_2 if is_anonymous && of_folio && has(F::COMPOUND_TAIL) => {
            "the first page of its folio is exclusive to one process"
        }
        F::OWNER_2 if is_anonymous && kernel >= (5, 19) => "exclusive to one process: a write needs no copy",
        F::OWNER_2 if !is_anonymous => "its place on disk is known to the filesystem",
        F::OWNER_PRIVATE if has(F::SWAPCACHE) => "the same bit as swapcache",
        F::OWNER_PRIVATE => "used by its filesystem or driver",
        F::SWAPCACHE => "in the swap cache: it also has a slot in a swap area",
        F::SWAPBACKED if is_anonymous => "swapped out when it is reclaimed",
        F::SWAPBACKED => "shared memory (tmpfs, memfd): swapped out when it is reclaimed",
        F::RECLAIM if has(F::WRITEBACK) => "to be freed as soon as it has been written",
        F::RECLAIM => "a readahead mark: reading this page starts the next readahead",
        F::THP if has(F::ZERO_PAGE) => "part of the huge zero page",
        F::THP => "part of a large folio of any size, however it is mapped",
        F::ZERO_PAGE if has(F::THP) => "the shared huge zero page",
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
        F::PRIVATE if has(F::RESERVED) => "its owner keeps data about it",
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
    use std::collections::BTreeSet;

    #[test]
    fn pages_of_large_folios() {
        let flags = |bits: &[u32]| {
            let bits = bits.iter().fold(0u64, |all, bit| all | 1 << bit);
            PageFlags::from_bits_retain(bits)
        };
        // A transparent huge page, its tail, a large folio of the page cache, a page of the hugetlb pool, a page by
        // itself.
        for (bits, expected) in [
            (&[12, 15, 22][..], true),
            (&[12, 16, 22], true),
            (&[5, 15, 22], true),
            (&[12, 15, 17], false),
            (&[5, 12, 14], false),
        ] {
            assert_eq!(flags(bits).is_in_large_folio(), expected, "{bits:?}");
        }
    }

    #[test]
    fn names_by_bit_and_back() {
        let flags = PageFlags::from_bits_retain(1 << 3 | 1 << 27 | 1 << 34 | 1 << 63);
        assert_eq!(flags.names(), ["uptodate", "bit27", "owner_2", "bit63"]);
        for bit in 0..64 {
            let one = PageFlags::from_bits_retain(1 << bit);
            let names = one.names();
            assert_eq!(names.len(), 1);
            assert_eq!(PageFlags::from_flag_name(&names[0]), Some(one));
            assert_eq!(
                PageFlags::from_flag_name(&names[0].to_uppercase()),
                Some(one).filter(|_| !names[0].starts_with("bit"))
            );
        }
        for unknown in ["", "bit64", "bit", "bit-1", "dirtyy"] {
            assert_eq!(PageFlags::from_flag_name(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_table_is_in_order_and_whole() {
        let bits: Vec<u64> = FLAGS.iter().map(|info| info.flag.bits()).collect();
        assert!(bits.is_sorted());
        assert!(bits.iter().all(|bits| bits.is_power_of_two()));
        let named = PageFlags::all().iter_names().count();
        assert_eq!(FLAGS.len(), named);
        for info in FLAGS {
            let (constant, _) = info.flag.iter_names().next().expect("a constant");
            assert_eq!(constant.to_lowercase(), info.name);
        }
    }

    #[test]
    fn every_flag_has_a_letter_of_its_own() {
        assert_eq!(LETTERS.chars().count(), FLAGS.len());
        let different: BTreeSet<char> = LETTERS.chars().collect();
        assert_eq!(different.len(), FLAGS.len());
        let letter = PageFlags::set_letters;
        assert_eq!(letter(PageFlags::REFERENCED), "R");
        assert_eq!(letter(PageFlags::MMAP), "M");
        assert_eq!(letter(PageFlags::COMPOUND_TAIL), "T");
        assert_eq!(letter(PageFlags::PGTABLE), "g");
        assert_eq!(letter(PageFlags::RESERVED), "r");
        assert_eq!(letter(PageFlags::OWNER_2), "d");
        assert_eq!(letter(PageFlags::SOFTDIRTY), "f");
    }

    #[test]
    fn rows_stand_under_each_other() {
        let flags = PageFlags::UPTODATE | PageFlags::LRU | PageFlags::ANON | PageFlags::MMAP;
        assert_eq!(flags.letters(), "___U_l_____Ma_________________________");
        assert_eq!(PageFlags::empty().letters().len(), LETTERS.len());
        let newer = PageFlags::from_bits_retain(1 << 27);
        assert_eq!(newer.letters(), format!("{}+", "_".repeat(LETTERS.len())));
    }

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
            (F::OWNER_2, anonymous | F::COMPOUND_TAIL, NEW, "the first page of its folio is exclusive"),
            (F::OWNER_2, anonymous | F::COMPOUND_TAIL, (6, 6), "exclusive to one process: a write"),
            (F::OWNER_PRIVATE, anonymous | F::SWAPCACHE, NEW, "same bit as swapcache"),
            (F::OWNER_PRIVATE, F::UPTODATE, NEW, "filesystem"),
            (F::RECLAIM, F::UPTODATE, NEW, "readahead mark"),
            (F::RECLAIM, F::WRITEBACK, NEW, "as soon as it has been written"),
            (F::THP, F::COMPOUND_HEAD, NEW, "of any size"),
            (F::THP, F::ZERO_PAGE, NEW, "huge zero page"),
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
        assert!(
            holds(F::SLAB, F::SLAB | F::KSM) && !holds(F::KSM, F::SLAB | F::KSM) && holds(F::KSM, anonymous | F::KSM)
        );
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
