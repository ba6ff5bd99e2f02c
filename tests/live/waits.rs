//! How long threads of a target wait for the lock of its address space (mmap_lock): one that maps and unmaps a page,
//! and one that touches new pages. The benchmarks have the same target.

use super::target::{announce, wait};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long each thread sleeps between two calls: it then runs before those that use a processor all the time.
const BETWEEN: Duration = Duration::from_micros(50);

/// The times of each thread.
static TIMES: [Mutex<Vec<Duration>>; 2] = [const { Mutex::new(Vec::new()) }; 2];

/// New private memory of small pages.
fn map(len: usize) -> *mut u8 {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe { libc::mmap(null_mut(), len, prot, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED, "no memory");
    // SAFETY: advice about it.
    unsafe { libc::madvise(memory, len, libc::MADV_NOHUGEPAGE) };
    memory.cast()
}

/// Times one call after the other.
fn time(times: &'static Mutex<Vec<Duration>>, mut call: impl FnMut() + Send + 'static) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(BETWEEN);
            let begun = Instant::now();
            call();
            let taken = begun.elapsed();
            times.lock().expect("its times").push(taken);
        }
    });
}

/// So much memory in small pages, and two threads. Announces where it is and how large. Then answers each line with the
/// 99th percentile and the longest of the times since the last line, in nanoseconds, of either thread.
pub fn play(len: usize) {
    let page = rustix::param::page_size();
    let memory = map(len);
    for offset in (0..len).step_by(page) {
        // SAFETY: within the mapping.
        unsafe { memory.add(offset).write_volatile(1) };
    }
    time(&TIMES[0], move || {
        let new = map(page);
        // SAFETY: a page that nobody refers to.
        unsafe { libc::munmap(new.cast(), page) };
    });
    // The second thread touches one page after the other, and gives all back at the end.
    const PAGES: usize = 256;
    let (touched, mut next) = (map(PAGES * page) as usize, 0);
    time(&TIMES[1], move || {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(touched);
        if next == PAGES {
            next = 0;
            // SAFETY: memory of its own.
            unsafe { libc::madvise(start.cast(), PAGES * page, libc::MADV_DONTNEED) };
        }
        // SAFETY: within the mapping.
        unsafe { start.add(next * page).write_volatile(1) };
        next += 1;
    });
    announce(format!("{} {len}", memory as usize));
    while wait().is_some() {
        let reports = TIMES.each_ref().map(|times| {
            let mut times = std::mem::take(&mut *times.lock().expect("its times"));
            times.sort_unstable();
            let at = |index: usize| times.get(index).map_or(0, Duration::as_nanos);
            format!("{} {}", at(times.len() * 99 / 100), at(times.len().saturating_sub(1)))
        });
        announce(reports.join(" "));
    }
}
