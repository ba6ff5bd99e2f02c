//! Records of `walk`.

use crate::kernel::{FrameNumber, Kind, Name, PhysicalAddress, State, VirtualAddress};
use crate::report::json::EveryState;
use crate::report::record::record;
use crate::report::{Fact, FrameWords, Why};

record! {
    /// A row of `walk`.
    pub struct Pages as "pages" with why if any {
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
        /// Physical address of the first byte; `null` if that does not fit 64 bits.
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
    pub struct WalkSummary as "walk-summary" {
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
        /// Whether regions changed during the walk.
        changed: bool,
        /// Whether `limit` or Ctrl-C ended it early: the counts then cover what was seen.
        cut_short: bool,
        /// Pages in each state; in JSON every state has its count, 0 where there are none.
        [flat] states: EveryState,
    }

    /// The totals of a walk of frames.
    pub struct FramesSummary as "frames-summary" {
        /// Frames that matched.
        frames: u64,
        /// The same in bytes.
        bytes: u64,
        /// Whether `limit` or Ctrl-C ended it early: the counts then cover what was seen.
        cut_short: bool,
        /// The end of physical memory, if the range extends beyond it.
        memory_ends: Option<FrameNumber>,
    }

    /// A row of `walk … by`.
    pub struct Group as "group" with why if any {
        /// The key that pages are grouped by: `state`, `kind`, …
        by: &'static str,
        /// The value of the key for this group.
        key: String,
        /// The second key, if there are two.
        [optional] second_by: Option<&'static str>,
        /// The value of the second key.
        [optional] second_key: Option<String>,
        /// Pages in it.
        pages: u64,
        /// The same in bytes.
        bytes: u64,
        /// Why the pages may not be what `key` says, under the name of the key.
        [flat] why: Why,
    }
}
