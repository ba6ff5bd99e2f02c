//! File descriptors through which a process may have pinned memory, and those of objects in memory.

use super::{AddressRange, VirtualAddress, text};

/// What pins memory through a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PinningDevice {
    /// io_uring, for its registered buffers.
    IoUring,
    /// A network card, for the memory regions of RDMA.
    Rdma,
    /// A device that was handed to the process (VFIO, iommufd), for its DMA.
    Vfio,
}

impl PinningDevice {
    /// The device that the link in `/proc/PID/fd` leads to.
    pub fn of_link(link: &[u8]) -> Option<Self> {
        let begins = |with: &[&[u8]]| with.iter().any(|&one| link.starts_with(one));
        if link == b"anon_inode:[io_uring]" {
            Some(PinningDevice::IoUring)
        } else if begins(&[b"/dev/infiniband/uverbs"]) {
            Some(PinningDevice::Rdma)
        } else if begins(&[b"/dev/vfio/", b"anon_inode:[vfio", b"/dev/iommu"]) {
            Some(PinningDevice::Vfio)
        } else {
            None
        }
    }

    /// Whether the kernel lists what is registered.
    pub fn lists_buffers(self) -> bool {
        self == PinningDevice::IoUring
    }

    /// Its name in records.
    pub fn word(self) -> &'static str {
        match self {
            PinningDevice::IoUring => "io_uring",
            PinningDevice::Rdma => "rdma",
            PinningDevice::Vfio => "vfio",
        }
    }
}

/// A link in `/proc/PID/fd` that may lead to an object in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryLink {
    /// It has the name that the kernel gives to an object without a directory. A file may be called so too.
    Object,
    /// A path. The mount of the file tells.
    Path,
}

impl MemoryLink {
    /// What the link may lead to; `None` where that is no memory.
    pub fn of(link: &[u8]) -> Option<Self> {
        let begins = |with: &[&[u8]]| with.iter().any(|&one| link.starts_with(one));
        // memfd_create(2) without and with MFD_HUGETLB, dma-buf, memfd_secret(2), guest_memfd (virt/kvm/guest_memfd.c).
        if begins(&[b"/memfd:", b"/anon_hugepage", b"/dmabuf:", b"/secretmem", b"anon_inode:[kvm-gmem]"]) {
            Some(MemoryLink::Object)
        } else if link.starts_with(b"/") {
            Some(MemoryLink::Path)
        } else {
            None
        }
    }
}

/// The number of the mount that the file of a descriptor is on, by its `fdinfo` (seq_show in fs/proc/fd.c).
pub fn mount_id(fdinfo: &[u8]) -> Option<u32> {
    text::lines(fdinfo).find_map(|line| {
        let mut fields = line.fields();
        (fields.next()? == b"mnt_id:").then(|| text::decimal(fields.next()?))?
    })
}

/// The registered buffers in the `fdinfo` of an io_uring (`io_uring_show_fdinfo` in io_uring/fdinfo.c): rows
/// `NUMBER: ADDRESS/LENGTH` after their count. Places without a buffer have none.
pub fn registered_buffers(fdinfo: &[u8]) -> impl Iterator<Item = AddressRange> {
    let lines = fdinfo.split(|&byte| byte == b'\n');
    let after = lines.skip_while(|line| !line.starts_with(b"UserBufs:")).skip(1);
    let rows = after.map(|line| std::str::from_utf8(line).unwrap_or_default().trim_start().split_once(": "));
    let rows = rows.map_while(|row| row.filter(|(number, _)| number.parse::<u32>().is_ok()));
    rows.filter_map(|(_, buffer)| {
        let (address, length) = buffer.trim().strip_prefix("0x")?.split_once('/')?;
        let start = u64::from_str_radix(address, 16).ok()?;
        let end = start.checked_add(length.parse().ok()?)?;
        AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_read_from_fdinfo() {
        let text = "pos:\t0\nSqThread:\t-1\nUserFiles:\t1\n    0: /tmp/a: 0x5/6\nUserBufs:\t4\n    0: 0x7f0000001000/4096\n    \
                    1: <none>\n    2: 0x7f0000010800/300\n    3: 0xffffffffffffffff/2\nPollList:\n  op=6, task_works=0\n    4: 0x1/1\n";
        let found: Vec<_> =
            registered_buffers(text.as_bytes()).map(|range| (range.start().get(), range.len())).collect();
        assert_eq!(found, [(0x7f00_0000_1000, 4096), (0x7f00_0001_0800, 300)]);
        assert_eq!(registered_buffers(b"pos:\t0\nUserBufs:\t0\n").count(), 0);
        assert_eq!(registered_buffers(b"").count(), 0);
    }

    #[test]
    fn links_and_mounts_of_objects_in_memory() {
        let link = |link: &str| MemoryLink::of(link.as_bytes());
        assert_eq!(link("/memfd:ring (deleted)"), Some(MemoryLink::Object));
        assert_eq!(link("anon_inode:[kvm-gmem]"), Some(MemoryLink::Object));
        assert_eq!(link("/dev/shm/ring"), Some(MemoryLink::Path));
        assert_eq!(link("socket:[812]"), None);
        assert_eq!(mount_id(b"pos:\t0\nflags:\t02\nmnt_id:\t25\nino:\t7\n"), Some(25));
        assert_eq!(mount_id(b"pos:\t0\nmnt_id:\tx\n"), None);
    }

    #[test]
    fn links_name_devices() {
        let device = |link: &str| PinningDevice::of_link(link.as_bytes());
        assert_eq!(device("anon_inode:[io_uring]"), Some(PinningDevice::IoUring));
        assert_eq!(device("/dev/infiniband/uverbs0"), Some(PinningDevice::Rdma));
        assert_eq!(device("/dev/vfio/16"), Some(PinningDevice::Vfio));
        assert_eq!(device("anon_inode:[vfio-device]"), Some(PinningDevice::Vfio));
        assert_eq!(device("/dev/null"), None);
        assert_eq!(device("anon_inode:[eventfd]"), None);
    }
}
