//! The arguments and results of a source's operations.

use super::class::{Argument, Subject, questions_of};
use crate::access::Result;
use crate::kernel::{AddressRange, Device, PageSize, Region, VirtualAddress};
use bitflags::bitflags;
use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Where a capture has what the head of the file says.
const HEAD: &str = "the head of the file";
/// Why no capture has what an open file shows.
const OPENS: &str = "it opens files that nobody has mapped";
/// Why no capture has a mapping by itself.
const OF_MAPS: &str = "the text of maps has it";

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

questions_of! {
    /// A query for PROCMAP_QUERY.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Query {
        /// The mapping that holds an address.
        At(address: VirtualAddress) = "at" => process(Never(OF_MAPS), LeftOut),
        /// The same, or if there is none, the next one above.
        From(address: VirtualAddress) = "from" => process(Never(OF_MAPS), LeftOut),
    }
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

questions_of! {
    /// Which processes, threads or file descriptors are listed, and how much is read of each.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum List {
        /// All of them with a handle each, and of their files only `stat`.
        Held = "held" => machine(WhileDecoding, Stat),
        /// All of them.
        All = "all" => machine(WhileDecoding, Stat),
        /// The one of this number, or the one that the thread of this number belongs to.
        One(number: u32) = "one" => machine(WhileDecoding, Stat),
        /// The threads of the process, and of their files only `stat`.
        Threads = "threads" => process(EachProcess, Stat),
        /// The file descriptors of the process: by number, and where the link of each leads.
        Descriptors = "descriptors" => process(WhileDecoding, LeftOut),
        /// Those of one of its threads, which may have a table of its own (clone without CLONE_FILES, unshare).
        DescriptorsOf(thread: u32) = "descriptors" => process(WhileDecoding, LeftOut),
    }
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

questions_of! {
    /// What can be tried. A source may cache the result.
    #[derive(Clone, Copy, Debug)]
    pub enum Probe<'a> {
        /// Bytes in a page.
        PageBytes = "page-bytes" => machine(Elsewhere(HEAD), Nothing),
        /// Whether the least significant byte of a word comes first: 1 if it does.
        LittleEndian = "little-endian" => machine(Elsewhere(HEAD), Nothing),
        /// The `e_machine` of the machine's own programs. All programs that its kernel runs, of 32 bits too, have the
        /// same sign of plain `char`.
        Machine = "machine" => machine(Once, Nothing),
        /// Clock ticks in a second, by which start times are counted.
        TicksPerSecond = "ticks-per-second" => machine(Once, Nothing),
        /// The page-map entry of a page that only pmdb maps, and has just written to.
        OwnEntry = "own-entry" => machine(Once, Nothing),
        /// The word of `/proc/kpageflags` for such a page.
        OwnFlags = "own-flags" => machine(Once, Nothing),
        /// Whether pmdb has the right to see frame numbers: 1 if it has.
        FrameRight = "frame-right" => machine(Once, Nothing),
        /// The effective user id of pmdb.
        User = "user" => machine(Once, Nothing),
        /// The process id of pmdb as `/proc` has it, which may be that of another pid namespace.
        OwnNumber = "own-number" => machine(Once, Nothing),
        /// Major and minor number of the device of shared memory in no mounted filesystem, such as a memfd.
        SharedMemory = "shared-memory" => machine(Once, Nothing),
        /// The same for each hugetlb pool, one after the other.
        Pools = "pools" => machine(Once, Nothing),
        /// How the address spaces of two processes compare (`kcmp`): 0 the same, 1 less, 2 greater, in an order that
        /// means nothing else.
        Compare(one: u32, other: u32) = "compare" => machine(Elsewhere("`space` of each process"), Nothing),
        /// How the tables of file descriptors of two threads compare, in the same way.
        CompareFiles(one: u32, other: u32) = "compare-files" => process(WhileDecoding, Nothing),
        /// Whether the link of a mapping in `/proc/PID/map_files` can be followed: no words if it can.
        Follow(range: AddressRange) = "follow" => process(WhileDecoding, Nothing),
        /// The same for a mapping of pmdb's own.
        FollowOwn(range: AddressRange) = "follow-own" => machine(WhileDecoding, Nothing),
        /// Whether the file behind a region has this path in the target's own root: 1 if it has.
        IsNamed(region: &'a Region, path: &'a [u8]) = "is-named" => process(WhileDecoding, Nothing),
        /// What `stat` and `statfs` have of the file behind a region, as [`MappedFile`](crate::kernel::mapped_file)
        /// reads it. Nothing is opened.
        MappedFile(region: &'a Region) = "mapped-file" => process(EachRegion, Nothing),
        /// The same of the file behind the descriptor of this number, in the table of a thread, or of the process. A
        /// server may have to answer: ask only of files in memory.
        Descriptor(thread: Option<u32>, at: OnMount) = "descriptor" => process(WhileDecoding, Nothing),
        /// The number of the mount that this file is on: no words if it has none.
        DescriptorMount(thread: Option<u32>, number: u32) = "descriptor-mount" => process(WhileDecoding, Nothing),
        /// Bytes in the page cache of the file behind a descriptor, by thread and number, if its device and inode are
        /// these. Opens the file, unless somebody holds a lease on it.
        DescriptorCache(place: (Option<u32>, u32), file: (Device, u64)) = "descriptor-cache" =>
            process(Never(OPENS), Nothing),
    }
}

/// A file descriptor that was seen to lead to a file on a mount: it may lead elsewhere by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnMount {
    /// The number of the descriptor.
    pub number: u32,
    /// The number of the mount, if the kernel shows it.
    pub mount: Option<u32>,
    /// Whether the process sees this mount, and no server answers for it.
    pub answers: bool,
}

/// The number of the descriptor: what it leads to is part of the answer.
impl Argument<'_> for OnMount {
    fn write(&self, key: &mut String) {
        self.number.write(key);
    }

    fn of(_: Subject<'_>) -> Vec<Self> {
        Vec::new()
    }
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
