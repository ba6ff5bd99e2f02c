//! What this user may read. The tests of the program ask too.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Whether the kernel shows this program frame numbers.
pub fn shows_frames() -> bool {
    let page = std::hint::black_box(Box::new(7u8));
    let index = (&raw const *page).addr() as u64 / rustix::param::page_size() as u64;
    let mut entry = [0; 8];
    let read = File::open("/proc/self/pagemap").and_then(|map| map.read_at(&mut entry, index * 8));
    read.is_ok() && u64::from_ne_bytes(entry) & ((1 << 55) - 1) != 0
}
