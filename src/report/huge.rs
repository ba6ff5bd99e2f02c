//! The words of `huge`: the maker of a huge page, why the kernel makes none, and why memory may have none although it
//! could.

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
        /// No transparent huge pages built in.
        NotBuilt = "not_built",
        /// Setting `never`.
        Never = "never",
        /// Setting `madvise`, no MADV_HUGEPAGE.
        NotAdvised = "not_advised",
        /// MADV_NOHUGEPAGE.
        AdvisedAgainst = "advised_against",
        /// PR_SET_THP_DISABLE in the process.
        Process = "process",
        /// PR_SET_THP_DISABLE, unless advised.
        OnlyAdvised = "only_advised",
        /// Memory of the kernel.
        Kernel = "kernel",
        /// Memory of a driver or of the kernel.
        Driver = "driver",
        /// No aligned huge page fits there.
        Alignment = "alignment",
        /// File offset not aligned as address.
        FileOffset = "file_offset",
        /// Setting shmem_enabled, or the mount.
        SharedMemory = "shared_memory",
        /// Copies of file pages stay small.
        Copies = "copies",
        /// This file cannot be collapsed.
        File = "file",
        /// The page cache decides the size.
        PageCache = "page_cache",
        /// THPeligible is 0, cause not visible.
        Unseen = "unseen",
        /// Another part of the huge page has small pages already.
        Occupied = "occupied",
        /// A userfaultfd handler fills pages.
        Userfault = "userfault",
        /// The memory is read-only.
        ReadOnly = "read_only",
        /// More in swap than max_ptes_swap.
        Swapped = "swapped",
        /// Write-protected by userfaultfd.
        WriteProtected = "write_protected",
        /// Guard pages or poisoned pages.
        Guards = "guards",
        /// Pages moving, failed or on a device.
        Elsewhere = "elsewhere",
        /// More empty pages than max_ptes_none.
        Empty = "empty",
        /// More shared than max_ptes_shared.
        Shared = "shared",
        /// Held: pins or other references (`pins`).
        Held = "held",
        /// Not used lately (Referenced is 0).
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

worded! {
    /// The pins of pages that are known.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum KnownPins, word {
        /// Those of all pages.
        All = "all",
        /// Those of buffers that are registered with io_uring.
        Registered = "registered",
        /// None.
        None = "none",
    }
}
