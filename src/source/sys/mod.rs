//! System calls without a safe wrapper in `rustix`. This module has the only `unsafe` of `source`.
#![allow(unsafe_code)]

pub(crate) mod own;

use super::question::{Mapping, PageRegion, Query, Scan};
use crate::kernel::{PageFlags, PageMapEntry};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::fs::FileType;
use rustix::io::{Errno, Result, pread, retry_on_intr};
use rustix::ioctl::{self, Ioctl, IoctlOutput, Opcode};
use rustix::mm;
use rustix::process::Pid;
use std::cmp::Ordering;
use std::ffi::c_void;

/// A 64-bit type for which every bit pattern is a valid value, so that reads can write to it directly.
///
/// # Safety
/// The type must have the size and alignment of a `u64` and no invalid values.
pub unsafe trait Word: Copy {}

// SAFETY: it is one.
unsafe impl Word for u64 {}
// SAFETY: `repr(transparent)` around a `u64` that is valid whatever its bits.
unsafe impl Word for PageMapEntry {}
// SAFETY: `repr(transparent)` around a `u64`; unknown bits are kept.
unsafe impl Word for PageFlags {}

/// Returns the same words as plain numbers.
pub fn as_words<T: Word>(words: &mut [T]) -> &mut [u64] {
    // SAFETY: `Word` promises the layout of a `u64`, and that whatever is written is a value.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}

/// The most bytes of one read: throughput is constant from 32 KiB on.
const READ_BYTES: usize = 64 << 10;

/// Fills `into` with 64-bit words from word `first` of `file` on, and returns how many precede its end.
pub(crate) fn read_words(file: impl AsFd, first: u64, into: &mut [u64]) -> Result<usize> {
    const WORD: usize = size_of::<u64>();
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let words = rest.len().min(READ_BYTES / WORD);
        // SAFETY: a number takes whatever bytes are written; `words` is within `rest`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(rest.as_mut_ptr().cast::<u8>(), words * WORD) };
        let offset = first.checked_add(done as u64).and_then(|word| word.checked_mul(WORD as u64));
        let Some(offset) = offset.filter(|&offset| i64::try_from(offset).is_ok()) else {
            break;
        };
        let read = retry_on_intr(|| pread(&file, &mut *bytes, offset))? / WORD;
        if read == 0 {
            break;
        }
        done += read;
    }
    Ok(done)
}

/// The objects that `kcmp` compares (`enum kcmp_type` in include/uapi/linux/kcmp.h).
#[derive(Clone, Copy)]
pub(crate) enum Compared {
    /// Address spaces.
    Memory = 1,
    /// Tables of file descriptors.
    Files = 2,
}

/// Compares objects of two processes or threads. Equal means the same object; the order is arbitrary. `None` if the
/// kernel does not compare: one of them is gone, rights are missing, or it was built without `kcmp`.
pub(crate) fn compare(what: Compared, one: u32, other: u32) -> Option<Ordering> {
    let pid = |pid: u32| libc::pid_t::try_from(pid).ok();
    // SAFETY: the call takes five numbers and no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, pid(one)?, pid(other)?, what as libc::c_int, 0usize, 0usize) };
    match answer {
        0 => Some(Ordering::Equal),
        1 => Some(Ordering::Less),
        2 => Some(Ordering::Greater),
        _ => None,
    }
}

/// `struct pm_scan_arg` (Linux 6.7).
#[repr(C)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Scans a page map (PAGEMAP_SCAN). Returns the number of ranges, and where the walk stopped: `scan.end` unless `into`
/// was full.
pub(crate) fn scan(page_map: impl AsFd, scan: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
    let argument = ScanArgument {
        size: size_of::<ScanArgument>() as u64,
        flags: 0,
        start: scan.start,
        end: scan.end,
        walk_end: 0,
        vec: into.as_mut_ptr().addr() as u64,
        vec_len: into.len() as u64,
        max_pages: scan.max_pages,
        category_inverted: 0,
        category_mask: 0,
        category_anyof_mask: scan.any_of,
        return_mask: scan.returned,
    };
    into.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel writes `walk_end` and at most `vec_len` elements of `vec`, which `into` lends for that long.
    let (found, argument) = unsafe { ioctl::ioctl(page_map, Exchange::<ScanArgument, b'f', 16>(argument))? };
    let found = usize::try_from(found).ok();
    let found = found.filter(|&found| found <= into.len());
    Ok((found.ok_or(Errno::OVERFLOW)?, argument.walk_end))
}

/// `struct procmap_query` (Linux 6.11).
#[repr(C)]
#[derive(Default)]
struct MapsQuery {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// The longest name that the kernel returns (PATH_MAX).
const NAME_BYTES: usize = 4096;

/// Queries a mapping (PROCMAP_QUERY). Fails with ENOENT if there is no such mapping, and with ENOTTY before Linux 6.11.
pub(crate) fn query_mapping(maps: impl AsFd, question: Query) -> Result<Mapping> {
    /// `PROCMAP_QUERY_COVERING_OR_NEXT_VMA` (include/uapi/linux/fs.h).
    const OR_NEXT: u64 = 0x10;
    let (address, query_flags) = match question {
        Query::At(address) => (address, 0),
        Query::From(address) => (address, OR_NEXT),
    };
    let mut name = [0u8; NAME_BYTES];
    let query = MapsQuery {
        size: size_of::<MapsQuery>() as u64,
        query_addr: address.get(),
        query_flags,
        vma_name_size: NAME_BYTES as u32,
        vma_name_addr: name.as_mut_ptr().expose_provenance() as u64,
        ..MapsQuery::default()
    };
    // SAFETY: the kernel writes the structure and at most `vma_name_size` bytes of `name`, which outlives the call.
    let (_, answer) = unsafe { ioctl::ioctl(maps, Exchange::<MapsQuery, b'f', 17>(query))? };
    // The size includes the final zero byte; it is 0 without a name.
    let length = (answer.vma_name_size as usize).saturating_sub(1);
    Ok(Mapping {
        start: answer.vma_start,
        end: answer.vma_end,
        flags: answer.vma_flags,
        offset: answer.vma_offset,
        inode: answer.inode,
        device: (answer.dev_major, answer.dev_minor),
        name: name.get(..length).ok_or(Errno::OVERFLOW)?.to_vec(),
    })
}

/// Returns the number of pages in the page cache, of `length` bytes of `file` from `offset` on (cachestat(2), Linux
/// 6.5). The file is not read. Fails with EPERM if the caller could not write the file (Linux 6.13).
pub(crate) fn cached_pages(file: impl AsFd, offset: u64, length: u64) -> Result<u64> {
    /// libc has the name for few architectures. Since Linux 5.0 new system calls have the same number on all, except
    /// for the offsets of MIPS and of x32 (arch/*/…/syscall*.tbl).
    const CACHESTAT: libc::c_long = 451
        + if cfg!(any(target_arch = "mips", target_arch = "mips32r6")) {
            4000
        } else if cfg!(any(target_arch = "mips64", target_arch = "mips64r6")) {
            5000
        } else if cfg!(all(target_arch = "x86_64", target_pointer_width = "32")) {
            0x4000_0000
        } else {
            0
        };
    let range = [offset, length];
    // nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted
    let mut counts = [0u64; 5];
    // SAFETY: the kernel reads the two words of `struct cachestat_range` and writes the five of `struct cachestat`.
    let result = unsafe { libc::syscall(CACHESTAT, file.as_fd().as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) };
    match result {
        0 => Ok(counts[0]),
        _ => Err(last_error()),
    }
}

/// Returns for each page of `length` bytes of `file` from `offset` on whether it is in the page cache (mincore(2) of a
/// mapping without access). Callers must check first that they could write the file: to others the kernel reports every
/// page as cached (Linux 5.2).
pub(crate) fn cached_map(file: impl AsFd, offset: u64, length: usize) -> Result<Vec<bool>> {
    let (access, kind) = (mm::ProtFlags::empty(), mm::MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { mm::mmap(std::ptr::null_mut(), length, access, kind, file, offset)? };
    let mapping = ClosedPages { start, length };
    let mut residency = vec![0u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: the range is that of the mapping, and there is a byte for each page of it.
    let result = unsafe { libc::mincore(start, mapping.length, residency.as_mut_ptr()) };
    match result {
        0 => Ok(residency.into_iter().map(|byte| byte & 1 != 0).collect()),
        _ => Err(last_error()),
    }
}

/// Reads pages of `file` from `offset` on that are in the page cache, up to the first that is not. Returns the number
/// of bytes read. Callers must check first that they could write the file (see [`cached_map`]).
///
/// preadv2(2) with RWF_NOWAIT would bring pages in: since Linux 5.9 it starts read-ahead at a missing page, and at a
/// page with the mark of earlier read-ahead (`filemap_get_pages`). POSIX_FADV_RANDOM does not prevent that (6.18: the
/// page is there after EAGAIN). A mapping for random access does neither (`do_async_mmap_readahead`), but touching a
/// missing page reads it and its neighbours from disk. So mincore(2) checks a few pages right before they are read:
/// only a page that leaves the cache between these two calls is brought back. During the read, this program maps the
/// page and some cached ones around it (`filemap_map_pages`), which their map counts then include.
///
/// The mapping is read by process_vm_readv(2): if the file is truncated, only the read fails. That needs no rights.
/// `/proc/self/mem` would: it belongs to root in a program with file capabilities, which is not dumpable.
pub(crate) fn cached_bytes(file: impl AsFd, offset: u64, into: &mut [u8]) -> Result<usize> {
    let page = rustix::param::page_size();
    let skipped = usize::try_from(offset % page as u64).unwrap_or(0);
    let length = skipped.checked_add(into.len()).ok_or(Errno::OVERFLOW)?;
    if into.is_empty() {
        return Ok(0);
    }
    let (access, kind) = (mm::ProtFlags::READ, mm::MapFlags::PRIVATE);
    let start = offset - skipped as u64;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { mm::mmap(std::ptr::null_mut(), length, access, kind, file, start)? };
    let mapping = ClosedPages { start, length };
    // SAFETY: pages that are nobody else's; the advice changes nothing of what they hold.
    unsafe { mm::madvise(mapping.start, length, mm::Advice::Random)? };
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = skipped + done;
        let cached = mapping.cached_from(at / page)?;
        if cached == 0 {
            break;
        }
        let most = rest.len().min(cached * page - at % page);
        let part = rest.get_mut(..most).unwrap_or_default();
        let from = mapping.address() + at as u64;
        match retry_on_intr(|| own_memory(from, &mut *part)) {
            // The file was truncated.
            Ok(0) | Err(Errno::IO | Errno::FAULT) => break,
            Ok(read) => done += read,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Reads memory of this program from `address` on, which may become inaccessible during the read.
fn own_memory(address: u64, into: &mut [u8]) -> Result<usize> {
    let start = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(start), iov_len: into.len() };
    // SAFETY: the kernel writes at most the length of `into` to it, and checks its reads as for another process.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    usize::try_from(read).map_err(|_| last_error())
}

/// Returns the error of the last call of the C library.
fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Starts a child process that does `work` and ends. It is a copy of this process with one thread: `work` must not wait
/// for other threads.
pub(crate) fn in_child(work: impl FnOnce()) -> Result<Pid> {
    // SAFETY: the C library puts its own locks in order; the child ends without returning into the code of its parent.
    match unsafe { libc::fork() } {
        0 => {
            // Ctrl-C at the terminal must not stop the child.
            _ = rustix::process::setsid();
            _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the process at once, without cleaning up what belongs to its parent.
            unsafe { libc::_exit(0) }
        }
        child => Pid::from_raw(child).filter(|_| child > 0).ok_or_else(last_error),
    }
}

/// Closes a file of this process by its number, if its type is wanted. Only for a child of [`in_child`], which uses
/// none of these files.
pub(crate) fn close_if(number: RawFd, is_wanted: impl FnOnce(FileType) -> bool) {
    // SAFETY: a number that is looked at while nobody else in this process opens or closes files.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = rustix::fs::fstat(file);
    if stat.is_ok_and(|stat| is_wanted(FileType::from_raw_mode(stat.st_mode))) {
        // SAFETY: see above; the owner of the number never runs in this process.
        unsafe { rustix::io::close(number) };
    }
}

/// Pages that are mapped but never touched: of a file, which may be truncated, or of memory without access.
pub(crate) struct ClosedPages {
    start: *mut c_void,
    length: usize,
}

impl ClosedPages {
    /// Maps the first page of `file`, which may be shorter.
    pub(crate) fn map(file: impl AsFd) -> Result<Self> {
        let length = rustix::param::page_size();
        let (access, kind) = (mm::ProtFlags::empty(), mm::MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { mm::mmap(std::ptr::null_mut(), length, access, kind, file, 0)? };
        Ok(ClosedPages { start, length })
    }

    /// Maps a guard page (Linux 6.13), on which every access would fail.
    pub(crate) fn guard() -> Result<Self> {
        // include/uapi/asm-generic/mman-common.h; no library has it yet.
        const MADV_GUARD_INSTALL: i32 = 102;
        let length = rustix::param::page_size();
        let (access, kind) = (mm::ProtFlags::empty(), mm::MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { mm::mmap_anonymous(std::ptr::null_mut(), length, access, kind)? };
        let page = ClosedPages { start, length };
        // SAFETY: a page that is nobody else's and that nobody reads.
        match unsafe { libc::madvise(start, length, MADV_GUARD_INSTALL) } {
            0 => Ok(page),
            _ => Err(last_error()),
        }
    }

    /// Returns how many of the next few pages from `index` on are in the page cache, mapped or not.
    fn cached_from(&self, index: usize) -> Result<usize> {
        /// The most pages in one query. With more, a page has more time to leave the cache before it is read; fewer
        /// need more system calls.
        const MOST: usize = 16;
        let page = rustix::param::page_size();
        let at = index.checked_mul(page).filter(|&at| at < self.length);
        let at = at.ok_or(Errno::INVAL)?;
        let length = (self.length - at).min(MOST * page);
        let mut residency = [0u8; MOST];
        // SAFETY: a part of the mapping that begins on a page, and there is a byte for each page of it.
        let result = unsafe { libc::mincore(self.start.byte_add(at), length, residency.as_mut_ptr()) };
        let asked = residency.iter().take(length.div_ceil(page));
        match result {
            0 => Ok(asked.take_while(|&byte| byte & 1 != 0).count()),
            _ => Err(last_error()),
        }
    }

    /// Returns the address of the pages in this program.
    pub(crate) fn address(&self) -> u64 {
        self.start.addr() as u64
    }
}

impl Drop for ClosedPages {
    fn drop(&mut self) {
        // SAFETY: just what `map` mapped; no reference into it was ever made.
        _ = unsafe { mm::munmap(self.start, self.length) };
    }
}

/// `struct pidfd_info` as of Linux 6.13, of which only the mask and the exit code are used.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// Returns the exit status of a pidfd's process as `wait` gives it (PIDFD_GET_INFO, Linux 6.15). The kernel has it
/// after the parent has reaped the process.
pub fn exit_of(pidfd: impl AsFd) -> Option<i32> {
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    let info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel reads and writes just this structure, whose size is in the opcode.
    let (_, info) = unsafe { ioctl::ioctl(pidfd, Exchange::<_, 0xff, 11>(info)) }.ok()?;
    (info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// An ioctl `_IOWR(GROUP, NUMBER, T)`. Its output is the return value, and the structure that the kernel wrote.
struct Exchange<T, const GROUP: u8, const NUMBER: u8>(T);

// SAFETY: the number and the size of the structure make the opcode, as in include/uapi/linux/fs.h and pidfd.h; the
// kernel reads and writes just that structure and what it points to, for which the callers above answer.
unsafe impl<T, const GROUP: u8, const NUMBER: u8> Ioctl for Exchange<T, GROUP, NUMBER> {
    type Output = (i32, T);
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        ioctl::opcode::read_write::<T>(GROUP, NUMBER)
    }
    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }
    unsafe fn output_from_ptr(returned: IoctlOutput, argument: *mut c_void) -> Result<(i32, T)> {
        // SAFETY: `argument` is what `as_ptr` gave: a valid `T` of plain numbers, not used again by the caller.
        Ok((returned, unsafe { argument.cast::<T>().read() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    /// A file on a disk, all of it in the page cache except the pages `dropped`; `None` if the kernel does not drop
    /// them.
    fn without(pages: usize, dropped: std::ops::Range<usize>) -> Option<File> {
        let page = rustix::param::page_size();
        let folder = std::env::current_exe().expect("this program");
        // The folder of the build is on a disk, but may be closed to this user.
        let mut file = tempfile::tempfile_in(folder.parent()?).or_else(|_| tempfile::tempfile()).ok()?;
        for index in 0..pages {
            file.write_all(&vec![index as u8 + 1; page]).expect("to fill it");
        }
        file.sync_all().expect("to save it");
        let (offset, length) = (dropped.start * page, dropped.len() * page);
        let length = std::num::NonZeroU64::new(length as u64);
        rustix::fs::fadvise(&file, offset as u64, length, rustix::fs::Advice::DontNeed).ok()?;
        let cached = cached_map(&file, 0, pages * page).expect("a map");
        let expected: Vec<bool> = (0..pages).map(|index| !dropped.contains(&index)).collect();
        (cached == expected).then_some(file)
    }

    #[test]
    fn a_read_ends_at_the_first_page_that_is_not_cached_and_brings_none_in() {
        const PAGES: usize = 8;
        let page = rustix::param::page_size();
        let Some(file) = without(PAGES, 3..5) else {
            let name = "source::bytes_end_where_the_page_cache_does";
            return crate::skips::skip(name, "the kernel keeps the page cache of files here");
        };
        let before = cached_map(&file, 0, PAGES * page).expect("a map");
        let mut bytes = vec![0; PAGES * page];
        let mut read = |first: usize, offset: usize| {
            let into = bytes.get_mut(offset..).expect("room");
            let from = (first * page + offset) as u64;
            cached_bytes(&file, from, into).expect("a read")
        };
        assert_eq!(read(0, 0), 3 * page);
        assert_eq!(read(0, 5), 3 * page - 5);
        assert_eq!(read(3, 0), 0);
        assert_eq!(read(4, 7), 0);
        // Up to the end of the file.
        assert_eq!(read(5, 0), 3 * page);
        assert!(bytes[..page].iter().all(|&byte| byte == 6));
        assert_eq!(cached_map(&file, 0, PAGES * page).expect("a map"), before, "pages in the page cache");
    }
}
