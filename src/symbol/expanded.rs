//! The limit on memory for symbol tables that were decompressed or made, for all modules together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The default limit in bytes: a Fedora desktop's libraries need some tens of megabytes.
const MOST: u64 = 512 << 20;

/// The bytes in use. Clones share the count.
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
    /// Makes a count with this limit.
    pub(super) fn at_most(most: u64) -> ExpandedMemory {
        ExpandedMemory { held: Arc::default(), most }
    }

    /// Returns the bytes that may still be kept.
    pub(super) fn bytes_left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Returns whether more than half of the limit is in use, so that tables not used recently should be dropped.
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
