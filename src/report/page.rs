//! Records about pages, frames and regions.

use super::Why;
use crate::kernel::address::serialize_hex;
use crate::kernel::{FrameNumber, Kind, Name, PageFlags, PhysicalAddress, State, VirtualAddress};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

fn flag_names<S: Serializer>(flags: &Option<PageFlags>, serializer: S) -> Result<S::Ok, S::Error> {
    match flags {
        Some(flags) => serializer.collect_seq(flags.names()),
        None => serializer.serialize_none(),
    }
}

fn flags_hex<S: Serializer>(flags: &Option<PageFlags>, serializer: S) -> Result<S::Ok, S::Error> {
    match flags {
        Some(flags) => serialize_hex(&flags.bits(), serializer),
        None => serializer.serialize_none(),
    }
}

fn flags_hex_only<S: Serializer>(flags: &PageFlags, serializer: S) -> Result<S::Ok, S::Error> {
    serialize_hex(&flags.bits(), serializer)
}

fn flag_names_only<S: Serializer>(flags: &PageFlags, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(flags.names())
}

fn every_state<S: Serializer>(
    states: &BTreeMap<State, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        State::ALL
            .iter()
            .map(|state| (state.word(), states.get(state).copied().unwrap_or(0))),
    )
}

fn optional_object<S: Serializer>(
    fields: &Option<Vec<(String, u64)>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match fields {
        Some(fields) => serializer.collect_map(fields.iter().map(|(name, bytes)| (name, bytes))),
        None => serializer.serialize_none(),
    }
}

/// A slot of a swap area.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SwapSlot {
    /// The kernel's swap type (number of the area).
    #[serde(rename = "type")]
    pub kind: u8,
    /// Page slot in the area.
    pub offset: u64,
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
    /// Whether a frame is there but its number is hidden.
    pub pfn_hidden: bool,
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
    /// Bit 57.
    pub uffd_wp: bool,
    /// A guard page.
    pub guard: bool,
    /// Bit 61.
    pub file_mapped: bool,
    /// Mapped by one PMD (or a hugetlb page).
    pub huge: Option<bool>,
    /// The slot, when swapped.
    pub swap: Option<SwapSlot>,
    /// The frame's `/proc/kpageflags` by name.
    #[serde(serialize_with = "flag_names")]
    pub flags: Option<PageFlags>,
    /// … and as a number.
    #[serde(rename = "flags_raw", serialize_with = "flags_hex")]
    pub flags_raw: Option<PageFlags>,
    /// How often the frame is mapped (`/proc/kpagecount`).
    pub map_count: Option<u64>,
    /// Memory zone of the frame.
    pub zone: Option<String>,
    /// NUMA node of the frame.
    pub node: Option<u32>,
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

/// Serialises an optional word as a hexadecimal string.
pub fn optional_hex<S: Serializer>(raw: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match raw {
        Some(raw) => serialize_hex(raw, serializer),
        None => serializer.serialize_none(),
    }
}

/// Pages that follow each other both virtually and physically, or that have no frames.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// First virtual address.
    pub start: VirtualAddress,
    /// The address after the last one.
    pub end: VirtualAddress,
    /// Physical address of the first byte.
    pub physical: Option<PhysicalAddress>,
    /// First frame.
    pub pfn: Option<FrameNumber>,
    /// Pages in it.
    pub pages: u64,
    /// Their state.
    pub state: State,
    /// Reasons for what is `null`.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// Neighbouring pages of the same state, kind and flags, with consecutive frames.
#[derive(Clone, Debug, Serialize)]
pub struct Pages {
    /// First virtual address.
    pub start: VirtualAddress,
    /// The address after the last one.
    pub end: VirtualAddress,
    /// Pages in it.
    pub pages: u64,
    /// Their state.
    pub state: State,
    /// Their kind.
    pub kind: Option<Kind>,
    /// First frame.
    pub pfn: Option<FrameNumber>,
    /// Flags that all of them have, by name.
    #[serde(serialize_with = "flag_names")]
    pub flags: Option<PageFlags>,
    /// … and as a number.
    #[serde(serialize_with = "flags_hex")]
    pub flags_raw: Option<PageFlags>,
    /// Map count, the same for all.
    pub map_count: Option<u64>,
    /// Mapped by one PMD (or hugetlb).
    pub huge: Option<bool>,
    /// Name of the region.
    pub region: Name,
    /// Reasons for what is `null`.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// Neighbouring frames with the same flags and map count.
#[derive(Clone, Debug, Serialize)]
pub struct Frames {
    /// First frame.
    pub pfn: FrameNumber,
    /// Physical address of the first byte.
    pub physical: Option<PhysicalAddress>,
    /// Frames in it.
    pub frames: u64,
    /// … in bytes; `None` if that does not fit 64 bits.
    pub bytes: Option<u64>,
    /// Flags by name.
    #[serde(serialize_with = "flag_names")]
    pub flags: Option<PageFlags>,
    /// … and as a number.
    #[serde(serialize_with = "flags_hex")]
    pub flags_raw: Option<PageFlags>,
    /// Map count.
    pub map_count: Option<u64>,
    /// Memory zone.
    pub zone: Option<String>,
    /// NUMA node.
    pub node: Option<u32>,
}

/// What closes a walk.
#[derive(Clone, Debug, Serialize)]
pub struct WalkSummary {
    /// Pages that matched.
    pub pages: u64,
    /// … in bytes.
    pub bytes: u64,
    /// Physically contiguous runs among the present ones; `None` when frames are hidden.
    pub runs: Option<u64>,
    /// Bytes in the longest of them.
    pub longest_run_bytes: Option<u64>,
    /// Whether the regions changed while the walk went on.
    pub changed: bool,
    /// Whether `limit` or Ctrl-C cut it short: the counts then cover what was looked at.
    pub cut_short: bool,
    /// Pages in each state; in JSON every state has its count, 0 where there are none.
    #[serde(flatten, serialize_with = "every_state")]
    pub states: BTreeMap<State, u64>,
}

/// A row of `walk … by KEY`.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// By what is grouped: `state`, `kind`, …
    pub by: &'static str,
    /// The group.
    pub key: String,
    /// Pages in it.
    pub pages: u64,
    /// … in bytes.
    pub bytes: u64,
}

/// A region, and what is in it.
#[derive(Clone, Debug, Serialize)]
pub struct RegionReport {
    /// First address.
    pub start: VirtualAddress,
    /// The address after the last one.
    pub end: VirtualAddress,
    /// As `maps` writes them.
    pub perms: String,
    /// Offset in the file of its first byte.
    #[serde(serialize_with = "serialize_hex")]
    pub offset: u64,
    /// `08:02`
    pub device: String,
    /// Inode; 0 for none.
    pub inode: u64,
    /// As `maps` names it.
    pub name: Name,
    /// Whether the file behind it is deleted.
    pub deleted: bool,
    /// Bytes it spans.
    pub size: u64,
    /// Bytes with a frame mapped.
    pub present: Option<u64>,
    /// Bytes in swap.
    pub swapped: Option<u64>,
    /// Present bytes that are mapped elsewhere too.
    pub shared: Option<u64>,
    /// Present bytes that are mapped only here.
    pub private: Option<u64>,
    /// Bytes mapped by whole PMDs (or hugetlb).
    pub huge: Option<u64>,
    /// Pages in each state, for `region` alone: a report that has them is shown in full, one without is a row.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<State, u64>,
    /// For `region ADDR`: the address asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<RegionPlace>,
    /// With `full`: proportional share in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pss: Option<u64>,
    /// With `full`: VmFlags, two letters and words each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_flags: Option<Vec<VmFlag>>,
    /// With `full`: the fields of smaps as the kernel spells them, in bytes.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_object"
    )]
    pub smaps: Option<Vec<(String, u64)>>,
    /// Reasons for what is `null`.
    pub why: Why,
}

/// One VmFlag of smaps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct VmFlag {
    /// Two letters.
    pub code: String,
    /// What they mean.
    pub meaning: &'static str,
}

/// Where in a region the address of `region ADDR` lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RegionPlace {
    /// The address.
    pub address: VirtualAddress,
    /// Bytes from the start of the region.
    pub region_offset: u64,
    /// Offset in the file.
    #[serde(serialize_with = "optional_hex")]
    pub file_offset: Option<u64>,
    /// ELF section.
    pub section: Option<Name>,
    /// Symbol.
    pub symbol: Option<SymbolBrief>,
}

/// What closes `regions`.
#[derive(Clone, Debug, Serialize)]
pub struct RegionsSummary {
    /// Regions listed.
    pub regions: u64,
    /// Bytes they span.
    pub size: u64,
    /// Bytes present.
    pub present: Option<u64>,
    /// Bytes swapped.
    pub swapped: Option<u64>,
}

/// `flags`: one frame, each bit with its meaning.
#[derive(Clone, Debug, Serialize)]
pub struct FlagsReport {
    /// The virtual address it was reached by, if any.
    pub address: Option<VirtualAddress>,
    /// The frame.
    pub pfn: FrameNumber,
    /// Its physical address.
    pub physical: Option<PhysicalAddress>,
    /// By name.
    #[serde(serialize_with = "flag_names")]
    pub flags: Option<PageFlags>,
    /// As a number.
    #[serde(serialize_with = "flags_hex")]
    pub flags_raw: Option<PageFlags>,
    /// How often it is mapped.
    pub map_count: Option<u64>,
    /// Inode of its memory cgroup; 0 for none.
    pub cgroup: Option<u64>,
    /// Memory zone.
    pub zone: Option<String>,
    /// NUMA node.
    pub node: Option<u32>,
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
        /// The state that it tells (regions unknown).
        state: State,
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
    pub bits: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its value and what that means.
    pub meaning: String,
}
