//! Records of `who`.

use super::field::{Field, Form, leaf};
use super::record::record;
use super::{FrameWords, RegionBrief, SymbolBrief};
use crate::kernel::{FrameNumber, Name, PhysicalAddress, VirtualAddress};
use serde::Serialize;
use serde::ser::SerializeMap;

record! {
    /// A process and an address that map the frame.
    pub struct Mapper {
        /// The process.
        pid: u32,
        /// Its short name.
        name: Name,
        /// Where the byte that was asked about lies in it.
        address: VirtualAddress,
        /// Neighbouring pages that all map the frame.
        pages: u64,
        /// The region.
        region: Option<RegionBrief>,
        /// The symbol at the address.
        symbol: Option<SymbolBrief>,
    }
}

record! {
    /// What a search for the mappings of a frame came to, in numbers.
    #[derive(Copy, Eq, Default)]
    pub struct WhoCounts {
        /// Mappings found, each page once, without those that are known to have left.
        mappings: u64,
        /// Mappings that were shown and have left meanwhile: those that counted were looked at again before the end.
        left: u64,
        /// Processes that have them.
        processes: u64,
        /// Processes that were looked at.
        looked_at: u64,
        /// Processes that there are, without kernel threads.
        listed: u64,
        /// Processes that could not be read.
        unreadable: u64,
        /// Processes that ended while they were looked at, or before.
        gone: u64,
        /// Processes that share the whole memory of one that is shown.
        same_memory: u64,
    }
}

record! {
    /// What closes `who`.
    pub struct WhoSummary with why {
        /// The frame.
        pfn: FrameNumber,
        /// Its physical address; `null` if that does not fit 64 bits.
        physical: Option<PhysicalAddress>,
        /// Its words.
        [flat] words: FrameWords,
        /// What was found, and how far was looked.
        [flat] counts: WhoCounts,
        /// How the search ended.
        ended: SearchEnd,
        /// Why nobody can map it, or why the map count could not end the search.
        [optional] because: Option<String>,
        /// Whether the page has moved to another frame meanwhile.
        moved: bool,
    }
}

leaf!(SearchEnd => Form::Text);

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// Such a frame cannot be mapped by a process.
    Nobody,
    /// As many mappings were found as the kernel counts.
    Counted,
    /// All that could be looked at was.
    Searched,
    /// At the `limit`: as many rows were shown.
    Limit,
    /// Ctrl-C.
    Interrupted,
}
