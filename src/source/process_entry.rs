//! A process as a listing shows it.

use crate::kernel::Name;

/// A process in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessEntry {
    /// Process id.
    pub pid: u32,
    /// Real user id.
    pub user: u32,
    /// `comm`
    pub name: Name,
    /// `S`, `R`, `Z` …
    pub state: char,
    /// Resident bytes (`VmRSS`); `None` for kernel threads and zombies.
    pub resident: Option<u64>,
    /// Command line, empty for kernel threads; `None` where a read could fault memory of the process in.
    pub command_line: Option<Name>,
}
