//! The marks of pictures, and their cells.

use crate::kernel::words::worded;
use crate::report::json::{Form, leaf};
use crate::report::record::record;
use serde::Serialize;

record! {
    /// Neighbouring cells that are alike.
    #[derive(Copy, Eq)]
    pub struct MapCells {
        /// Their number.
        cells: u64,
        /// The most important that is in each.
        mark: Mark,
        /// Whether there is something else in each.
        mixed: bool,
    }
}

worded! {
    /// What a cell shows: the first in this order that it contains.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Mark, word {
        /// Broken memory, or an access that is poisoned.
        Poisoned = "poisoned",
        /// A guard page.
        Guard = "guard",
        /// In swap, or on its way to another frame.
        Swapped = "swapped",
        /// Mapped by one entry for a whole huge page.
        Huge = "huge",
        /// A private copy of a page of a file.
        PrivateCopy = "private_copy",
        /// Memory without a file.
        Anonymous = "anonymous",
        /// Merged with equal pages.
        Ksm = "ksm",
        /// Shared memory.
        Shmem = "shmem",
        /// A page of a file.
        File = "file",
        /// Memory of a device.
        Device = "device",
        /// Code and data that the kernel lends to the process: `[vdso]`, `[vvar]`, `[vsyscall]`.
        Vdso = "vdso",
        /// The shared page of zeros.
        Zero = "zero",
        /// Present, of unknown kind; or hidden.
        Unknown = "unknown",
        /// Nothing is there.
        Untouched = "untouched",
        /// Left out by the filter, or in no region.
        Nothing = "nothing",
    }
}

leaf!(Mark => Form::Text);
