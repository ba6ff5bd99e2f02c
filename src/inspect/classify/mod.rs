//! The one place that decides what a page is. From bytes to [`State`] and [`Kind`], without I/O: from what was read of
//! a page and of its region, and from what the kernel is known to do.

use super::states::{HiddenEntry, StateSet};
use crate::kernel::swaps::{MARKER_GUARD, MARKER_POISONED, MARKER_UFFD_WP, SwapMeaning};
use crate::kernel::{Kind, PageFlags, PageMapEntry, State, SwapEntry};
use crate::process::{BackingContent, Categories};

/// Decides which state a page is in, or may be in, and its kind where the evidence tells.
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

/// The possible states of an entry that is neither present (bit 63) nor a swap entry (bit 62).
fn empty_states(entry: PageMapEntry, categories: Option<Categories>, place: Option<RegionFacts>) -> StateSet {
    // Entries of the pool that are not present lack bit 62 (pagemap_hugetlb_range in fs/proc/task_mmu.c).
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

/// The possible states of an entry with bit 62, which alone does not mean that the page is in swap.
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

/// The state of a page of shared memory whose page cache has a slot in its place.
fn shared_states(slot: SwapEntry, rules: &dyn KernelBehaviour) -> StateSet {
    let state = match rules.swap_meaning(slot.kind) {
        SwapMeaning::Area => State::Swapped,
        // The slot could not be read (shmem_set_folio_swapin_error in mm/shmem.c).
        SwapMeaning::Marker | SwapMeaning::ReadError => State::Poisoned,
        _ => State::Untouched,
    };
    state.into()
}

/// The swap types that are areas in use. They distinguish a page in swap from markers and the like, which have the same
/// bit.
#[derive(Clone, Copy, Default)]
pub struct SwapTypes(u32);

impl SwapTypes {
    /// The swap types of this kernel.
    pub fn of(rules: &dyn KernelBehaviour) -> SwapTypes {
        let is_area = |kind: &u8| rules.swap_in_use() && rules.swap_meaning(*kind) == SwapMeaning::Area;
        SwapTypes((0..32).filter(is_area).fold(0, |areas, kind| areas | 1 << kind))
    }

    /// Whether the page of an entry is in one of them. If the type is hidden, that is the likeliest.
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
    // A slab's flags word carries false ANON and KSM bits; a slab is never mapped, so such a word belongs to a frame
    // that was reused since.
    let flags = evidence.flags.filter(|flags| !flags.contains(PageFlags::SLAB));
    let zero_told = evidence.categories.is_some() || flags.is_some();
    let zero = evidence.categories.is_some_and(|categories| categories.contains(Categories::ZERO))
        || flags.is_some_and(|flags| flags.contains(PageFlags::ZERO_PAGE));
    if zero {
        // Bit 61 is set for the huge zero page alone, and before Linux 6.11 not for that one either.
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
        // All pages of the pool have KPF_HUGE: this one is not, whatever its region is called.
        Backing::Hugetlb if flags.is_some() => return None,
        Backing::Hugetlb => return Some(Kind::Hugetlb),
        Backing::Kernel => return Some(Kind::Vdso),
        Backing::Anonymous => Kind::Anonymous,
        Backing::File | Backing::Shmem | Backing::Driver | Backing::Secret => Kind::PrivateCopy,
    };
    match (is_of_object(entry, flags, evidence, place, rules)?, place.is_shared) {
        // Nothing else in private memory without a file has bit 61.
        (true, _) if place.backing == Backing::Anonymous => Some(Kind::HugeZero),
        (true, _) => Some(place.backing.kind()),
        // A shared mapping of a raw frame, with no page of a file behind it.
        (false, true) => Some(Kind::DeviceMemory),
        (false, false) => match is_ksm(flags, place, rules)? {
            true => Some(Kind::Ksm),
            // Mapped more than once: it may be the zero page.
            false if place.backing == Backing::Anonymous && !zero_told && !entry.is_exclusive() => None,
            false => Some(private_kind),
        },
    }
}

/// Whether it is the object's own page (bit 61), and not a private copy or a raw frame. Before Linux 6.11 the bit is
/// missing where a PMD maps the page: `None` if it is unknown whether one does.
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
    // Here a PMD maps only pages of the object, and only these lack the bit.
    let is_large_file = |flags: PageFlags| flags.is_in_large_folio() && !flags.contains(PageFlags::ANON);
    evidence.is_huge().or(flags.map(is_large_file))
}

/// Whether a private page is a merged one; `None` if unknown. Linux 6.12 sets KPF_KSM on every anonymous page. A merged
/// page is never anon-exclusive (KPF_OWNER_2), so the flag is false on a page that is.
fn is_ksm(flags: Option<PageFlags>, place: RegionFacts, rules: &dyn KernelBehaviour) -> Option<bool> {
    match flags {
        Some(flags) if !flags.contains(PageFlags::KSM) => Some(false),
        Some(flags) if flags.contains(PageFlags::OWNER_2) => Some(false),
        Some(_) if rules.ksm_is_marked() => Some(true),
        _ => place.merged,
    }
}

/// The kind of a page that is not present.
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
            // Shared memory keeps its pages in the page cache or in swap.
            (Some(BackingContent::Contents { cached: false }), _) => Kind::MaybeSwapped,
            (Some(BackingContent::Hole) | None, _) => own,
        },
        (State::PfnMapped, Backing::Kernel) => Kind::Vdso,
        (State::PfnMapped, _) if place.may_be_copied => return None,
        (State::PfnMapped, _) => Kind::DeviceMemory,
        // Only private memory has swap entries: shared memory in swap leaves an empty entry.
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
    /// Nothing but swap.
    Anonymous,
    /// A file of a filesystem.
    File,
    /// Shared memory: tmpfs, memfd, System V, shared anonymous.
    Shmem,
    /// The hugetlb pool.
    Hugetlb,
    /// The kernel's own pages: `[vdso]`, `[vvar]`, `[vsyscall]`.
    Kernel,
    /// An object of a driver or of the kernel, which has inserted pages of its own, or does so at each fault: a ring of
    /// a socket or of io_uring, a map of BPF, a device, a buffer that drivers share.
    Driver,
    /// Secret memory (memfd_secret).
    Secret,
}

impl Backing {
    /// The kind of a page that is still this backing's own.
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

/// The facts about a page's region that classification needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionFacts {
    /// Its backing.
    pub backing: Backing,
    /// Mapped shared; otherwise private, copied on write.
    pub is_shared: bool,
    /// VM_PFNMAP: the page map shows nothing of it.
    pub is_pfn_mapped: bool,
    /// VM_PFNMAP, and some of its pages may be copies of the device's, made by writes to a private mapping: ordinary
    /// memory.
    pub may_be_copied: bool,
    /// The region is large enough for a PMD mapping.
    pub may_be_huge: bool,
    /// Whether its private pages are merged ones, for pages whose flags do not tell; `None` if unknown.
    pub merged: Option<bool>,
}

impl RegionFacts {
    /// Those of a region of plain memory or of a file, as far as `maps` tells.
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

/// What was read about one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageObservation {
    /// Its page-map entry; `None` where the page map ends before it.
    pub entry: Option<PageMapEntry>,
    /// The frame's flags, if they were read.
    pub flags: Option<PageFlags>,
    /// The scan categories that hold, if they were asked for: `ZERO`, `HUGE`, and in regions of the pool `SWAPPED`.
    pub categories: Option<Categories>,
    /// Its backing content, if that was read: it matters where nothing is mapped.
    pub content: Option<BackingContent>,
    /// The slot that the page cache of its shared memory has in its place, if that was read.
    pub slot: Option<SwapEntry>,
}

impl PageObservation {
    /// An entry of which nothing else was read.
    #[inline]
    pub const fn of(entry: PageMapEntry) -> Self {
        PageObservation { entry: Some(entry), flags: None, categories: None, content: None, slot: None }
    }

    /// Whether one PMD maps it, or it comes from the hugetlb pool; `None` if that was not asked.
    pub(super) fn is_huge(&self) -> Option<bool> {
        let categories = self.categories?;
        Some(categories.contains(Categories::HUGE))
    }
}

/// Facts about the whole kernel. They are rarely needed, so an implementation may find them out on demand.
pub trait KernelBehaviour {
    /// What a swap type is on this kernel.
    fn swap_meaning(&self, kind: u8) -> SwapMeaning;
    /// Whether any swap area is in use: without one, no entry is a swap slot.
    fn swap_in_use(&self) -> bool;
    /// Whether KPF_KSM is set on merged pages alone: some kernels set it on every anonymous page.
    fn ksm_is_marked(&self) -> bool;
    /// Whether the entries of all guard pages have bit 58, which came two releases after the first guard pages, with
    /// Linux 6.15.
    fn guards_are_marked(&self) -> bool;
    /// Whether bit 61 is set for pages of files and of shared memory, and for the huge zero page, where one PMD
    /// maps them: since Linux 6.11 (and in some stable releases before it).
    fn huge_files_are_marked(&self) -> bool;
}
