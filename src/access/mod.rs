//! What everybody who reads foreign bytes speaks of, whoever fetches them: why they could not be had, which process they
//! are of and how long its memory lives, files that are read at places, and the log of what was read.

mod error;
mod identity;
#[doc(hidden)]
pub mod log;
mod read_at;

pub use error::{Error, ProcessEntry, Result, words};
pub(crate) use error::{parts_in_words, when_capturing};
pub use identity::{Identity, Liveness, MemoryLifetime};
pub use read_at::{InMemory, ReadAt};

use crate::budget::Budget;
use crate::kernel::mounts::{self, Mount};

/// The mounts in the text of mountinfo. Each is a step.
pub(crate) fn mounts(text: &[u8], budget: &mut Budget) -> Result<Vec<Mount>> {
    let rows = mounts::mounts(text).map(|row| {
        budget.go_on()?;
        Ok(row?)
    });
    rows.collect()
}
