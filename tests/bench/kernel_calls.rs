//! PAGEMAP_SCAN, called directly: the comparison shares no code with pmdb.

use std::fs::File;
use std::os::fd::AsRawFd;

/// `struct page_region`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct PageRegion {
    pub start: u64,
    pub end: u64,
    pub categories: u64,
}

/// `struct pm_scan_arg`: size, flags, start, end, walk_end, vec, vec_len, max_pages, and four masks.
type Arguments = [u64; 12];

/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;

/// Visits the populated stretches from `start` to `end`. False if the kernel has no PAGEMAP_SCAN.
pub fn scan(page_map: &File, start: u64, end: u64, mut visit: impl FnMut(PageRegion)) -> bool {
    let mut found = [PageRegion::default(); 1024];
    let mut from = start;
    while from < end {
        let mut arguments: Arguments = [0; 12];
        arguments[0] = size_of::<Arguments>() as u64;
        arguments[2] = from;
        arguments[3] = end;
        arguments[5] = found.as_mut_ptr() as u64;
        arguments[6] = found.len() as u64;
        arguments[10] = PRESENT | SWAPPED;
        arguments[11] = PRESENT | SWAPPED;
        // SAFETY: the kernel writes to `arguments` and to at most `found.len()` elements of `found`.
        let count = unsafe { libc::ioctl(page_map.as_raw_fd(), PAGEMAP_SCAN, &mut arguments) };
        let Ok(count) = usize::try_from(count) else {
            return false;
        };
        found.iter().take(count).copied().for_each(&mut visit);
        from = arguments[4];
    }
    true
}
