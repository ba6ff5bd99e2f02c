//! The 64 bits that `/proc/kpageflags` gives for a page frame.

use bitflags::bitflags;

bitflags! {
    /// Flags of a page frame. Unknown bits are kept: newer kernels have more.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    #[repr(transparent)]
    pub struct PageFlags: u64 {
        /// Bit 0: being read, written or migrated.
        const LOCKED = 1 << 0;
        /// Bit 1: an I/O error happened (never set since Linux 6.12).
        const ERROR = 1 << 1;
        /// Bit 2: used since the last look by reclaim.
        const REFERENCED = 1 << 2;
        /// Bit 3: its contents are valid.
        const UPTODATE = 1 << 3;
        /// Bit 4: written to since it was last saved.
        const DIRTY = 1 << 4;
        /// Bit 5: on a list of reclaimable pages.
        const LRU = 1 << 5;
        /// Bit 6: on the active list.
        const ACTIVE = 1 << 6;
        /// Bit 7: belongs to a kernel object allocator.
        const SLAB = 1 << 7;
        /// Bit 8: being written to disk or swap.
        const WRITEBACK = 1 << 8;
        /// Bit 9: to be freed after writeback, or a readahead mark.
        const RECLAIM = 1 << 9;
        /// Bit 10: free, in the buddy allocator.
        const BUDDY = 1 << 10;
        /// Bit 11: mapped by some process.
        const MMAP = 1 << 11;
        /// Bit 12: anonymous memory.
        const ANON = 1 << 12;
        /// Bit 13: has a copy in a swap area.
        const SWAPCACHE = 1 << 13;
        /// Bit 14: would go to swap.
        const SWAPBACKED = 1 << 14;
        /// Bit 15: first page of a folio.
        const COMPOUND_HEAD = 1 << 15;
        /// Bit 16: a later page of a folio.
        const COMPOUND_TAIL = 1 << 16;
        /// Bit 17: from the hugetlb pool.
        const HUGE = 1 << 17;
        /// Bit 18: cannot be reclaimed.
        const UNEVICTABLE = 1 << 18;
        /// Bit 19: failed in hardware.
        const HWPOISON = 1 << 19;
        /// Bit 20: no memory at this frame number.
        const NOPAGE = 1 << 20;
        /// Bit 21: merged by samepage merging.
        const KSM = 1 << 21;
        /// Bit 22: part of a large folio.
        const THP = 1 << 22;
        /// Bit 23: logically offline (balloon).
        const OFFLINE = 1 << 23;
        /// Bit 24: the shared page of zeros.
        const ZERO_PAGE = 1 << 24;
        /// Bit 25: not used since it was marked idle.
        const IDLE = 1 << 25;
        /// Bit 26: a page table.
        const PGTABLE = 1 << 26;
        /// Bit 32: not managed by the page allocator.
        const RESERVED = 1 << 32;
        /// Bit 33: locked into memory.
        const MLOCKED = 1 << 33;
        /// Bit 34: anonymous: exclusive to one process; file: mapped to disk.
        const OWNER_2 = 1 << 34;
        /// Bit 35: has filesystem data.
        const PRIVATE = 1 << 35;
        /// Bit 36: has further filesystem data.
        const PRIVATE_2 = 1 << 36;
        /// Bit 37: for its owner.
        const OWNER_PRIVATE = 1 << 37;
        /// Bit 38: for the architecture.
        const ARCH = 1 << 38;
        /// Bit 39: mapped uncached.
        const UNCACHED = 1 << 39;
        /// Bit 40: soft-dirty.
        const SOFTDIRTY = 1 << 40;
        /// Bit 41: for the architecture.
        const ARCH_2 = 1 << 41;
        /// Bit 42: for the architecture (arm64: memory tags).
        const ARCH_3 = 1 << 42;
        // Whatever a newer kernel sets is kept.
        const _ = !0;
    }
}

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

/// Every known flag, by bit.
pub const FLAGS: &[FlagInfo] = &[
    FlagInfo {
        flag: PageFlags::LOCKED,
        name: "locked",
        meaning: "being read, written or migrated",
    },
    FlagInfo {
        flag: PageFlags::ERROR,
        name: "error",
        meaning: "an I/O error happened (never set since Linux 6.12)",
    },
    FlagInfo {
        flag: PageFlags::REFERENCED,
        name: "referenced",
        meaning: "used since the last look by reclaim",
    },
    FlagInfo {
        flag: PageFlags::UPTODATE,
        name: "uptodate",
        meaning: "its contents are valid",
    },
    FlagInfo {
        flag: PageFlags::DIRTY,
        name: "dirty",
        meaning: "written to since it was last saved",
    },
    FlagInfo {
        flag: PageFlags::LRU,
        name: "lru",
        meaning: "on a list of reclaimable pages",
    },
    FlagInfo {
        flag: PageFlags::ACTIVE,
        name: "active",
        meaning: "on the active list",
    },
    FlagInfo {
        flag: PageFlags::SLAB,
        name: "slab",
        meaning: "belongs to a kernel object allocator",
    },
    FlagInfo {
        flag: PageFlags::WRITEBACK,
        name: "writeback",
        meaning: "being written to disk or swap",
    },
    FlagInfo {
        flag: PageFlags::RECLAIM,
        name: "reclaim",
        meaning: "to be freed after writeback, or a readahead mark",
    },
    FlagInfo {
        flag: PageFlags::BUDDY,
        name: "buddy",
        meaning: "free, in the buddy allocator",
    },
    FlagInfo {
        flag: PageFlags::MMAP,
        name: "mmap",
        meaning: "mapped by some process",
    },
    FlagInfo {
        flag: PageFlags::ANON,
        name: "anon",
        meaning: "anonymous memory",
    },
    FlagInfo {
        flag: PageFlags::SWAPCACHE,
        name: "swapcache",
        meaning: "has a copy in a swap area",
    },
    FlagInfo {
        flag: PageFlags::SWAPBACKED,
        name: "swapbacked",
        meaning: "would go to swap",
    },
    FlagInfo {
        flag: PageFlags::COMPOUND_HEAD,
        name: "compound_head",
        meaning: "first page of a folio",
    },
    FlagInfo {
        flag: PageFlags::COMPOUND_TAIL,
        name: "compound_tail",
        meaning: "a later page of a folio",
    },
    FlagInfo {
        flag: PageFlags::HUGE,
        name: "huge",
        meaning: "from the hugetlb pool",
    },
    FlagInfo {
        flag: PageFlags::UNEVICTABLE,
        name: "unevictable",
        meaning: "cannot be reclaimed",
    },
    FlagInfo {
        flag: PageFlags::HWPOISON,
        name: "hwpoison",
        meaning: "failed in hardware",
    },
    FlagInfo {
        flag: PageFlags::NOPAGE,
        name: "nopage",
        meaning: "no memory at this frame number",
    },
    FlagInfo {
        flag: PageFlags::KSM,
        name: "ksm",
        meaning: "merged by samepage merging",
    },
    FlagInfo {
        flag: PageFlags::THP,
        name: "thp",
        meaning: "part of a large folio",
    },
    FlagInfo {
        flag: PageFlags::OFFLINE,
        name: "offline",
        meaning: "logically offline (balloon)",
    },
    FlagInfo {
        flag: PageFlags::ZERO_PAGE,
        name: "zero_page",
        meaning: "the shared page of zeros",
    },
    FlagInfo {
        flag: PageFlags::IDLE,
        name: "idle",
        meaning: "not used since it was marked idle",
    },
    FlagInfo {
        flag: PageFlags::PGTABLE,
        name: "pgtable",
        meaning: "a page table",
    },
    FlagInfo {
        flag: PageFlags::RESERVED,
        name: "reserved",
        meaning: "not managed by the page allocator",
    },
    FlagInfo {
        flag: PageFlags::MLOCKED,
        name: "mlocked",
        meaning: "locked into memory",
    },
    FlagInfo {
        flag: PageFlags::OWNER_2,
        name: "owner_2",
        meaning: "anonymous: exclusive to one process; file: mapped to disk",
    },
    FlagInfo {
        flag: PageFlags::PRIVATE,
        name: "private",
        meaning: "has filesystem data",
    },
    FlagInfo {
        flag: PageFlags::PRIVATE_2,
        name: "private_2",
        meaning: "has further filesystem data",
    },
    FlagInfo {
        flag: PageFlags::OWNER_PRIVATE,
        name: "owner_private",
        meaning: "for its owner",
    },
    FlagInfo {
        flag: PageFlags::ARCH,
        name: "arch",
        meaning: "for the architecture",
    },
    FlagInfo {
        flag: PageFlags::UNCACHED,
        name: "uncached",
        meaning: "mapped uncached",
    },
    FlagInfo {
        flag: PageFlags::SOFTDIRTY,
        name: "softdirty",
        meaning: "soft-dirty",
    },
    FlagInfo {
        flag: PageFlags::ARCH_2,
        name: "arch_2",
        meaning: "for the architecture",
    },
    FlagInfo {
        flag: PageFlags::ARCH_3,
        name: "arch_3",
        meaning: "for the architecture (arm64: memory tags)",
    },
];

impl PageFlags {
    /// The names of the flags that are set, by bit; `bit27` and the like for those without a name.
    pub fn names(self) -> Vec<std::borrow::Cow<'static, str>> {
        (0..64)
            .filter(|bit| self.bits() >> bit & 1 == 1)
            .map(
                |bit| match FLAGS.iter().find(|info| info.flag.bits() == 1 << bit) {
                    Some(info) => info.name.into(),
                    None => format!("bit{bit}").into(),
                },
            )
            .collect()
    }
    /// Whether the page is one of a large folio whose mappings some kernels count only as a whole (CONFIG_NO_PAGE_MAPCOUNT, Linux 6.15): the
    /// map count that they give for it is an average. Pages of the hugetlb pool are mapped whole or not at all.
    pub fn is_in_large_folio(self) -> bool {
        self.intersects(PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL)
            && !self.contains(PageFlags::HUGE)
    }
    /// Each set flag by itself with its bit, the nameless too.
    pub fn each(self) -> impl Iterator<Item = (u32, PageFlags)> {
        (0..64)
            .map(|bit| (bit, PageFlags::from_bits_retain(1 << bit)))
            .filter(move |&(_, flag)| self.contains(flag))
    }
    /// The flag of that name (any case, `bitNN` for the nameless).
    pub fn from_flag_name(name: &str) -> Option<PageFlags> {
        let known = FLAGS
            .iter()
            .find(|info| info.name.eq_ignore_ascii_case(name))
            .map(|info| info.flag);
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
        // A transparent huge page, its tail, a large folio of the page cache, a page of the hugetlb pool, a page by itself.
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
