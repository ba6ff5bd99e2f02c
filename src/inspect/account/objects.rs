//! Memory that no mapping shows: what objects in memory have beside the pages that page tables lead to.
//!
//! An object is a memfd, a file of tmpfs or of a hugetlb pool, shared anonymous memory, a System V segment, secret
//! memory, a buffer that drivers share, memory of a virtual machine. Its size is what `stat` says is allocated, pages in
//! swap included. Rss counts its pages only where a page table has them: after write(2), or where another process
//! touched them, it has fewer. Pages are told apart by their offset in the object, so that no frame number is needed,
//! and a page that several processes map counts once.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::page::Page;
use super::super::region::ViewedRegion;
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mapped_file::{HUGETLBFS, MappedFile, TMPFS};
use crate::kernel::{Device, Name, PageSize, State};
use crate::process;
use crate::report::{Fact, ObjectKind, Reason};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// Stretches of an object after which those that touch are joined.
const JOIN_AFTER: usize = 1 << 12;

/// An object in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryObject {
    /// What it is.
    pub kind: ObjectKind,
    /// The device of its file system, and its inode there: two objects may have one name.
    pub identity: (Device, u64),
    /// Its path, or the name that the kernel gives it.
    pub name: Name,
    /// Whether no directory has it: it ends with its last mapping and descriptor.
    pub is_without_path: bool,
    /// Bytes of its pages, in memory or in swap.
    pub bytes: u64,
    /// Whether it may have fewer: its size is known, but not what of it was filled.
    pub is_at_most: bool,
    /// Of these, bytes that are in a page table of the counted processes.
    pub mapped: u64,
    /// Who holds it.
    pub holders: Vec<ObjectHolder>,
}

impl MemoryObject {
    /// Bytes that no counted process has in its page tables.
    pub fn unmapped(&self) -> u64 {
        self.bytes.saturating_sub(self.mapped)
    }
}

/// Objects of which page tables do not have all.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryObjects {
    /// Those with the most bytes elsewhere first.
    pub all: Vec<MemoryObject>,
    /// Why there may be more: the descriptors of a process are unknown.
    pub unknown: Option<Reason>,
}

impl MemoryObjects {
    /// Bytes that no counted process has in its page tables.
    ///
    /// # Errors
    /// Descriptors are unknown, and no object was found without them.
    pub fn unmapped(&self) -> Fact<u64> {
        match (&self.unknown, &*self.all) {
            (Some(reason), []) => Err(reason.clone()),
            (_, all) => Ok(all.iter().map(MemoryObject::unmapped).sum()),
        }
    }
}

/// What holds an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct ObjectHolder {
    /// The process.
    pub process: u32,
    /// The thread in whose own table the descriptor is, if that is not the table of the process.
    pub thread: Option<u32>,
    /// The file descriptor; `None` for a mapping.
    pub descriptor: Option<u32>,
}

/// The objects of some processes, and the parts of them that page tables have.
#[derive(Default)]
pub(super) struct ObjectCounter {
    mapped: BTreeMap<(Device, u64), MappedParts>,
    objects: BTreeMap<(Device, u64), MemoryObject>,
    /// Why the descriptors of a process are unknown.
    unknown: Option<Reason>,
}

/// Parts of an object, from offset to offset.
#[derive(Default)]
struct MappedParts {
    parts: Vec<Range<u64>>,
    /// How many there may be before they are joined.
    most: usize,
}

impl MappedParts {
    fn add(&mut self, part: Range<u64>) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.parts.push(part),
        }
        if self.parts.len() > self.most.max(JOIN_AFTER) {
            self.join();
            self.most = self.parts.len().saturating_mul(2);
        }
    }

    fn join(&mut self) {
        self.parts.sort_unstable_by_key(|part| part.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for part in self.parts.drain(..) {
            match joined.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => joined.push(part),
            }
        }
        self.parts = joined;
    }

    fn bytes(&mut self) -> u64 {
        self.join();
        self.parts.iter().map(|part| part.end - part.start).sum()
    }
}

impl ObjectCounter {
    /// Adds a page that a page table has, if it is one of an object. A private copy is not.
    pub fn add_page(&mut self, viewed: &ViewedRegion, page: &Page, size: PageSize) {
        let region = &viewed.region;
        if is_of_object(viewed) && page.state() == State::Present && page.entry.is_file_or_shared() {
            let end = |start: u64| Some(start..start.checked_add(page.bytes(size))?);
            if let Some(part) = region.file_offset(page.address).and_then(end) {
                self.mapped.entry((region.device, region.inode)).or_default().add(part);
            }
        }
    }

    /// Adds the objects that a process maps or has a descriptor of. Each is a step.
    pub fn add_process(&mut self, space: &AddressSpace, budget: &mut Budget) -> Result<(), OutOfBudget> {
        let (process, modules) = (&space.target().process, &space.target().modules);
        let pid = process.identity().pid;
        match process.memory_descriptors(budget) {
            Err(process::Error::OutOfBudget(over)) => return Err(over),
            Err(error) => _ = self.unknown.get_or_insert(error.into()),
            Ok(descriptors) => {
                for one in descriptors {
                    let holder = ObjectHolder { process: pid, thread: one.thread, descriptor: Some(one.number) };
                    self.add(&one.name, one.deleted, one.file, holder);
                }
            }
        }
        for region in space.regions().iter().filter(|viewed| is_of_object(viewed)).map(|viewed| &viewed.region) {
            budget.go_on()?;
            let holder = ObjectHolder { process: pid, thread: None, descriptor: None };
            match self.objects.get_mut(&(region.device, region.inode)) {
                Some(object) if object.holders.contains(&holder) => {}
                Some(object) => object.holders.push(holder),
                None => {
                    if let Ok(file) = modules.mapped_file(region) {
                        self.add(&region.name, region.deleted, file, holder);
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &Name, deleted: bool, file: MappedFile, holder: ObjectHolder) {
        let Some(kind) = kind(name, deleted, &file) else {
            return;
        };
        let is_at_most = matches!(kind, ObjectKind::Secret | ObjectKind::GuestMemory);
        let object = self.objects.entry(file.identity).or_insert_with(|| MemoryObject {
            kind,
            identity: file.identity,
            name: name.clone(),
            is_without_path: deleted || !matches!(kind, ObjectKind::Tmpfs | ObjectKind::Hugetlb),
            bytes: 0,
            is_at_most,
            mapped: 0,
            holders: Vec::new(),
        });
        object.bytes = match kind {
            ObjectKind::Secret | ObjectKind::GuestMemory | ObjectKind::DmaBuffer => file.bytes,
            _ => file.allocated,
        };
        object.holders.push(holder);
    }

    /// The objects of which page tables do not have all.
    pub fn finish(mut self) -> MemoryObjects {
        let mut objects: Vec<MemoryObject> = std::mem::take(&mut self.objects).into_values().collect();
        for object in &mut objects {
            object.mapped = self.mapped.get_mut(&object.identity).map_or(0, MappedParts::bytes);
        }
        objects.retain(|object| object.unmapped() > 0);
        objects.sort_by_key(|object| Reverse(object.unmapped()));
        MemoryObjects { all: objects, unknown: self.unknown }
    }
}

/// Whether a region maps an object whose memory does not end with the mapping.
pub(super) fn is_of_object(viewed: &ViewedRegion) -> bool {
    let name = viewed.region.name.as_bytes();
    let is_shared_buffer = || viewed.backing == Backing::Driver && name.starts_with(b"/dmabuf:");
    viewed.region.inode != 0
        && (matches!(viewed.backing, Backing::Shmem | Backing::Hugetlb | Backing::Secret) || is_shared_buffer())
}

/// What a file is, if it is in memory, by its file system; names tell only what the kernel has named.
fn kind(name: &Name, deleted: bool, file: &MappedFile) -> Option<ObjectKind> {
    let name = name.as_bytes();
    Some(match file.filesystem {
        TMPFS if deleted && name.starts_with(b"/memfd:") => ObjectKind::Memfd,
        TMPFS if deleted && name.starts_with(b"/SYSV") => ObjectKind::SystemV,
        // With a name of its own (PR_SET_VMA_ANON_NAME) it has no path: [anon_shmem:NAME].
        TMPFS if deleted && name == b"/dev/zero" || !name.starts_with(b"/") => ObjectKind::SharedAnonymous,
        TMPFS => ObjectKind::Tmpfs,
        HUGETLBFS => ObjectKind::Hugetlb,
        _ if file.is_secret() => ObjectKind::Secret,
        _ if file.is_dma_buffer() => ObjectKind::DmaBuffer,
        _ if name == b"anon_inode:[kvm-gmem]" => ObjectKind::GuestMemory,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_overlap_count_once() {
        let mut parts = MappedParts::default();
        for part in [0..10, 10..20, 40..50, 15..25, 45..46] {
            parts.add(part);
        }
        assert_eq!(parts.bytes(), 25 + 10);
        (0..3 * JOIN_AFTER as u64).rev().for_each(|at| parts.add(at..at + 1));
        assert!(parts.parts.len() <= 2 * JOIN_AFTER, "joined on the way");
        assert_eq!(parts.bytes(), 3 * JOIN_AFTER as u64);
    }
}
