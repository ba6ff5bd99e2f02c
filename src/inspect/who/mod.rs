//! The reverse of the page tables: the processes that map a frame, and their addresses.
//!
//! No file of the kernel shows this. The flags of the frame show where it can be mapped, and its map count shows when
//! all mappings are found. A page of a file is mapped where processes map its offset in that file: their `maps` lead to
//! a few page-map entries. Processes share anonymous memory since a fork, mostly at the same address: one entry for
//! each relative. Everything else needs a scan: PAGEMAP_SCAN finds the populated ranges, whose entries are read.
//!
//! If the kernel's records (`struct page`) can be read, they lead to the mappings: they contain the reverse map, which
//! the kernel uses itself. It changes while it is read. Therefore the page-map entry of each page that it leads to is
//! read too, and the rest of the search follows unless the mappings found are as many as the kernel counts. Of many
//! similar mappings, only some are checked in `/proc`.
//!
//! A search visits the candidates, all processes, in rounds. A clue is the place that the first mapping suggests for
//! others: a round that follows it reads a few entries of each candidate. A round without a clue scans the candidates.
//! Worker threads do the visits, and the mappings are reported in order. A page may leave the frame during the search:
//! once the mappings are as many as the kernel counts, they are read again.

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

/// Starts a search for the mappings of a frame.
///
/// Fails if `/proc` cannot be listed.
/// `/proc` cannot be listed.
pub fn who(machine: &Arc<Machine>, question: &FrameQuestion) -> Result<Search> {
    Search::new(machine, question)
}
