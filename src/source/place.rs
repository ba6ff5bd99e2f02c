//! Where bytes are read.

use crate::kernel::Region;

/// Where bytes are read.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// Memory of the process. The live source faults pages in: only pages that were found resident just before may be
    /// read.
    Memory,
    /// The page cache of the object behind a region, which is not filled: what is not cached cannot be read.
    PageCache(&'a Region),
}

impl Place<'_> {
    /// What a source that lacks it lacks.
    pub(super) fn what(self) -> String {
        match self {
            Place::Memory => "memory".to_owned(),
            Place::PageCache(region) => format!("the page cache of {}", region.range),
        }
    }
}
