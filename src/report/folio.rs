//! Folios, for several records: pages that the kernel manages as one.

use super::record::record;
use crate::kernel::FrameNumber;

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
        /// Of these, bytes at addresses where no single entry can map their folio.
        unaligned: u64,
    }
}

/// How a large folio is mapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum HowMapped {
    /// One entry for the whole.
    Pmd,
    /// An entry for each page.
    Pte,
    /// As a page of the hugetlb pool: always whole.
    Hugetlb,
    /// This kernel does not show it.
    Unknown,
}

impl HowMapped {
    /// The word for it, if it is known.
    pub fn word(self) -> Option<&'static str> {
        match self {
            HowMapped::Pmd => Some("pmd"),
            HowMapped::Pte => Some("pte"),
            HowMapped::Hugetlb => Some("hugetlb"),
            HowMapped::Unknown => None,
        }
    }
}
