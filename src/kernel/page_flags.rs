//! The 64 bits that `/proc/kpageflags` gives for a page frame.

use bitflags::bitflags;

/// What is known of one flag.
#[derive(Clone, Copy, Debug)]
pub struct FlagInfo {
    /// The flag.
    pub flag: PageFlags,
    /// Its name as pmdb writes it: the kernel's, in lower case.
    pub name: &'static str,
    /// What it says, in a few words.
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
                // Whatever a newer kernel sets is kept.
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
    LOCKED = 0, "locked", "being read, written or migrated";
    ERROR = 1, "error", "failed in I/O (never set since Linux 6.12)";
    REFERENCED = 2, "referenced", "used since the last scan by reclaim";
    UPTODATE = 3, "uptodate", "has valid contents";
    DIRTY = 4, "dirty", "written since it was last saved";
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
    ZERO_PAGE = 24, "zero_page", "the shared page of zeros";
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
    /// The name of this one flag, if it has one.
    pub fn known_name(self) -> Option<&'static str> {
        let known = FLAGS.iter().find(|info| info.flag == self);
        known.map(|info| info.name)
    }
    /// The names of the flags that are set, by bit; `bit27` and the like for those without a name.
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
    /// Whether these are the flags of a page that was freed with MADV_FREE: other anonymous memory is backed by swap.
    /// Before Linux 6.10 those of a tail of a folio do not tell: only its head has the flags of the folio.
    pub fn is_lazily_freed(self) -> bool {
        self.contains(PageFlags::ANON | PageFlags::LRU) && !self.contains(PageFlags::SWAPBACKED)
    }
    /// Each set flag by itself with its bit, the nameless too.
    pub fn each(self) -> impl Iterator<Item = (u32, PageFlags)> {
        (0..64).map(|bit| (bit, PageFlags::from_bits_retain(1 << bit))).filter(move |&(_, flag)| self.contains(flag))
    }
    /// The flag of that name (any case, `bitNN` for the nameless).
    pub fn from_flag_name(name: &str) -> Option<PageFlags> {
        let known = FLAGS.iter().find(|info| info.name.eq_ignore_ascii_case(name)).map(|info| info.flag);
        known.or_else(|| {
            let bit: u32 = name.strip_prefix("bit")?.parse().ok()?;
            (bit < 64).then(|| PageFlags::from_bits_retain(1 << bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
