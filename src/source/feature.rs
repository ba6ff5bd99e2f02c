//! The features that a kernel and pmdb's rights make available, and the trials that found them.

use crate::access::Result;
use crate::kernel::WordFile;
use crate::kernel::words::{Worded, worded};

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

impl Feature {
    /// Returns what is missing without the feature.
    pub const fn missing(self) -> &'static str {
        match self {
            Feature::PageMap => "the pages of a process are unknown",
            Feature::OtherUsers => "only processes of this user can be attached to",
            Feature::FrameNumbers => {
                "frame numbers, physical addresses and swap slots are hidden, and with them the flags, map counts and cgroups of pages"
            }
            Feature::FrameFlags => {
                "the flags of frames are unknown, and with them which pages are merged (ksm), dirty or locked"
            }
            Feature::MapCounts => "map counts are unknown, and with them whether a page of a huge mapping is exclusive",
            Feature::ExactMapCounts => {
                "the map count of a page of a large folio is an average over the folio, and marked with ~"
            }
            Feature::FrameCgroups => "the memory cgroup of a frame is unknown",
            Feature::CgroupPaths => "memory cgroups are shown by inode number only",
            Feature::Iomem => "the use of a physical address is unknown",
            Feature::MapFiles => "mapped files are searched by path: one that was deleted or replaced gives no symbols",
            Feature::Memory => "memory cannot be read: no *ADDR, no u8() to f64(), no symbols of the vdso",
            Feature::Scan => {
                "every entry of a range is read, which is slow in sparse regions; only smaps shows pfn_mapped regions"
            }
            Feature::ScanZero => "only the flags of the frame identify the zero page",
            Feature::ScanHuge => "whether one page-table entry maps a whole huge page is unknown",
            Feature::ScanWriteTracked => {
                "regions with write tracking by userfaultfd cannot be distinguished from others"
            }
            Feature::MapsQuery => "the region of an address is found by reading all of /proc/PID/maps, which is slower",
            Feature::SoftDirty => "there is no list of the pages that were written",
            Feature::GuardBit => {
                "guard pages are identified by the marker in their entries, which kernels have from 6.13 on"
            }
            Feature::KernelRecords => "the holders of a frame are unknown: its references, its pins and its file",
            Feature::References => "the references of a frame are not known, and whether it is pinned",
            Feature::FolioMappings => "the references of large folios are not known by holder, only their number",
            Feature::Owners => "the file that a frame is a page of is not known, nor the references by holder",
            Feature::FolioPins => "whether a large folio is pinned is not known",
            Feature::PageTables => "the entries of page tables are unknown: whether a page was accessed or written to",
            Feature::IdleBitmap => "the idle flag of a frame has little meaning, because nothing sets it on request",
            Feature::KsmFlag => "the KSM flag is not trusted: merged pages are shown as anonymous",
            Feature::SwapTypes => {
                "entries of pages that migrate, have failed or belong to a device cannot be distinguished"
            }
        }
    }

    /// Returns the feature of reading a file with a word for each frame, which has the name of the file.
    pub(crate) fn of_frames(file: WordFile) -> Option<Feature> {
        Feature::from_word(file.name())
    }
}

/// The result of a trial whether a feature is available.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The feature that was tried.
    pub feature: Feature,
    /// Whether the feature is available; `None` if that is unknown.
    pub available: Option<bool>,
    /// The trial and its result.
    pub found: String,
    /// A remedy, if there is one.
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
    /// Whether pmdb runs in the initial user namespace, the only one in which frame numbers are shown; `None` if
    /// unknown.
    pub in_first_user_namespace: Option<bool>,
}

/// The access of a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceAccess {
    /// The results of the trials.
    pub findings: Vec<Finding>,
    /// The rights of the reader.
    pub credentials: Credentials,
}

/// Makes the finding of a feature that is available.
pub(crate) fn available(feature: Feature, found: impl Into<String>) -> Finding {
    finding(feature, Some(true), found, "")
}

/// Makes the finding of a feature that is not available, with a remedy.
pub(crate) fn unavailable(feature: Feature, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    finding(feature, Some(false), found, remedy)
}

/// Makes the finding of a feature whose availability is unknown, with a remedy.
pub(crate) fn undetermined(feature: Feature, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    finding(feature, None, found, remedy)
}

fn finding(feature: Feature, available: Option<bool>, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { feature, available, found: found.into(), remedy: Some(remedy.into()).filter(|remedy| !remedy.is_empty()) }
}

/// Makes the finding of a trial: `found` if it succeeded, otherwise the error and its remedy.
pub(crate) fn by_trying<T>(feature: Feature, result: Result<T>, found: &str) -> Finding {
    match result {
        Ok(_) => available(feature, found),
        Err(error) => unavailable(feature, error.to_string(), error.remedy().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_frames_is_a_feature() {
        for file in WordFile::OF_FRAMES {
            assert_eq!(Feature::of_frames(file).map(Feature::word), Some(file.name()));
        }
    }
}
