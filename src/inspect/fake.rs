//! A process and a machine made of tables, which count what is read of them.

use crate::kernel::mounts::MemoryFiles;
use crate::kernel::smaps::Smaps;
use crate::kernel::swaps::{SwapAreas, SwapLayout, SwapOptions};
use crate::kernel::zones::Zones;
use crate::kernel::{
    AddressRange, Device, FrameNumber, Name, PageFlags, PageMapEntry, PageSize, Permissions,
    Region, VirtualAddress,
};
use crate::target::{
    Behind, BehindRun, Categories, Error, Identity, KernelVersion, Layout, Liveness, Machine,
    MapsText, Modules, Opened, Populated, Process, ProcessEntry, ProcessStatus, ReadAt, Relation,
    Result, Target,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub const PAGE: u64 = 4096;
/// Pages that a huge mapping has.
pub const HUGE: u64 = 512;
pub const PRESENT: u64 = 1 << 63;
pub const FILE: u64 = 1 << 61;
pub const EXCLUSIVE: u64 = 1 << 56;

/// What there is, and how much of it was read.
#[derive(Default)]
pub struct World {
    pub regions: Mutex<Vec<Region>>,
    /// Page-map entries by page index.
    pub entries: BTreeMap<u64, u64>,
    /// The kernel tracks soft-dirty pages: bit 55 is set everywhere, on holes too.
    pub soft_dirty: bool,
    /// First pages of huge mappings.
    pub huge: Vec<u64>,
    pub flags: HashMap<u64, u64>,
    pub counts: HashMap<u64, u64>,
    pub scans: bool,
    /// A swap area is in use.
    pub swaps: bool,
    /// The device of a mounted hugetlbfs.
    pub hugetlbfs: Option<Device>,
    /// What smaps says; of nothing, if it is empty.
    pub smaps: Vec<Smaps>,
    /// Its regions are read from a text.
    pub tells_text: bool,
    pub regions_read: AtomicU64,
    /// The regions as they are once entries have been read.
    pub then: Mutex<Option<Vec<Region>>>,
    /// Nobody may see frame numbers, nor what is said of frames.
    pub hidden: bool,
    /// That of a mounted tmpfs.
    pub tmpfs: Option<Device>,
    /// Map counts are averages over large folios.
    pub average_counts: bool,
    /// What is behind pages of files, by page index; [`Behind::Hole`] behind all others.
    pub behind: BTreeMap<u64, Behind>,
    pub behind_asked: AtomicU64,
    /// Pages that these questions were about.
    pub behind_pages: AtomicU64,
    pub pid: u32,
    /// Which address space it has: worlds of the same one share it.
    pub space: u32,
    /// The processes of the machine, each with its parent; `None` for those that may not be opened.
    pub processes: Vec<(Relation, Option<Arc<World>>)>,
    pub liveness: Mutex<Option<Liveness>>,
    pub entries_read: AtomicU64,
    pub scanned: AtomicU64,
    pub flags_read: AtomicU64,
    pub counts_read: AtomicU64,
}

/// Above this the page map has nothing: the kernel half.
const END: u64 = 1 << 47;

pub fn region(start_page: u64, pages: u64) -> Region {
    let start = VirtualAddress::new(start_page * PAGE);
    let end = VirtualAddress::new((start_page + pages) * PAGE);
    Region {
        range: AddressRange::new(start, end).expect("pages"),
        permissions: Permissions {
            read: true,
            write: true,
            ..Permissions::default()
        },
        offset: 0,
        device: Device::default(),
        inode: 0,
        name: Name::default(),
        deleted: false,
    }
}

impl World {
    pub fn new(regions: impl IntoIterator<Item = Region>) -> World {
        World {
            regions: Mutex::new(regions.into_iter().collect()),
            scans: true,
            pid: 1,
            ..World::default()
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

    /// Its regions as the kernel writes them.
    fn text(&self) -> Vec<u8> {
        let line = |region: &Region| {
            let (start, end) = (region.range.start().get(), region.range.end().get());
            format!(
                "{start:08x}-{end:08x} {} 00000000 00:00 0\n",
                region.permissions
            )
        };
        let regions = self.regions.lock().expect("a lock");
        regions.iter().map(line).collect::<String>().into_bytes()
    }

    pub fn target(self) -> (Arc<World>, Target) {
        let world = Arc::new(self);
        let target = Target {
            process: Box::new(Fake(world.clone())),
            machine: Arc::new(Fake(world.clone())),
            modules: Box::new(Fake(world.clone())),
        };
        (world, target)
    }
}

#[derive(Clone)]
struct Fake(Arc<World>);

fn none<T>() -> Result<T> {
    Err(Error::NotAvailable {
        what: "not in this world".into(),
    })
}

impl Process for Fake {
    fn identity(&self) -> Identity {
        Identity {
            pid: self.0.pid,
            start_time: 0,
            name: Name::from("fake"),
        }
    }
    fn layout(&self) -> Layout {
        Layout {
            page: PageSize::FOUR_KIB,
            pointer_bytes: 8,
            little_endian: true,
        }
    }
    fn liveness(&self) -> Result<Liveness> {
        Ok(self
            .0
            .liveness
            .lock()
            .expect("a lock")
            .unwrap_or(Liveness::Alive))
    }
    fn regions(&self) -> Result<Vec<Region>> {
        if *self.0.liveness.lock().expect("a lock") == Some(Liveness::Exited) {
            return Err(Error::Gone {
                what: "gone".into(),
            });
        }
        self.0.regions_read.fetch_add(1, Ordering::Relaxed);
        Ok(self.0.regions.lock().expect("a lock").clone())
    }
    fn regions_and_text(&self) -> Result<(Vec<Region>, MapsText)> {
        let text = match self.0.tells_text {
            true => MapsText::new(self.0.text()),
            false => MapsText::default(),
        };
        Ok((self.regions()?, text))
    }
    fn still_says(&self, before: &MapsText, so_far: usize) -> Result<Option<usize>> {
        let text = self.0.text();
        let rest = text.get(so_far..).unwrap_or_default();
        Ok(before.goes_on(so_far, rest.get(..100).unwrap_or(rest)))
    }
    fn region_at(&self, address: VirtualAddress) -> Result<Option<Region>> {
        let regions = self.regions()?;
        Ok(regions.into_iter().find(|one| one.range.contains(address)))
    }
    fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize> {
        let count = (END / PAGE).saturating_sub(first).min(into.len() as u64);
        let into = into.get_mut(..count as usize).unwrap_or_default();
        let soft_dirty = u64::from(self.0.soft_dirty) << 55;
        into.fill(PageMapEntry::new(soft_dirty));
        let shown = match self.0.hidden {
            true => !((1 << 55) - 1),
            false => u64::MAX,
        };
        for (page, raw) in self.0.entries.range(first..first + count) {
            into[(page - first) as usize] = PageMapEntry::new(*raw & shown | soft_dirty);
        }
        self.0.entries_read.fetch_add(count, Ordering::Relaxed);
        if let Some(then) = self.0.then.lock().expect("a lock").take() {
            *self.0.regions.lock().expect("a lock") = then;
        }
        Ok(count as usize)
    }
    fn categories(&self) -> Categories {
        match self.0.scans {
            true => Categories::all(),
            false => Categories::PRESENT | Categories::SWAPPED,
        }
    }
    fn populated(
        &self,
        range: AddressRange,
        wanted: Categories,
        visit: &mut dyn FnMut(Populated) -> ControlFlow<()>,
    ) -> Result<()> {
        let (first, end) = (range.start().get() / PAGE, range.end().get().div_ceil(PAGE));
        let mut pending: Option<Populated> = None;
        for (&page, &raw) in self.0.entries.range(first..end) {
            if raw >> 62 == 0 {
                continue;
            }
            self.0.scanned.fetch_add(1, Ordering::Relaxed);
            let is_huge = |start: &u64| (*start..start + HUGE).contains(&page);
            let mut categories = Categories::empty();
            categories.set(Categories::HUGE, self.0.huge.iter().any(is_huge));
            categories.set(Categories::PRESENT, raw & PRESENT != 0);
            categories.set(Categories::ZERO, raw & PRESENT != 0 && raw << 9 >> 9 == 1);
            categories &= wanted;
            let next = Populated {
                range: region(page, 1).range,
                categories,
            };
            match &mut pending {
                Some(last)
                    if last.range.end() == next.range.start() && last.categories == categories =>
                {
                    last.range =
                        AddressRange::new(last.range.start(), next.range.end()).expect("pages");
                }
                pending => {
                    if pending
                        .replace(next)
                        .is_some_and(|last| visit(last).is_break())
                    {
                        return Ok(());
                    }
                }
            }
        }
        pending.map(visit);
        Ok(())
    }
    fn is_pfn_mapped(&self, _: &Region) -> Result<Option<bool>> {
        Ok(None)
    }
    fn memory(&self, _: VirtualAddress, _: &mut [u8]) -> Result<usize> {
        none()
    }
    fn smaps(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Vec<Smaps>> {
        match go_on() {
            true => Ok(self.0.smaps.clone()),
            false => Ok(Vec::new()),
        }
    }
    fn frames_hidden(&self) -> bool {
        self.0.hidden
    }
    fn status(&self) -> Result<ProcessStatus> {
        none()
    }
}

impl Fake {
    fn words<T>(
        &self,
        table: &HashMap<u64, u64>,
        first: FrameNumber,
        into: &mut [T],
        word: impl Fn(u64) -> T,
    ) -> usize {
        for (index, place) in into.iter_mut().enumerate() {
            let frame = first.get() + index as u64;
            *place = word(table.get(&frame).copied().unwrap_or_default());
        }
        into.len()
    }
}

impl Machine for Fake {
    fn kernel(&self) -> KernelVersion {
        KernelVersion {
            release: "6.18.0".into(),
            number: (6, 18),
        }
    }
    fn page(&self) -> PageSize {
        PageSize::FOUR_KIB
    }
    fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize> {
        let read = into.len() as u64;
        self.0.flags_read.fetch_add(read, Ordering::Relaxed);
        Ok(self.words(&self.0.flags, first, into, PageFlags::from_bits_retain))
    }
    fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        let read = into.len() as u64;
        self.0.counts_read.fetch_add(read, Ordering::Relaxed);
        Ok(self.words(&self.0.counts, first, into, |count| count))
    }
    fn frame_cgroups(&self, _: FrameNumber, _: &mut [u64]) -> Result<usize> {
        none()
    }
    fn zones(&self) -> Result<Arc<Zones>> {
        none()
    }
    fn swaps(&self) -> Result<SwapAreas> {
        let area: &[u8] =
            b"Filename\tType\tSize\tUsed\tPriority\n/dev/zram0 partition 65532 0 -2\n";
        Ok(match self.0.swaps {
            true => SwapAreas::parse(area)?,
            false => SwapAreas::default(),
        })
    }
    fn swap_layout(&self) -> SwapLayout {
        SwapLayout {
            options: Some(SwapOptions {
                memory_failure: true,
                migration: true,
                device_private: true,
                pte_marker: true,
            }),
            kernel: (6, 18),
        }
    }
    fn false_flags(&self) -> Option<PageFlags> {
        Some(PageFlags::KSM)
    }
    fn has_exact_map_counts(&self) -> Option<bool> {
        Some(!self.0.average_counts)
    }
    fn kernel_option(&self, _: &str) -> Option<bool> {
        None
    }
    fn huge_page_bytes(&self) -> Option<u64> {
        Some(HUGE * PAGE)
    }
    fn memory_files(&self, device: Device) -> Option<MemoryFiles> {
        let is = |mounted: Option<Device>| mounted == Some(device);
        match (is(self.0.hugetlbfs), is(self.0.tmpfs)) {
            (true, _) => Some(MemoryFiles::Hugetlb),
            (_, true) => Some(MemoryFiles::Shared),
            _ => None,
        }
    }
    fn processes(&self) -> Result<Vec<ProcessEntry>> {
        none()
    }
    fn relations(&self) -> Result<Vec<Relation>> {
        Ok(self
            .0
            .processes
            .iter()
            .map(|(one, _)| one.clone())
            .collect())
    }
    fn open(&self, wanted: &Relation) -> Result<Opened> {
        let mut all = self.0.processes.iter();
        let gone = || {
            Err(Error::Gone {
                what: "gone".into(),
            })
        };
        match all.find(|(one, _)| one.pid == wanted.pid) {
            Some((_, Some(world)))
                if *world.liveness.lock().expect("a lock") == Some(Liveness::Exited) =>
            {
                gone()
            }
            Some((_, Some(world))) => Ok(Opened {
                process: Box::new(Fake(world.clone())),
                modules: Box::new(Fake(world.clone())),
            }),
            Some((_, None)) => Err(Error::NotPermitted {
                what: "refused".into(),
                remedy: String::new(),
            }),
            None => gone(),
        }
    }
    fn find_memory(
        &self,
        others: &[u32],
        process: u32,
    ) -> Option<std::result::Result<usize, usize>> {
        let space = |pid: u32| {
            let mut all = self.0.processes.iter();
            let (_, world) = all.find(|(one, _)| one.pid == pid)?;
            Some(world.as_ref()?.space)
        };
        let spaces: Option<Vec<u32>> = others.iter().map(|&other| space(other)).collect();
        Some(spaces?.binary_search(&space(process)?))
    }
}

impl Modules for Fake {
    fn open(&self, _: &Region) -> Result<Box<dyn ReadAt>> {
        none()
    }
    fn at_path(&self, _: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        Ok(None)
    }
    fn image(&self, _: &Region) -> Result<Box<dyn ReadAt>> {
        none()
    }
    fn behind(&self, region: &Region, range: AddressRange) -> Result<Vec<BehindRun>> {
        self.0.behind_asked.fetch_add(1, Ordering::Relaxed);
        if region.deleted {
            return none();
        }
        let pages = range.start().get() / PAGE..range.end().get() / PAGE;
        let asked = pages.end - pages.start;
        self.0.behind_pages.fetch_add(asked, Ordering::Relaxed);
        let mut runs: Vec<BehindRun> = Vec::new();
        for page in pages {
            let behind = self.0.behind.get(&page).copied().unwrap_or(Behind::Hole);
            let range = self::region(page, 1).range;
            match runs.last_mut() {
                Some(last) if last.behind.as_ref().ok() == Some(&behind) => {
                    let both = AddressRange::new(last.range.start(), range.end());
                    last.range = both.expect("pages");
                }
                _ => runs.push(BehindRun {
                    range,
                    behind: Ok(behind),
                }),
            }
        }
        Ok(runs)
    }
}
