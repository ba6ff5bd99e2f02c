//! Files that must not be opened, as their opening would signal another process.
//!
//! A process that holds a write lease on a file (`fcntl` F_SETLEASE) is sent SIGIO when another program opens that
//! file, and SIGIO ends a process that does not handle it. `/proc/locks` lists the leases. Two leases escape this: one
//! that is taken between reading the list and the open, and one whose holder is in a pid namespace that the mounted
//! `/proc` does not show.

use super::directory::{Directory, own_file, read_all, read_to_end};
use crate::kernel::mounts::{self, Lease};
use crate::kernel::{Device, maps};
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, accessat};
use rustix::io::{Errno, Result, pread};
use std::sync::OnceLock;

/// The lease, if there is one, that opening a file for reading would break. The file has one of these inode numbers.
///
/// # Errors
/// The leases cannot be read, so it is unknown whether an open would signal a process.
pub(super) fn on(inodes: [u64; 2]) -> Result<Option<Lease>> {
    static LOCKS: OnceLock<OwnedFd> = OnceLock::new();
    let file = match LOCKS.get() {
        Some(file) => file,
        None => {
            let proc = Directory::proc()?;
            match proc.file("locks") {
                Ok(file) => LOCKS.get_or_init(|| file),
                // A kernel without file locks has no leases; a /proc that shows only processes (`subset=pid`) hides
                // them.
                Err(Errno::NOENT) if has_machine_files(proc) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    };
    let text = read_to_end(|bytes, from| pread(file, spare_capacity(bytes), from))?;
    let mut leases = mounts::leases(&text).into_iter();
    Ok(leases.find(|lease| inodes.iter().any(|&inode| lease.may_be_on(inode))))
}

/// Whether pmdb itself runs from the file with these numbers in `maps`, or from one of its libraries: then nobody holds
/// a write lease on it. The kernel gives one only to the process that has the file open alone (`check_conflicting_open`
/// in fs/locks.c, which counts readers since Linux 5.3), and opening the file broke an earlier one. The same holds for
/// the program of another process.
///
/// This spares reading `/proc/locks`, for which the kernel waits some 10 ms until no processor changes a lock.
pub(super) fn is_open_here(file: (Device, u64)) -> bool {
    static OWN: OnceLock<Vec<(Device, u64)>> = OnceLock::new();
    let read = || {
        let regions = maps::parse(&read_all(own_file("maps").ok()?).ok()?).ok()?;
        let of_files = regions.iter().filter(|region| region.permissions.execute);
        Some(of_files.map(|region| (region.device, region.inode)).collect())
    };
    let own = OWN.get_or_init(|| read().unwrap_or_default());
    file.1 != 0 && own.contains(&file)
}

fn has_machine_files(proc: &Directory) -> bool {
    use rustix::fs::Access;
    accessat(proc.fd(), "version", Access::EXISTS, AtFlags::empty()).is_ok()
}
