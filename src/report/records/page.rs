//! Records about one page: `translate`, and the parts that other records share.

use crate::kernel::{FrameNumber, Kind, Name, Permissions, PhysicalAddress, Region, State, VirtualAddress};
use crate::report::json::Hex;
use crate::report::record::record;
use crate::report::{Fact, FolioReport, FramePlace, FrameWords, Why};
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

impl RegionBrief {
    /// Whether it is memory of memfd_secret(2), which not even the kernel maps.
    pub fn is_secret(&self) -> bool {
        self.without_path && self.name.as_bytes() == b"/secretmem"
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
        /// Demangled name.
        name: Name,
        /// Bytes from the symbol's first byte.
        offset: u64,
        /// File name of the module that defines it.
        module: Name,
    }
}

/// As gdb writes it between its angle brackets: `malloc+16`.
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
        /// Frame × page size + offset in the page.
        physical: Fact<PhysicalAddress>,
        /// Page frame number.
        pfn: Fact<FrameNumber>,
        /// Whether a frame is there but its number is hidden. Unknown where the page map has no entry.
        pfn_hidden: Fact<bool>,
        /// State of the page.
        state: State,
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
        guard: bool,
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
        /// The place of the frame.
        [flat] place: FramePlace,
        /// The region it lies in; `null` when unmapped.
        region: Option<RegionBrief>,
        /// The symbol it lies in.
        symbol: Option<SymbolBrief>,
        /// For an unmapped address: the nearest region below and above.
        [optional] nearest: Option<Nearest>,
        /// Why a value is only the most likely one.
        [flat] why: Why,
    }

    /// The regions around an address that is in none.
    pub struct Nearest {
        /// The region that ends below it.
        below: Option<RegionBrief>,
        /// The region that starts above it.
        above: Option<RegionBrief>,
    }
}
