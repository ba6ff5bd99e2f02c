//! A command file on its way.

use crate::kernel::Name;

/// A command file that is being run.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: Name,
    /// Device and inode: the same file under another name is the same file.
    pub(super) identity: Option<(u64, u64)>,
}
