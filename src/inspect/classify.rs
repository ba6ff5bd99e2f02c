//! The one place that decides what a page is. From bytes to [`State`] and [`Kind`], without I/O.

use crate::kernel::swaps::SwapMeaning;
use crate::kernel::{Kind, PageFlags, PageMapEntry, State, SwapEntry};
use crate::target::Categories;

/// What stands behind the pages of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
        }
    }
}

/// What matters of the region that a page lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// What stands behind it.
    pub backing: Backing,
    /// Mapped shared; otherwise private, copied on write.
    pub shared: bool,
    /// VM_PFNMAP: the page map shows nothing of it.
    pub pfn_mapped: bool,
}

/// What was read about one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// Its page-map entry; `None` where the page map ends before it.
    pub entry: Option<PageMapEntry>,
    /// The frame's flags, if they were read.
    pub flags: Option<PageFlags>,
    /// The scan categories that hold, if they were asked for: `ZERO` and `HUGE` matter.
    pub categories: Option<Categories>,
}

/// What holds for the whole kernel. Rarely wanted, so whoever answers may find it out only then.
pub trait Rules {
    /// What a swap type is on this kernel.
    fn swap_meaning(&self, kind: u8) -> SwapMeaning;
    /// Whether any swap area is in use: without one, no entry is a swap slot.
    fn swap_in_use(&self) -> bool;
    /// Whether any page is merged, so that KPF_KSM can mean what it says.
    fn ksm_in_use(&self) -> bool;
}

/// Decides the state of a page, and its kind where the evidence tells.
pub fn classify(
    evidence: Evidence,
    place: Option<Place>,
    rules: &dyn Rules,
) -> (State, Option<Kind>) {
    let Some(entry) = evidence.entry else {
        let kind = place.map(|place| place.backing.kind());
        return (State::Outside, kind);
    };
    if entry.is_present() {
        return (State::Present, present_kind(entry, evidence, place, rules));
    }
    let state = match entry.swap() {
        Some(swap) => non_present_state(entry, swap, rules),
        None => match place {
            None => State::Unmapped,
            Some(Place {
                pfn_mapped: true, ..
            }) => State::PfnMapped,
            Some(_) => State::Untouched,
        },
    };
    (state, absent_kind(state, entry, place))
}

/// What an entry with bit 62 is: that bit alone does not make it swapped.
fn non_present_state(entry: PageMapEntry, swap: SwapEntry, rules: &dyn Rules) -> State {
    /// Bits of a PTE marker (include/linux/swapops.h); the guard bit came with Linux 6.13, two releases before bit 58.
    const MARKER_UFFD_WP: u64 = 1;
    const MARKER_POISONED: u64 = 2;
    const MARKER_GUARD: u64 = 4;

    if entry.is_guard() {
        return State::Guard;
    }
    // The first slot of an area holds its header, so no page is ever there: type and offset are hidden from this opener.
    if swap.kind == 0 && swap.offset == 0 {
        return match (rules.swap_in_use(), entry.is_uffd_wp()) {
            (true, _) => State::Swapped,
            (false, true) => State::UffdWp,
            (false, false) => State::Poisoned,
        };
    }
    match rules.swap_meaning(swap.kind) {
        SwapMeaning::Area => State::Swapped,
        SwapMeaning::Hwpoison => State::Hwpoison,
        SwapMeaning::Device => State::Device,
        // Migration is what a kernel without readable configuration has always, and by far the most often.
        SwapMeaning::Migration | SwapMeaning::Special => State::Migrating,
        SwapMeaning::ReadError => State::Poisoned,
        SwapMeaning::Marker if swap.offset & MARKER_GUARD != 0 => State::Guard,
        SwapMeaning::Marker if swap.offset & MARKER_POISONED != 0 => State::Poisoned,
        SwapMeaning::Marker if swap.offset & MARKER_UFFD_WP != 0 => State::UffdWp,
        SwapMeaning::Marker => State::Poisoned,
    }
}

fn present_kind(
    entry: PageMapEntry,
    evidence: Evidence,
    place: Option<Place>,
    rules: &dyn Rules,
) -> Option<Kind> {
    if let Some(Place {
        backing: Backing::Kernel,
        ..
    }) = place
    {
        return Some(Kind::Vdso);
    }
    // A slab's flags word carries false ANON and KSM bits; a slab is never mapped, so such a word is of a frame that moved on.
    let flags = evidence
        .flags
        .filter(|flags| !flags.contains(PageFlags::SLAB));
    let zero_told = evidence.categories.is_some() || flags.is_some();
    let zero = evidence
        .categories
        .is_some_and(|categories| categories.contains(Categories::ZERO))
        || flags.is_some_and(|flags| flags.contains(PageFlags::ZERO_PAGE));
    if zero {
        // Bit 61 is set for the huge zero page alone.
        return Some(match entry.is_file_or_shared() {
            true => Kind::HugeZero,
            false => Kind::Zero,
        });
    }
    if flags.is_some_and(|flags| flags.contains(PageFlags::HUGE)) {
        return Some(Kind::Hugetlb);
    }
    let place = place?;
    let private_kind = match place.backing {
        Backing::Hugetlb => return Some(Kind::Hugetlb),
        Backing::Kernel => return Some(Kind::Vdso),
        Backing::Anonymous => Kind::Anonymous,
        Backing::File | Backing::Shmem => Kind::PrivateCopy,
    };
    match (entry.is_file_or_shared(), place.shared) {
        // Nothing else in private memory without a file has bit 61.
        (true, _) if place.backing == Backing::Anonymous => Some(Kind::HugeZero),
        (true, _) => Some(place.backing.kind()),
        // A shared mapping of a raw frame, with no page of a file behind it.
        (false, true) => Some(Kind::DeviceMemory),
        (false, false) if is_ksm(entry, flags, rules) => Some(Kind::Ksm),
        // Mapped more than once and nothing said whether it is the zero page.
        (false, false)
            if place.backing == Backing::Anonymous && !zero_told && !entry.is_exclusive() =>
        {
            None
        }
        (false, false) => Some(private_kind),
    }
}

/// Whether the frame is a merged one. Debian's 6.12 sets KPF_KSM on every anonymous page; but a merged page is never
/// anon-exclusive (KPF_OWNER_2), so those that are have a false bit even where merging goes on.
fn is_ksm(entry: PageMapEntry, flags: Option<PageFlags>, rules: &dyn Rules) -> bool {
    flags.is_some_and(|flags| flags.contains(PageFlags::KSM) && !flags.contains(PageFlags::OWNER_2))
        && !entry.is_file_or_shared()
        && rules.ksm_in_use()
}

/// What a page that is not present would be.
fn absent_kind(state: State, entry: PageMapEntry, place: Option<Place>) -> Option<Kind> {
    let place = place?;
    let own = place.backing.kind();
    Some(match (state, place.backing) {
        (State::PfnMapped, Backing::Kernel) => Kind::Vdso,
        (State::PfnMapped, _) => Kind::DeviceMemory,
        // Only private memory goes to swap under its own entry: shared memory leaves an empty one.
        (
            State::Swapped | State::Migrating | State::Hwpoison | State::Device,
            Backing::File | Backing::Shmem,
        ) if !place.shared && !entry.is_file_or_shared() => Kind::PrivateCopy,
        _ => own,
    })
}
