//! Records of `walk` and of `translate RANGE`.

use super::wire::{every_state, flag_names, flags_hex};
use super::{FrameWords, Why};
use crate::kernel::{FrameNumber, Kind, Name, PageFlags, PhysicalAddress, State, VirtualAddress};
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// How many frames the pages have, where those come again and again; otherwise each page has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// The words of the frames. Flags that say where in its folio a page is are left out of a row of whole folios; the map count is the
    /// same for all.
    #[serde(flatten)]
    pub words: FrameWords,
    /// The order of the folios that the frames are of: each has 2^order pages.
    pub order: Option<u8>,
    /// Mapped by one PMD (or hugetlb).
    pub huge: Option<bool>,
    /// Name of the region; `None` in no region.
    pub region: Option<Name>,
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
    /// The words of the frames, the same for all.
    #[serde(flatten)]
    pub words: FrameWords,
    /// Memory zone.
    pub zone: Option<String>,
    /// NUMA node.
    pub node: Option<u32>,
    /// Why zone and node are not known.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// What closes a walk.
#[derive(Clone, Debug, Serialize)]
pub struct WalkSummary {
    /// Pages that matched.
    pub pages: u64,
    /// … in bytes.
    pub bytes: u64,
    /// Physically contiguous runs among the present ones; `None` when frames are hidden, or were not looked at.
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

/// What closes a walk of frames.
#[derive(Clone, Debug, Serialize)]
pub struct FramesSummary {
    /// Frames that matched.
    pub frames: u64,
    /// … in bytes.
    pub bytes: u64,
    /// Whether `limit` or Ctrl-C cut it short: the counts then cover what was looked at.
    pub cut_short: bool,
    /// Where physical memory ends, if the range goes past that.
    pub memory_ends: Option<FrameNumber>,
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
    /// Why the pages may not be what `key` says, under the name of what they are grouped by.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// A row of `summary`: pages whose frames have the same flags, or pages without a frame that are in the same state.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryRow {
    /// The flags by name; `None` without a frame, or where they cannot be read.
    #[serde(serialize_with = "flag_names")]
    pub flags: Option<PageFlags>,
    /// … and as a number.
    #[serde(serialize_with = "flags_hex")]
    pub flags_raw: Option<PageFlags>,
    /// … and as letters, those of the kernel's page-types.
    pub letters: Option<String>,
    /// The state of the pages; `None` for frames of the machine, which have none.
    pub state: Option<State>,
    /// How many.
    pub pages: u64,
    /// … in bytes.
    pub bytes: u64,
    /// Reasons for what is `null`.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}
