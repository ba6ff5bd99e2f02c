//! A region and its backing.

use super::classify::Backing;
use crate::kernel::mounts::MemoryFiles;
use crate::kernel::{AddressRange, Device, PhysicalAddress, Region};
use crate::report::{Fact, Reason};
use std::sync::OnceLock;

/// A region and what pages need to know of it.
#[derive(Debug)]
pub struct ViewedRegion {
    /// The region as `maps` gives it.
    pub region: Region,
    /// Its backing.
    pub backing: Backing,
    pub(super) pfn_mapped: OnceLock<bool>,
    pub(super) merged: OnceLock<Option<bool>>,
}

impl ViewedRegion {
    /// The addresses it covers.
    pub fn range(&self) -> AddressRange {
        self.region.range
    }

    /// Whether the kernel counts its pages in Rss, Pss and the like. It counts the hugetlb pool apart.
    pub fn is_in_rss(&self) -> Fact<()> {
        match self.backing {
            Backing::Hugetlb => Err(Reason::NotApplicable(
                "rss, pss and uss leave out the hugetlb pool, as the kernel does (huge counts it)",
            )),
            _ => Ok(()),
        }
    }

    /// Only drivers and the kernel itself make VM_PFNMAP mappings: never plain memory, never files of a disk.
    pub(super) fn may_be_pfn_mapped(&self) -> bool {
        match self.backing {
            // The gate page is no mapping of the process's own: neither a scan nor the page map know it.
            Backing::Kernel => !matches!(self.region.name.as_bytes(), b"[vsyscall]" | b"[vectors]"),
            Backing::File => self.region.device.major == 0,
            Backing::Anonymous | Backing::Shmem | Backing::Hugetlb => self.is_device_file(),
        }
    }

    fn is_device_file(&self) -> bool {
        let name = self.region.name.as_bytes();
        name.starts_with(b"/dev/") && !name.starts_with(b"/dev/shm/")
            || name.starts_with(b"/sys/")
            || name.starts_with(b"/proc/")
    }

    pub(super) fn is_pfn_mapped_by_name(&self) -> bool {
        self.region.name.as_bytes().starts_with(b"[vvar") || self.physical_base().is_some()
    }

    /// For `/dev/mem` and the resource files of PCI devices: the physical address of the region's first byte. `maps`
    /// shows it as the offset: an offset into `/dev/mem` is a physical address, and to that of a resource file the
    /// kernel adds the resource's start (`pci_mmap_resource_range`).
    pub fn physical_base(&self) -> Option<PhysicalAddress> {
        let name = self.region.name.as_bytes();
        let file = self.region.name.file_name();
        let is_resource = name.starts_with(b"/sys/devices/")
            && file
                .as_bytes()
                .strip_prefix(b"resource")
                .is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit));
        (name == b"/dev/mem" || is_resource).then_some(PhysicalAddress::new(self.region.offset))
    }
}

/// The backing of a region, from its inode and device. Anybody can choose a name, so names count only where the kernel
/// chose them, or where nothing else tells.
pub(super) fn backing(
    region: &Region,
    memory_files: &mut dyn FnMut(Device) -> Option<MemoryFiles>,
    pools_are_known: &dyn Fn() -> bool,
) -> Backing {
    let name = region.name.as_bytes();
    let shared = region.permissions.shared;
    match name {
        b"[vdso]" | b"[vsyscall]" | b"[uprobes]" | b"[sigpage]" | b"[vectors]" => Backing::Kernel,
        _ if name.starts_with(b"[vvar") => Backing::Kernel,
        // A private mapping of /dev/zero is anonymous memory by another name (mmap(2) before MAP_ANONYMOUS).
        b"/dev/zero" if !shared => Backing::Anonymous,
        _ if region.inode == 0 => Backing::Anonymous,
        _ => match memory_files(region.device) {
            Some(MemoryFiles::Shared) => Backing::Shmem,
            Some(MemoryFiles::Hugetlb) => Backing::Hugetlb,
            None if is_called_hugetlb(region) && !pools_are_known() => Backing::Hugetlb,
            None => Backing::File,
        },
    }
}

/// Whether the region is named like private memory, a memfd or a System V segment of huge pages. The latter two may
/// also be on tmpfs.
fn is_called_hugetlb(region: &Region) -> bool {
    let name = region.name.as_bytes();
    region.device.major == 0
        && (name == b"/anon_hugepage" || name.starts_with(b"/memfd:") || name.starts_with(b"/SYSV"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_decides_before_a_name() {
        let region = |name: &str, minor| Region {
            name: name.into(),
            inode: 7,
            device: Device { major: 0, minor },
            ..crate::process::fake::region(1, 1)
        };
        // Device 1 is known to be tmpfs, device 2 hugetlbfs; device 3 is unknown.
        let mut files = |device: Device| match device.minor {
            1 => Some(MemoryFiles::Shared),
            2 => Some(MemoryFiles::Hugetlb),
            _ => None,
        };
        for name in ["/anon_hugepage", "/memfd:x", "/SYSV00000000", "/tmp/file"] {
            let mut is = |minor, known: bool| backing(&region(name, minor), &mut files, &|| known);
            for known in [true, false] {
                assert_eq!(is(1, known), Backing::Shmem, "{name}");
                assert_eq!(is(2, known), Backing::Hugetlb, "{name}");
            }
            assert_eq!(is(3, true), Backing::File, "{name}");
            let by_name = match name {
                "/tmp/file" => Backing::File,
                _ => Backing::Hugetlb,
            };
            assert_eq!(is(3, false), by_name, "{name}");
        }
    }
}
