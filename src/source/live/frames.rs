//! `/proc/kpageflags` and its kin: a 64-bit word for each page frame.

use super::directory::Directory;
use super::{rights, words};
use crate::source::{Error, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::OnceLock;

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
        words::read(file, first, into).map_err(|error| Error::io(format!("reading /proc/{}", self.name), error))
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
        match words::read(&file, 0, &mut first) {
            Ok(0) => Err(Error::not_available(format!("/proc/{name} is empty: something hides it, as containers do"))),
            _ => Ok(file),
        }
    }
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
