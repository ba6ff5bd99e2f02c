//! The only place that decides the [`State`] and [`Kind`] of a page. It does no I/O: it uses what was read of the page
//! and its region, and the known behaviour of the kernel.

use super::states::{HiddenEntry, StateSet};
use crate::kernel::swaps::{MARKER_GUARD, MARKER_POISONED, MARKER_UFFD_WP, SwapMeaning};
use crate::kernel::{Kind, PageFlags, PageMapEntry, State, SwapEntry};
use crate::process::{BackingContent, Categories};

/// Returns the state of a page, or its possible states, and its kind if the evidence decides it.
pub fn classify(
    evidence: PageObservation,
    place: Option<RegionFacts>,
    rules: &dyn KernelBehaviour,
) -> (StateSet, Option<Kind>) {
    let Some(entry) = evidence.entry else {
        let kind = place.map(|place| place.backing.kind());
        return (State::Outside.into(), kind);
    };
    if entry.is_present() {
        let kind = present_kind(entry, evidence, place, rules);
        return (State::Present.into(), kind);
    }
    let states = match entry.swap() {
        Some(swap) => non_present_states(entry, swap, rules),
        None => match evidence.slot {
            Some(slot) if !entry.is_uffd_wp() => shared_states(slot, rules),
            _ => empty_states(entry, evidence.categories, place),
        },
    };
    let kind = |state| absent_kind(state, entry, place, evidence.content);
    let likeliest = kind(states.likeliest());
    // The kind is known if it is the same in each possible state.
    let is_known = states.is_certain() || states.iter().all(|state| kind(state) == likeliest);
    (states, likeliest.filter(|_| is_known))
}

/// Returns the possible states of an entry that is neither present (bit 63) nor a swap entry (bit 62).
fn empty_states(entry: PageMapEntry, categories: Option<Categories>, place: Option<RegionFacts>) -> StateSet {
    // An entry of the hugetlb pool that is not present lacks bit 62 (pagemap_hugetlb_range in fs/proc/task_mmu.c).
    if entry.is_uffd_wp() {
        return State::UffdWp.into();
    }
    let Some(place) = place else {
        return State::Unmapped.into();
    };
    let is_anything = categories.map(|categories| categories.contains(Categories::SWAPPED));
    if place.backing == Backing::Hugetlb
        && let Some(states) = StateSet::of_pool(is_anything)
    {
        return states;
    }
    if place.is_pfn_mapped { State::PfnMapped.into() } else { State::Untouched.into() }
}

/// Returns the possible states of an entry with bit 62, which markers and migration entries have too.
fn non_present_states(entry: PageMapEntry, swap: SwapEntry, rules: &dyn KernelBehaviour) -> StateSet {
    if entry.is_guard() {
        return State::Guard.into();
    }
    if entry.is_swap_hidden() {
        return StateSet::hidden(HiddenEntry {
            is_write_protected: entry.is_uffd_wp(),
            swap_in_use: rules.swap_in_use(),
            guards_are_marked: rules.guards_are_marked(),
        });
    }
    let state = match rules.swap_meaning(swap.kind) {
        SwapMeaning::Area => State::Swapped,
        SwapMeaning::Hwpoison => State::Hwpoison,
        SwapMeaning::Device => State::Device,
        SwapMeaning::Migration => State::Migrating,
        SwapMeaning::Special => return StateSet::special(),
        SwapMeaning::ReadError => State::Poisoned,
        SwapMeaning::Marker if swap.offset & MARKER_GUARD != 0 => State::Guard,
        SwapMeaning::Marker if swap.offset & MARKER_POISONED != 0 => State::Poisoned,
        SwapMeaning::Marker if swap.offset & MARKER_UFFD_WP != 0 => State::UffdWp,
        SwapMeaning::Marker => State::Poisoned,
    };
    state.into()
}

/// Returns the state of a page of shared memory whose page cache has a swap entry at its index.
fn shared_states(slot: SwapEntry, rules: &dyn KernelBehaviour) -> StateSet {
    let state = match rules.swap_meaning(slot.kind) {
        SwapMeaning::Area => State::Swapped,
        // The swap slot could not be read (shmem_set_folio_swapin_error in mm/shmem.c).
        SwapMeaning::Marker | SwapMeaning::ReadError => State::Poisoned,
        _ => State::Untouched,
    };
    state.into()
}

/// The swap types that are areas in use, as a bit mask. They distinguish a page in swap from markers and the like,
/// whose entries also have bit 62.
#[derive(Clone, Copy, Default)]
pub struct SwapTypes(u32);

impl SwapTypes {
    /// Returns the swap types of areas on this kernel.
    pub fn of(rules: &dyn KernelBehaviour) -> SwapTypes {
        let is_area = |kind: &u8| rules.swap_in_use() && rules.swap_meaning(*kind) == SwapMeaning::Area;
        SwapTypes((0..32).filter(is_area).fold(0, |areas, kind| areas | 1 << kind))
    }

    /// Returns whether the entry is of one of these swap types. An entry with a hidden type counts as type 0, the
    /// likeliest.
    pub fn holds(self, entry: PageMapEntry) -> bool {
        let in_area = |swap: SwapEntry| self.0 >> swap.kind & 1 == 1;
        !entry.is_guard() && entry.swap().is_some_and(in_area)
    }
}

fn present_kind(
    entry: PageMapEntry,
    evidence: PageObservation,
    place: Option<RegionFacts>,
    rules: &dyn KernelBehaviour,
) -> Option<Kind> {
    if let Some(RegionFacts { backing: Backing::Kernel, .. }) = place {
        return Some(Kind::Vdso);
    }
    // The flags word of a slab has false ANON and KSM bits. A slab is never mapped: such a word is of a frame that was
    // reused after the read of the entry.
    let flags = evidence.flags.filter(|flags| !flags.contains(PageFlags::SLAB));
    let zero_told = evidence.categories.is_some() || flags.is_some();
    let zero = evidence.categories.is_some_and(|categories| categories.contains(Categories::ZERO))
        || flags.is_some_and(|flags| flags.contains(PageFlags::ZERO_PAGE));
    if zero {
        // Bit 61 is set only for the huge zero page, and before Linux 6.11 not even for that.
        let is_huge = entry.is_file_or_shared()
            || flags.is_some_and(|flags| flags.contains(PageFlags::THP))
            || evidence.is_huge() == Some(true);
        return Some(if is_huge { Kind::HugeZero } else { Kind::Zero });
    }
    if flags.is_some_and(|flags| flags.contains(PageFlags::HUGE)) {
        return Some(Kind::Hugetlb);
    }
    let place = place?;
    let private_kind = match place.backing {
        // All pages of the hugetlb pool have KPF_HUGE. This page lacks it, so that it is none, whatever the name of its
        // region.
        Backing::Hugetlb if flags.is_some() => return None,
        Backing::Hugetlb => return Some(Kind::Hugetlb),
        Backing::Kernel => return Some(Kind::Vdso),
        Backing::Anonymous => Kind::Anonymous,
        Backing::File | Backing::Shmem | Backing::Driver | Backing::Secret => Kind::PrivateCopy,
    };
    match (is_of_object(entry, flags, evidence, place, rules)?, place.is_shared) {
        // In private memory without a file, only the huge zero page has bit 61.
        (true, _) if place.backing == Backing::Anonymous => Some(Kind::HugeZero),
        (true, _) => Some(place.backing.kind()),
        // A raw frame in a shared mapping, without a page of a file.
        (false, true) => Some(Kind::DeviceMemory),
        (false, false) => match is_ksm(flags, place, rules)? {
            true => Some(Kind::Ksm),
            // A page that is mapped several times may be the zero page.
            false if place.backing == Backing::Anonymous && !zero_told && !entry.is_exclusive() => None,
            false => Some(private_kind),
        },
    }
}

/// Returns whether the page is of the mapped object (bit 61), and not a private copy or a raw frame. Before Linux 6.11,
/// an entry of a page that a PMD maps lacks the bit: it returns `None` if it is unknown whether one does.
fn is_of_object(
    entry: PageMapEntry,
    flags: Option<PageFlags>,
    evidence: PageObservation,
    place: RegionFacts,
    rules: &dyn KernelBehaviour,
) -> Option<bool> {
    let has_object = matches!(place.backing, Backing::File | Backing::Shmem);
    let may_be_missing = !entry.is_file_or_shared() && has_object && place.may_be_huge;
    if !may_be_missing || rules.huge_files_are_marked() {
        return Some(entry.is_file_or_shared());
    }
    // A PMD maps only pages of the object here, and only their entries lack the bit.
    let is_large_file = |flags: PageFlags| flags.is_in_large_folio() && !flags.contains(PageFlags::ANON);
    evidence.is_huge().or(flags.map(is_large_file))
}

/// Returns whether a private page is a merged one; `None` if that is unknown. Linux 6.12 sets KPF_KSM on all anonymous
/// pages. A page with KPF_OWNER_2 (PG_anon_exclusive) is never merged, whatever its KPF_KSM.
fn is_ksm(flags: Option<PageFlags>, place: RegionFacts, rules: &dyn KernelBehaviour) -> Option<bool> {
    match flags {
        Some(flags) if !flags.contains(PageFlags::KSM) => Some(false),
        Some(flags) if flags.contains(PageFlags::OWNER_2) => Some(false),
        Some(_) if rules.ksm_is_marked() => Some(true),
        _ => place.merged,
    }
}

/// Returns the kind of a page that is not present.
pub(super) fn absent_kind(
    state: State,
    entry: PageMapEntry,
    place: Option<RegionFacts>,
    content: Option<BackingContent>,
) -> Option<Kind> {
    let place = place?;
    let own = place.backing.kind();
    Some(match (state, place.backing) {
        (State::Untouched, Backing::Secret) if content == Some(BackingContent::PastEnd) => Kind::PastEnd,
        (State::Untouched, Backing::File | Backing::Shmem) => match (content, place.backing) {
            (Some(BackingContent::PastEnd), _) => Kind::PastEnd,
            (Some(BackingContent::Contents { cached: true }), _) => Kind::Cached,
            (Some(BackingContent::Contents { cached: false }), Backing::File) => Kind::NotCached,
            // A page of shared memory that is not in the page cache is in swap.
            (Some(BackingContent::Contents { cached: false }), _) => Kind::MaybeSwapped,
            (Some(BackingContent::Hole) | None, _) => own,
        },
        (State::PfnMapped, Backing::Kernel) => Kind::Vdso,
        (State::PfnMapped, _) if place.may_be_copied => return None,
        (State::PfnMapped, _) => Kind::DeviceMemory,
        // Only private memory has swap entries: an entry of shared memory in swap is empty.
        (
            State::Swapped | State::Migrating | State::Hwpoison | State::Device,
            Backing::File | Backing::Shmem | Backing::Driver,
        ) if !place.is_shared && !entry.is_file_or_shared() && entry.swap().is_some() => Kind::PrivateCopy,
        _ => own,
    })
}

#[cfg(test)]
mod tests;

/// The backing of the pages of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Backing {
    /// Only swap.
    Anonymous,
    /// A file of a file system.
    File,
    /// Shared memory: tmpfs, memfd, System V, shared anonymous memory.
    Shmem,
    /// The hugetlb pool.
    Hugetlb,
    /// Pages of the kernel: `[vdso]`, `[vvar]`, `[vsyscall]`.
    Kernel,
    /// An object of a driver or of the kernel that inserts its pages, at the mmap or at each fault: a ring of a socket
    /// or of io_uring, a BPF map, a device, a buffer that drivers share.
    Driver,
    /// Secret memory (memfd_secret).
    Secret,
}

impl Backing {
    /// Returns the kind of a page of this backing that is no private copy.
    pub const fn kind(self) -> Kind {
        match self {
            Backing::Anonymous => Kind::Anonymous,
            Backing::File => Kind::File,
            Backing::Shmem => Kind::Shmem,
            Backing::Hugetlb => Kind::Hugetlb,
            Backing::Kernel => Kind::Vdso,
            Backing::Driver => Kind::DriverMemory,
            Backing::Secret => Kind::Secret,
        }
    }
}

/// The facts about the region of a page on which its state and kind depend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionFacts {
    /// The backing of the region.
    pub backing: Backing,
    /// Whether the region is mapped shared; otherwise private, copied on write.
    pub is_shared: bool,
    /// Whether the region has VM_PFNMAP: the page map shows no entries for it.
    pub is_pfn_mapped: bool,
    /// Whether the region has VM_PFNMAP, and some of its pages may be copies from writes to a private mapping, which
    /// are ordinary memory.
    pub may_be_copied: bool,
    /// Whether the region is large enough for a PMD mapping.
    pub may_be_huge: bool,
    /// Whether private pages are merged ones, for pages whose flags do not decide it; `None` if that is unknown.
    pub merged: Option<bool>,
}

impl RegionFacts {
    /// Returns the facts of a region of plain memory or of a file, as `maps` shows them.
    pub const fn plain(backing: Backing, shared: bool) -> Self {
        RegionFacts {
            backing,
            is_shared: shared,
            is_pfn_mapped: false,
            may_be_copied: false,
            may_be_huge: false,
            merged: Some(false),
        }
    }
}

/// What was read of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageObservation {
    /// The page-map entry; `None` if the page map ends before the page.
    pub entry: Option<PageMapEntry>,
    /// The flags of the frame, if they were read.
    pub flags: Option<PageFlags>,
    /// The categories that PAGEMAP_SCAN reported, if it was asked: `ZERO`, `HUGE`, and in regions of the hugetlb pool
    /// `SWAPPED`.
    pub categories: Option<Categories>,
    /// The backing content, if it was read, for a page that is not mapped.
    pub content: Option<BackingContent>,
    /// The swap entry at the index of the page in the page cache of its shared memory, if it was read.
    pub slot: Option<SwapEntry>,
}

impl PageObservation {
    /// Returns an observation of an entry alone.
    #[inline]
    pub const fn of(entry: PageMapEntry) -> Self {
        PageObservation { entry: Some(entry), flags: None, categories: None, content: None, slot: None }
    }

    /// Returns whether one PMD maps the page, or it is from the hugetlb pool; `None` if PAGEMAP_SCAN was not asked.
    pub(super) fn is_huge(&self) -> Option<bool> {
        let categories = self.categories?;
        Some(categories.contains(Categories::HUGE))
    }
}

/// The behaviour of the kernel. It is rarely needed, so that an implementation may determine it on demand.
pub trait KernelBehaviour {
    /// Returns the meaning of a swap type on this kernel.
    fn swap_meaning(&self, kind: u8) -> SwapMeaning;
    /// Returns whether any swap area is in use. Without one, no entry is a swap slot.
    fn swap_in_use(&self) -> bool;
    /// Returns whether only merged pages have KPF_KSM: some kernels set it on every anonymous page.
    fn ksm_is_marked(&self) -> bool;
    /// Returns whether the entries of all guard pages have bit 58. Linux 6.15 added it, two releases after guard pages.
    fn guards_are_marked(&self) -> bool;
    /// Returns whether bit 61 is set for pages of files and of shared memory, and for the huge zero page, if one PMD
    /// maps them: since Linux 6.11, and in some stable releases before it.
    fn huge_files_are_marked(&self) -> bool;
}
