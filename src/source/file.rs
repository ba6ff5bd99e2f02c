//! The closed list of the files that are read about a process and its machine: no path comes from outside.

use super::class::{Argument, Subject, questions_of};
use crate::kernel::AddressRange;

const SAVES_MOUNTS: &str = "it only saves reads of the mounts";

questions_of! {
    /// A file that is read whole, or a link.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum File {
        /// `/proc/PID/stat`
        Stat = "stat" => process(EachProcess, Stat),
        /// `/proc/PID/status`, of a thread that still runs if the main thread has ended.
        Status = "status" => process(EachProcess, Status),
        /// `/proc/PID/status` of the main thread.
        MainStatus = "main-status" => process(EachProcess, Status),
        /// `/proc/PID/limits`
        Limits = "limits" => process(EachProcess, Nothing),
        /// `/proc/PID/syscall`
        Syscall = "syscall" => process(EachProcess, Nothing),
        /// `/proc/PID/task/TID/syscall`
        ThreadSyscall(thread: u32) = "syscall" => process(EachThread, Nothing),
        /// `/proc/PID/fdinfo/N`
        DescriptorInfo(number: u32) = "fdinfo" => process(WhileDecoding, LeftOut),
        /// `/proc/PID/task/TID/fdinfo/N`, by thread and number.
        ThreadDescriptorInfo(thread: u32, number: u32) = "fdinfo" => process(WhileDecoding, LeftOut),
        /// `/proc/PID/smaps`
        Smaps = "smaps" => process(EachProcess, Regions),
        /// `/proc/PID/smaps_rollup`
        SmapsRollup = "smaps-rollup" => process(EachProcess, Nothing),
        /// `/proc/PID/numa_maps`
        NumaMaps = "numa-maps" => process(WhileDecoding, Policies),
        /// `/proc/PID/cmdline`. The kernel reads it from the memory of the process, and may fault pages in.
        CommandLine = "cmdline" => process(WhileDecoding, LeftOut),
        /// `/proc/PID/cgroup`
        Cgroup = "cgroup" => process(EachProcess, Cgroups),
        /// `/proc/PID/mountinfo`
        Mounts = "mountinfo" => process(EachProcess, Mounts),
        /// `/proc/PID/auxv`
        Auxiliary = "auxv" => process(EachProcess, Nothing),
        /// The link `/proc/PID/exe`.
        Program = "exe" => process(EachProcess, Link),
        /// The link `/proc/PID/ns/user`.
        UserNamespace = "user-namespace" => process(EachProcess, Nothing),
        /// The link `/proc/PID/ns/ipc`.
        IpcNamespace = "ipc-namespace" => process(EachProcess, Nothing),
        /// The link `/proc/PID/ns/mnt`.
        MountNamespace = "mount-namespace" => process(Never(SAVES_MOUNTS), Nothing),
        /// The link `/proc/PID/root`.
        Root = "root" => process(Never(SAVES_MOUNTS), Link),
        /// The link in `/proc/PID/map_files` of the mapping at these addresses.
        MappedFile(range: AddressRange) = "mapped-file" => process(WhileDecoding, Link),
        /// `/proc/self/maps`
        OwnMaps = "own-maps" => machine(Once, Regions),
        /// The beginning of `/proc/self/smaps`, with some regions.
        OwnSmaps = "own-smaps" => machine(Once, Regions),
        /// `/proc/self/mountinfo`
        OwnMounts = "own-mountinfo" => machine(Once, Mounts),
        /// The link `/proc/self/ns/user`.
        OwnUserNamespace = "own-user-namespace" => machine(Once, Nothing),
        /// The link `/proc/self/ns/ipc`.
        OwnIpcNamespace = "own-ipc-namespace" => machine(Once, Nothing),
        /// The link `/proc/self/ns/pid`.
        OwnProcessNamespace = "own-pid-namespace" => machine(Once, Nothing),
        /// `/proc/sysvipc/shm`: the System V segments of pmdb's IPC namespace, with keys and users of all its
        /// processes.
        Segments = "segments" => machine(Once, LeftOut),
        /// The release of the kernel, as `uname -r` prints it.
        Release = "osrelease" => machine(Once, Nothing),
        /// `/proc/uptime`
        Uptime = "uptime" => machine(Once, Nothing),
        /// `/proc/sys/vm/max_map_count`
        MostMappings = "max-map-count" => machine(Once, Nothing),
        /// `/proc/meminfo`
        MemoryCounters = "meminfo" => machine(Once, Nothing),
        /// `/proc/swaps`
        Swaps = "swaps" => machine(Once, Swaps),
        /// `/proc/zoneinfo`
        Zones = "zoneinfo" => machine(Once, Nothing),
        /// `/proc/buddyinfo`
        FreeBlocks = "buddyinfo" => machine(Once, Nothing),
        /// `/proc/vmstat`
        EventCounters = "vmstat" => machine(Never("it only saves reads of the words of frames"), Nothing),
        /// `/proc/iomem`
        Iomem = "iomem" => machine(Once, Nothing),
        /// The kernel's configuration.
        Config(place: ConfigPlace) = "config" => machine(WhileDecoding, Nothing),
        /// A setting below `/sys`.
        Setting(setting: KernelSetting) = "setting" => setting.class(),
    }
}

/// A place of the kernel's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigPlace {
    /// `/proc/config.gz`, compressed.
    Kernel,
    /// `/boot`
    Boot,
    /// `/lib/modules`
    Modules,
}

impl ConfigPlace {
    /// The most bytes of a configuration, whose text has some 300 KiB.
    pub(crate) const MOST_BYTES: u64 = 8 << 20;
}

questions_of! {
    /// A number or a word below `/sys`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum KernelSetting {
        /// Pages that KSM has merged.
        MergedPages = "ksm-pages-shared" => machine(Once, Nothing),
        /// Whether KSM merges zero-filled pages into the zero page.
        ZeroPageIsMerged = "ksm-use-zero-pages" => machine(Once, Nothing),
        /// Bytes that one PMD maps.
        HugePageBytes = "hpage-pmd-size" => machine(Once, Nothing),
        /// Which memory gets transparent huge pages.
        HugePages = "thp-enabled" => machine(Once, Nothing),
        /// Which memory gets transparent huge pages of this many bytes.
        HugePagesOf(bytes: u64) = "thp-enabled" => machine(WhileDecoding, Nothing),
        /// Anonymous folios of this many bytes that are partly mapped (Linux 6.12).
        PartlyMapped(bytes: u64) = "thp-partly-mapped" => machine(WhileDecoding, Nothing),
        /// The memory statistics (`mm_stat`) of the zram device with this number.
        Zram(number: u32) = "zram-mm-stat" => machine(WhileDecoding, Nothing),
        /// Which shared memory gets transparent huge pages.
        HugeShared = "thp-shmem-enabled" => machine(Once, Nothing),
        /// Which shared memory gets transparent huge pages of this many bytes.
        HugeSharedOf(bytes: u64) = "thp-shmem-enabled" => machine(WhileDecoding, Nothing),
        /// `max_ptes_none`: the most empty pages in a range that khugepaged collapses.
        CollapseEmpty = "max-ptes-none" => machine(Once, Nothing),
        /// `max_ptes_swap`: the most swapped pages in such a range.
        CollapseSwapped = "max-ptes-swap" => machine(Once, Nothing),
        /// `max_ptes_shared`: the most shared pages in such a range.
        CollapseShared = "max-ptes-shared" => machine(Once, Nothing),
        /// `pages_to_scan`: the pages that khugepaged scans before it sleeps.
        CollapseScan = "pages-to-scan" => machine(Once, Nothing),
        /// `scan_sleep_millisecs`: the milliseconds that it sleeps then.
        CollapseSleep = "scan-sleep-millisecs" => machine(Once, Nothing),
        /// `full_scans`: how often khugepaged has scanned all processes.
        CollapsePasses = "full-scans" => machine(Once, Nothing),
        /// Free pages of the hugetlb pool with pages of this many bytes.
        FreePoolPages(bytes: u64) = "free-hugepages" => machine(EachPool, Nothing),
        /// Free pages of the pool on a node.
        FreePoolPagesOf(node: u32, bytes: u64) = "free-hugepages-of-node" => machine(EachNode, Nothing),
        /// The size of a memory block in bytes. A block is online or offline as a whole.
        MemoryBlockBytes = "memory-block-bytes" => machine(Once, Nothing),
        /// The state of the memory block with this number: `online`, `offline` or `going-offline`.
        MemoryBlock(block: u64) = "memory-block" => machine(WhileDecoding, Nothing),
        /// Reserved pages of the hugetlb pool with pages of this many bytes.
        ReservedPoolPages(bytes: u64) = "resv-hugepages" => machine(EachPool, Nothing),
    }
}

impl File {
    /// Returns the path of the file, and the name of its contents. A path without a leading slash is below `/proc/PID`.
    /// [`File::path`] completes paths with arguments.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            File::Stat => ("stat", "the process"),
            File::Status | File::MainStatus => ("status", "the process"),
            File::Limits => ("limits", "the limits of the process"),
            File::Syscall => ("syscall", "registers"),
            File::ThreadSyscall(_) => ("task", "registers"),
            File::DescriptorInfo(_) | File::ThreadDescriptorInfo(..) => ("fdinfo", "the use of a file descriptor"),
            File::Smaps => ("smaps", "the kernel's counts for each region"),
            File::SmapsRollup => ("smaps_rollup", "the kernel's counts for the process"),
            File::NumaMaps => ("numa_maps", "the memory policies of regions"),
            File::CommandLine => ("cmdline", "the command line"),
            File::Cgroup => ("cgroup", "the cgroups of the process"),
            File::Mounts => ("mountinfo", "the mounted filesystems"),
            File::Auxiliary => ("auxv", "the auxiliary vector of the program"),
            File::Program => ("exe", "the program"),
            File::UserNamespace => ("ns/user", "the user namespace"),
            File::IpcNamespace => ("ns/ipc", "the IPC namespace"),
            File::MountNamespace => ("ns/mnt", "the mount namespace"),
            File::Root => ("root", "the root directory"),
            File::MappedFile(_) => ("map_files", "the name of a mapped file"),
            File::OwnMaps => ("/proc/self/maps", "the regions of pmdb itself"),
            File::OwnSmaps => ("/proc/self/smaps", "the kernel's counts for the regions of pmdb itself"),
            File::OwnMounts => ("/proc/self/mountinfo", "the mounted filesystems"),
            File::OwnUserNamespace => ("/proc/self/ns/user", "the user namespace"),
            File::OwnIpcNamespace => ("/proc/self/ns/ipc", "the IPC namespace of pmdb itself"),
            File::OwnProcessNamespace => ("/proc/self/ns/pid", "the PID namespace of pmdb itself"),
            File::Segments => ("/proc/sysvipc/shm", "System V segments"),
            File::Release => ("/proc/sys/kernel/osrelease", "the release of the kernel"),
            File::Uptime => ("/proc/uptime", "the uptime"),
            File::MostMappings => ("/proc/sys/vm/max_map_count", "the limit of mappings of a process"),
            File::MemoryCounters => ("/proc/meminfo", "the kernel's counters of memory"),
            File::Swaps => ("/proc/swaps", "swap areas"),
            File::Zones => ("/proc/zoneinfo", "zones and nodes of frames"),
            File::FreeBlocks => ("/proc/buddyinfo", "the free blocks of memory"),
            File::EventCounters => ("/proc/vmstat", "the kernel's counters of events"),
            File::Iomem => ("/proc/iomem", "the use of physical addresses"),
            File::Config(_) => ("/", "the options that the kernel was built with"),
            File::Setting(setting) => ("/sys", setting.what()),
        }
    }

    /// Returns the path below `/proc/PID`, if the file is about the process.
    pub(super) fn of_process(self) -> Option<String> {
        match self {
            File::MappedFile(range) => Some(mapped_file(range)),
            File::ThreadSyscall(thread) => Some(format!("task/{thread}/syscall")),
            File::DescriptorInfo(number) => Some(format!("fdinfo/{number}")),
            File::ThreadDescriptorInfo(thread, number) => Some(format!("task/{thread}/fdinfo/{number}")),
            file => Some(file.row().0.to_owned()).filter(|path| !path.starts_with('/')),
        }
    }

    /// Returns the path for process `pid`. The path of a configuration has `$(uname -r)` in place of the release.
    pub(super) fn path(self, pid: u32) -> String {
        match (self, self.of_process()) {
            (_, Some(name)) => format!("/proc/{pid}/{name}"),
            (File::Config(place), _) => place.path("$(uname -r)"),
            (File::Setting(setting), _) => format!("/sys/{}", setting.path()),
            (file, None) => file.row().0.to_owned(),
        }
    }

    /// Returns the name of the file's contents.
    pub(super) fn what(self) -> &'static str {
        self.row().1
    }
}

/// Returns the path of the link of a mapping below `/proc/PID`.
pub(super) fn mapped_file(range: AddressRange) -> String {
    let (start, end) = (range.start().get(), range.end().get());
    format!("map_files/{start:x}-{end:x}")
}

impl ConfigPlace {
    /// All places, the likeliest first.
    pub const ALL: [ConfigPlace; 3] = [ConfigPlace::Kernel, ConfigPlace::Boot, ConfigPlace::Modules];

    /// Returns the path of the configuration of a release.
    pub fn path(self, release: &str) -> String {
        match self {
            ConfigPlace::Kernel => "/proc/config.gz".to_owned(),
            ConfigPlace::Boot => format!("/boot/config-{release}"),
            ConfigPlace::Modules => format!("/lib/modules/{release}/config"),
        }
    }
}

impl KernelSetting {
    /// Returns the path of the setting below `/sys`.
    pub(super) fn path(self) -> String {
        let pool = |bytes: u64, name: &str| format!("kernel/mm/hugepages/hugepages-{}kB/{name}", bytes >> 10);
        let transparent = |name: &str| format!("kernel/mm/transparent_hugepage/{name}");
        let of_size = |bytes: u64, name: &str| transparent(&format!("hugepages-{}kB/{name}", bytes >> 10));
        match self {
            KernelSetting::MergedPages => "kernel/mm/ksm/pages_shared".to_owned(),
            KernelSetting::ZeroPageIsMerged => "kernel/mm/ksm/use_zero_pages".to_owned(),
            KernelSetting::HugePageBytes => transparent("hpage_pmd_size"),
            KernelSetting::HugePages => transparent("enabled"),
            KernelSetting::HugePagesOf(bytes) => of_size(bytes, "enabled"),
            KernelSetting::PartlyMapped(bytes) => of_size(bytes, "stats/nr_anon_partially_mapped"),
            KernelSetting::Zram(number) => format!("block/zram{number}/mm_stat"),
            KernelSetting::HugeShared => transparent("shmem_enabled"),
            KernelSetting::HugeSharedOf(bytes) => of_size(bytes, "shmem_enabled"),
            KernelSetting::CollapseEmpty => transparent("khugepaged/max_ptes_none"),
            KernelSetting::CollapseSwapped => transparent("khugepaged/max_ptes_swap"),
            KernelSetting::CollapseShared => transparent("khugepaged/max_ptes_shared"),
            KernelSetting::CollapseScan => transparent("khugepaged/pages_to_scan"),
            KernelSetting::CollapseSleep => transparent("khugepaged/scan_sleep_millisecs"),
            KernelSetting::CollapsePasses => transparent("khugepaged/full_scans"),
            KernelSetting::FreePoolPages(bytes) => pool(bytes, "free_hugepages"),
            KernelSetting::FreePoolPagesOf(node, bytes) => {
                format!("devices/system/node/node{node}/hugepages/hugepages-{}kB/free_hugepages", bytes >> 10)
            }
            KernelSetting::MemoryBlockBytes => "devices/system/memory/block_size_bytes".to_owned(),
            KernelSetting::MemoryBlock(block) => format!("devices/system/memory/memory{block}/state"),
            KernelSetting::ReservedPoolPages(bytes) => pool(bytes, "resv_hugepages"),
        }
    }

    fn what(self) -> &'static str {
        match self {
            KernelSetting::MergedPages => "merged pages in use (with none, the flag `ksm` is not true)",
            KernelSetting::ZeroPageIsMerged => "whether KSM uses the zero page",
            KernelSetting::HugePageBytes => "bytes that one PMD maps",
            KernelSetting::HugePages | KernelSetting::HugePagesOf(_) => "the setting for transparent huge pages",
            KernelSetting::PartlyMapped(_) => "huge pages that are mapped in part",
            KernelSetting::Zram(_) => "the use of a zram device",
            KernelSetting::HugeShared | KernelSetting::HugeSharedOf(_) => "the setting for huge pages of shared memory",
            KernelSetting::CollapseEmpty => "the most empty pages that khugepaged allows",
            KernelSetting::CollapseSwapped => "the most swapped pages that khugepaged allows",
            KernelSetting::CollapseShared => "the most shared pages that khugepaged allows",
            KernelSetting::CollapseScan => "the pages that khugepaged scans before it sleeps",
            KernelSetting::CollapseSleep => "the time that khugepaged sleeps",
            KernelSetting::CollapsePasses => "the passes of khugepaged over all processes",
            KernelSetting::FreePoolPages(_) => "free pages of the hugetlb pool",
            KernelSetting::FreePoolPagesOf(..) => "free pages of the hugetlb pool on a node",
            KernelSetting::MemoryBlockBytes => "bytes of a block of memory",
            KernelSetting::MemoryBlock(_) => "whether a block of memory is online",
            KernelSetting::ReservedPoolPages(_) => "reserved pages of the hugetlb pool",
        }
    }
}

impl Argument<'_> for ConfigPlace {
    fn write(&self, key: &mut String) {
        key.push_str(match self {
            ConfigPlace::Kernel => "proc",
            ConfigPlace::Boot => "boot",
            ConfigPlace::Modules => "modules",
        });
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        ConfigPlace::ALL.to_vec()
    }
}
