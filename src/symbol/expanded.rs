//! Counts the memory of decompressed tables over all modules: each is small, but a process may have thousands, some of
//! them hostile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are kept by default, of all modules together: a Fedora desktop's libraries take some tens of megabytes.
const MOST: u64 = 512 << 20;

/// The count. Clones share it.
#[derive(Clone)]
pub(super) struct Expanded {
    held: Arc<AtomicU64>,
    most: u64,
}

impl Default for Expanded {
    fn default() -> Self {
        Expanded::at_most(MOST)
    }
}

impl Expanded {
    /// An empty count with this limit.
    pub(super) fn at_most(most: u64) -> Expanded {
        Expanded { held: Arc::default(), most }
    }

    /// Bytes that may still be kept.
    pub(super) fn left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Whether so much is kept that tables not used for long should be dropped.
    pub(super) fn is_crowded(&self) -> bool {
        self.left() < self.most / 2
    }

    /// Counts bytes until the result is dropped.
    pub(super) fn keep(&self, bytes: u64) -> Kept {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Kept { held: Arc::clone(&self.held), bytes }
    }
}

/// Bytes that are counted.
pub(super) struct Kept {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
