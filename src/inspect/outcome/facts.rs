//! The facts that decide what an access does.

use crate::inspect::classify::Backing;
use crate::kernel::{Kind, PageFlags, Permissions, State};
use crate::process::BackingContent;

/// The facts that decide. `None` means unknown.
#[derive(Clone, Copy, Debug)]
pub struct AccessFacts {
    /// State of the page.
    pub state: State,
    /// Whether the state is certain.
    pub is_state_certain: bool,
    /// Kind of the page.
    pub kind: Option<Kind>,
    /// Of its region; `None` when it is in none.
    pub permissions: Option<Permissions>,
    /// The backing of its region.
    pub backing: Option<Backing>,
    /// Bit 61 of its entry: a page of a file or of shared memory.
    pub is_of_object: bool,
    /// Bit 57 of its entry.
    pub uffd_wp: bool,
    /// Whether its page-table entry lets a write pass that the region permits, as long as the page is not shared.
    pub is_writable: Option<bool>,
    /// Whether the page has changes that its file does not have yet.
    pub is_dirty: Option<bool>,
    /// Whether its region has a protection key other than 0: each thread has its own rights for it, in a register.
    pub has_key: bool,
    /// Whether the processor lets reads pass in memory that only permits execution.
    pub reads_code: Option<bool>,
    /// Whether it is one of the pages of `[vvar]` that the kernel has on some machines only.
    pub may_lack_page: bool,
    /// The first two numbers of the kernel's release.
    pub kernel: (u32, u32),
    /// Flags of the frame.
    pub flags: Option<PageFlags>,
    /// Flags of the first frame of its folio, if its own do not include them (before Linux 6.10).
    pub head_flags: Option<PageFlags>,
    /// Whether it is mapped here alone.
    pub exclusive: Option<bool>,
    /// Mapped by one entry for a huge page.
    pub huge: Option<bool>,
    /// The backing content of an untouched page.
    pub content: Option<BackingContent>,
    /// Whether userfaultfd write protection is asynchronous here: it records writes, and lets them pass.
    pub write_tracked: Option<bool>,
    /// Whether a userfaultfd is registered for missing pages here: those that nobody has filled.
    pub uffd_missing: Option<bool>,
    /// Whether a userfaultfd is registered for minor faults here: on pages that the file or shared memory has, and this
    /// mapping has not.
    pub uffd_minor: Option<bool>,
    /// Whether the hugetlb pool of its region has a free page that is not reserved.
    pub pool_has_spare: Option<bool>,
    /// Whether the region may have reserved pages in the pool: it was mapped without MAP_NORESERVE.
    pub pool_may_be_reserved: Option<bool>,
    /// Whether a page of its large folio is known to be mapped more than once: by another process, that is.
    pub is_folio_shared: bool,
    /// Whether an access may map a transparent huge page where nothing is mapped.
    pub huge_may_come: Option<bool>,
    /// Whether a stack would grow to the address, which is in no region.
    pub stack_grows: Option<bool>,
    /// How much room the file system of its object has for new pages.
    pub room: Room,
    /// What happens if the memory cgroup of the process is to be charged a page.
    pub charge: Charge,
    /// Whether the limit of its cgroup on pages of the pool leaves none.
    pub pool_limit_is_reached: bool,
    /// Whether the driver of its region brings a page at a fault, and not only inserts pages beforehand.
    pub driver_fills: Option<bool>,
}

/// The room that a file system has for a page that it has not yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// There is enough, or no limit.
    Enough,
    /// Unknown how much there is.
    Unknown,
    /// So little is left that a page may be refused: file systems on disks keep blocks for root, and allocate late.
    Little,
    /// There is none.
    None,
}

/// What happens if a memory cgroup is to be charged a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// It is charged; at the limit, reclaim frees others first.
    Passes,
    /// At the limit, reclaim may find nothing: then the OOM killer ends a process.
    MayKill,
    /// The same, but the thread waits.
    MayWait,
}

/// Whether the kernel holds an anonymous page to be this mapping's own (PG_anon_exclusive).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AnonExclusive {
    Yes,
    No,
    Unknown,
    /// Only the mark of the first page of its folio is visible.
    OfFolio(bool),
}

impl AccessFacts {
    pub(super) fn is_in_swap_cache(&self) -> bool {
        self.flags.is_some_and(|flags| flags.contains(PageFlags::SWAPCACHE))
    }

    pub(super) fn is_large(&self) -> bool {
        self.flags.is_some_and(|flags| flags.intersects(PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL))
    }

    /// Each page has its own mark, unless one entry maps the whole folio: then the first page's mark holds for all.
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
        // Since Linux 6.10 /proc/kpageflags shows the flags of the first page for all (stable_page_flags in
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
            // The head's mark may hold for it.
            (None, _) if head == AnonExclusive::No => AnonExclusive::No,
            (None, _) => AnonExclusive::Unknown,
        }
    }
}
