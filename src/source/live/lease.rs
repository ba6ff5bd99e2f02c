//! Files that must not be opened, as their opening would signal another process.
//!
//! A process that holds a write lease on a file (`fcntl` F_SETLEASE) is sent SIGIO when another program opens that file, and SIGIO ends a
//! process that does not handle it. `/proc/locks` lists the leases. Two leases escape this: one that is taken between reading the list and
//! the open, and one whose holder is in a pid namespace that the mounted `/proc` does not show.

use super::directory::{Directory, read_all};
use crate::kernel::locks::{self, Lease};
use rustix::fs::{AtFlags, accessat};
use rustix::io::{Errno, Result};

/// The lease, if there is one, that opening a file for reading would break. The file has one of these inode numbers.
///
/// # Errors
/// The leases cannot be read, so it is unknown whether an open would signal a process.
pub(super) fn on(inodes: [u64; 2]) -> Result<Option<Lease>> {
    let proc = Directory::open("/proc")?;
    let text = match proc.file("locks") {
        Ok(file) => read_all(file)?,
        // A kernel without file locks has no leases; a /proc that shows only processes (`subset=pid`) hides them.
        Err(Errno::NOENT) if has_machine_files(&proc) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut leases = locks::leases(&text).into_iter();
    Ok(leases.find(|lease| inodes.iter().any(|&inode| lease.may_be_on(inode))))
}

fn has_machine_files(proc: &Directory) -> bool {
    use rustix::fs::Access;
    accessat(proc.fd(), "version", Access::EXISTS, AtFlags::empty()).is_ok()
}
