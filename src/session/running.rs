//! A running command file.

use crate::kernel::Name;

/// A command file that is being run.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: Name,
    /// Device and inode, which identify the file under every name.
    pub(super) identity: Option<(u64, u64)>,
}
