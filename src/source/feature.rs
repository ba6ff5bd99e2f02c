//! The features that a kernel and pmdb's rights make available, and how that was found out.

use crate::access::Result;
use crate::kernel::words::worded;

worded! {
    /// A feature that pmdb uses if it is available. Listings have them in this order.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[non_exhaustive]
    pub enum Feature, word {
        /// `/proc/PID/pagemap`
        PageMap = "page_map",
        /// Processes of other users.
        OtherUsers = "other_users",
        /// Frame numbers in page maps, and swap slots.
        FrameNumbers = "frame_numbers",
        /// `/proc/kpageflags`
        FrameFlags = "kpageflags",
        /// `/proc/kpagecount`
        MapCounts = "kpagecount",
        /// That a map count is of one page even within a large folio.
        ExactMapCounts = "exact_map_counts",
        /// `/proc/kpagecgroup`
        FrameCgroups = "kpagecgroup",
        /// The hierarchy of memory cgroups.
        CgroupPaths = "cgroup_paths",
        /// Addresses in `/proc/iomem`.
        Iomem = "iomem",
        /// `/proc/PID/map_files`
        MapFiles = "map_files",
        /// `/proc/PID/mem`
        Memory = "memory",
        /// The PAGEMAP_SCAN call, with the categories that page-map entries show too.
        Scan = "pagemap_scan",
        /// The category PAGE_IS_PFNZERO.
        ScanZero = "scan_zero",
        /// The category PAGE_IS_HUGE.
        ScanHuge = "scan_huge",
        /// The category PAGE_IS_WPALLOWED.
        ScanWriteTracked = "scan_wpallowed",
        /// The PROCMAP_QUERY call.
        MapsQuery = "procmap_query",
        /// Bit 55 of a page-map entry.
        SoftDirty = "soft_dirty",
        /// Bit 58 of a page-map entry.
        GuardBit = "guard_bit",
        /// The kernel's own records of frames (`/proc/kcore`).
        KernelRecords = "kernel_records",
        /// The count of references in these records.
        References = "references",
        /// The counts of mappings of whole folios.
        FolioMappings = "folio_mappings",
        /// The files that frames are of.
        Owners = "owners",
        /// The counts of pins of large folios.
        FolioPins = "folio_pins",
        /// The page tables of a process, in the kernel's memory.
        PageTables = "page_tables",
        /// `/sys/kernel/mm/page_idle/bitmap`
        IdleBitmap = "idle_bitmap",
        /// That the KSM flag is set on merged pages alone.
        KsmFlag = "ksm_flag",
        /// The meaning of the swap types that are no swap areas.
        SwapTypes = "swap_types",
    }
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
