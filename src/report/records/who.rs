//! Records of `who`.

use super::{RegionBrief, SymbolBrief};
use crate::kernel::{FrameNumber, Name, PhysicalAddress, VirtualAddress};
use crate::report::json::{Form, leaf};
use crate::report::record::record;
use crate::report::{FrameWords, WhoCounts};
use serde::Serialize;

record! {
    /// A row of `who`.
    pub struct Mapper as "mapper" {
        /// The process.
        pid: u32,
        /// Its short name.
        name: Name,
        /// The address at which the process maps the requested byte.
        address: VirtualAddress,
        /// Neighbouring pages that all map the frame.
        pages: u64,
        /// The region.
        region: Option<RegionBrief>,
        /// The symbol at the address.
        symbol: Option<SymbolBrief>,
    }

    /// The totals of `who`.
    pub struct WhoSummary as "who-summary" with why {
        /// The frame.
        pfn: FrameNumber,
        /// Its physical address; `null` if that does not fit 64 bits.
        physical: Option<PhysicalAddress>,
        /// Its words.
        [flat] words: FrameWords,
        /// The numbers of what was found and searched.
        [flat] counts: WhoCounts,
        /// The end of the search.
        ended: SearchEnd,
        /// Why nobody can map it, or why the map count could not end the search.
        [optional] because: Option<String>,
        /// Whether the page moved to another frame during the search.
        moved: bool,
        /// Whether /proc lists all processes of the machine: not in a pid namespace (container), nor with `hidepid`.
        lists_all: bool,
    }
}

leaf!(SearchEnd => Form::Text);

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchEnd {
    /// Such a frame cannot be mapped by a process.
    Nobody,
    /// As many mappings were found as the kernel counts.
    Counted,
    /// Everything that could be searched was searched.
    Searched,
    /// At the `limit`.
    Limit,
    /// Ctrl-C.
    Interrupted,
}
