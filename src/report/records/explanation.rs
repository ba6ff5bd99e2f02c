//! `explain`: what a page is, whose it is, and what the next access will do.

use super::Translation;
use crate::kernel::Name;
use crate::report::json::Hex;
use crate::report::record::record;
use crate::report::{Fact, Outcome, Owner};

record! {
    /// `explain`
    pub struct Explanation as "explanation" with why {
        /// The facts about the address.
        [flat] page: Translation,
        /// The owner of the page; `null` if no frame is mapped, or if the owner is unknown.
        owner: Option<Owner>,
        /// The file or shared memory that its region maps.
        file: Option<FilePlace>,
        /// Whether the kernel may discard its contents: the program freed it (MADV_FREE) and has not written to it
        /// since.
        discardable: Fact<bool>,
        /// The protection key of its region, where the machine has such keys: 0 is that of all memory without one of
        /// its own.
        [optional] protection_key: Option<u64>,
        /// The effects of the target's next read here.
        next_read: Outcome,
        /// The effects of the target's next write here.
        next_write: Outcome,
    }

    /// A place in a file.
    #[derive(Eq)]
    pub struct FilePlace {
        /// As `maps` names it.
        name: Name,
        /// Offset of the requested byte.
        offset: Hex,
        /// Whether the file was deleted.
        deleted: bool,
    }
}
