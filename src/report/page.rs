//! Records about one page or frame: `translate`, `flags`, `decode`.

use super::wire::{flag_names_only, flags_hex_only, not, optional_hex};
use super::{FolioReport, FramePlace, FrameWords, Why};
use crate::kernel::address::serialize_hex;
use crate::kernel::{
    FrameNumber, Kind, Name, PageFlags, PhysicalAddress, Region, State, VirtualAddress,
};
use serde::Serialize;
use std::fmt;

/// A slot of a swap area.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SwapSlot {
    /// The kernel's swap type (number of the area).
    #[serde(rename = "type")]
    pub kind: u8,
    /// Page slot in the area.
    pub offset: u64,
    /// Where in the device or file that slot is, in bytes.
    #[serde(serialize_with = "optional_hex")]
    pub byte_offset: Option<u64>,
    /// The device or file, when `/proc/swaps` tells.
    pub device: Option<Name>,
}

/// The region that something lies in, in short.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RegionBrief {
    /// First address.
    pub start: VirtualAddress,
    /// The address after the last one.
    pub end: VirtualAddress,
    /// As `maps` writes them: `rw-p`.
    pub perms: String,
    /// Offset in the file of the region's first byte.
    #[serde(serialize_with = "serialize_hex")]
    pub offset: u64,
    /// As `maps` names it; empty for plain anonymous memory.
    pub name: Name,
    /// Whether the file behind it is deleted.
    #[serde(skip_serializing_if = "not")]
    pub deleted: bool,
    /// Whether it is memory that never stood in a folder (memfd, shared anonymous memory), whatever the name that the kernel gives it.
    #[serde(skip_serializing_if = "not")]
    pub without_path: bool,
}

impl RegionBrief {
    /// Whether it is memory of memfd_secret(2): kept like pages of a file, and out of reach even of the kernel itself.
    pub fn is_secret(&self) -> bool {
        self.without_path && self.name.as_bytes() == b"/secretmem"
    }
}

impl From<&Region> for RegionBrief {
    fn from(region: &Region) -> Self {
        RegionBrief {
            start: region.range.start(),
            end: region.range.end(),
            perms: region.permissions.to_string(),
            offset: region.offset,
            name: region.name.clone(),
            deleted: region.is_deleted_file(),
            without_path: region.is_without_path(),
        }
    }
}

/// A symbol and how far into it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SymbolBrief {
    /// Demangled name.
    pub name: Name,
    /// Bytes from the symbol's first byte.
    pub offset: u64,
    /// File name of the module that defines it.
    pub module: Name,
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

/// `translate ADDR`: all there is to know of one address.
#[derive(Clone, Debug, Serialize)]
pub struct Translation {
    /// The process.
    pub pid: u32,
    /// The address asked for.
    pub address: VirtualAddress,
    /// Frame × page size + offset in the page.
    pub physical: Option<PhysicalAddress>,
    /// Page frame number.
    pub pfn: Option<FrameNumber>,
    /// Whether a frame is there but its number is hidden. `None` where the page map has no entry.
    pub pfn_hidden: Option<bool>,
    /// State of the page.
    pub state: State,
    /// What it is or would be.
    pub kind: Option<Kind>,
    /// The raw page-map entry, as `0x8600000000123456`; `None` where the page map has none (`outside`).
    #[serde(serialize_with = "optional_hex")]
    pub entry: Option<u64>,
    /// Offset of the address in its page.
    pub page_offset: u64,
    /// Bytes in a page.
    pub page_size: u64,
    /// Bit 55. `None` when this kernel has no soft-dirty tracking.
    pub soft_dirty: Option<bool>,
    /// Mapped once only.
    pub exclusive: Option<bool>,
    /// Bit 57. `None` where the page map has no entry.
    pub uffd_wp: Option<bool>,
    /// A guard page.
    pub guard: bool,
    /// Bit 61. `None` where the page map has no entry.
    pub file_mapped: Option<bool>,
    /// Mapped by one PMD (or a hugetlb page).
    pub huge: Option<bool>,
    /// The slot, when swapped.
    pub swap: Option<SwapSlot>,
    /// The words of the frame.
    #[serde(flatten)]
    pub words: FrameWords,
    /// The folio that the frame is of.
    pub folio: Option<FolioReport>,
    /// Where the frame lies.
    #[serde(flatten)]
    pub place: FramePlace,
    /// The region it lies in; `None` when unmapped.
    pub region: Option<RegionBrief>,
    /// The symbol it lies in.
    pub symbol: Option<SymbolBrief>,
    /// For an unmapped address: the nearest region below and above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
    /// Reasons for what is `null`.
    pub why: Why,
}

/// The regions around an address that is in none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Nearest {
    /// The region that ends below it.
    pub below: Option<RegionBrief>,
    /// The region that starts above it.
    pub above: Option<RegionBrief>,
}

/// `flags`: one frame, each bit with its meaning.
#[derive(Clone, Debug, Serialize)]
pub struct FlagsReport {
    /// The virtual address it was reached by, if any.
    pub address: Option<VirtualAddress>,
    /// The frame; `None` when there is one behind the address but its number is hidden.
    pub pfn: Option<FrameNumber>,
    /// Its physical address.
    pub physical: Option<PhysicalAddress>,
    /// Its words.
    #[serde(flatten)]
    pub words: FrameWords,
    /// The folio that it is of.
    pub folio: Option<FolioReport>,
    /// Where it lies.
    #[serde(flatten)]
    pub place: FramePlace,
    /// What each set bit says of this frame.
    pub meanings: Vec<FlagMeaning>,
    /// Reasons for what is `null`.
    pub why: Why,
}

/// A flag and what it says of this frame.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FlagMeaning {
    /// Its bit.
    pub bit: u32,
    /// Its name.
    pub name: String,
    /// What it means here.
    pub meaning: String,
}

/// `decode`: a raw number read as what it may be.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "as", rename_all = "kebab-case")]
pub enum Decoded {
    /// Read as a page-map entry.
    Entry {
        /// The number.
        #[serde(serialize_with = "serialize_hex")]
        raw: u64,
        /// The state that it tells; `None` for an empty entry, of which only the region tells.
        state: Option<State>,
        /// Its frame.
        pfn: Option<FrameNumber>,
        /// Physical address of the frame.
        physical: Option<PhysicalAddress>,
        /// Its swap slot.
        swap: Option<SwapSlot>,
        /// Each set bit (or field), with its meaning.
        bits: Vec<BitMeaning>,
    },
    /// Read as `/proc/kpageflags`.
    Flags {
        /// The number.
        #[serde(rename = "raw", serialize_with = "flags_hex_only")]
        flags: PageFlags,
        /// Names.
        #[serde(rename = "flags", serialize_with = "flag_names_only")]
        names: PageFlags,
        /// Each set bit, with its meaning.
        bits: Vec<FlagMeaning>,
    },
}

/// A bit or a field of a page-map entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BitMeaning {
    /// `63`, `0-54`
    pub bits: String,
    /// Its name.
    pub name: &'static str,
    /// Its value and what that means.
    pub meaning: String,
}
