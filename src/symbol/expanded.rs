//! The memory that symbol tables take which were decompressed or made: all modules share one limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are kept by default, of all modules together: a Fedora desktop's libraries take some tens of megabytes.
const MOST: u64 = 512 << 20;

/// The count. Clones share it.
#[derive(Clone)]
pub(super) struct ExpandedMemory {
    held: Arc<AtomicU64>,
    most: u64,
}

impl Default for ExpandedMemory {
    fn default() -> Self {
        ExpandedMemory::at_most(MOST)
    }
}

impl ExpandedMemory {
    /// An empty count with this limit.
    pub(super) fn at_most(most: u64) -> ExpandedMemory {
        ExpandedMemory { held: Arc::default(), most }
    }

    /// Bytes that may still be kept.
    pub(super) fn bytes_left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Whether so much is kept that tables not used for long should be dropped.
    pub(super) fn is_crowded(&self) -> bool {
        self.bytes_left() < self.most / 2
    }

    /// Counts bytes until the result is dropped.
    pub(super) fn keep(&self, bytes: u64) -> ExpandedBytes {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        ExpandedBytes { held: Arc::clone(&self.held), bytes }
    }
}

/// Bytes that are counted.
pub(super) struct ExpandedBytes {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for ExpandedBytes {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
