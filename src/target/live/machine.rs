//! The live [`Machine`].

use super::attached::Attached;
use super::cgroups::Cgroups;
use super::directory::{Directory, read_all};
use super::frames::FrameFile;
use super::handle::Handle;
use super::modules::LiveModules;
use super::process::{Abilities, LiveProcess};
use super::{features, list, own_page, rights};
use crate::kernel::config::Config;
use crate::kernel::iomem::Resources;
use crate::kernel::mounts::{self, MemoryFiles};
use crate::kernel::swaps::{SwapAreas, SwapLayout};
use crate::kernel::zones::Zones;
use crate::kernel::{Device, FrameNumber, Name, PageFlags, PageSize};
use crate::target::{
    Error, Feature, Finding, KernelVersion, Machine, Opened, ProcessEntry, Relation, Result,
    Standing, find_memory, pool_of, sys,
};
use flate2::read::GzDecoder;
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, fstat, major, memfd_create, minor, openat};
use rustix::io::Errno;
use std::io::Read;
use std::sync::{Arc, OnceLock};

/// The machine that pmdb runs on.
pub(super) struct LiveMachine {
    kernel: KernelVersion,
    flags: FrameFile,
    counts: FrameFile,
    cgroups: FrameFile,
    cgroup_paths: Cgroups,
    zones: OnceLock<Result<Arc<Zones>>>,
    iomem: OnceLock<Result<Arc<Resources>>>,
    /// The configuration, and the file that it is from.
    config: OnceLock<Option<(Config, Name)>>,
    false_flags: OnceLock<Option<PageFlags>>,
    huge_page_bytes: OnceLock<Option<u64>>,
    soft_dirty: OnceLock<Option<bool>>,
    exact_map_counts: OnceLock<Option<bool>>,
    /// The device of memory that no mounted filesystem holds: memfd, System V, shared anonymous.
    unmounted: OnceLock<Option<Device>>,
    /// The same for memory of the hugetlb pools, each of which has one.
    pools: OnceLock<Option<Vec<Device>>>,
    /// What was found out about the kernel with the first process that was opened.
    abilities: OnceLock<Abilities>,
    /// Whose mounts count too: those of a container are not in pmdb's own list.
    target: Option<Arc<Attached>>,
}

impl LiveMachine {
    pub(super) fn new(target: Option<Arc<Attached>>) -> Self {
        LiveMachine {
            kernel: kernel_version(),
            flags: FrameFile::new("kpageflags", "CONFIG_PROC_PAGE_MONITOR"),
            counts: FrameFile::new("kpagecount", "CONFIG_PROC_PAGE_MONITOR"),
            cgroups: FrameFile::new("kpagecgroup", "CONFIG_MEMCG"),
            cgroup_paths: Cgroups::default(),
            zones: OnceLock::new(),
            iomem: OnceLock::new(),
            config: OnceLock::new(),
            false_flags: OnceLock::new(),
            huge_page_bytes: OnceLock::new(),
            soft_dirty: OnceLock::new(),
            exact_map_counts: OnceLock::new(),
            unmounted: OnceLock::new(),
            pools: OnceLock::new(),
            abilities: OnceLock::new(),
            target,
        }
    }

    fn config(&self) -> Option<&Config> {
        self.config
            .get_or_init(|| config(&self.kernel.release))
            .as_ref()
            .map(|(config, _)| config)
    }
}

impl Machine for LiveMachine {
    fn kernel(&self) -> KernelVersion {
        self.kernel.clone()
    }

    fn page(&self) -> PageSize {
        PageSize::from_bytes(rustix::param::page_size() as u64).unwrap_or(PageSize::FOUR_KIB)
    }

    fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize> {
        self.flags.read(first, into)
    }

    fn false_flags(&self) -> Option<PageFlags> {
        let look = || own_page::flags(&self.flags).map(own_page::false_flags);
        let found = *self.false_flags.get_or_init(look);
        // Merging may begin at any time, what a kernel gets wrong stays wrong.
        match setting("kernel/mm/ksm/pages_shared") {
            Some(0) => Some(found.unwrap_or_default() | PageFlags::KSM),
            _ => found,
        }
    }

    fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        self.counts.read(first, into)
    }

    fn frame_cgroups(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        self.cgroups.read(first, into)
    }

    fn zones(&self) -> Result<Arc<Zones>> {
        self.zones.get_or_init(zones).clone()
    }

    fn iomem(&self) -> Result<Arc<Resources>> {
        self.iomem.get_or_init(iomem).clone()
    }

    fn cgroup_path(&self, inode: u64) -> Result<Option<Name>> {
        let of_target = || {
            let target = self.target.as_ref()?;
            let path = target.memory().path("cgroup");
            target.directory().read(&path).ok()
        };
        self.cgroup_paths.path(inode, of_target)
    }

    fn cgroup_mount(&self) -> Result<Name> {
        Cgroups::mount()
    }

    fn swaps(&self) -> Result<SwapAreas> {
        Ok(SwapAreas::parse(&read_proc("swaps")?)?)
    }

    fn swap_layout(&self) -> SwapLayout {
        SwapLayout {
            options: self.config().map(Config::swap_options),
            kernel: self.kernel.number,
        }
    }

    fn configuration(&self) -> Option<Name> {
        self.config()?;
        let (_, place) = self.config.get()?.as_ref()?;
        Some(place.clone())
    }

    fn kernel_option(&self, name: &str) -> Option<bool> {
        self.config().map(|config| config.is_set(name))
    }

    fn huge_pages_to_spare(&self, bytes: u64) -> Option<bool> {
        let pool = pool_of(bytes);
        let pages = |name| setting(&format!("{pool}/{name}"));
        Some(pages("free_hugepages")? > pages("resv_hugepages")?)
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        let read = || setting("kernel/mm/transparent_hugepage/hpage_pmd_size");
        *self.huge_page_bytes.get_or_init(read)
    }

    fn has_soft_dirty(&self) -> Option<bool> {
        *self.soft_dirty.get_or_init(has_soft_dirty)
    }

    fn has_exact_map_counts(&self) -> Option<bool> {
        let look = || match self.kernel.number < (6, 15) {
            true => Some(true),
            false => self.config().map(Config::counts_each_page),
        };
        *self.exact_map_counts.get_or_init(look)
    }

    fn findings(&self) -> Vec<Finding> {
        let kernel = self.kernel.number;
        let own_maps = Directory::open("/proc/self").and_then(|own| Ok((own.read("maps")?, own)));
        let map_files = own_maps
            .map(|(maps, own)| features::map_files(&own, &maps, "pmdb itself"))
            .ok();
        self.config();
        let configuration = self.config.get().and_then(Option::as_ref);
        let mut findings = vec![
            features::tried(
                Feature::PageMap,
                features::own("pagemap"),
                "pmdb's own page map can be opened",
            ),
            features::other_users(),
            features::frame_numbers(),
            features::frame_file(Feature::FrameFlags, "kpageflags", &self.flags),
            features::frame_file(Feature::MapCounts, "kpagecount", &self.counts),
            features::exact_map_counts(self.has_exact_map_counts(), kernel),
            features::frame_file(Feature::FrameCgroups, "kpagecgroup", &self.cgroups),
            features::cgroup_paths(),
            features::tried(Feature::Iomem, self.iomem(), "/proc/iomem shows addresses"),
        ];
        findings.extend(map_files);
        findings.push(features::tried(
            Feature::Memory,
            features::own("mem"),
            "pmdb's own memory can be opened",
        ));
        findings.extend(features::calls());
        findings.extend([
            features::soft_dirty(self.has_soft_dirty()),
            features::guard_bit(),
            features::idle_bitmap(),
            features::ksm_flag(&self.flags),
            features::swap_types(configuration.map(|(_, place)| place)),
        ]);
        findings
    }

    fn standing(&self) -> Option<Standing> {
        Some(Standing {
            user: rustix::process::geteuid().as_raw(),
            rights: rights::held(),
            in_first_user_namespace: rights::in_first_user_namespace(),
        })
    }

    fn memory_files(&self, device: Device) -> Option<MemoryFiles> {
        // Disks have numbers of their own; everything without one has a major number of 0.
        match device.major {
            0 if self.unmounted() == Some(device) => Some(MemoryFiles::Shared),
            0 if self.pools().is_some_and(|pools| pools.contains(&device)) => {
                Some(MemoryFiles::Hugetlb)
            }
            0 => self.mounted_memory_files(device),
            _ => None,
        }
    }

    fn pools_are_told(&self) -> bool {
        self.pools().is_some()
    }

    fn processes(&self) -> Result<Vec<ProcessEntry>> {
        list::processes()
    }

    fn relations(&self) -> Result<Vec<Relation>> {
        list::relations()
    }

    fn open(&self, one: &Relation) -> Result<Opened> {
        let handle = match &one.held {
            Some(handle) => Arc::clone(handle),
            None => Arc::new(Handle::open(one.pid)?),
        };
        let attached = Arc::new(Attached::for_a_look(handle)?);
        let process = match self.abilities.get() {
            Some(&known) => LiveProcess::with(attached.clone(), known),
            None => LiveProcess::new(attached.clone())?,
        };
        self.abilities.get_or_init(|| process.abilities());
        Ok(Opened {
            process: Box::new(process),
            modules: Box::new(LiveModules::new(attached)),
        })
    }

    fn find_memory(
        &self,
        others: &[u32],
        process: u32,
    ) -> Option<std::result::Result<usize, usize>> {
        rights::raised(|| find_memory(others, |other| sys::compare_memory(other, process)))
    }
}

impl LiveMachine {
    fn unmounted(&self) -> Option<Device> {
        let ask = || device_of_a_memfd(MemfdFlags::empty());
        *self.unmounted.get_or_init(ask)
    }

    /// The devices of the hugetlb pools; `None` where the kernel does not let itself be asked (memfd_create knows MFD_HUGETLB since
    /// Linux 4.14).
    fn pools(&self) -> Option<&[Device]> {
        self.pools.get_or_init(devices_of_pools).as_deref()
    }

    /// Read anew each time, as mounts come and go.
    fn mounted_memory_files(&self, device: Device) -> Option<MemoryFiles> {
        let own = Directory::open("/proc/self").and_then(|own| own.read("mountinfo"));
        let targets = self
            .target
            .as_ref()
            .map(|target| target.directory().read(&target.memory().path("mountinfo")));
        let lists = [Some(own), targets].into_iter().flatten().flatten();
        lists
            .filter_map(|text| mounts::parse(&text).ok())
            .flatten()
            .filter(|mount| mount.device == device)
            .find_map(|mount| mount.memory_files())
    }
}

fn read_proc(name: &str) -> Result<Vec<u8>> {
    let read = Directory::open("/proc").and_then(|proc| proc.read(name));
    read.map_err(|error| Error::io(format!("reading /proc/{name}"), error))
}

fn zones() -> Result<Arc<Zones>> {
    let zones = Zones::parse(&read_proc("zoneinfo")?)?;
    if zones.iter().next().is_none() {
        return Err(Error::NotAvailable {
            what: "/proc/zoneinfo is empty: something hides it, as containers do".to_owned(),
        });
    }
    Ok(Arc::new(zones))
}

fn iomem() -> Result<Arc<Resources>> {
    let not_available = |what: &str| {
        Err(Error::NotAvailable {
            what: what.to_owned(),
        })
    };
    let resources = match read_proc("iomem") {
        Err(Error::Io {
            error: Errno::NOENT,
            ..
        }) => return not_available("there is no /proc/iomem: this /proc shows processes only"),
        text => Resources::parse(&text?)?,
    };
    if resources.is_empty() {
        return not_available("/proc/iomem is empty: something hides it, as containers do");
    }
    match resources.are_hidden() {
        false => Ok(Arc::new(resources)),
        true => Err(Error::NotPermitted {
            what: "the addresses in /proc/iomem are hidden without CAP_SYS_ADMIN".to_owned(),
            remedy: rights::way_to("CAP_SYS_ADMIN"),
        }),
    }
}

/// A number below `/sys`.
fn setting(name: &str) -> Option<u64> {
    let text = Directory::open("/sys").ok()?.read(name).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// A kernel that tracks soft-dirty pages marks every page that is written to: also one that this program has just written to itself.
/// Cheaper than unpacking the kernel's configuration.
fn has_soft_dirty() -> Option<bool> {
    own_page::entry().map(|entry| entry.is_soft_dirty())
}

fn kernel_version() -> KernelVersion {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    KernelVersion { release, number }
}

/// Every memfd, System V segment and shared anonymous mapping lives on one filesystem that is mounted nowhere: one of
/// our own shows its number.
fn device_of_a_memfd(kind: MemfdFlags) -> Option<Device> {
    let stat = fstat(memfd_create("pmdb", MemfdFlags::CLOEXEC | kind).ok()?).ok()?;
    Some(Device {
        major: major(stat.st_dev),
        minor: minor(stat.st_dev),
    })
}

/// The devices of the hugetlb pools, one for each size of pages. An empty memfd takes no page of them.
fn devices_of_pools() -> Option<Vec<Device>> {
    /// Where a size stands among the flags: its logarithm (MFD_HUGE_SHIFT).
    const SIZE_SHIFT: u32 = 26;
    let Ok(pools) = std::fs::read_dir("/sys/kernel/mm/hugepages") else {
        // Not without /sys, but then it is not known.
        let has_settings = std::fs::exists("/sys/kernel/mm").unwrap_or(false);
        return has_settings.then(Vec::new);
    };
    let device = |pool: std::io::Result<std::fs::DirEntry>| {
        let name = pool.ok()?.file_name().into_string().ok()?;
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        let bytes = kib.parse::<u64>().ok()?.checked_mul(1024)?;
        let size = MemfdFlags::from_bits_retain(bytes.trailing_zeros() << SIZE_SHIFT);
        device_of_a_memfd(MemfdFlags::HUGETLB | size)
    };
    pools.map(device).collect()
}

/// The configuration of the kernel that runs, from itself or from where distributions leave it, and the file that has it.
fn config(release: &str) -> Option<(Config, Name)> {
    // A generous bound for a text of some 300 KiB.
    const MOST: u64 = 8 << 20;
    let unpacked = || {
        let packed = read_proc("config.gz").ok()?;
        let mut text = Vec::new();
        GzDecoder::new(&*packed)
            .take(MOST)
            .read_to_end(&mut text)
            .ok()?;
        Some((Config::new(text)?, "/proc/config.gz".into()))
    };
    let beside = |path: String| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(CWD, &path, flags, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        let is_text = u64::try_from(stat.st_size).is_ok_and(|size| size <= MOST);
        let text = is_text.then(|| read_all(file).ok()).flatten()?;
        Some((Config::new(text)?, Name::from(&*path)))
    };
    unpacked()
        .or_else(|| beside(format!("/boot/config-{release}")))
        .or_else(|| beside(format!("/lib/modules/{release}/config")))
}
