//! What the files behind regions are really called, where the text of `maps` can be read in two ways: a name may end in what is the
//! kernel's mark for deleted files, and hold the `\012` that stands for a newline.

use super::directory::Directory;
use super::handle::Handle;
use super::memory::Memory;
use super::module_file::ModuleFile;
use super::rights::raised;
use super::storage::Storage;
use crate::kernel::{Name, Region, maps, text};
use crate::target::sys;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Puts the names of `regions` right, which were read from the text of `maps`. Asks nothing where they can be read in one way only.
pub(super) fn settle(handle: &Handle, memory: &Memory, regions: &mut [Region]) {
    let mut root = Root::of(handle.directory(), memory);
    // The regions of a file mostly lie side by side.
    let mut last = None;
    for region in regions.iter_mut().filter(|region| is_path(region)) {
        let has_newline = region.name.as_bytes().contains(&b'\n');
        if !has_newline && !region.deleted {
            continue;
        }
        let read = (region.device, region.inode, called(region));
        match &last {
            Some((known, settled)) if *known == read => {
                (region.name, region.deleted) = Clone::clone(settled);
                continue;
            }
            _ => {}
        }
        if has_newline && let Some(said) = unescaped(handle, memory, region) {
            (region.name, region.deleted) = said;
        }
        root.settle_mark(region);
        last = Some((read, called(region)));
    }
}

/// Puts the name of a region right that came without escapes.
pub(super) fn settle_unescaped(directory: &Directory, memory: &Memory, region: &mut Region) {
    if is_path(region) {
        Root::of(directory, memory).settle_mark(region);
    }
}

fn is_path(region: &Region) -> bool {
    region.name.as_bytes().starts_with(b"/")
}

fn called(region: &Region) -> (Name, bool) {
    (region.name.clone(), region.deleted)
}

/// The name as PROCMAP_QUERY (Linux 6.11) has it, or the link in `map_files`, which takes rights: there a newline stands for itself. `None`
/// if neither can be asked, or something else is mapped there by now.
fn unescaped(handle: &Handle, memory: &Memory, region: &Region) -> Option<(Name, bool)> {
    let (start, end) = (region.range.start().get(), region.range.end().get());
    let maps = memory.maps(handle).ok()?;
    let name = match sys::query_mapping(maps, start) {
        Ok(mapping) => mapping.name,
        Err(_) => {
            let link = format!("map_files/{start:x}-{end:x}");
            handle.directory().link(&link).ok()?
        }
    };
    let is_it = maps::name(&text::unescape_newline(&name)) == called(region);
    is_it.then(|| maps::name(&name))
}

/// What the target calls a file, where it has another root in the same mount namespace (chroot): `maps` names files as whoever
/// reads it finds them. `link` leads to the root.
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
        Root {
            directory,
            memory,
            handle: None,
        }
    }

    /// What bears that path in it, without opening it; a link stands for itself.
    pub(super) fn find(&mut self, path: &[u8]) -> Result<OwnedFd> {
        self.resolve(path, &|open| raised(open), OFlags::NOFOLLOW)
    }

    /// What a path leads to in it, without opening it. The target chooses where links lead, so this takes whoever runs pmdb only to where
    /// they may go themselves.
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

    /// Takes what looks like the kernel's mark for the end of the name, if the file that is mapped bears that name.
    fn settle_mark(&mut self, region: &mut Region) {
        // Where a server may not answer, a name is not worth the wait.
        let storage = || Storage::of(self.directory, &self.memory.path("mountinfo"));
        if !region.deleted || storage().serves(region) == Some(true) {
            return;
        }
        let whole = [region.name.as_bytes(), maps::DELETED].concat();
        let found = self.find(&whole);
        if found.is_ok_and(|found| ModuleFile::is_behind(found, region)) {
            (region.name, region.deleted) = (Name::new(whole), false);
        }
    }
}
