//! The arguments and results of a source's operations, and the closed list of the files that are read of a process and
//! of its machine: no path comes from outside.

use crate::access::Result;
use crate::kernel::{AddressRange, PageSize, Region, VirtualAddress};
use bitflags::bitflags;
use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

bitflags! {
    /// The categories of PAGEMAP_SCAN (Linux 6.7 and later).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Categories: u64 {
        /// Registered for asynchronous userfaultfd write tracking.
        const WRITE_TRACKED = 1 << 0;
        /// Written to; means something only together with `WRITE_TRACKED`.
        const WRITTEN = 1 << 1;
        /// A page of a file or of shared memory.
        const FILE = 1 << 2;
        /// A frame is mapped.
        const PRESENT = 1 << 3;
        /// A non-present entry: swap, marker, migration.
        const SWAPPED = 1 << 4;
        /// The zero page, or the huge zero page.
        const ZERO = 1 << 5;
        /// Mapped by one PMD (or a hugetlb page).
        const HUGE = 1 << 6;
        /// Soft-dirty.
        const SOFT_DIRTY = 1 << 7;
        /// A guard page (Linux 6.16).
        const GUARD = 1 << 8;
    }
}

impl Categories {
    /// The categories that the kernel's scan knows: none before Linux 6.7. `answers` tries a scan. A scan for an
    /// unknown category fails, so the sets that kernels have had are tried on an empty range, the newest first.
    pub fn supported(answers: impl Fn(Scan) -> bool) -> Categories {
        let knows = |&returned: &u64| answers(Scan { returned, ..Scan::default() });
        let known = [0x1ff, 0xff, 0x7f].into_iter().find(knows);
        known.map_or(Categories::empty(), Categories::from_bits_retain)
    }
}

/// The arguments of PAGEMAP_SCAN. Its flags are left out: both would write-protect pages of the target.
#[derive(Clone, Copy, Default, Debug)]
pub struct Scan {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Pages with at least one of these categories; all pages if there are none.
    pub any_of: u64,
    /// The categories to report.
    pub returned: u64,
    /// The most pages; 0 for all.
    pub max_pages: u64,
}

/// `struct page_region`: a stretch of pages of the same categories.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct PageRegion {
    /// The address of its first byte.
    pub start: u64,
    /// The address after its last byte.
    pub end: u64,
    /// The requested categories that hold.
    pub categories: u64,
}

/// A query for PROCMAP_QUERY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    /// The mapping that holds an address.
    At(VirtualAddress),
    /// The same, or if there is none, the next one above.
    From(VirtualAddress),
}

/// The answer of PROCMAP_QUERY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A mapping.
    Found(Mapping),
    /// There is none.
    Nothing,
    /// The query failed: before Linux 6.11, in a sandbox, or for a name that is too long. The text always answers.
    Unavailable,
}

/// A mapping as PROCMAP_QUERY gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The address of its first byte.
    pub start: u64,
    /// The address after its last byte.
    pub end: u64,
    /// 1 readable, 2 writable, 4 executable, 8 shared.
    pub flags: u64,
    /// Where it begins in its file.
    pub offset: u64,
    /// The inode of the file.
    pub inode: u64,
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Raw: a newline is a newline.
    pub name: Vec<u8>,
}

/// Which processes, threads or file descriptors are listed, and how much is read of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// All of them with a handle each, and of their files only `stat`.
    Held,
    /// All of them.
    All,
    /// The one of this number, or the one that the thread of this number belongs to.
    One(u32),
    /// The threads of the process, and of their files only `stat`.
    Threads,
    /// The file descriptors of the process: by number, and where the link of each leads.
    Descriptors,
    /// Those of one of its threads, which may have a table of its own (clone without CLONE_FILES, unshare).
    DescriptorsOf(u32),
}

/// A process, thread or file descriptor in a listing.
#[derive(Clone, Default, Debug)]
pub struct Listed {
    /// The number that it is listed by.
    pub pid: u32,
    /// `/proc/PID/stat`
    pub stat: Vec<u8>,
    /// `/proc/PID/status`
    pub status: Vec<u8>,
    /// Where `/proc/PID/exe`, or the link of the descriptor, leads, if that may be known.
    pub program: Option<Vec<u8>>,
    /// A handle on it.
    pub held: Held,
}

/// A source's own handle on a process or a file. Later opens of the process never reach another one with a reused
/// number. It is empty if there were too many processes to hold, or if there is no such file.
#[derive(Clone, Default)]
pub struct Held(pub(super) Option<Arc<dyn Any + Send + Sync>>);

impl Debug for Held {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.0.is_some())
    }
}

/// What can be tried. A source may cache the result.
#[derive(Clone, Copy, Debug)]
pub enum Probe<'a> {
    /// Bytes in a page.
    PageBytes,
    /// Whether the least significant byte of a word comes first: 1 if it does.
    LittleEndian,
    /// The `e_machine` of the machine's own programs. All programs that its kernel runs, of 32 bits too, have the same
    /// sign of plain `char`.
    Machine,
    /// Clock ticks in a second, by which start times are counted.
    TicksPerSecond,
    /// The page-map entry of a page that only pmdb maps, and has just written to.
    OwnEntry,
    /// The word of `/proc/kpageflags` for such a page.
    OwnFlags,
    /// Whether pmdb has the right to see frame numbers: 1 if it has.
    FrameRight,
    /// The effective user id of pmdb.
    User,
    /// The process id of pmdb as `/proc` has it, which may be that of another pid namespace.
    OwnNumber,
    /// Major and minor number of the device of shared memory in no mounted filesystem, such as a memfd.
    SharedMemory,
    /// The same for each hugetlb pool, one after the other.
    Pools,
    /// How the address spaces of two processes compare (`kcmp`): 0 the same, 1 less, 2 greater, in an order that means
    /// nothing else.
    Compare(u32, u32),
    /// How the tables of file descriptors of two threads compare, in the same way.
    CompareFiles(u32, u32),
    /// Whether the link of a mapping in `/proc/PID/map_files` can be followed: no words if it can.
    Follow(AddressRange),
    /// The same for a mapping of pmdb's own.
    FollowOwn(AddressRange),
    /// Whether the file behind a region has this path in the target's own root: 1 if it has.
    IsNamed(&'a Region, &'a [u8]),
    /// What `stat` and `statfs` have of the file behind a region, as [`MappedFile`](crate::kernel::mapped_file) reads
    /// it. Nothing is opened.
    MappedFile(&'a Region),
    /// The same of the file behind the descriptor of this number, in the table of a thread, or of the process. A server
    /// may have to answer: ask only of files in memory.
    Descriptor(Option<u32>, u32),
    /// The number of the mount that this file is on: no words if it has none.
    DescriptorMount(Option<u32>, u32),
}

/// How a source finds a file.
#[derive(Clone, Copy, Debug)]
pub enum FileLocation<'a> {
    /// The file behind a region, if it is a regular file of the same device and inode.
    Region(&'a Region),
    /// The regular file that bears this path in the target's own root, links followed as the target would.
    Path(&'a [u8]),
    /// The regular file that bears this path where pmdb itself runs.
    OwnPath(&'a [u8]),
    /// The regular file that bears this path in the target's own root, if it is no link and belongs to root or to this
    /// user: anything else there is an error.
    Trusted(&'a [u8], u32),
    /// The vdso that the kernel lends to pmdb itself, if it has the length of this region.
    OwnVdso(&'a Region),
}

/// What the object behind a mapping (a file, shared memory) has for a page, mapped or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BackingContent {
    /// It ends before this page: an access is SIGBUS.
    PastEnd,
    /// Shared memory that nobody has filled.
    Hole,
    /// It has contents for this page.
    Contents {
        /// They are in the page cache.
        cached: bool,
    },
}

/// Neighbouring pages with the same backing content.
#[derive(Clone, Debug)]
pub struct BackingRun {
    /// Whole pages.
    pub range: AddressRange,
    /// Their backing content, or why it is unknown.
    pub content: Result<BackingContent>,
}

/// A file that is read whole, or a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum File {
    /// `/proc/PID/stat`
    Stat,
    /// `/proc/PID/status`, of a thread that still runs where the main thread has ended.
    Status,
    /// `/proc/PID/status` of the main thread.
    MainStatus,
    /// `/proc/PID/limits`
    Limits,
    /// `/proc/PID/syscall`
    Syscall,
    /// `/proc/PID/task/TID/syscall`
    ThreadSyscall(u32),
    /// `/proc/PID/fdinfo/N`
    DescriptorInfo(u32),
    /// `/proc/PID/task/TID/fdinfo/N`, by thread and number.
    ThreadDescriptorInfo(u32, u32),
    /// `/proc/PID/smaps`
    Smaps,
    /// `/proc/PID/smaps_rollup`
    SmapsRollup,
    /// `/proc/PID/numa_maps`
    NumaMaps,
    /// `/proc/PID/cmdline`. The kernel reads it from the memory of the process, and may fault that in.
    CommandLine,
    /// `/proc/PID/cgroup`
    Cgroup,
    /// `/proc/PID/mountinfo`
    Mounts,
    /// `/proc/PID/auxv`
    Auxiliary,
    /// Where `/proc/PID/exe` leads.
    Program,
    /// Where `/proc/PID/ns/user` leads.
    UserNamespace,
    /// Where `/proc/PID/ns/ipc` leads.
    IpcNamespace,
    /// Where the link in `/proc/PID/map_files` leads for a mapping of these ends.
    MappedFile(AddressRange),
    /// `/proc/self/maps`
    OwnMaps,
    /// The beginning of `/proc/self/smaps`: some regions.
    OwnSmaps,
    /// `/proc/self/mountinfo`
    OwnMounts,
    /// Where `/proc/self/ns/user` leads.
    OwnUserNamespace,
    /// The release of the kernel, as `uname -r` prints it.
    Release,
    /// `/proc/uptime`
    Uptime,
    /// `/proc/sys/vm/max_map_count`
    MostMappings,
    /// `/proc/meminfo`
    MemoryCounters,
    /// `/proc/swaps`
    Swaps,
    /// `/proc/zoneinfo`
    Zones,
    /// `/proc/buddyinfo`
    FreeBlocks,
    /// `/proc/iomem`
    Iomem,
    /// The kernel's configuration.
    Config(ConfigPlace),
    /// A setting below `/sys`.
    Setting(KernelSetting),
}

/// Where the configuration of a kernel may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigPlace {
    /// `/proc/config.gz`, packed.
    Kernel,
    /// `/boot`
    Boot,
    /// `/lib/modules`
    Modules,
}

/// A number or a word below `/sys`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelSetting {
    /// Pages that KSM has merged.
    MergedPages,
    /// Whether KSM merges pages of zeros into the zero page.
    ZeroPageIsMerged,
    /// Bytes that one PMD maps.
    HugePageBytes,
    /// Which memory gets transparent huge pages.
    HugePages,
    /// Which memory gets those of this many bytes.
    HugePagesOf(u64),
    /// Which shared memory gets transparent huge pages.
    HugeShared,
    /// Which shared memory gets those of this many bytes.
    HugeSharedOf(u64),
    /// The most pages of a future huge page that khugepaged lets be empty.
    CollapseEmpty,
    /// The most that it lets be in swap.
    CollapseSwapped,
    /// The most that it lets be shared.
    CollapseShared,
    /// Free pages of the hugetlb pool whose pages have this many bytes.
    FreePoolPages(u64),
    /// Those of a node.
    FreePoolPagesOf(u32, u64),
    /// Bytes of a block of memory, which is online or offline as a whole.
    MemoryBlockBytes,
    /// The state of the block of this number: `online`, `offline` or `going-offline`.
    MemoryBlock(u64),
    /// Reserved pages of that pool.
    ReservedPoolPages(u64),
}

impl File {
    /// Its path and what it tells. A path without a slash in front is below `/proc/PID`. Files whose path depends on
    /// more are completed in [`File::path`].
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
            File::MappedFile(_) => ("map_files", "the name of a mapped file"),
            File::OwnMaps => ("/proc/self/maps", "the regions of pmdb itself"),
            File::OwnSmaps => ("/proc/self/smaps", "the kernel's counts for the regions of pmdb itself"),
            File::OwnMounts => ("/proc/self/mountinfo", "the mounted filesystems"),
            File::OwnUserNamespace => ("/proc/self/ns/user", "the user namespace"),
            File::Release => ("/proc/sys/kernel/osrelease", "the release of the kernel"),
            File::Uptime => ("/proc/uptime", "the uptime"),
            File::MostMappings => ("/proc/sys/vm/max_map_count", "the limit of mappings of a process"),
            File::MemoryCounters => ("/proc/meminfo", "the kernel's counters of memory"),
            File::Swaps => ("/proc/swaps", "swap areas"),
            File::Zones => ("/proc/zoneinfo", "zones and nodes of frames"),
            File::FreeBlocks => ("/proc/buddyinfo", "the free blocks of memory"),
            File::Iomem => ("/proc/iomem", "the use of physical addresses"),
            File::Config(_) => ("/", "the options that the kernel was built with"),
            File::Setting(setting) => ("/sys", setting.what()),
        }
    }

    /// Its path below `/proc/PID`, if it is one of the process.
    pub(super) fn of_process(self) -> Option<String> {
        match self {
            File::MappedFile(range) => Some(mapped_file(range)),
            File::ThreadSyscall(thread) => Some(format!("task/{thread}/syscall")),
            File::DescriptorInfo(number) => Some(format!("fdinfo/{number}")),
            File::ThreadDescriptorInfo(thread, number) => Some(format!("task/{thread}/fdinfo/{number}")),
            file => Some(file.row().0.to_owned()).filter(|path| !path.starts_with('/')),
        }
    }

    /// Its path for process `pid`. The path of a configuration has `$(uname -r)` for the release.
    pub(super) fn path(self, pid: u32) -> String {
        match (self, self.of_process()) {
            (_, Some(name)) => format!("/proc/{pid}/{name}"),
            (File::Config(place), _) => place.path("$(uname -r)"),
            (File::Setting(setting), _) => format!("/sys/{}", setting.path()),
            (file, None) => file.row().0.to_owned(),
        }
    }

    /// What it tells.
    pub(super) fn what(self) -> &'static str {
        self.row().1
    }
}

/// The link of a mapping below `/proc/PID`.
pub(super) fn mapped_file(range: AddressRange) -> String {
    let (start, end) = (range.start().get(), range.end().get());
    format!("map_files/{start:x}-{end:x}")
}

impl ConfigPlace {
    /// From the likeliest to have it.
    pub const ALL: [ConfigPlace; 3] = [ConfigPlace::Kernel, ConfigPlace::Boot, ConfigPlace::Modules];

    /// More bytes are no configuration: a text has some 300 KiB.
    pub(crate) const MOST_BYTES: u64 = 8 << 20;

    /// The path of the configuration of a release.
    pub fn path(self, release: &str) -> String {
        match self {
            ConfigPlace::Kernel => "/proc/config.gz".to_owned(),
            ConfigPlace::Boot => format!("/boot/config-{release}"),
            ConfigPlace::Modules => format!("/lib/modules/{release}/config"),
        }
    }
}

impl KernelSetting {
    /// Its path below `/sys`.
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
            KernelSetting::HugeShared => transparent("shmem_enabled"),
            KernelSetting::HugeSharedOf(bytes) => of_size(bytes, "shmem_enabled"),
            KernelSetting::CollapseEmpty => transparent("khugepaged/max_ptes_none"),
            KernelSetting::CollapseSwapped => transparent("khugepaged/max_ptes_swap"),
            KernelSetting::CollapseShared => transparent("khugepaged/max_ptes_shared"),
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
            KernelSetting::ZeroPageIsMerged => "whether KSM uses the page of zeros",
            KernelSetting::HugePageBytes => "bytes that one PMD maps",
            KernelSetting::HugePages | KernelSetting::HugePagesOf(_) => "the setting for transparent huge pages",
            KernelSetting::HugeShared | KernelSetting::HugeSharedOf(_) => "the setting for huge pages of shared memory",
            KernelSetting::CollapseEmpty => "the most empty pages that khugepaged allows",
            KernelSetting::CollapseSwapped => "the most swapped pages that khugepaged allows",
            KernelSetting::CollapseShared => "the most shared pages that khugepaged allows",
            KernelSetting::FreePoolPages(_) => "free pages of the hugetlb pool",
            KernelSetting::FreePoolPagesOf(..) => "free pages of the hugetlb pool on a node",
            KernelSetting::MemoryBlockBytes => "bytes of a block of memory",
            KernelSetting::MemoryBlock(_) => "whether a block of memory is online",
            KernelSetting::ReservedPoolPages(_) => "reserved pages of the hugetlb pool",
        }
    }
}

/// The number of pages that a page map covers, found by bisection: the addresses after it, such as the kernel half,
/// belong to no process. `covers` says whether it has the entry of a page
/// index.
///
/// # Errors
/// Those of `covers`.
pub fn covered_pages<E>(
    page: PageSize,
    mut covers: impl FnMut(u64) -> std::result::Result<bool, E>,
) -> std::result::Result<u64, E> {
    let (mut low, mut high) = (0, (u64::MAX >> page.shift()).saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if covers(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn the_end_is_found_wherever_it_is() {
        let page = PageSize::from_bytes(4096).expect("a power of two");
        for end in [0, 1, 2, 1 << 35, (1 << 35) + 7, 1 << 52] {
            let found = covered_pages(page, |index| Ok::<_, Infallible>(index < end));
            assert_eq!(found, Ok(end));
        }
        assert_eq!(covered_pages(page, |_| Err("gone")), Err("gone"));
    }
}
