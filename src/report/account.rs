//! The words of an account of memory: the classes, what is marked in them, and what stands beside their sum.

use crate::kernel::words::worded;

worded! {
    /// The class that a mapping of a page is counted in. Every mapping that Rss counts is in one of them.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum AccountClass, word {
        /// Anonymous memory that is mapped only here.
        Anonymous = "anonymous",
        /// Private copies of file pages, mapped only here.
        PrivateCopies = "private_copies",
        /// Anonymous memory and private copies that are shared with other processes since a fork.
        Forked = "forked",
        /// Pages merged with equal pages (KSM).
        Merged = "merged",
        /// Anonymous memory and private copies; what shares them is unknown.
        PrivateUnclear = "private_unclear",
        /// Shared memory that is mapped only by this process.
        ShmemHere = "shmem_here",
        /// Shared memory that other processes map too.
        ShmemOthers = "shmem_others",
        /// Shared memory; whether other processes map it is unknown.
        ShmemUnclear = "shmem_unclear",
        /// Pages of files that are mapped only by this process.
        FileHere = "file_here",
        /// Pages of files that other processes map too.
        FileOthers = "file_others",
        /// Pages of files; whether other processes map them is unknown.
        FileUnclear = "file_unclear",
        /// Pages that the kernel provides, such as the vdso.
        Kernel = "kernel",
        /// Entries without memory here: the page is moving to another frame, on a device, or failed.
        Elsewhere = "elsewhere",
        /// Pages of an unknown kind.
        Unclear = "unclear",
    }
}

worded! {
    /// A property of pages in a class.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum AccountMark, word {
        /// Mapped as huge pages, by one PMD each.
        Huge = "huge",
        /// Copied by the next write of this process.
        ToCopy = "to_copy",
        /// Freed with MADV_FREE. The mark stays if the page is written again.
        LazilyFreed = "lazily_freed",
        /// Locked into memory, by this process or another one.
        Locked = "locked",
        /// Pages of files with changes that are not on disk yet: the kernel cannot drop them.
        Dirty = "dirty",
        /// Mapped several times in this process.
        Several = "several",
        /// Mapped by no other process but pmdb itself.
        WithPmdb = "with_pmdb",
        /// All-zero pieces of huge pages.
        Zeros = "zeros",
    }
}

worded! {
    /// Memory of the process that Rss does not count.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum BesideRss, word {
        /// Pages of the hugetlb pool.
        Hugetlb = "hugetlb",
        /// Pages in swap.
        Swapped = "swapped",
        /// Mappings of the page of zeros, which take no memory.
        ZeroPages = "zero_pages",
        /// Memory of devices and of the kernel, mapped by drivers.
        Drivers = "drivers",
        /// Data that the kernel maps into every process (`[vvar]`).
        KernelData = "kernel_data",
        /// Guard pages, which take no memory.
        Guards = "guards",
    }
}

worded! {
    /// The class that a frame is counted in which some of several processes map.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum FamilyClass, word {
        /// Private memory that one of the processes maps.
        PrivateOne = "private_one",
        /// Private memory that several of them map, since a fork.
        PrivateSeveral = "private_several",
        /// Pages merged with equal pages (KSM).
        Merged = "merged",
        /// Shared memory that one of them maps.
        ShmemOne = "shmem_one",
        /// Shared memory that several of them map.
        ShmemSeveral = "shmem_several",
        /// Pages of files that one of them maps.
        FileOne = "file_one",
        /// Pages of files that several of them map.
        FileSeveral = "file_several",
        /// Pages that the kernel provides, such as the vdso.
        Kernel = "kernel",
        /// Entries without memory here: the page is moving to another frame, on a device, or failed.
        Elsewhere = "elsewhere",
        /// Pages of an unknown kind.
        Unclear = "unclear",
    }
}
