//! Filesystems in memory, with files that no counted process maps or has open.

use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mapped_file::FilesystemRoom;
use crate::kernel::mounts::Mount;
use crate::kernel::{Device, Name};
use crate::process::{self, Machine, Process};
use crate::report::Reason;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
    /// Whether its pages are those of the hugetlb pool.
    pub is_hugetlb: bool,
    /// The bytes of all files, in memory or in swap.
    pub used: u64,
    /// Of these, the bytes of files that the counted processes map or have open.
    pub held: u64,
}

impl MemoryFilesystem {
    /// Returns the bytes of files that no counted process maps or has open.
    pub fn not_held(&self) -> u64 {
        self.used.saturating_sub(self.held)
    }
}

/// The filesystems in memory that some processes see.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct MemoryFilesystems {
    /// The filesystems with files that no counted process holds, those with the most bytes of them first.
    pub all: Vec<MemoryFilesystem>,
    /// Why there may be more, if so.
    pub unknown: Option<Reason>,
}

/// A search for the filesystems in memory that pmdb and some processes see: each device once.
#[derive(Default)]
pub(super) struct FilesystemSearch {
    found: BTreeMap<Device, MemoryFilesystem>,
    /// Why the size of a filesystem is unknown.
    failed: BTreeMap<Device, Reason>,
    /// Why the mounts of a process are unknown.
    unknown: Option<Reason>,
}

impl FilesystemSearch {
    /// Adds those that pmdb sees. Each mount costs one step.
    pub fn add_own(&mut self, machine: &Machine, budget: &mut Budget) -> Result<(), OutOfBudget> {
        let room = |mount: &Mount| machine.filesystem_room(mount);
        self.add(machine.memory_mounts(budget), room, |mount| mount.point.clone())
    }

    /// Adds those that a process sees. Each mount costs one step.
    pub fn add_process(&mut self, process: &Process, budget: &mut Budget) -> Result<(), OutOfBudget> {
        let path = |mount: &Mount| {
            let root = format!("/proc/{}/root", process.identity().pid);
            Name::new([root.as_bytes(), mount.point.as_bytes()].concat())
        };
        self.add(process.memory_mounts(budget), |mount| process.filesystem_room(mount), path)
    }

    fn add(
        &mut self,
        mounts: process::Result<Vec<Mount>>,
        room: impl Fn(&Mount) -> process::Result<FilesystemRoom>,
        path: impl Fn(&Mount) -> Name,
    ) -> Result<(), OutOfBudget> {
        let mounts = match mounts {
            Err(process::Error::OutOfBudget(over)) => return Err(over),
            Err(error) => {
                self.unknown.get_or_insert_with(|| error.into());
                return Ok(());
            }
            Ok(mounts) => mounts,
        };
        for mount in mounts {
            let device = mount.device;
            if self.found.contains_key(&device) {
                continue;
            }
            match room(&mount) {
                Err(process::Error::OutOfBudget(over)) => return Err(over),
                Err(error) => _ = self.failed.entry(device).or_insert_with(|| error.into()),
                Ok(room) => {
                    self.failed.remove(&device);
                    let (path, used) = (path(&mount), room.used());
                    let is_hugetlb = mount.filesystem == "hugetlbfs";
                    let one = MemoryFilesystem { kind: mount.filesystem, path, device, is_hugetlb, used, held: 0 };
                    self.found.insert(device, one);
                }
            }
        }
        Ok(())
    }

    /// Returns the filesystems with files that nobody holds. `held` returns the bytes of held files on a device.
    pub fn finish(self, held: impl Fn(Device) -> u64) -> MemoryFilesystems {
        let mut all: Vec<MemoryFilesystem> = self.found.into_values().collect();
        all.iter_mut().for_each(|one| one.held = held(one.device));
        all.retain(|one| one.not_held() > 0);
        all.sort_by_cached_key(|one| Reverse(one.not_held()));
        MemoryFilesystems { all, unknown: self.unknown.or_else(|| self.failed.into_values().next()) }
    }
}

/// Returns the filesystems in memory that pmdb sees, whoever holds their files.
///
/// # Errors
/// Fails if the budget is over.
pub fn memory_filesystems(machine: &Machine, budget: &mut Budget) -> Result<MemoryFilesystems, OutOfBudget> {
    let mut search = FilesystemSearch::default();
    search.add_own(machine, budget)?;
    Ok(search.finish(|_| 0))
}
