//! The words of `explain huge`: who makes huge pages, why they do not, and why there may be none in memory that is
//! allowed some.

use crate::kernel::words::worded;

worded! {
    /// Who makes huge pages.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum HugeBy, word {
        /// The first access to memory that nobody has touched.
        Fault = "fault",
        /// The thread of the kernel that replaces small pages with huge ones.
        Khugepaged = "khugepaged",
    }
}

worded! {
    /// Why the kernel makes no huge page somewhere.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum HugeRefusal, word {
        /// A kernel without transparent huge pages.
        NotBuilt = "not_built",
        /// The setting is `never`.
        Never = "never",
        /// The setting is `madvise`, no MADV_HUGEPAGE here.
        NotAdvised = "not_advised",
        /// MADV_NOHUGEPAGE.
        AdvisedAgainst = "advised_against",
        /// PR_SET_THP_DISABLE in the process.
        Process = "process",
        /// PR_SET_THP_DISABLE, except after MADV_HUGEPAGE.
        OnlyAdvised = "only_advised",
        /// Memory of the kernel.
        Kernel = "kernel",
        /// Memory that a driver or the kernel has set up.
        Driver = "driver",
        /// No aligned huge page fits in the region.
        Alignment = "alignment",
        /// The file offset is not aligned as the address.
        FileOffset = "file_offset",
        /// The setting shmem_enabled, or the mount option `huge`.
        SharedMemory = "shared_memory",
        /// Private copies of file pages stay small.
        Copies = "copies",
        /// This kernel does not collapse this file.
        File = "file",
        /// A file is mapped as the page cache has it.
        PageCache = "page_cache",
        /// THPeligible of smaps is 0, cause not visible.
        Unseen = "unseen",
        /// Small pages are there already.
        Occupied = "occupied",
        /// A userfaultfd handler fills each page.
        Userfault = "userfault",
        /// The memory is read-only.
        ReadOnly = "read_only",
        /// More pages in swap than max_ptes_swap.
        Swapped = "swapped",
        /// Pages write-protected by userfaultfd.
        WriteProtected = "write_protected",
        /// Guard pages or poisoned pages.
        Guards = "guards",
        /// Pages that move, failed, or are on a device.
        Elsewhere = "elsewhere",
        /// More empty pages than max_ptes_none.
        Empty = "empty",
        /// More shared pages than max_ptes_shared.
        Shared = "shared",
        /// No page was used lately (Referenced is 0).
        Unused = "unused",
    }
}

worded! {
    /// Why memory may have no huge pages that nothing keeps from them now.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum HugePast, word {
        /// khugepaged did not come by yet.
        NotYet = "not_yet",
        /// The settings or the advice were different at the first access.
        Settings = "settings",
        /// The region was smaller at the first access.
        Grown = "grown",
        /// A huge page was split: by munmap, mprotect, madvise or mremap of a part, or by swap.
        Split = "split",
        /// Single pages were copied after a fork.
        Copied = "copied",
        /// No block was free, or the cgroup was at its limit.
        NoBlock = "no_block",
        /// A driver or the kernel holds pages where they are.
        Pinned = "pinned",
    }
}
