//! The source of the tests. It makes the bytes and words of a kernel from tables, and counts the reads.

mod builder;
mod records;
mod source;
mod texts;

pub(crate) use builder::Fake;
#[cfg(feature = "symbols")]
pub(crate) use source::Everywhere;

use crate::access::{Error, Result};
use crate::kernel::smaps::Smaps;
use crate::kernel::{
    AddressRange, Device, Name, PageFlags, PageSize, Permissions, Region, SwapEntry, TableEntry, VirtualAddress,
    WordFile,
};
use crate::process::{BackingContent, FrameRecord, Liveness, OwnerDetail, ProcessHandle, WordLayout};
pub(crate) use crate::source::{Cgroup, File, KernelSetting};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

pub const PAGE: u64 = PageSize::FOUR_KIB.bytes();
/// The number of pages in a huge mapping.
pub const HUGE: u64 = 512;
pub const PRESENT: u64 = 1 << 63;
pub const FILE: u64 = 1 << 61;
pub const EXCLUSIVE: u64 = 1 << 56;

/// A process id, and the indexes of pages of this process.
pub type MapperPages = (u32, Vec<u64>);

/// The state of the fake kernel and its process.
pub struct World {
    pub pid: u32,
    pub start_time: u64,
    pub layout: WordLayout,
    /// The kernel release, as `uname -r` prints it.
    pub release: &'static str,
    /// Whether the configuration of the kernel can be read.
    pub has_config: bool,
    pub regions: Mutex<Vec<Region>>,
    /// Page-map entries by page index.
    pub entries: BTreeMap<u64, u64>,
    /// Whether the kernel tracks soft-dirty pages: bit 55 is set in all entries, also empty ones.
    pub soft_dirty: bool,
    /// First pages of huge mappings.
    pub huge: Vec<u64>,
    pub flags: HashMap<u64, u64>,
    pub counts: HashMap<u64, u64>,
    /// The inodes of the memory cgroups that frames are charged to.
    pub charged: HashMap<u64, u64>,
    /// The kernel's records of frames; `None` if they cannot be read.
    pub records: Option<HashMap<u64, FrameRecord>>,
    /// The processes that may map a frame, by the kernel's records, and the pages where they do; `None` if the records
    /// cannot be read.
    pub mappers: Option<HashMap<u64, Vec<MapperPages>>>,
    /// The files, slab caches and others to which the records of frames lead.
    pub owners: HashMap<u64, OwnerDetail>,
    /// Whether these records have the kinds of regions.
    pub mapper_kinds: bool,
    /// The slots of shared memory in swap, by page index; `None` if they cannot be read.
    pub slots: Option<BTreeMap<u64, SwapEntry>>,
    /// Whether each query of slots fails.
    pub slots_fail: bool,
    /// The entries of page tables, by page index; `None` if they cannot be read.
    pub tables: Option<HashMap<u64, TableEntry>>,
    /// The file descriptors: the link of each, and its `fdinfo`.
    pub descriptors: Vec<(&'static str, String)>,
    /// Whether their list may not be read.
    pub descriptors_fail: bool,
    /// Files with words that may not be opened.
    pub refused: Vec<WordFile>,
    /// Whether the kernel has PAGEMAP_SCAN.
    pub scans: bool,
    /// The number of ranges in the kernel's buffer of a scan. A scan reports that it stopped where the buffer was last
    /// full.
    pub scan_buffer: usize,
    /// Whether the kernel has PROCMAP_QUERY.
    pub queries: bool,
    /// The number of pages that KSM has merged. The kernel sets KPF_KSM on every anonymous page.
    pub merged_pages: u64,
    /// Whether KSM merges pages filled with zeros with the zero page (`use_zero_pages`).
    pub merges_zeros: bool,
    /// Whether a swap area is in use.
    pub swaps: bool,
    /// The device of a mounted hugetlbfs.
    pub hugetlbfs: Option<Device>,
    /// The regions of smaps, of which there may be none.
    pub smaps: Vec<Smaps>,
    /// The regions after entries have been read.
    pub then: Mutex<Option<Vec<Region>>>,
    /// Whether frame numbers and the words of frames are hidden.
    pub hidden: bool,
    /// The device of a mounted tmpfs.
    pub tmpfs: Option<Device>,
    /// The device of shared memory in no mounted filesystem, if the kernel shows it.
    pub shared_memory: Option<Device>,
    /// Whether map counts are averages over large folios.
    pub average_counts: bool,
    /// The backing content of pages of files, by page index; [`BackingContent::Hole`] for all others.
    pub content: BTreeMap<u64, BackingContent>,
    /// Whether the backing content follows from `files` instead.
    pub asks_files: bool,
    pub behind_asked: AtomicU64,
    /// The number of pages in queries of backing content.
    pub behind_pages: AtomicU64,
    /// Bytes of pages, by page index; `None` if memory cannot be read.
    pub memory: Option<BTreeMap<u64, Vec<u8>>>,
    /// Files by path.
    pub files: BTreeMap<Name, Vec<u8>>,
    /// Pages of the files that are in the page cache, by the page index where they are mapped.
    pub cached: Vec<u64>,
    /// The text of `/proc/PID/syscall`.
    pub syscall: String,
    /// The link `/proc/PID/exe`, if it may be read.
    pub executable: Option<Name>,
    /// The number of its address space: worlds with the same number share one.
    pub space: u32,
    /// The processes of the machine, each with its parent; `None` for those that may not be opened.
    pub processes: Vec<(ProcessHandle, Option<Arc<World>>)>,
    /// The number of the process that represents pmdb.
    pub own: Option<u32>,
    /// Contents of files, which replace those that follow from other fields.
    pub texts: Vec<(File, String)>,
    /// Files of cgroups, by path below the mount and name.
    pub group_files: BTreeMap<String, String>,
    /// The memory cgroups; none if the hierarchy cannot be read.
    pub cgroups: Vec<Cgroup>,
    /// The words of `statfs` for every filesystem.
    pub statfs: Option<[u64; 5]>,
    pub entries_read: AtomicU64,
    pub scanned: AtomicU64,
    pub flags_read: AtomicU64,
    pub counts_read: AtomicU64,
    pub charges_read: AtomicU64,
    pub watched: Arc<WatchedAnswers>,
}

/// State that tests inspect, and change, while the target is in use.
#[derive(Default)]
pub(crate) struct WatchedAnswers {
    pub(crate) liveness: Mutex<Option<Liveness>>,
    pub(crate) memory_reads: AtomicUsize,
    /// The number of reads of the whole list of regions.
    pub(crate) region_reads: AtomicUsize,
    pub(crate) files_opened: AtomicUsize,
    /// The number of times that soft-dirty bits were cleared.
    pub(crate) soft_dirty_cleared: AtomicUsize,
    /// The number of answers until the process ends.
    pub(crate) answers_left: Mutex<Option<usize>>,
    /// Pages that are unmapped after memory was read, by page index.
    pub(crate) gone_after_read: Mutex<Vec<u64>>,
    /// Contents of files, which replace those of the world.
    pub(crate) texts: Mutex<Vec<(File, String)>>,
}

fn none<T>() -> Result<T> {
    Err(Error::not_available("not in this world"))
}

pub fn region(start_page: u64, pages: u64) -> Region {
    let start = VirtualAddress::new(start_page * PAGE);
    let end = VirtualAddress::new((start_page + pages) * PAGE);
    Region {
        range: AddressRange::new(start, end).expect("pages"),
        permissions: Permissions { read: true, write: true, ..Permissions::default() },
        offset: 0,
        device: Device::default(),
        inode: 0,
        name: Name::default(),
        deleted: false,
    }
}

impl World {
    /// Returns the contents of a file, if a test sets them.
    fn made_text(&self, file: File) -> Option<String> {
        let changed = self.watched.texts.lock().expect("texts");
        let (_, text) = changed.iter().chain(&self.texts).find(|(one, _)| *one == file)?;
        Some(text.clone())
    }

    /// Sets the text of smaps_rollup.
    #[cfg(feature = "cli")]
    pub fn has_rollup(&mut self, text: &str) {
        self.texts.push((File::SmapsRollup, text.to_owned()));
    }

    pub fn new(regions: impl IntoIterator<Item = Region>) -> World {
        World {
            pid: 1,
            start_time: 0,
            layout: WordLayout {
                page: PageSize::FOUR_KIB,
                pointer_bytes: 8,
                is_little_endian: true,
                is_char_signed: true,
            },
            release: "6.18.0",
            has_config: true,
            regions: Mutex::new(regions.into_iter().collect()),
            entries: BTreeMap::new(),
            soft_dirty: false,
            huge: Vec::new(),
            flags: HashMap::new(),
            counts: HashMap::new(),
            charged: HashMap::new(),
            records: None,
            mappers: None,
            owners: HashMap::new(),
            mapper_kinds: false,
            slots: None,
            slots_fail: false,
            tables: None,
            descriptors: Vec::new(),
            descriptors_fail: false,
            refused: vec![WordFile::FrameCgroups],
            scans: true,
            scan_buffer: usize::MAX,
            queries: false,
            merged_pages: 0,
            merges_zeros: false,
            swaps: false,
            hugetlbfs: None,
            smaps: Vec::new(),
            then: Mutex::default(),
            hidden: false,
            tmpfs: None,
            shared_memory: None,
            average_counts: false,
            content: BTreeMap::new(),
            asks_files: false,
            behind_asked: AtomicU64::new(0),
            behind_pages: AtomicU64::new(0),
            memory: None,
            files: BTreeMap::new(),
            cached: Vec::new(),
            syscall: "running\n".to_owned(),
            executable: None,
            space: 0,
            processes: Vec::new(),
            own: None,
            texts: Vec::new(),
            group_files: BTreeMap::new(),
            cgroups: Vec::new(),
            statfs: None,
            entries_read: AtomicU64::new(0),
            scanned: AtomicU64::new(0),
            flags_read: AtomicU64::new(0),
            counts_read: AtomicU64::new(0),
            charges_read: AtomicU64::new(0),
            watched: Arc::default(),
        }
    }

    /// Maps consecutive frames from `frame` on, one mapping each.
    pub fn maps(&mut self, page: u64, pages: u64, frame: u64) {
        for index in 0..pages {
            let entry = PRESENT | EXCLUSIVE | (frame + index);
            self.entries.insert(page + index, entry);
            self.flags.insert(frame + index, PageFlags::ANON.bits());
            self.counts.insert(frame + index, 1);
        }
    }

    /// Maps a huge page in the frames from `frame` on.
    pub fn maps_huge(&mut self, page: u64, frame: u64) {
        self.maps(page, HUGE, frame);
        self.huge.push(page);
        for index in 0..HUGE {
            let mut flags = PageFlags::ANON | PageFlags::OWNER_2 | PageFlags::THP;
            flags |= match index {
                0 => PageFlags::COMPOUND_HEAD,
                _ => PageFlags::COMPOUND_TAIL,
            };
            self.flags.insert(frame + index, flags.bits());
        }
    }
}
