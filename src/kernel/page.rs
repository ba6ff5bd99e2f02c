//! The words for what a page is: the same everywhere, in text, JSON and filters.

use super::words::worded;
use serde::Serialize;

worded! {
    /// The state of a page of a process: one word.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum State, word {
        /// A page frame is mapped here.
        Present = "present",
        /// Its contents are in a swap area.
        Swapped = "swapped",
        /// A guard page installed by `MADV_GUARD_INSTALL`: any access is SIGSEGV.
        Guard = "guard",
        /// A marker set by `UFFDIO_POISON` or memory failure: any access is SIGBUS.
        Poisoned = "poisoned",
        /// Nothing there but a userfaultfd write-protection marker.
        UffdWp = "uffd_wp",
        /// On its way to another frame.
        Migrating = "migrating",
        /// The frame failed in hardware.
        Hwpoison = "hwpoison",
        /// In device memory (device-private or device-exclusive).
        Device = "device",
        /// In a region, nothing there yet (or no longer).
        Untouched = "untouched",
        /// A VM_PFNMAP mapping: accessible, but the page map hides it.
        PfnMapped = "pfn_mapped",
        /// Beyond the page map (`[vsyscall]`).
        Outside = "outside",
        /// In no region.
        Unmapped = "unmapped",
    }
}

worded! {
    /// What backs a page, or would back it.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Kind, word {
        /// Private memory without a file.
        Anonymous = "anonymous",
        /// A page of the page cache of a file.
        File = "file",
        /// Shared memory (tmpfs, memfd, shared anonymous).
        Shmem = "shmem",
        /// A private copy of a file page.
        PrivateCopy = "private_copy",
        /// The shared page of zeros.
        Zero = "zero",
        /// The shared huge page of zeros.
        HugeZero = "huge_zero",
        /// Merged by kernel samepage merging.
        Ksm = "ksm",
        /// A page of the hugetlb pool.
        Hugetlb = "hugetlb",
        /// Code that the kernel lends to the process.
        Vdso = "vdso",
        /// Memory of a device.
        DeviceMemory = "device_memory",
        /// Untouched here, but in the page cache.
        Cached = "cached",
        /// Untouched here and not in the page cache.
        NotCached = "not_cached",
        /// Beyond the end of the file: an access is SIGBUS.
        PastEnd = "past_end",
        /// Shared memory with no page mapped here, maybe swapped out.
        MaybeSwapped = "maybe_swapped",
    }
}

impl State {
    /// The one that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }
}

impl Kind {
    /// The one that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }
}
