//! What a kernel and the rights of this program give, and how that was found out.

/// Something that pmdb makes use of where it is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Feature {
    /// `/proc/PID/pagemap`
    PageMap,
    /// Processes of other users.
    OtherUsers,
    /// Frame numbers in page maps, and swap slots.
    FrameNumbers,
    /// `/proc/kpageflags`
    FrameFlags,
    /// `/proc/kpagecount`
    MapCounts,
    /// That a map count is of one page even within a large folio.
    ExactMapCounts,
    /// `/proc/kpagecgroup`
    FrameCgroups,
    /// The hierarchy of memory cgroups.
    CgroupPaths,
    /// Addresses in `/proc/iomem`.
    Iomem,
    /// `/proc/PID/map_files`
    MapFiles,
    /// `/proc/PID/mem`
    Memory,
    /// The PAGEMAP_SCAN call, with the categories that tell no more than page-map entries do.
    Scan,
    /// The category PAGE_IS_WPALLOWED.
    ScanWriteTracked,
    /// The category PAGE_IS_PFNZERO.
    ScanZero,
    /// The category PAGE_IS_HUGE.
    ScanHuge,
    /// The PROCMAP_QUERY call.
    MapsQuery,
    /// Bit 55 of a page-map entry.
    SoftDirty,
    /// Bit 58 of a page-map entry.
    GuardBit,
    /// `/sys/kernel/mm/page_idle/bitmap`
    IdleBitmap,
    /// That the KSM flag is set on merged pages alone.
    KsmFlag,
    /// What the swap types stand for that are no swap areas.
    SwapTypes,
}

/// Whether a feature is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The feature.
    pub feature: Feature,
    /// `None`: it could not be found out.
    pub available: Option<bool>,
    /// How that was found out: what was tried and what came of it.
    pub found: String,
    /// What would help, where something would.
    pub remedy: Option<String>,
}

/// Who this program is to the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Effective user id.
    pub user: u32,
    /// Those of the rights that pmdb has a use for which it holds, or may take up when it needs them: `CAP_SYS_ADMIN` …
    pub rights: Vec<&'static str>,
    /// Whether it runs in the first user namespace, the only one in which frame numbers are shown; `None` when that cannot be told.
    pub in_first_user_namespace: Option<bool>,
}
