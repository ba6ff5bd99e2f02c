//! File descriptors through which a process may have pinned memory.

use super::{AddressRange, VirtualAddress};

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
