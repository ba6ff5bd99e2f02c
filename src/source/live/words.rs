//! Files with a 64-bit word for each page: page maps, and `/proc/kpageflags` and its kin; and their words for a page of
//! pmdb's own.
//!
//! pmdb knows what the kernel should report of its own page, and so notices what the kernel hides or gets wrong.

use super::directory::{Directory, own_file};
use super::rights;
use crate::kernel::{PageFlags, PageMapEntry, PageSize};
use crate::source::{Error, PageRegion, Result, Scan, covered_pages, sys};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::convert::Infallible;
use std::sync::OnceLock;

/// Reads words from `first` on. Fewer than asked for: the file ends there.
pub(super) fn read(file: impl AsFd, first: u64, into: &mut [u64]) -> rustix::io::Result<usize> {
    let is_wrapped = cfg!(target_pointer_width = "32") && first >= WRAPPED && offsets_wrap();
    if first > LAST || is_wrapped { Ok(0) } else { sys::read_words(file, first, into) }
}

/// No file has words after this one: offsets are signed. The kernel would call a larger offset invalid.
const LAST: u64 = i64::MAX as u64 / 8 - 1;

/// The first word whose offset takes more than 32 bits.
const WRAPPED: u64 = 1 << 29;

/// Whether this is a 32-bit kernel. It keeps the lower half of an offset (`unsigned long src = *ppos` in
/// fs/proc/task_mmu.c and fs/proc/page.c): beyond 4 GiB the file begins again. The page map of a 32-bit program has
/// nothing there, so a word comes from its start.
fn offsets_wrap() -> bool {
    static WRAP: OnceLock<bool> = OnceLock::new();
    *WRAP.get_or_init(|| {
        own_file("pagemap").is_ok_and(|own| sys::read_words(&own, WRAPPED, &mut [0]).is_ok_and(|read| read > 0))
    })
}

/// One of these files, opened when it is first read.
pub(super) struct FrameFile {
    name: &'static str,
    option: &'static str,
    file: OnceLock<Result<OwnedFd>>,
}

impl FrameFile {
    /// The file `name`, which is there if the kernel was built with `option`.
    pub(super) const fn new(name: &'static str, option: &'static str) -> Self {
        FrameFile { name, option, file: OnceLock::new() }
    }

    /// Reads words from `first` on. Fewer than asked for: physical memory ends there.
    pub(super) fn read(&self, first: u64, into: &mut [u64]) -> Result<usize> {
        let file = self.file.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)?;
        read(file, first, into).map_err(|error| Error::io(format!("reading /proc/{}", self.name), error))
    }

    fn open(&self) -> Result<OwnedFd> {
        let name = self.name;
        let opened = Directory::proc().and_then(|proc| proc.file(name));
        let file = opened.map_err(|error| match error {
            Errno::ACCESS | Errno::PERM => Error::not_permitted(
                format!("may not open /proc/{name}: it is for root"),
                rights::way_to("CAP_DAC_READ_SEARCH"),
            ),
            Errno::NOENT => Error::not_available(format!(
                "there is no /proc/{name}: the kernel was built without {}, or this /proc shows \
                 processes only",
                self.option
            )),
            error => Error::io(format!("opening /proc/{name}"), error),
        })?;
        // Containers mount an empty file over it to hide it. Every machine has memory, so an empty file means that.
        let mut first = [0u64];
        match read(&file, 0, &mut first) {
            Ok(0) => Err(Error::not_available(format!("/proc/{name} is empty: something hides it, as containers do"))),
            _ => Ok(file),
        }
    }
}

/// The flags of a private anonymous page that no other process maps.
pub(super) fn own_flags(file: &FrameFile) -> Option<PageFlags> {
    let mut flags = [0];
    let read = file.read(own_entry()?.frame()?.get(), &mut flags).ok()?;
    (read == 1).then_some(PageFlags::from_bits_retain(flags[0]))
}

/// The page-map entry of such a page, if it is resident.
pub(super) fn own_entry() -> Option<PageMapEntry> {
    let page = std::hint::black_box(Box::new(std::process::id()));
    let entry = own_entry_at((&raw const *page).addr() as u64);
    std::hint::black_box(&page);
    entry.filter(|entry| entry.is_present())
}

/// The page-map entry of an address of this program.
pub(super) fn own_entry_at(address: u64) -> Option<PageMapEntry> {
    let index = address / rustix::param::page_size() as u64;
    let mut entry = [0];
    let read = read(own_file("pagemap").ok()?, index, &mut entry).ok()?;
    (read == 1).then_some(PageMapEntry::new(entry[0]))
}

/// The lower of `end` and the end of what this program may scan. Ends below pmdb's own stack, which is near that limit,
/// take no system call.
pub(super) fn end_of_scan(end: u64, page: PageSize) -> u64 {
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
            let is_read = read(&own, index, &mut [0]).is_ok_and(|read| read == 1);
            let is_scanned = || sys::scan(&own, one, &mut [PageRegion::default()]);
            Ok::<_, Infallible>(is_read && is_scanned() != Err(Errno::FAULT))
        };
        covered_pages(page, covers).unwrap_or_else(|never| match never {})
    });
    pages << page.shift()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_beyond_every_offset_are_beyond_physical_memory() {
        let file = FrameFile::new("kpageflags", "CONFIG_PROC_PAGE_MONITOR");
        for frame in [1 << 60, u64::MAX / 8, u64::MAX] {
            match file.read(frame, &mut [0u64; 16]) {
                Ok(read) => assert_eq!(read, 0, "{frame:#x}"),
                Err(Error::NotPermitted { what, .. } | Error::NotAvailable { what }) => {
                    crate::skips::skip("source::physical_memory_has_ended", &what.to_string());
                }
                Err(error) => panic!("{frame:#x}: {error}"),
            }
        }
    }
}
