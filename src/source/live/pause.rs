//! Pauses between reads that hold the lock of the target's address space (mmap_lock).
//!
//! Each page-map read holds this lock for 2 MiB of addresses at a time, and a scan for its whole duration. During that
//! time a thread of the target that maps or unmaps memory sleeps. When the lock is released, the thread must first wake
//! up, and until then the next read has the lock again (reader stealing in kernel/locking/rwsem.c), for 4 ms and more.
//! So pmdb leaves the lock free from time to time, for as long as a wake-up lasts. All threads of pmdb pause together.

use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How long reads may follow each other without a pause. A thread that maps and unmaps memory waited 2 to 6 ms while
/// two threads read 1 GiB and paused one by one. It waits 0.6 to 1.4 ms if both pause together.
const BUSY: Duration = Duration::from_micros(300);
/// The length of a pause.
const FREE: Duration = Duration::from_micros(20);

/// Makes all threads of pmdb pause together.
#[derive(Default)]
pub(super) struct Pauses {
    /// How long the reads since the last pause held the lock. Reads at the same time share the time.
    busy: AtomicU64,
    /// The number of reads that go on.
    reads: AtomicU64,
    /// A thread that reads holds it for reading, and a thread that pauses for writing.
    gate: RwLock<()>,
}

impl Pauses {
    /// Calls `read`, which holds the lock, after a pause if one is due.
    pub(super) fn around<T>(&self, read: impl FnOnce() -> T) -> T {
        if self.is_due() {
            let _paused = self.gate.write().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have paused in the meantime.
            if self.is_due() {
                self.busy.store(0, Ordering::Relaxed);
                pause();
            }
        }
        let _reading = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        self.reads.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let read = read();
        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let together = self.reads.fetch_sub(1, Ordering::Relaxed);
        self.busy.fetch_add(nanoseconds / together.max(1), Ordering::Relaxed);
        read
    }

    fn is_due(&self) -> bool {
        Duration::from_nanos(self.busy.load(Ordering::Relaxed)) >= BUSY
    }
}

/// Sleeps for one pause. Without a timer slack of its own, the kernel would add 50 µs.
fn pause() {
    let before = current_timer_slack().ok().and_then(NonZeroU64::new);
    let is_set = set_current_timer_slack(Some(NonZeroU64::MIN)).is_ok();
    std::thread::sleep(FREE);
    if is_set {
        // If this fails, later timers of the thread are more exact than asked for.
        _ = set_current_timer_slack(before);
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
    #[test]
    fn no_thread_reads_while_another_pauses() {
        let pauses = Pauses::default();
        let (begin, begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                pauses.around(|| {
                    begin.send(()).expect("a test that waits");
                    std::thread::sleep(4 * BUSY);
                    Instant::now()
                })
            });
            begun.recv().expect("a thread that reads");
            pauses.busy.store(u64::MAX / 2, Ordering::Relaxed);
            let next = pauses.around(Instant::now);
            let ended = other.join().expect("a read");
            assert!(next.saturating_duration_since(ended) >= FREE);
        });
    }
}
