//! The source of the tests. From tables it makes the bytes and words that a kernel would give, and it counts what is
//! read.

mod builder;
mod records;
mod source;

pub(crate) use builder::Fake;
#[cfg(feature = "symbols")]
pub(crate) use source::Everywhere;

use crate::kernel::smaps::Smaps;
use crate::kernel::{
    AddressRange, Device, Name, PageFlags, PageSize, Permissions, Region, SwapEntry, TableEntry, VirtualAddress,
    WordFile,
};
use crate::process::{BackingContent, FrameRecord, Liveness, OwnerDetail, ProcessHandle, WordLayout};
pub(crate) use crate::source::{File, KernelSetting};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

pub const PAGE: u64 = PageSize::FOUR_KIB.bytes();
/// Pages that a huge mapping has.
pub const HUGE: u64 = 512;
pub const PRESENT: u64 = 1 << 63;
pub const FILE: u64 = 1 << 61;
pub const EXCLUSIVE: u64 = 1 << 56;

/// A process, and the indexes of some of its pages.
pub type MapperPages = (u32, Vec<u64>);

/// What the fake kernel has, and how much of it was read.
pub struct World {
    pub pid: u32,
    pub start_time: u64,
    pub layout: WordLayout,
    /// `uname -r`
    pub release: &'static str,
    /// The options of the kernel, if they can be read.
    pub has_config: bool,
    pub regions: Mutex<Vec<Region>>,
    /// Page-map entries by page index.
    pub entries: BTreeMap<u64, u64>,
    /// The kernel tracks soft-dirty pages: bit 55 is set everywhere, on holes too.
    pub soft_dirty: bool,
    /// First pages of huge mappings.
    pub huge: Vec<u64>,
    pub flags: HashMap<u64, u64>,
    pub counts: HashMap<u64, u64>,
    /// The kernel's own records of frames; `None` where they cannot be read.
    pub records: Option<HashMap<u64, FrameRecord>>,
    /// The processes that may map frames by the kernel's own records, and their pages there; `None` where that cannot
    /// be read.
    pub mappers: Option<HashMap<u64, Vec<MapperPages>>>,
    /// What these records lead to.
    pub owners: HashMap<u64, OwnerDetail>,
    /// These records have the kinds of regions.
    pub mapper_kinds: bool,
    /// Slots of shared memory in swap by page index; `None` where they cannot be read.
    pub slots: Option<BTreeMap<u64, SwapEntry>>,
    /// Each question for them fails.
    pub slots_fail: bool,
    /// Entries of page tables by page index; `None` where they cannot be read.
    pub tables: Option<HashMap<u64, TableEntry>>,
    /// File descriptors: where each leads, and its `fdinfo`.
    pub descriptors: Vec<(&'static str, String)>,
    /// Files with words that may not be opened.
    pub refused: Vec<WordFile>,
    /// The kernel has PAGEMAP_SCAN.
    pub scans: bool,
    /// How many stretches the kernel's buffer of a scan holds. A scan says that it stopped where the buffer was last
    /// full.
    pub scan_buffer: usize,
    /// The kernel has PROCMAP_QUERY.
    pub queries: bool,
    /// Pages that KSM has merged on this machine, on which KPF_KSM is set on every anonymous page.
    pub merged_pages: u64,
    /// KSM merges pages filled with zeros with the zero page (`use_zero_pages`).
    pub merges_zeros: bool,
    /// A swap area is in use.
    pub swaps: bool,
    /// The device of a mounted hugetlbfs.
    pub hugetlbfs: Option<Device>,
    /// The content of smaps, which may be empty.
    pub smaps: Vec<Smaps>,
    /// The regions as they are once entries have been read.
    pub then: Mutex<Option<Vec<Region>>>,
    /// Frame numbers and the words of frames are hidden.
    pub hidden: bool,
    /// The device of a mounted tmpfs.
    pub tmpfs: Option<Device>,
    /// The device of shared memory in no mounted filesystem, if the kernel tells.
    pub shared_memory: Option<Device>,
    /// Map counts are averages over large folios.
    pub average_counts: bool,
    /// The backing content of pages of files, by page index; for all others it is [`BackingContent::Hole`].
    pub content: BTreeMap<u64, BackingContent>,
    /// The backing content follows from `files` instead.
    pub asks_files: bool,
    pub behind_asked: AtomicU64,
    /// Pages in these queries.
    pub behind_pages: AtomicU64,
    /// Bytes of pages, by page index; `None` if memory cannot be read.
    pub memory: Option<BTreeMap<u64, Vec<u8>>>,
    /// Files by path.
    pub files: BTreeMap<Name, Vec<u8>>,
    /// Pages of these that are in the page cache, by page index of where they are mapped.
    pub cached: Vec<u64>,
    /// `/proc/PID/syscall`
    pub syscall: String,
    /// Where `/proc/PID/exe` leads, if that may be known.
    pub executable: Option<Name>,
    /// The number of its address space: worlds with the same number share it.
    pub space: u32,
    /// The processes of the machine, each with its parent; `None` for those that may not be opened.
    pub processes: Vec<(ProcessHandle, Option<Arc<World>>)>,
    /// The one of them that stands for pmdb.
    pub own: Option<u32>,
    /// Contents of files, before all that follows from the rest.
    pub texts: Vec<(File, String)>,
    /// Files of cgroups, by path below the mount and name.
    pub group_files: BTreeMap<String, String>,
    pub entries_read: AtomicU64,
    pub scanned: AtomicU64,
    pub flags_read: AtomicU64,
    pub counts_read: AtomicU64,
    pub watched: Arc<WatchedAnswers>,
}

/// What tests inspect, and change, while the target is in use.
#[derive(Default)]
pub(crate) struct WatchedAnswers {
    pub(crate) liveness: Mutex<Option<Liveness>>,
    pub(crate) memory_reads: AtomicUsize,
    /// Reads of the whole list of regions.
    pub(crate) region_reads: AtomicUsize,
    pub(crate) files_opened: AtomicUsize,
    /// How often soft-dirty bits were cleared.
    pub(crate) soft_dirty_cleared: AtomicUsize,
    /// After this many answers the process ends.
    pub(crate) answers_left: Mutex<Option<usize>>,
    /// Pages that are no longer mapped once memory was read: by page index.
    pub(crate) gone_after_read: Mutex<Vec<u64>>,
    /// Contents of files, before those of the world.
    pub(crate) texts: Mutex<Vec<(File, String)>>,
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
    /// The contents of a file, if they are made up.
    fn made_text(&self, file: File) -> Option<String> {
        let changed = self.watched.texts.lock().expect("texts");
        let (_, text) = changed.iter().chain(&self.texts).find(|(one, _)| *one == file)?;
        Some(text.clone())
    }

    /// Gives the process a text of smaps_rollup.
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
            records: None,
            mappers: None,
            owners: HashMap::new(),
            mapper_kinds: false,
            slots: None,
            slots_fail: false,
            tables: None,
            descriptors: Vec::new(),
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
            entries_read: AtomicU64::new(0),
            scanned: AtomicU64::new(0),
            flags_read: AtomicU64::new(0),
            counts_read: AtomicU64::new(0),
            watched: Arc::default(),
        }
    }

    /// Maps frames from `frame` on, one mapping each.
    pub fn maps(&mut self, page: u64, pages: u64, frame: u64) {
        for index in 0..pages {
            let entry = PRESENT | EXCLUSIVE | (frame + index);
            self.entries.insert(page + index, entry);
            self.flags.insert(frame + index, PageFlags::ANON.bits());
            self.counts.insert(frame + index, 1);
        }
    }

    /// Maps a huge page of its own.
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
