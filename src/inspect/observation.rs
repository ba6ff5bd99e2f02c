//! The input of [`classify`](super::classify): what was read of a page and its region.

use crate::kernel::{Kind, PageFlags, PageMapEntry};
use crate::process::{BackingContent, Categories};

/// The backing of the pages of a region.
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

/// The facts about a page's region that classification needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionFacts {
    /// Its backing.
    pub backing: Backing,
    /// Mapped shared; otherwise private, copied on write.
    pub shared: bool,
    /// VM_PFNMAP: the page map shows nothing of it.
    pub pfn_mapped: bool,
    /// VM_PFNMAP, and some of its pages may be copies of the device's, made by writes to a private mapping: ordinary
    /// memory.
    pub may_be_copied: bool,
    /// It is large enough for a PMD mapping.
    pub may_be_huge: bool,
    /// Whether its private pages are merged ones, for pages whose flags do not tell; `None` if unknown.
    pub merged: Option<bool>,
}

impl RegionFacts {
    /// Those of a region of plain memory or of a file, as far as `maps` tells.
    pub const fn plain(backing: Backing, shared: bool) -> Self {
        RegionFacts {
            backing,
            shared,
            pfn_mapped: false,
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
}

impl PageObservation {
    /// An entry of which nothing else was read.
    #[inline]
    pub const fn of(entry: PageMapEntry) -> Self {
        PageObservation { entry: Some(entry), flags: None, categories: None, content: None }
    }

    /// Whether one PMD maps it, or it comes from the hugetlb pool; `None` if that was not asked.
    pub(super) fn is_huge(&self) -> Option<bool> {
        let categories = self.categories?;
        Some(categories.contains(Categories::HUGE))
    }
}
