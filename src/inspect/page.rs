//! What a command sees of the address space: pages, one or many alike at a time.

use super::heap::uses::HeapUse;
use super::holders::FrameHolders;
use super::states::StateSet;
use crate::kernel::physical::{ZoneLookup, Zones};
use crate::kernel::words::worded;
use crate::kernel::{
    AddressRange, FrameNumber, Kind, PageFlags, PageMapEntry, PageSize, PhysicalAddress, State, SwapEntry, TableBits,
    VirtualAddress,
};
use crate::process::BackingContent;
use bitflags::bitflags;

bitflags! {
    /// What a sweep has to find out beside the page-map entries. Each costs reads of its own, so ask for no more than
    /// is used.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Evidence: u32 {
        /// [`Page::kind`] where it can be known: distinguishes the zero page from anonymous memory.
        const KINDS = 1 << 0;
        /// [`Page::flags`], from `/proc/kpageflags`.
        const FLAGS = 1 << 1;
        /// [`Page::map_count`], from `/proc/kpagecount`.
        const COUNTS = 1 << 2;
        /// [`Page::huge`], from PAGEMAP_SCAN.
        const HUGE = 1 << 3;
        /// The question is about frame numbers: without the right to see them it has no answer.
        const FRAMES = 1 << 4;
        /// The question is about soft-dirty bits: without a kernel that tracks them it has no answer.
        const SOFT_DIRTY = 1 << 5;
        /// Neighbours that differ only in address and frame come one by one.
        const EACH = 1 << 6;
        /// The parts of the spans that lie in no region, as pages in state `unmapped`.
        const HOLES = 1 << 7;
        /// [`Page::content`], and with it the kinds of untouched pages of files and shared memory.
        const CONTENT = 1 << 8;
        /// [`Page::order`], from the flags of the frame and, at the edges of what is mapped, of a few around it.
        const ORDER = 1 << 9;
        /// [`Page::zone`], from `/proc/zoneinfo`.
        const ZONES = 1 << 10;
        /// [`Page::cgroup`], from `/proc/kpagecgroup`.
        const CGROUPS = 1 << 11;
        /// [`Page::entry`] with its frame and bits, and kinds as far as these tell. Every other need except
        /// [`Evidence::HOLES`] includes it. Without it pages have only states, for which the kernel's scan is enough.
        const ENTRIES = 1 << 12;
        /// Bit 56 of [`Page::entry`] for each page that one PMD maps, from its map count: without this it is that of
        /// the first page, if one PMD maps it.
        const OWNERS = 1 << 13;
        /// The references in [`Page::holders`], from the kernel's own records.
        const REFERENCES = 1 << 14;
        /// All of [`Page::holders`].
        const PINS = 1 << 15;
        /// [`Page::table`], from the page tables in the kernel's memory.
        const TABLES = 1 << 16;
        /// The frames of device mappings, which the page map hides, from the same page tables.
        const DEVICE_FRAMES = 1 << 17;
        /// [`Page::content`] of shared memory alone: which of its untouched pages may be in swap.
        const SHARED_CONTENT = 1 << 18;
        /// [`Page::heap`], from a walk over the heaps.
        const HEAP = 1 << 19;
        /// [`Page::folio`], from the order of the frame's folio and the entries of its other pages.
        const FOLIOS = 1 << 20;
        /// The question is not about frame numbers: neighbours come as one if they differ only in these, and bit 56
        /// tells that each frame has one mapping. [`Page::frame`] is that of the first. Has no effect beside
        /// [`Evidence::FRAMES`] and [`Evidence::EACH`].
        const ANY_FRAME = 1 << 21;
    }
}

impl Evidence {
    /// The needs that are looked up by frame.
    pub(super) const WORDS: Evidence = Evidence::FLAGS
        .union(Evidence::COUNTS)
        .union(Evidence::ORDER)
        .union(Evidence::FOLIOS)
        .union(Evidence::CGROUPS)
        .union(Evidence::RECORDS);

    /// The needs that the kernel's own records of frames give.
    pub(super) const RECORDS: Evidence = Evidence::REFERENCES.union(Evidence::PINS);

    /// Whether more is asked for than states.
    pub fn has_entries(self) -> bool {
        !self.difference(Evidence::HOLES | Evidence::ANY_FRAME).is_empty()
    }

    /// Whether neighbours that differ only in frame come as one.
    pub(super) fn joins_frames(self) -> bool {
        self.contains(Evidence::ANY_FRAME) && !self.intersects(Evidence::FRAMES | Evidence::EACH)
    }
}

/// Whether one PMD maps a present page, or it is from the hugetlb pool, where no scan told. Hugetlb pages are mapped
/// huge, and a PMD maps only large folios.
pub(super) fn huge_without_scan(kind: Option<Kind>, flags: Option<PageFlags>) -> Option<bool> {
    match kind {
        Some(Kind::Hugetlb) => Some(true),
        _ => flags.is_some_and(|flags| !flags.is_in_large_folio()).then_some(false),
    }
}

/// The memory zone of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InZone {
    /// Its NUMA node.
    pub node: u32,
    /// Which of [`AddressSpace::zones`](super::AddressSpace::zones) it is.
    pub index: usize,
}

impl InZone {
    /// The one zone, if it is one.
    pub(super) fn of(zones: &Zones, spanned: ZoneLookup) -> Option<InZone> {
        let ZoneLookup::In(index) = spanned else {
            return None;
        };
        let node = zones.get(index)?.node;
        Some(InZone { node, index })
    }
}

worded! {
    /// How a large folio is mapped in a region, at the addresses around one of its pages.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum FolioFit, word {
        /// Whole, at a multiple of its size.
        Aligned = "aligned",
        /// Whole, at another address: no single entry can map it.
        Unaligned = "unaligned",
        /// In part.
        Part = "part",
    }
}

/// A page, or `pages` neighbours that are the same in everything below; when frames are mapped, with consecutive
/// frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The first byte of the (first) page.
    pub address: VirtualAddress,
    /// How many pages this stands for: 1, or all of an untouched stretch, a contiguous run, a huge page.
    pub pages: u64,
    /// The raw page-map entry of the first; 0 for stretches that were found empty by a scan. When only states are asked
    /// for, it says no more than that the page is present.
    pub entry: PageMapEntry,
    /// What is there, or may be.
    pub states: StateSet,
    /// What it is or would be; `None` when it is in no region, or when the data that pmdb can read does not show it.
    pub kind: Option<Kind>,
    /// The frame's flags, when asked for and there is a frame: those that all of `pages` have.
    pub flags: Option<PageFlags>,
    /// How often the frame is mapped, when asked for and there is a frame.
    pub map_count: Option<u64>,
    /// How many of these mappings are pmdb's own, where the count was asked for.
    pub own_mappings: u64,
    /// Mapped by one PMD, or from the hugetlb pool; `None` when not asked for or unknown here. Where no such mapping
    /// fits, it is known to be false without a read.
    pub huge: Option<bool>,
    /// Whether `map_count` may be an average over a large folio, as far as the frame's flags show.
    pub count_is_average: bool,
    /// The order of the frame's folio, when asked for and there is a frame. `pages` may be several folios, all of this
    /// order.
    pub order: Option<u8>,
    /// How the frame's folio is mapped around the page, when asked for and the folio is large.
    pub folio: Option<FolioFit>,
    /// The memory zone of the frame, when asked for and there is one.
    pub zone: Option<InZone>,
    /// Inode of the memory cgroup that the frame is charged to, 0 for none; when asked for and there is a frame.
    pub cgroup: Option<u64>,
    /// Who holds the frame's folio, when asked for and recorded.
    pub holders: Option<FrameHolders>,
    /// What the entry of the page table allows and records, when asked for and there is a frame.
    pub table: Option<TableBits>,
    /// The frame of the first page of a device mapping, when asked for: only page tables have it.
    pub device_frame: Option<FrameNumber>,
    /// For an untouched page: what the file or shared memory behind it has, when asked for and told.
    pub content: Option<BackingContent>,
    /// For a page of shared memory without an entry: the swap slot of the first of `pages`, where the kernel's own
    /// records show it. The others are in the following slots.
    pub slot: Option<SwapEntry>,
    /// What it is for the heaps, when asked for.
    pub heap: Option<HeapUse>,
}

/// Sweeps make one for each page: it does not grow.
const _: () = assert!(size_of::<Page>() <= 192);

impl Page {
    /// One page of which no more than this is known.
    #[inline]
    pub(crate) fn new(address: VirtualAddress, states: StateSet) -> Self {
        Page {
            address,
            pages: 1,
            entry: PageMapEntry::default(),
            states,
            kind: None,
            flags: None,
            map_count: None,
            own_mappings: 0,
            huge: None,
            count_is_average: false,
            order: None,
            folio: None,
            zone: None,
            cgroup: None,
            holders: None,
            table: None,
            device_frame: None,
            content: None,
            slot: None,
            heap: None,
        }
    }

    /// The page's state, or the likeliest.
    #[inline]
    pub fn state(&self) -> State {
        self.states.likeliest()
    }

    /// The frame of the first page; the others have the following ones. `None` without a frame, and when it is hidden.
    pub fn frame(&self) -> Option<FrameNumber> {
        self.entry.frame().or(self.device_frame)
    }

    /// The physical address of the first byte.
    pub fn physical(&self, page: PageSize) -> Option<PhysicalAddress> {
        self.frame()?.physical(page)
    }

    /// Bytes that the pages span; saturating at the end of the address space.
    pub fn bytes(&self, page: PageSize) -> u64 {
        self.pages.saturating_mul(page.bytes())
    }

    /// The address after the last page; the last address there is when they reach the very end.
    pub fn end(&self, page: PageSize) -> VirtualAddress {
        VirtualAddress::new(self.address.get().saturating_add(self.bytes(page)))
    }

    /// The addresses that the pages span.
    pub fn range(&self, page: PageSize) -> Option<AddressRange> {
        AddressRange::new(self.address, self.end(page))
    }

    /// Whether one PMD maps it as a huge page, and not one of the hugetlb pool; `None` where that was not told.
    pub fn is_pmd_mapped(&self) -> Option<bool> {
        self.huge.map(|huge| huge && self.kind != Some(Kind::Hugetlb))
    }

    /// Whether the frame is mapped here and nowhere else; `None` without a frame, and where bit 56 cannot be trusted
    /// and there is no map count.
    #[inline]
    pub fn exclusive(&self) -> Option<bool> {
        match (self.state(), self.map_count, self.huge) {
            (State::Present, Some(_), _) if self.count_is_average => None,
            (State::Present, Some(count), _) => Some(count == 1),
            (State::Present, None, Some(false)) => Some(self.entry.is_exclusive()),
            // Bit 56 holds for hugetlb pages, which are counted whole, and for zero and merged pages, which are small.
            // Any other page may be part of a PMD mapping, where the bit is that of the first page (pagemap_pmd_range
            // in fs/proc/task_mmu.c: up to Linux 6.10, and again after 6.12).
            (State::Present, None, _) if matches!(self.kind, Some(Kind::Hugetlb | Kind::Zero | Kind::Ksm)) => {
                Some(self.entry.is_exclusive())
            }
            // It is nobody's: its map count is 0.
            (State::Present, None, _) if self.kind == Some(Kind::HugeZero) => Some(false),
            _ => None,
        }
    }

    /// Whether smaps counts it as private: a map count below 2. `exact` is whether map counts are of single pages,
    /// `None` if unknown. Where the kernel keeps no such counts (CONFIG_NO_PAGE_MAPCOUNT), smaps asks whether the folio
    /// has one owner, which is then bit 56.
    pub(super) fn is_private(&self, exact: Option<bool>) -> Option<bool> {
        match (self.map_count, self.count_is_average, exact) {
            (Some(count), false, _) => Some(count < 2),
            (Some(_), true, Some(false)) => Some(self.entry.is_exclusive()),
            (Some(_), true, _) => None,
            (None, ..) if self.kind.is_none() && !self.entry.is_exclusive() => None,
            (None, ..) => self.exclusive(),
        }
    }

    /// Whether the frame is mapped here once, and otherwise only by pmdb itself.
    pub fn is_shared_with_pmdb(&self) -> bool {
        let is_exact = !self.count_is_average && self.own_mappings > 0;
        is_exact && self.map_count == Some(self.own_mappings + 1)
    }

    /// Whether it is the shared zero page, small or huge: nobody's memory.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.state() == State::Present && matches!(self.kind, Some(Kind::Zero | Kind::HugeZero))
    }

    /// Whether `next` can follow it in one run: frames go on, or there are none.
    pub(super) fn frames_go_on(&self, next: &Page) -> bool {
        match (self.frame(), next.frame()) {
            (Some(first), Some(second)) => first.checked_add(self.pages) == Some(second),
            (None, None) => true,
            _ => false,
        }
    }

    /// The page `index` pages into it, alone. Callers keep `index` below `pages`.
    #[must_use]
    pub fn nth(&self, index: u64, page: PageSize) -> Page {
        let address = self.address.get().saturating_add(index << page.shift());
        let entry = match self.entry.frame() {
            Some(_) if self.kind != Some(Kind::Zero) => PageMapEntry::new(self.entry.raw().wrapping_add(index)),
            _ => self.entry,
        };
        let device_frame = self.device_frame.and_then(|first| first.checked_add(index));
        let slot = self.slot.map(|slot| slot.nth(index));
        Page { address: VirtualAddress::new(address), pages: 1, entry, device_frame, slot, ..*self }
    }

    /// Its pages one by one.
    pub fn each(&self, page: PageSize) -> impl Iterator<Item = Page> + use<> {
        let whole = *self;
        (0..whole.pages).map(move |index| whole.nth(index, page))
    }
}
