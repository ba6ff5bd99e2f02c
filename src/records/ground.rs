//! The facts that pmdb has without the kernel's memory: the files of `/proc`, and experiments with pages of pmdb.

use crate::kernel::{Device, WordFile};
use std::any::Any;

/// The name of the files that pmdb makes for experiments.
pub(crate) const OWN_FILE: &str = "pmdb";

/// The facts that are known without the kernel's memory.
pub(crate) trait Ground: Send + Sync {
    /// Returns the page size in bytes.
    fn page_bytes(&self) -> u64;

    /// Returns random bytes in a page of pmdb; `None` if frame numbers are hidden.
    fn sample(&self) -> Option<RandomBytes>;

    /// Fills `into` with words of `/proc/kpageflags`, `kpagecount` or `kpagecgroup`; `None` if one is missing.
    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Option<()>;

    /// Returns frames that pmdb maps, of many kinds.
    fn own_frames(&self) -> Vec<u64>;

    /// Adds references to a page of pmdb and drops them. Calls `look` with its frame before, in between and afterwards.
    fn take_references(&self, taken: u32, look: &mut dyn FnMut(u64));

    /// Calls `look` with resident pages of pmdb's files.
    fn own_files(&self, look: &mut dyn FnMut(OwnFile));

    /// Calls `look` with a frame of a huge page of pmdb, if the kernel allocates one: mapped as a whole, and then page
    /// by page. The second argument is true while a second process, which pmdb has started, maps it too.
    fn huge_page(&self, look: &mut dyn FnMut(u64, bool));

    /// Pins pages of a huge page of pmdb and releases them. Calls `look` with its frame before, in between and
    /// afterwards.
    fn pin_huge_page(&self, taken: u32, look: &mut dyn FnMut(u64));
}

/// Random bytes in memory of pmdb.
pub(crate) struct RandomBytes {
    pub(crate) frame: u64,
    /// The offset of the bytes in the frame.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    /// The page, which keeps its frame until the bytes have been compared.
    pub(crate) _page: Box<dyn Any>,
}

/// A page of a file of pmdb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OwnFile {
    pub(crate) frame: u64,
    pub(crate) device: Device,
    pub(crate) inode: u64,
    pub(crate) index: u64,
}
