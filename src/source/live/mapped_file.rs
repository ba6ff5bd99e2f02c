//! The file of a mapping or a file descriptor, found without opening it.

use super::apart::{answer, words};
use super::attached::Attached;
use super::backing::{cached_bytes, is_kernels_own};
use super::directory::{Directory, own_file, read_all};
use super::module_file::{ModuleFile, Refusal, Root, kind_of, numbers};
use super::modules::{LiveModules, no_file, not_opened};
use crate::access::{self, Error, Result};
use crate::budget::Budget;
use crate::kernel::descriptors::mount_id;
use crate::kernel::mapped_file::MappedFile;
use crate::kernel::mounts::Mount;
use crate::kernel::{Device, Name, Region};
use crate::own::rights::with_raised_rights;
use crate::source::OnMount;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fstat, fstatfs, major, minor, openat, statx};

/// Returns the path of a descriptor below the directory of a process. `folder` is `fd` or `fdinfo`, of a thread or of
/// the process.
fn of_descriptor(folder: &str, thread: Option<u32>, number: u32) -> String {
    match thread {
        Some(thread) => format!("task/{thread}/{folder}/{number}"),
        None => format!("{folder}/{number}"),
    }
}

/// Returns the number of the mount with the file of a descriptor; no words if its fdinfo does not have it.
pub(super) fn mount_of_descriptor(process: &Directory, thread: Option<u32>, number: u32) -> Result<Vec<u64>> {
    let info = process.read(&of_descriptor("fdinfo", thread, number));
    let info = info.map_err(|error| Error::io(format!("reading fdinfo of descriptor {number}"), error))?;
    Ok(mount_id(&info).map(u64::from).into_iter().collect())
}

/// Returns the words of [`MappedFile`] for the file of a descriptor, by its link below the directory of the process, if
/// it is still on the expected mount: the target can change its descriptors at any time. A child process reads them if
/// a server may provide the file, which may not reply. That may also be so for a file on a mount that is no longer
/// visible, whatever its name is.
pub(super) fn behind_descriptor(process: &Directory, thread: Option<u32>, at: OnMount) -> Result<Vec<u64>> {
    let path = of_descriptor("fd", thread, at.number);
    let failed = |error| Error::io(format!("looking at /proc/PID/{path}"), error);
    let (found, mount) = held(process, &path).map_err(failed)?;
    if mount != at.mount {
        return Err(Error::not_available(format!("descriptor {} leads to another file now", at.number)));
    }
    let name = process.link(&path).map_err(failed)?;
    // The device number needs no request to a server.
    let device = statx(&found, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty());
    let device =
        device.map(|found| Device { major: found.stx_dev_major, minor: found.stx_dev_minor }).unwrap_or_default();
    if at.answers || is_kernels_own(device, &name) {
        return status_words(&found).map(Vec::from).map_err(failed);
    }
    let status = || Ok(status_words(&found).map_err(failed)?.map(u64::to_ne_bytes).concat());
    Ok(words(&answer(device, &Name::new(name), status)?).collect())
}

/// Opens a handle (O_PATH) on the file of a descriptor. Returns it with the number of its mount, which is not reused
/// while the handle is open. No server gets a request.
fn held(process: &Directory, path: &str) -> rustix::io::Result<(OwnedFd, Option<u32>)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = with_raised_rights(|| openat(process.fd(), path, flags, Mode::empty()))?;
    let info = own_file(&format!("fdinfo/{}", found.as_raw_fd())).and_then(read_all)?;
    Ok((found, mount_id(&info)))
}

/// Returns the bytes of a descriptor's file that are in the page cache. The file is opened, but only if it is the
/// `expected` one and no server provides it: the target can change its descriptors at any time.
pub(super) fn cached_of_descriptor(
    process: &Attached,
    (thread, number): (Option<u32>, u32),
    expected: (Device, u64),
    budget: &mut Budget,
) -> Result<Vec<u64>> {
    let (directory, path) = (process.directory(), of_descriptor("fd", thread, number));
    let failed = |error| Error::io(format!("looking at /proc/PID/{path}"), error);
    let name = Name::new(directory.link(&path).map_err(failed)?);
    let (found, mount) = held(directory, &path).map_err(failed)?;
    let mounts = directory.read(&process.memory().path("mountinfo")).map_err(failed)?;
    let mounts = access::mounts(&mounts, budget)?;
    // `stat` may send a request to the server too.
    let mount = mounts.iter().find(|one| mount == Some(one.id));
    let is_expected = |found: &OwnedFd| fstat(found).is_ok_and(|stat| numbers(&stat) == expected);
    if mount.is_none_or(Mount::is_served) || !is_expected(&found) {
        return Err(not_opened(&name, Refusal::Replaced));
    }
    let file = ModuleFile::open_held(found).map_err(|refusal| not_opened(&name, refusal))?;
    Ok(vec![cached_bytes(&file, &name, process.memory().page, budget)?])
}

impl LiveModules {
    /// Returns the words of `stat` and `statfs` for the file that `region` maps, through its link in `map_files` or by
    /// its path.
    pub(super) fn status(&self, region: &Region) -> Result<[u64; MappedFile::WORDS]> {
        // 0 is no inode, except that the first System V segment of a namespace has number 0.
        if region.inode == 0 && !region.is_without_path() {
            return Err(no_file(region));
        }
        if !self.is_distant(region)? {
            return self.status_here(region);
        }
        let bytes =
            answer(region.device, &region.name, || Ok(self.status_here(region)?.map(u64::to_ne_bytes).concat()))?;
        let mut status = [0; MappedFile::WORDS];
        status.iter_mut().zip(words(&bytes)).for_each(|(word, given)| *word = given);
        Ok(status)
    }

    fn status_here(&self, region: &Region) -> Result<[u64; MappedFile::WORDS]> {
        let by_path = |error| {
            let found = Root::of(self.attached.directory(), &self.attached.memory()).find(region.name.as_bytes());
            let is_it =
                |found: &OwnedFd| fstat(found).is_ok_and(|stat| numbers(&stat) == (region.device, region.inode));
            found.ok().filter(is_it).ok_or(error)
        };
        let found = self.by_mapping(region).or_else(by_path);
        let status = found.and_then(|found| status_words(&found));
        status.map_err(|error| self.refusal_error(region, Refusal::Failed(error)))
    }
}

/// Reads the words of [`MappedFile`] from a path handle (O_PATH).
fn status_words(found: &OwnedFd) -> rustix::io::Result<[u64; MappedFile::WORDS]> {
    let (stat, system) = (fstat(found)?, fstatfs(found)?);
    let (device, inode) = numbers(&stat);
    #[allow(clippy::useless_conversion, reason = "the number is narrower on some architectures")]
    let links = stat.st_nlink.into();
    Ok([
        stat.st_mode.into(),
        major(stat.st_rdev).into(),
        minor(stat.st_rdev).into(),
        stat.st_size as u64,
        kind_of(&system),
        system.f_bsize as u64,
        system.f_blocks,
        system.f_bfree,
        system.f_bavail,
        device.major.into(),
        device.minor.into(),
        inode,
        stat.st_blocks as u64,
        links,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::until_interrupted;
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use std::fs::File;
    use std::io::Read;

    /// Between the listing and the open the target may put another file in the place of its descriptor.
    #[test]
    fn only_the_expected_file_of_a_descriptor_is_opened() {
        let mut other = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut other, &[1; 100]).expect("room");
        let number = u32::try_from(other.as_file().as_raw_fd()).expect("a number");
        let mut opened = File::from(init(CreateFlags::NONBLOCK).expect("inotify"));
        add_watch(&opened, other.path(), WatchFlags::OPEN).expect("a watch");
        let mut was_opened = || opened.read(&mut [0; 4096]).is_ok();
        let path = format!("/proc/self/fd/{number}");
        drop(openat(rustix::fs::CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("a handle"));
        // Before Linux 6.10 the open of a path handle is an event too.
        let handles_are_seen = was_opened();
        let process = Attached::open(std::process::id()).expect("to attach to itself");
        let (device, inode) = numbers(&fstat(other.as_file()).expect("its numbers"));
        let cached = |file| cached_of_descriptor(&process, (None, number), file, &mut until_interrupted());
        assert!(cached((device, inode + 1)).is_err());
        assert_eq!(was_opened(), handles_are_seen);
        assert!(cached((device, inode)).is_ok());
        assert!(was_opened());
    }

    /// Nothing is asked of a file that came in the place of the listed one, on another mount.
    #[test]
    fn only_a_file_on_the_expected_mount_is_looked_at() {
        let file = tempfile::tempfile().expect("a file");
        let number = u32::try_from(file.as_raw_fd()).expect("a number");
        let process = Directory::open("/proc/self").expect("its directory");
        let mount = mount_of_descriptor(&process, None, number).expect("its fdinfo").first().copied();
        let mount = mount.and_then(|mount| u32::try_from(mount).ok());
        let on = |mount| behind_descriptor(&process, None, OnMount { number, mount, answers: true });
        assert_eq!(on(mount).expect("its words").len(), MappedFile::WORDS);
        assert!(on(mount.map_or(Some(1), |mount| Some(mount + 1))).is_err());
    }
}
