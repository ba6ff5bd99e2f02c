//! The words for what a page is: the same everywhere, in text, JSON and filters.

use super::words::worded;

worded! {
    /// The state of a page of a process: one word.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum State, word {
        /// A page frame is mapped here.
        Present = "present",
        /// Its contents are in a swap area.
        Swapped = "swapped",
        /// A guard page (MADV_GUARD_INSTALL): any access is SIGSEGV.
        Guard = "guard",
        /// A poison marker (UFFDIO_POISON, or failed memory): any access is SIGBUS.
        Poisoned = "poisoned",
        /// No page, only a write-protection marker of userfaultfd.
        UffdWp = "uffd_wp",
        /// The kernel is moving it to another frame.
        Migrating = "migrating",
        /// The frame failed in hardware: an access is SIGBUS.
        Hwpoison = "hwpoison",
        /// In device memory, or reserved for a device: an access by the CPU brings it back.
        Device = "device",
        /// In a region, but nothing is mapped here yet, or no longer.
        Untouched = "untouched",
        /// Mapped straight to physical memory (VM_PFNMAP): the page map does not show it.
        PfnMapped = "pfn_mapped",
        /// Beyond the page map, which ends where user space does: the vsyscall page.
        Outside = "outside",
        /// In no region: an access is SIGSEGV, unless it makes a stack grow.
        Unmapped = "unmapped",
    }
}

worded! {
    /// What backs a page, or would back it.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum Kind, word {
        /// Memory without a file.
        Anonymous = "anonymous",
        /// A page of a file, in the page cache.
        File = "file",
        /// Shared memory (tmpfs, memfd, System V, shared anonymous).
        Shmem = "shmem",
        /// A private copy of a page of a file.
        PrivateCopy = "private_copy",
        /// The shared page of zeros: a write brings a page of its own.
        Zero = "zero",
        /// The shared huge page of zeros.
        HugeZero = "huge_zero",
        /// Merged with equal pages by samepage merging.
        Ksm = "ksm",
        /// From the hugetlb pool.
        Hugetlb = "hugetlb",
        /// Code that the kernel lends to the process.
        Vdso = "vdso",
        /// Memory of a device.
        DeviceMemory = "device_memory",
        /// In the page cache: an access maps it without reading the file.
        Cached = "cached",
        /// Not in the page cache: an access reads the file.
        NotCached = "not_cached",
        /// Beyond the end of the file: an access is SIGBUS.
        PastEnd = "past_end",
        /// Shared memory that has contents, but not in memory: swapped out.
        MaybeSwapped = "maybe_swapped",
    }
}
