//! The machine of the target: its page frames, zones and kernel.

use super::cgroups::{CgroupMemory, Cgroups};
use super::core_notes;
use super::findings::{self, MachineFacts};
use super::target_process::{Abilities, Process};
use crate::access::log::Log;
use crate::access::{Error, Result};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mounts::{FilesOn, MemoryFiles, Mount};
use crate::kernel::physical::{Resources, Zones};
use crate::kernel::smaps;
use crate::kernel::swaps::{Config, SwapAreas, SwapLayout};
use crate::kernel::text::lossy;
use crate::kernel::{Device, FrameNumber, Name, PageFlags, PageMapEntry, PageSize, WordFile};
use crate::records::{FrameRecord, RecordParts};
use crate::source::{
    ConfigPlace, Credentials, File, Finding, KernelSetting, Probe, RecordsOf, Rights, Source, as_words, recorded,
};
use flate2::read::GzDecoder;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A machine, decoded from the answers of its source.
pub struct Machine {
    source: Arc<dyn Source>,
    page: PageSize,
    pub(super) cache: MachineCache,
    /// Whether the kernel's records may be used.
    records: Arc<AtomicBool>,
}

/// Facts that were found once and do not change.
#[derive(Default)]
pub(super) struct MachineCache {
    kernel: OnceLock<KernelVersion>,
    cgroups: Cgroups,
    zones: OnceLock<Result<Arc<Zones>>>,
    iomem: OnceLock<Result<Arc<Resources>>>,
    pub(super) block_bytes: OnceLock<Result<u64>>,
    /// Whether blocks of memory are online; `None` for a number without a block.
    pub(super) blocks: Mutex<BTreeMap<u64, Option<bool>>>,
    /// The configuration, and the name of its file.
    config: OnceLock<Option<(Config, Name)>>,
    mistaken_flags: OnceLock<Option<PageFlags>>,
    huge_page_bytes: OnceLock<Option<u64>>,
    soft_dirty: OnceLock<Option<bool>>,
    protection_keys: OnceLock<Option<bool>>,
    exact_map_counts: OnceLock<Option<bool>>,
    /// The device of shared memory in no mounted filesystem: memfd, System V, shared anonymous.
    unmounted: OnceLock<Option<Device>>,
    /// The devices of hugetlb memory in no mounted filesystem: one for each pool.
    pools: OnceLock<Option<Vec<Device>>>,
    /// The facts about the kernel that were found with the first opened process.
    pub(super) abilities: OnceLock<Abilities>,
    /// The process of pmdb.
    pub(super) own: OnceLock<Process>,
}

/// The counts and settings of samepage merging in `/sys/kernel/mm/ksm`; `None` if they cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct KsmCounts {
    /// `pages_shared`: merged pages in use.
    pub shared_pages: Option<u64>,
    /// `use_zero_pages`: whether pages filled with zeros become the zero page.
    pub uses_zero_page: Option<bool>,
}

impl Machine {
    /// Makes the machine that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        let records = Arc::new(AtomicBool::new(true));
        Machine { page: source.page_size(), source, cache: MachineCache::default(), records }
    }

    /// Returns the same machine, with a `log` of all reads of it and of the processes that it opens.
    #[doc(hidden)]
    pub fn recorded(&self, log: &Arc<Log>) -> Arc<Self> {
        Arc::new(self.over(recorded::source(&self.source, log)))
    }

    /// Returns the kernel release, as `uname -r` prints it, and its major and minor number.
    pub fn kernel(&self) -> KernelVersion {
        self.version().clone()
    }

    pub(super) fn version(&self) -> &KernelVersion {
        self.cache.kernel.get_or_init(|| {
            let release = self.source.fetch(File::Release).unwrap_or_default();
            let release = lossy(release.trim_ascii_end());
            let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
            let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            KernelVersion { release, number }
        })
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Returns the page size by which frames are counted.
    pub fn page_size(&self) -> PageSize {
        self.page
    }

    /// Reads the words of frames from `first` on, from a file with a word for each frame. Returns how many were read:
    /// fewer than `into` holds means the end of physical memory.
    pub fn frame_words(&self, file: WordFile, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        self.source.words(file, first.get(), into)
    }

    /// Reads `/proc/kpageflags` from frame `first` on.
    pub fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize> {
        self.frame_words(WordFile::FrameFlags, first, as_words(into))
    }

    /// Reads `/proc/kpagecount` from frame `first` on: the number of mappings of each frame.
    pub fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        self.frame_words(WordFile::FrameCounts, first, into)
    }

    /// Checks that these parts of the kernel's records of frames are usable.
    ///
    /// # Errors
    /// Fails if they cannot be read, were not proved to be right, or are switched off.
    pub fn require_records(&self, parts: RecordParts) -> Result<()> {
        if !self.records.load(Ordering::Relaxed) {
            return Err(Error::not_available("struct page is not read (set kernel-records off)"));
        }
        self.source.fetch(RecordsOf::Frames(parts))
    }

    /// Reads the kernel's records of the frames from `first` on.
    ///
    /// # Errors
    /// Fails as [`require_records`](Self::require_records).
    pub fn frame_records(&self, first: FrameNumber, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()> {
        self.require_records(RecordParts::empty())?;
        self.source.kernel_records()?.frames(first.get(), parts, into)
    }

    /// Sets whether the kernel's records may be used.
    #[doc(hidden)]
    pub fn set_records(&self, on: bool) {
        self.records.store(on, Ordering::Relaxed);
    }

    /// Returns the same machine, read through another source.
    pub(super) fn over(&self, source: Arc<dyn Source>) -> Self {
        Machine { records: Arc::clone(&self.records), ..Machine::new(source) }
    }

    /// Returns the flags that this kernel sets falsely: KSM if a page of pmdb has it. `None` if that could not be
    /// checked.
    #[doc(hidden)]
    pub fn mistaken_flags(&self) -> Option<PageFlags> {
        let look = || Some(PageFlags::from_bits_retain(self.source.word(Probe::OwnFlags)?) & PageFlags::KSM);
        *self.cache.mistaken_flags.get_or_init(look)
    }

    /// Returns the flags that are true for no page now: also KSM while nothing is merged
    /// (`/sys/kernel/mm/ksm/pages_shared`). `None` if neither could be checked.
    #[doc(hidden)]
    pub fn false_flags(&self) -> Option<PageFlags> {
        let mistaken = self.mistaken_flags();
        // Merging may begin at any time, but a kernel that sets KSM falsely always does.
        match self.setting(KernelSetting::MergedPages) {
            Some(0) => Some(mistaken.unwrap_or_default() | PageFlags::KSM),
            _ => mistaken,
        }
    }

    /// Reads the current state of samepage merging.
    pub fn merging(&self) -> KsmCounts {
        let zero_page = || self.setting(KernelSetting::ZeroPageIsMerged);
        let shared_pages = self.setting(KernelSetting::MergedPages);
        KsmCounts {
            shared_pages,
            // The setting has an effect only if pages are merged.
            uses_zero_page: match shared_pages {
                Some(0) => None,
                _ => zero_page().map(|value| value != 0),
            },
        }
    }

    /// Reads the zones and nodes of frames (`/proc/zoneinfo`), once.
    pub fn zones(&self) -> Result<Arc<Zones>> {
        let read = || {
            let zones = Zones::parse(&self.source.fetch(File::Zones)?)?;
            let is_empty = zones.iter().next().is_none();
            if !is_empty {
                Ok(Arc::new(zones))
            } else {
                Err(Error::not_available("/proc/zoneinfo is empty: something hides it, as containers do"))
            }
        };
        self.cache.zones.get_or_init(read).clone()
    }

    /// Reads the use of physical addresses (`/proc/iomem`), once.
    pub fn iomem(&self) -> Result<Arc<Resources>> {
        let read = || {
            let resources = match self.source.fetch(File::Iomem) {
                Err(Error::Io { error: Errno::NOENT, .. }) => {
                    return Err(Error::not_available(
                        "there is no /proc/iomem (this /proc is mounted with subset=pid)",
                    ));
                }
                text => Resources::parse(&text?)?,
            };
            if resources.is_empty() {
                return Err(Error::not_available("/proc/iomem is empty: something hides it, as containers do"));
            }
            if !resources.are_hidden() {
                Ok(Arc::new(resources))
            } else {
                Err(Error::not_permitted(
                    "the addresses in /proc/iomem are hidden: CAP_SYS_ADMIN is missing",
                    self.way_to("CAP_SYS_ADMIN"),
                ))
            }
        };
        self.cache.iomem.get_or_init(read).clone()
    }

    /// Returns the path of the memory cgroup with this inode number, from the root of its hierarchy; `None` if no
    /// directory has the number: the group was removed, or is outside of pmdb's cgroup namespace.
    pub fn cgroup_path(&self, inode: u64) -> Result<Option<Name>> {
        self.cache.cgroups.path(inode, &*self.source)
    }

    /// Reads the memory that is charged to a cgroup and its descendants, and their processes. The path begins at the
    /// root of the hierarchy, or with its mount point.
    ///
    /// # Errors
    /// Fails if there is no such group, or no hierarchy.
    pub fn cgroup_memory(&self, path: &[u8]) -> Result<CgroupMemory> {
        CgroupMemory::of(path, &*self.source)
    }

    /// Returns the mount point of the hierarchy of [`Machine::cgroup_path`].
    pub fn cgroup_mount(&self) -> Result<Name> {
        Cgroups::mount(&*self.source)
    }

    /// Reads the swap areas (`/proc/swaps`).
    pub fn swaps(&self) -> Result<SwapAreas> {
        Ok(SwapAreas::parse(&self.source.fetch(File::Swaps)?)?)
    }

    /// Returns how this kernel numbers its pseudo swap types, by its configuration if that can be read.
    pub fn swap_layout(&self) -> SwapLayout {
        SwapLayout { options: self.config().map(|(config, _)| config.swap_options()), kernel: self.version().number }
    }

    /// Returns the name of the file with the kernel's configuration; `None` if none can be read.
    #[doc(hidden)]
    pub fn configuration(&self) -> Option<Name> {
        self.config().map(|(_, place)| place.clone())
    }

    /// Reads the configuration of the running kernel, from the kernel or from the place where distributions install it.
    fn config(&self) -> Option<&(Config, Name)> {
        let at = |place: ConfigPlace| {
            let bytes = self.source.fetch(File::Config(place)).ok()?;
            let text = match place {
                ConfigPlace::Kernel => decompress(&bytes)?,
                ConfigPlace::Boot | ConfigPlace::Modules => bytes,
            };
            let path = place.path(&self.version().release);
            Some((Config::new(text)?, Name::from(&*path)))
        };
        let look = || ConfigPlace::ALL.into_iter().find_map(at);
        self.cache.config.get_or_init(look).as_ref()
    }

    /// Returns whether the kernel was built with an option (`CONFIG_PAGE_MAPCOUNT`) as `y`; `None` if its configuration
    /// cannot be read.
    pub fn kernel_option(&self, name: &str) -> Option<bool> {
        self.config().map(|(config, _)| config.is_set(name))
    }

    /// Returns whether a map count is that of one page, and not an average over a large folio; `None` if unknown.
    pub fn has_exact_map_counts(&self) -> Option<bool> {
        let look = || {
            if self.version().number < (6, 15) {
                Some(true)
            } else {
                self.config().map(|(config, _)| config.counts_each_page())
            }
        };
        *self.cache.exact_map_counts.get_or_init(look)
    }

    /// Tries which facts this kernel and pmdb's rights make available.
    #[doc(hidden)]
    pub fn findings(&self) -> Vec<Finding> {
        findings::of_machine(
            &*self.source,
            MachineFacts {
                kernel: self.version().number,
                exact_map_counts: self.has_exact_map_counts(),
                iomem: self.iomem().map(drop),
                soft_dirty: self.has_soft_dirty(),
                configuration: self.configuration(),
                records: findings::records(|parts| self.require_records(parts)),
            },
        )
    }

    /// Returns the rights of pmdb; `None` if they do not matter.
    #[doc(hidden)]
    pub fn credentials(&self) -> Option<Credentials> {
        Some(self.source.fetch(Rights).ok()??.credentials)
    }

    /// Returns the bytes that one PMD maps (`/sys/kernel/mm/transparent_hugepage/hpage_pmd_size`); `None` if the file
    /// cannot be read.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let read = || self.setting(KernelSetting::HugePageBytes);
        *self.cache.huge_page_bytes.get_or_init(read)
    }

    /// Returns whether the kernel tracks soft-dirty pages, so that bit 55 of an entry has a meaning; `None` if unknown.
    ///
    /// Such a kernel marks every page that is written to, so pmdb writes to one of its pages. That is cheaper than to
    /// unpack the configuration.
    pub fn has_soft_dirty(&self) -> Option<bool> {
        let look = || {
            let entry = PageMapEntry::new(self.source.word(Probe::OwnEntry)?);
            Some(entry.is_soft_dirty())
        };
        *self.cache.soft_dirty.get_or_init(look)
    }

    /// Returns whether memory has protection keys; `None` if unknown. The kernel shows a key for all regions or for
    /// none, so the first region of pmdb decides.
    pub fn has_protection_keys(&self) -> Option<bool> {
        let look = || {
            let text = self.source.fetch(File::OwnSmaps).ok()?;
            let first = smaps::regions(&text).next()?.ok()?;
            Some(first.protection_key.is_some())
        };
        *self.cache.protection_keys.get_or_init(look)
    }

    /// Returns where the files on `device` are stored, by mountinfo. Each mount costs one step.
    ///
    /// # Errors
    /// Fails if the budget is over.
    pub fn files_on(&self, device: Device, budget: &mut Budget) -> std::result::Result<FilesOn, OutOfBudget> {
        let of_pool = || self.pools().is_some_and(|pools| pools.contains(&device));
        // Disks have major numbers; filesystems without one have major number 0.
        Ok(match device.major {
            0 if self.unmounted() == Some(device) => FilesOn::Memory(MemoryFiles::Shared),
            0 if of_pool() => FilesOn::Memory(MemoryFiles::Hugetlb),
            0 => self.find_mount(device, budget, |mount| Some(mount.files()))?.unwrap_or(FilesOn::NoMount),
            _ => FilesOn::Storage,
        })
    }

    /// Returns whether [`files_on`](Self::files_on) finds hugetlb memory in no mounted filesystem, as most of it is. If
    /// not, only the names of regions show it.
    #[doc(hidden)]
    pub fn pools_are_known(&self) -> bool {
        self.pools().is_some()
    }

    /// Returns whether `device` is that of shared memory or hugetlb memory in no mounted filesystem. The kernel's
    /// internal mounts have no limit.
    pub fn is_unmounted(&self, device: Device) -> bool {
        let of_pool = || self.pools().is_some_and(|pools| pools.contains(&device));
        device.major == 0 && (self.unmounted() == Some(device) || of_pool())
    }

    fn unmounted(&self) -> Option<Device> {
        let ask = || devices(&self.source.fetch(Probe::SharedMemory).ok()?).pop();
        *self.cache.unmounted.get_or_init(ask)
    }

    /// Returns the devices of the hugetlb pools; `None` if the kernel does not show them (memfd_create has MFD_HUGETLB
    /// since Linux 4.14).
    fn pools(&self) -> Option<&[Device]> {
        let ask = || Some(devices(&self.source.fetch(Probe::Pools).ok()?));
        self.cache.pools.get_or_init(ask).as_deref()
    }

    /// Returns the first answer for a mount of the device. Mounts change, so they are read at each call. Each costs one
    /// step.
    pub(super) fn find_mount<T>(
        &self,
        device: Device,
        budget: &mut Budget,
        wanted: impl Fn(&Mount) -> Option<T>,
    ) -> std::result::Result<Option<T>, OutOfBudget> {
        // pmdb's list does not have the mounts of a container.
        for list in [File::OwnMounts, File::Mounts] {
            let read = core_notes::mounts(&*self.source, list, budget);
            budget.check()?;
            let mut on_device = read.iter().flatten().filter(|mount| mount.device == device);
            if let Some(found) = on_device.find_map(&wanted) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Reads the value of a setting.
    pub(super) fn setting(&self, setting: KernelSetting) -> Option<u64> {
        core_notes::setting(&*self.source, setting)
    }
}

/// A kernel release.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelVersion {
    /// `6.18.44-amd64`
    pub release: String,
    /// Major and minor number.
    pub number: (u32, u32),
}

/// Converts pairs of major and minor numbers to devices.
fn devices(words: &[u64]) -> Vec<Device> {
    let device = |pair: &[u64]| {
        let [major, minor] = *pair else { return None };
        Some(Device { major: major.try_into().ok()?, minor: minor.try_into().ok()? })
    };
    words.chunks(2).filter_map(device).collect()
}

/// Unpacks gzip.
fn decompress(packed: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(packed).take(ConfigPlace::MOST_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}
