//! Records of `region` and `regions`.

use super::wire::{not, optional_hex, optional_object};
use super::{LargeFolios, SymbolBrief, Why};
use crate::kernel::address::serialize_hex;
use crate::kernel::{Device, Name, Permissions, State, VirtualAddress};
use serde::Serialize;
use std::collections::BTreeMap;

/// A region, and what is in it.
#[derive(Clone, Debug, Serialize)]
pub struct RegionReport {
    /// First address.
    pub start: VirtualAddress,
    /// The address after the last one.
    pub end: VirtualAddress,
    /// As `maps` writes them.
    pub perms: Permissions,
    /// Offset in the file of its first byte.
    #[serde(serialize_with = "serialize_hex")]
    pub offset: u64,
    /// `08:02`
    pub device: Device,
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
    /// Present bytes that are the page of zeros: they are neither shared nor private.
    pub zero: Option<u64>,
    /// Bytes mapped by whole PMDs (or hugetlb).
    pub huge: Option<u64>,
    /// Whether shared, private and pss rest on map counts that are averages over large folios.
    #[serde(skip_serializing_if = "not")]
    pub map_count_average: bool,
    /// For `region`: large folios by size and by how they are mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folios: Option<Vec<LargeFolios>>,
    /// Pages in each state, for `region` alone: a report that has them is shown in full, one without is a row.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<State, u64>,
    /// For `region ADDR`: the address asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<RegionPlace>,
    /// For `region`, and with `full`: proportional share in bytes.
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
    /// For `region`: it changed or went while it was looked at, so that the numbers may be of before and after.
    #[serde(skip_serializing_if = "not")]
    pub changed: bool,
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
    /// Bytes present, as far as the page map shows them.
    pub present: Option<u64>,
    /// Bytes swapped, as far as the page map shows them; `None` where some of shared memory may be in swap.
    pub swapped: Option<u64>,
    /// Whether regions changed meanwhile.
    pub changed: bool,
    /// Whether it was broken off: then the totals are of what was looked at.
    pub cut_short: bool,
}
