//! The file descriptors of a process, in its own table and in those of threads that have one of their own: what may have
//! pinned memory, and what is in memory itself.

use super::{Process, Result};
use crate::access;
use crate::budget::{Budget, until_interrupted};
use crate::kernel::descriptors::{
    GraphicsClient, MemoryLink, PinningDevice, RingBytes, graphics_client, registered_buffers,
};
use crate::kernel::mapped_file::{FileType, MappedFile};
use crate::kernel::mounts::Mount;
use crate::kernel::{AddressRange, Device, Name, maps};
use crate::source::{File, List, OnMount, Probe};
use std::collections::{BTreeMap, BTreeSet};

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

/// A file descriptor of something that has memory of the kernel, whose size its `fdinfo` has.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct KernelDescriptor {
    /// The thread in whose table it is, if that is not the table of the process.
    pub thread: Option<u32>,
    /// Its number.
    pub number: u32,
    /// What it is.
    pub memory: KernelMemory,
}

/// What has such memory.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum KernelMemory {
    /// An io_uring: device and inode, and how many bytes it has.
    Ring(Device, u64, RingBytes),
    /// A client of a driver of a graphics card or an accelerator.
    Graphics(GraphicsClient),
}

/// How often the size of a ring is asked for.
const RING_TRIES: usize = 3;

/// A file descriptor as it is listed.
struct ListedDescriptor {
    thread: Option<u32>,
    number: u32,
    link: Vec<u8>,
}

impl ListedDescriptor {
    /// The descriptor of this memory.
    fn with(&self, memory: KernelMemory) -> KernelDescriptor {
        KernelDescriptor { thread: self.thread, number: self.number, memory }
    }

    /// Its file in `fdinfo`.
    fn info(&self) -> File {
        match self.thread {
            Some(thread) => File::ThreadDescriptorInfo(thread, self.number),
            None => File::DescriptorInfo(self.number),
        }
    }
}

/// The descriptors of objects in memory.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MemoryDescriptors {
    /// Each of them.
    pub all: Vec<MemoryDescriptor>,
    /// Those of deleted files on disks, whose pages are in the page cache.
    pub deleted: Vec<MemoryDescriptor>,
    /// Those of rings and of drivers, whose memory the kernel has.
    pub of_kernel: Vec<KernelDescriptor>,
    /// Why the size of a ring is unknown, if there is such a ring.
    pub unknown_ring: Option<access::Error>,
    /// Number of descriptors of files on mounts that the process does not see: these may be in memory too.
    pub unseen: u64,
}

impl Process {
    /// Its file descriptors through which it may have pinned memory, those of threads with a table of their own too.
    /// Those that are closed meanwhile are left out.
    ///
    /// # Errors
    /// They may not be read, or the source has no list of them.
    pub fn pinning_descriptors(&self) -> Result<Vec<PinningDescriptor>> {
        let mut pinning = Vec::new();
        for one in self.descriptors(&mut until_interrupted())? {
            let Some(device) = PinningDevice::of_link(&one.link) else {
                continue;
            };
            let info = (device == PinningDevice::IoUring).then(|| self.source().fetch(one.info()).ok()).flatten();
            let buffers = registered_buffers(&info.unwrap_or_default()).collect();
            pinning.push(PinningDescriptor { thread: one.thread, number: one.number, device, buffers });
        }
        Ok(pinning)
    }

    /// Its file descriptors of objects in memory, those of threads with a table of their own too. Those that are closed
    /// meanwhile are left out. Nothing is opened, and no server is asked: of a file in a directory, the mount shows
    /// first whether it is in memory. Each descriptor is a step.
    ///
    /// # Errors
    /// They may not be read, the source has no list of them, or the budget is over.
    pub fn memory_descriptors(&self, budget: &mut Budget) -> Result<MemoryDescriptors> {
        let mounts = access::mounts(&self.source().fetch(File::Mounts)?, budget)?;
        let mounts: BTreeMap<u32, &Mount> = mounts.iter().map(|mount| (mount.id, mount)).collect();
        let mut descriptors = MemoryDescriptors::default();
        for one in self.descriptors(budget)? {
            budget.go_on()?;
            let kind = match MemoryLink::of(&one.link) {
                None => continue,
                Some(MemoryLink::Ring) => {
                    match self.ring(&one) {
                        Ok(ring) => descriptors.of_kernel.push(one.with(ring)),
                        Err(access::Error::Gone { .. }) => {}
                        Err(error) => _ = descriptors.unknown_ring.get_or_insert(error),
                    }
                    continue;
                }
                // Its name alone does not make it a device.
                Some(MemoryLink::Graphics) => {
                    let info = self.source().fetch(one.info());
                    if let Some(client) = info.ok().and_then(|info| graphics_client(&info)) {
                        descriptors.of_kernel.push(one.with(KernelMemory::Graphics(client)));
                        continue;
                    }
                    MemoryLink::Path
                }
                Some(kind) => kind,
            };
            let mut at = self.on_mount(&one);
            let ListedDescriptor { thread, number, link } = one;
            let mount = at.mount.and_then(|mount| mounts.get(&mount));
            at.answers = mount.is_some_and(|mount| !mount.is_served());
            let (name, deleted) = maps::name(&link);
            let is_in_memory = match (mount, kind) {
                (Some(mount), _) if mount.memory_files().is_some() => true,
                (Some(mount), _) if deleted && !mount.is_served() => false,
                (Some(_), _) => continue,
                (None, MemoryLink::Object) => true,
                (None, _) => {
                    descriptors.unseen += 1;
                    continue;
                }
            };
            let words = self.source().fetch(Probe::Descriptor(thread, at));
            let Some(file) = words.ok().and_then(|words| MappedFile::from_words(&words)) else {
                continue;
            };
            let found = MemoryDescriptor { thread, number, name, deleted, file };
            if is_in_memory {
                descriptors.all.push(found);
            } else if file.links == 0 && file.file_type == FileType::Regular {
                descriptors.deleted.push(found);
            }
        }
        Ok(descriptors)
    }

    /// The descriptor with the mount that it leads to.
    fn on_mount(&self, one: &ListedDescriptor) -> OnMount {
        let mount = self.source().word(Probe::DescriptorMount(one.thread, one.number));
        OnMount { number: one.number, mount: mount.and_then(|mount| mount.try_into().ok()), answers: false }
    }

    /// The ring that a descriptor leads to.
    ///
    /// # Errors
    /// Its size is unknown.
    fn ring(&self, one: &ListedDescriptor) -> Result<KernelMemory> {
        let words = self.source().fetch(Probe::Descriptor(one.thread, self.on_mount(one)))?;
        let identity = MappedFile::from_words(&words).and_then(|file| file.identity);
        let (device, inode) = identity.ok_or_else(|| access::Error::not_available("a ring has no inode"))?;
        // The kernel leaves the numbers out while somebody uses the ring (`io_uring_show_fdinfo`).
        for _ in 0..RING_TRIES {
            if let Some(bytes) = RingBytes::of(&self.source().fetch(one.info())?, self.page_size()) {
                return Ok(KernelMemory::Ring(device, inode, bytes));
            }
        }
        Err(access::Error::not_available(
            "fdinfo does not show the sizes of rings (since Linux 5.16, and while not in use)",
        ))
    }

    /// Bytes of the file of a descriptor that are in the page cache. The file is opened, unless somebody holds a lease
    /// on it.
    ///
    /// # Errors
    /// It may not be opened, the kernel does not show it, the descriptor leads to another file now, or the budget is
    /// over.
    pub fn cached_bytes(&self, descriptor: &MemoryDescriptor, budget: &mut Budget) -> Result<u64> {
        let changed = || access::Error::not_available(format!("{} is not open any more", descriptor.name));
        let place = (descriptor.thread, descriptor.number);
        let asked = Probe::DescriptorCache(place, descriptor.file.identity.ok_or_else(changed)?);
        self.source().get(asked, budget)?.first().copied().ok_or_else(changed)
    }

    /// The IPC namespace that it is in, as its link names it. System V segments have numbers of their own in each.
    ///
    /// # Errors
    /// It may not be read, or the source does not have it.
    pub fn ipc_namespace(&self) -> Result<Name> {
        self.source().fetch(File::IpcNamespace).map(Name::new)
    }

    /// The descriptors of the process, and then of threads with a table of their own. Each thread is a step.
    fn descriptors(&self, budget: &mut Budget) -> Result<Vec<ListedDescriptor>> {
        let mut listed = self.descriptors_in(None)?;
        let own = self.identity().pid;
        // A source without threads has no tables of theirs either.
        for thread in self.threads().unwrap_or_default().into_iter().filter(|thread| !thread.has_ended()) {
            budget.go_on()?;
            if thread.id == own {
                continue;
            }
            let order = self.source().word(Probe::CompareFiles(own, thread.id));
            if order == Some(0) {
                continue;
            }
            let mut others = self.descriptors_in(Some(thread.id)).unwrap_or_default();
            if order.is_none() {
                // Tables that cannot be compared may be one: the same descriptors are found again.
                let known: BTreeSet<(u32, &[u8])> = listed.iter().map(|one| (one.number, &*one.link)).collect();
                others.retain(|one| !known.contains(&(one.number, &*one.link)));
            }
            listed.extend(others);
        }
        Ok(listed)
    }

    /// The descriptors in the table of a thread, or of the process, by number.
    fn descriptors_in(&self, thread: Option<u32>) -> Result<Vec<ListedDescriptor>> {
        let listed = self.source().list(thread.map_or(List::Descriptors, List::DescriptorsOf))?;
        let listed = listed.into_iter().filter_map(|one| Some((one.pid, one.program?)));
        let mut found: Vec<_> = listed.map(|(number, link)| ListedDescriptor { thread, number, link }).collect();
        found.sort_unstable_by_key(|one| one.number);
        Ok(found)
    }
}
