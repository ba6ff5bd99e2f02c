//! The file descriptors of a process, in its table and in those of threads with separate tables: descriptors that may
//! pin memory, and those of objects in memory.

use super::{Process, Result};
use crate::access;
use crate::budget::{Budget, until_interrupted};
use crate::kernel::descriptors::{
    GraphicsClient, MemoryLink, PinningDevice, RingBytes, graphics_client, is_made_of_memfds, registered_buffers,
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
    /// The thread with this table; `None` for the table of the process.
    pub thread: Option<u32>,
    /// The number of the descriptor.
    pub number: u32,
    /// The kind of device.
    pub device: PinningDevice,
    /// The buffers registered with the descriptor, if the kernel lists them.
    pub buffers: Vec<AddressRange>,
}

/// A file descriptor of an object in memory: a memfd, a file of tmpfs or of a hugetlb pool, secret memory, a buffer
/// that drivers share, memory of a virtual machine.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct MemoryDescriptor {
    /// The thread with this table; `None` for the table of the process.
    pub thread: Option<u32>,
    /// The number of the descriptor.
    pub number: u32,
    /// The target of its link in `/proc/PID/fd`, without the kernel's mark for deleted files.
    pub name: Name,
    /// Whether the link has that mark.
    pub deleted: bool,
    /// The file by `stat` and `statfs`.
    pub file: MappedFile,
    /// Whether it is a dma-buf of udmabuf, whose pages are those of memfds.
    pub is_made_of_memfds: bool,
}

/// A file descriptor of an object with kernel memory, whose size its `fdinfo` shows.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct KernelDescriptor {
    /// The thread with this table; `None` for the table of the process.
    pub thread: Option<u32>,
    /// The number of the descriptor.
    pub number: u32,
    /// The kind and the size of the memory.
    pub memory: KernelMemory,
}

/// An object with kernel memory.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum KernelMemory {
    /// An io_uring: its device, its inode, and its size.
    Ring(Device, u64, RingBytes),
    /// A client of a driver of a graphics card or an accelerator.
    Graphics(GraphicsClient),
}

/// How often the size of a ring is read before it is unknown.
const RING_TRIES: usize = 3;

/// A file descriptor in a list of them.
struct ListedDescriptor {
    thread: Option<u32>,
    number: u32,
    link: Vec<u8>,
}

impl ListedDescriptor {
    /// Makes the descriptor of this kernel memory.
    fn with(&self, memory: KernelMemory) -> KernelDescriptor {
        KernelDescriptor { thread: self.thread, number: self.number, memory }
    }

    /// Returns the file of the descriptor in `fdinfo`.
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
    /// The descriptors of files and other objects in memory.
    pub all: Vec<MemoryDescriptor>,
    /// Descriptors of deleted files on disks, whose pages are in the page cache.
    pub deleted: Vec<MemoryDescriptor>,
    /// Descriptors of rings and graphics drivers, whose memory belongs to the kernel.
    pub of_kernel: Vec<KernelDescriptor>,
    /// Why the size of a ring is unknown, if there is such a ring.
    pub unknown_ring: Option<access::Error>,
    /// Number of descriptors of files on mounts that the process does not see. Such files may be in memory too.
    pub unseen: u64,
}

impl Process {
    /// Returns the file descriptors through which the process may pin memory, including those of threads with separate
    /// tables. Descriptors that are closed during the reading are left out.
    ///
    /// # Errors
    /// Fails if the descriptors may not be read, or the source has no list of them.
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

    /// Returns the file descriptors of objects in memory, including those of threads with separate tables. Descriptors
    /// that are closed during the reading are left out. No file is opened, and no file server gets a request: the mount
    /// first shows whether a file is in memory. Each descriptor costs one step.
    ///
    /// # Errors
    /// Fails if the descriptors may not be read, the source has no list of them, or the budget is over.
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
                // A file may have such a name too, so `fdinfo` decides.
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
            let info = one.info();
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
            let info = file.is_dma_buffer().then(|| self.source().fetch(info).ok()).flatten();
            let is_made_of_memfds = info.is_some_and(|info| is_made_of_memfds(&info));
            let found = MemoryDescriptor { thread, number, name, deleted, file, is_made_of_memfds };
            if is_in_memory {
                descriptors.all.push(found);
            } else if file.links == 0 && file.file_type == FileType::Regular {
                descriptors.deleted.push(found);
            }
        }
        Ok(descriptors)
    }

    /// Returns the descriptor, with the mount of its file.
    fn on_mount(&self, one: &ListedDescriptor) -> OnMount {
        let mount = self.source().word(Probe::DescriptorMount(one.thread, one.number));
        OnMount { number: one.number, mount: mount.and_then(|mount| mount.try_into().ok()), answers: false }
    }

    /// Returns the size of the ring of a descriptor.
    ///
    /// # Errors
    /// Fails if the size is unknown.
    fn ring(&self, one: &ListedDescriptor) -> Result<KernelMemory> {
        let words = self.source().fetch(Probe::Descriptor(one.thread, self.on_mount(one)))?;
        let identity = MappedFile::from_words(&words).and_then(|file| file.identity);
        let (device, inode) = identity.ok_or_else(|| access::Error::not_available("a ring has no inode"))?;
        // The kernel leaves out the numbers while another thread uses the ring (`io_uring_show_fdinfo`).
        for _ in 0..RING_TRIES {
            if let Some(bytes) = RingBytes::of(&self.source().fetch(one.info())?, self.page_size()) {
                return Ok(KernelMemory::Ring(device, inode, bytes));
            }
        }
        Err(access::Error::not_available(
            "fdinfo does not show the sizes of rings (since Linux 5.16, and while not in use)",
        ))
    }

    /// Returns the bytes in the page cache of a descriptor's file. Opens the file, unless a process holds a lease on
    /// it.
    ///
    /// # Errors
    /// Fails if the file may not be opened, the kernel does not show its cache, the descriptor now has another file, or
    /// the budget is over.
    pub fn cached_bytes(&self, descriptor: &MemoryDescriptor, budget: &mut Budget) -> Result<u64> {
        let changed = || access::Error::not_available(format!("{} is not open any more", descriptor.name));
        let place = (descriptor.thread, descriptor.number);
        let asked = Probe::DescriptorCache(place, descriptor.file.identity.ok_or_else(changed)?);
        self.source().get(asked, budget)?.first().copied().ok_or_else(changed)
    }

    /// Returns the IPC namespace of the process, as its link names it. Each namespace numbers its System V segments
    /// separately.
    ///
    /// # Errors
    /// Fails if the link may not be read, or the source does not have it.
    pub fn ipc_namespace(&self) -> Result<Name> {
        self.source().fetch(File::IpcNamespace).map(Name::new)
    }

    /// Lists the descriptors of the process, and then those of threads with separate tables. Each thread costs one
    /// step.
    fn descriptors(&self, budget: &mut Budget) -> Result<Vec<ListedDescriptor>> {
        let mut listed = self.descriptors_in(None)?;
        let own = self.identity().pid;
        // A source without threads has no tables of threads either.
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
                // Tables that cannot be compared may be the same one: descriptors that are known already are left out.
                let known: BTreeSet<(u32, &[u8])> = listed.iter().map(|one| (one.number, &*one.link)).collect();
                others.retain(|one| !known.contains(&(one.number, &*one.link)));
            }
            listed.extend(others);
        }
        Ok(listed)
    }

    /// Lists the descriptors in the table of a thread, or of the process, by number.
    fn descriptors_in(&self, thread: Option<u32>) -> Result<Vec<ListedDescriptor>> {
        let listed = self.source().list(thread.map_or(List::Descriptors, List::DescriptorsOf))?;
        let listed = listed.into_iter().filter_map(|one| Some((one.pid, one.program?)));
        let mut found: Vec<_> = listed.map(|(number, link)| ListedDescriptor { thread, number, link }).collect();
        found.sort_unstable_by_key(|one| one.number);
        Ok(found)
    }
}
