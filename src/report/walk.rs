//! Records of `walk` and of `translate RANGE`.

use super::record::record;
use super::wire::every_state;
use super::{Fact, FrameWords, Why};
use crate::kernel::{FrameNumber, Kind, Name, PageFlags, PhysicalAddress, State, VirtualAddress};
use serde::Serialize;
use std::collections::BTreeMap;

record! {
    /// Pages that follow each other both virtually and physically, or that have no frames.
    pub struct Run with why if any {
        /// First virtual address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Physical address of the first byte.
        physical: Fact<PhysicalAddress>,
        /// First frame.
        pfn: Fact<FrameNumber>,
        /// Pages in it.
        pages: u64,
        /// Their state.
        state: State,
        /// Why what is shown may be otherwise.
        [flat] doubts: Why,
    }
}

record! {
    /// Neighbouring pages of the same state, kind and flags, with consecutive frames.
    pub struct Pages with why if any {
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
        /// How many frames the pages have, where those come again and again; otherwise each page has its own.
        [optional] frames: Option<u64>,
        /// The words of the frames. Flags that say where in its folio a page is are left out of a row of whole folios; the map count is
        /// the same for all.
        [flat] words: FrameWords,
        /// The order of the folios that the frames belong to: each has 2^order pages.
        order: Fact<u8>,
        /// Mapped by one PMD (or hugetlb).
        huge: Fact<bool>,
        /// Name of the region; `null` in no region.
        region: Option<Name>,
        /// Why what is shown may be otherwise.
        [flat] doubts: Why,
    }
}

record! {
    /// Neighbouring frames with the same flags and map count.
    pub struct Frames with why if any {
        /// First frame.
        pfn: FrameNumber,
        /// Physical address of the first byte; `null` if that does not fit 64 bits.
        physical: Option<PhysicalAddress>,
        /// Frames in it.
        frames: u64,
        /// … in bytes; `null` if that does not fit 64 bits.
        bytes: Option<u64>,
        /// The words of the frames, the same for all.
        [flat] words: FrameWords,
        /// Memory zone.
        zone: Fact<String>,
        /// NUMA node.
        node: Fact<u32>,
    }
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
    /// Where that begins; `None` where there is none.
    pub longest_run_start: Option<VirtualAddress>,
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

record! {
    /// A row of `walk … by KEY`.
    pub struct Group with why if any {
        /// By what is grouped: `state`, `kind`, …
        by: &'static str,
        /// The group.
        key: String,
        /// Pages in it.
        pages: u64,
        /// … in bytes.
        bytes: u64,
        /// Why the pages may not be what `key` says, under the name of what they are grouped by.
        [flat] doubts: Why,
    }
}

record! {
    /// A row of `summary`: pages whose frames have the same flags, or pages without a frame that are in the same state.
    pub struct SummaryRow with why if any {
        /// The flags by name.
        flags: Fact<PageFlags>,
        /// … and as letters, those of the kernel's page-types.
        letters: Option<String>,
        /// The state of the pages; `null` for frames of the machine, which have none.
        state: Option<State>,
        /// How many.
        pages: u64,
        /// … in bytes.
        bytes: u64,
        /// Why what is shown may be otherwise.
        [flat] doubts: Why,
    }
}
