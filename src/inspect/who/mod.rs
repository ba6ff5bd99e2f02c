//! The page tables the other way round: which processes map a frame, and where.
//!
//! The kernel has no file that tells this, but the flags of the frame say how to look for it, and its map count when to stop. A page of a
//! file lies where processes map that offset of that file: their `maps` name the few page-map entries to read. Anonymous memory
//! is shared by forking, so it mostly lies at the same address in relatives: one entry a process. Only what is left is searched through,
//! by a scan for what is populated and a read of that. A clue is what the first mapping found says of where the
//! others are. Processes are looked at on several cores ([`crew`]), and told of in order. What was told may leave
//! while the search goes on, so when the numbers agree it is looked at [`again`].

mod again;
mod crew;
mod hunt;
mod nature;
mod search;
#[cfg(test)]
mod tests;
mod told;
mod visit;

use super::Result;
use crate::kernel::{FrameNumber, PageFlags, Region, VirtualAddress};
use crate::report::{Fact, Reason, Stopped};
use crate::target::{Machine, Target};
use std::sync::Arc;

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
    /// Mappings found, each page once, without those that are known to have left.
    pub mappings: u64,
    /// Mappings that the audience was told of and that were no more, when all were looked at again before the end.
    pub left: u64,
    /// Processes that have them.
    pub processes: u64,
    /// Processes that were looked at.
    pub looked_at: u64,
    /// Processes that there are, kernel threads left out.
    pub listed: u64,
    /// Processes that could not be read.
    pub unreadable: u64,
    /// Processes that ended while they were looked at, or before.
    pub gone: u64,
    /// Processes that share the whole memory of one that is told of.
    pub same_memory: u64,
    /// Whether the page is no longer where it was seen: what was found may be of before and after.
    pub moved: bool,
    /// How the search ended.
    pub ended: Ended,
}

/// Looks for the mappings of a frame.
///
/// # Errors
/// [`Unknown`](super::Error::Unknown) where the kernel hides frame numbers, and when `/proc` cannot be listed.
pub fn who(
    machine: &Arc<dyn Machine>,
    question: &Question,
    audience: &mut dyn Audience,
) -> Result<Answer> {
    search::Search::new(machine, question).run(audience)
}
