//! A region and its backing, and pmdb's own mappings of its pages.
//!
//! A library that both map is mapped once more while pmdb runs, and so is the executable when the target is another
//! pmdb: the kernel's counts and its exclusive bit include that.

use super::classify::Backing;
use crate::budget::OutOfBudget;
use crate::kernel::mapped_file::{FileType, MappedFile};
use crate::kernel::mounts::MemoryFiles;
use crate::kernel::{AddressRange, Name, PageMapEntry, PageSize, PhysicalAddress, Region, VirtualAddress};
use crate::process::{self, Process, Target};
use crate::report::{Fact, Reason};
use std::sync::OnceLock;

/// A region and what pages need to know of it.
#[derive(Debug)]
pub struct ViewedRegion {
    /// The region as `maps` gives it.
    pub region: Region,
    /// Its backing.
    pub backing: Backing,
    /// The file whose writable private mapping ends where this region begins, if it is private memory without a name
    /// and with the same permissions. So lie the data of a program and its `.bss`. `None` also if the region before it
    /// was not read.
    pub after: Option<Name>,
    pub(super) pfn_mapped: OnceLock<bool>,
    pub(super) merged: OnceLock<Option<bool>>,
    /// Set once the swap slots of a part of it could not be read.
    pub(super) lacks_slots: OnceLock<()>,
    /// Set once the content of its untouched pages could not be read.
    pub(super) lacks_content: OnceLock<Reason>,
}

/// Returns the name of the file that `before` maps, if `region` begins where that ends, as `.bss` does.
fn file_before(before: Option<&Region>, region: &Region) -> Option<Name> {
    let before = before.filter(|before| before.range.end() == region.range.start())?;
    let is_memory = region.name.is_empty() && !region.maps_object();
    let is_of_file = before.maps_object() && before.name.as_bytes().starts_with(b"/");
    let permissions = region.permissions;
    let is_alike = before.permissions == permissions && permissions.write && permissions.sharing() == Some(false);
    (is_memory && is_of_file && is_alike).then(|| before.name.clone())
}

impl ViewedRegion {
    /// A region with its backing, and the one before it, if that was read.
    pub(super) fn new(region: Region, backing: Backing, before: Option<&ViewedRegion>) -> Self {
        ViewedRegion {
            after: file_before(before.map(|before| &before.region), &region),
            region,
            backing,
            pfn_mapped: OnceLock::new(),
            merged: OnceLock::new(),
            lacks_slots: OnceLock::new(),
            lacks_content: OnceLock::new(),
        }
    }

    /// The addresses it covers.
    pub fn range(&self) -> AddressRange {
        self.region.range
    }

    /// Whether it is private memory that no file and no driver is behind: the heap, stacks, what malloc maps.
    pub(super) fn is_plain_memory(&self) -> bool {
        self.backing == Backing::Anonymous && !self.region.maps_object() && !self.region.permissions.shared
    }

    /// Why the content of untouched pages is unknown, once a sweep has asked for it in vain.
    pub fn why_content_unknown(&self) -> Option<&Reason> {
        self.lacks_content.get()
    }

    /// Whether the kernel counts its pages in Rss, Pss and the like. It counts the hugetlb pool apart.
    pub fn is_in_rss(&self) -> Fact<()> {
        match self.backing {
            Backing::Hugetlb => {
                Err(Reason::NotApplicable("rss, pss and uss leave out the hugetlb pool; `huge` counts it"))
            }
            _ => Ok(()),
        }
    }

    /// Only drivers and the kernel itself make VM_PFNMAP mappings: never plain memory, never files of a disk.
    pub(super) fn may_be_pfn_mapped(&self) -> bool {
        match self.backing {
            // The gate page is no mapping of the process's own: neither a scan nor the page map know it.
            Backing::Kernel => !matches!(self.region.name.as_bytes(), b"[vsyscall]" | b"[vectors]"),
            Backing::File => self.region.device.major == 0,
            Backing::Driver => true,
            Backing::Secret => false,
            Backing::Anonymous | Backing::Shmem | Backing::Hugetlb => self.is_device_file(),
        }
    }

    /// Whether a driver brings pages of the region at a fault; `None` if that is not known of this driver. Rings of
    /// sockets and of io_uring have all their pages before the first access (`packet_mmap` in net/packet/af_packet.c,
    /// `io_uring_mmap` in io_uring/memmap.c): where one is missing, nothing brings it.
    pub(super) fn fills_at_fault(&self) -> Option<bool> {
        let name = self.region.name.as_bytes();
        match name {
            b"anon_inode:[io_uring]" => Some(false),
            // Its file has a page cache (aio_ring_vm_ops in fs/aio.c).
            b"/[aio]" => Some(true),
            _ => name.starts_with(b"socket:[").then_some(false),
        }
    }

    fn is_device_file(&self) -> bool {
        let name = self.region.name.as_bytes();
        is_place_of_device(name) || name.starts_with(b"/sys/") || name.starts_with(b"/proc/")
    }

    pub(super) fn is_pfn_mapped_by_name(&self) -> bool {
        self.region.name.as_bytes().starts_with(b"[vvar") || self.physical_base().is_some()
    }

    /// For `/dev/mem` and the resource files of PCI devices: the physical address of the region's first byte. `maps`
    /// shows it as the offset: an offset into `/dev/mem` is a physical address, and to that of a resource file the
    /// kernel adds the resource's start (`pci_mmap_resource_range`).
    pub fn physical_base(&self) -> Option<PhysicalAddress> {
        let name = self.region.name.as_bytes();
        let is_resource = name.starts_with(b"/sys/devices/")
            && self
                .region
                .name
                .tail()
                .strip_prefix(b"resource")
                .is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit));
        (name == b"/dev/mem" || is_resource).then_some(PhysicalAddress::new(self.region.offset))
    }
}

/// The backing of a region, from its inode and device. Anybody can choose a name, so names count only where the kernel
/// chose them, or where nothing else tells.
pub(super) fn backing(
    region: &Region,
    memory_files: &mut dyn FnMut(&Region) -> Result<Option<MemoryFiles>, OutOfBudget>,
    pools_are_known: &dyn Fn() -> bool,
    mapped_file: &dyn Fn(&Region) -> Option<MappedFile>,
) -> Result<Backing, OutOfBudget> {
    let name = region.name.as_bytes();
    let shared = region.permissions.shared;
    // By the file behind it, or by its name alone where nothing leads to the file.
    let may_be = |what: fn(&MappedFile) -> bool| mapped_file(region).is_none_or(|file| what(&file));
    Ok(match name {
        b"[vdso]" | b"[vsyscall]" | b"[uprobes]" | b"[sigpage]" | b"[vectors]" => Backing::Kernel,
        _ if name.starts_with(b"[vvar") => Backing::Kernel,
        // A private mapping of /dev/zero is anonymous memory by another name (mmap(2) before MAP_ANONYMOUS).
        b"/dev/zero" if !shared => Backing::Anonymous,
        _ if !region.maps_object() => Backing::Anonymous,
        _ if is_object_of_kernel(region) => Backing::Driver,
        _ => match memory_files(region)? {
            Some(MemoryFiles::Shared) if is_called_device(region) => match mapped_file(region).map(|it| it.file_type) {
                Some(FileType::CharacterDevice | FileType::Other) => Backing::Driver,
                Some(FileType::BlockDevice) => Backing::File,
                Some(FileType::Regular) | None => Backing::Shmem,
            },
            Some(MemoryFiles::Shared) => Backing::Shmem,
            Some(MemoryFiles::Hugetlb) => Backing::Hugetlb,
            Some(MemoryFiles::Generated) => Backing::Driver,
            None if is_called_hugetlb(region) && !pools_are_known() => Backing::Hugetlb,
            None if region.is_without_path() && name == b"/secretmem" && may_be(MappedFile::is_secret) => {
                Backing::Secret
            }
            None if name.starts_with(b"/dmabuf:") && may_be(MappedFile::is_dma_buffer) => Backing::Driver,
            None => Backing::File,
        },
    })
}

/// Whether it maps an object of the kernel that is in no directory: a socket, an io_uring, a map of BPF, a virtual
/// processor, the ring of asynchronous I/O. The names of files in directories begin with a slash.
fn is_object_of_kernel(region: &Region) -> bool {
    let name = region.name.as_bytes();
    let is_ring = || region.deleted && region.device.major == 0 && name == b"/[aio]";
    name.starts_with(b"socket:[") || name.starts_with(b"anon_inode:") || is_ring()
}

/// Whether it is named like a node of a device. Such nodes lie in devtmpfs or tmpfs, where shared memory is too.
fn is_called_device(region: &Region) -> bool {
    is_place_of_device(region.name.as_bytes()) && !region.is_without_path()
}

fn is_place_of_device(path: &[u8]) -> bool {
    path.starts_with(b"/dev/") && !path.starts_with(b"/dev/shm/")
}

/// Whether the region is named like private memory, a memfd or a System V segment of huge pages. The latter two may
/// also be on tmpfs.
fn is_called_hugetlb(region: &Region) -> bool {
    let name = region.name.as_bytes();
    region.device.major == 0
        && (name == b"/anon_hugepage" || name.starts_with(b"/memfd:") || name.starts_with(b"/SYSV"))
}

/// The files that pmdb maps, and its page map.
pub struct Observer {
    process: Option<Process>,
    /// Its regions that map files.
    regions: Vec<Region>,
}

impl Observer {
    /// For pages of `target`. If that is pmdb itself, its mappings are the target's. Where pmdb does not run, it has
    /// none.
    ///
    /// # Errors
    /// pmdb's own mappings cannot be read: then they are unknown.
    pub fn of(target: &Target) -> process::Result<Self> {
        let is_apart = |own: &Process| !own.identity().is_same_process(&target.process.identity());
        let process = target.machine.own_process()?.filter(is_apart);
        let regions = process.as_ref().map_or(Ok(Vec::new()), Process::regions)?;
        Ok(Observer { process, regions: regions.into_iter().filter(|region| region.inode != 0).collect() })
    }

    /// Adds to `counts` how often pmdb maps the page of each of `entries`, the first of which is that of `start` in
    /// `region`. Each of its mappings of that part of the file takes one read.
    pub fn count(
        &self,
        region: &Region,
        start: VirtualAddress,
        entries: &[PageMapEntry],
        page: PageSize,
        counts: &mut [u64],
    ) {
        let (Some(process), Some(offset)) = (&self.process, region.file_offset(start)) else {
            return;
        };
        let end = offset.saturating_add((entries.len() as u64) << page.shift());
        for own in self.of_file(region) {
            let first = own.offset.max(offset);
            let last = own.offset.saturating_add(own.range.len()).min(end);
            let (Some(length), Some(at)) =
                (last.checked_sub(first), own.range.start().checked_add(first.saturating_sub(own.offset)))
            else {
                continue;
            };
            let mut read = vec![PageMapEntry::default(); (length >> page.shift()) as usize];
            let known = process.entries(page.index(at), &mut read).unwrap_or_default();
            let skipped = ((first - offset) >> page.shift()) as usize;
            let both = entries.iter().zip(counts.iter_mut()).skip(skipped).zip(read.iter().take(known));
            for ((entry, count), own) in both {
                *count += u64::from(is_same_page(*entry, *own));
            }
        }
    }

    /// Whether pmdb maps a part of the file of `region`.
    pub fn maps(&self, region: &Region) -> bool {
        self.of_file(region).next().is_some()
    }

    fn of_file(&self, region: &Region) -> impl Iterator<Item = &Region> {
        let file = (region.device, region.inode);
        self.regions.iter().filter(move |own| (own.device, own.inode) == file)
    }
}

/// Whether the entries of two mappings of one page of a file have the same frame. Where frames are hidden, both have it
/// if neither has a copy of its own.
fn is_same_page(one: PageMapEntry, other: PageMapEntry) -> bool {
    match (one.frame(), other.frame()) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            let is_of_file = |entry: PageMapEntry| entry.is_present() && entry.is_file_or_shared();
            is_of_file(one) && is_of_file(other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::AddressSpace;
    use crate::kernel::Device;
    use crate::process::ProcessHandle;
    use crate::process::fake::{PAGE, World, region};
    use std::sync::Arc;

    #[test]
    fn a_device_decides_before_a_name() {
        let region = |name: &str, minor| Region {
            name: name.into(),
            inode: 7,
            device: Device { major: 0, minor },
            ..crate::process::fake::region(1, 1)
        };
        // Device 1 is known to be tmpfs, device 2 hugetlbfs; device 3 is unknown.
        let mut files = |region: &Region| match region.device.minor {
            1 => Ok(Some(MemoryFiles::Shared)),
            2 => Ok(Some(MemoryFiles::Hugetlb)),
            _ => Ok(None),
        };
        for name in ["/anon_hugepage", "/memfd:x", "/SYSV00000000", "/tmp/file"] {
            let mut is = |minor, known: bool| backing(&region(name, minor), &mut files, &|| known, &|_| None);
            for known in [true, false] {
                assert_eq!(is(1, known), Ok(Backing::Shmem), "{name}");
                assert_eq!(is(2, known), Ok(Backing::Hugetlb), "{name}");
            }
            assert_eq!(is(3, true), Ok(Backing::File), "{name}");
            let by_name = match name {
                "/tmp/file" => Backing::File,
                _ => Backing::Hugetlb,
            };
            assert_eq!(is(3, false), Ok(by_name), "{name}");
        }
    }

    /// Objects of the kernel have names that no file in a directory has. Where the file behind a mapping is known, it
    /// decides.
    #[test]
    fn what_is_no_page_of_a_file() {
        let region = |name: &str, deleted, shared| {
            let mut region = Region { name: name.into(), inode: 7, deleted, ..crate::process::fake::region(1, 1) };
            region.permissions.shared = shared;
            region
        };
        let file = |mode: u64, filesystem| {
            let words = [mode, 0, 0, 4096, filesystem, 4096, 0, 0, 0];
            crate::kernel::mapped_file::MappedFile::from_words(&words)
        };
        let backing_of = |region: &Region, memory: Option<MemoryFiles>, file: Option<MappedFile>| {
            backing(region, &mut |_| Ok(memory), &|| true, &|_| file)
        };
        let shared = |name| region(name, false, true);
        for name in ["socket:[812]", "anon_inode:[io_uring]", "anon_inode:bpf-map"] {
            assert_eq!(backing_of(&shared(name), None, None), Ok(Backing::Driver), "{name}");
        }
        assert_eq!(backing_of(&region("/[aio]", true, true), None, None), Ok(Backing::Driver));
        let named = region("[anon_shmem:cache]", false, true);
        assert_eq!(backing_of(&named, Some(MemoryFiles::Shared), None), Ok(Backing::Shmem));
        assert_eq!(
            backing_of(&shared("/sys/kernel/debug/ring"), Some(MemoryFiles::Generated), None),
            Ok(Backing::Driver)
        );
        let node = |file| backing_of(&shared("/dev/thing"), Some(MemoryFiles::Shared), file);
        assert_eq!(node(file(0o020_600, 0)), Ok(Backing::Driver));
        assert_eq!(node(file(0o060_600, 0)), Ok(Backing::File));
        assert_eq!(node(file(0o100_600, 0)), Ok(Backing::Shmem));
        // Nothing leads to it.
        assert_eq!(node(None), Ok(Backing::Shmem));
        let secret = region("/secretmem", true, true);
        assert_eq!(backing_of(&secret, None, None), Ok(Backing::Secret));
        assert_eq!(backing_of(&secret, None, file(0o100_600, 0x5345_434d)), Ok(Backing::Secret));
        assert_eq!(backing_of(&secret, None, file(0o100_600, 0xef53)), Ok(Backing::File));
        assert_eq!(backing_of(&shared("/dmabuf:frame"), None, file(0o100_600, 0x444d_4142)), Ok(Backing::Driver));
    }

    /// Which process pmdb is, `/proc` tells: its number may be that of another pid namespace.
    #[test]
    fn own_mappings_are_those_of_the_process_that_proc_calls_self() {
        let file = || Region { inode: 7, name: "/lib/shared".into(), ..region(0x100, 1) };
        let mapping = |mut world: World| {
            world.entries.insert(0x100, 1 << 63 | 1 << 61 | 0x700);
            world.counts.insert(0x700, 2);
            world
        };
        for (own, may_open, expected) in
            [(None, true, Some(0)), (Some(77), true, Some(1)), (Some(77), false, None), (Some(78), true, None)]
        {
            let other = Arc::new(mapping(World { pid: 77, ..World::new([file()]) }));
            let processes = vec![(ProcessHandle::of_numbers(77, 1), may_open.then_some(other))];
            let (_, target) = mapping(World { own, processes, ..World::new([file()]) }).target();
            let address = VirtualAddress::new(0x100 * PAGE);
            let (space, detail) = AddressSpace::detail_at(&target, address).expect("a page");
            assert_eq!(detail.own_mappings.clone().ok(), expected, "{own:?} {may_open}");
            assert_eq!(space.own_mappings_unknown().is_some(), expected.is_none());
            assert_eq!(detail.page.own_mappings, expected.unwrap_or(0));
        }
    }

    #[test]
    fn pages_are_the_same_by_frame_or_where_frames_are_hidden_unless_one_was_copied() {
        const PRESENT: u64 = 1 << 63;
        const FILE: u64 = 1 << 61;
        for (one, other, is_same) in [
            (PRESENT | FILE | 7, PRESENT | FILE | 7, true),
            (PRESENT | FILE | 7, PRESENT | FILE | 8, false),
            (PRESENT | FILE | 7, FILE, false),
            (PRESENT | FILE, PRESENT | FILE, true),
            (PRESENT | FILE, PRESENT, false),
            (PRESENT | FILE, 0, false),
            (0, 0, false),
        ] {
            assert_eq!(is_same_page(PageMapEntry::new(one), PageMapEntry::new(other)), is_same, "{one:#x} {other:#x}");
        }
    }

    /// A path is up to 4 KiB long, and in a core of a stranger longer. A command looks at that of each region.
    #[test]
    fn devices_are_recognised_without_a_copy_of_each_path() {
        let named = |nth: u64| Region {
            name: format!("/dev/{}", "x".repeat(4000)).as_str().into(),
            inode: 3,
            ..region(8 * nth, 4)
        };
        let regions: Vec<Region> = (1..300).map(named).collect();
        let world = World { scans: false, ..World::new(regions) };
        let space = AddressSpace::of(&world.target().1).expect("a space");
        let before = crate::kernel::text::NAMED_BYTES.get();
        let devices = space.viewed_regions().iter().filter(|viewed| viewed.may_be_pfn_mapped()).count();
        assert_eq!((devices, space.device_frames(&space.spans())), (299, crate::inspect::Evidence::empty()));
        assert_eq!(crate::kernel::text::NAMED_BYTES.get(), before);
    }

    #[test]
    fn memory_after_the_data_of_a_file_has_its_name() {
        let file = || Region { inode: 7, name: "/bin/worker".into(), ..region(0x100, 2) };
        let after = |before: &Region, one: &Region| file_before(Some(before), one).map(|name| name.to_string());
        let bss = region(0x102, 3);
        assert_eq!(after(&file(), &bss).as_deref(), Some("/bin/worker"));
        assert_eq!(file_before(None, &bss), None);
        assert_eq!(after(&file(), &region(0x103, 3)), None, "a gap");
        let read_only = crate::kernel::Permissions { read: true, ..Default::default() };
        let other = Region { permissions: read_only, ..region(0x102, 3) };
        assert_eq!(after(&file(), &other), None, "other permissions");
        assert_eq!(after(&file(), &Region { name: "[heap]".into(), ..region(0x102, 3) }), None);
        assert_eq!(after(&region(0x100, 2), &bss), None, "no file");
    }
}
