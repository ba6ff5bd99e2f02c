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
        /// Number of its mappings.
        map_count: Fact<u64>,
        /// Whether that may be an average over the large folio that it belongs to.
        [optional] map_count_average: bool,
        /// Number of these mappings that are pmdb's own: it maps libraries too, and its program file.
        [optional] own_mappings: Option<u64>,
    }
}

impl FrameWords {
    /// How often it is mapped, if the count is exact.
    pub fn exact_map_count(&self) -> Option<u64> {
        let count = self.map_count.as_ref().ok();
        count.copied().filter(|_| !self.map_count_average)
    }

    /// Whether pmdb itself has all mappings but one, as far as that is known.
    pub fn is_once_besides_pmdb(&self) -> bool {
        let own = self.own_mappings.filter(|&own| own > 0);
        own.is_some_and(|own| self.exact_map_count() == Some(own + 1))
    }

    /// For a frame about which nothing can be known.
    #[cfg(test)]
    pub fn unknown(reason: &super::Reason) -> Self {
        FrameWords {
            flags: Err(reason.clone()),
            map_count: Err(reason.clone()),
            map_count_average: false,
            own_mappings: None,
        }
    }
}
