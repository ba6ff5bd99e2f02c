//! Counts the objects in memory that some processes hold, and the parts of them in page tables.

use super::super::address_space::AddressSpace;
use super::super::page::Page;
use super::filesystems::MemoryFilesystems;
use super::mapped_parts::MappedParts;
use super::object_regions::{is_of_object, is_of_ring, kind};
use super::objects::{MemoryObject, MemoryObjects, ObjectHolder, ObjectIdentity, UnknownFiles, unattached};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::descriptors::{RING, ring_offset};
use crate::kernel::mapped_file::{MappedFile, OTHER_NUMBERS};
use crate::kernel::{Device, Name, PageSize, Region, State};
use crate::process::{self, KernelDescriptor, KernelMemory, Machine, MemoryDescriptor, Process};
use crate::report::{Fact, ObjectKind, Reason};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most holders of an object that are listed.
const MOST_HOLDERS: usize = 64;

/// Counts the objects of some processes, and the parts of them in page tables.
#[derive(Default)]
pub(super) struct ObjectCounter {
    mapped: BTreeMap<ObjectIdentity, MappedParts>,
    objects: BTreeMap<ObjectIdentity, MemoryObject>,
    /// The least bytes of rings. A ring with so many bytes in page tables is mapped as a whole.
    least_of_rings: BTreeMap<ObjectIdentity, u64>,
    /// The ids of the processes.
    processes: BTreeSet<u32>,
    /// Their IPC namespaces.
    namespaces: BTreeSet<Name>,
    /// The IPC namespace of the process whose pages are added, if it has segments.
    namespace: Option<Name>,
    /// Why there may be more objects, if so.
    unknown: Option<Reason>,
    /// Whether the pages of a process were not read to the end.
    is_partly_read: bool,
    /// The deleted files on disks whose cached pages are unknown; `None` if such files are not opened.
    deleted: Option<UnknownFiles>,
}

impl ObjectCounter {
    /// Also looks for deleted files on disks, and opens them.
    pub fn with_deleted_files(&mut self) {
        self.deleted = Some(UnknownFiles::default());
    }

    /// Adds a page of a region whose [parts are counted](super::object_regions::has_counted_parts), if it is in a page
    /// table. A private copy is no page of the object.
    pub fn add_page(&mut self, region: &Region, page: &Page, size: PageSize) {
        let is_ring = is_of_ring(region);
        match page.state() {
            State::Present if page.entry.is_file_or_shared() => {}
            // Before Linux 6.10 the page map shows no entries of rings, which the kernel maps as a whole.
            State::PfnMapped if is_ring => {}
            _ => return,
        }
        let into = page.address.get().saturating_sub(region.range.start().get());
        let start = region.offset.saturating_add(into);
        let start = if is_ring { ring_offset(start) } else { start };
        let part = start..start.saturating_add(page.bytes(size));
        self.mapped.entry(self.identity(region)).or_default().add(part);
    }

    /// Returns the identity of the file or object that a region of the process maps.
    pub fn mapped_by(&self, region: &Region) -> Option<ObjectIdentity> {
        region.maps_object().then(|| self.identity(region))
    }

    /// Returns the identity of a region that is known to map a file or object.
    fn identity(&self, region: &Region) -> ObjectIdentity {
        match &self.namespace {
            Some(namespace) if region.is_segment() => ObjectIdentity::Segment(namespace.clone(), region.inode),
            _ => ObjectIdentity::File(region.device, region.inode),
        }
    }

    /// Begins a process, whose pages may follow.
    pub fn enter(&mut self, space: &AddressSpace) {
        self.namespace = None;
        if space.viewed_regions().iter().any(|viewed| viewed.region.is_segment()) {
            match space.target().process.ipc_namespace() {
                Ok(namespace) => self.namespace = Some(namespace),
                Err(error) => self.may_lack(error),
            }
        }
    }

    /// Records the reason why there may be more objects, unless there already is one.
    fn may_lack(&mut self, reason: impl Into<Reason>) {
        self.unknown.get_or_insert_with(|| reason.into());
    }

    /// Adds the objects that a process maps or has a descriptor of, once it was [entered](Self::enter). Each costs one
    /// step.
    pub fn add_process(&mut self, space: &AddressSpace, budget: &mut Budget) -> std::result::Result<(), OutOfBudget> {
        let (process, modules) = (&space.target().process, &space.target().modules);
        self.add_descriptors(process, budget)?;
        let mut seen = BTreeSet::new();
        let regions = space.viewed_regions().iter().filter(|viewed| is_of_object(viewed)).map(|viewed| &viewed.region);
        for region in regions {
            budget.go_on()?;
            let identity = self.identity(region);
            if !seen.insert(identity.clone()) {
                continue;
            }
            let holder = ObjectHolder { process: process.identity().pid, thread: None, descriptor: None };
            if self.add_holder(&identity, holder) {
                continue;
            }
            match modules.mapped_file(region) {
                Ok(file) if file.identity.is_some() => {
                    self.add(identity, (&region.name, region.deleted), &file, holder)
                }
                Ok(_) => self.may_lack(Reason::NotApplicable("this capture does not have the sizes of objects")),
                Err(error) => self.may_lack(error),
            }
        }
        Ok(())
    }

    /// Adds the objects that a process has a descriptor of. Each costs one step.
    pub fn add_descriptors(&mut self, process: &Process, budget: &mut Budget) -> std::result::Result<(), OutOfBudget> {
        let pid = process.identity().pid;
        self.processes.insert(pid);
        self.namespaces.extend(process.ipc_namespace());
        let descriptors = match process.memory_descriptors(budget) {
            Err(process::Error::OutOfBudget(over)) => return Err(over),
            Err(error) => {
                self.may_lack(error);
                return Ok(());
            }
            Ok(descriptors) => descriptors,
        };
        if descriptors.unseen > 0 {
            let unseen = "file descriptors of files on mounts that the process does not see are left out";
            self.may_lack(Reason::NotApplicable(unseen));
        }
        for one in descriptors.all {
            let Some((device, inode)) = one.file.identity else {
                continue;
            };
            let holder = ObjectHolder { process: pid, thread: one.thread, descriptor: Some(one.number) };
            let identity = ObjectIdentity::File(device, inode);
            if !self.add_holder(&identity, holder) {
                self.add(identity.clone(), (&one.name, one.deleted), &one.file, holder);
            }
            // A memfd with the same pages may have a row, too.
            if let Some(object) = self.objects.get_mut(&identity).filter(|_| one.is_made_of_memfds) {
                object.is_at_most = true;
            }
        }
        if let Some(error) = descriptors.unknown_ring {
            self.may_lack(error);
        }
        descriptors.of_kernel.into_iter().for_each(|one| self.add_kernel_memory(pid, one));
        self.add_deleted_files(process, &descriptors.deleted, budget)
    }

    fn add_kernel_memory(&mut self, process: u32, one: KernelDescriptor) {
        let holder = ObjectHolder { process, thread: one.thread, descriptor: Some(one.number) };
        let mut add = |kind, identity, name, bytes, is_at_most, shared| {
            if !self.add_holder(&identity, holder) {
                let object = MemoryObject::new(kind, identity.clone(), name, bytes).held_by(holder);
                self.objects.insert(identity, MemoryObject { is_at_most, shared, ..object });
            }
        };
        match one.memory {
            KernelMemory::Ring(device, inode, bytes) => {
                let identity = ObjectIdentity::File(device, inode);
                add(ObjectKind::IoUring, identity.clone(), Name::new(RING), bytes.most, true, None);
                self.least_of_rings.insert(identity, bytes.least);
            }
            KernelMemory::Graphics(client) => client.memory.into_iter().for_each(|memory| {
                let name = Name::new(format!("{} {}", client.driver, memory.place));
                let identity = ObjectIdentity::Client(name.clone(), client.number);
                add(ObjectKind::Graphics, identity, name, memory.bytes, memory.is_at_most, memory.shared);
            }),
        }
    }

    fn add_deleted_files(
        &mut self,
        process: &Process,
        files: &[MemoryDescriptor],
        budget: &mut Budget,
    ) -> std::result::Result<(), OutOfBudget> {
        let Some(mut unknown) = self.deleted.take() else {
            return Ok(());
        };
        for one in files {
            budget.go_on()?;
            let Some((device, inode)) = one.file.identity else {
                continue;
            };
            let holder =
                ObjectHolder { process: process.identity().pid, thread: one.thread, descriptor: Some(one.number) };
            let identity = ObjectIdentity::File(device, inode);
            if self.add_holder(&identity, holder) {
                continue;
            }
            let cached = match process.cached_bytes(one, budget) {
                Ok(cached) => cached,
                Err(process::Error::OutOfBudget(over)) => return Err(over),
                Err(error) => {
                    unknown.files += 1;
                    unknown.reason.get_or_insert(error.into());
                    0
                }
            };
            let object = MemoryObject::new(ObjectKind::DeletedFile, identity.clone(), one.name.clone(), cached);
            // The device and inode of mappings may differ from those of the file.
            let is_at_most = OTHER_NUMBERS.contains(&one.file.filesystem);
            self.objects.insert(identity, MemoryObject { is_at_most, ..object.held_by(holder) });
        }
        self.deleted = Some(unknown);
        Ok(())
    }

    /// Adds a holder of an object. Returns false if the object is new.
    fn add_holder(&mut self, identity: &ObjectIdentity, holder: ObjectHolder) -> bool {
        let Some(object) = self.objects.get_mut(identity) else {
            return false;
        };
        object.held += 1;
        // Of many, only mappings, which say more, and the first holder of each process are kept.
        let is_first = object.holders.last().is_none_or(|last| last.process != holder.process);
        if is_first || holder.descriptor.is_none() || object.holders.len() < MOST_HOLDERS {
            object.holders.push(holder);
        }
        true
    }

    /// Adds a new object. `name` and `deleted` are the path and whether the kernel marks it as deleted.
    fn add(
        &mut self,
        identity: ObjectIdentity,
        (name, deleted): (&Name, bool),
        file: &MappedFile,
        holder: ObjectHolder,
    ) {
        let Some(kind) = kind(name, deleted, file) else {
            return;
        };
        let is_sized = matches!(kind, ObjectKind::Secret | ObjectKind::GuestMemory);
        let bytes = if is_sized || kind == ObjectKind::DmaBuffer { file.bytes } else { file.allocated };
        let object = MemoryObject {
            has_path: file.links > 0 && matches!(kind, ObjectKind::Tmpfs | ObjectKind::Hugetlb),
            is_at_most: is_sized,
            ..MemoryObject::new(kind, identity.clone(), name.clone(), bytes).held_by(holder)
        };
        self.objects.insert(identity, object);
    }

    /// Records that the pages of a process were not read to the end.
    pub fn end_early(&mut self) {
        self.is_partly_read = true;
    }

    /// Marks the segments that are to be removed. Adds those that the processes have made and no process has attached,
    /// and returns the others that no process has attached.
    fn add_segments(&mut self, machine: &Machine) -> Fact<Vec<MemoryObject>> {
        // A kernel without System V shared memory has no list.
        let (namespace, segments) = machine.segments()?;
        let mut unattached = unattached(&namespace, &segments, machine);
        unattached.retain(|object| !self.objects.contains_key(&object.identity));
        for segment in segments {
            let identity = ObjectIdentity::Segment(namespace.clone(), segment.number);
            if let Some(object) = self.objects.get_mut(&identity) {
                object.is_removed = Some(segment.is_removed);
            }
        }
        let is_of_process = |object: &MemoryObject| {
            object.creator.is_some_and(|one| self.processes.contains(&one)) && object.creator_runs != Some(false)
        };
        let (own, others): (Vec<_>, Vec<_>) = unattached.into_iter().partition(is_of_process);
        self.objects.extend(own.into_iter().map(|object| (object.identity.clone(), object)));
        if self.namespaces.iter().any(|own| *own != namespace) {
            let unlisted = Reason::NotApplicable("System V segments of another IPC namespace are not listed");
            self.may_lack(unlisted.clone());
            return Err(unlisted);
        }
        Ok(others)
    }

    /// Returns the bytes of all files on a device, in page tables or not.
    pub fn bytes_on(&self, device: Device) -> u64 {
        let is_there = |identity: &ObjectIdentity| matches!(identity, ObjectIdentity::File(on, _) if *on == device);
        let there = self.objects.iter().filter(|(identity, _)| is_there(identity));
        there.map(|(_, object)| object.bytes).fold(0, u64::saturating_add)
    }

    /// Returns the objects that have pages in no page table.
    pub fn finish(mut self, machine: &Machine) -> MemoryObjects {
        let unattached = self.add_segments(machine);
        let mut objects: Vec<MemoryObject> = std::mem::take(&mut self.objects).into_values().collect();
        for object in &mut objects {
            object.mapped = self.mapped.get_mut(&object.identity).map_or(0, MappedParts::bytes);
            object.holders.sort_unstable();
            // The page map shows no entries for a buffer that its driver maps frame by frame (VM_PFNMAP).
            let is_mapped = object.holders.iter().any(|holder| holder.descriptor.is_none());
            object.is_at_most |= self.is_partly_read || object.kind == ObjectKind::DmaBuffer && is_mapped;
        }
        let is_whole = |object: &MemoryObject| {
            self.least_of_rings.get(&object.identity).is_some_and(|least| object.mapped >= *least)
        };
        objects.retain(|object| object.unmapped() > 0 && !is_whole(object));
        objects.sort_by_cached_key(|object| Reverse(object.unmapped()));
        let filesystems = MemoryFilesystems::default();
        MemoryObjects { all: objects, unknown: self.unknown, unknown_files: self.deleted, unattached, filesystems }
    }
}
