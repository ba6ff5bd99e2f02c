//! A page at one moment, as a change has it.

use super::record::record;
use super::{FlagNames, Why};
use crate::kernel::{FrameNumber, State};

record! {
    /// One side of an event: the page before or after it.
    #[derive(Eq)]
    pub struct PageFacts with why if noted {
        /// State.
        state: State,
        /// Frame of the first page.
        pfn: Option<FrameNumber>,
        /// Flags, when they are watched.
        flags: Option<FlagNames>,
        /// Map count, when it is watched.
        map_count: Option<u64>,
        /// Whether the map count may be an average over a large folio.
        [optional] map_count_average: bool,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }
}
