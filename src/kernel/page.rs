//! The words for what a page is: the same everywhere, in text, JSON and filters.

use serde::Serialize;

/// The state of a page of a process: one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A page frame is mapped here.
    Present,
    /// Its contents are in a swap area.
    Swapped,
    /// A guard page installed by `MADV_GUARD_INSTALL`: any access is SIGSEGV.
    Guard,
    /// A marker set by `UFFDIO_POISON` or memory failure: any access is SIGBUS.
    Poisoned,
    /// Nothing there but a userfaultfd write-protection marker.
    UffdWp,
    /// On its way to another frame.
    Migrating,
    /// The frame failed in hardware.
    Hwpoison,
    /// In device memory (device-private or device-exclusive).
    Device,
    /// In a region, nothing there yet (or no longer).
    Untouched,
    /// A VM_PFNMAP mapping: accessible, but the page map hides it.
    PfnMapped,
    /// Beyond the page map (`[vsyscall]`).
    Outside,
    /// In no region.
    Unmapped,
}

/// What backs a page, or would back it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Private memory without a file.
    Anonymous,
    /// A page of the page cache of a file.
    File,
    /// Shared memory (tmpfs, memfd, shared anonymous).
    Shmem,
    /// A private copy of a file page.
    PrivateCopy,
    /// The shared page of zeros.
    Zero,
    /// The shared huge page of zeros.
    HugeZero,
    /// Merged by kernel samepage merging.
    Ksm,
    /// A page of the hugetlb pool.
    Hugetlb,
    /// Code that the kernel lends to the process.
    Vdso,
    /// Memory of a device.
    DeviceMemory,
    /// Untouched here, but in the page cache.
    Cached,
    /// Untouched here and not in the page cache.
    NotCached,
    /// Beyond the end of the file: an access is SIGBUS.
    PastEnd,
    /// Shared memory with no page mapped here, maybe swapped out.
    MaybeSwapped,
}

impl State {
    /// Every one, in the order of the words.
    pub const ALL: &'static [State] = &[
        State::Present,
        State::Swapped,
        State::Guard,
        State::Poisoned,
        State::UffdWp,
        State::Migrating,
        State::Hwpoison,
        State::Device,
        State::Untouched,
        State::PfnMapped,
        State::Outside,
        State::Unmapped,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            State::Present => "present",
            State::Swapped => "swapped",
            State::Guard => "guard",
            State::Poisoned => "poisoned",
            State::UffdWp => "uffd_wp",
            State::Migrating => "migrating",
            State::Hwpoison => "hwpoison",
            State::Device => "device",
            State::Untouched => "untouched",
            State::PfnMapped => "pfn_mapped",
            State::Outside => "outside",
            State::Unmapped => "unmapped",
        }
    }

    /// The one that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }
}

impl Kind {
    /// Every one, in the order of the words.
    pub const ALL: &'static [Kind] = &[
        Kind::Anonymous,
        Kind::File,
        Kind::Shmem,
        Kind::PrivateCopy,
        Kind::Zero,
        Kind::HugeZero,
        Kind::Ksm,
        Kind::Hugetlb,
        Kind::Vdso,
        Kind::DeviceMemory,
        Kind::Cached,
        Kind::NotCached,
        Kind::PastEnd,
        Kind::MaybeSwapped,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Anonymous => "anonymous",
            Kind::File => "file",
            Kind::Shmem => "shmem",
            Kind::PrivateCopy => "private_copy",
            Kind::Zero => "zero",
            Kind::HugeZero => "huge_zero",
            Kind::Ksm => "ksm",
            Kind::Hugetlb => "hugetlb",
            Kind::Vdso => "vdso",
            Kind::DeviceMemory => "device_memory",
            Kind::Cached => "cached",
            Kind::NotCached => "not_cached",
            Kind::PastEnd => "past_end",
            Kind::MaybeSwapped => "maybe_swapped",
        }
    }

    /// The one that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }
}
