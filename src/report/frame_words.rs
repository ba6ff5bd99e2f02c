//! The words of a frame, as many records have them.

use super::record::record;
use super::{Fact, Reason};
use crate::kernel::PageFlags;

record! {
    /// What the kernel's files have of a frame: of `/proc/kpageflags` and `/proc/kpagecount` a word each.
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
    /// How often it is mapped, if that is known of this one frame.
    pub fn exact_map_count(&self) -> Option<u64> {
        let count = self.map_count.as_ref().ok();
        count.copied().filter(|_| !self.map_count_average)
    }

    /// Of a frame about which nothing can be known.
    pub fn unknown(reason: &Reason) -> Self {
        FrameWords {
            flags: Err(reason.clone()),
            map_count: Err(reason.clone()),
            map_count_average: false,
        }
    }
}
