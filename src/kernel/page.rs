//! One 64-bit entry of `/proc/PID/pagemap`, and the words for states and kinds of pages. Text, JSON and filters use the
//! same words.

use super::FrameNumber;
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

impl State {
    /// What a page in this state is, after "its page is": `untouched`, `a guard page`.
    pub fn phrase(self) -> &'static str {
        match self {
            State::Guard => "a guard page",
            State::UffdWp => "write-protected by userfaultfd (uffd_wp)",
            State::Hwpoison => "in memory that failed (hwpoison)",
            State::Device => "in device memory",
            State::PfnMapped => "of a driver or of the kernel (pfn_mapped)",
            State::Outside => "outside of the page map",
            other => other.word(),
        }
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
        /// The shared zero page.
        Zero = "zero",
        /// The shared huge zero page.
        HugeZero = "huge_zero",
        /// A page merged with equal pages (samepage merging).
        Ksm = "ksm",
        /// A page of the hugetlb pool.
        Hugetlb = "hugetlb",
        /// Code and data that the kernel provides to the process.
        Vdso = "vdso",
        /// Memory of a device.
        DeviceMemory = "device_memory",
        /// Memory of a driver, or of the kernel, that reclaim does not free.
        DriverMemory = "driver_memory",
        /// Secret memory (memfd_secret): not even the kernel has it mapped.
        Secret = "secret",
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

/// A raw page-map entry, and its bits. Valid for Linux 4.2 and later, where bits 55 to 60 are flags on every kernel;
/// before that they held the page shift.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct PageMapEntry(u64);

/// A swap area and a slot in it, or one of the kernel's pseudo swap types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwapEntry {
    /// The number of the swap area, as the kernel counts (0 to 31).
    pub kind: u8,
    /// The page slot in that area; for pseudo types a frame number or marker bits.
    pub offset: u64,
}

impl SwapEntry {
    /// Returns the slot `slots` after this one.
    pub fn nth(self, slots: u64) -> SwapEntry {
        SwapEntry { offset: self.offset.saturating_add(slots), ..self }
    }
}

/// One bit of an entry, apart from the frame number or swap entry in bits 0 to 54.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryBit {
    /// The number of the bit, 55 to 63.
    pub number: u32,
    /// The name of the bit.
    pub name: &'static str,
    /// The meaning of the bit when it is set.
    pub meaning: &'static str,
}

/// The bits above the frame number, the highest first.
pub const ENTRY_BITS: [EntryBit; 9] = {
    const fn bit(number: u32, name: &'static str, meaning: &'static str) -> EntryBit {
        EntryBit { number, name, meaning }
    }
    [
        bit(63, "present", "a page frame is mapped"),
        bit(62, "swap entry", "not present: in swap, migrating, or a marker"),
        bit(61, "file or shared", "a page of a file or of shared memory, no private copy"),
        bit(60, "bit60", "unknown to pmdb"),
        bit(59, "bit59", "unknown to pmdb"),
        bit(58, "guard", "a guard page: any access raises SIGSEGV"),
        bit(57, "uffd-wp", "write-protected through userfaultfd"),
        bit(56, "exclusive", "mapped only once"),
        bit(55, "soft-dirty", "written to since soft-dirty was cleared, or never cleared"),
    ]
};

impl PageMapEntry {
    const FRAME_BITS: u32 = 55;

    /// A present page of which nothing else is known: its frame counts as hidden.
    pub const PRESENT: Self = Self(1 << 63);

    /// Wraps the eight bytes of an entry, already in the byte order of this machine.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }
    /// Returns all 64 bits.
    pub const fn raw(self) -> u64 {
        self.0
    }
    const fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }
    /// Returns the bits above the frame number at their places; the others are 0.
    pub const fn bits(self) -> u64 {
        self.0 >> Self::FRAME_BITS << Self::FRAME_BITS
    }
    /// The bits above the frame number that are set, the highest first.
    pub fn set_bits(self) -> impl Iterator<Item = EntryBit> {
        ENTRY_BITS.into_iter().filter(move |bit| self.bit(bit.number))
    }
    /// Bit 63: a page frame is mapped.
    pub const fn is_present(self) -> bool {
        self.bit(63)
    }
    /// Bit 62: a non-present entry: swap, but also markers, migration, hwpoison.
    pub const fn is_swap_entry(self) -> bool {
        self.bit(62)
    }
    /// Bit 61: a page of a file or of shared memory. Clear on a private copy.
    pub const fn is_file_or_shared(self) -> bool {
        self.bit(61)
    }
    /// Bit 58 (Linux 6.15): a guard page.
    pub const fn is_guard(self) -> bool {
        self.bit(58)
    }
    /// Bit 57: write-protected through userfaultfd.
    pub const fn is_uffd_wp(self) -> bool {
        self.bit(57)
    }
    /// Bit 56: mapped only once. Not to be trusted inside a PMD-mapped huge page.
    pub const fn is_exclusive(self) -> bool {
        self.bit(56)
    }
    /// Returns the entry with bit 56 set or clear.
    #[must_use]
    pub const fn with_exclusive(self, is_exclusive: bool) -> Self {
        Self(self.0 & !(1 << 56) | (is_exclusive as u64) << 56)
    }
    /// Bit 55: soft-dirty. A kernel without soft-dirty tracking never sets it. On an empty entry the bit belongs to the
    /// region (VM_SOFTDIRTY), and nothing was written.
    pub const fn is_soft_dirty(self) -> bool {
        self.bit(55) && !self.is_empty()
    }
    /// Returns whether the entry is empty. Kernels that track soft-dirty pages set bit 55 of empty entries too.
    pub const fn is_empty(self) -> bool {
        self.without_soft_dirty().0 == 0
    }
    /// Returns the entry with bit 55 clear.
    #[must_use]
    pub const fn without_soft_dirty(self) -> Self {
        Self(self.0 & !(1 << 55))
    }
    /// The frame of a present page; `None` when the page is not present, or when the kernel hides the number (it then
    /// shows 0: the opener had no CAP_SYS_ADMIN).
    pub fn frame(self) -> Option<FrameNumber> {
        let frame = self.frame_bits();
        (self.is_present() && frame != 0).then_some(FrameNumber::new(frame))
    }
    /// The raw bits of the frame number: 0 also where it is hidden.
    pub const fn frame_bits(self) -> u64 {
        self.0 & ((1 << Self::FRAME_BITS) - 1)
    }
    /// Whether the page is present but its frame number is hidden.
    pub fn is_frame_hidden(self) -> bool {
        self.is_present() && self.frame().is_none()
    }
    /// Returns whether type and offset of a non-present entry are hidden: both are 0 for an opener without
    /// CAP_SYS_ADMIN. The first slot of an area holds its header, so that no page is ever at (0, 0).
    pub fn is_swap_hidden(self) -> bool {
        self.swap().is_some_and(|swap| (swap.kind, swap.offset) == (0, 0))
    }
    /// Type and offset of a non-present entry, when bit 62 says that there is one.
    pub fn swap(self) -> Option<SwapEntry> {
        (!self.is_present() && self.is_swap_entry())
            .then_some(SwapEntry { kind: (self.0 & 0x1f) as u8, offset: self.0 >> 5 & ((1 << 50) - 1) })
    }
}

impl std::fmt::Debug for PageMapEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageMapEntry({:#018x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries as Linux 6.18 gave them.
    #[test]
    fn entries_as_seen() {
        let guard = PageMapEntry::new(0x4400_0000_0000_009f);
        assert!(guard.is_guard() && guard.is_swap_entry() && !guard.is_present());
        let marker = |offset| Some(SwapEntry { kind: 31, offset });
        assert_eq!(guard.swap(), marker(4));
        let write_protected = PageMapEntry::new(0x4200_0000_0000_003f);
        assert!(write_protected.is_uffd_wp() && !write_protected.is_guard());
        assert_eq!(write_protected.swap(), marker(1));
        let poisoned = PageMapEntry::new(0x4000_0000_0000_005f);
        assert_eq!(poisoned.swap(), marker(2));
        let swapped = PageMapEntry::new(0x4000_0000_0000_0020);
        assert_eq!(swapped.swap(), Some(SwapEntry { kind: 0, offset: 1 }));
        assert_eq!(swapped.frame(), None);
        assert!(!swapped.is_swap_hidden() && !guard.is_swap_hidden());
        // The two as an unprivileged opener sees them.
        assert!(PageMapEntry::new(1 << 62).is_swap_hidden());
        assert!(PageMapEntry::new(1 << 62 | 1 << 58).is_swap_hidden());
        assert!(!PageMapEntry::new(0).is_swap_hidden());
    }

    #[test]
    fn present_pages_and_hidden_frames() {
        let anonymous = PageMapEntry::new(0x8100_0000_001a_4eac);
        assert_eq!(anonymous.frame(), Some(FrameNumber::new(0x1a_4eac)));
        assert!(anonymous.is_exclusive() && !anonymous.is_file_or_shared());
        assert!(!anonymous.is_frame_hidden());
        assert_eq!(anonymous.swap(), None);
        let hidden = PageMapEntry::new(0xa000_0000_0000_0000);
        assert!(hidden.is_present() && hidden.is_frame_hidden() && hidden.is_file_or_shared());
        assert_eq!(hidden.frame(), None);
        let soft_dirty_hole = PageMapEntry::new(1 << 55);
        assert!(soft_dirty_hole.is_empty() && !soft_dirty_hole.is_soft_dirty());
        assert!(!soft_dirty_hole.is_present() && !soft_dirty_hole.is_frame_hidden());
        assert_eq!((soft_dirty_hole.frame(), soft_dirty_hole.swap()), (None, None));
    }

    #[test]
    fn an_entry_is_empty_whatever_its_soft_dirty_bit_says() {
        const SOFT_DIRTY: u64 = 1 << 55;
        assert!(PageMapEntry::new(0).is_empty());
        for bit in (0..64).filter(|bit| 1 << bit != SOFT_DIRTY) {
            let entry = PageMapEntry::new(1 << bit);
            let written = PageMapEntry::new(1 << bit | SOFT_DIRTY);
            assert!(!entry.is_empty() && !written.is_empty(), "bit {bit}");
            assert!(!entry.is_soft_dirty() && written.is_soft_dirty(), "bit {bit}");
            assert_eq!(written.without_soft_dirty(), entry);
        }
    }

    #[test]
    fn fields_keep_to_their_bits() {
        let all = PageMapEntry::new(u64::MAX);
        assert_eq!(all.frame(), Some(FrameNumber::new((1 << 55) - 1)));
        let not_present = PageMapEntry::new(!(1 << 63));
        let widest = SwapEntry { kind: 31, offset: (1 << 50) - 1 };
        assert_eq!(not_present.swap(), Some(widest));
    }
}
