//! The numbers of a search for who maps a frame.

use super::record::record;

record! {
    /// The numbers of a search for the mappings of a frame.
    #[derive(Copy, Eq, Default)]
    pub struct WhoCounts {
        /// Mappings found, without those that are known to be gone.
        mappings: u64,
        /// Mappings that were shown and vanished since.
        left: u64,
        /// Processes that have them.
        processes: u64,
        /// Processes that were searched.
        looked_at: u64,
        /// Processes in the system, without kernel threads.
        listed: u64,
        /// Processes that could not be read.
        unreadable: u64,
        /// Processes that ended before or during the search.
        gone: u64,
        /// Processes that share the address space of one that is shown.
        same_memory: u64,
    }
}
