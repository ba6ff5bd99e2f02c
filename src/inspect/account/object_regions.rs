//! What a region maps, if its memory does not end with the mapping, and the kinds of files in memory.

use super::super::classify::Backing;
use super::super::region::ViewedRegion;
use crate::kernel::descriptors::RING;
use crate::kernel::mapped_file::{HUGETLBFS, MappedFile, TMPFS};
use crate::kernel::{Name, Region, maps};
use crate::report::ObjectKind;

/// Returns whether a region maps an object whose memory does not end with the mapping.
pub(super) fn is_of_object(viewed: &ViewedRegion) -> bool {
    let region = &viewed.region;
    let name = region.name.as_bytes();
    match viewed.backing {
        Backing::Shmem | Backing::Hugetlb | Backing::Secret => true,
        Backing::Driver => name.starts_with(b"/dmabuf:") || name == GUEST_MEMORY,
        // The first segment of a namespace has the number 0, like the inode of mappings without a file.
        _ => region.is_segment(),
    }
}

/// Returns whether the pages of a region in page tables are subtracted from those of its object or deleted file.
pub(super) fn has_counted_parts(viewed: &ViewedRegion) -> bool {
    is_of_object(viewed) || is_of_ring(&viewed.region) || viewed.region.is_deleted_file()
}

/// Returns whether a region maps a ring of io_uring.
pub(super) fn is_of_ring(region: &Region) -> bool {
    region.name.as_bytes() == RING
}

/// The name of guest memory of a virtual machine.
const GUEST_MEMORY: &[u8] = b"anon_inode:[kvm-gmem]";

/// Returns the kind of a file in memory, by its file system. Names count only if the kernel gives them.
pub(super) fn kind(name: &Name, deleted: bool, file: &MappedFile) -> Option<ObjectKind> {
    let name = name.as_bytes();
    Some(match file.filesystem {
        TMPFS if file.links > 0 => ObjectKind::Tmpfs,
        TMPFS if name.starts_with(b"/memfd:") => ObjectKind::Memfd,
        TMPFS if deleted && name.starts_with(maps::SEGMENT) => ObjectKind::SystemV,
        // Named shared memory (PR_SET_VMA_ANON_NAME) has no path: [anon_shmem:NAME].
        TMPFS if name == b"/dev/zero" || !name.starts_with(b"/") => ObjectKind::SharedAnonymous,
        TMPFS => ObjectKind::Tmpfs,
        HUGETLBFS => ObjectKind::Hugetlb,
        _ if file.is_secret() => ObjectKind::Secret,
        _ if file.is_dma_buffer() => ObjectKind::DmaBuffer,
        _ if name == GUEST_MEMORY => ObjectKind::GuestMemory,
        _ => return None,
    })
}
