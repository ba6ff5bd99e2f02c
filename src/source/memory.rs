//! Room in pmdb's own memory for what a file or the target determines the size of: refused where it is not to be had, as an
//! allocation that fails ends the program, and one that the machine cannot spare may end another.

use std::io::{Error, ErrorKind, Result};

/// What must be left for everything that is allocated without being asked for here.
const RESERVE: usize = 16 << 20;
/// What is smaller comes out of the reserve.
const SMALL: usize = 1 << 20;
/// Less than this is not worth the question how much the machine has.
const LARGE: usize = 32 << 20;

/// Bytes, all zero; an error of the kind `OutOfMemory` where so many cannot be had.
pub fn zeroed(size: u64) -> Result<Vec<u8>> {
    let mut bytes = empty(size)?;
    bytes.resize(usize::try_from(size).map_err(|_| refused())?, 0);
    Ok(bytes)
}

/// No bytes yet, with room for so many; an error of the kind `OutOfMemory` where that cannot be had.
pub fn empty(size: u64) -> Result<Vec<u8>> {
    check(size)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size).map_err(|_| refused())?)?;
    Ok(bytes)
}

/// An error of the kind `OutOfMemory` if `size` bytes, or less than that in several pieces, cannot be had.
pub fn check(size: u64) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| refused())?;
    if size < SMALL {
        return Ok(());
    }
    if size >= LARGE && available().is_some_and(|available| size as u64 > available / 2) {
        return Err(refused());
    }
    // A limit on the address space (`ulimit -v`) is known only by trying.
    let wanted = size.checked_add(RESERVE).ok_or_else(refused)?;
    Ok(Vec::<u8>::new().try_reserve_exact(wanted)?)
}

/// The most of `wanted`, its half, a quarter and so on that can be had.
pub fn at_most(wanted: u64) -> u64 {
    let halves = std::iter::successors(Some(wanted), |size| Some(size / 2));
    halves
        .take_while(|&size| size > 0)
        .find(|&size| check(size).is_ok())
        .unwrap_or(0)
}

/// `MemAvailable` of the machine that pmdb runs on: what can be had without swapping.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
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
        for size in [
            u64::MAX,
            1 << 62,
            available().expect("Linux 3.14 and later have it"),
        ] {
            assert_eq!(
                empty(size).expect_err("too much").kind(),
                ErrorKind::OutOfMemory
            );
            assert!(zeroed(size).is_err());
        }
        assert_eq!(zeroed(5).expect("five bytes"), [0; 5]);
        assert_eq!(at_most(1 << 20), 1 << 20);
        assert!((1..1 << 62).contains(&at_most(1 << 62)));
    }
}
