//! The files behind regions, by their identity.

use super::attached::Attached;
use super::rights::raised;
use crate::kernel::{AddressRange, PageMapEntry, Region};
use crate::target::{Error, Modules, ReadAt, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{
    FileType, Mode, OFlags, ResolveFlags, Stat, fstat, major, minor, openat, openat2,
};
use rustix::io::{Errno, pread, retry_on_intr};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The files that the target has mapped.
pub(super) struct LiveModules {
    attached: Arc<Attached>,
}

impl LiveModules {
    pub(super) fn new(attached: Arc<Attached>) -> Self {
        LiveModules { attached }
    }

    /// Through `/proc/PID/map_files`: the very file that is mapped, wherever it has gone.
    fn by_mapping(&self, region: &Region) -> rustix::io::Result<OwnedFd> {
        let (start, end) = (region.range.start().get(), region.range.end().get());
        let path = format!("map_files/{start:x}-{end:x}");
        let directory = self.attached.directory().fd();
        raised(|| {
            openat(
                directory,
                path,
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
            )
        })
    }

    /// By its path, under the target's own root: another file may be there by now.
    fn by_path(&self, region: &Region) -> rustix::io::Result<OwnedFd> {
        let memory = self.attached.memory();
        let root = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = self.attached.directory().fd();
        let root = raised(|| openat(directory, memory.path("root"), root, Mode::empty()))?;
        let name = region.name.as_bytes();
        // What looks like the kernel's mark may be the end of the name.
        let marked = [name, b" (deleted)"].concat();
        let names = if region.deleted {
            [&marked, name]
        } else {
            [name, &marked]
        };
        let mut failure = Errno::NOENT;
        for name in names {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            let file =
                raised(|| openat2(&root, OsStr::from_bytes(name), flags, Mode::empty(), within));
            match file.and_then(|file| Ok((is_file_of(region, &fstat(&file)?), file))) {
                Ok((true, file)) => return Ok(file),
                Ok((false, _)) => failure = Errno::STALE,
                Err(error) if failure == Errno::NOENT => failure = error,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    fn refused(&self, region: &Region, error: Errno) -> Error {
        let name = &region.name;
        match error {
            Errno::ACCESS | Errno::PERM => Error::NotPermitted {
                what: format!("may not open the file behind {name}"),
                remedy: "run pmdb as a user who may read it, or with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE".into(),
            },
            Errno::NOENT | Errno::STALE => Error::NotAvailable {
                what: format!("the file behind {name} is gone or was replaced; only CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE still reaches it"),
            },
            error => Error::io(format!("opening the file behind {name}"), error),
        }
    }
}

impl Modules for LiveModules {
    fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        if !region.name.as_bytes().starts_with(b"/") {
            return Err(Error::NotAvailable {
                what: format!("there is no file behind {}", region.range),
            });
        }
        let found = self.by_mapping(region).or_else(|_| self.by_path(region));
        let found = found.map_err(|error| self.refused(region, error))?;
        let stat = fstat(&found).map_err(|error| self.refused(region, error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::NotAvailable {
                what: format!(
                    "{} is not a regular file: pmdb does not open it",
                    region.name
                ),
            });
        }
        let file = reopen(&found).map_err(|error| self.refused(region, error))?;
        Ok(Box::new(ModuleFile { file, stat }))
    }

    fn image(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        if let Some(bytes) = self.resident(region)? {
            return Ok(Box::new(Image {
                bytes,
                range: region.range,
            }));
        }
        // The kernel lends every process the same vdso, and reading one's own disturbs nobody.
        if region.name.as_bytes() == b"[vdso]"
            && let Some(bytes) = own_vdso(region, self.attached.memory().layout.pointer_bytes)
        {
            return Ok(Box::new(Image {
                bytes,
                range: region.range,
            }));
        }
        Err(Error::NotAvailable {
            what: format!(
                "{} is not all resident, and reading it would change that",
                region.name
            ),
        })
    }
}

/// An image is no larger than a few pages; anything else is not one.
const IMAGE_BYTES: u64 = 1 << 20;

impl LiveModules {
    /// The bytes of a region of which every page is resident.
    fn resident(&self, region: &Region) -> Result<Option<Vec<u8>>> {
        let page = self.attached.memory().layout.page;
        if region.range.len() > IMAGE_BYTES {
            return Ok(None);
        }
        let all_present = || -> Result<bool> {
            let mut entries = vec![PageMapEntry::default(); region.range.pages(page) as usize];
            let read = self
                .attached
                .entries(page.index(region.range.start()), &mut entries)?;
            Ok(read == entries.len() && entries.iter().all(|entry| entry.is_present()))
        };
        if !all_present()? {
            return Ok(None);
        }
        let mut bytes = vec![0; region.range.len() as usize];
        let read = self
            .attached
            .read_memory(region.range.start(), &mut bytes)?;
        Ok((read == bytes.len() && all_present()?).then_some(bytes))
    }
}

/// The vdso of this program, if it is as large as that of the target and of the same pointer width.
fn own_vdso(region: &Region, pointer_bytes: u8) -> Option<Vec<u8>> {
    if usize::from(pointer_bytes) != size_of::<usize>() {
        return None;
    }
    let own = Attached::open(std::process::id()).ok()?;
    let regions = own.regions().ok()?;
    let vdso = regions.iter().find(|own| own.name == region.name)?;
    let mut bytes = vec![0; region.range.len() as usize];
    let same = vdso.range.len() == region.range.len() && region.range.len() <= IMAGE_BYTES;
    let read = same.then(|| own.read_memory(vdso.range.start(), &mut bytes).ok())??;
    (read == bytes.len()).then_some(bytes)
}

/// Whether a file found by its path is the one that `maps` speaks of.
fn is_file_of(region: &Region, stat: &Stat) -> bool {
    let device = (major(stat.st_dev), minor(stat.st_dev));
    stat.st_ino == region.inode && device == (region.device.major, region.device.minor)
}

/// Opens for reading what so far was only found. Opening a FIFO or a device could block or do something: a path handle cannot.
fn reopen(found: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    use rustix::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    raised(|| openat(rustix::fs::CWD, path, flags, Mode::empty()))
}

struct ModuleFile {
    file: OwnedFd,
    stat: Stat,
}

impl ReadAt for ModuleFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        Ok(retry_on_intr(|| pread(&self.file, &mut *into, offset))?)
    }
    fn len(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
    fn fingerprint(&self) -> [u64; 4] {
        // Asked of the kernel each time: whoever keeps the handle wants to know whether the file has changed since.
        let stat = fstat(&self.file).unwrap_or(self.stat);
        let modified = (stat.st_mtime as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(stat.st_mtime_nsec as _);
        [stat.st_dev, stat.st_ino, stat.st_size as u64, modified]
    }
}

/// Bytes that only memory holds.
struct Image {
    bytes: Vec<u8>,
    range: AddressRange,
}

impl ReadAt for Image {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..));
        let mut rest = rest.unwrap_or_default();
        std::io::Read::read(&mut rest, into)
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn fingerprint(&self) -> [u64; 4] {
        [0, self.range.start().get(), self.len(), 0]
    }
}
