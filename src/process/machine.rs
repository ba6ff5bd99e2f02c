//! The machine that the target runs on: its page frames, zones, processes.

use super::cgroups::{CgroupMemory, Cgroups};
use super::core_notes;
use super::findings::{self, MachineFacts};
use super::handles::{ProcessHandle, ProcessHandles};
use super::modules::Modules;
use super::status::{age, read_command_line};
use super::target_process::{Abilities, Process};
use crate::access::log::Log;
use crate::access::{Error, ProcessEntry, Result};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mounts::{FilesOn, MemoryFiles, Mount};
use crate::kernel::physical::{Resources, Zones};
use crate::kernel::smaps::{self, Smaps};
use crate::kernel::status::{Stat, Status};
use crate::kernel::swaps::{Config, SwapAreas, SwapLayout};
use crate::kernel::text::lossy;
use crate::kernel::{Device, FrameNumber, Name, PageFlags, PageMapEntry, PageSize, WordFile};
use crate::records::{FrameRecord, RecordParts};
use crate::source::{
    ConfigPlace, Credentials, File, Finding, Held, KernelSetting, List, Listed, Probe, RecordsOf, Rights, Source,
    as_words, recorded,
};
use flate2::read::GzDecoder;
use rustix::io::Errno;
use std::cmp;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A machine, decoded from what its source gives.
pub struct Machine {
    source: Arc<dyn Source>,
    page: PageSize,
    pub(super) cache: MachineCache,
    /// Whether the kernel's own records may be used.
    records: Arc<AtomicBool>,
}

/// What was found out so far: it does not change.
#[derive(Default)]
pub(super) struct MachineCache {
    kernel: OnceLock<KernelVersion>,
    cgroups: Cgroups,
    zones: OnceLock<Result<Arc<Zones>>>,
    iomem: OnceLock<Result<Arc<Resources>>>,
    pub(super) block_bytes: OnceLock<Result<u64>>,
    /// Whether blocks of memory are online: `None` for a block that there is not.
    pub(super) blocks: Mutex<BTreeMap<u64, Option<bool>>>,
    /// The configuration, and the file that it is from.
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
    /// What was found out about the kernel with the first process that was opened.
    abilities: OnceLock<Abilities>,
    /// pmdb's own process.
    own: OnceLock<Process>,
}

/// What `/sys/kernel/mm/ksm` says of samepage merging; `None` where it cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct KsmCounts {
    /// `pages_shared`: merged pages in use.
    pub shared_pages: Option<u64>,
    /// `use_zero_pages`: whether pages filled with zeros become the zero page.
    pub uses_zero_page: Option<bool>,
}

impl Machine {
    /// The machine that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        let records = Arc::new(AtomicBool::new(true));
        Machine { page: source.page_size(), source, cache: MachineCache::default(), records }
    }

    /// The same machine; `log` records what is read of it, and of the processes that it opens.
    #[doc(hidden)]
    pub fn recorded(&self, log: &Arc<Log>) -> Arc<Self> {
        Arc::new(self.over(recorded::source(&self.source, log)))
    }

    /// Kernel release, as `uname -r` prints it, and its first two numbers.
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

    /// Page size by which frames are counted.
    pub fn page_size(&self) -> PageSize {
        self.page
    }

    /// The words of one of the files with a word for each frame, from frame `first` on; fewer than asked for means that
    /// physical memory ends there.
    pub fn frame_words(&self, file: WordFile, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        self.source.words(file, first.get(), into)
    }

    /// `/proc/kpageflags` from frame `first` on.
    pub fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize> {
        self.frame_words(WordFile::FrameFlags, first, as_words(into))
    }

    /// `/proc/kpagecount` from frame `first` on: how often each frame is mapped.
    pub fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        self.frame_words(WordFile::FrameCounts, first, into)
    }

    /// Whether these parts of the kernel's own records of frames can be believed here.
    ///
    /// # Errors
    /// They cannot be read, were not proved to be right, or are not to be used.
    pub fn require_records(&self, parts: RecordParts) -> Result<()> {
        if !self.records.load(Ordering::Relaxed) {
            return Err(Error::not_available("struct page is not read (set kernel-records off)"));
        }
        self.source.fetch(RecordsOf::Frames(parts))
    }

    /// The kernel's own records of the frames from `first` on.
    ///
    /// # Errors
    /// As [`require_records`](Self::require_records).
    pub fn frame_records(&self, first: FrameNumber, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()> {
        self.require_records(RecordParts::empty())?;
        self.source.kernel_records()?.frames(first.get(), parts, into)
    }

    /// Whether the kernel's own records may be used.
    #[doc(hidden)]
    pub fn set_records(&self, on: bool) {
        self.records.store(on, Ordering::Relaxed);
    }

    /// The same machine, read through another source.
    pub(super) fn over(&self, source: Arc<dyn Source>) -> Self {
        Machine { records: Arc::clone(&self.records), ..Machine::new(source) }
    }

    /// Flags that this kernel sets where they do not hold: KSM if a page of pmdb's own has it. `None` when that could
    /// not be looked at.
    #[doc(hidden)]
    pub fn mistaken_flags(&self) -> Option<PageFlags> {
        let look = || Some(PageFlags::from_bits_retain(self.source.word(Probe::OwnFlags)?) & PageFlags::KSM);
        *self.cache.mistaken_flags.get_or_init(look)
    }

    /// Flags that hold for no page now: also KSM while nothing is merged (`/sys/kernel/mm/ksm/pages_shared`). `None`
    /// when neither could be looked at.
    #[doc(hidden)]
    pub fn false_flags(&self) -> Option<PageFlags> {
        let mistaken = self.mistaken_flags();
        // Merging may begin at any time; a kernel's mistake stays.
        match self.setting(KernelSetting::MergedPages) {
            Some(0) => Some(mistaken.unwrap_or_default() | PageFlags::KSM),
            _ => mistaken,
        }
    }

    /// The current state of samepage merging.
    pub fn merging(&self) -> KsmCounts {
        let zero_page = || self.setting(KernelSetting::ZeroPageIsMerged);
        let shared_pages = self.setting(KernelSetting::MergedPages);
        KsmCounts {
            shared_pages,
            // The setting matters only where pages are merged.
            uses_zero_page: match shared_pages {
                Some(0) => None,
                _ => zero_page().map(|value| value != 0),
            },
        }
    }

    /// Zone and node of frames (`/proc/zoneinfo`).
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

    /// What lies at which physical address (`/proc/iomem`).
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

    /// The path of the memory cgroup whose directory has this inode number, from the root of its hierarchy; `None` when
    /// no directory has it: the group was removed, or lies outside of pmdb's cgroup namespace.
    pub fn cgroup_path(&self, inode: u64) -> Result<Option<Name>> {
        self.cache.cgroups.path(inode, &*self.source)
    }

    /// What is charged to a memory cgroup and to those below it, and their processes. The path begins at the root of
    /// the hierarchy, or with its mount point.
    ///
    /// # Errors
    /// There is no such group, or no hierarchy.
    pub fn cgroup_memory(&self, path: &[u8]) -> Result<CgroupMemory> {
        CgroupMemory::of(path, &*self.source)
    }

    /// Where the hierarchy of [`Machine::cgroup_path`] is mounted.
    pub fn cgroup_mount(&self) -> Result<Name> {
        Cgroups::mount(&*self.source)
    }

    /// Swap areas (`/proc/swaps`), read anew.
    pub fn swaps(&self) -> Result<SwapAreas> {
        Ok(SwapAreas::parse(&self.source.fetch(File::Swaps)?)?)
    }

    /// How this kernel numbers its pseudo swap types (from its configuration, when that can be read).
    pub fn swap_layout(&self) -> SwapLayout {
        SwapLayout { options: self.config().map(|(config, _)| config.swap_options()), kernel: self.version().number }
    }

    /// The file that has the kernel's configuration; `None` when none can be read.
    #[doc(hidden)]
    pub fn configuration(&self) -> Option<Name> {
        self.config().map(|(_, place)| place.clone())
    }

    /// The configuration of the kernel that runs, from itself or from where distributions leave it.
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

    /// Whether the kernel was built with an option (`CONFIG_PAGE_MAPCOUNT`) as `y`; `None` when its configuration
    /// cannot be read.
    pub fn kernel_option(&self, name: &str) -> Option<bool> {
        self.config().map(|(config, _)| config.is_set(name))
    }

    /// Whether a map count counts one page, and is no average over a large folio; `None` if that cannot be known.
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

    /// Which facts this kernel and pmdb's rights make available, found out by trying each.
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

    /// The rights of pmdb; `None` where they do not matter.
    #[doc(hidden)]
    pub fn credentials(&self) -> Option<Credentials> {
        Some(self.source.fetch(Rights).ok()??.credentials)
    }

    /// Bytes that one PMD maps (`/sys/kernel/mm/transparent_hugepage/hpage_pmd_size`); `None` when that cannot be read.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let read = || self.setting(KernelSetting::HugePageBytes);
        *self.cache.huge_page_bytes.get_or_init(read)
    }

    /// Whether the kernel tracks soft-dirty pages, so that bit 55 of an entry means something; `None` if that cannot be
    /// known.
    ///
    /// A kernel that does marks every page that is written to, so pmdb writes to a page of its own. That is cheaper
    /// than unpacking the kernel's configuration.
    pub fn has_soft_dirty(&self) -> Option<bool> {
        let look = || {
            let entry = PageMapEntry::new(self.source.word(Probe::OwnEntry)?);
            Some(entry.is_soft_dirty())
        };
        *self.cache.soft_dirty.get_or_init(look)
    }

    /// Whether memory has protection keys here; `None` if that cannot be known. The kernel shows a key for each region
    /// of each process or for none, so the first of pmdb's own regions is enough.
    pub fn has_protection_keys(&self) -> Option<bool> {
        let look = || {
            let text = self.source.fetch(File::OwnSmaps).ok()?;
            let first = smaps::regions(&text).next()?.ok()?;
            Some(first.protection_key.is_some())
        };
        *self.cache.protection_keys.get_or_init(look)
    }

    /// Where the files on `device` are, by mountinfo. Each mount is a step.
    ///
    /// # Errors
    /// The budget is over.
    pub fn files_on(&self, device: Device, budget: &mut Budget) -> std::result::Result<FilesOn, OutOfBudget> {
        let of_pool = || self.pools().is_some_and(|pools| pools.contains(&device));
        // Disks have numbers of their own; everything without one has a major number of 0.
        Ok(match device.major {
            0 if self.unmounted() == Some(device) => FilesOn::Memory(MemoryFiles::Shared),
            0 if of_pool() => FilesOn::Memory(MemoryFiles::Hugetlb),
            0 => self.find_mount(device, budget, |mount| Some(mount.files()))?.unwrap_or(FilesOn::NoMount),
            _ => FilesOn::Storage,
        })
    }

    /// Whether [`files_on`](Self::files_on) knows hugetlb memory that is in no mounted filesystem, as most of
    /// it is. If not, only the names of regions show it.
    #[doc(hidden)]
    pub fn pools_are_known(&self) -> bool {
        self.pools().is_some()
    }

    /// Whether it is the device of shared memory, or of hugetlb memory, that is in no mounted filesystem. The kernel's
    /// own mounts have no limit.
    pub fn is_unmounted(&self, device: Device) -> bool {
        let of_pool = || self.pools().is_some_and(|pools| pools.contains(&device));
        device.major == 0 && (self.unmounted() == Some(device) || of_pool())
    }

    fn unmounted(&self) -> Option<Device> {
        let ask = || devices(&self.source.fetch(Probe::SharedMemory).ok()?).pop();
        *self.cache.unmounted.get_or_init(ask)
    }

    /// The devices of the hugetlb pools; `None` where the kernel does not tell (memfd_create knows MFD_HUGETLB since
    /// Linux 4.14).
    fn pools(&self) -> Option<&[Device]> {
        let ask = || Some(devices(&self.source.fetch(Probe::Pools).ok()?));
        self.cache.pools.get_or_init(ask).as_deref()
    }

    /// The first answer for a mount of the device. Read anew each time, as mounts come and go. Each mount is a step.
    pub(super) fn find_mount<T>(
        &self,
        device: Device,
        budget: &mut Budget,
        wanted: impl Fn(&Mount) -> Option<T>,
    ) -> std::result::Result<Option<T>, OutOfBudget> {
        // The mounts of a container are not in pmdb's own list.
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

    /// Every process that can be listed.
    pub fn processes(&self) -> Result<Vec<ProcessEntry>> {
        let mut listed = self.source.list(List::All)?;
        listed.sort_unstable_by_key(|one| one.pid);
        let entries = listed.iter().filter_map(|one| entry(&*self.source, one));
        Ok(entries.collect())
    }

    /// One process as a listing shows it; `None` if it has exited.
    pub fn process_entry(&self, pid: u32) -> Option<ProcessEntry> {
        let listed = self.source.list(List::One(pid)).ok()?;
        entry(&*self.source, listed.first()?)
    }

    /// The [rollup](Process::rollup) of a process.
    pub fn rollup_of(&self, pid: u32) -> Result<Smaps> {
        Process::new(self.source.open(pid, &Held::default())?).rollup()
    }

    /// Every process that may have memory of its own, each with its parent, by number. Cheaper than a listing, and
    /// reads nothing of their memory (a command line is read from it).
    pub fn process_handles(&self) -> Result<ProcessHandles> {
        let mut relations = ProcessHandles { processes: Vec::new(), are_all: false };
        for Listed { pid, stat, held, .. } in self.source.list(List::Held)? {
            let stat = Stat::parse(&stat)?;
            let Stat { parent, start_time, .. } = stat;
            if stat.is_kernel_thread {
                relations.are_all = true;
            } else {
                relations.processes.push(ProcessHandle { pid, parent, start_time, held });
            }
        }
        relations.processes.sort_unstable_by_key(|one| one.pid);
        Ok(relations)
    }

    /// Whether a process has a child that was born within this time.
    ///
    /// # Errors
    /// Processes cannot be listed.
    pub fn has_forked(&self, parent: u32, within: Duration) -> Result<bool> {
        /// Two clock ticks: both times are cut to them.
        const INEXACT: f64 = 0.02;
        let handles = self.process_handles()?;
        let children = handles.processes.iter().filter(|one| one.parent == parent);
        let youngest = children.map(|one| one.start_time).max();
        let is_young = |birth| age(&*self.source, birth).is_none_or(|age| age <= within.as_secs_f64() + INEXACT);
        Ok(youngest.is_some_and(is_young))
    }

    /// Opens one of these, as attaching does.
    ///
    /// # Errors
    /// As for attaching: refused, gone meanwhile.
    pub fn open(&self, one: &ProcessHandle) -> Result<OpenedProcess> {
        let source = self.source.open(one.pid, &one.held)?;
        let process = match self.cache.abilities.get() {
            Some(&known) => Process::with(Arc::clone(&source), known),
            None => Process::new(Arc::clone(&source)),
        };
        self.cache.abilities.get_or_init(|| process.abilities());
        Ok(OpenedProcess { process, modules: Modules::new(source) })
    }

    /// The process id of pmdb as this machine's list of processes has it; `None` where it does not run on this machine.
    ///
    /// # Errors
    /// `/proc` does not show it.
    pub fn own_number(&self) -> Result<Option<u32>> {
        match self.source.fetch(Probe::OwnNumber) {
            Err(Error::NotAvailable { .. }) => Ok(None),
            number => Ok(number?.first().and_then(|&number| u32::try_from(number).ok())),
        }
    }

    /// pmdb's own process, opened once; `None` where it does not run on this machine.
    ///
    /// # Errors
    /// `/proc` does not show it, or it may not be opened.
    pub fn own_process(&self) -> Result<Option<Process>> {
        if let Some(process) = self.cache.own.get() {
            return Ok(Some(process.clone()));
        }
        let Some(number) = self.own_number()? else {
            return Ok(None);
        };
        let opened = self.open(&ProcessHandle::of_numbers(number, 0))?;
        Ok(Some(self.cache.own.get_or_init(|| opened.process).clone()))
    }

    /// Binary search by `kcmp(2)`: `others` are sorted by their address spaces, in an order that means nothing but that
    /// equal ones are the same. `Ok(i)`: `process` shares memory with `others[i]`; `Err(i)`: it belongs there; `None`:
    /// the kernel cannot compare. Two processes share memory without being threads of each other after vfork, or
    /// `clone` with CLONE_VM alone.
    #[doc(hidden)]
    pub fn find_memory(&self, others: &[u32], process: u32) -> Option<std::result::Result<usize, usize>> {
        let mut is_told = true;
        let place = others.binary_search_by(|&other| {
            let order = match self.source.word(Probe::Compare(other, process)) {
                Some(0) => Some(cmp::Ordering::Equal),
                Some(1) => Some(cmp::Ordering::Less),
                Some(2) => Some(cmp::Ordering::Greater),
                _ => None,
            };
            is_told &= order.is_some();
            order.unwrap_or(cmp::Ordering::Less)
        });
        is_told.then_some(place)
    }

    /// The value of a setting.
    pub(super) fn setting(&self, setting: KernelSetting) -> Option<u64> {
        core_notes::setting(&*self.source, setting)
    }
}

/// A process that was opened beside the target.
#[non_exhaustive]
pub struct OpenedProcess {
    /// Its process.
    pub process: Process,
    /// The files behind its regions.
    pub modules: Modules,
}

/// A kernel release.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelVersion {
    /// `6.18.44-amd64`
    pub release: String,
    /// The first two numbers.
    pub number: (u32, u32),
}

/// What a listing says of a process.
pub(super) fn entry(source: &dyn Source, listed: &Listed) -> Option<ProcessEntry> {
    let stat = Stat::parse(&listed.stat).ok()?;
    let status = Status::parse(&listed.status).ok()?;
    let mut memory = status.memory.iter();
    let resident = memory.find(|(field, _)| field == "VmRSS");
    let command_line = || {
        let one = source.open(listed.pid, &listed.held).ok()?;
        read_command_line(&*one, stat.arguments)
    };
    Some(ProcessEntry {
        pid: listed.pid,
        user: status.user,
        state: stat.state,
        resident: resident.map(|(_, bytes)| *bytes),
        command_line: if stat.is_kernel_thread { Some(Name::default()) } else { command_line() },
        name: stat.name,
    })
}

/// Devices of major and minor numbers, one after the other.
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
