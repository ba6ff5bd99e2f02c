//! Allocations in pmdb whose size a file or the target determines. They are refused if memory is short: a failed
//! allocation would end pmdb, and one that the machine cannot spare may end another program.

use super::own_cgroup;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Mutex, PoisonError};

/// The most memory that pmdb takes in all, whatever the files of its targets hold: the debug information of a browser.
const BUDGET: u64 = 1 << 30;
/// What must be left for allocations that are not checked here.
const RESERVE: usize = 16 << 20;
/// Smaller allocations come out of the reserve.
const SMALL: usize = 1 << 20;

/// `size` bytes of zero; an error of the kind `OutOfMemory` if memory is short.
pub fn zeroed(size: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    grow(&mut bytes, size)?;
    Ok(bytes)
}

/// Appends `more` bytes of zero; an error of the kind `OutOfMemory` if memory is short.
pub fn grow(bytes: &mut Vec<u8>, more: u64) -> Result<()> {
    /// Memory counts as taken once it is written: of several threads, each sees what the others take.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let more = usize::try_from(more).map_err(|_| refused())?;
    let length = bytes.len().checked_add(more).ok_or_else(refused)?;
    let _guard = (more >= SMALL).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner));
    if length > bytes.capacity() {
        // While it is moved to a larger place, both count.
        let wanted = if bytes.is_empty() { length } else { length.max(bytes.capacity().saturating_mul(2)) };
        check(wanted as u64)?;
        bytes.try_reserve_exact(wanted - bytes.len())?;
    }
    bytes.resize(length, 0);
    Ok(())
}

/// An error of the kind `OutOfMemory` if `size` bytes, in one piece or several, cannot be allocated.
pub fn check(size: u64) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| refused())?;
    if size < SMALL {
        return Ok(());
    }
    if own().saturating_add(size as u64) > share() {
        return Err(refused());
    }
    // A limit on the address space (`ulimit -v`) shows only by trying.
    let wanted = size.checked_add(RESERVE).ok_or_else(refused)?;
    Ok(Vec::<u8>::new().try_reserve_exact(wanted)?)
}

/// The most of `wanted`, its half, a quarter and so on that can be allocated.
pub fn at_most(wanted: u64) -> u64 {
    let halves = std::iter::successors(Some(wanted), |size| Some(size / 2));
    halves.take_while(|&size| size > 0).find(|&size| check(size).is_ok()).unwrap_or(0)
}

/// What pmdb may take in all: at most half of what it has and could have. The rest is for the target, which may be in
/// the same cgroup.
fn share() -> u64 {
    let free = available().into_iter().chain(own_cgroup::room()).min();
    free.map_or(BUDGET, |free| BUDGET.min(free.saturating_add(own()) / 2))
}

/// What pmdb has now: its resident pages that are not of files.
fn own() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut fields = text.split(' ').skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, of_files) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(of_files).saturating_mul(rustix::param::page_size() as u64)
}

/// `MemAvailable` of the machine that pmdb runs on: what can be allocated without swapping.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn refused() -> Error {
    ErrorKind::OutOfMemory.into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(own() > 3 << 20);
        assert!(grow(&mut bytes, BUDGET).is_err());
        assert_eq!(bytes.len(), (3 << 20) + 1);
    }
}
