//! A builder for a fake target of one process.

use super::{PAGE, PRESENT, WatchedAnswers, World};
use crate::kernel::{
    AddressRange, Device, Name, PageFlags, PageMapEntry, PageSize, Permissions, Region, Registers, VirtualAddress,
    WordFile,
};
#[cfg(feature = "symbols")]
use crate::process::Modules;
use crate::process::{Target, WordLayout};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// A fake target. Set its fields, then make the [`Target`].
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) layout: WordLayout,
    pub(crate) regions: Vec<Region>,
    pub(crate) entries: BTreeMap<u64, PageMapEntry>,
    /// Bytes of pages, by page index.
    pub(crate) pages: BTreeMap<u64, Vec<u8>>,
    pub(crate) files: BTreeMap<Name, Vec<u8>>,
    /// Pages of the files that are in the page cache, by the page index where they are mapped.
    pub(crate) cached: Vec<u64>,
    pub(crate) frames_hidden: bool,
    /// Whether the kernel tracks soft-dirty pages: bit 55 is set in all entries, also empty ones.
    pub(crate) soft_dirty: bool,
    pub(crate) registers: Option<Registers>,
    /// The link `/proc/PID/exe`, if it may be read.
    pub(crate) executable: Option<Name>,
    /// `/proc/kpageflags`; `None` when it may not be read.
    pub(crate) flags: Option<BTreeMap<u64, PageFlags>>,
    /// `/proc/kpagecount`; `None` when it may not be read.
    pub(crate) counts: Option<BTreeMap<u64, u64>>,
    pub(crate) watched: Arc<WatchedAnswers>,
}

impl Fake {
    /// A 64-bit little-endian process without regions.
    pub(crate) fn new() -> Self {
        Fake {
            layout: WordLayout {
                page: PageSize::FOUR_KIB,
                pointer_bytes: 8,
                is_little_endian: true,
                is_char_signed: true,
            },
            regions: Vec::new(),
            entries: BTreeMap::new(),
            pages: BTreeMap::new(),
            files: BTreeMap::new(),
            cached: Vec::new(),
            frames_hidden: false,
            soft_dirty: false,
            registers: None,
            executable: None,
            flags: Some(BTreeMap::new()),
            counts: Some(BTreeMap::new()),
            watched: Arc::default(),
        }
    }

    /// Adds a region: permissions as in `maps`, and an inode, 0 for none. Its file offset is 0.
    pub(crate) fn region(mut self, start: u64, end: u64, permissions: &str, inode: u64, name: &str) -> Self {
        let range = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
        self.regions.push(Region {
            range: range.expect("a region that is not empty"),
            permissions: Permissions {
                read: permissions.contains('r'),
                write: permissions.contains('w'),
                execute: permissions.contains('x'),
                shared: permissions.contains('s'),
                sharing_unknown: false,
                is_unknown: false,
            },
            offset: 0,
            device: Device { major: u32::from(inode != 0) * 8, minor: 0 },
            inode,
            name: name.into(),
            deleted: false,
        });
        self.regions.sort_by_key(|region| region.range);
        self
    }

    /// Maps a frame at the page of `address`; its first bytes are `bytes`.
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

    /// Adds the file that regions with this name map.
    #[cfg(feature = "symbols")]
    pub(crate) fn file(mut self, name: &str, bytes: Vec<u8>) -> Self {
        self.files.insert(name.into(), bytes);
        self
    }

    /// Makes the target, and returns only its modules.
    #[cfg(feature = "symbols")]
    pub(crate) fn modules(self) -> Modules {
        self.target().modules
    }

    /// Makes the target, with its machine.
    pub(crate) fn target(self) -> Target {
        let mut refused = vec![WordFile::FrameCgroups];
        refused.extend(self.flags.is_none().then_some(WordFile::FrameFlags));
        refused.extend(self.counts.is_none().then_some(WordFile::FrameCounts));
        let flags = self.flags.into_iter().flatten();
        let syscall = self.registers.map(|registers| {
            let (stack, counter) = (registers.stack_pointer, registers.program_counter);
            format!("-1 {:#x} {:#x}\n", stack.get(), counter.get())
        });
        let world = World {
            pid: 4321,
            start_time: 1,
            layout: self.layout,
            release: "6.12.0-fake",
            has_config: false,
            regions: Mutex::new(self.regions),
            entries: self.entries.iter().map(|(&page, entry)| (page, entry.raw())).collect(),
            flags: flags.map(|(frame, flags)| (frame, flags.bits())).collect(),
            counts: self.counts.into_iter().flatten().collect::<HashMap<_, _>>(),
            refused,
            queries: true,
            soft_dirty: self.soft_dirty,
            hidden: self.frames_hidden,
            asks_files: true,
            memory: Some(self.pages),
            files: self.files,
            cached: self.cached,
            syscall: syscall.unwrap_or_else(|| "running\n".to_owned()),
            executable: self.executable,
            watched: self.watched,
            ..World::new([])
        };
        world.target().1
    }
}
