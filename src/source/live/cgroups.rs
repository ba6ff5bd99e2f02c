//! Memory cgroups: inodes, paths and files of groups in the mounted hierarchy.

use super::directory::read_all;
use super::module_file::numbers;
use super::storage;
use crate::access::{self, Error, Result};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::kernel::mounts::{self, Controller, Mount};
use crate::source::GroupFile;
use crate::source::{Cgroup, CgroupQuery, GroupText};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Lists directories of the hierarchy of memory cgroups.
pub(super) fn groups(which: CgroupQuery<'_>, budget: &mut Budget) -> Result<Vec<Cgroup>> {
    let hierarchy = CgroupMount::open(Controller::Memory, budget)?;
    hierarchy.require_controller()?;
    match which {
        CgroupQuery::All => hierarchy.groups(budget),
        CgroupQuery::At(path) => Ok(hierarchy.group(path).into_iter().collect()),
    }
}

/// Reads a file of a cgroup.
pub(super) fn text(asked: GroupText<'_>, budget: &mut Budget) -> Result<Vec<u8>> {
    CgroupMount::open(asked.file.controller(), budget)?.file(asked.path, asked.file)
}

/// The mounted hierarchy with a controller. It is not held open, so that it can be unmounted.
pub(super) struct CgroupMount {
    mount: Mount,
    controller: Controller,
    top: OwnedFd,
}

impl CgroupMount {
    pub(super) fn open(controller: Controller, budget: &mut Budget) -> Result<Self> {
        let text = storage::own_text().map_err(|error| Error::io("reading /proc/self/mountinfo", error))?;
        let mounts = access::mounts(&text, budget)?;
        let mount = mounts::hierarchy(&mounts, controller).cloned().ok_or_else(|| none(controller))?;
        let failed = |error| Error::io(format!("looking at the cgroups in {}", mount.point), error);
        let point = OsStr::from_bytes(mount.point.as_bytes());
        let top = directory(CWD, point.as_bytes()).map_err(failed)?;
        // Another filesystem may be mounted over it.
        let (device, _) = numbers(&fstat(&top).map_err(failed)?);
        if device != mount.device {
            return Err(failed(Errno::STALE));
        }
        Ok(CgroupMount { mount, controller, top })
    }

    /// Fails for a hierarchy of cgroup v2 without the controller. If a hierarchy of cgroup v1 has it, the inodes of
    /// `/proc/kpagecgroup` are of that one, and would be those of other groups here.
    pub(super) fn require_controller(&self) -> Result<()> {
        let lacks_it = self.mount.filesystem == "cgroup2" && !has_controller(&self.top, self.controller);
        if lacks_it { Err(none(self.controller)) } else { Ok(()) }
    }

    /// Returns the mount point.
    pub(super) fn point(&self) -> &Name {
        &self.mount.point
    }

    /// Returns the group at a path below the mount, if there is one.
    fn group(&self, path: &[u8]) -> Option<Cgroup> {
        let name = OsStr::from_bytes(below(path));
        let stat = statat(&self.top, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(group(stat.st_ino, path.to_vec()))
    }

    /// Reads a file of the group at a path below the mount.
    fn file(&self, path: &[u8], file: GroupFile) -> Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = directory(&self.top, below(path));
        let text = directory.and_then(|group| openat(group, &*file.name(), flags, Mode::empty())).and_then(read_all);
        text.map_err(|error| Error::io(format!("reading {} of the cgroup {}/", file.name(), Name::copied(path)), error))
    }

    /// Lists all groups. There may be many thousands, so each costs one step.
    fn groups(&self, budget: &mut Budget) -> Result<Vec<Cgroup>> {
        let failed = |error| {
            let point = &self.mount.point;
            Error::io(format!("reading the cgroups in {point}"), error)
        };
        let top = fstat(&self.top).map_err(failed)?.st_ino;
        let mut groups = vec![group(top, Vec::new())];
        let mut next = 0;
        while let Some(parent) = groups.get(next) {
            budget.look()?;
            next += 1;
            let parent = parent.path.clone();
            match self.children(&parent) {
                Ok(children) => groups.extend(
                    children
                        .into_iter()
                        .map(|(inode, name)| group(inode, [&parent, b"/".as_slice(), name.to_bytes()].concat())),
                ),
                // The group was removed, or this user may not read it.
                Err(Errno::NOENT | Errno::NODEV | Errno::ACCESS) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(groups)
    }

    /// Returns inode and name of the directories in a directory.
    fn children(&self, path: &[u8]) -> rustix::io::Result<Vec<(u64, std::ffi::CString)>> {
        let mut children = Vec::new();
        for entry in Dir::new(directory(&self.top, below(path))?)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
                children.push((entry.ino(), name.to_owned()));
            }
        }
        Ok(children)
    }
}

fn group(inode: u64, path: Vec<u8>) -> Cgroup {
    Cgroup { inode, path }
}

fn none(controller: Controller) -> Error {
    Error::not_available(format!("{} cgroups are not mounted here: their paths are unknown", controller.name()))
}

/// Returns whether a group of cgroup v2 has a controller.
fn has_controller(group: &OwnedFd, controller: Controller) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let controllers = openat(group, "cgroup.controllers", flags, Mode::empty()).and_then(read_all);
    controllers.is_ok_and(|words| words.split(u8::is_ascii_whitespace).any(|word| word == controller.name().as_bytes()))
}

/// Converts a path below the mount for a system call.
fn below(path: &[u8]) -> &[u8] {
    match path.strip_prefix(b"/") {
        Some(path) => path,
        None => b".",
    }
}

fn directory(at: impl AsFd, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, OsStr::from_bytes(path), flags, Mode::empty())
}
