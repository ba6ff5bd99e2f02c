//! Where bytes come from. Three subjects, three traits: [`Process`], [`Machine`], [`Modules`].
//!
//! The live implementations look through `/proc`, at some settings in `/sys`, and at the files behind regions; they never ptrace and never
//! make the target fault.
//! Callers decode nothing themselves: what comes out has been through `kernel`.

mod error;
#[cfg(test)]
pub(crate) mod fake;
mod feature;
mod in_memory;
pub mod live;
mod page_map_end;
mod process_entry;
pub mod recorded;
mod sys;

pub use error::{Error, Result};
pub use feature::{Feature, Finding, Standing};
pub use in_memory::InMemory;
pub use page_map_end::covered_pages;
pub use process_entry::ProcessEntry;

use crate::kernel::maps;
use crate::kernel::mounts::MemoryFiles;
use crate::kernel::{
    AddressRange, FrameNumber, Name, PageFlags, PageMapEntry, PageSize, Region, Registers,
    VirtualAddress,
};
use bitflags::bitflags;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Who the target is: more than a number, as numbers are used again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat` field 22).
    pub start_time: u64,
    /// The short name the kernel keeps (`comm`).
    pub name: Name,
}

/// The shape of the target's memory words. The target's own, never this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Base page size.
    pub page: PageSize,
    /// Bytes in a pointer: 4 or 8.
    pub pointer_bytes: u8,
    /// Whether the least significant byte comes first.
    pub little_endian: bool,
}

impl Layout {
    /// A number as `bytes` bytes, eight at most, as they lie in memory.
    pub fn bytes(self, number: u64, bytes: u8) -> Vec<u8> {
        let most = usize::from(bytes).min(size_of::<u64>());
        let mut all: Vec<u8> = number.to_le_bytes().into_iter().take(most).collect();
        if !self.little_endian {
            all.reverse();
        }
        all
    }

    /// Bytes as they lie in memory, eight at most, as a number.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self.little_endian {
            true => bytes.iter().rev().fold(0, join),
            false => bytes.iter().fold(0, join),
        }
    }
}

/// What has become of the target since it was attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Still the same program.
    Alive,
    /// The same process now runs another program: reopened, and everything known before is void.
    Executed,
    /// It has exited (or is a zombie): nothing is left to look at.
    Exited,
}

bitflags! {
    /// What PAGEMAP_SCAN can say of a page (Linux 6.7 and later).
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

/// What `/proc/PID/maps` said, to be compared with what it says later: that takes half as long as to read the regions again. Empty
/// where there is no such text.
#[derive(Default)]
pub struct MapsText(Vec<u8>);

impl MapsText {
    /// What was read of it.
    pub fn new(text: Vec<u8>) -> Self {
        MapsText(text)
    }

    /// `said` is read behind `so_far` bytes that are the same: how many bytes more are, and none at the end of both. `None` when it is
    /// something else.
    pub fn goes_on(&self, so_far: usize, said: &[u8]) -> Option<usize> {
        let is_same = match said {
            [] => self.is_known() && so_far == self.0.len(),
            said => self.0.get(so_far..)?.starts_with(said),
        };
        is_same.then_some(said.len())
    }

    /// Whether there is such a text.
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// Where the first region begins whose line begins at `offset` or behind it.
    pub fn region_at(&self, offset: usize) -> Option<VirtualAddress> {
        let before = self.0.get(offset.checked_sub(1)?..)?;
        let line = before.get(memchr::memchr(b'\n', before)? + 1..)?;
        maps::start(line)
    }
}

/// A stretch of pages with something in their entries, all of the same categories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Populated {
    /// Whole pages.
    pub range: AddressRange,
    /// Those of the categories asked for (and known to [`Process::categories`]) that hold for all of them.
    pub categories: Categories,
}

/// One process: its regions, its page map, its memory.
pub trait Process: Send + Sync {
    /// Who it is. Its name changes when it runs another program.
    fn identity(&self) -> Identity;

    /// Page size, pointer width and byte order.
    fn layout(&self) -> Layout;

    /// Whether it is still there and still the same. After [`Liveness::Executed`] the handles have been reopened.
    fn liveness(&self) -> Result<Liveness>;

    /// All its regions in address order (`/proc/PID/maps`), read anew at each call.
    fn regions(&self) -> Result<Vec<Region>>;

    /// The same, and the text that they were read from.
    fn regions_and_text(&self) -> Result<(Vec<Region>, MapsText)> {
        Ok((self.regions()?, MapsText::default()))
    }

    /// Reads on in `/proc/PID/maps` where `so_far` bytes of it are known to be as `before`, and says how many more are: 0 at the end
    /// of both. `None` when something is not, and where there is no such text.
    fn still_says(&self, _before: &MapsText, _so_far: usize) -> Result<Option<usize>> {
        Ok(None)
    }

    /// The region that holds `address`, or `None`. By PROCMAP_QUERY where the kernel has it (6.11).
    fn region_at(&self, address: VirtualAddress) -> Result<Option<Region>>;

    /// Whether the last answer of [`Process::region_at`] came from PROCMAP_QUERY; otherwise it is from the text.
    fn has_queried(&self) -> bool {
        false
    }

    /// The regions below `address` that follow each other with less than `gap` bytes between them, the nearest first and no more than
    /// `most`; `None` where the kernel cannot be asked for one region at a time (before Linux 6.11).
    fn nearest_below(
        &self,
        _address: VirtualAddress,
        _gap: u64,
        _most: usize,
    ) -> Result<Option<Vec<Region>>> {
        Ok(None)
    }

    /// Page-map entries from page index `first` on; how many were read is returned. Fewer than asked for means that
    /// the page map ends there (`[vsyscall]`, the kernel half). A target that is gone is an error, not an end.
    fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize>;

    /// Which categories [`Process::populated`] can tell here.
    fn categories(&self) -> Categories;

    /// Whether PAGEMAP_SCAN and PROCMAP_QUERY may be used. They are where the kernel has them; switched off, plain reads give
    /// the same answers. Says nothing to a capture.
    fn set_scan(&self, _on: bool) {}

    /// Visits, in address order, the stretches of `range` that have anything in their page-map entries (present or a non-present
    /// entry), with those of the `wanted` categories that hold. VM_PFNMAP regions are passed over by the kernel.
    /// Where there is no PAGEMAP_SCAN, plain reads find the same stretches (without `ZERO` and `HUGE`). Never changes the target.
    fn populated(
        &self,
        range: AddressRange,
        wanted: Categories,
        visit: &mut dyn FnMut(Populated) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Whether the kernel hides the pages of the region at `range` (VM_PFNMAP), judged by a scan that passes such regions over;
    /// `None` where it cannot be told without reading smaps.
    fn is_pfn_mapped(&self, region: &Region) -> Result<Option<bool>>;

    /// Reads memory at `address` through `/proc/PID/mem`. This faults pages in: only for pages that were found
    /// resident just before. Returns how much was read.
    fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize>;

    /// Why frame numbers are hidden from this opener, if they are.
    fn frames_hidden(&self) -> bool;

    /// `/proc/PID/status` and `stat`, decoded, for `info process`.
    fn status(&self) -> Result<ProcessStatus>;

    /// What can be had of this process, where that is another question than what can be had here at all.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// What the kernel counts in each region (`/proc/PID/smaps`). The kernel walks all page tables for it: only where it is asked for.
    /// It takes long for many regions and much memory: when `go_on` says no, the regions are those that were read until then.
    fn smaps(&self, _go_on: &mut dyn FnMut() -> bool) -> Result<Vec<crate::kernel::smaps::Smaps>> {
        Err(Error::NotAvailable {
            what: "this target holds no smaps".to_owned(),
        })
    }

    /// How large its stack may grow (RLIMIT_STACK, of `/proc/PID/limits`), in bytes; `None` without a limit.
    fn stack_limit(&self) -> Result<Option<u64>> {
        Err(Error::NotAvailable {
            what: "the limits of this target are not known".to_owned(),
        })
    }

    /// Where the main thread's program counter and stack pointer stand (`/proc/PID/syscall`), without stopping it.
    /// An error while it runs: the kernel tells only of threads that wait.
    fn registers(&self) -> Result<Registers> {
        Err(Error::NotAvailable {
            what: "the registers of this target are not known".to_owned(),
        })
    }
}

/// What `/proc/PID/status`, `stat`, `exe` and `cmdline` say of a process.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProcessStatus {
    /// Process id.
    pub pid: u32,
    /// Parent process id.
    pub parent: u32,
    /// `comm`
    pub name: Name,
    /// One letter and its word: `S (sleeping)`.
    pub state: String,
    /// Number of threads.
    pub threads: u32,
    /// Seconds since it started, as far as the machine's uptime tells.
    pub age: Option<f64>,
    /// Real user id.
    pub user: u32,
    /// The pid that traces it, 0 if none.
    pub tracer: u32,
    /// The program file, if it may be known.
    pub executable: Option<Name>,
    /// Its command line, arguments parted by blanks.
    pub command_line: Option<Name>,
    /// The Vm, Rss and Huge fields of status in the order of the file: name as the kernel spells it, bytes.
    pub memory: Vec<(String, u64)>,
}

/// The settings of the hugetlb pool of pages of so many bytes, below `/sys`.
fn pool_of(bytes: u64) -> String {
    format!("kernel/mm/hugepages/hugepages-{}kB", bytes >> 10)
}

/// The machine that the target runs on: its page frames, zones, processes.
pub trait Machine: Send + Sync {
    /// Kernel release, as `uname -r` prints it, and its first two numbers.
    fn kernel(&self) -> KernelVersion;

    /// Page size by which frames are counted.
    fn page(&self) -> PageSize;

    /// `/proc/kpageflags` from frame `first` on; fewer than asked for means that physical memory ends there.
    fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize>;

    /// Flags that this kernel sets on pages where they do not hold: KSM where nothing is merged (`/sys/kernel/mm/ksm/pages_shared`) or
    /// where a page of pmdb's own has it. `None` when neither could be looked at. For [`FlagContext`](crate::kernel::explain::FlagContext).
    fn false_flags(&self) -> Option<PageFlags> {
        None
    }

    /// `/proc/kpagecount` from frame `first` on: how often each frame is mapped.
    fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize>;

    /// `/proc/kpagecgroup` from frame `first` on: inode numbers of memory cgroups.
    fn frame_cgroups(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize>;

    /// Zone and node of frames (`/proc/zoneinfo`).
    fn zones(&self) -> Result<std::sync::Arc<crate::kernel::zones::Zones>>;

    /// What lies at which physical address (`/proc/iomem`).
    fn iomem(&self) -> Result<std::sync::Arc<crate::kernel::iomem::Resources>> {
        Err(Error::NotAvailable {
            what: "this target does not tell what lies at physical addresses".to_owned(),
        })
    }

    /// The path of the memory cgroup whose directory has this inode number, from the root of its hierarchy; `None` when no directory
    /// has it: the group was removed, or lies outside of what this program is shown.
    fn cgroup_path(&self, _inode: u64) -> Result<Option<Name>> {
        Err(Error::NotAvailable {
            what: "this target does not tell the paths of cgroups".to_owned(),
        })
    }

    /// Where the hierarchy of [`Machine::cgroup_path`] is mounted.
    fn cgroup_mount(&self) -> Result<Name> {
        Err(Error::NotAvailable {
            what: "this target does not tell the paths of cgroups".to_owned(),
        })
    }

    /// Swap areas (`/proc/swaps`), read anew.
    fn swaps(&self) -> Result<crate::kernel::swaps::SwapAreas>;

    /// How this kernel numbers its pseudo swap types (from its configuration, when that can be read).
    fn swap_layout(&self) -> crate::kernel::swaps::SwapLayout;

    /// The file that has the kernel's configuration; `None` when none can be read.
    fn configuration(&self) -> Option<Name> {
        None
    }

    /// Whether the kernel was built with an option (`CONFIG_PAGE_MAPCOUNT`) as `y`; `None` when its configuration cannot be read.
    fn kernel_option(&self, name: &str) -> Option<bool>;

    /// Whether a map count is of one page, and not an average over the large folio that the page is of; `None` when that cannot be told.
    fn has_exact_map_counts(&self) -> Option<bool> {
        None
    }

    /// What this kernel and the rights of this program give, each found out by trying it.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Who this program is to the kernel; `None` where that does not matter.
    fn standing(&self) -> Option<Standing> {
        None
    }

    /// Bytes that one PMD maps (`/sys/kernel/mm/transparent_hugepage/hpage_pmd_size`); `None` when that cannot be read.
    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether the hugetlb pool of pages of so many bytes has some that are free and promised to nobody; `None` when that cannot be read.
    fn huge_pages_to_spare(&self, _bytes: u64) -> Option<bool> {
        None
    }

    /// Whether the kernel tracks soft-dirty pages, so that bit 55 of an entry means something; `None` when it cannot be told.
    fn has_soft_dirty(&self) -> Option<bool> {
        self.kernel_option("CONFIG_MEM_SOFT_DIRTY")
    }

    /// What memory the files on `device` are, judged from mountinfo; `None` for files of a disk, and where nothing tells.
    fn memory_files(&self, device: crate::kernel::Device) -> Option<MemoryFiles>;

    /// Whether that tells of the hugetlb pools too, of which most memory is in no mounted filesystem; where it does not, only names do.
    fn pools_are_told(&self) -> bool {
        false
    }

    /// Every process that can be listed.
    fn processes(&self) -> Result<Vec<ProcessEntry>>;

    /// Every process that may have memory of its own, each with its parent, by number. Cheaper than a listing, and reads nothing of
    /// their memory (a command line is read from it).
    fn relations(&self) -> Result<Vec<Relation>> {
        Ok(Vec::new())
    }

    /// Opens one of these, as attaching does.
    ///
    /// # Errors
    /// As for attaching: refused, gone meanwhile.
    fn open(&self, one: &Relation) -> Result<Opened> {
        Err(Error::NotAvailable {
            what: format!("process {} cannot be looked at from here", one.pid),
        })
    }

    /// Where the address space of `process` stands among those of `others`, which are in an order that means nothing but that equal ones
    /// are the same, as [`slice::binary_search`] says it. Two processes share one without being threads of each other after vfork, or
    /// `clone` with CLONE_VM alone. `None` when the kernel does not tell (`kcmp(2)`).
    fn find_memory(
        &self,
        _others: &[u32],
        _process: u32,
    ) -> Option<std::result::Result<usize, usize>> {
        None
    }
}

/// A [`Machine::find_memory`] by comparisons of two processes each.
fn find_memory(
    others: &[u32],
    mut compared: impl FnMut(u32) -> Option<Ordering>,
) -> Option<std::result::Result<usize, usize>> {
    let mut is_told = true;
    let place = others.binary_search_by(|&other| {
        let order = compared(other);
        is_told &= order.is_some();
        order.unwrap_or(Ordering::Less)
    });
    is_told.then_some(place)
}

/// A process and whose child it is.
#[derive(Clone, Debug)]
pub struct Relation {
    /// Process id.
    pub pid: u32,
    /// Its parent's; 0 for none.
    pub parent: u32,
    /// A handle on it, so that what is opened is of this process and of no other that has its number later; `None` where there were too
    /// many to hold.
    held: Option<std::sync::Arc<live::Handle>>,
}

impl Relation {
    /// A process of which only numbers are known.
    pub fn of_numbers(pid: u32, parent: u32) -> Self {
        Relation {
            pid,
            parent,
            held: None,
        }
    }
}

/// A process that was opened beside the target.
pub struct Opened {
    /// Its process.
    pub process: Box<dyn Process>,
    /// The files behind its regions.
    pub modules: Box<dyn Modules>,
}

/// A kernel release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelVersion {
    /// `6.18.44-amd64`
    pub release: String,
    /// The first two numbers.
    pub number: (u32, u32),
}

/// A file behind a region, opened by its identity and read by `pread`, never mapped: its owner may cut it short.
pub trait ReadAt: Send + Sync {
    /// Reads at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize>;
    /// Its size in bytes when it was opened.
    fn len(&self) -> u64;
    /// Whether it was empty when it was opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Device, inode, size and modification time as they are now: changes when the contents may have.
    fn fingerprint(&self) -> [u64; 4];
}

/// What the object behind a mapping (a file, shared memory) has of a page, mapped or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Behind {
    /// It ends before this page: an access is SIGBUS.
    PastEnd,
    /// Shared memory that nobody has put anything into.
    Hole,
    /// It has contents for this page.
    Contents {
        /// They are in the page cache.
        cached: bool,
    },
}

/// Neighbouring pages for which the same is behind.
#[derive(Clone, Debug)]
pub struct BehindRun {
    /// Whole pages.
    pub range: AddressRange,
    /// What is behind them, or why that cannot be known.
    pub behind: Result<Behind>,
}

/// A file that is there: its bytes, or why it was not opened.
pub type OpenedFile = Result<Box<dyn ReadAt>>;

/// The files behind regions.
pub trait Modules: Send + Sync {
    /// Opens the file behind `region`, if it is a regular file of the same device and inode (through `map_files`, or by
    /// path under the target's own root).
    fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>>;

    /// Opens the regular file that bears `path` in the target's own root, links followed as the target would: for files that no region
    /// maps, such as separate debug files. `None` if nothing bears it. Whether it is the right file is for the caller to check.
    fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>>;

    /// Opens the regular file that bears `path` where pmdb itself runs, which is elsewhere for a process in a container: for debug files
    /// that the user of pmdb has installed. `None` if nothing bears it.
    fn at_own_path(&self, _path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        Ok(None)
    }

    /// The file in which the target writes down the names of code that it makes, as perf would look for it: `/tmp/perf-PID.map` in the
    /// target's own root, PID being what the target itself is called, and its path there. Only a regular file of the target's user, or
    /// of root, is believed: anything else there is an error. `None` if there is none.
    fn perf_map(&self) -> Result<Option<(Name, OpenedFile)>> {
        Ok(None)
    }

    /// What the object behind `region` has of the pages of `range`, which lies in it: runs in address order, without gaps. Nothing
    /// of the object is read, and nothing is brought into memory. Costs system calls by changes along the range, not by pages.
    fn behind(&self, region: &Region, _range: AddressRange) -> Result<Vec<BehindRun>> {
        Err(Error::NotAvailable {
            what: format!("what is behind {} is not known here", region.range),
        })
    }

    /// Reads what the page cache holds of the object behind `region` at `address`, shared memory too, without bringing anything into it: it
    /// is asked just before what is there. Returns how much there was, which ends with the first page that is not, and with the object.
    fn cached(&self, region: &Region, _address: VirtualAddress, _into: &mut [u8]) -> Result<usize> {
        Err(Error::NotAvailable {
            what: format!("the page cache of {} cannot be read here", region.range),
        })
    }

    /// Bytes of the vdso or another mapping that only memory holds, if they are resident.
    fn image(&self, region: &Region) -> Result<Box<dyn ReadAt>>;
}

/// One target, whole: what commands look at.
pub struct Target {
    /// Its process.
    pub process: Box<dyn Process>,
    /// The machine it runs on.
    pub machine: std::sync::Arc<dyn Machine>,
    /// The files behind its regions.
    pub modules: Box<dyn Modules>,
}
