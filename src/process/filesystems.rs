//! Filesystems in memory that are mounted: which there are, and how full they are.

use super::{Machine, Process, Result, core_notes};
use crate::access::Error;
use crate::budget::Budget;
use crate::kernel::mapped_file::FilesystemRoom;
use crate::kernel::mounts::{MemoryFiles, Mount};
use crate::source::{File, Probe};

impl Process {
    /// Returns the mounts with files in memory (tmpfs, hugetlbfs) that the process sees. Each mount costs one step.
    ///
    /// # Errors
    /// Fails if the mounts cannot be read, or the budget is over.
    pub fn memory_mounts(&self, budget: &mut Budget) -> Result<Vec<Mount>> {
        core_notes::mounts(&**self.source(), File::Mounts, budget).map(in_memory)
    }

    /// Returns how full the filesystem of such a mount is. No file is opened.
    ///
    /// # Errors
    /// Fails if the root of the process may not be entered, the mount is not visible, or the filesystem has no limit:
    /// then it does not count its files.
    pub fn filesystem_room(&self, mount: &Mount) -> Result<FilesystemRoom> {
        room(self.source().fetch(Probe::Filesystem(mount.device, mount.point.as_bytes())), mount)
    }
}

impl Machine {
    /// Returns the mounts with files in memory that pmdb sees. Each mount costs one step.
    ///
    /// # Errors
    /// Fails if the mounts cannot be read, or the budget is over.
    pub fn memory_mounts(&self, budget: &mut Budget) -> Result<Vec<Mount>> {
        core_notes::mounts(self.source(), File::OwnMounts, budget).map(in_memory)
    }

    /// Returns how full the filesystem of such a mount is. No file is opened.
    ///
    /// # Errors
    /// Fails like [`Process::filesystem_room`].
    pub fn filesystem_room(&self, mount: &Mount) -> Result<FilesystemRoom> {
        room(self.source().fetch(Probe::OwnFilesystem(mount.device, mount.point.as_bytes())), mount)
    }
}

fn in_memory(mut mounts: Vec<Mount>) -> Vec<Mount> {
    mounts.retain(|mount| matches!(mount.memory_files(), Some(MemoryFiles::Shared | MemoryFiles::Hugetlb)));
    mounts
}

fn room(words: Result<Vec<u64>>, mount: &Mount) -> Result<FilesystemRoom> {
    let uncounted = || Error::not_available(format!("the {} at {} has no limit", mount.filesystem, mount.point));
    FilesystemRoom::from_words(&words?).ok_or_else(uncounted)
}
