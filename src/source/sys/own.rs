//! Memory of pmdb that it changes, to check whether the kernel's records of it change as expected.

use super::last_error;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::mm;
use std::ffi::c_void;

/// Writable memory, to which no reference is ever made.
pub(crate) struct OwnMemory {
    start: *mut c_void,
    length: usize,
}

impl OwnMemory {
    /// Maps anonymous memory, which is untouched.
    pub(crate) fn anonymous(length: usize) -> Result<Self> {
        let (access, kind) = (mm::ProtFlags::READ | mm::ProtFlags::WRITE, mm::MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { mm::mmap_anonymous(std::ptr::null_mut(), length, access, kind)? };
        Ok(OwnMemory { start, length })
    }

    /// Maps a file of pmdb, shared.
    pub(crate) fn of_file(file: impl AsFd, length: usize) -> Result<Self> {
        let (access, kind) = (mm::ProtFlags::READ | mm::ProtFlags::WRITE, mm::MapFlags::SHARED);
        // SAFETY: as above.
        let start = unsafe { mm::mmap(std::ptr::null_mut(), length, access, kind, file, 0)? };
        Ok(OwnMemory { start, length })
    }

    /// Returns the address of the memory.
    pub(crate) fn address(&self) -> u64 {
        self.start.addr() as u64
    }

    fn at(&self, offset: usize, length: usize) -> Result<*mut u8> {
        let fits = offset.checked_add(length).is_some_and(|end| end <= self.length);
        // SAFETY: within the mapping.
        if fits { Ok(unsafe { self.start.cast::<u8>().add(offset) }) } else { Err(Errno::FAULT) }
    }

    /// Writes bytes at `offset`.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let to = self.at(offset, bytes.len())?;
        // SAFETY: `at` has checked that the bytes are within the mapping, which nobody else uses.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Requests huge pages in a part (MADV_HUGEPAGE).
    pub(crate) fn advise_huge(&self, offset: usize, length: usize) -> Result<()> {
        let start = self.at(offset, length)?;
        // SAFETY: pages that nobody else uses; the advice changes nothing of what they hold.
        unsafe { mm::madvise(start.cast(), length, mm::Advice::LinuxHugepage) }
    }

    /// Collapses a part that was written to into huge pages, even if they are switched off (Linux 6.1 and later).
    pub(crate) fn collapse(&self, offset: usize, length: usize) -> Result<()> {
        let start = self.at(offset, length)?;
        // SAFETY: pages that nobody else uses; what they hold stays.
        let answer = unsafe { libc::madvise(start.cast(), length, libc::MADV_COLLAPSE) };
        if answer == 0 { Ok(()) } else { Err(last_error()) }
    }

    /// Makes a part read-only permanently.
    pub(crate) fn protect(&self, offset: usize, length: usize) -> Result<()> {
        let start = self.at(offset, length)?;
        // SAFETY: pages that nobody else uses, and that are not written to any more.
        unsafe { mm::mprotect(start.cast(), length, mm::MprotectFlags::READ) }
    }

    /// Puts a byte at `offset` into a pipe by reference, so that the pipe holds a reference to its page.
    pub(crate) fn lend(&self, offset: usize, pipe: impl AsFd) -> Result<()> {
        let byte = libc::iovec { iov_base: self.at(offset, 1)?.cast(), iov_len: 1 };
        // SAFETY: the kernel reads one iovec, and refers to a page of this mapping, whose bytes nobody needs.
        let moved = unsafe { libc::vmsplice(pipe.as_fd().as_raw_fd(), &byte, 1, libc::SPLICE_F_NONBLOCK) };
        if moved == 1 { Ok(()) } else { Err(last_error()) }
    }

    /// Registers buffers of a page each from `offset` on with io_uring, which pins their pages.
    pub(crate) fn pin(&self, ring: &OwnedFd, offset: usize, buffers: usize, page: usize) -> Result<()> {
        /// `IORING_REGISTER_BUFFERS` (include/uapi/linux/io_uring.h).
        const REGISTER: libc::c_uint = 0;
        let buffer = |index: usize| {
            let iov_base = self.at(offset + index * page, page)?.cast();
            Ok(libc::iovec { iov_base, iov_len: page })
        };
        let buffers = (0..buffers).map(buffer).collect::<Result<Vec<_>>>()?;
        // SAFETY: the kernel reads the iovecs, and pins pages of this mapping, whose bytes nobody needs.
        let done = unsafe {
            libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), REGISTER, buffers.as_ptr(), buffers.len())
        };
        if done == 0 { Ok(()) } else { Err(last_error()) }
    }
}

/// Unregisters the buffers of [`OwnMemory::pin`].
pub(crate) fn unpin(ring: &OwnedFd) -> Result<()> {
    /// `IORING_UNREGISTER_BUFFERS`
    const UNREGISTER: libc::c_uint = 1;
    let (ring, none) = (ring.as_raw_fd(), std::ptr::null::<c_void>());
    // SAFETY: the call takes no pointer.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, ring, UNREGISTER, none, 0) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Opens a new io_uring, to which nothing is queued.
pub(crate) fn io_uring() -> Result<OwnedFd> {
    /// The size of `struct io_uring_params`.
    const PARAMETERS: usize = 120;
    // Words, because of their alignment.
    let mut parameters = [0u64; PARAMETERS / 8];
    // SAFETY: the kernel reads and writes just this structure.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    match i32::try_from(ring) {
        // SAFETY: a new descriptor, which nobody else has.
        Ok(ring) if ring >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(ring) }),
        _ => Err(last_error()),
    }
}

/// A process that shares all memory of this one, until this value is dropped. It only waits.
pub(crate) struct Sharer {
    process: libc::pid_t,
    /// A pipe whose end ends the process, also if pmdb is killed.
    input: Option<OwnedFd>,
}

impl Sharer {
    /// Starts the process. It sends no signal when it ends, so that no caller that waits for children finds it.
    pub(crate) fn start() -> Result<Self> {
        let (output, input) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // SAFETY: without flags this is a fork. In the child only system calls are made, which touch no lock and no
        // memory but a byte of its own stack, and it ends here.
        let process = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
        match i32::try_from(process) {
            Ok(0) => {
                let mut byte = 0u8;
                // SAFETY: as above.
                unsafe {
                    libc::close(input.as_raw_fd());
                    libc::read(output.as_raw_fd(), (&raw mut byte).cast(), 1);
                    libc::_exit(0)
                }
            }
            Ok(process) if process > 0 => Ok(Sharer { process, input: Some(input) }),
            _ => Err(last_error()),
        }
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        drop(self.input.take());
        // SAFETY: a child of this process, which nobody else knows; its status is not asked for.
        while unsafe { libc::waitpid(self.process, std::ptr::null_mut(), libc::__WALL) } == -1
            && last_error() == Errno::INTR
        {}
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        // SAFETY: just what was mapped; no reference into it was ever made.
        _ = unsafe { mm::munmap(self.start, self.length) };
    }
}
