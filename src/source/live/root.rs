//! The root directory of the target, in which its paths are looked up.

use super::directory::Directory;
use super::memory::Memory;
use super::rights::raised;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The target's own path of a file, if the target has another root in the same mount namespace (chroot): `maps` shows
/// the reader's paths. `link` leads to the root.
fn inside<'p>(directory: &Directory, link: &str, path: &'p [u8]) -> Option<&'p [u8]> {
    let inner = path.strip_prefix(&*directory.link(link).ok()?)?;
    inner.starts_with(b"/").then_some(inner)
}

/// Opens something with some rights.
type Rights<'r> = &'r dyn Fn(&mut dyn FnMut() -> Result<OwnedFd>) -> Result<OwnedFd>;

/// The root directory of the target, opened when it is first needed.
pub(super) struct Root<'a> {
    directory: &'a Directory,
    memory: &'a Memory,
    handle: Option<Result<OwnedFd>>,
}

impl<'a> Root<'a> {
    /// Of the process with that directory in `/proc`.
    pub(super) fn of(directory: &'a Directory, memory: &'a Memory) -> Self {
        Root { directory, memory, handle: None }
    }

    /// A handle on what has that path in it, without opening it. A link is not followed.
    pub(super) fn find(&mut self, path: &[u8]) -> Result<OwnedFd> {
        self.resolve(path, &|open| raised(open), OFlags::NOFOLLOW)
    }

    /// A handle on what a path leads to in it, without opening it. The target chooses where links lead, so only the
    /// user's own rights are used.
    pub(super) fn follow(&mut self, path: &[u8]) -> Result<OwnedFd> {
        self.resolve(path, &|open| open(), OFlags::empty())
    }

    fn resolve(&mut self, path: &[u8], rights: Rights, links: OFlags) -> Result<OwnedFd> {
        let (directory, memory) = (self.directory, self.memory);
        let root = self.handle.get_or_insert_with(|| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            raised(|| openat(directory.fd(), memory.path("root"), flags, Mode::empty()))
        });
        let root = root.as_ref().map_err(|error| *error)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC | links;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = |path: &[u8]| {
            let path = OsStr::from_bytes(path);
            rights(&mut || openat2(root, path, flags, Mode::empty(), within))
        };
        match open(path) {
            Err(Errno::NOENT) => match inside(directory, &memory.path("root"), path) {
                Some(inner) => open(inner),
                None => Err(Errno::NOENT),
            },
            found => found,
        }
    }
}
