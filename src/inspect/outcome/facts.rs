//! The facts that decide the outcome of an access.

use crate::inspect::classify::Backing;
use crate::kernel::{Kind, PageFlags, Permissions, State};
use crate::process::BackingContent;

/// The facts that decide the outcome of an access. `None` means unknown.
#[derive(Clone, Copy, Debug)]
pub struct AccessFacts {
    /// The state of the page.
    pub state: State,
    /// Whether the state is certain.
    pub is_state_certain: bool,
    /// The kind of the page.
    pub kind: Option<Kind>,
    /// The permissions of the region; `None` for an address in no region.
    pub permissions: Option<Permissions>,
    /// The backing of the region.
    pub backing: Option<Backing>,
    /// Bit 61 of the page-map entry: the page is of a file or of shared memory.
    pub is_of_object: bool,
    /// Bit 57 of the page-map entry: the page is write-protected by userfaultfd.
    pub uffd_wp: bool,
    /// Whether the page-table entry permits a write, if the region does and the page is not shared.
    pub is_writable: Option<bool>,
    /// Whether the page has changes that its file does not have yet.
    pub is_dirty: Option<bool>,
    /// Whether the region has a protection key other than 0. The rights of each thread for the key are in its register.
    pub has_key: bool,
    /// Whether the processor permits a load from memory that is only executable.
    pub reads_code: Option<bool>,
    /// Whether the page is one of those of `[vvar]` that the kernel has only on some machines.
    pub may_lack_page: bool,
    /// The first two numbers of the kernel release.
    pub kernel: (u32, u32),
    /// The flags of the frame.
    pub flags: Option<PageFlags>,
    /// The flags of the first frame of the folio, if those of the frame do not include them (before Linux 6.10).
    pub head_flags: Option<PageFlags>,
    /// Whether the page has only this mapping.
    pub exclusive: Option<bool>,
    /// Whether one PMD maps the page.
    pub huge: Option<bool>,
    /// The backing content of an untouched page.
    pub content: Option<BackingContent>,
    /// Whether userfaultfd write protection is asynchronous: the kernel records a write and permits it.
    pub write_tracked: Option<bool>,
    /// Whether a userfaultfd is registered for missing pages here, which nothing has filled.
    pub uffd_missing: Option<bool>,
    /// Whether a userfaultfd is registered for minor faults here, on pages that the file or shared memory has and that
    /// this mapping lacks.
    pub uffd_minor: Option<bool>,
    /// Whether the hugetlb pool of the region has a free page that is not reserved.
    pub pool_has_spare: Option<bool>,
    /// Whether the region may have reserved pages in the pool, because it was mapped without MAP_NORESERVE.
    pub pool_may_be_reserved: Option<bool>,
    /// Whether a page of the large folio is known to have several mappings: that is, also one of another process.
    pub is_folio_shared: bool,
    /// Whether an access to an unmapped page may map a transparent huge page.
    pub huge_may_come: Option<bool>,
    /// Whether a stack would grow to the address, if that is in no region.
    pub stack_grows: Option<bool>,
    /// The room that the file system of the object has for new pages.
    pub room: Room,
    /// The result of charging the memory cgroup of the process for a page.
    pub charge: Charge,
    /// Whether the cgroup of the process has reached its limit of pages of the hugetlb pool.
    pub pool_limit_is_reached: bool,
    /// Whether the driver of the region maps a page at a fault, and not only before.
    pub driver_fills: Option<bool>,
}

/// The room of a file system for a page that it does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Enough room, or no limit.
    Enough,
    /// An unknown amount.
    Unknown,
    /// A page may be refused: file systems on disks reserve blocks for root, and allocate late.
    Little,
    /// No room.
    None,
}

/// The result of charging a memory cgroup for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// The charge succeeds. At the limit, reclaim frees other pages first.
    Passes,
    /// At the limit, reclaim may find nothing; then the OOM killer ends a process.
    MayKill,
    /// At the limit, reclaim may find nothing; then the thread waits.
    MayWait,
}

/// The mark of an anonymous page that is exclusive to this mapping (PG_anon_exclusive).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AnonExclusive {
    Yes,
    No,
    Unknown,
    /// Only the mark of the first page of the folio is visible: true if it is set.
    OfFolio(bool),
}

impl AccessFacts {
    pub(super) fn is_in_swap_cache(&self) -> bool {
        self.flags.is_some_and(|flags| flags.contains(PageFlags::SWAPCACHE))
    }

    pub(super) fn is_large(&self) -> bool {
        self.flags.is_some_and(|flags| flags.intersects(PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL))
    }

    /// Returns the mark of the page. Each page has its own, unless one PMD maps the whole folio: then that of the first
    /// page applies to all.
    pub(super) fn anon_exclusive(&self) -> AnonExclusive {
        // PG_anon_exclusive came with Linux 5.19.
        let Some(flags) = self.flags.filter(|_| self.kernel >= (5, 19)) else {
            return AnonExclusive::Unknown;
        };
        let by_one_entry = if flags.contains(PageFlags::HUGE) { Some(true) } else { self.huge };
        let own =
            |flags: PageFlags| if flags.contains(PageFlags::OWNER_2) { AnonExclusive::Yes } else { AnonExclusive::No };
        if !flags.contains(PageFlags::COMPOUND_TAIL) {
            return own(flags);
        }
        // Since Linux 6.10, /proc/kpageflags shows the flags of the first page for all (stable_page_flags in
        // fs/proc/page.c).
        if self.kernel >= (6, 10) {
            return match by_one_entry {
                Some(true) => own(flags),
                _ => AnonExclusive::OfFolio(flags.contains(PageFlags::OWNER_2)),
            };
        }
        let head = self.head_flags.map_or(AnonExclusive::Unknown, own);
        match (by_one_entry, own(flags)) {
            (Some(true), _) => head,
            (Some(false), own) => own,
            (None, AnonExclusive::Yes) => AnonExclusive::Yes,
            // The mark of the first page may apply to this one.
            (None, _) if head == AnonExclusive::No => AnonExclusive::No,
            (None, _) => AnonExclusive::Unknown,
        }
    }
}
