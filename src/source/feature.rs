//! What a kernel and the rights of this program give, and how that was found out.

use super::Result;

/// Something that pmdb makes use of where it is there. Listings have them in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

/// What a source may look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// What was found out by trying it.
    pub findings: Vec<Finding>,
    /// Who looks.
    pub standing: Standing,
}

/// A feature that is there.
pub(crate) fn yes(feature: Feature, found: impl Into<String>) -> Finding {
    finding(feature, Some(true), found, None)
}

/// A feature that is not there, and what would help.
pub(crate) fn no(feature: Feature, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    finding(feature, Some(false), found, Some(remedy.into()))
}

/// A feature, whether it is there, how that was found out, and what would help.
pub(crate) fn finding(
    feature: Feature,
    available: Option<bool>,
    found: impl Into<String>,
    remedy: Option<String>,
) -> Finding {
    Finding {
        feature,
        available,
        found: found.into(),
        remedy: remedy.filter(|remedy| !remedy.is_empty()),
    }
}

/// What came of trying: `found` if it went well, otherwise the error and its remedy.
pub(crate) fn tried<T>(feature: Feature, result: Result<T>, found: &str) -> Finding {
    match result {
        Ok(_) => yes(feature, found),
        Err(error) => finding(
            feature,
            Some(false),
            error.to_string(),
            error.remedy().map(str::to_owned),
        ),
    }
}
