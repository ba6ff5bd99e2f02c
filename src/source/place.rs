//! The places from which bytes are read.

use crate::kernel::Region;

/// A place from which bytes are read.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// Memory of the process. The live source faults pages in: read only pages that were found resident just before.
    Memory,
    /// The page cache of the object that a region maps. It is not filled: bytes that are not cached cannot be read.
    PageCache(&'a Region),
}

impl Place<'_> {
    /// Returns the name of the place, for the error of a source that lacks it.
    pub(super) fn what(self) -> String {
        match self {
            Place::Memory => "memory".to_owned(),
            Place::PageCache(region) => format!("the page cache of {}", region.range),
        }
    }
}
