//! The words of a frame, as many records have them.

use super::Fact;
use super::record::record;
use crate::kernel::PageFlags;

record! {
    /// The words of a frame in `/proc/kpageflags` and `/proc/kpagecount`.
    #[derive(Eq)]
    pub struct FrameWords {
        /// Its flags; of several frames, those that all of them have.
        flags: Fact<PageFlags>,
        /// How often it is mapped.
        map_count: Fact<u64>,
        /// Whether that may be an average over the large folio that it belongs to.
        [optional] map_count_average: bool,
    }
}

impl FrameWords {
    /// How often it is mapped, if the count is exact.
    pub fn exact_map_count(&self) -> Option<u64> {
        let count = self.map_count.as_ref().ok();
        count.copied().filter(|_| !self.map_count_average)
    }

    /// For a frame about which nothing can be known.
    #[cfg(test)]
    pub fn unknown(reason: &super::Reason) -> Self {
        FrameWords { flags: Err(reason.clone()), map_count: Err(reason.clone()), map_count_average: false }
    }
}
