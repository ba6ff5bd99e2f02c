//! How full a mounted filesystem in memory is, by `statfs`. No directory is read and no file is opened.

use super::apart::{answer, words};
use super::attached::Attached;
use super::module_file::{Root, kind_of, numbers};
use super::storage::Storage;
use crate::access::{Error, Result};
use crate::kernel::{Device, Name};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat2};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Returns the words of [`FilesystemRoom`](crate::kernel::mapped_file::FilesystemRoom) for the filesystem with this
/// device at `point` in the root of a process.
pub(super) fn room(process: &Attached, device: Device, point: &[u8]) -> Result<Vec<u64>> {
    let (directory, memory) = (process.directory(), process.memory());
    let storage = process.recent_storage(|| Storage::of(directory, &memory))?;
    through(&storage, (device, point), || Root::of(directory, &memory).find_without_links(point))
}

/// Returns the same for pmdb's root.
pub(super) fn own_room(device: Device, point: &[u8]) -> Result<Vec<u64>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let find = || openat2(CWD, OsStr::from_bytes(point), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    through(&*Storage::own()?, (device, point), find)
}

/// Returns the words of what `find` finds. A child process does it if the path may lead through a server, which may
/// not reply.
fn through(
    storage: &Storage,
    (device, point): (Device, &[u8]),
    find: impl FnOnce() -> rustix::io::Result<OwnedFd>,
) -> Result<Vec<u64>> {
    let name = Name::new(point);
    let read = || {
        let failed = |error| Error::io(format!("looking at the filesystem at {name}"), error);
        let found = find().map_err(failed)?;
        if numbers(&fstat(&found).map_err(failed)?).0 != device {
            return Err(Error::not_available(format!("a filesystem hidden under the mount at {name} is not searched")));
        }
        let system = fstatfs(&found).map_err(failed)?;
        Ok(vec![kind_of(&system), system.f_bsize as u64, system.f_blocks, system.f_bfree, system.f_bavail])
    };
    let Some(server) = storage.served_above(device, point) else {
        return read();
    };
    let answered = answer(server, &name, || Ok(read()?.into_iter().flat_map(u64::to_ne_bytes).collect()))?;
    Ok(words(&answered).collect())
}

#[cfg(test)]
mod tests {
    use super::super::apart::PATIENCE;
    use super::*;
    use crate::budget::until_interrupted;
    use crate::kernel::mapped_file::{FilesystemRoom, TMPFS};
    use std::time::Instant;

    /// Each request to a server that does not respond takes seconds.
    #[test]
    fn a_silent_server_is_asked_once() {
        let mounts = b"22 1 254:0 / / rw - ext4 /dev/vda rw\n24 22 7:4000 / /far rw - fuse.sshfs none rw\n";
        let storage = Storage::new(mounts, None, &mut until_interrupted()).expect("mounts");
        let ask = |minor| {
            let asked = Instant::now();
            let device = Device { major: 7, minor };
            let error = through(&storage, (device, format!("/far/{minor}").as_bytes()), || {
                loop {
                    std::thread::park();
                }
            });
            (error.expect_err("no answer").to_string(), asked.elapsed())
        };
        let (error, took) = ask(1);
        assert!(error.contains("/far/1 does not respond") && took >= PATIENCE, "{error} {took:?}");
        let (error, took) = ask(2);
        assert!(error.contains("/far/2 does not respond") && took < PATIENCE, "{error} {took:?}");
    }

    #[test]
    fn the_filesystem_must_have_the_device() {
        let point = b"/dev/shm";
        let Ok(found) = openat2(CWD, "/dev/shm", OFlags::PATH, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
            return crate::skips::skip("the_filesystem_must_have_the_device", "there is no /dev/shm");
        };
        let (device, _) = numbers(&fstat(&found).expect("its numbers"));
        let words = own_room(device, point).expect("its words");
        assert_eq!(words.len(), 5);
        if words[0] == TMPFS {
            assert!(FilesystemRoom::from_words(&words).is_none_or(|room| room.is_memory && room.used() <= room.bytes));
        }
        let other = Device { minor: device.minor + 1, ..device };
        let error = own_room(other, point).expect_err("another device");
        assert!(error.to_string().contains("hidden under the mount at /dev/shm"), "{error}");
    }
}
