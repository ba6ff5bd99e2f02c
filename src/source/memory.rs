//! Allocations in pmdb whose size a file or the target determines. They are refused if memory is short: a failed
//! allocation would end pmdb, and one that the machine cannot spare may end another program.

use std::io::{Error, ErrorKind, Result};

/// What must be left for allocations that are not checked here.
const RESERVE: usize = 16 << 20;
/// Smaller allocations come out of the reserve.
const SMALL: usize = 1 << 20;
/// For less than this the machine's memory is not checked.
const LARGE: usize = 32 << 20;

/// `size` bytes of zero; an error of the kind `OutOfMemory` if memory is short.
pub fn zeroed(size: u64) -> Result<Vec<u8>> {
    let mut bytes = empty(size)?;
    bytes.resize(usize::try_from(size).map_err(|_| refused())?, 0);
    Ok(bytes)
}

/// An empty vector with a capacity of `size`; an error of the kind `OutOfMemory` if memory is short.
pub fn empty(size: u64) -> Result<Vec<u8>> {
    check(size)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size).map_err(|_| refused())?)?;
    Ok(bytes)
}

/// An error of the kind `OutOfMemory` if `size` bytes, in one piece or several, cannot be allocated.
pub fn check(size: u64) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| refused())?;
    if size < SMALL {
        return Ok(());
    }
    if size >= LARGE && available().is_some_and(|available| size as u64 > available / 2) {
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
            assert_eq!(empty(size).expect_err("too much").kind(), ErrorKind::OutOfMemory);
            assert!(zeroed(size).is_err());
        }
        assert_eq!(zeroed(5).expect("five bytes"), [0; 5]);
        assert_eq!(at_most(1 << 20), 1 << 20);
        assert!((1..1 << 62).contains(&at_most(1 << 62)));
    }
}
