//! The files that regions map, by their identity, and files at paths.

use super::apart::{DistantFile, answer};
use super::attached::Attached;
use super::backing::{self, from_bytes, in_bytes, is_kernels_own};
use super::kept_file::KeptFile;
use super::module_file::{FoundBy, ModuleFile, Refusal, Root};
use super::storage::Storage;
use crate::access::{Error, InMemory, ReadAt, Result};
use crate::budget::{Budget, until_interrupted};
use crate::kernel::mapped_file::TMPFS;
use crate::kernel::{AddressRange, Device, Name, Region, VirtualAddress, maps};
use crate::own::rights::{SETCAP, with_raised_rights};
use crate::source::file::mapped_file;
use crate::source::{BackingContent, BackingRun, sys};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, pread, retry_on_intr};
use std::io::Read;
use std::sync::{Arc, OnceLock};

/// The files that the target has mapped.
pub(super) struct LiveModules {
    pub(super) attached: Arc<Attached>,
    /// The mounts that the target sees, read when the first file is opened.
    storage: OnceLock<Arc<Storage>>,
}

impl LiveModules {
    pub(super) fn new(attached: Arc<Attached>) -> Self {
        LiveModules { attached, storage: OnceLock::new() }
    }

    fn storage(&self) -> Result<&Arc<Storage>> {
        match self.storage.get() {
            Some(known) => Ok(known),
            None => {
                let storage = Storage::of(self.attached.directory(), &self.attached.memory())?;
                Ok(self.storage.get_or_init(|| storage))
            }
        }
    }

    /// Returns whether a server, which may not reply, provides the file that `region` maps. A file on an unknown mount,
    /// which must be very new, counts as such.
    pub(super) fn is_distant(&self, region: &Region) -> Result<bool> {
        let storage = self.attached.recent_storage(|| self.storage().cloned())?;
        Ok(match storage.serves(region) {
            Some(is_served) => is_served,
            None => {
                Storage::own()?.serves(region).unwrap_or_else(|| !is_kernels_own(region.device, region.name.as_bytes()))
            }
        })
    }

    /// Makes a function that opens what `open` opens, while the target is attached.
    fn while_attached<F>(&self, open: F) -> impl Fn() -> Result<Option<ModuleFile>> + use<F>
    where
        F: Fn(&LiveModules) -> Result<Option<ModuleFile>>,
    {
        let attached = Arc::downgrade(&self.attached);
        move || match attached.upgrade() {
            Some(attached) => open(&LiveModules::new(attached)),
            None => Ok(None),
        }
    }

    /// Opens a handle through `/proc/PID/map_files`: on the mapped file, even if it was moved or deleted.
    pub(super) fn by_mapping(&self, region: &Region) -> rustix::io::Result<OwnedFd> {
        let path = mapped_file(region.range);
        let directory = self.attached.directory().fd();
        with_raised_rights(|| openat(directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()))
    }

    /// Opens the file by its path in the target's root, which may now lead to another file.
    fn by_path(&self, region: &Region) -> std::result::Result<ModuleFile, Refusal> {
        let memory = self.attached.memory();
        let mut root = Root::of(self.attached.directory(), &memory);
        let name = region.name.as_bytes();
        // The file name may end like the kernel's mark.
        let marked = [name, maps::DELETED].concat();
        let mut refusal = Refusal::Failed(Errno::NOENT);
        for name in [name, &marked] {
            match root
                .find(name)
                .map_err(Refusal::Failed)
                .and_then(|found| ModuleFile::open(found, region, FoundBy::Path, (&memory, self.attached.directory())))
            {
                Ok(file) => return Ok(file),
                Err(Refusal::Failed(Errno::NOENT)) => {}
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    /// Opens a handle (O_PATH) on the target of a path in the target's root.
    fn locate_in_target(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let memory = self.attached.memory();
        Root::of(self.attached.directory(), &memory).follow(path)
    }

    /// Opens the file through `map_files` or by its path.
    fn file(&self, region: &Region) -> Result<ModuleFile> {
        let mapped = self.by_mapping(region).map_err(Refusal::Failed);
        let (memory, directory) = (self.attached.memory(), self.attached.directory());
        let open = |found| ModuleFile::open(found, region, FoundBy::Mapping, (&memory, directory));
        let file = match mapped.and_then(open) {
            // A right is missing, or the region has changed.
            Err(Refusal::Failed(_) | Refusal::Replaced) => match self.by_path(region) {
                // Shared anonymous memory has the path of a device, but is not one.
                Err(Refusal::Special) if region.deleted => Err(Refusal::Replaced),
                decided => decided,
            },
            decided => decided,
        };
        file.map_err(|refusal| self.refusal_error(region, refusal))
    }

    pub(super) fn refusal_error(&self, region: &Region, refusal: Refusal) -> Error {
        let name = &region.name;
        match refusal {
            Refusal::Replaced | Refusal::Failed(Errno::NOENT) if region.is_without_path() => {
                Error::not_permitted(format!("may not open {name}, memory without a path"), by_mapping())
            }
            Refusal::Replaced | Refusal::Failed(Errno::NOENT) => Error::not_permitted(
                format!("may not open the file of {name}, which was removed or replaced"),
                by_mapping(),
            ),
            refusal => not_opened(&Name::new([b"the file behind ", name.as_bytes()].concat()), refusal),
        }
    }
}

/// Returns the remedy for a file without a path.
fn by_mapping() -> String {
    format!("run pmdb with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: with sudo, or {SETCAP}")
}

/// Makes the error why an existing file was not opened.
pub(super) fn not_opened(name: &Name, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Special => Error::not_available(format!("{name} is not a regular file: pmdb does not open it")),
        Refusal::MadeUp => Error::not_available(format!(
            "{name} is empty, or the kernel generates its contents when it is read: pmdb does not read it"
        )),
        Refusal::Replaced => Error::not_available(format!("{name} was replaced")),
        Refusal::Leased(holder) => Error::not_available(match holder {
            0 => format!("a lease is held on {name}: opening it would signal the holder"),
            _ => format!("process {holder} holds a lease on {name}: opening it would signal that process"),
        }),
        Refusal::LeasesHidden(error) => Error::not_available(format!(
            "{name} is not opened: /proc/locks cannot be read ({error}), and opening would signal a process that holds a lease on it"
        )),
        Refusal::Failed(Errno::ACCESS | Errno::PERM) => Error::not_permitted(
            format!("may not open {name}"),
            format!("run pmdb as a user who may read it, or with CAP_SYS_ADMIN: with sudo, or {SETCAP}"),
        ),
        Refusal::Failed(error) => Error::io(format!("opening {name}"), error),
    }
}

impl LiveModules {
    /// Reads cached bytes as [`read_cached`](Self::read_cached), without a child process.
    fn cached_here(
        &self,
        file: &ModuleFile,
        region: &Region,
        address: VirtualAddress,
        into: &mut [u8],
    ) -> Result<usize> {
        let offset = region.file_offset(address).ok_or_else(|| no_file(region))?;
        let end = address.checked_add(into.len() as u64);
        let Some(wanted) = end.and_then(|end| AddressRange::new(address, end)) else {
            return Ok(0);
        };
        // The cached pages are found right before the read, because they change.
        let runs = backing::runs(file, region, wanted, self.attached.memory().page, &mut until_interrupted())?;
        let Some(run) = runs.into_iter().next() else {
            return Ok(0);
        };
        let cached = match run.content? {
            BackingContent::Contents { cached: true } => run.range.end().get().saturating_sub(address.get()),
            _ => return Ok(0),
        };
        // After the end of the file its last page contains zeros, or bytes that a process wrote there through a
        // mapping.
        let rest = file.len().saturating_sub(offset).min(cached);
        let most = usize::try_from(rest).map_or(into.len(), |rest| rest.min(into.len()));
        let into = into.get_mut(..most).unwrap_or_default();
        let failed = |error| Error::io(format!("reading the page cache of {}", region.name), error);
        match file.filesystem().map_err(failed)? {
            // A plain read allocates no page for a hole (`shmem_file_read_iter` in mm/shmem.c passes SGP_READ), reads
            // nothing ahead, and changes no map count. Only a page that is swapped out between the query and the read
            // is swapped in.
            TMPFS => retry_on_intr(|| pread(file, &mut *into, offset)).map_err(failed),
            _ => sys::cached_bytes(file, offset, into).map_err(failed),
        }
    }
}

impl LiveModules {
    pub(super) fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        if !region.name.as_bytes().starts_with(b"/") {
            return Err(no_file(region));
        }
        let served = self.is_distant(region)?.then_some(region.device);
        let wanted = region.clone();
        let open = self.while_attached(move |modules| modules.file(&wanted).map(Some));
        let file = open_module(served, &region.name, open)?;
        file.ok_or_else(|| no_file(region))
    }

    pub(super) fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        let wanted = path.to_vec();
        let open = self.while_attached(move |modules| unmapped_file(&wanted, modules.locate_in_target(&wanted)));
        open_module(self.storage()?.served_at(path), &Name::new(path), open)
    }

    /// Opens a file in the target's root that belongs to root or `user`.
    pub(super) fn open_trusted(&self, path: &[u8], user: u32) -> Result<Option<Box<dyn ReadAt>>> {
        let memory = self.attached.memory();
        let name = Name::new(path);
        // Links are not followed: another user could make one, to have another file read.
        let opened = Root::of(self.attached.directory(), &memory)
            .find(path)
            .map_err(Refusal::Failed)
            .and_then(ModuleFile::open_unmapped);
        match opened {
            Ok(file) if [0, user].contains(&file.owner()) => Ok(Some(Box::new(file))),
            Ok(file) => Err(Error::not_available(format!(
                "{name} belongs to user {}, who is neither root nor the user of the process: pmdb does not trust it",
                file.owner()
            ))),
            Err(Refusal::Failed(Errno::NOENT | Errno::NOTDIR)) => Ok(None),
            Err(refusal) => Err(not_opened(&name, refusal)),
        }
    }

    /// Returns whether the file that `region` maps has this path in the target's root. False if a server may not reply:
    /// a name is not worth the wait.
    pub(super) fn is_named(&self, region: &Region, path: &[u8]) -> bool {
        // No path leads to shared memory, so that neither a lookup nor the mounts are needed for it.
        let device = [region.device.major, region.device.minor].map(u64::from);
        if backing::shared_memory() == Some(device) {
            return false;
        }
        if self.storage().is_ok_and(|storage| storage.serves(region) == Some(true)) {
            return false;
        }
        let (memory, directory) = (self.attached.memory(), self.attached.directory());
        let found = Root::of(directory, &memory).find(path);
        found.is_ok_and(|found| ModuleFile::is_behind(found, region, (&memory, directory)))
    }

    /// Opens the file that `region` maps, unless a server provides it.
    pub(super) fn hold(&self, region: &Region) -> Option<Arc<ModuleFile>> {
        if region.inode == 0 || self.is_distant(region).unwrap_or(true) {
            return None;
        }
        let file = Arc::new(self.file(region).ok()?);
        self.attached.set_held(region, &file);
        Some(file)
    }

    /// Returns the file that `region` maps, kept open or opened now; `None` if only a child process may open it.
    fn held_or_opened(&self, region: &Region) -> Result<Option<Arc<ModuleFile>>> {
        match self.attached.open_file(region) {
            None if self.is_distant(region)? => Ok(None),
            None => self.file(region).map(|file| Some(Arc::new(file))),
            held => Ok(held),
        }
    }

    pub(super) fn backing_content(
        &self,
        region: &Region,
        range: AddressRange,
        budget: &mut Budget,
    ) -> Result<Vec<BackingRun>> {
        if region.inode == 0 {
            return Err(no_file(region));
        }
        let page = self.attached.memory().page;
        if let Some(file) = self.held_or_opened(region)? {
            return backing::runs(&file, region, range, page, budget);
        }
        let bytes_of_runs = answer(region.device, &region.name, || {
            let runs = backing::runs(&self.file(region)?, region, range, page, budget)?;
            Ok(in_bytes(&runs))
        });
        // If the budget has ended, the child process reports only a failure.
        budget.go_on()?;
        Ok(from_bytes(&bytes_of_runs?))
    }

    pub(super) fn read_cached(&self, region: &Region, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        if let Some(file) = self.held_or_opened(region)? {
            return self.cached_here(&file, region, address, into);
        }
        let mut bytes = vec![0; into.len()];
        let cached = answer(region.device, &region.name, || {
            let read = self.cached_here(&self.file(region)?, region, address, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        // Reading from a slice never fails.
        Ok(cached.as_slice().read(into).unwrap_or(0))
    }
}

/// Opens the file that `open` opens, now and at each later read after it was closed; `None` if there is none. If its
/// storage is `served`, only a child process opens it.
fn open_module(
    served: Option<Device>,
    name: &Name,
    open: impl Fn() -> Result<Option<ModuleFile>> + Send + Sync + 'static,
) -> Result<Option<Box<dyn ReadAt>>> {
    if let Some(storage) = served {
        let file = DistantFile::open(storage, name, Box::new(open))?;
        return Ok(file.map(|file| Box::new(file) as Box<dyn ReadAt>));
    }
    let Some(file) = open()? else {
        return Ok(None);
    };
    let again = Box::new(move || open().ok()?);
    Ok(Some(Box::new(KeptFile::new(file, again))))
}

/// Opens a handle (O_PATH) on the target of a path where pmdb runs.
fn locate_here(path: &[u8]) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a file that no region maps; `None` if there is none.
fn unmapped_file(path: &[u8], found: rustix::io::Result<OwnedFd>) -> Result<Option<ModuleFile>> {
    let opened = found.map_err(Refusal::Failed);
    match opened.and_then(ModuleFile::open_unmapped) {
        Ok(file) => Ok(Some(file)),
        Err(Refusal::Failed(Errno::NOENT | Errno::NOTDIR)) => Ok(None),
        Err(refusal) => Err(not_opened(&Name::new(path), refusal)),
    }
}

pub(super) fn no_file(region: &Region) -> Error {
    Error::not_available(format!("{} has no file", region.range))
}

/// Opens the regular file at this path where pmdb runs.
pub(super) fn at_own_path(path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
    let wanted = path.to_vec();
    let open = move || unmapped_file(&wanted, locate_here(&wanted));
    open_module(Storage::own()?.served_at(path), &Name::new(path), open)
}

/// Opens the debug file of a build-id where pmdb runs, if `path` is the place of one. For captures and core files: no
/// other path in them leads to a file of this machine.
#[cfg(feature = "cli")]
pub(crate) fn installed_debug_file(path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
    let digits = path.strip_prefix(b"/usr/lib/debug/.build-id/").and_then(|rest| rest.strip_suffix(b".debug"));
    let digits = digits.and_then(|digits| digits.split_at_checked(3));
    let are_digits = digits.is_some_and(|(folder, name)| {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let [first @ .., b'/'] = folder else {
            return false;
        };
        first.iter().all(is_digit) && name.iter().all(is_digit) && (6..=62).contains(&name.len())
    });
    if are_digits { at_own_path(path) } else { Ok(None) }
}

/// Returns the vdso of this program, if it is as large as `region`.
pub(super) fn own_vdso(region: &Region) -> Option<Box<dyn ReadAt>> {
    let own = Attached::open(std::process::id()).ok()?;
    let regions = maps::parse(&own.maps_text(&own.memory()).ok()?).ok()?;
    let vdso = regions.iter().find(|own| own.name == region.name)?;
    let length = usize::try_from(region.range.len()).ok()?;
    let mut bytes = vec![0; (vdso.range.len() == region.range.len()).then_some(length)?];
    let read = own.read_memory(vdso.range.start(), &mut bytes).ok()?;
    (read == length).then(|| Box::new(InMemory::mapping(bytes, region.range.start())) as _)
}
