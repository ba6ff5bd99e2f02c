//! The features that a kernel and pmdb's rights make available, and how that was found out.

use crate::access::Result;

/// A feature that pmdb uses if it is available. Listings have them in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
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
    /// The PAGEMAP_SCAN call, with the categories that page-map entries show too.
    Scan,
    /// The category PAGE_IS_PFNZERO.
    ScanZero,
    /// The category PAGE_IS_HUGE.
    ScanHuge,
    /// The category PAGE_IS_WPALLOWED.
    ScanWriteTracked,
    /// The PROCMAP_QUERY call.
    MapsQuery,
    /// Bit 55 of a page-map entry.
    SoftDirty,
    /// Bit 58 of a page-map entry.
    GuardBit,
    /// The kernel's own records of frames (`/proc/kcore`).
    KernelRecords,
    /// The count of references in these records.
    References,
    /// The counts of mappings of whole folios.
    FolioMappings,
    /// The files that frames are of.
    Owners,
    /// The counts of pins of large folios.
    FolioPins,
    /// The page tables of a process, in the kernel's memory.
    PageTables,
    /// `/sys/kernel/mm/page_idle/bitmap`
    IdleBitmap,
    /// That the KSM flag is set on merged pages alone.
    KsmFlag,
    /// The meaning of the swap types that are no swap areas.
    SwapTypes,
}

/// Whether a feature is available.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The feature.
    pub feature: Feature,
    /// `None`: it could not be found out.
    pub available: Option<bool>,
    /// How that was found out: what was tried, and the result.
    pub found: String,
    /// What would help, where something would.
    pub remedy: Option<String>,
}

/// The rights of pmdb.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Credentials {
    /// Effective user id.
    pub user: u32,
    /// The useful capabilities that pmdb holds, or can raise when it needs them: `CAP_SYS_ADMIN` …
    pub rights: Vec<&'static str>,
    /// Whether it runs in the first user namespace, the only one in which frame numbers are shown; `None` when that
    /// cannot be told.
    pub in_first_user_namespace: Option<bool>,
}

/// What a source may read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceAccess {
    /// What was found out by trying.
    pub findings: Vec<Finding>,
    /// The rights of the reader.
    pub credentials: Credentials,
}

/// A feature that is available.
pub(crate) fn available(feature: Feature, found: impl Into<String>) -> Finding {
    finding(feature, Some(true), found, "")
}

/// A feature that is not available, and what would help.
pub(crate) fn unavailable(feature: Feature, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    finding(feature, Some(false), found, remedy)
}

/// A feature of which it could not be found out whether it is available, and what would help.
pub(crate) fn undetermined(feature: Feature, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    finding(feature, None, found, remedy)
}

fn finding(feature: Feature, available: Option<bool>, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { feature, available, found: found.into(), remedy: Some(remedy.into()).filter(|remedy| !remedy.is_empty()) }
}

/// The result of a try: `found` if it succeeded, otherwise the error and its remedy.
pub(crate) fn by_trying<T>(feature: Feature, result: Result<T>, found: &str) -> Finding {
    match result {
        Ok(_) => available(feature, found),
        Err(error) => unavailable(feature, error.to_string(), error.remedy().unwrap_or_default()),
    }
}
