//! Pauses between reads that hold the lock of the target's address space (mmap_lock).
//!
//! Each page-map read holds this lock for 2 MiB of addresses at a time, and a scan for its whole duration. During that
//! time a thread of the target that maps or unmaps memory sleeps. When the lock is released, the thread must first wake
//! up, and until then the next read has the lock again (reader stealing in kernel/locking/rwsem.c), for 4 ms and more.
//! So pmdb leaves the lock free from time to time, for as long as a wake-up lasts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long reads may follow each other without a pause. A thread that maps and unmaps memory then waits 0.5 ms instead
/// of 2 while pmdb scans 2 GiB, and 2 to 3 ms instead of 4 to 8 while pmdb reads them.
const BUSY: Duration = Duration::from_micros(500);
/// The length of a pause. The kernel adds its timer slack, 50 µs.
const FREE: Duration = Duration::from_micros(20);

/// How long the reads since the last pause held the lock, in all threads of pmdb together.
#[derive(Default)]
pub(super) struct Pauses {
    busy: AtomicU64,
}

impl Pauses {
    /// Calls `read`, which holds the lock, after a pause if one is due.
    pub(super) fn around<T>(&self, read: impl FnOnce() -> T) -> T {
        if Duration::from_nanos(self.busy.load(Ordering::Relaxed)) >= BUSY {
            self.busy.store(0, Ordering::Relaxed);
            std::thread::sleep(FREE);
        }
        let begun = Instant::now();
        let read = read();
        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.busy.fetch_add(nanoseconds, Ordering::Relaxed);
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_due_after_long_reads_and_not_after_short_ones() {
        let pauses = Pauses::default();
        let free = |pauses: &Pauses| {
            let begun = Instant::now();
            let read = pauses.around(Instant::now);
            read - begun
        };
        pauses.around(|| std::thread::sleep(BUSY));
        assert!(Duration::from_nanos(pauses.busy.load(Ordering::Relaxed)) >= BUSY);
        assert!(free(&pauses) >= FREE);
        // Then reads follow each other again.
        let shortest = (0..100).map(|_| free(&pauses)).min();
        assert!(shortest < Some(FREE), "{shortest:?}");
    }
}
