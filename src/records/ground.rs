//! What pmdb knows without the kernel's memory: what `/proc` says, and what pmdb does to pages of its own.

use crate::kernel::{Device, WordFile};
use std::any::Any;

/// What pmdb's own files are called.
pub(crate) const OWN_FILE: &str = "pmdb";

/// What is known without the kernel's memory.
pub(crate) trait Ground: Send + Sync {
    /// The size of pages.
    fn page_bytes(&self) -> u64;

    /// Random bytes in a page of pmdb's own; `None` if frame numbers are hidden.
    fn sample(&self) -> Option<RandomBytes>;

    /// The words of `/proc/kpageflags` and its kin, all of `into`.
    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Option<()>;

    /// Frames that pmdb maps, of many kinds.
    fn own_frames(&self) -> Vec<u64>;

    /// Takes references to a page of pmdb's own and drops them; calls `look` with its frame before, in between and
    /// afterwards.
    fn take_references(&self, taken: u32, look: &mut dyn FnMut(u64));

    /// Calls `look` with pages of files of pmdb's own that are in memory.
    fn own_files(&self, look: &mut dyn FnMut(OwnFile));

    /// Calls `look` with a frame of a huge page of pmdb's own, if the kernel gives it one: mapped whole, and then page
    /// by page. The second argument is true for a call in which a second process, which pmdb has started, maps it too.
    fn huge_page(&self, look: &mut dyn FnMut(u64, bool));

    /// Pins pages of a huge page of pmdb's own and releases them; calls `look` with its frame before, in between and
    /// afterwards.
    fn pin_huge_page(&self, taken: u32, look: &mut dyn FnMut(u64));
}

/// Random bytes of pmdb's own.
pub(crate) struct RandomBytes {
    pub(crate) frame: u64,
    /// Where they begin in the frame.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    /// The page itself: nobody else can get its frame before it is compared.
    pub(crate) _page: Box<dyn Any>,
}

/// A page of a file of pmdb's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OwnFile {
    pub(crate) frame: u64,
    pub(crate) device: Device,
    pub(crate) inode: u64,
    pub(crate) index: u64,
}
