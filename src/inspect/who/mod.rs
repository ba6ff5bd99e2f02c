//! The page tables the other way round: which processes map a frame, and where.
//!
//! The kernel has no file that tells this, but the flags of the frame say how to look for it, and its map count when to stop. A page of a
//! file lies where processes map that offset of that file: their `maps` name the few page-map entries to read. Anonymous memory
//! is shared by forking, so it mostly lies at the same address in relatives: one entry a process. Only what is left is searched through,
//! by a scan for what is populated and a read of that. A clue is what the first mapping found says of where the
//! others are. Processes are looked at on several cores (`crew`), and told of in order. What was told may leave
//! while the search goes on, so when the numbers agree it is looked at again.

mod again;
mod crew;
mod hunt;
mod nature;
mod question;
mod search;
#[cfg(test)]
mod tests;
mod told;
mod visit;

use super::Result;
use crate::target::Machine;
use std::sync::Arc;

pub use question::{Answer, Audience, Ended, Mapper, Question, Seen};

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
