//! The kernel's records of page frames: `struct page` and the structures that it leads to, in the kernel's memory
//! (`image`), with the layout that BTF describes. Callers provide both: the live source `/proc/kcore` and
//! `/sys/kernel/btf/vmlinux`, the tests recorded tapes.
//!
//! This module answers closed questions. No kernel address and no byte of kernel memory is in an answer, an error or
//! the reads of `--how`. Only the structures listed in `layout` are read.
//!
//! The layout is used only where it is proved. `proof` compares each field with the files of `/proc` about the same
//! frames, or with experiments on pages of pmdb (`ground`); a field that differs is unknown.
//!
//! `record` has the answers, `pages` the records of frames, and `tables` the page tables of a process. `reverse` finds
//! the mappings of a frame, `swapped` the swapped pages of shared memory, and `names`, `free`, `slab` and `pool` the
//! details of an owner.

mod bases;
mod free;
mod ground;
mod image;
mod layout;
mod mapper;
mod mapping;
mod names;
mod pages;
mod pool;
mod proof;
mod record;
mod reverse;
mod slab;
mod swapped;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod way;

pub(crate) use ground::{Ground, OWN_FILE, OwnFile, RandomBytes};
pub(crate) use image::{Image, READERS, ReadCore};
pub(crate) use tables::{AddressView, PageTables};

pub use record::{
    FrameOwner, FrameRecord, FreeBlock, Meanwhile, NamedFile, OwnerDetail, PageOfFile, RecordParts, RecordedMapper,
    RecordedPage, SlabCache,
};
pub use swapped::SwappedRange;

use crate::access::{Error, Result};
use crate::budget::Budget;
use crate::kernel::btf::Layout;
use crate::kernel::page_table::TableShape;
use crate::kernel::{AddressRange, PageFlags, Region, TableEntry, WordFile};
use free::{FreeBlocks, FreeLayout};
use layout::PageLayout;
use names::{FileNames, NameLayout};
use pages::PageRecords;
use pool::PoolLayout;
use reverse::{ReverseLayout, ReverseMap};
use slab::{SlabCaches, SlabLayout};
use std::sync::OnceLock;
use swapped::SlotLayout;
use way::TableLayout;

/// The records of a machine whose layout was proved.
pub(crate) struct Records {
    pages: PageRecords,
    /// The layout for finding page tables; `None` if this kernel lacks a member of it.
    tables: Option<TableLayout>,
    /// The structure of page tables, if the kernel shows it.
    shape: Option<TableShape>,
    /// The layout for finding processes; `None` if this kernel lacks a member of it.
    reverse: Option<ReverseLayout>,
    /// The layout for finding shared memory; `None` if this kernel lacks a member of it.
    slots: Option<SlotLayout>,
    /// Whether the layout of page caches is proved.
    caches: OnceLock<bool>,
    owners: OwnerLayouts,
    /// Whether the layout of names is proved, by the files of pmdb.
    names: OnceLock<bool>,
    /// The architecture's offset (POISON_POINTER_DELTA) in the signature of page pools, if it was proved.
    pool_delta: OnceLock<Option<u64>>,
    proved: RecordParts,
    /// Whether pins are proved, which is tried when they are first requested, because the proof pins a page.
    pins: OnceLock<Option<bool>>,
    ground: Box<dyn Ground>,
}

/// The layouts for details of an owner; `None` if this kernel lacks a member of one.
struct OwnerLayouts {
    name: Option<NameLayout>,
    free: Option<FreeLayout>,
    slab: Option<SlabLayout>,
    pool: Option<PoolLayout>,
}

impl Records {
    /// Proves the layout `layout` of the kernel whose memory is `image`.
    pub(crate) fn prove(image: Image, layout: &Layout, ground: Box<dyn Ground>) -> Result<Records> {
        let pages = PageRecords::find(image, PageLayout::of(layout)?, &*ground)?;
        let proved = proof::prove(&pages, &*ground)?;
        Ok(Records {
            shape: PageTables::shape(&pages),
            pages,
            tables: TableLayout::of(layout),
            reverse: ReverseLayout::of(layout),
            slots: SlotLayout::of(layout),
            caches: OnceLock::new(),
            owners: OwnerLayouts {
                name: NameLayout::of(layout),
                free: FreeLayout::of(layout),
                slab: SlabLayout::of(layout),
                pool: PoolLayout::of(layout),
            },
            names: OnceLock::new(),
            pool_delta: OnceLock::new(),
            proved,
            pins: OnceLock::new(),
            ground,
        })
    }

    /// Checks that these parts are proved.
    pub(crate) fn require(&self, parts: RecordParts) -> Result<()> {
        let unproved = parts - self.proved - RecordParts::PINS;
        if !unproved.is_empty() {
            return Err(unknown_layout(unproved));
        }
        if !parts.contains(RecordParts::PINS) {
            return Ok(());
        }
        match *self.pins.get_or_init(|| proof::pins(&self.pages, &*self.ground)) {
            Some(true) => Ok(()),
            Some(false) => Err(unknown_layout(RecordParts::PINS)),
            None => Err(Error::not_available(
                "the count of pins was not proved: the kernel did not let pmdb pin a huge page of its own (io_uring)",
            )),
        }
    }

    /// Reads the records of the frames from `first` on, with the proved ones of `parts`.
    pub(crate) fn read(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) {
        let mut proved = self.proved;
        proved.set(RecordParts::PINS, parts.contains(RecordParts::PINS) && self.require(RecordParts::PINS).is_ok());
        self.pages.read(first, parts & proved, into);
    }

    /// Returns the processes that may map a frame.
    pub(crate) fn mappers(
        &self,
        frame: u64,
        meanwhile: Meanwhile<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<RecordedMapper>> {
        self.require(RecordParts::OWNER)?;
        let unknown = || Error::not_available("this kernel's layout of the way to processes is unknown to pmdb");
        let layout = self.reverse.as_ref().ok_or_else(unknown)?;
        ReverseMap { pages: &self.pages, layout, shape: self.shape }.mappers(frame, meanwhile, budget)
    }

    /// Returns the object that a frame belongs to, if its records lead to more than the owner.
    pub(crate) fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>> {
        let (pages, ground) = (&self.pages, &*self.ground);
        let unknown = |what| move || Error::not_available(format!("this kernel's layout of {what} is unknown to pmdb"));
        let mut word = [0];
        let flags = ground.words(WordFile::FrameFlags, frame, &mut word).map(|()| PageFlags::from_bits_retain(word[0]));
        let has = |flag| flags.is_some_and(|flags| flags.contains(flag));
        Ok(Some(if has(PageFlags::BUDDY) {
            let layout = self.owners.free.as_ref().ok_or_else(unknown("free blocks"))?;
            OwnerDetail::Free(FreeBlocks { pages, layout, ground }.of_frame(frame)?)
        } else if has(PageFlags::SLAB) {
            let layout = self.owners.slab.as_ref().ok_or_else(unknown("slab caches"))?;
            OwnerDetail::Slab(SlabCaches { pages, layout }.of_frame(frame)?)
        } else if pages.page_cache(frame).is_some() {
            self.require(RecordParts::OWNER)?;
            let unknown = unknown("names of files");
            let names = FileNames { pages, layout: self.owners.name.as_ref().ok_or_else(unknown)? };
            if !*self.names.get_or_init(|| names.are_proved(ground)) {
                return Err(unknown());
            }
            OwnerDetail::File(names.of_frame(frame)?)
        } else if self.is_of_pool(frame) == Some(true) {
            OwnerDetail::PagePool
        } else {
            return Ok(None);
        }))
    }

    fn is_of_pool(&self, frame: u64) -> Option<bool> {
        let layout = self.owners.pool.as_ref()?;
        let delta = self.pool_delta.get_or_init(|| layout.delta(&self.pages));
        layout.has(&self.pages, (*delta)?, frame)
    }

    /// Checks that the slots of shared memory in swap are proved.
    pub(crate) fn require_slots(&self) -> Result<()> {
        self.proved_slots().map(drop)
    }

    fn proved_slots(&self) -> Result<&SlotLayout> {
        self.require(RecordParts::OWNER)?;
        let unknown = || Error::not_available("this kernel's layout of page caches is unknown to pmdb");
        let layout = self.slots.as_ref().ok_or_else(unknown)?;
        let is_proved = *self.caches.get_or_init(|| layout.is_proved(&self.pages, &*self.ground));
        is_proved.then_some(layout).ok_or_else(unknown)
    }

    /// Returns the pages of `range` that its shared memory has in swap. `range` is a part of a region of the process
    /// with these tables.
    pub(crate) fn slots(
        &self,
        tables: &PageTables,
        region: &Region,
        range: AddressRange,
        budget: &mut Budget,
    ) -> Result<Vec<SwappedRange>> {
        self.proved_slots()?.slots(&self.pages, tables.space, region, range, budget)
    }

    /// Returns the page tables of a process, proved by its page map.
    pub(crate) fn tables(&self, space: &dyn AddressView) -> Result<PageTables> {
        PageTables::find(&self.pages, self.tables.as_ref(), space, &*self.ground)
    }

    /// Reads the entries that map the pages from `first` on in these tables.
    pub(crate) fn table_entries(&self, tables: &PageTables, first: u64, into: &mut [Option<TableEntry>]) {
        tables.read(&self.pages, first, into);
    }
}

fn unknown_layout(parts: RecordParts) -> Error {
    if parts == RecordParts::LARGE_MAPPINGS {
        return Error::not_available(
            "mappings of large folios: no folio was found to compare them on, or the kernel counts them otherwise",
        );
    }
    Error::not_available(format!("{}: this kernel's layout of them is unknown to pmdb", parts.names()))
}
