//! The page tables the other way round: which processes map a frame, and where.
//!
//! The kernel has no file that tells this. The flags of the frame tell where it can be mapped, and its map count when
//! all mappings are found. A page of a file is mapped where processes map that offset of that file: their `maps` name
//! the few page-map entries to read. Anonymous memory is shared by forking, so relatives mostly have it at the same
//! address: one entry a process. Only the rest is searched: PAGEMAP_SCAN finds what is populated, and those entries are
//! read.
//!
//! Where the kernel's own records can be read, they lead to the mappings: the reverse map, by which the kernel itself
//! finds them. It is read while it changes, so each page that it leads to is read too, and the rest of the search
//! follows unless as many mappings are found as the kernel counts. Of many mappings, of which most are alike, only some
//! are read in `/proc`.
//!
//! A search goes in rounds through the candidates, all processes. A clue is where the first mapping found leads; a
//! round that follows it reads a few entries of each candidate, and a round that searches scans them. Worker threads
//! visit the candidates, and their mappings come in order. Pages may leave the frame meanwhile, so once as many
//! are reported as the kernel counts, a recheck reads them again.

mod question;
mod recorded;
mod reported;
mod scan;
mod search;
#[cfg(test)]
mod tests;
mod visit;

use super::Result;
use crate::process::Machine;
use std::sync::Arc;

pub use question::{EndCause, FrameQuestion, KnownMapping, Mapper, SearchEvent, SearchSummary};
pub use search::Search;

/// The mappings of a frame.
///
/// # Errors
/// `/proc` cannot be listed.
pub fn who(machine: &Arc<Machine>, question: &FrameQuestion) -> Result<Search> {
    Search::new(machine, question)
}
