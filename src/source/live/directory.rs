//! A directory under `/proc`, held open: reads through it never reach another process.

use crate::budget::Budget;
use crate::kernel::Device;
use crate::own::rights::{in_first_user_namespace, usable_capabilities, with_raised_rights};
use crate::source::Credentials;
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RawDir, StatxFlags, openat, readlinkat, statx};
use rustix::io::{Errno, Result, read, retry_on_intr, write};
use std::sync::OnceLock;

/// The free capacity in bytes for each read. `/proc` makes its text anew for each read of a small file, and returns at
/// most a page of a large one.
const LEAST: usize = 4 << 10;

/// A handle on `/proc`, or on `/proc/PID`.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

impl Directory {
    /// Opens `path` as a handle only (O_PATH). If /proc is mounted with `hidepid=2`, even that needs rights.
    pub(super) fn open(path: &str) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        with_raised_rights(|| openat(CWD, path, flags, Mode::empty())).map(Directory)
    }

    /// Returns `/proc`, opened once.
    pub(super) fn proc() -> Result<&'static Self> {
        static PROC: OnceLock<Directory> = OnceLock::new();
        match PROC.get() {
            Some(proc) => Ok(proc),
            None => Self::open("/proc").map(|proc| PROC.get_or_init(|| proc)),
        }
    }

    /// Returns the handle, for other ways to open files below it.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a file of the directory for reading.
    pub(super) fn file(&self, path: &str) -> Result<OwnedFd> {
        // NONBLOCK and NOCTTY are for links such as `exe`, which may lead to other objects than files.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        with_raised_rights(|| openat(&self.0, path, flags, Mode::empty()))
    }

    /// Writes to a file of the directory, in one system call.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        with_raised_rights(|| {
            let file = openat(&self.0, path, flags, Mode::empty())?;
            retry_on_intr(|| write(&file, bytes)).map(drop)
        })
    }

    /// Reads a whole file.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>> {
        // For some files (`stat`, `syscall`) the kernel checks the rights of the reader, not of the opener.
        with_raised_rights(|| read_all(self.file(path)?))
    }

    /// Reads a whole file. Each part costs one step, and a budget that is over interrupts the read.
    pub(super) fn read_within(&self, path: &str, budget: &mut Budget) -> Result<Vec<u8>> {
        with_raised_rights(|| {
            let file = self.file(path)?;
            read_to_end(|bytes, _| {
                budget.look().map_err(|_| Errno::CANCELED)?;
                read(&file, spare_capacity(bytes))
            })
        })
    }

    /// Returns the result of one read of a file.
    pub(super) fn read_beginning(&self, path: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(LEAST);
        with_raised_rights(|| retry_on_intr(|| read(self.file(path)?, spare_capacity(&mut bytes))))?;
        Ok(bytes)
    }

    /// Returns the target of a link, as the kernel writes it.
    pub(super) fn link(&self, path: &str) -> Result<Vec<u8>> {
        with_raised_rights(|| readlinkat(&self.0, path, Vec::new())).map(|target| target.into_bytes())
    }

    /// Returns device and inode (`stat`) of the target of a link such as `exe` or `root`, without opening it. A file
    /// server, which may not reply, gets no request.
    pub(super) fn behind_link(&self, path: &str) -> Result<(Device, u64)> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let behind = with_raised_rights(|| openat(&self.0, path, flags, Mode::empty()))?;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = statx(behind, "", flags, StatxFlags::INO)?;
        let (major, minor) = (found.stx_dev_major, found.stx_dev_minor);
        Ok((Device { major, minor }, found.stx_ino))
    }

    /// Returns the names in the directory, or in one below it, that are numbers: processes, threads.
    pub(super) fn numbers(&self, path: &str) -> Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The kernel applies `hidepid` when the entries are read.
        with_raised_rights(|| {
            let directory = Dir::new(openat(&self.0, path, flags, Mode::empty())?)?;
            let mut numbers = Vec::new();
            for entry in directory {
                let name = entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok());
                numbers.extend(name);
            }
            Ok(numbers)
        })
    }
    /// Returns the starts of the mappings of files in `map_files`. For each read of the list the kernel walks all
    /// mappings (proc_map_files_readdir in fs/proc/base.c), so the last read, which would only find the end, is
    /// omitted.
    pub(super) fn starts_of_mappings(&self) -> Result<Vec<u64>> {
        /// The most bytes of an entry (`struct linux_dirent64`), whose name is two addresses.
        const LARGEST: usize = 64;
        const ROOM: usize = 64 << 10;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        with_raised_rights(|| {
            let opened = openat(&self.0, "map_files", flags, Mode::empty())?;
            let mut room: Vec<u8> = Vec::with_capacity(ROOM);
            let mut entries = RawDir::new(opened, room.spare_capacity_mut());
            let (mut starts, mut in_read) = (Vec::new(), 0);
            while let Some(entry) = entries.next() {
                let name = entry?;
                let start = name.file_name().to_str().ok().and_then(|name| name.split_once('-'));
                starts.extend(start.and_then(|(start, _)| u64::from_str_radix(start, 16).ok()));
                in_read += LARGEST;
                if entries.is_buffer_empty() {
                    if in_read + LARGEST < ROOM {
                        break;
                    }
                    in_read = 0;
                }
            }
            Ok(starts)
        })
    }
}

/// Opens a file of `/proc/self` for reading.
pub(super) fn own_file(name: &str) -> Result<OwnedFd> {
    Directory::proc()?.file(&format!("self/{name}"))
}

/// Reads a file to its end.
pub(super) fn read_all(file: OwnedFd) -> Result<Vec<u8>> {
    read_to_end(|bytes, _| read(&file, spare_capacity(bytes)))
}

/// Calls `append`, with the number of bytes read so far, until it adds none. Its buffer is not cleared first.
pub(super) fn read_to_end(mut append: impl FnMut(&mut Vec<u8>, u64) -> Result<usize>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        // Doubles the capacity if it is too small.
        bytes.try_reserve(LEAST).map_err(|_| Errno::NOMEM)?;
        let so_far = bytes.len() as u64;
        if retry_on_intr(|| append(&mut bytes, so_far))? == 0 {
            return Ok(bytes);
        }
    }
}

/// Returns the rights of pmdb.
pub(super) fn credentials() -> Credentials {
    Credentials {
        user: rustix::process::geteuid().as_raw(),
        rights: usable_capabilities(),
        in_first_user_namespace: in_first_user_namespace(),
    }
}
