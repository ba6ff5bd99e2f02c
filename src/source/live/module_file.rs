//! Opens the file that a region maps: found in the target's root, proved to be the mapped one, and without a signal to
//! other processes.
//!
//! A process that holds a write lease on a file (`fcntl` F_SETLEASE) gets SIGIO when another program opens that file,
//! and SIGIO ends a process that does not handle it. `/proc/locks` lists the leases. Two kinds of leases are missed:
//! one that is granted between reading the list and the open, and one whose holder is in a PID namespace that the
//! mounted `/proc` does not show.

use super::directory::{Directory, own_file, read_all, read_to_end};
use super::memory::Memory;
use crate::access::ReadAt;
use crate::budget::until_interrupted;
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mapped_file::{HUGETLBFS, OTHER_NUMBERS, SECRETMEM, TMPFS};
use crate::kernel::mounts::{self, Lease};
use crate::kernel::{Device, Region, VirtualAddress, maps};
use crate::own::rights::with_raised_rights;
use crate::source::{Query, sys};
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, accessat, fstat, fstatfs, major, minor, openat, openat2,
};
use rustix::io::{Errno, Result, pread, retry_on_intr};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// Why a file that was found is not opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A device, a FIFO or a directory: opening it could block or have an effect.
    Special,
    /// The kernel makes the bytes when the file is read, and a read of a file such as `/proc/kmsg` empties it.
    MadeUp,
    /// Another file has replaced the one that is mapped.
    Replaced,
    /// This process (0: unknown) holds a lease on the file, and would get a signal if it were opened.
    Leased(u32),
    /// It is unknown whether a process holds a lease on the file.
    LeasesHidden(Errno),
    /// A system call failed.
    Failed(Errno),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Refusal::Failed(error)
    }
}

/// A file that is open for reading.
pub(super) struct ModuleFile {
    file: OwnedFd,
    stat: Stat,
}

/// How a path handle was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// Through `map_files`: the kernel opened the file that the target has mapped, and which the target could open
    /// itself.
    Mapping,
    /// By a path, which the target can make lead to another file.
    Path,
}

impl ModuleFile {
    /// Opens the file of a path handle (O_PATH), if it is a regular file and the one that `region` maps.
    ///
    /// A file that is not known to be the mapped one is opened only with the user's rights. `process` has mapped it.
    pub(super) fn open(
        found: OwnedFd,
        region: &Region,
        way: FoundBy,
        process: (&Memory, &Directory),
    ) -> std::result::Result<Self, Refusal> {
        let (stat, kind) = keeps_bytes(&found)?;
        let mapped = (region.device, region.inode);
        let is_it = numbers(&stat) == mapped;
        if !is_it && !OTHER_NUMBERS.contains(&kind) {
            return Err(Refusal::Replaced);
        }
        let is_program = || process.0.is_of_program(numbers(&stat), process.1);
        let cannot_be_leased = is_it && is_open_here(mapped) || is_program();
        if !cannot_be_leased {
            without_lease([stat.st_ino, region.inode])?;
        }
        let file =
            if is_it || way == FoundBy::Mapping { with_raised_rights(|| reopen(&found))? } else { reopen(&found)? };
        if is_it || as_maps_says(&file)? == Some(mapped) {
            Ok(ModuleFile { file, stat })
        } else {
            Err(Refusal::Replaced)
        }
    }

    /// Opens the file of a path handle (O_PATH) with the user's rights, if it is a regular file with stored bytes. The
    /// target chooses where its paths lead, perhaps to abuse pmdb's rights: a file that a read could change is never
    /// opened.
    pub(super) fn open_unmapped(found: OwnedFd) -> std::result::Result<Self, Refusal> {
        let (stat, _) = keeps_bytes(&found)?;
        if stat.st_size == 0 {
            return Err(Refusal::MadeUp);
        }
        without_lease([stat.st_ino; 2])?;
        let file = reopen(&found)?;
        Ok(ModuleFile { file, stat })
    }

    /// Opens the file of a path handle (O_PATH) from a descriptor of the target, if it is a regular file with stored
    /// bytes. The target may have opened it for writing only, so this user may not be allowed to read it: do not use
    /// [`ReadAt`] for it, but only query its page cache.
    pub(super) fn open_held(found: OwnedFd) -> std::result::Result<Self, Refusal> {
        let (stat, _) = keeps_bytes(&found)?;
        without_lease([stat.st_ino; 2])?;
        let file = with_raised_rights(|| reopen(&found))?;
        Ok(ModuleFile { file, stat })
    }

    /// Returns the user id of the owner.
    pub(super) fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    /// Returns the ctime in seconds and nanoseconds: when the file, its name or its times were last changed. No program
    /// can set it.
    pub(super) fn change_time(&self) -> (i128, i128) {
        let stat = fstat(&self.file).unwrap_or(self.stat);
        (stat.st_ctime.into(), stat.st_ctime_nsec.into())
    }

    /// Returns the [`fingerprint`](ReadAt::fingerprint) of the file when it was opened.
    pub(super) fn first_fingerprint(&self) -> [u64; 4] {
        fingerprint(&self.stat)
    }

    /// Returns the type of the filesystem (`f_type`).
    pub(super) fn filesystem(&self) -> Result<u64> {
        Ok(kind_of(&fstatfs(&self.file)?))
    }

    /// Returns whether a path handle (O_PATH) is of the file that `region` maps. Opens the file only if `stat` does not
    /// decide it.
    pub(super) fn is_behind(found: OwnedFd, region: &Region, process: (&Memory, &Directory)) -> bool {
        let is_so = |stat: Stat| numbers(&stat) == (region.device, region.inode);
        fstat(&found).is_ok_and(is_so) || ModuleFile::open(found, region, FoundBy::Path, process).is_ok()
    }
}

impl AsFd for ModuleFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns device and inode of a file, as `stat` has them.
pub(super) fn numbers(stat: &Stat) -> (Device, u64) {
    let device = Device { major: major(stat.st_dev), minor: minor(stat.st_dev) };
    (device, stat.st_ino)
}

/// Returns the `stat` of a regular file on a filesystem that stores bytes, and the type of that filesystem.
fn keeps_bytes(found: &OwnedFd) -> std::result::Result<(Stat, u64), Refusal> {
    let stat = fstat(found)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::Special);
    }
    let system = fstatfs(found)?;
    if is_made_up(&system) { Err(Refusal::MadeUp) } else { Ok((stat, kind_of(&system))) }
}

/// Fails for a file with one of these inode numbers if opening it would signal another process.
fn without_lease(inodes: [u64; 2]) -> std::result::Result<(), Refusal> {
    match on(inodes) {
        Ok(None) => Ok(()),
        Ok(Some(lease)) => Err(Refusal::Leased(lease.holder)),
        Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(Refusal::Failed(error)),
        Err(error) => Err(Refusal::LeasesHidden(error)),
    }
}

/// Filesystems that store files but count no blocks: `TMPFS_MAGIC`, `RAMFS_MAGIC`, `FUSE_SUPER_MAGIC`,
/// `HUGETLBFS_MAGIC`, `SECRETMEM_MAGIC`.
const KEEPERS: [u64; 5] = [TMPFS, 0x8584_58f6, 0x6573_5546, HUGETLBFS, SECRETMEM];

/// Returns whether the filesystem makes the contents of its files when they are read (proc, sysfs, tracefs, debugfs,
/// cgroup and others). All of them use `simple_statfs` of `fs/libfs.c`, which counts no blocks. The size of a file does
/// not decide it: files of sysfs have one.
fn is_made_up(system: &rustix::fs::StatFs) -> bool {
    system.f_blocks == 0 && !KEEPERS.contains(&kind_of(system))
}

/// Returns the type of a filesystem: a signed number on some machines, and 32 bits wide on all.
pub(super) fn kind_of(system: &rustix::fs::StatFs) -> u64 {
    system.f_type as u64 & 0xffff_ffff
}

/// Opens a file for reading, without an update of its access time if the kernel allows that (for the owner, and with
/// CAP_FOWNER).
fn reopen(found: &OwnedFd) -> Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    match openat(CWD, &path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(CWD, &path, flags, Mode::empty()),
        opened => opened,
    }
}

/// Returns device and inode of a file as `maps` shows them, by mapping the file.
fn as_maps_says(file: &OwnedFd) -> Result<Option<(Device, u64)>> {
    let page = sys::ClosedPages::map(file)?;
    let own = own_file("maps")?;
    if let Ok(mapping) = sys::query_mapping(&own, Query::At(VirtualAddress::new(page.address()))) {
        let (major, minor) = mapping.device;
        return Ok(Some((Device { major, minor }, mapping.inode)));
    }
    let address = VirtualAddress::new(page.address());
    let regions = maps::parse(&read_all(own)?).unwrap_or_default();
    let region = regions.iter().find(|region| region.range.contains(address));
    Ok(region.map(|region| (region.device, region.inode)))
}

impl ReadAt for std::fs::File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, offset)
    }
    fn len(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }
    fn fingerprint(&self) -> [u64; 4] {
        use std::os::unix::fs::MetadataExt;
        let of = |found: std::fs::Metadata| [found.dev(), found.ino(), found.size(), found.mtime_nsec() as u64];
        self.metadata().map_or([0; 4], of)
    }
}

impl ReadAt for ModuleFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        Ok(retry_on_intr(|| pread(&self.file, &mut *into, offset))?)
    }
    fn len(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
    fn fingerprint(&self) -> [u64; 4] {
        // The status is read each time, because callers compare fingerprints to find changes of the file.
        fingerprint(&fstat(&self.file).unwrap_or(self.stat))
    }
}

fn fingerprint(stat: &Stat) -> [u64; 4] {
    let modified = (stat.st_mtime as u64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_mtime_nsec as _);
    [stat.st_dev, stat.st_ino, stat.st_size as u64, modified]
}

/// Returns a lease that opening a file for reading would break, if there is one. The file has one of these inode
/// numbers.
///
/// # Errors
/// Fails if the leases cannot be read, so that it is unknown whether an open would signal a process.
pub(super) fn on(inodes: [u64; 2]) -> Result<Option<Lease>> {
    static LOCKS: OnceLock<OwnedFd> = OnceLock::new();
    let file = match LOCKS.get() {
        Some(file) => file,
        None => {
            let proc = Directory::proc()?;
            match proc.file("locks") {
                Ok(file) => LOCKS.get_or_init(|| file),
                // A kernel without file locks has no leases, but a /proc that shows only processes (`subset=pid`) hides
                // them.
                Err(Errno::NOENT) if has_machine_files(proc) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    };
    let mut budget = until_interrupted();
    let text = read_to_end(|bytes, from| {
        budget.look().map_err(|_| Errno::CANCELED)?;
        pread(file, spare_capacity(bytes), from)
    })?;
    lease_on(&text, inodes, &mut budget).map_err(|_| Errno::CANCELED)
}

/// Returns the first lease that may be on a file with one of these inode numbers. Each line costs one step.
fn lease_on(text: &[u8], inodes: [u64; 2], budget: &mut Budget) -> std::result::Result<Option<Lease>, OutOfBudget> {
    for lease in mounts::leases(text) {
        budget.go_on()?;
        if let Some(lease) = lease.filter(|lease| inodes.iter().any(|&inode| lease.may_be_on(inode))) {
            return Ok(Some(lease));
        }
    }
    Ok(None)
}

/// Returns whether pmdb runs from the file with these numbers in `maps`, as its executable or a library. Such a file
/// has no write lease. The kernel grants one only to the process that alone has the file open (`check_conflicting_open`
/// in fs/locks.c, which counts readers since Linux 5.3), and opening the file broke an earlier one. The same is true
/// for the executable of another process.
///
/// This avoids reading `/proc/locks`, for which the kernel waits some 10 ms until no processor changes a lock.
fn is_open_here(file: (Device, u64)) -> bool {
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

/// Returns the path of a file in the target's root, if the target has another root in the same mount namespace
/// (chroot): `maps` shows paths from the reader's root. `link` leads to the target's root.
fn inside<'p>(directory: &Directory, link: &str, path: &'p [u8]) -> Option<&'p [u8]> {
    let inner = path.strip_prefix(&*directory.link(link).ok()?)?;
    inner.starts_with(b"/").then_some(inner)
}

/// Calls a function that opens a file, with or without raised rights.
type WithRights<'r> = &'r dyn Fn(&mut dyn FnMut() -> Result<OwnedFd>) -> Result<OwnedFd>;

/// The root directory of the target, opened when it is first needed.
pub(super) struct Root<'a> {
    directory: &'a Directory,
    memory: &'a Memory,
    handle: Option<Result<OwnedFd>>,
}

impl<'a> Root<'a> {
    /// Makes the root of the process with this directory in `/proc`.
    pub(super) fn of(directory: &'a Directory, memory: &'a Memory) -> Self {
        Root { directory, memory, handle: None }
    }

    /// Opens a handle (O_PATH) on the file at this path below the root. A link at its end is not followed.
    pub(super) fn find(&mut self, path: &[u8]) -> Result<OwnedFd> {
        self.resolve(path, &|open| with_raised_rights(open), (OFlags::NOFOLLOW, ResolveFlags::empty()))
    }

    /// The same if no directory on the path is a link.
    pub(super) fn find_without_links(&mut self, path: &[u8]) -> Result<OwnedFd> {
        self.resolve(path, &|open| with_raised_rights(open), (OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS))
    }

    /// Opens a handle (O_PATH) on the target of a path below the root, links included. The target chooses where links
    /// lead, so only the user's rights are used.
    pub(super) fn follow(&mut self, path: &[u8]) -> Result<OwnedFd> {
        self.resolve(path, &|open| open(), (OFlags::empty(), ResolveFlags::empty()))
    }

    fn resolve(&mut self, path: &[u8], rights: WithRights, (last, links): (OFlags, ResolveFlags)) -> Result<OwnedFd> {
        let (directory, memory) = (self.directory, self.memory);
        let root = self.handle.get_or_insert_with(|| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            with_raised_rights(|| openat(directory.fd(), memory.path("root"), flags, Mode::empty()))
        });
        let root = root.as_ref().map_err(|error| *error)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC | last;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | links;
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

#[cfg(test)]
mod tests {
    use super::super::handle::Handle;
    use super::*;
    use crate::budget::tests::whole_or_given_up;
    use crate::kernel::{AddressRange, Name, Permissions};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use std::path::Path;

    fn found(path: &Path) -> OwnedFd {
        openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("a file")
    }

    /// A region that maps the file, or another one.
    fn region(path: &Path, is_same: bool) -> Region {
        let (device, inode) = numbers(&fstat(found(path)).expect("its numbers"));
        let (start, end) = (VirtualAddress::new(0x1000), VirtualAddress::new(0x2000));
        Region {
            range: AddressRange::new(start, end).expect("a range"),
            permissions: Permissions::default(),
            offset: 0,
            device,
            inode: if is_same { inode } else { inode ^ 1 },
            name: Name::from("/file"),
            deleted: false,
        }
    }

    #[test]
    fn leases_are_looked_through_to_the_end_or_given_up() {
        let text = "7: POSIX  ADVISORY  WRITE 816 00:1f:1239 0 EOF\n".repeat(300)
            + "8: LEASE  ACTIVE    WRITE 812 08:01:1234 0 EOF\n";
        for inode in [1234, 1239] {
            let given_up = whole_or_given_up(|mut budget| lease_on(text.as_bytes(), [inode; 2], &mut budget));
            assert!(given_up > 50, "{given_up}");
        }
    }

    #[test]
    fn a_file_that_is_not_the_mapped_one_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 100]).expect("a file");
        let kind = kind_of(&fstatfs(found(&path)).expect("its file system"));
        if OTHER_NUMBERS.contains(&kind) {
            return crate::skips::skip(
                "a_file_that_is_not_the_mapped_one_is_not_opened",
                "the temporary folder gives files other numbers than maps",
            );
        }
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
        inotify::add_watch(&watch, &path, WatchFlags::OPEN).expect("a watch");
        let opens = || {
            let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
            inotify::Reader::new(&watch, &mut buffer).next().is_ok()
        };
        let own = Handle::open(std::process::id()).expect("this process");
        let memory = Memory::open(&own).expect("its memory");
        for way in [FoundBy::Path, FoundBy::Mapping] {
            let refused = ModuleFile::open(found(&path), &region(&path, false), way, (&memory, own.directory())).err();
            assert!(refused == Some(Refusal::Replaced) && !opens());
            assert!(ModuleFile::open(found(&path), &region(&path, true), way, (&memory, own.directory())).is_ok());
            assert!(opens());
        }
    }

    #[test]
    fn a_file_whose_contents_the_kernel_makes_on_reading_is_not_opened() {
        let own = Handle::open(std::process::id()).expect("this process");
        let memory = Memory::open(&own).expect("its memory");
        for path in ["/proc/version", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"] {
            let path = Path::new(path);
            if !path.exists() {
                continue;
            }
            let refused = ModuleFile::open(found(path), &region(path, true), FoundBy::Path, (&memory, own.directory()));
            assert!(refused.err() == Some(Refusal::MadeUp), "{}", path.display());
        }
    }

    #[test]
    fn each_reason_has_its_sentence() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 100]).expect("a file");
        let own = Handle::open(std::process::id()).expect("this process");
        let memory = Memory::open(&own).expect("its memory");
        let open = |path: &Path, is_same| {
            ModuleFile::open(found(path), &region(path, is_same), FoundBy::Path, (&memory, own.directory())).err()
        };
        let kind = kind_of(&fstatfs(found(&path)).expect("its file system"));
        // A file system that gives other numbers cannot show it this way.
        let replaced = if OTHER_NUMBERS.contains(&kind) { Some(Refusal::Replaced) } else { open(&path, false) };
        let locks = b"8: LEASE  ACTIVE    WRITE 812 08:01:1234 0 EOF\n";
        let lease = lease_on(&locks[..], [1234; 2], &mut Budget::unlimited()).expect("read").expect("a lease");
        let no_handle = |path: &Path| openat(CWD, path, OFlags::PATH, Mode::empty()).err().map(Refusal::from);
        let made = [
            (open(folder.path(), true), "/file is not a regular file: pmdb does not open it"),
            (open(Path::new("/proc/version"), true), "/file is empty, or the kernel generates its contents"),
            (replaced, "/file was replaced"),
            (Some(Refusal::Leased(lease.holder)), "process 812 holds a lease on /file: opening it would signal"),
            (Some(Refusal::Leased(0)), "a lease is held on /file: opening it would signal the holder"),
            (Some(Refusal::LeasesHidden(Errno::ACCESS)), "/file is not opened: /proc/locks cannot be read"),
            (no_handle(&folder.path().join("none")), "opening /file: "),
            (Some(Refusal::Failed(Errno::ACCESS)), "may not open /file"),
        ];
        let mut seen = [false; 6];
        for (refusal, sentence) in made {
            let refusal = refusal.expect("a refusal");
            // A new reason belongs into the table.
            let number = match refusal {
                Refusal::Special => 0,
                Refusal::MadeUp => 1,
                Refusal::Replaced => 2,
                Refusal::Leased(_) => 3,
                Refusal::LeasesHidden(_) => 4,
                Refusal::Failed(_) => 5,
            };
            seen[number] = true;
            let said = super::super::modules::not_opened(&Name::from("/file"), refusal).to_string();
            assert!(said.contains(sentence), "{said}");
        }
        assert_eq!(seen, [true; 6]);
    }
}
