//! What was expanded from tables that files hold compressed, and is kept in memory: counted over all modules, as each is small but a
//! process may have thousands, and not all of them mean well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are kept, all modules together, unless it is said otherwise: a Fedora desktop's libraries take some tens of megabytes.
const MOST: u64 = 512 << 20;

/// The count of them. Copies count together.
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
    /// None yet, and never more than so many bytes.
    pub(super) fn at_most(most: u64) -> Expanded {
        Expanded {
            held: Arc::default(),
            most,
        }
    }

    /// How many more may be kept.
    pub(super) fn left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Whether so much is kept that what has not been used for long should go.
    pub(super) fn is_crowded(&self) -> bool {
        self.left() < self.most / 2
    }

    /// Counts bytes for as long as the answer lives.
    pub(super) fn keep(&self, bytes: u64) -> Kept {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Kept {
            held: Arc::clone(&self.held),
            bytes,
        }
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
