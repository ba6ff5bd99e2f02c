//! Filesystems in memory, with files that no counted process maps or has open.

use crate::budget::{Budget, OutOfBudget};
use crate::kernel::{Device, Name};
use crate::process::{FilesystemSearch, FoundFilesystem, Machine, UnknownFilesystems};
use crate::report::Reason;
use std::cmp::Reverse;

/// A mounted filesystem in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryFilesystem {
    /// The type: `tmpfs`, `devtmpfs`, `hugetlbfs` …
    pub kind: String,
    /// The directory where it is mounted, as pmdb reaches it: in another mount namespace through `/proc/PID/root`.
    pub path: Name,
    /// The device number.
    pub device: Device,
    /// Whether only a part of its directories is mounted there, so that the other files have no path.
    pub is_part: bool,
    /// Whether its pages are those of the hugetlb pool.
    pub is_hugetlb: bool,
    /// The bytes of all files, in memory or in swap; for hugetlbfs also those of reserved pages.
    pub used: u64,
    /// Of these, the bytes of files that the counted processes map or have open; `None` if no process is counted.
    pub held: Option<u64>,
}

impl MemoryFilesystem {
    /// Returns the bytes of files that no counted process maps or has open.
    pub fn not_held(&self) -> u64 {
        self.used.saturating_sub(self.held.unwrap_or(0))
    }
}

/// The filesystems in memory that some processes see.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct MemoryFilesystems {
    /// The filesystems with files that no counted process holds, those with the most bytes of them first.
    pub all: Vec<MemoryFilesystem>,
    /// Those of unknown size: whether their pages are those of the hugetlb pool (`None` for all of unknown mounts), and
    /// the reason.
    pub unknown: Vec<(Option<bool>, Reason)>,
}

impl MemoryFilesystems {
    /// Returns the filesystems with files that nobody holds. `held` returns the bytes of held files on a device.
    pub(super) fn of(search: FilesystemSearch, held: impl Fn(Device) -> Option<u64>) -> MemoryFilesystems {
        let (found, unknown) = search.finish();
        let memory = |one: FoundFilesystem| MemoryFilesystem {
            is_hugetlb: one.kind == "hugetlbfs",
            used: one.room.used(),
            held: held(one.device),
            kind: one.kind,
            path: one.path,
            device: one.device,
            is_part: one.is_part,
        };
        let why = |one: UnknownFilesystems| (one.is_hugetlb, one.reason.into());
        let mut all: Vec<_> = found.map(memory).filter(|one| one.not_held() > 0).collect();
        all.sort_by_cached_key(|one| Reverse(one.not_held()));
        MemoryFilesystems { all, unknown: unknown.map(why).collect() }
    }
}

/// Returns the mounted filesystems in memory that have files. No process is examined: any may hold the files.
/// Filesystems of other mount namespaces are left out.
///
/// # Errors
/// Fails if the budget is over.
pub fn memory_filesystems(machine: &Machine, budget: &mut Budget) -> Result<MemoryFilesystems, OutOfBudget> {
    let mut search = FilesystemSearch::default();
    search.add_own(machine, budget)?;
    Ok(MemoryFilesystems::of(search, |_| None))
}
