//! The words for what a page is: the same everywhere, in text, JSON and filters.

use super::words::worded;

worded! {
    /// The state of a page of a process: one word.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum State, word {
        /// Mapped to a page frame.
        Present = "present",
        /// In a swap area.
        Swapped = "swapped",
        /// A guard page (MADV_GUARD_INSTALL): any access raises SIGSEGV.
        Guard = "guard",
        /// A poison marker (UFFDIO_POISON, or failed memory): any access raises SIGBUS.
        Poisoned = "poisoned",
        /// No page, only a write-protection marker of userfaultfd.
        UffdWp = "uffd_wp",
        /// Being moved to another frame by the kernel.
        Migrating = "migrating",
        /// In a frame that failed in hardware: any access raises SIGBUS.
        Hwpoison = "hwpoison",
        /// In device memory, or reserved for a device: an access by the CPU brings it back.
        Device = "device",
        /// In a region, but not mapped yet, or no longer mapped.
        Untouched = "untouched",
        /// Mapped straight to physical memory (VM_PFNMAP), which the page map does not show.
        PfnMapped = "pfn_mapped",
        /// Beyond the page map, which ends with user space: the vsyscall page.
        Outside = "outside",
        /// In no region: an access raises SIGSEGV, unless it makes a stack grow.
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
        /// The shared page of zeros: a write gets a new page.
        Zero = "zero",
        /// The shared huge page of zeros.
        HugeZero = "huge_zero",
        /// A page merged with equal pages (samepage merging).
        Ksm = "ksm",
        /// A page of the hugetlb pool.
        Hugetlb = "hugetlb",
        /// Code that the kernel provides to the process.
        Vdso = "vdso",
        /// Memory of a device.
        DeviceMemory = "device_memory",
        /// A page in the page cache: an access maps it without reading the file.
        Cached = "cached",
        /// A page that is not in the page cache: an access reads the file.
        NotCached = "not_cached",
        /// A page beyond the end of the file: an access raises SIGBUS.
        PastEnd = "past_end",
        /// A page of shared memory with contents, but not in memory: swapped out.
        MaybeSwapped = "maybe_swapped",
    }
}
