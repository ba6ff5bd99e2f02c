//! Records of `who`.

use super::{FrameWords, RegionBrief, SymbolBrief, Why};
use crate::kernel::{FrameNumber, Name, PhysicalAddress, VirtualAddress};
use serde::Serialize;

/// A process and an address that map the frame.
#[derive(Clone, Debug, Serialize)]
pub struct Mapper {
    /// The process.
    pub pid: u32,
    /// Its short name.
    pub name: Name,
    /// Where the byte that was asked about lies in it.
    pub address: VirtualAddress,
    /// Neighbouring pages that all map the frame.
    pub pages: u64,
    /// The region.
    pub region: Option<RegionBrief>,
    /// The symbol at the address.
    pub symbol: Option<SymbolBrief>,
}

/// What a search for the mappings of a frame came to, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WhoCounts {
    /// Mappings found, each page once, without those that are known to have left.
    pub mappings: u64,
    /// Mappings that were shown and have left meanwhile: those that counted were looked at again before the end.
    pub left: u64,
    /// Processes that have them.
    pub processes: u64,
    /// Processes that were looked at.
    pub looked_at: u64,
    /// Processes that there are, without kernel threads.
    pub listed: u64,
    /// Processes that could not be read.
    pub unreadable: u64,
    /// Processes that ended while they were looked at, or before.
    pub gone: u64,
    /// Processes that share the whole memory of one that is shown.
    pub same_memory: u64,
}

/// What closes `who`.
#[derive(Clone, Debug, Serialize)]
pub struct WhoSummary {
    /// The frame.
    pub pfn: FrameNumber,
    /// Its physical address.
    pub physical: Option<PhysicalAddress>,
    /// Its words.
    #[serde(flatten)]
    pub words: FrameWords,
    /// What was found, and how far was looked.
    #[serde(flatten)]
    pub counts: WhoCounts,
    /// How the search ended.
    pub ended: SearchEnd,
    /// Why nobody can map it, or why the map count could not end the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Whether the page has moved to another frame meanwhile.
    pub moved: bool,
    /// Reasons for what is `null`.
    pub why: Why,
}

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
