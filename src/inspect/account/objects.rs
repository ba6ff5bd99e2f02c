//! Memory that no mapping shows: the pages of objects in memory that are in no page table.
//!
//! An object is a memfd, a file of tmpfs or of a hugetlb pool, shared anonymous memory, a System V segment, secret
//! memory, a buffer that drivers share, or memory of a virtual machine. Its size is the allocated size of `stat`, which
//! includes pages in swap. Rss counts a page only if it is in a page table: neither after a write(2), nor if only
//! another process has touched it. The size of a deleted file on a disk is that of its page cache. A page is identified
//! by its offset in the object: this needs no frame numbers, and a page that several processes map counts once.

use super::filesystems::MemoryFilesystems;
use crate::inspect::Result;
use crate::kernel::segments::Segment;
use crate::kernel::{Device, Name};
use crate::process::Machine;
use crate::report::{Fact, ObjectKind, Reason};
use std::cmp::Reverse;

/// The identity of an object. A name is none: three memfds may have the same name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ObjectIdentity {
    /// The device of the file system, and the inode number.
    File(Device, u64),
    /// The IPC namespace and the number of a System V segment. Its mappings have the number as their inode, which a
    /// memfd may have too.
    Segment(Name, u64),
    /// The driver of a client with its device and the place of the memory, and the number of the client there.
    Client(Name, u64),
}

/// An object in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The identity of the object.
    pub identity: ObjectIdentity,
    /// The path, or the name that the kernel gives the object.
    pub name: Name,
    /// Whether a directory still contains the object: then it survives its last mapping and descriptor.
    pub has_path: bool,
    /// Whether a System V segment is marked for removal, and ends when the last process detaches. `None` if that is
    /// unknown: the segment is of another IPC namespace.
    pub is_removed: Option<bool>,
    /// The bytes of buffers that other clients have too, for memory of a driver.
    pub shared: Option<u64>,
    /// The id of the process that made a System V segment that no process has attached; `None` if that is in another
    /// PID namespace.
    pub creator: Option<u32>,
    /// Whether that process still runs, and not another one with its id; `None` if that is unknown.
    pub creator_runs: Option<bool>,
    /// The bytes of the pages, in memory or in swap.
    pub bytes: u64,
    /// Whether there may be fewer bytes outside of page tables: it is unknown which part of the size was filled, or
    /// which part is mapped.
    pub is_at_most: bool,
    /// The bytes that are in a page table of the counted processes.
    pub mapped: u64,
    /// The holders, mappings first in each process. Only the first of many are kept.
    pub holders: Vec<ObjectHolder>,
    /// The number of holders among the counted processes.
    pub held: u64,
}

impl ObjectIdentity {
    /// Returns the device and inode number of a file, or the number of a segment or of a client.
    pub fn numbers(&self) -> (Option<Device>, u64) {
        match *self {
            ObjectIdentity::File(device, inode) => (Some(device), inode),
            ObjectIdentity::Segment(_, number) | ObjectIdentity::Client(_, number) => (None, number),
        }
    }
}

impl MemoryObject {
    /// Returns an object without holders and mappings.
    pub(super) fn new(kind: ObjectKind, identity: ObjectIdentity, name: Name, bytes: u64) -> Self {
        MemoryObject {
            kind,
            identity,
            name,
            has_path: false,
            is_removed: None,
            shared: None,
            creator: None,
            creator_runs: None,
            bytes,
            is_at_most: false,
            mapped: 0,
            holders: Vec::new(),
            held: 0,
        }
    }

    /// Sets the first holder.
    pub(super) fn held_by(self, holder: ObjectHolder) -> Self {
        MemoryObject { holders: vec![holder], held: 1, ..self }
    }

    /// Returns the bytes that are in no page table of the counted processes.
    pub fn unmapped(&self) -> u64 {
        self.bytes.saturating_sub(self.mapped)
    }

    /// Returns whether the object is a System V segment, which only `ipcrm` removes.
    pub fn is_segment(&self) -> bool {
        matches!(self.identity, ObjectIdentity::Segment(..))
    }
}

/// The objects that have pages in no page table.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryObjects {
    /// The objects, those with the most bytes in no page table first.
    pub all: Vec<MemoryObject>,
    /// Why there may be more objects, if so.
    pub unknown: Option<Reason>,
    /// The deleted files on disks that may have pages in the page cache; `None` if none was opened.
    pub unknown_files: Option<UnknownFiles>,
    /// System V segments that no process has attached and none of these processes has made, the largest first.
    pub unattached: Fact<Vec<MemoryObject>>,
    /// The filesystems in memory with files that the processes do not hold; none unless they were
    /// [requested](super::Family::with_filesystems).
    pub filesystems: MemoryFilesystems,
}

/// The direction in which a sum is inexact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Bound {
    /// The value may be more.
    AtLeast,
    /// The value may be less.
    AtMost,
    /// The value may be more or less.
    About,
}

impl MemoryObjects {
    /// Returns the bytes of all objects that are in no page table of the counted processes.
    ///
    /// # Errors
    /// Returns the reason if there may be objects and none was found.
    pub fn unmapped(&self) -> Fact<u64> {
        match &self.unknown {
            Some(reason) if self.in_memory().next().is_none() => Err(reason.clone()),
            _ => Ok(self.in_memory().map(MemoryObject::unmapped).fold(0, u64::saturating_add)),
        }
    }

    /// Returns the objects without deleted files on disks, which reclaim frees, and without memory of drivers, which
    /// may be on a device.
    fn in_memory(&self) -> impl Iterator<Item = &MemoryObject> {
        let is_other = |kind| matches!(kind, ObjectKind::DeletedFile | ObjectKind::Graphics);
        self.all.iter().filter(move |object| !is_other(object.kind))
    }

    /// Returns the bytes of deleted files in the page cache; `None` if they were not opened.
    pub fn of_deleted_files(&self) -> Option<u64> {
        let files = self.all.iter().filter(|object| object.kind == ObjectKind::DeletedFile);
        self.unknown_files.is_some().then(|| files.map(MemoryObject::unmapped).fold(0, u64::saturating_add))
    }

    /// Returns in which direction the sum of [`unmapped`](Self::unmapped) is inexact; `None` if it is exact.
    pub fn bound(&self) -> Option<Bound> {
        match (self.unknown.is_some(), self.in_memory().any(|object| object.is_at_most)) {
            (false, false) => None,
            (true, false) => Some(Bound::AtLeast),
            (false, true) => Some(Bound::AtMost),
            (true, true) => Some(Bound::About),
        }
    }
}

/// A holder of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct ObjectHolder {
    /// The id of the process.
    pub process: u32,
    /// The thread whose table has the descriptor, if that is not the table of the process.
    pub thread: Option<u32>,
    /// The file descriptor; `None` for a mapping.
    pub descriptor: Option<u32>,
}

/// Deleted files whose cached pages are unknown.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct UnknownFiles {
    /// The number of these files.
    pub files: u64,
    /// The reason for the first of them.
    pub reason: Option<Reason>,
}

/// Returns the System V segments with memory that no process has attached, the largest first.
///
/// # Errors
/// Fails if the kernel does not list them.
pub fn unattached_segments(machine: &Machine) -> Result<Vec<MemoryObject>> {
    let (namespace, segments) = machine.segments()?;
    Ok(unattached(&namespace, &segments, machine))
}

/// Returns those of the segments with memory that no process has attached, the largest first.
pub(super) fn unattached(namespace: &Name, segments: &[Segment], machine: &Machine) -> Vec<MemoryObject> {
    let lone = segments.iter().filter(|segment| segment.attached == 0 && segment.bytes > 0);
    let object = |segment: &Segment| {
        let identity = ObjectIdentity::Segment(namespace.clone(), segment.number);
        let name = Name::new(format!("/SYSV{:08x}", segment.key));
        MemoryObject {
            is_removed: Some(segment.is_removed),
            creator: segment.creator,
            creator_runs: machine.runs_creator(segment),
            ..MemoryObject::new(ObjectKind::SystemV, identity, name, segment.bytes)
        }
    };
    let mut found: Vec<_> = lone.map(object).collect();
    found.sort_by_cached_key(|object| Reverse(object.bytes));
    found
}
