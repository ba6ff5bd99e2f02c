//! This process's own pages: mapped, written, read and advised (madvise).
#![allow(unsafe_code)]

use crate::kernel::{AddressRange, VirtualAddress};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr;

/// `MADV_GUARD_INSTALL`, Linux 6.13.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Whole pages of this process. They stay mapped as long as it lives, and no Rust reference points to them.
#[derive(Clone, Copy)]
pub(super) struct OwnPages {
    start: *mut u8,
    count: usize,
    page: usize,
}

impl OwnPages {
    /// The whole pages within `length` bytes at `start`.
    ///
    /// # Safety
    /// The bytes are mapped readable and writable, stay so until the process ends, and are used by nobody else.
    pub(super) unsafe fn whole_pages_of(start: *mut u8, length: usize, page: usize) -> Self {
        let skipped = start.align_offset(page).min(length);
        OwnPages { start: start.wrapping_add(skipped), count: (length - skipped) / page, page }
    }

    /// `count` fresh pages of anonymous private memory, between two that cannot be touched, so that they are a region
    /// of their own. Where the kernel keeps such names (Linux 5.17) the region is called `name`.
    pub(super) fn anonymous(count: usize, page: usize, name: &CStr) -> io::Result<Self> {
        let length = count * page;
        // SAFETY: a fresh mapping at an address that the kernel picks changes nothing that exists.
        let mapping = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                page + length + page,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(during("mapping anonymous memory"))?;
        let start = mapping.cast::<u8>().wrapping_add(page);
        // SAFETY: all but the first and the last page of the mapping just made.
        unsafe { rustix::mm::mprotect(start.cast(), length, MprotectFlags::READ | MprotectFlags::WRITE) }
            .map_err(during("making anonymous memory writable"))?;
        // SAFETY: mapped and readable; the reference ends with the call, which hands only the address to the kernel.
        let region = unsafe { std::slice::from_raw_parts(start, length) };
        // Only a convenience: kernels before 5.17, or without CONFIG_ANON_VMA_NAME, refuse.
        let _ = rustix::process::set_virtual_memory_region_name(region, Some(name));
        Ok(OwnPages { start, count, page })
    }

    /// The first `count` pages of `file`, readable and writable.
    pub(super) fn of_file(file: BorrowedFd<'_>, flags: MapFlags, count: usize, page: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address that the kernel picks changes nothing that exists.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), count * page, protection, flags, file, 0) }
            .map_err(during("mapping a file"))?
            .cast();
        Ok(OwnPages { start, count, page })
    }

    /// The number of pages.
    pub(super) fn count(self) -> usize {
        self.count
    }

    /// Their addresses.
    pub(super) fn range(self) -> Option<AddressRange> {
        byte_range(self.start, self.count * self.page)
    }

    /// The pages with these indices, as far as they exist.
    pub(super) fn slice(self, pages: Range<usize>) -> Self {
        let end = pages.end.min(self.count);
        let first = pages.start.min(end);
        OwnPages { start: self.start.wrapping_add(first * self.page), count: end - first, page: self.page }
    }

    /// Moves the start up to a multiple of `bytes`, keeping `bytes` from there.
    pub(super) fn aligned(self, bytes: usize) -> Self {
        let skipped = self.start.align_offset(bytes) / self.page;
        self.slice(skipped..skipped + bytes / self.page)
    }

    /// Writes a byte to each page.
    pub(super) fn write(self) {
        for address in self.addresses() {
            // SAFETY: within pages that are mapped writable, and nobody holds a reference to them. A file behind them
            // cannot shrink: it is the running program, or one that only this process knows.
            unsafe { address.write_volatile(0x5a) }
        }
    }

    /// Reads a byte of each page.
    pub(super) fn read(self) {
        for address in self.addresses() {
            // SAFETY: as for `write`.
            unsafe { address.read_volatile() };
        }
    }

    /// Gives the frames back to the kernel; the pages read as fresh ones afterwards.
    pub(super) fn give_back(self) -> io::Result<()> {
        self.advise(Advice::LinuxDontNeed)
    }

    /// Asks for huge pages.
    pub(super) fn prefer_huge(self) -> io::Result<()> {
        self.advise(Advice::LinuxHugepage)
    }

    /// Does not pass the pages on to forked children.
    pub(super) fn keep_from_children(self) -> io::Result<()> {
        self.advise(Advice::LinuxDontFork)
    }

    fn advise(self, advice: Advice) -> io::Result<()> {
        // SAFETY: whole mapped pages; nobody holds a reference to what they hold, which may change.
        unsafe { rustix::mm::madvise(self.start.cast(), self.count * self.page, advice) }.map_err(io::Error::from)
    }

    /// Makes guard pages of them: touching one is a fault, yet they stay part of their region. Says whether the kernel
    /// has guard pages; if not, their protection is taken away, which makes them a region of their own.
    pub(super) fn guard(self) -> io::Result<bool> {
        let length = self.count * self.page;
        // SAFETY: whole mapped pages that nobody holds a reference to, and that are not touched from here on.
        if unsafe { libc::madvise(self.start.cast(), length, MADV_GUARD_INSTALL) } == 0 {
            return Ok(true);
        }
        // SAFETY: as above.
        unsafe { rustix::mm::mprotect(self.start.cast(), length, MprotectFlags::empty()) }
            .map_err(during("making a page inaccessible"))?;
        Ok(false)
    }

    fn addresses(self) -> impl Iterator<Item = *mut u8> {
        (0..self.count).map(move |index| self.start.wrapping_add(index * self.page))
    }
}

/// The range of `length` bytes at `start`.
pub(super) fn byte_range(start: *const u8, length: usize) -> Option<AddressRange> {
    let first = VirtualAddress::new(u64::try_from(start.addr()).ok()?);
    let end = first.checked_add(u64::try_from(length).ok()?)?;
    AddressRange::new(first, end)
}

/// An error of the kernel with what was being done.
pub(super) fn during(what: &str) -> impl Fn(Errno) -> io::Error {
    move |error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{what}: {error}"))
    }
}
