//! A directory under `/proc`, held open: what is read through it cannot turn into another process's.

use super::rights::raised;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use rustix::io::Result;
use std::fs::File;
use std::io::Read;

/// A handle on `/proc`, or on `/proc/PID`.
pub(super) struct Directory(OwnedFd);

impl Directory {
    /// Opens `path` without any right to what is in it. Where /proc is mounted with `hidepid=2`, even that takes rights.
    pub(super) fn open(path: &str) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        raised(|| openat(CWD, path, flags, Mode::empty())).map(Directory)
    }

    /// The handle itself, for opens of other kinds.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a file of it for reading.
    pub(super) fn file(&self, path: &str) -> Result<OwnedFd> {
        // NONBLOCK and NOCTTY: should a link such as `exe` ever lead to something else than a file.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        raised(|| openat(&self.0, path, flags, Mode::empty()))
    }

    /// The whole of a file.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>> {
        // Of some (`stat`, `syscall`) the kernel asks who reads, and not who opened.
        raised(|| read_all(self.file(path)?))
    }

    /// Where a link leads, as the kernel writes it.
    pub(super) fn link(&self, path: &str) -> Result<Vec<u8>> {
        raised(|| readlinkat(&self.0, path, Vec::new())).map(|target| target.into_bytes())
    }

    /// The names in it, or in a directory below it, that are numbers: processes, threads.
    pub(super) fn numbers(&self, path: &str) -> Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // `hidepid` decides as the entries are read.
        raised(|| {
            let directory = Dir::new(openat(&self.0, path, flags, Mode::empty())?)?;
            let mut numbers = Vec::new();
            for entry in directory {
                let name = entry?
                    .file_name()
                    .to_str()
                    .ok()
                    .and_then(|name| name.parse::<u32>().ok());
                numbers.extend(name);
            }
            Ok(numbers)
        })
    }
}

/// Reads to the end.
pub(super) fn read_all(file: OwnedFd) -> Result<Vec<u8>> {
    // Without a size to go by, the reads of an empty buffer start with 32 bytes; and `/proc` makes its text anew for each.
    const FIRST: usize = 4096;
    let mut bytes = Vec::with_capacity(FIRST);
    let read = File::from(file).read_to_end(&mut bytes);
    read.map_err(|error| {
        rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
    })?;
    Ok(bytes)
}
