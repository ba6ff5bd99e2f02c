//! Memory cgroups: from an inode number, as `/proc/kpagecgroup` gives it, to the path of a directory.

use super::directory::{Directory, read_all};
use crate::kernel::mounts::{self, Mount};
use crate::kernel::{Device, Name};
use crate::target::{Error, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

/// What was found so far: for an inode the path below the mount, or that there is none. The hierarchy is read through when an inode is
/// asked for that is not among them, once for all groups.
#[derive(Default)]
pub(super) struct Cgroups(Mutex<BTreeMap<u64, Option<Vec<u8>>>>);

impl Cgroups {
    /// Where the hierarchy is mounted whose groups these are.
    pub(super) fn mount() -> Result<Name> {
        Ok(Hierarchy::open()?.point().clone())
    }

    /// The path of the group with that inode; `None` if no directory has it. Mostly it is a group of the process whose page was asked about:
    /// `of_process` reads `/proc/PID/cgroup`.
    pub(super) fn path(
        &self,
        inode: u64,
        of_process: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Result<Option<Name>> {
        let hierarchy = Hierarchy::open()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&inode) {
            // The kernel counts these numbers up: a group that is gone does not come back.
            Some(None) => return Ok(None),
            // It may have been removed or renamed since.
            Some(Some(path)) if hierarchy.inode(path) == Some(inode) => {
                return Ok(Some(hierarchy.full_path(path)));
            }
            _ => {}
        }
        if let Some(path) = of_process().and_then(|text| hierarchy.group_among(&text))
            && hierarchy.inode(&path) == Some(inode)
        {
            let name = hierarchy.full_path(&path);
            known.insert(inode, Some(path));
            return Ok(Some(name));
        }
        known.retain(|_, path| path.is_none());
        known.extend(
            hierarchy
                .groups()?
                .into_iter()
                .map(|(inode, path)| (inode, Some(path))),
        );
        let found = known.entry(inode).or_insert(None);
        Ok(found.as_ref().map(|path| hierarchy.full_path(path)))
    }
}

/// The mounted hierarchy that memory is charged to. It is not held open, or it could not be unmounted.
pub(super) struct Hierarchy {
    mount: Mount,
    top: OwnedFd,
}

impl Hierarchy {
    pub(super) fn open() -> Result<Self> {
        let text = Directory::open("/proc/self").and_then(|own| own.read("mountinfo"));
        let text = text.map_err(|error| Error::io("reading /proc/self/mountinfo", error))?;
        let mounts = mounts::parse(&text)?;
        let none = || Error::NotAvailable {
            what: "no hierarchy of memory cgroups is mounted here: their paths are not known"
                .to_owned(),
        };
        let mount = mounts::memory_hierarchy(&mounts);
        let mount = mount.cloned().ok_or_else(none)?;
        let failed = |error| Error::io(format!("looking at the cgroups in {}", mount.point), error);
        let point = OsStr::from_bytes(mount.point.as_bytes());
        let top = directory(CWD, point.as_bytes()).map_err(failed)?;
        // Something else may be mounted over it.
        let device = fstat(&top).map_err(failed)?.st_dev;
        let device = Device {
            major: rustix::fs::major(device),
            minor: rustix::fs::minor(device),
        };
        match device == mount.device {
            true if mount.filesystem == "cgroup2" && !has_memory(&top) => Err(none()),
            true => Ok(Hierarchy { mount, top }),
            false => Err(failed(Errno::STALE)),
        }
    }

    /// Where it is mounted.
    pub(super) fn point(&self) -> &Name {
        &self.mount.point
    }

    /// The inode of the directory at a path below the mount.
    fn inode(&self, path: &[u8]) -> Option<u64> {
        let path = OsStr::from_bytes(below(path));
        let stat = statat(&self.top, path, AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().map(|stat| stat.st_ino)
    }

    /// Of the groups that `/proc/PID/cgroup` lists, a line for each hierarchy, that of this one: its path below the mount.
    fn group_among(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut lines = text.split(|&byte| byte == b'\n');
        let path = lines.find_map(|line| {
            let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_this = match self.mount.filesystem.as_bytes() {
                b"cgroup2" => controllers.is_empty(),
                _ => controllers
                    .split(|&byte| byte == b',')
                    .any(|one| one == b"memory"),
            };
            is_this.then_some(path)
        })?;
        let root = self.mount.root.as_bytes();
        // So the kernel shows a group outside of the namespace of whoever reads.
        if path.split(|&byte| byte == b'/').any(|part| part == b"..") {
            return None;
        }
        let below = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root))?;
        Some(below.strip_suffix(b"/").unwrap_or(below).to_vec())
    }

    /// From the root of the hierarchy: what is mounted may be a part of it.
    fn full_path(&self, path: &[u8]) -> Name {
        let root = self.mount.root.as_bytes();
        let root = root.strip_suffix(b"/").unwrap_or(root);
        match [root, path].concat() {
            top if top.is_empty() => Name::from("/"),
            path => Name::new(path),
        }
    }

    /// Inode and path of each group.
    fn groups(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        let failed = |error| {
            let point = &self.mount.point;
            Error::io(format!("reading the cgroups in {point}"), error)
        };
        let top = fstat(&self.top).map_err(failed)?.st_ino;
        let mut groups = vec![(top, Vec::new())];
        let mut next = 0;
        while let Some((_, parent)) = groups.get(next) {
            next += 1;
            let parent = parent.clone();
            match self.children(&parent) {
                Ok(children) => groups.extend(children.into_iter().map(|(inode, name)| {
                    (inode, [&parent, b"/".as_slice(), name.to_bytes()].concat())
                })),
                // Gone meanwhile, or closed to this user.
                Err(Errno::NOENT | Errno::NODEV | Errno::ACCESS) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(groups)
    }

    /// Inode and name of the directories in a directory.
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

/// Whether a group of the second version has the memory controller. Where a hierarchy of the first version has it instead, inodes are
/// of that one, and mean other groups here.
fn has_memory(group: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let controllers = openat(group, "cgroup.controllers", flags, Mode::empty()).and_then(read_all);
    controllers.is_ok_and(|words| {
        words
            .split(u8::is_ascii_whitespace)
            .any(|word| word == b"memory")
    })
}

/// A path below the mount as a system call takes it.
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
