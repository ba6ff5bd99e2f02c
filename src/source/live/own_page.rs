//! A page of pmdb's own. pmdb knows what the kernel should report of it, and so notices what the kernel hides or gets
//! wrong.

use super::directory::own_file;
use super::frames::FrameFile;
use super::words;
use crate::kernel::{PageFlags, PageMapEntry, PageSize};
use crate::source::{PageRegion, Scan, covered_pages, sys};
use rustix::io::Errno;
use std::convert::Infallible;
use std::sync::OnceLock;

/// The flags of a private anonymous page that no other process maps.
pub(super) fn flags(file: &FrameFile) -> Option<PageFlags> {
    let mut flags = [0];
    let read = file.read(entry()?.frame()?.get(), &mut flags).ok()?;
    (read == 1).then_some(PageFlags::from_bits_retain(flags[0]))
}

/// The page-map entry of such a page, if it is resident.
pub(super) fn entry() -> Option<PageMapEntry> {
    let page = std::hint::black_box(Box::new(std::process::id()));
    let entry = entry_at((&raw const *page).addr() as u64);
    std::hint::black_box(&page);
    entry.filter(|entry| entry.is_present())
}

/// The page-map entry of an address of this program.
pub(super) fn entry_at(address: u64) -> Option<PageMapEntry> {
    let index = address / rustix::param::page_size() as u64;
    let mut entry = [0];
    let read = words::read(own_file("pagemap").ok()?, index, &mut entry).ok()?;
    (read == 1).then_some(PageMapEntry::new(entry[0]))
}

/// The lower of `end` and the end of what this program may scan. Ends below pmdb's own stack, which is near that limit,
/// take no system call.
pub(super) fn limit(end: u64, page: PageSize) -> u64 {
    let on_the_stack = 0u8;
    let here = (&raw const on_the_stack).addr() as u64;
    if end <= here { end } else { end.min(end_of_scans(page)) }
}

/// The end of what this program may scan: that of its own address space (`access_ok` in `pagemap_scan_get_args`), which
/// may end before its page map does. 0 if the page map cannot be read.
fn end_of_scans(page: PageSize) -> u64 {
    static PAGES: OnceLock<u64> = OnceLock::new();
    let pages = *PAGES.get_or_init(|| {
        let Ok(own) = own_file("pagemap") else {
            return 0;
        };
        let covers = |index: u64| {
            let one = Scan { end: (index + 1) << page.shift(), max_pages: 1, ..Scan::default() };
            let is_read = words::read(&own, index, &mut [0]).is_ok_and(|read| read == 1);
            let is_scanned = || sys::scan(&own, one, &mut [PageRegion::default()]);
            Ok::<_, Infallible>(is_read && is_scanned() != Err(Errno::FAULT))
        };
        covered_pages(page, covers).unwrap_or_else(|never| match never {})
    });
    pages << page.shift()
}
