//! The file descriptors of a process, in its own table and in those of threads that have one of their own: what may have
//! pinned memory, and what is in memory itself.

use super::{Process, Result};
use crate::budget::Budget;
use crate::kernel::descriptors::{MemoryLink, PinningDevice, mount_id, registered_buffers};
use crate::kernel::mapped_file::MappedFile;
use crate::kernel::{AddressRange, Name, maps};
use crate::source::{self, File, List, Probe};
use std::collections::BTreeMap;

/// A file descriptor through which a process may have pinned memory.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PinningDescriptor {
    /// The thread in whose table it is, if that is not the table of the process.
    pub thread: Option<u32>,
    /// Its number.
    pub number: u32,
    /// What it is for.
    pub device: PinningDevice,
    /// The buffers that are registered with it, as far as the kernel lists them.
    pub buffers: Vec<AddressRange>,
}

/// A file descriptor of an object that is in memory: a memfd, a file of tmpfs or of a hugetlb pool, secret memory, a
/// buffer that drivers share, memory of a virtual machine.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct MemoryDescriptor {
    /// The thread in whose table it is, if that is not the table of the process.
    pub thread: Option<u32>,
    /// Its number.
    pub number: u32,
    /// Where its link leads, without the kernel's mark for deleted files.
    pub name: Name,
    /// Whether that mark is there.
    pub deleted: bool,
    /// What `stat` and `statfs` have of it.
    pub file: MappedFile,
}

/// A file descriptor as it is listed.
struct ListedDescriptor {
    thread: Option<u32>,
    number: u32,
    link: Vec<u8>,
}

impl ListedDescriptor {
    /// Its file in `fdinfo`.
    fn info(&self) -> File {
        match self.thread {
            Some(thread) => File::ThreadDescriptorInfo(thread, self.number),
            None => File::DescriptorInfo(self.number),
        }
    }
}

impl Process {
    /// Its file descriptors through which it may have pinned memory, those of threads with a table of their own too.
    /// Those that are closed meanwhile are left out.
    ///
    /// # Errors
    /// They may not be read, or the source has no list of them.
    pub fn pinning_descriptors(&self) -> Result<Vec<PinningDescriptor>> {
        let mut found: Vec<PinningDescriptor> = Vec::new();
        for one in self.descriptors()? {
            let Some(device) = PinningDevice::of_link(&one.link) else {
                continue;
            };
            let info = (device == PinningDevice::IoUring).then(|| self.source().whole(one.info()).ok()).flatten();
            let buffers = registered_buffers(&info.unwrap_or_default()).collect();
            let ListedDescriptor { thread, number, .. } = one;
            let new = PinningDescriptor { thread, number, device, buffers };
            let what = |one: &PinningDescriptor| (one.number, one.device, one.buffers.clone());
            if found.iter().all(|known| what(known) != what(&new)) {
                found.push(new);
            }
        }
        Ok(found)
    }

    /// Its file descriptors of objects in memory, those of threads with a table of their own too. Nothing is opened,
    /// and no server is asked: of a file in a directory, the number of its mount tells whether it is in memory. Each
    /// descriptor is a step.
    ///
    /// # Errors
    /// They may not be read, the source has no list of them, or the budget is over.
    pub fn memory_descriptors(&self, budget: &mut Budget) -> Result<Vec<MemoryDescriptor>> {
        let mounts = source::mounts(&self.source().whole(File::Mounts)?, budget)?;
        let in_memory: BTreeMap<u32, bool> =
            mounts.iter().map(|mount| (mount.id, mount.memory_files().is_some())).collect();
        let mut found = Vec::new();
        for one in self.descriptors()? {
            budget.go_on()?;
            let Some(link) = MemoryLink::of(&one.link) else {
                continue;
            };
            let mount = self.source().whole(one.info()).ok().and_then(|info| mount_id(&info));
            let is_asked = match mount.and_then(|mount| in_memory.get(&mount)) {
                Some(&is_in_memory) => is_in_memory,
                None => link == MemoryLink::Object,
            };
            if !is_asked {
                continue;
            }
            let ListedDescriptor { thread, number, link } = one;
            let words = self.source().probe(Probe::Descriptor(thread, number));
            let Some(file) = words.ok().and_then(|words| MappedFile::from_words(&words)) else {
                continue;
            };
            let (name, deleted) = maps::name(&link);
            found.push(MemoryDescriptor { thread, number, name, deleted, file });
        }
        Ok(found)
    }

    /// Those of the process, and then those of threads with a table of their own.
    fn descriptors(&self) -> Result<Vec<ListedDescriptor>> {
        let mut found = self.descriptors_in(None)?;
        let own = self.identity().pid;
        // A source without threads has no tables of theirs either.
        for thread in self.threads().unwrap_or_default().into_iter().filter(|thread| !thread.has_ended()) {
            // Tables that cannot be compared are read: the same descriptors are found again.
            let is_own = || self.source().word(Probe::CompareFiles(own, thread.id)) == Some(0);
            if thread.id != own && !is_own() {
                found.extend(self.descriptors_in(Some(thread.id)).unwrap_or_default());
            }
        }
        Ok(found)
    }

    /// Those in the table of a thread, or of the process, by number.
    fn descriptors_in(&self, thread: Option<u32>) -> Result<Vec<ListedDescriptor>> {
        let listed = self.source().list(thread.map_or(List::Descriptors, List::DescriptorsOf))?;
        let listed = listed.into_iter().filter_map(|one| Some((one.pid, one.program?)));
        let mut found: Vec<_> = listed.map(|(number, link)| ListedDescriptor { thread, number, link }).collect();
        found.sort_unstable_by_key(|one| one.number);
        Ok(found)
    }
}
