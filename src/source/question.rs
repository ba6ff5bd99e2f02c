//! The arguments and results of a source's operations.

use super::class::{Argument, Subject, questions_of};
use crate::access::Result;
use crate::kernel::{AddressRange, Device, PageSize, Region, VirtualAddress};
use bitflags::bitflags;
use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// The part of a capture with the answers that are in its head.
const HEAD: &str = "the head of the file";
/// Why no capture has answers that need an open file.
const OPENS: &str = "it opens files that nobody has mapped";
/// Why no capture has single mappings.
const OF_MAPS: &str = "the text of maps has it";

bitflags! {
    /// The categories of PAGEMAP_SCAN (Linux 6.7 and later).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Categories: u64 {
        /// Registered for asynchronous userfaultfd write tracking.
        const WRITE_TRACKED = 1 << 0;
        /// Written to; valid only together with `WRITE_TRACKED`.
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
    /// Returns the categories that the kernel's scan has: none before Linux 6.7. `answers` tries a scan. A scan for an
    /// unknown category fails, so the sets of past kernels are tried on an empty range, the newest first.
    pub fn supported(answers: impl Fn(Scan) -> bool) -> Categories {
        let knows = |&returned: &u64| answers(Scan { returned, ..Scan::default() });
        let known = [0x1ff, 0xff, 0x7f].into_iter().find(knows);
        known.map_or(Categories::empty(), Categories::from_bits_retain)
    }
}

/// The arguments of PAGEMAP_SCAN, without its flags: both would write-protect pages of the target.
#[derive(Clone, Copy, Default, Debug)]
pub struct Scan {
    /// The first address to scan.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Pages with at least one of these categories are reported; all pages if it is 0.
    pub any_of: u64,
    /// The categories to report.
    pub returned: u64,
    /// The most pages to report; 0 for no limit.
    pub max_pages: u64,
}

/// `struct page_region`: a run of pages with the same categories.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct PageRegion {
    /// The address of the first byte.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The requested categories that all these pages have.
    pub categories: u64,
}

questions_of! {
    /// A query for PROCMAP_QUERY.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Query {
        /// The mapping that contains an address.
        At(address: VirtualAddress) = "at" => process(Never(OF_MAPS), LeftOut),
        /// The mapping that contains an address, or otherwise the next one above.
        From(address: VirtualAddress) = "from" => process(Never(OF_MAPS), LeftOut),
    }
}

/// The answer of PROCMAP_QUERY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A mapping.
    Found(Mapping),
    /// There is no such mapping.
    Nothing,
    /// The query failed: before Linux 6.11, in a sandbox, or for a name that is too long. The text of `maps` always has
    /// the answer.
    Unavailable,
}

/// A mapping as PROCMAP_QUERY gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The address of the first byte.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// 1 readable, 2 writable, 4 executable, 8 shared.
    pub flags: u64,
    /// The offset of the mapping in the file, in bytes.
    pub offset: u64,
    /// The inode of the file.
    pub inode: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The name without escapes: newlines are literal.
    pub name: Vec<u8>,
}

questions_of! {
    /// The processes, threads or file descriptors to list, and how much is read about each.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum List {
        /// All processes, with a handle for each. Only their `stat` is read.
        Held = "held" => machine(WhileDecoding, Stat),
        /// All processes.
        All = "all" => machine(WhileDecoding, Stat),
        /// The process with this id, or the one of the thread with this id.
        One(number: u32) = "one" => machine(WhileDecoding, Stat),
        /// The threads of the process. Only their `stat` is read.
        Threads = "threads" => process(EachProcess, Stat),
        /// The file descriptors of the process, by number, with the link of each.
        Descriptors = "descriptors" => process(WhileDecoding, LeftOut),
        /// The file descriptors of a thread, which may have a separate table (clone without CLONE_FILES, unshare).
        DescriptorsOf(thread: u32) = "descriptors" => process(WhileDecoding, LeftOut),
    }
}

/// A process, thread or file descriptor in a list.
#[derive(Clone, Default, Debug)]
pub struct Listed {
    /// The process id, thread id or descriptor number.
    pub pid: u32,
    /// `/proc/PID/stat`
    pub stat: Vec<u8>,
    /// `/proc/PID/status`
    pub status: Vec<u8>,
    /// The target of the link `/proc/PID/exe` or of the descriptor's link, if it may be read.
    pub program: Option<Vec<u8>>,
    /// A handle on the process.
    pub held: Held,
}

/// A source's handle on a process or a file. Later opens of the process never reach another one with a reused id. It is
/// empty if there were too many processes to hold, or if there is no such file.
#[derive(Clone, Default)]
pub struct Held(pub(super) Option<Arc<dyn Any + Send + Sync>>);

impl Debug for Held {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.0.is_some())
    }
}

questions_of! {
    /// A trial. A source may cache the result.
    #[derive(Clone, Copy, Debug)]
    pub enum Probe<'a> {
        /// The page size in bytes.
        PageBytes = "page-bytes" => machine(Elsewhere(HEAD), Nothing),
        /// 1 on a little-endian machine, otherwise 0.
        LittleEndian = "little-endian" => machine(Elsewhere(HEAD), Nothing),
        /// The `e_machine` of the programs of the machine. Plain `char` has the same sign in all programs that its
        /// kernel runs, also in 32-bit ones.
        Machine = "machine" => machine(Once, Nothing),
        /// Clock ticks in a second, the unit of start times.
        TicksPerSecond = "ticks-per-second" => machine(Once, Nothing),
        /// The page-map entry of a page that only pmdb maps, and has just written to.
        OwnEntry = "own-entry" => machine(Once, Nothing),
        /// The word of `/proc/kpageflags` for a page that only pmdb maps.
        OwnFlags = "own-flags" => machine(Once, Nothing),
        /// 1 if pmdb has the right to see frame numbers.
        FrameRight = "frame-right" => machine(Once, Nothing),
        /// The effective user id of pmdb.
        User = "user" => machine(Once, Nothing),
        /// The process id of pmdb in `/proc`, which may be of another PID namespace.
        OwnNumber = "own-number" => machine(Once, Nothing),
        /// Major and minor number of the device of shared memory in no mounted filesystem, such as a memfd.
        SharedMemory = "shared-memory" => machine(Once, Nothing),
        /// Major and minor number of the device of each hugetlb pool, one after the other.
        Pools = "pools" => machine(Once, Nothing),
        /// The order of the address spaces of two processes (`kcmp`): 0 the same, 1 less, 2 greater. The order itself
        /// is arbitrary.
        Compare(one: u32, other: u32) = "compare" => machine(Elsewhere("`space` of each process"), Nothing),
        /// The order of the descriptor tables of two threads (`kcmp`), as for `Compare`.
        CompareFiles(one: u32, other: u32) = "compare-files" => process(WhileDecoding, Nothing),
        /// Whether the link of a mapping in `/proc/PID/map_files` can be followed: no words if it can, otherwise an
        /// error.
        Follow(range: AddressRange) = "follow" => process(WhileDecoding, Nothing),
        /// Whether the link of a mapping of pmdb can be followed, as for `Follow`.
        FollowOwn(range: AddressRange) = "follow-own" => machine(WhileDecoding, Nothing),
        /// 1 if the file that a region maps has this path in the target's root.
        IsNamed(region: &'a Region, path: &'a [u8]) = "is-named" => process(WhileDecoding, Nothing),
        /// The words of `stat` and `statfs` for the file that a region maps, as
        /// [`MappedFile`](crate::kernel::mapped_file) decodes them. The file is not opened.
        MappedFile(region: &'a Region) = "mapped-file" => process(EachRegion, Nothing),
        /// The same words for the file of a descriptor, in the table of a thread or of the process. A file server may
        /// get a request, so use it only for files in memory.
        Descriptor(thread: Option<u32>, at: OnMount) = "descriptor" => process(WhileDecoding, Nothing),
        /// The number of the mount with the file of a descriptor: no words if it has none.
        DescriptorMount(thread: Option<u32>, number: u32) = "descriptor-mount" => process(WhileDecoding, Nothing),
        /// The bytes of a descriptor's file in the page cache, by thread and number, if the file has this device and
        /// inode. Opens the file, unless a process holds a lease on it.
        DescriptorCache(place: (Option<u32>, u32), file: (Device, u64)) = "descriptor-cache" =>
            process(Never(OPENS), Nothing),
        /// Words of `statfs` for the filesystem with this device that is mounted at a directory in the root of the
        /// process, as [`FilesystemRoom`](crate::kernel::mapped_file::FilesystemRoom) decodes them.
        Filesystem(device: Device, point: &'a [u8]) = "filesystem" => process(OfCgroup, Nothing),
        /// The same in the root of pmdb.
        OwnFilesystem(device: Device, point: &'a [u8]) = "own-filesystem" => machine(OfCgroup, Nothing),
    }
}

/// A file descriptor with the mount of its file when it was listed. By now it may be of another file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnMount {
    /// The number of the descriptor.
    pub number: u32,
    /// The number of the mount, if the kernel shows it.
    pub mount: Option<u32>,
    /// Whether the process sees this mount, and no server provides it.
    pub answers: bool,
}

/// Written as the number of the descriptor. The mount is a fact found before, and not part of the question.
impl Argument<'_> for OnMount {
    fn write(&self, key: &mut String) {
        self.number.write(key);
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        Vec::new()
    }
}

/// The way in which a source finds a file.
#[derive(Clone, Copy, Debug)]
pub enum FileLocation<'a> {
    /// The file that a region maps, if it is a regular file of the same device and inode.
    Region(&'a Region),
    /// The regular file at this path in the target's root, with links followed as the target would.
    Path(&'a [u8]),
    /// The regular file at this path where pmdb runs.
    OwnPath(&'a [u8]),
    /// The regular file at this path in the target's root, if it is no link and belongs to root or to this user.
    /// Anything else there is an error.
    Trusted(&'a [u8], u32),
    /// The vdso of pmdb, if it is as long as this region.
    OwnVdso(&'a Region),
}

/// The content of a mapped object (a file, shared memory) for a page, mapped or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BackingContent {
    /// The object ends before this page: an access raises SIGBUS.
    PastEnd,
    /// A page of shared memory that was never filled.
    Hole,
    /// The object has contents for this page.
    Contents {
        /// Whether the contents are in the page cache.
        cached: bool,
    },
}

/// A run of pages with the same backing content.
#[derive(Clone, Debug)]
pub struct BackingRun {
    /// The addresses of whole pages.
    pub range: AddressRange,
    /// The backing content of these pages, or why it is unknown.
    pub content: Result<BackingContent>,
}

/// Returns the number of pages that a page map covers, found by bisection: later addresses, such as the kernel half,
/// belong to no process. `covers` returns whether the page map has the entry of a page index.
///
/// # Errors
/// Fails with the errors of `covers`.
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
