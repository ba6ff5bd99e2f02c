//! File descriptors through which a process may pin memory, and descriptors of objects in memory.

use super::words::worded;
use super::{AddressRange, PageSize, VirtualAddress, text};

/// The name of an io_uring in links of descriptors and in mappings.
pub const RING: &[u8] = b"anon_inode:[io_uring]";

worded! {
    /// An interface that pins memory through a file descriptor.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum PinningDevice, word {
        /// io_uring, for its registered buffers.
        IoUring = "io_uring",
        /// A network card, for the memory regions of RDMA.
        Rdma = "rdma",
        /// A device that was handed to the process (VFIO, iommufd), for its DMA.
        Vfio = "vfio",
    }
}

impl PinningDevice {
    /// Returns the device that a link in `/proc/PID/fd` names.
    pub fn of_link(link: &[u8]) -> Option<Self> {
        let begins = |with: &[&[u8]]| with.iter().any(|&one| link.starts_with(one));
        if link == RING {
            Some(PinningDevice::IoUring)
        } else if begins(&[b"/dev/infiniband/uverbs"]) {
            Some(PinningDevice::Rdma)
        } else if begins(&[b"/dev/vfio/", b"anon_inode:[vfio", b"/dev/iommu"]) {
            Some(PinningDevice::Vfio)
        } else {
            None
        }
    }

    /// Returns whether the kernel lists the buffers that are registered.
    pub fn lists_buffers(self) -> bool {
        self == PinningDevice::IoUring
    }
}

/// A link in `/proc/PID/fd` that may lead to an object in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryLink {
    /// An object with a name that the kernel gives to objects without a directory. A file may have such a name too.
    Object,
    /// A path. The mount shows whether the file is in memory.
    Path,
    /// An io_uring: its fdinfo shows its number of entries.
    Ring,
    /// A graphics card or accelerator (drm): its fdinfo shows the memory of a client.
    Graphics,
}

impl MemoryLink {
    /// Returns the kind of object that a link may lead to; `None` if it is not memory.
    pub fn of(link: &[u8]) -> Option<Self> {
        let begins = |with: &[&[u8]]| with.iter().any(|&one| link.starts_with(one));
        // memfd_create(2) without and with MFD_HUGETLB, dma-buf, memfd_secret(2), guest_memfd (virt/kvm/guest_memfd.c).
        if begins(&[b"/memfd:", b"/anon_hugepage", b"/dmabuf:", b"/secretmem", b"anon_inode:[kvm-gmem]"]) {
            Some(MemoryLink::Object)
        } else if link == RING {
            Some(MemoryLink::Ring)
        } else if begins(&[b"/dev/dri/", b"/dev/accel/"]) {
            Some(MemoryLink::Graphics)
        } else if link.starts_with(b"/") {
            Some(MemoryLink::Path)
        } else {
            None
        }
    }
}

/// Returns the number of the mount with the file of a descriptor, from its `fdinfo` (seq_show in fs/proc/fd.c).
pub fn mount_id(fdinfo: &[u8]) -> Option<u32> {
    text::decimal(value(fdinfo, b"mnt_id")?.as_bytes())
}

/// Returns the value of a line `KEY: VALUE` of `fdinfo`.
fn value<'a>(fdinfo: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let mut lines = fdinfo.split(|&byte| byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(b":"))?;
    Some(std::str::from_utf8(value).ok()?.trim())
}

/// The size of an io_uring in bytes, between two limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RingBytes {
    /// The size if no entry is double and there is no array of submission numbers (`IORING_SETUP_NO_SQARRAY`).
    pub least: u64,
    /// The size if all entries are double (`IORING_SETUP_SQE128`, `IORING_SETUP_CQE32`), which nothing shows.
    pub most: u64,
}

impl RingBytes {
    /// Computes the limits from the number of entries in `fdinfo` (Linux 5.16 and later; `io_allocate_scq_urings` in
    /// io_uring/io_uring.c).
    pub fn of(fdinfo: &[u8], page: PageSize) -> Option<Self> {
        let entries = |key: &[u8]| {
            let mask = u64::from_str_radix(value(fdinfo, key)?.strip_prefix("0x")?, 16).ok()?;
            mask.checked_add(1)
        };
        let (submitted, completed) = (entries(b"SqMask")?, entries(b"CqMask")?);
        let whole_pages = |bytes: u64| bytes.checked_next_multiple_of(page.bytes());
        // The head is `struct io_rings` without entries, and the alignment of the array after them: six cache lines. A
        // line is mostly 64 bytes, and 256 bytes on s390.
        let bytes = |head: u64, of_number, of_submission, of_completion| {
            let rings = completed.checked_mul(of_completion)?.checked_add(submitted.checked_mul(of_number)?)?;
            whole_pages(rings.checked_add(head)?)?.checked_add(whole_pages(submitted.checked_mul(of_submission)?)?)
        };
        Some(RingBytes { least: bytes(0, 0, 64, 16)?, most: bytes(6 * 256, 4, 128, 32)? })
    }
}

/// Returns the offset in its part of the ring that a mapping shows, from its offset in the descriptor. The completions
/// are in the memory of the submission ring (`IORING_OFF_CQ_RING`), and the submission entries are apart
/// (`IORING_OFF_SQES`).
pub fn ring_offset(offset: u64) -> u64 {
    const COMPLETIONS: u64 = 0x800_0000;
    const SUBMISSIONS: u64 = 0x1000_0000;
    if (COMPLETIONS..SUBMISSIONS).contains(&offset) { offset - COMPLETIONS } else { offset }
}

/// A client of a driver of a graphics card or an accelerator (Documentation/gpu/drm-usage-stats.rst).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GraphicsClient {
    /// The driver, and the device if the driver has a name for it: `i915 0000:00:02.0`.
    pub driver: String,
    /// The number of the client (`drm-client-id`). Several descriptors may be of one client.
    pub number: u64,
    /// The memory of the client, by place.
    pub memory: Vec<GraphicsMemory>,
}

/// Memory of a graphics client in one place.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GraphicsMemory {
    /// The place, as the driver names it: `system0`, `gtt`, `vram0`. It may be on the device.
    pub place: String,
    /// Bytes of the buffers in this place.
    pub bytes: u64,
    /// Whether `bytes` is the sum of all buffers that were created, some of which may have no memory: the driver shows
    /// no more.
    pub is_at_most: bool,
    /// Bytes of buffers that other clients have too.
    pub shared: Option<u64>,
}

/// Decodes the client in the `fdinfo` of a descriptor.
pub fn graphics_client(fdinfo: &[u8]) -> Option<GraphicsClient> {
    let driver = value(fdinfo, b"drm-driver")?;
    let driver = value(fdinfo, b"drm-pdev").map_or_else(|| driver.to_owned(), |device| format!("{driver} {device}"));
    let number = value(fdinfo, b"drm-client-id")?.parse().ok()?;
    let text = String::from_utf8_lossy(fdinfo);
    let lines = || text.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key, value.trim()));
    let of = |kind: &str, place: &str| {
        let is_it = |key: &str| key.strip_prefix(kind) == Some(place);
        lines().find(|(key, _)| is_it(key)).and_then(|(_, value)| graphics_bytes(value))
    };
    let mut memory: Vec<GraphicsMemory> = Vec::new();
    for (key, _) in lines() {
        let kinds = [RESIDENT, MEMORY, TOTAL].into_iter();
        let Some(place) = kinds.clone().find_map(|kind| key.strip_prefix(kind)) else {
            continue;
        };
        // xe has counters of cycles besides the sums of memory.
        if place.starts_with("cycles-") || memory.iter().any(|one| one.place == place) {
            continue;
        }
        let found = kinds.zip([false, false, true]).find_map(|(kind, at_most)| Some((of(kind, place)?, at_most)));
        if let Some((bytes, is_at_most)) = found {
            memory.push(GraphicsMemory { place: place.to_owned(), bytes, is_at_most, shared: of(SHARED, place) });
        }
    }
    Some(GraphicsClient { driver, number, memory })
}

/// Buffers that are in memory; `drm-memory-` is the same in older versions of amdgpu.
const RESIDENT: &str = "drm-resident-";
const MEMORY: &str = "drm-memory-";
/// All buffers, resident or not.
const TOTAL: &str = "drm-total-";
const SHARED: &str = "drm-shared-";

/// Parses `16 MiB`, `2048 KiB` or bytes.
fn graphics_bytes(value: &str) -> Option<u64> {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let shift = match unit.trim() {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Returns the registered buffers in the `fdinfo` of an io_uring (`io_uring_show_fdinfo` in io_uring/fdinfo.c): rows
/// `NUMBER: ADDRESS/LENGTH` after their count. Slots without a buffer have none.
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

/// Whether the `fdinfo` of a dma-buf names udmabuf as its exporter: its pages are those of memfds
/// (`dma_buf_show_fdinfo` in drivers/dma-buf/dma-buf.c).
pub fn is_made_of_memfds(fdinfo: &[u8]) -> bool {
    fdinfo.split(|&byte| byte == b'\n').any(|line| line == b"exp_name:\tudmabuf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exporter_of_a_buffer_is_read_whole() {
        let of = |exporter: &str| format!("pos:\t0\nsize:\t8192\ncount:\t2\nexp_name:\t{exporter}\nname:\tudmabuf\n");
        let made = ["udmabuf", "udmabuf2", "system"].map(|exporter| is_made_of_memfds(of(exporter).as_bytes()));
        assert_eq!(made, [true, false, false]);
        assert!(!is_made_of_memfds(b""));
    }

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
    fn the_size_of_a_ring_follows_from_its_entries() {
        let page = PageSize::from_bytes(4096).expect("a power of two");
        let bytes = |info: &[u8]| RingBytes::of(info, page).map(|bytes| (bytes.least, bytes.most));
        let info = b"pos:\t0\nSqMask:\t0xfff\nSqHead:\t0\nCqMask:\t0x1fff\nCqHead:\t0\n";
        // 8192 completions of 32 bytes, 4096 numbers, the head; 4096 submissions of 128 bytes.
        let most = (262_144 + 16_384 + 4096) + 524_288;
        assert_eq!(bytes(info), Some((131_072 + 262_144, most)));
        assert_eq!(bytes(b"SqMask:\t0x7\nCqMask:\t0xf\n"), Some((2 * 4096, 2 * 4096)));
        assert_eq!(bytes(b"SqThread:\t-1\n"), None);
        assert_eq!(bytes(b"SqMask:\t0xffffffffffffffff\nCqMask:\t0x1\n"), None);
        assert_eq!([0, 0x800_1000, 0x1000_2000].map(ring_offset), [0, 0x1000, 0x1000_2000]);
    }

    #[test]
    fn memory_of_graphics_clients() {
        let shown = |text: &str| {
            let client = graphics_client(text.as_bytes())?;
            let memory = client.memory.into_iter();
            let memory: Vec<_> =
                memory.map(|one| format!("{} {} {} {:?}", one.place, one.bytes, one.is_at_most, one.shared)).collect();
            Some((client.driver, client.number, memory))
        };
        let i915 = "pos:\t0\nmnt_id:\t25\nino:\t412\ndrm-driver:\ti915\ndrm-client-id:\t31\ndrm-pdev:\t0000:00:02.0\n\
            drm-total-system0:\t40 MiB\ndrm-shared-system0:\t12 MiB\ndrm-active-system0:\t0\n\
            drm-resident-system0:\t30 MiB\ndrm-purgeable-system0:\t0\ndrm-total-stolen-system0:\t4096\n\
            drm-engine-render:\t9581 ns\n";
        assert_eq!(
            shown(i915),
            Some((
                "i915 0000:00:02.0".to_owned(),
                31,
                vec![
                    format!("system0 {} false Some({})", 30 << 20, 12 << 20),
                    "stolen-system0 4096 true None".to_owned()
                ]
            ))
        );
        // One amount under two keys.
        let amdgpu = "drm-driver:\tamdgpu\ndrm-client-id:\t24\ndrm-memory-vram:\t39364 KiB\ndrm-memory-gtt: \t8616 KiB\n\
            drm-resident-vram:\t39364 KiB\n";
        let places = vec![format!("vram {} false None", 39_364 << 10), format!("gtt {} false None", 8616 << 10)];
        assert_eq!(shown(amdgpu), Some(("amdgpu".to_owned(), 24, places)));
        let xe = "drm-driver:\txe\ndrm-client-id:\t7\ndrm-total-cycles-rcs:\t1000\ndrm-resident-vram0:\t3 GiB\n";
        assert_eq!(shown(xe), Some(("xe".to_owned(), 7, Vec::new())));
        assert_eq!(shown("pos:\t0\n"), None);
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
