//! What is asked, who is told while the search goes on, and what is answered.

use crate::kernel::{FrameNumber, PageFlags, Region, VirtualAddress};
use crate::report::{Fact, Reason, Stopped, WhoCounts};
use crate::target::Target;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The frame.
    pub frame: FrameNumber,
    /// Where it was seen, if it was found by an address.
    pub seen: Option<Seen>,
    /// The process whose relatives are to be looked at first.
    pub near: Option<u32>,
    /// Whether PAGEMAP_SCAN and PROCMAP_QUERY may be used (see [`Process::set_scan`](crate::target::Process::set_scan)).
    pub scan: bool,
    /// The search ends when so many mappings were told of, neighbouring pages as one.
    pub limit: Option<u64>,
}

/// A mapping that is known beforehand.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The process.
    pub pid: u32,
    /// The first byte of the page.
    pub address: VirtualAddress,
    /// The region that holds it.
    pub region: Option<Region>,
}

/// A mapping of the frame.
pub struct Mapper<'a> {
    /// The process that has it, opened.
    pub target: &'a Target,
    /// The first byte of the first page.
    pub address: VirtualAddress,
    /// How many neighbouring pages all map it: more than one only for pages of zeros and merged pages.
    pub pages: u64,
    /// The region that holds it; `None` if it has gone meanwhile.
    pub region: Option<Region>,
    /// All regions of the process, for a symbol of memory that is of no file; `None` where there can be none.
    pub regions: Option<&'a [Region]>,
}

/// Who is told while the search goes on, and may end it.
pub trait Audience {
    /// A mapping was found.
    fn found(&mut self, mapper: &Mapper<'_>) -> Result<(), Stopped>;
    /// `done` of `total` processes have been looked at, in this round.
    fn looked_at(&mut self, done: u64, total: u64) -> Result<(), Stopped>;
    /// One of them has much to look at.
    fn check(&mut self) -> Result<(), Stopped>;
}

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Nobody can map such a frame: there was nothing to search for.
    Nobody(&'static str),
    /// As many mappings as the kernel counts were found, and all of them were there still after that count.
    Counted,
    /// Everything that could be looked at was.
    Searched,
    /// As many were told of as were asked for.
    Limit,
    /// The audience ended it.
    Stopped(Stopped),
}

/// What was found out, beside the mappings that the audience was told of.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The flags of the frame.
    pub flags: Fact<PageFlags>,
    /// How often the kernel says that it is mapped.
    pub map_count: Fact<u64>,
    /// Why that number could not end the search, if it could not.
    pub uncounted: Option<Reason>,
    /// What was found, and how far was looked.
    pub counts: WhoCounts,
    /// Whether the page is no longer where it was seen: what was found may be of before and after.
    pub moved: bool,
    /// How the search ended.
    pub ended: Ended,
}
