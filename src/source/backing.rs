//! The files behind regions.

use super::Result;
use crate::kernel::{AddressRange, Region};

/// A file behind a region, opened by its identity. It is read by `pread`, not through a mapping, as its owner may
/// truncate it.
pub trait ReadAt: Send + Sync {
    /// Reads at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize>;
    /// Reads at `offset` until `into` is full or the file ends, and returns how much was read.
    fn read_up_to(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let Some(at) = offset.checked_add(done as u64) else {
                break;
            };
            match self.read_at(at, rest) {
                Ok(0) => break,
                Ok(read) => done += read.min(rest.len()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
    /// Its size in bytes when it was opened.
    fn len(&self) -> u64;
    /// Whether it was empty when it was opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Device, inode, size and modification time as they are now: they change if the contents may have changed.
    fn fingerprint(&self) -> [u64; 4];
}

/// How a source finds a file.
#[derive(Clone, Copy, Debug)]
pub enum FileLocation<'a> {
    /// The file behind a region, if it is a regular file of the same device and inode.
    Region(&'a Region),
    /// The regular file that bears this path in the target's own root, links followed as the target would.
    Path(&'a [u8]),
    /// The regular file that bears this path where pmdb itself runs.
    OwnPath(&'a [u8]),
    /// The regular file that bears this path in the target's own root, if it is no link and belongs to root or to this
    /// user: anything else there is an error.
    Trusted(&'a [u8], u32),
    /// The vdso that the kernel lends to pmdb itself, if it has the length of this region.
    OwnVdso(&'a Region),
}

/// What the object behind a mapping (a file, shared memory) has for a page, mapped or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BackingContent {
    /// It ends before this page: an access is SIGBUS.
    PastEnd,
    /// Shared memory that nobody has filled.
    Hole,
    /// It has contents for this page.
    Contents {
        /// They are in the page cache.
        cached: bool,
    },
}

/// Neighbouring pages with the same backing content.
#[derive(Clone, Debug)]
pub struct BackingRun {
    /// Whole pages.
    pub range: AddressRange,
    /// Their backing content, or why it is unknown.
    pub content: Result<BackingContent>,
}
