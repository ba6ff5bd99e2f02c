//! Records about pages, frames and regions, the marks of pictures, the parts that other records share, and the answer
//! of `explain`: what a page is, whose it is, and what the next access will do.

use crate::kernel::words::worded;
use crate::kernel::{Device, FrameNumber, Kind, Name, Permissions, PhysicalAddress, Region, State, VirtualAddress};
use crate::report::json::{EveryState, Hex, JsonForm, Numbers, leaf};
use crate::report::record::record;
use crate::report::{
    AccessOutcome, EventKind, Fact, FolioReport, FramePlace, FrameWords, KernelRecord, LargeFolios, Movable, Owner,
    TableEntryReport, Why,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

record! {
    /// A slot of a swap area.
    pub struct SwapSlot within "swap" {
        /// The kernel's swap type (number of the area).
        [as "type"] kind: u8,
        /// Page slot in the area.
        offset: u64,
        /// The offset of the slot in the device or file, in bytes.
        byte_offset: Option<Hex>,
        /// The device or file, when `/proc/swaps` has it.
        device: Fact<Name>,
    }

    /// The region that something lies in, in short.
    pub struct RegionBrief {
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Permissions, as `maps` writes them: `rw-p`.
        perms: Permissions,
        /// Offset in the file of the region's first byte.
        offset: Hex,
        /// Name, as in `maps`; empty for plain anonymous memory.
        name: Name,
        /// Whether its file was deleted.
        [optional] deleted: bool,
        /// Whether it is memory without a path (memfd, shared anonymous memory), whatever name the kernel gives it.
        [optional] without_path: bool,
    }
}

impl From<&Region> for RegionBrief {
    fn from(region: &Region) -> Self {
        RegionBrief {
            start: region.range.start(),
            end: region.range.end(),
            perms: region.permissions,
            offset: Hex(region.offset),
            name: region.name.clone(),
            deleted: region.is_deleted_file(),
            without_path: region.is_without_path(),
        }
    }
}

record! {
    /// A symbol and how far into it.
    #[derive(Eq)]
    pub struct SymbolBrief {
        /// Demangled name. `*name` is anonymous memory whose start the variable `name` holds.
        name: Name,
        /// Bytes from the symbol's first byte, or from the address that the variable holds.
        offset: u64,
        /// File name of the module that defines it.
        module: Name,
    }
}

/// Writes the symbol as gdb does between angle brackets: `malloc+16`.
impl fmt::Display for SymbolBrief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => write!(f, "{}", self.name),
            offset => write!(f, "{}+{offset}", self.name),
        }
    }
}

record! {
    /// `translate ADDR`
    pub struct Translation as "translation" with why {
        /// The process.
        pid: u32,
        /// The requested address.
        address: VirtualAddress,
        /// Frame × page size + offset in the page. The first byte of the page is `phys` in filters.
        physical: Fact<PhysicalAddress>,
        /// Page frame number.
        pfn: Fact<FrameNumber>,
        /// Whether a frame is there but its number is hidden. Unknown where the page map has no entry.
        pfn_hidden: Fact<bool>,
        /// State of the page. Unknown in a core file without a page map.
        state: Fact<State>,
        /// The kind of the page, or the kind that an access would give it.
        kind: Option<Kind>,
        /// The raw page-map entry. Unknown where the page map has none (`outside`).
        entry: Fact<Hex>,
        /// Offset of the address in its page.
        page_offset: u64,
        /// Bytes in a page.
        page_size: u64,
        /// Whether the page was written since soft-dirty bits were cleared (bit 55). Unknown where this kernel has no
        /// soft-dirty tracking.
        soft_dirty: Fact<bool>,
        /// Whether the page is mapped only once (bit 56).
        exclusive: Fact<bool>,
        /// Whether userfaultfd write-protects the page (bit 57). Unknown where the page map has no entry.
        uffd_wp: Fact<bool>,
        /// Whether it is a guard page.
        guard: Fact<bool>,
        /// Whether the page belongs to a file or to shared memory (bit 61). Unknown where the page map has no entry.
        file_mapped: Fact<bool>,
        /// Whether it is mapped as a huge page, by a PMD or from the hugetlb pool.
        huge: Fact<bool>,
        /// The swap slot, if the page is in swap.
        swap: Fact<SwapSlot>,
        /// The words of the frame.
        [flat] words: FrameWords,
        /// The folio that the frame belongs to.
        folio: Fact<FolioReport>,
        /// The kernel's own record of the frame, where that can be read.
        [optional] kernel_record: Option<KernelRecord>,
        /// The entry of the page table that maps the page, where the kernel's records can be read.
        [optional] table_entry: Option<TableEntryReport>,
        /// The place of the frame.
        [flat] place: FramePlace,
        /// The region it lies in; `null` when unmapped.
        region: Option<RegionBrief>,
        /// The symbol it lies in.
        symbol: Option<SymbolBrief>,
        /// For an unmapped address: the nearest region below and above.
        [optional] nearest: Option<NearestRegions>,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }

    /// The regions around an address that is in none.
    pub struct NearestRegions {
        /// The region that ends below it.
        below: Option<RegionBrief>,
        /// The region that starts above it.
        above: Option<RegionBrief>,
    }
}

record! {
    /// A row of `walk`.
    pub struct PagesRow as "pages" with why if any {
        /// First virtual address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Pages in it.
        pages: u64,
        /// Their state.
        state: State,
        /// Their kind.
        kind: Fact<Kind>,
        /// First frame.
        pfn: Fact<FrameNumber>,
        /// Number of frames that the pages share, if they repeat; otherwise each page has its own.
        [optional] frames: Option<u64>,
        /// The words of the frames. A row of whole folios leaves out flags for the place in the folio; the map count is
        /// the same for all.
        [flat] words: FrameWords,
        /// The order of the folios that the frames belong to: each has 2^order pages.
        order: Fact<u8>,
        /// Whether the pages are mapped as huge pages, by a PMD or from the hugetlb pool.
        huge: Fact<bool>,
        /// Name of the region; `null` in no region.
        region: Option<Name>,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }

    /// A row of `walk pfn:A..pfn:B`.
    pub struct Frames as "frames" with why if any {
        /// First frame.
        pfn: FrameNumber,
        /// Physical address of the first byte (`phys` in filters); `null` if that does not fit 64 bits.
        physical: Option<PhysicalAddress>,
        /// Frames in it.
        frames: u64,
        /// The same in bytes; `null` if that does not fit 64 bits.
        bytes: Option<u64>,
        /// The words of the frames, the same for all.
        [flat] words: FrameWords,
        /// Memory zone.
        zone: Fact<String>,
        /// NUMA node.
        node: Fact<u32>,
    }

    /// The totals of a walk.
    pub struct WalkSummary as "walk-summary" with why {
        /// Pages that matched.
        pages: u64,
        /// The same in bytes.
        bytes: u64,
        /// Physically contiguous runs among the present ones; `null` when frames are hidden, or were not looked at.
        runs: Option<u64>,
        /// Bytes in the longest of them.
        longest_run_bytes: Option<u64>,
        /// Its first address; `null` if there is none.
        longest_run_start: Option<VirtualAddress>,
        /// The physical addresses between which the runs are, for `by run` and `translate RANGE`.
        [optional] physical: Option<PhysicalExtent>,
        /// Whether regions changed during the walk.
        changed: bool,
        /// Whether `limit` or Ctrl-C ended it early: the counts then cover what was seen.
        cut_short: bool,
        /// Pages that are left out because the filter cannot be evaluated for them.
        undecided: u64,
        /// Pages in each state; in JSON every state has its count, 0 where there are none.
        [flat] states: EveryState,
        /// Why pages are `undecided`.
        [flat] why: Why,
    }

    /// A range of physical memory that contains all runs.
    pub struct PhysicalExtent {
        /// The address of the lowest byte.
        lowest: PhysicalAddress,
        /// The address of the highest byte.
        highest: PhysicalAddress,
        /// Pages that map the zero page, which is in no run.
        zeros: u64,
    }

    /// The totals of a walk of frames.
    pub struct FramesSummary as "frames-summary" with why {
        /// Frames that matched.
        frames: u64,
        /// The same in bytes.
        bytes: u64,
        /// Whether `limit` or Ctrl-C ended it early: the counts then cover what was seen.
        cut_short: bool,
        /// The end of physical memory, if the range extends beyond it.
        memory_ends: Option<FrameNumber>,
        /// Frames that are left out because the filter cannot be evaluated for them.
        undecided: u64,
        /// Why frames are `undecided`.
        [flat] why: Why,
    }

    /// A row of `walk … by`.
    pub struct PageGroup as "group" with why if any {
        /// The key that pages are grouped by: `state`, `kind`, …
        by: String,
        /// The value of the key for this group.
        key: String,
        /// The second key, if there are two.
        [optional] second_by: Option<String>,
        /// The value of the second key.
        [optional] second_key: Option<String>,
        /// Pages in it.
        pages: u64,
        /// The same in bytes.
        bytes: u64,
        /// Why `key` may not hold for the pages, under the name of the key.
        [flat] why: Why,
    }
}

record! {
    /// `region`, and a row of `regions`.
    pub struct RegionReport as "region" with why {
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Permissions, as `maps` writes them: `rw-p`.
        perms: Permissions,
        /// Offset in the file of its first byte.
        offset: Hex,
        /// Device of the file: `08:02`.
        device: Option<Device>,
        /// Inode of the file; 0 without one.
        inode: Option<u64>,
        /// Name, as in `maps`.
        name: Name,
        /// Whether its file was deleted.
        deleted: bool,
        /// The inode, or of a System V segment its number, if other objects may have the same name.
        [optional] object: Option<u64>,
        /// The file whose writable private mapping ends where this region begins, if it has no name itself: so lie the
        /// data of a program and its `.bss`.
        [optional] after: Option<Name>,
        /// Bytes it spans.
        size: u64,
        /// Bytes with a frame mapped.
        present: Option<u64>,
        /// Bytes in swap.
        swapped: Option<u64>,
        /// Present bytes that are mapped elsewhere too.
        shared: Option<u64>,
        /// Of these, bytes that nobody else but pmdb itself maps: it maps libraries too.
        [optional] shared_with_pmdb: Option<u64>,
        /// Bytes of exclusive pages, which are present and mapped only here: `exclusive` in filters.
        private: Option<u64>,
        /// Present bytes that are the zero page: they count neither as shared nor as private.
        zero: Option<u64>,
        /// Bytes mapped as huge pages, by a PMD or from the hugetlb pool.
        huge: Option<u64>,
        /// Whether shared, private and pss rest on map counts that are averages over large folios.
        [optional] map_count_average: bool,
        /// For `region`: large folios by size and by how they are mapped.
        [optional] folios: Option<Vec<LargeFolios>>,
        /// For `region`: pages in each state. Text shows a report with them as a block, and one without as a row.
        [optional] states: BTreeMap<State, u64>,
        /// For `region ADDR`: the requested address.
        [optional] at: Option<RegionPlace>,
        /// For `region`, and with `full`: proportional share (PSS) in bytes; `null` for the hugetlb pool, which has
        /// none.
        [optional] pss: Option<u64>,
        /// For `region`: the VmFlags that madvise sets, if smaps was read.
        [optional] advice: Option<Vec<VmFlag>>,
        /// With `full`: VmFlags, two letters and words each.
        [optional] vm_flags: Option<Vec<VmFlag>>,
        /// The protection key (with `full`, if the machine has such keys); 0 is the default.
        [optional] protection_key: Option<u64>,
        /// With `full`: the fields of smaps as the kernel spells them, in bytes.
        [optional] smaps: Option<Numbers<String>>,
        /// For `region`: whether the region changed or vanished during the command, so that numbers may be
        /// inconsistent.
        [optional] changed: bool,
        /// Reasons for what is `null`.
        [flat] why: Why,
    }

    /// One VmFlag of smaps.
    #[derive(Eq)]
    pub struct VmFlag {
        /// Two letters.
        code: String,
        /// Their meanings.
        meaning: &'static str,
    }

    /// The place of the address of `region ADDR` in its region.
    #[derive(Eq)]
    pub struct RegionPlace {
        /// The address.
        address: VirtualAddress,
        /// Bytes from the start of the region.
        region_offset: u64,
        /// Offset in the file.
        file_offset: Option<Hex>,
        /// ELF section.
        section: Option<Name>,
        /// Symbol.
        symbol: Option<SymbolBrief>,
    }
}

record! {
    /// Neighbouring cells that are alike.
    #[derive(Copy, Eq)]
    pub struct MapCells {
        /// Their number.
        cells: u64,
        /// The most important that is in each.
        mark: Mark,
        /// Whether there is something else in each.
        mixed: bool,
        /// With `by`: pages in each that count for the share.
        pages: Option<u64>,
        /// With `by`: all pages in each from which the share is computed.
        of: Option<u64>,
    }
}

record! {
    /// The pages of a map that have one mark.
    #[derive(Copy, Eq)]
    pub struct MarkPages {
        /// The mark.
        mark: Mark,
        /// Their number.
        pages: u64,
    }
}

worded! {
    /// What a cell shows: the first in this order that it contains.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Mark, word {
        /// Broken memory, or an access that is poisoned.
        Poisoned = "poisoned",
        /// A guard page.
        Guard = "guard",
        /// In swap, or on its way to another frame.
        Swapped = "swapped",
        /// Mapped by one entry for a whole huge page.
        Huge = "huge",
        /// A private copy of a page of a file.
        PrivateCopy = "private_copy",
        /// Memory without a file.
        Anonymous = "anonymous",
        /// Merged with equal pages.
        Ksm = "ksm",
        /// Shared memory.
        Shmem = "shmem",
        /// A page of a file.
        File = "file",
        /// Memory of a device.
        Device = "device",
        /// Code and data that the kernel lends to the process: `[vdso]`, `[vvar]`, `[vsyscall]`.
        Vdso = "vdso",
        /// In different frames after a fork.
        Copied = "copied",
        /// In the same frame after a fork.
        Shared = "shared",
        /// The shared zero page.
        Zero = "zero",
        /// Present, of unknown kind; or hidden.
        Unknown = "unknown",
        /// Nothing is there.
        Untouched = "untouched",
        /// Left out by the filter, or in no region.
        Nothing = "nothing",
    }
}

leaf!(Mark => JsonForm::word::<Mark>("mark"));

record! {
    /// A row of `as timeline`.
    pub struct TimelineRow as "timeline-row" {
        /// Its place among the rows, from 0.
        row: u64,
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Pages of regions in it.
        pages: u64,
        /// Their bytes.
        bytes: u64,
        /// Bytes that were populated when the rows were made, if that decided where they end.
        [optional] populated: Option<u64>,
        /// The region with most of its pages, as `maps` names it.
        region: Option<Name>,
        /// The file after whose writable private mapping that region lies, if it has no name itself.
        [optional] after: Option<Name>,
        /// With `by symbol`, `*name` is anonymous memory whose start the variable `name` holds; `*name[..]` if more
        /// than 4 words of it hold one.
        [optional] symbol: Option<Name>,
        /// Regions that share the row, or parts of them by symbol.
        regions: u64,
    }

    /// A column of `as timeline`.
    pub struct TimelineSample as "timeline-sample" {
        /// Seconds since the epoch.
        time: f64,
        /// A cell for each row so far, in order, neighbours that are alike together.
        cells: Vec<TimelineCells>,
        /// In `compare`: processes that came since the sample before.
        [optional] came: Vec<u32>,
        /// Those that ended since.
        [optional] went: Vec<u32>,
    }

    /// Neighbouring rows that are alike in a sample.
    #[derive(Copy, Eq)]
    pub struct TimelineCells {
        /// Their number.
        cells: u64,
        /// The most important that is in each, as in `map-region`.
        mark: Mark,
        /// Whether there is something else in each.
        mixed: bool,
        /// In `compare`: copied pages in each.
        pages: Option<u64>,
        /// In `compare`: copied and shared pages in each.
        of: Option<u64>,
        /// Whether something has changed in each since the sample before.
        changed: bool,
    }
}

record! {
    /// A kind of event that cannot be seen.
    #[derive(Eq)]
    pub struct Blind {
        /// The kind.
        kind: EventKind,
        /// Why not.
        reason: String,
    }
}

record! {
    /// The room of a file system.
    #[derive(Eq)]
    pub struct RoomLeft {
        /// All its bytes.
        bytes: u64,
        /// The free bytes for any user.
        left: u64,
    }
}

record! {
    /// A cgroup that has no room for a page.
    #[derive(Eq)]
    pub struct ReachedLimit {
        /// Its path.
        cgroup: Name,
        /// The most bytes that may be charged to it.
        bytes: u64,
        /// The bytes that it may still be charged.
        left: u64,
        /// The bytes that reclaim could free, as far as `memory.stat` shows them; `null` if it cannot be read. Pages of
        /// the hugetlb pool are never reclaimed.
        reclaimable: Option<u64>,
    }
}

record! {
    /// `explain`
    pub struct Explanation as "explanation" with why {
        /// The facts about the address.
        [flat] page: Translation,
        /// The pages of the range that was given, if it has several: this is the first of them.
        [optional] range_pages: Option<u64>,
        /// The owner of the page; `null` if no frame is mapped, or if the owner is unknown.
        owner: Option<Owner>,
        /// Whether the kernel may move the page to another frame, if its own record of the page shows that.
        [optional] movable: Option<Movable>,
        /// The file or shared memory that its region maps.
        file: Option<FilePlace>,
        /// Whether the kernel may discard its contents: the program freed it (MADV_FREE) and has not written to it
        /// since.
        discardable: Fact<bool>,
        /// Whether it is droppable memory (MAP_DROPPABLE): the kernel may discard its contents, written or not.
        [optional] droppable: bool,
        /// The room of the file system of its object, if that may refuse an access.
        [optional] room: Option<RoomLeft>,
        /// The nearest cgroup of the process that has no room for a page, if an access may be charged one.
        [optional] group_limit: Option<ReachedLimit>,
        /// The protection key of its region, where the machine has such keys: 0 is that of all memory without one of
        /// its own.
        [optional] protection_key: Option<u64>,
        /// Whether its region is locked (mlock), if the frame is or may be; otherwise another mapping of the frame is.
        [optional] region_locked: Option<bool>,
        /// The VmFlags of its region that madvise sets, if smaps was read.
        [optional] advice: Option<Vec<VmFlag>>,
        /// The effects of the target's next read here.
        next_read: Fact<AccessOutcome>,
        /// The effects of the target's next write here.
        next_write: Fact<AccessOutcome>,
    }

    /// A place in a file.
    #[derive(Eq)]
    pub struct FilePlace {
        /// As `maps` names it.
        name: Name,
        /// Offset of the requested byte.
        offset: Hex,
        /// Whether the file was deleted.
        deleted: bool,
    }
}
