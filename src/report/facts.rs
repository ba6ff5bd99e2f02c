//! Records that several others contain: the words of a frame, its place and cgroup, its folio (pages that the kernel
//! manages as one), a page at one moment, the sharing of two processes, the net effect of changes on memory and swap,
//! and the counts of a search for who maps a frame.

use super::record::record;
use super::{Fact, FlagNames, Reason, Why};
use crate::kernel::{FrameNumber, Name, PageFlags, State};
use std::fmt;
use std::ops::AddAssign;

record! {
    /// The folio that a frame belongs to.
    #[derive(Copy, Eq)]
    pub struct FolioReport {
        /// Order: the folio has 2^order pages.
        order: u8,
        /// The same in bytes.
        bytes: u64,
        /// Its first frame.
        head: FrameNumber,
        /// The index of this page in it, from 0.
        index: u64,
        /// The mapping of the folio around this page, if the frame was reached by an address.
        [flat] mapped: Option<FolioMapping>,
    }

    /// The mapping of a folio around one of its pages.
    #[derive(Copy, Eq)]
    pub struct FolioMapping {
        /// Pages of the folio that are mapped in this region at their places in the folio.
        mapped_pages: u64,
        /// Whether the folio begins at an address that is a multiple of its size: only then can one entry map all of
        /// it.
        aligned: bool,
    }

    /// Large folios of one size that are mapped in one way.
    #[derive(Copy, Eq)]
    pub struct LargeFolios {
        /// Each has 2^order pages.
        order: u8,
        /// The same in bytes.
        size: u64,
        /// The mapping: `pmd`, `pte` or `hugetlb`; `null` if this kernel does not show it.
        mapped: HowMapped,
        /// Mapped bytes of all of them.
        bytes: u64,
        /// Of these, bytes of folios that are only partly mapped, or not in one piece.
        partly: u64,
        /// Of these, bytes of folios whose virtual address is no multiple of their size: no single entry can map them.
        unaligned: u64,
    }
}

/// How a large folio is mapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum HowMapped {
    /// By one PMD.
    Pmd,
    /// By one page-table entry for each page.
    Pte,
    /// As a page of the hugetlb pool, always whole.
    Hugetlb,
    /// Not shown by this kernel.
    Unknown,
}

impl HowMapped {
    /// Returns the word of the mapping, if it is known.
    pub fn word(self) -> Option<&'static str> {
        match self {
            HowMapped::Pmd => Some("pmd"),
            HowMapped::Pte => Some("pte"),
            HowMapped::Hugetlb => Some("hugetlb"),
            HowMapped::Unknown => None,
        }
    }
}

record! {
    /// The words of a frame in `/proc/kpageflags` and `/proc/kpagecount`.
    #[derive(Eq)]
    pub struct FrameWords {
        /// Its flags; of several frames, those that all of them have.
        flags: Fact<PageFlags>,
        /// Number of its mappings: `mapcount` in filters.
        map_count: Fact<u64>,
        /// Whether that may be an average over the large folio that it belongs to.
        [optional] map_count_average: bool,
        /// Number of these mappings that are pmdb's own: it maps libraries too, and its executable.
        [optional] own_mappings: Option<u64>,
    }
}

impl FrameWords {
    /// Returns the map count if it is exact, and no average over a large folio.
    pub fn exact_map_count(&self) -> Option<u64> {
        let count = self.map_count.as_ref().ok();
        count.copied().filter(|_| !self.map_count_average)
    }

    /// Returns whether all mappings but one are known to be of pmdb itself.
    pub fn is_once_besides_pmdb(&self) -> bool {
        let own = self.own_mappings.filter(|&own| own > 0);
        own.is_some_and(|own| self.exact_map_count() == Some(own + 1))
    }

    /// Returns the words of a frame of which none can be read.
    pub fn unknown(reason: &Reason) -> Self {
        FrameWords {
            flags: Err(reason.clone()),
            map_count: Err(reason.clone()),
            map_count_average: false,
            own_mappings: None,
        }
    }
}

record! {
    /// The place of a frame, and the cgroup that is charged for it.
    #[derive(Eq)]
    pub struct FramePlace {
        /// Memory zone.
        zone: Fact<String>,
        /// NUMA node.
        node: Fact<u32>,
        /// The resources of `/proc/iomem` that hold it, the outermost first.
        iomem: Fact<Vec<Name>>,
        /// Inode of the memory cgroup that the frame is charged to; 0 for none.
        cgroup: Fact<u64>,
        /// The path of that cgroup.
        cgroup_path: Fact<CgroupPath>,
    }
}

impl FramePlace {
    /// Returns the place with the cgroup unknown: it may be of another time than the page-map entry.
    pub(crate) fn changed(self) -> Self {
        let (cgroup, path) = (self.cgroup.and(Err(Reason::Changed)), self.cgroup_path.and(Err(Reason::Changed)));
        FramePlace { cgroup, cgroup_path: path, ..self }
    }

    /// Returns the place of a frame of which nothing is known.
    pub fn unknown(reason: &Reason) -> Self {
        FramePlace {
            zone: Err(reason.clone()),
            node: Err(reason.clone()),
            iomem: Err(reason.clone()),
            cgroup: Err(reason.clone()),
            cgroup_path: Err(reason.clone()),
        }
    }
}

/// The directory of a memory cgroup below the mount of its hierarchy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CgroupPath {
    /// The path from the root of the hierarchy.
    Path(Name),
    /// The inode number, which no directory has: the cgroup was removed while pages were charged to it, or is outside
    /// of the mounted hierarchy.
    Gone(u64),
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CgroupPath::Path(path) => path.fmt(f),
            CgroupPath::Gone(inode) => write!(f, "@{inode}"),
        }
    }
}

impl NetEffect {
    /// Returns the share of `pages` among `all` pages that changed in the same way; their total is `self`.
    #[must_use]
    pub fn part(self, pages: u64, all: u64) -> NetEffect {
        let part = |bytes: u64| {
            let bytes = u128::from(bytes) * u128::from(pages) / u128::from(all.max(1));
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let NetEffect { came, went, swap_came, swap_went } = self;
        if pages == all {
            return self;
        }
        NetEffect { came: part(came), went: part(went), swap_came: part(swap_came), swap_went: part(swap_went) }
    }
}

impl AddAssign for SharedCounts {
    fn add_assign(&mut self, other: SharedCounts) {
        self.shared += other.shared;
        self.shared_elsewhere += other.shared_elsewhere;
        self.copied += other.copied;
        self.only_here += other.only_here;
        self.only_there += other.only_there;
        self.about_to_copy += other.about_to_copy;
    }
}

record! {
    /// Sharing of pages between the attached process and another one, in one region or in all. A page in swap counts
    /// for the processes that have it.
    #[derive(Copy, Default, Eq)]
    pub struct SharedCounts {
        /// Pages that both map in the same frame.
        shared: u64,
        /// Shared pages that the other process maps only at other addresses (merged pages, for example).
        shared_elsewhere: u64,
        /// Pages that both have, in different frames, after a fork. Without one, each is one of `only_here` and one of
        /// `only_there`.
        copied: u64,
        /// Pages that only the attached process has.
        only_here: u64,
        /// Pages that only the other process has. Those in a frame that the attached one maps elsewhere are left out.
        only_there: u64,
        /// Shared pages that the next write of the attached process copies.
        about_to_copy: u64,
    }
}

impl AddAssign for NetEffect {
    fn add_assign(&mut self, other: NetEffect) {
        self.came += other.came;
        self.went += other.went;
        self.swap_came += other.swap_came;
        self.swap_went += other.swap_went;
    }
}

record! {
    /// The net effect of changes on the memory of a process.
    #[derive(Copy, Default, Eq)]
    pub struct NetEffect {
        /// Bytes that are present now and were not before.
        came: u64,
        /// Bytes that were present before and are not now.
        went: u64,
        /// Bytes that are in swap now and were not before.
        swap_came: u64,
        /// Bytes that were in swap before and are not now.
        swap_went: u64,
    }
}

record! {
    /// The numbers of a search for the mappings of a frame.
    #[derive(Copy, Eq, Default)]
    pub struct WhoCounts {
        /// Mappings found, without those that are known to be gone.
        mappings: u64,
        /// Mappings that were shown and vanished since.
        left: u64,
        /// Processes that have them.
        processes: u64,
        /// Processes that were searched.
        looked_at: u64,
        /// Processes in the system, without kernel threads.
        listed: u64,
        /// Processes that could not be read.
        unreadable: u64,
        /// Processes that ended before or during the search.
        gone: u64,
        /// Processes that share the address space of one that is shown.
        same_memory: u64,
    }
}

record! {
    /// One side of an event: the page before or after it.
    #[derive(Eq)]
    pub struct PageFacts with why {
        /// State.
        state: State,
        /// Frame of the first page.
        pfn: Option<FrameNumber>,
        /// Flags, when they are watched.
        flags: Option<FlagNames>,
        /// Map count, when it is watched: `mapcount` in filters.
        map_count: Option<u64>,
        /// Whether the map count may be an average over a large folio.
        [optional] map_count_average: bool,
        /// NUMA node of its frame, where changes are added up by node.
        [optional] node: Option<u32>,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_effect_add_up() {
        // Of five pages that went with their region, three were present and two in swap.
        let effect = NetEffect { went: 3 << 12, swap_went: 2 << 12, ..NetEffect::default() };
        assert_eq!(effect.part(5, 5), effect);
        let came = NetEffect { came: 5 << 12, ..NetEffect::default() };
        assert_eq!(came.part(2, 5), NetEffect { came: 2 << 12, ..NetEffect::default() });
        assert_eq!(NetEffect::default().part(0, 0), NetEffect::default());
    }
}
