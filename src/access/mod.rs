//! The types of all readers of a target: the error, the identity of its process, the lifetime of its memory, a file
//! that is read at offsets, the list of its mounts, and the log of reads.

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

/// Parses the mounts in the text of mountinfo. Each costs one step.
pub(crate) fn mounts(text: &[u8], budget: &mut Budget) -> Result<Vec<Mount>> {
    let rows = mounts::mounts(text).map(|row| {
        budget.go_on()?;
        Ok(row?)
    });
    rows.collect()
}
