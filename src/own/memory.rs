//! Checked allocations, whose size a file or the target determines. They are refused if memory is short: a failed
//! allocation would end pmdb, and the OOM killer may end another program.

use crate::access;
use crate::budget::{OutOfBudget, until_interrupted};
use crate::kernel::mounts::{self, Controller, Mount};
use std::ffi::OsStr;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most memory in bytes that pmdb takes in all on a small machine: enough for the debug information of a browser.
const BUDGET: u64 = 1 << 30;
/// The share of a large machine's memory that pmdb may take: a sum over all frames needs a third of it.
const OF_MACHINE: u64 = 128;
/// The bytes that must be left for allocations that are not checked.
const RESERVE: usize = 16 << 20;
/// The size in bytes below which an allocation is not checked: it comes out of the reserve.
const SMALL: usize = 1 << 20;

/// Returns `size` bytes of zero, or an error of the kind `OutOfMemory` if memory is short.
pub fn zeroed(size: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    grow(&mut bytes, size)?;
    Ok(bytes)
}

/// Appends `more` bytes of zero. Fails with an error of the kind `OutOfMemory` if memory is short.
pub fn grow(bytes: &mut Vec<u8>, more: u64) -> std::io::Result<()> {
    /// The lock of a check and the write after it. Memory counts as taken only once it is written, so that another
    /// thread must not check in between.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let more = usize::try_from(more).map_err(|_| refused())?;
    let length = bytes.len().checked_add(more).ok_or_else(refused)?;
    let _guard = (more >= SMALL).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner));
    if length > bytes.capacity() {
        // A reallocation may need the old and the new memory at once.
        let wanted = if bytes.is_empty() { length } else { length.max(bytes.capacity().saturating_mul(2)) };
        check(wanted as u64)?;
        bytes.try_reserve_exact(wanted - bytes.len())?;
    }
    bytes.resize(length, 0);
    Ok(())
}

/// Checks that `size` bytes, in one piece or several, can be allocated. Fails with an error of the kind `OutOfMemory`.
pub fn check(size: u64) -> std::io::Result<()> {
    let size = usize::try_from(size).map_err(|_| refused())?;
    if size < SMALL {
        return Ok(());
    }
    if own_memory().saturating_add(size as u64) > share() {
        return Err(refused());
    }
    // A limit on the address space (`ulimit -v`) shows only when an allocation fails.
    let wanted = size.checked_add(RESERVE).ok_or_else(refused)?;
    Ok(Vec::<u8>::new().try_reserve_exact(wanted)?)
}

/// Memory that grows by small parts, whose number a file determines. It is checked whenever it has grown by a mebibyte.
#[derive(Default)]
pub struct Growth {
    unchecked: u64,
}

impl Growth {
    /// Takes `size` bytes, before they are allocated.
    ///
    /// # Errors
    /// [`OutOfBudget::Bytes`] if memory is short.
    pub fn take(&mut self, size: u64) -> Result<(), OutOfBudget> {
        self.unchecked = self.unchecked.saturating_add(size);
        if self.unchecked >= SMALL as u64 {
            check(self.unchecked).map_err(|_| OutOfBudget::Bytes)?;
            self.unchecked = 0;
        }
        Ok(())
    }
}

/// Returns the largest of `wanted`, its half, a quarter and so on that can be allocated; 0 if none can.
pub fn at_most(wanted: u64) -> u64 {
    let halves = std::iter::successors(Some(wanted), |size| Some(size / 2));
    halves.take_while(|&size| size > 0).find(|&size| check(size).is_ok()).unwrap_or(0)
}

/// Returns the size of a cache that is at most `wanted`: a quarter of what pmdb may still take.
pub fn for_cache(wanted: u64) -> u64 {
    wanted.min(share().saturating_sub(own_memory()) / 4)
}

/// Returns the most bytes that pmdb may take in all: half of what it has and could have. The other half is for the
/// target, which may be in the same cgroup.
fn share() -> u64 {
    let machine = rustix::system::sysinfo();
    let most = BUDGET.max((machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit)) / OF_MACHINE);
    let free = available().into_iter().chain(room()).min();
    free.map_or(BUDGET, |free| most.min(free.saturating_add(own_memory()) / 2))
}

/// Returns the bytes that pmdb has: its resident pages that are not of files (`/proc/self/statm`).
fn own_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut fields = text.split(' ').skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, of_files) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(of_files).saturating_mul(rustix::param::page_size() as u64)
}

/// Returns `MemAvailable` in bytes: what the machine can allocate without swapping.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn refused() -> Error {
    ErrorKind::OutOfMemory.into()
}

/// The names of the files of a cgroup, and of a line in its `memory.stat`.
struct CgroupNames {
    limit: &'static str,
    used: &'static str,
    /// The file pages on the inactive list, which the kernel reclaims first.
    droppable: &'static str,
}

const V1: CgroupNames =
    CgroupNames { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", droppable: "total_inactive_file" };
const V2: CgroupNames = CgroupNames { limit: "memory.max", used: "memory.current", droppable: "inactive_file" };

/// Returns the bytes that the cgroup of pmdb and its ancestors leave; `None` if none that is visible has a limit.
pub(super) fn room() -> Option<u64> {
    /// The mount of the hierarchy. A later mount is not noticed.
    static MOUNT: OnceLock<Option<Mount>> = OnceLock::new();
    if MOUNT.get().is_none() {
        let mut budget = until_interrupted();
        let text = fs::read("/proc/self/mountinfo").ok()?;
        let mounts = access::mounts(&text, &mut budget).ok();
        budget.check().ok()?;
        _ = MOUNT.set(mounts.and_then(|mounts| mounts::hierarchy(&mounts, Controller::Memory).cloned()));
    }
    let mount = MOUNT.get()?.as_ref()?;
    // Read anew: pmdb may have been moved to another cgroup.
    let own = mount.group_in(&fs::read("/proc/self/cgroup").ok()?, Controller::Memory);
    let names = if mount.filesystem == "cgroup2" { V2 } else { V1 };
    tightest(path(mount.point.as_bytes()), path(&own.unwrap_or_default()), &names)
}

/// Returns the fewest bytes that are left in the cgroup `own` below `point` or in an ancestor.
fn tightest(point: &Path, own: &Path, names: &CgroupNames) -> Option<u64> {
    let own: PathBuf = point.components().chain(own.components().filter(|part| part.as_os_str() != "/")).collect();
    own.ancestors().take_while(|group| group.starts_with(point)).filter_map(|group| room_in(group, names)).min()
}

/// Returns the bytes that are left in one cgroup; `None` if it has no limit or its files cannot be read.
fn room_in(group: &Path, names: &CgroupNames) -> Option<u64> {
    let text = |file: &str| fs::read_to_string(group.join(file)).ok();
    let number = |file| text(file)?.trim().parse::<u64>().ok();
    let (limit, used) = (number(names.limit)?, number(names.used)?);
    let stat = text("memory.stat").unwrap_or_default();
    let droppable = stat.lines().find_map(|line| line.strip_prefix(names.droppable)?.trim().parse().ok());
    Some(limit.saturating_sub(used.saturating_sub(droppable.unwrap_or(0))))
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_by_small_parts_is_checked() {
        let mut growth = Growth::default();
        assert_eq!(growth.take(SMALL as u64 - 1), Ok(()));
        // Together with the part before.
        assert_eq!(growth.take(u64::MAX / 2), Err(OutOfBudget::Bytes));
        assert_eq!(Growth::default().take(u64::MAX), Err(OutOfBudget::Bytes));
    }

    #[test]
    fn what_the_machine_does_not_have_is_refused() {
        for size in [u64::MAX, 1 << 62, available().expect("Linux 3.14 and later have it")] {
            assert_eq!(zeroed(size).expect_err("too much").kind(), ErrorKind::OutOfMemory);
        }
        assert_eq!(zeroed(5).expect("five bytes"), [0; 5]);
        assert_eq!(at_most(1 << 20), 1 << 20);
        assert!((1..BUDGET).contains(&at_most(1 << 62)));
    }

    #[test]
    fn memory_grows_within_the_budget() {
        let mut bytes = vec![7];
        grow(&mut bytes, 3 << 20).expect("three megabytes");
        assert_eq!((bytes.len(), bytes.first(), bytes.last()), ((3 << 20) + 1, Some(&7), Some(&0)));
        assert!(own_memory() > 3 << 20);
        assert!(grow(&mut bytes, BUDGET).is_err());
        assert_eq!(bytes.len(), (3 << 20) + 1);
    }

    /// A hierarchy of files: group, limit, used, droppable.
    fn made(names: &CgroupNames, groups: &[(&str, &str, u64, u64)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a directory");
        for (group, limit, used, droppable) in groups {
            let group = folder.path().join(group);
            fs::create_dir_all(&group).expect("a group");
            let write = |name: &str, text: String| fs::write(group.join(name), text).expect("written");
            write(names.limit, format!("{limit}\n"));
            write(names.used, format!("{used}\n"));
            write("memory.stat", format!("anon 77\n{} {droppable}\nx 5\n", names.droppable));
        }
        folder
    }

    #[test]
    fn the_tightest_group_counts_less_what_is_used() {
        for names in [V1, V2] {
            let folder = made(&names, &[("a/b", "1000", 700, 100), ("a", "500", 400, 0), ("a/other", "1", 1, 0)]);
            let room_in = |own: &str| tightest(folder.path(), Path::new(own), &names);
            assert_eq!(room_in("/a/b"), Some(100));
            assert_eq!(room_in("/a"), Some(100));
            // Its own directory cannot be seen, or none has a limit.
            assert_eq!(room_in("/a/hidden"), Some(100));
            assert_eq!(room_in("/"), None);
            assert_eq!(room_in(""), None);
        }
        let folder = made(&V2, &[("a/b", "1000", 700, 0), ("a", "max", 5, 0), (".", "250", 300, 0)]);
        assert_eq!(tightest(folder.path(), Path::new("/a/b"), &V2), Some(0));
        assert_eq!(room_in(&folder.path().join("a"), &V2), None);
    }
}
