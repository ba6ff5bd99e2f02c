//! Pauses between reads that hold the lock of the target's address space (mmap_lock).
//!
//! Each page-map read holds this lock for 2 MiB of addresses at a time, and a scan for its whole duration. During that
//! time a thread of the target that maps or unmaps memory sleeps. When the lock is released, the thread must first wake
//! up, and until then the next read has the lock again (reader stealing in kernel/locking/rwsem.c), for 4 ms and more.
//! So pmdb leaves the lock free from time to time, for as long as a wake-up lasts. All threads of pmdb pause together.
//! A target that sleeps needs no pause: if it wakes up and maps memory, it waits for the next one.

use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long reads may follow each other without a pause. A thread that maps and unmaps memory waited 2 to 6 ms while
/// two threads read 1 GiB and paused one by one. It waits 0.6 to 1.4 ms if both pause together.
const BUSY: Duration = Duration::from_micros(200);
/// The length of a pause. It lasts longer by as much as the kernel takes to wake a thread here.
const FREE: Duration = Duration::from_micros(40);
/// A time without reads that is a pause by itself: a wake-up in a virtual machine takes up to 50 µs.
const IDLE: Duration = Duration::from_micros(50);

/// Makes all threads of pmdb pause together. A time in which none of them reads, because they work on what they have
/// read, is a pause, too.
pub(super) struct Pauses {
    /// How long the reads since the last pause held the lock. Reads at the same time share the time.
    busy: AtomicU64,
    /// The number of reads that go on.
    reads: AtomicU64,
    /// The end of the last read, in nanoseconds since `begun`.
    ended: AtomicU64,
    begun: Instant,
}

impl Default for Pauses {
    fn default() -> Self {
        let [busy, reads, ended] = [0; 3].map(AtomicU64::new);
        Pauses { busy, reads, ended, begun: Instant::now() }
    }
}

impl Pauses {
    /// Calls `read`, which holds the lock, after a pause if one is due and the target does not sleep.
    pub(super) fn around<T>(&self, target_sleeps: impl Fn() -> bool, read: impl FnOnce() -> T) -> T {
        loop {
            let before = self.last_end();
            if before.is_some_and(|end| self.now().saturating_sub(end) >= nanoseconds(IDLE)) {
                self.busy.store(0, Ordering::Relaxed);
            }
            if self.busy.load(Ordering::Relaxed) < nanoseconds(BUSY) {
                break;
            }
            if target_sleeps() {
                self.busy.store(0, Ordering::Relaxed);
                break;
            }
            pause();
            if before.is_some() && self.last_end() == before {
                self.busy.store(0, Ordering::Relaxed);
            }
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let begun = self.now();
        let read = read();
        let ended = self.now();
        self.ended.fetch_max(ended, Ordering::Relaxed);
        // Whoever sees that nobody reads also sees when the last read ended.
        let together = self.reads.fetch_sub(1, Ordering::Release);
        self.busy.fetch_add(ended.saturating_sub(begun) / together.max(1), Ordering::Relaxed);
        read
    }

    /// Returns when the last read ended; `None` while somebody reads.
    fn last_end(&self) -> Option<u64> {
        (self.reads.load(Ordering::Acquire) == 0).then(|| self.ended.load(Ordering::Relaxed))
    }

    /// Returns the nanoseconds since `begun`.
    fn now(&self) -> u64 {
        nanoseconds(self.begun.elapsed())
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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

    fn never_sleeps() -> bool {
        false
    }

    /// Reads for so long. Returns when it began and when it ended.
    fn read(pauses: &Pauses, time: Duration) -> [Instant; 2] {
        pauses.around(never_sleeps, || {
            let begun = Instant::now();
            std::thread::sleep(time);
            [begun, Instant::now()]
        })
    }

    #[test]
    fn a_pause_is_due_after_long_reads_and_not_after_short_ones() {
        let pauses = Pauses::default();
        let [_, long] = read(&pauses, BUSY);
        let [begun, mut ended] = read(&pauses, Duration::ZERO);
        assert!(begun - long >= FREE);
        // Then reads follow each other again.
        let mut shortest = Duration::MAX;
        for _ in 0..100 {
            let next = read(&pauses, Duration::ZERO);
            shortest = shortest.min(next[0] - ended);
            ended = next[1];
        }
        assert!(shortest < FREE, "{shortest:?}");
    }

    #[test]
    fn no_thread_reads_while_another_pauses() {
        let pauses = Pauses::default();
        let (begin, begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                pauses.around(never_sleeps, || {
                    begin.send(()).expect("a test that waits");
                    std::thread::sleep(4 * BUSY);
                    Instant::now()
                })
            });
            begun.recv().expect("a thread that reads");
            pauses.busy.store(u64::MAX / 2, Ordering::Relaxed);
            let next = pauses.around(never_sleeps, Instant::now);
            let ended = other.join().expect("a read");
            assert!(next.saturating_duration_since(ended) >= FREE);
        });
    }

    #[test]
    fn a_time_without_reads_is_a_pause() {
        let pauses = Pauses::default();
        let waits = (0..100).map(|_| {
            pauses.busy.store(u64::MAX / 2, Ordering::Relaxed);
            std::thread::sleep(2 * IDLE);
            let called = Instant::now();
            pauses.around(never_sleeps, Instant::now) - called
        });
        let shortest = waits.min();
        assert!(shortest < Some(FREE), "{shortest:?}");
    }

    #[test]
    fn a_target_that_sleeps_needs_no_pause() {
        let pauses = Pauses::default();
        let waits = (0..100).map(|_| {
            pauses.busy.store(u64::MAX / 2, Ordering::Relaxed);
            let called = Instant::now();
            let wait = pauses.around(|| true, Instant::now) - called;
            assert!(pauses.busy.load(Ordering::Relaxed) < u64::MAX / 2);
            wait
        });
        let shortest = waits.min();
        assert!(shortest < Some(FREE), "{shortest:?}");
    }
}
