//! A target made of plain values, for the tests of the floors above: nothing of it comes from a kernel.

use super::{
    Behind, BehindRun, Categories, Error, Identity, InMemory, KernelVersion, Layout, Liveness,
    Machine, Modules, OpenedFile, Populated, Process, ProcessEntry, ProcessStatus, ReadAt, Result,
    Target,
};
use crate::kernel::mounts::MemoryFiles;
use crate::kernel::swaps::{SwapAreas, SwapLayout};
use crate::kernel::zones::Zones;
use crate::kernel::{
    AddressRange, Device, FrameNumber, Name, PageFlags, PageMapEntry, PageSize, Permissions,
    Region, Registers, VirtualAddress,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The page size of a fake.
const PAGE: u64 = PageSize::FOUR_KIB.bytes();

/// Bit 63 of a page-map entry.
const PRESENT: u64 = 1 << 63;

/// The page map ends where that of a 64-bit x86 process does.
const LAST_INDEX: u64 = (1 << 47) / PAGE;

/// What a fake target is made of. Change it, then make the [`Target`].
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) layout: Layout,
    pub(crate) regions: Vec<Region>,
    pub(crate) entries: BTreeMap<u64, PageMapEntry>,
    /// Bytes of pages, by page index.
    pub(crate) pages: BTreeMap<u64, Vec<u8>>,
    pub(crate) files: BTreeMap<Name, Vec<u8>>,
    /// Pages of these that are in the page cache, by page index of where they are mapped.
    pub(crate) cached: Vec<u64>,
    pub(crate) frames_hidden: bool,
    /// The kernel tracks soft-dirty pages: bit 55 is set everywhere, on holes too.
    pub(crate) soft_dirty: bool,
    pub(crate) registers: Option<Registers>,
    /// `/proc/kpageflags`; `None` when it may not be read.
    pub(crate) flags: Option<BTreeMap<u64, PageFlags>>,
    /// `/proc/kpagecount`; `None` when it may not be read.
    pub(crate) counts: Option<BTreeMap<u64, u64>>,
    pub(crate) watched: Arc<Watched>,
}

/// What tests look at, and change, while the target is in use.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) liveness: Mutex<Option<Liveness>>,
    pub(crate) memory_reads: AtomicUsize,
    pub(crate) region_reads: AtomicUsize,
    pub(crate) files_opened: AtomicUsize,
    /// Pages that are no longer mapped once memory was read: by page index.
    pub(crate) gone_after_read: Mutex<Vec<u64>>,
}

impl Fake {
    /// A 64-bit little-endian process without regions.
    pub(crate) fn new() -> Self {
        Fake {
            layout: Layout {
                page: PageSize::FOUR_KIB,
                pointer_bytes: 8,
                little_endian: true,
            },
            regions: Vec::new(),
            entries: BTreeMap::new(),
            pages: BTreeMap::new(),
            files: BTreeMap::new(),
            cached: Vec::new(),
            frames_hidden: false,
            soft_dirty: false,
            registers: None,
            flags: Some(BTreeMap::new()),
            counts: Some(BTreeMap::new()),
            watched: Arc::default(),
        }
    }

    /// Adds a region: permissions as in `maps`, and an inode, 0 for none. Its file offset is 0.
    pub(crate) fn region(
        mut self,
        start: u64,
        end: u64,
        permissions: &str,
        inode: u64,
        name: &str,
    ) -> Self {
        let range = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
        self.regions.push(Region {
            range: range.expect("a region that is not empty"),
            permissions: Permissions {
                read: permissions.contains('r'),
                write: permissions.contains('w'),
                execute: permissions.contains('x'),
                shared: permissions.contains('s'),
            },
            offset: 0,
            device: Device {
                major: u32::from(inode != 0) * 8,
                minor: 0,
            },
            inode,
            name: name.into(),
            deleted: false,
        });
        self.regions.sort_by_key(|region| region.range);
        self
    }

    /// Maps a frame at the page of `address`; its bytes begin with `bytes`.
    pub(crate) fn page(mut self, address: u64, frame: u64, bytes: &[u8]) -> Self {
        let mut page = bytes.to_vec();
        page.resize(PAGE as usize, 0);
        self.pages.insert(address / PAGE, page);
        self.entry(address, PRESENT | frame)
    }

    /// Sets the page-map entry of the page of `address`.
    pub(crate) fn entry(mut self, address: u64, raw: u64) -> Self {
        self.entries.insert(address / PAGE, PageMapEntry::new(raw));
        self
    }

    /// The file behind the regions of that name.
    pub(crate) fn file(mut self, name: &str, bytes: Vec<u8>) -> Self {
        self.files.insert(name.into(), bytes);
        self
    }

    /// The target, and its machine.
    pub(crate) fn target(self) -> Target {
        Target {
            process: Box::new(self.clone()),
            machine: Arc::new(self.clone()),
            modules: Box::new(self),
        }
    }

    fn entry_of(&self, index: u64) -> PageMapEntry {
        let entry = self.entries.get(&index).copied().unwrap_or_default();
        let soft_dirty = u64::from(self.soft_dirty) << 55;
        let gone = self.watched.gone_after_read.lock().expect("a sound lock");
        let entry =
            match gone.contains(&index) && self.watched.memory_reads.load(Ordering::Relaxed) > 0 {
                true => PageMapEntry::default(),
                false if self.frames_hidden && entry.is_present() => PageMapEntry::new(PRESENT),
                false => entry,
            };
        PageMapEntry::new(entry.raw() | soft_dirty)
    }
}

fn refused(file: &str) -> Error {
    Error::NotPermitted {
        what: format!("may not open {file}"),
        remedy: "run pmdb as root".to_owned(),
    }
}

impl Process for Fake {
    fn identity(&self) -> Identity {
        Identity {
            pid: 4321,
            start_time: 1,
            name: "fake".into(),
        }
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn liveness(&self) -> Result<Liveness> {
        let mut liveness = self.watched.liveness.lock().expect("a sound lock");
        // A new program is told once.
        Ok(match *liveness {
            Some(Liveness::Executed) => liveness.take().unwrap_or(Liveness::Alive),
            other => other.unwrap_or(Liveness::Alive),
        })
    }

    fn regions(&self) -> Result<Vec<Region>> {
        self.watched.region_reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.regions.clone())
    }

    fn region_at(&self, address: VirtualAddress) -> Result<Option<Region>> {
        let mut regions = self.regions.iter();
        Ok(regions
            .find(|region| region.range.contains(address))
            .cloned())
    }

    fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize> {
        let wanted = (first..LAST_INDEX).zip(into.iter_mut());
        Ok(wanted
            .map(|(index, entry)| *entry = self.entry_of(index))
            .count())
    }

    fn categories(&self) -> Categories {
        Categories::FILE | Categories::PRESENT | Categories::SWAPPED | Categories::SOFT_DIRTY
    }

    fn populated(
        &self,
        range: AddressRange,
        wanted: Categories,
        visit: &mut dyn FnMut(Populated) -> ControlFlow<()>,
    ) -> Result<()> {
        let page = PageSize::FOUR_KIB;
        let first = page.index(range.start());
        for index in first..first + range.pages(page) {
            let entry = self.entry_of(index);
            let mut categories = Categories::empty();
            categories.set(Categories::PRESENT, entry.is_present());
            categories.set(Categories::SWAPPED, entry.is_swap_entry());
            categories.set(Categories::FILE, entry.is_file_or_shared());
            categories.set(Categories::SOFT_DIRTY, entry.is_soft_dirty());
            let start = VirtualAddress::new(index * PAGE);
            let end = VirtualAddress::new((index + 1) * PAGE);
            let populated = entry.is_present() || entry.is_swap_entry();
            if let Some(range) = AddressRange::new(start, end).filter(|_| populated) {
                let categories = categories & wanted;
                if visit(Populated { range, categories }).is_break() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn is_pfn_mapped(&self, region: &Region) -> Result<Option<bool>> {
        Ok(Some(region.name.as_bytes() == b"/dev/mem"))
    }

    fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        self.watched.memory_reads.fetch_add(1, Ordering::Relaxed);
        let mut read = 0;
        for byte in into {
            let at = address.get() + read as u64;
            let page = self.pages.get(&(at / PAGE));
            match page.and_then(|page| page.get((at % PAGE) as usize)) {
                Some(value) => *byte = *value,
                None => break,
            }
            read += 1;
        }
        Ok(read)
    }

    fn frames_hidden(&self) -> bool {
        self.frames_hidden
    }

    fn status(&self) -> Result<ProcessStatus> {
        Ok(ProcessStatus::default())
    }

    fn registers(&self) -> Result<Registers> {
        self.registers.ok_or_else(|| Error::NotAvailable {
            what: "process 4321 is running".to_owned(),
        })
    }
}

impl Machine for Fake {
    fn kernel(&self) -> KernelVersion {
        KernelVersion {
            release: "6.12.0-fake".to_owned(),
            number: (6, 12),
        }
    }

    fn page(&self) -> PageSize {
        PageSize::FOUR_KIB
    }

    fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize> {
        let flags = self
            .flags
            .as_ref()
            .ok_or_else(|| refused("/proc/kpageflags"))?;
        for (frame, word) in (first.get()..).zip(into.iter_mut()) {
            *word = flags.get(&frame).copied().unwrap_or_default();
        }
        Ok(into.len())
    }

    fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        let counts = self
            .counts
            .as_ref()
            .ok_or_else(|| refused("/proc/kpagecount"))?;
        for (frame, count) in (first.get()..).zip(into.iter_mut()) {
            *count = counts.get(&frame).copied().unwrap_or_default();
        }
        Ok(into.len())
    }

    fn frame_cgroups(&self, _: FrameNumber, _: &mut [u64]) -> Result<usize> {
        Err(refused("/proc/kpagecgroup"))
    }

    fn zones(&self) -> Result<Arc<Zones>> {
        Ok(Arc::default())
    }

    fn swaps(&self) -> Result<SwapAreas> {
        Ok(SwapAreas::default())
    }

    fn swap_layout(&self) -> SwapLayout {
        SwapLayout {
            options: None,
            kernel: (6, 12),
        }
    }

    fn kernel_option(&self, _: &str) -> Option<bool> {
        None
    }

    fn has_exact_map_counts(&self) -> Option<bool> {
        Some(true)
    }

    fn memory_files(&self, _: Device) -> Option<MemoryFiles> {
        None
    }

    fn processes(&self) -> Result<Vec<ProcessEntry>> {
        Ok(Vec::new())
    }
}

impl Modules for Fake {
    fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        self.watched.files_opened.fetch_add(1, Ordering::Relaxed);
        match self.files.get(&region.name) {
            Some(bytes) => Ok(Box::new(InMemory::file(bytes.clone()))),
            None => Err(refused(&region.name.to_string())),
        }
    }

    fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        let bytes = self.files.get(&Name::new(path)).cloned();
        Ok(bytes.map(|bytes| Box::new(InMemory::file(bytes)) as Box<dyn ReadAt>))
    }

    fn behind(&self, region: &Region, range: AddressRange) -> Result<Vec<BehindRun>> {
        if !self.files.contains_key(&region.name) {
            return Err(refused(&region.name.to_string()));
        }
        let page = PageSize::FOUR_KIB;
        let first = page.index(range.start());
        let pages: Vec<u64> = (first..first + range.pages(page)).collect();
        let is_cached = |page: &u64| self.cached.contains(page);
        let runs = pages.chunk_by(|one, next| is_cached(one) == is_cached(next));
        let run = |pages: &[u64]| {
            let at = |page: &u64| VirtualAddress::new(page * PAGE);
            let (first, last) = (pages.first()?, pages.last()?);
            Some(BehindRun {
                range: AddressRange::new(at(first), at(&(last + 1)))?,
                behind: Ok(Behind::Contents {
                    cached: is_cached(first),
                }),
            })
        };
        Ok(runs.filter_map(run).collect())
    }

    fn perf_map(&self) -> Result<Option<(Name, OpenedFile)>> {
        let path = format!("/tmp/perf-{}.map", self.identity().pid);
        let file = self.at_path(path.as_bytes())?;
        Ok(file.map(|file| (Name::new(path), Ok(file))))
    }

    fn cached(&self, region: &Region, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let bytes = self.files.get(&region.name).cloned().unwrap_or_default();
        let offset = region.file_offset(address).unwrap_or(u64::MAX);
        let page = PageSize::FOUR_KIB;
        let first = page.index(address);
        let pages = (first..)
            .take_while(|page| self.cached.contains(page))
            .count() as u64;
        let most = ((first + pages) * PAGE).saturating_sub(address.get()) as usize;
        let most = most.min(into.len());
        let into = into.get_mut(..most).unwrap_or_default();
        InMemory::file(bytes)
            .read_at(offset, into)
            .map_err(|_| refused("the page cache"))
    }

    fn image(&self, _: &Region) -> Result<Box<dyn ReadAt>> {
        Err(Error::NotAvailable {
            what: "this mapping is not resident".to_owned(),
        })
    }
}
