//! Which file systems a server answers for: another program or machine, which may not answer at all.

use super::directory::{Directory, own_file, read_to_end};
use super::memory::Memory;
use crate::kernel::mounts::{self, Mount};
use crate::kernel::{Device, Region};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, pread};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Types of file systems with a server, as mountinfo names them. FUSE has subtypes (`fuse.sshfs`).
const SERVED: [&str; 14] = [
    "fuse", "fuseblk", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "coda", "lustre", "gfs2",
    "ocfs2",
];

fn is_served(mount: &Mount) -> bool {
    let kind = mount.filesystem.split('.').next();
    kind.is_some_and(|kind| SERVED.contains(&kind))
}

/// The mounts that a process sees, as far as they can be read.
pub(super) struct Storage(Vec<Mount>);

impl Storage {
    /// The mounts of the process with this directory and memory. The kernel takes longer to write mountinfo than to
    /// answer most other questions, and `who` asks about every process: so the mounts of pmdb itself serve for all that
    /// see the same ones.
    pub(super) fn of(directory: &Directory, memory: &Memory) -> Arc<Storage> {
        let outlook = Outlook::of(directory, |name| memory.path(name));
        if outlook.is_some() && outlook == *own_outlook() {
            return Storage::own();
        }
        let text = directory.read(&memory.path("mountinfo"));
        Arc::new(Storage(mounts::parse(&text.unwrap_or_default()).unwrap_or_default()))
    }

    /// The mounts of pmdb itself.
    pub(super) fn own() -> Arc<Storage> {
        own(|own| own.storage.clone()).unwrap_or_else(|_| Arc::new(Storage(Vec::new())))
    }

    /// Whether a server answers for the file behind `region`. `None` if no mount has its device.
    pub(super) fn serves(&self, region: &Region) -> Option<bool> {
        let mut mounts = self.0.iter().filter(|mount| mount.device == region.device);
        mounts.next().map(is_served)
    }

    /// The device of the file system that `path` leads to, links aside, if a server answers for it.
    pub(super) fn served_at(&self, path: &[u8]) -> Option<Device> {
        let holds = |mount: &&Mount| {
            let point = mount.point.as_bytes();
            let rest = path.strip_prefix(point.strip_suffix(b"/").unwrap_or(point));
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        // Of several mounts on one directory the last one is visible.
        let mounts = self.0.iter().filter(holds);
        let nearest = mounts.max_by_key(|mount| mount.point.as_bytes().len());
        nearest.filter(|mount| is_served(mount)).map(|mount| mount.device)
    }
}

/// What decides which mounts a process sees.
#[derive(PartialEq)]
struct Outlook {
    /// Its mount namespace, as the link in `/proc` names it.
    namespace: Vec<u8>,
    /// Device and inode of its root directory: another one after chroot(2).
    root: (Device, u64),
}

impl Outlook {
    fn of(directory: &Directory, path: impl Fn(&str) -> String) -> Option<Self> {
        Some(Outlook {
            namespace: directory.link(&path("ns/mnt")).ok()?,
            root: directory.behind_link(&path("root")).ok()?,
        })
    }
}

/// That of pmdb itself, which changes neither.
fn own_outlook() -> &'static Option<Outlook> {
    static OWN: OnceLock<Option<Outlook>> = OnceLock::new();
    OWN.get_or_init(|| Outlook::of(&Directory::open("/proc/self").ok()?, str::to_owned))
}

/// The mounts of pmdb itself, as they were last read.
static OWN: Mutex<Option<OwnMounts>> = Mutex::new(None);

/// The text of mountinfo of pmdb itself.
pub(super) fn own_text() -> Result<Vec<u8>, Errno> {
    own(|own| own.text.clone())
}

/// What `wanted` takes of the mounts of pmdb itself. One answer needs them several times, so they are read again only
/// after they have changed.
fn own<T>(wanted: impl Fn(&OwnMounts) -> T) -> Result<T, Errno> {
    let mut kept = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.take() {
        Some(own) if own.is_current() => Ok(wanted(kept.insert(own))),
        _ => Ok(wanted(kept.insert(OwnMounts::read()?))),
    }
}

/// Mounts, with the open file that they were read from, and its text.
struct OwnMounts {
    mountinfo: OwnedFd,
    text: Vec<u8>,
    storage: Arc<Storage>,
}

impl OwnMounts {
    fn read() -> Result<OwnMounts, Errno> {
        let mountinfo = own_file("mountinfo")?;
        let text = read_to_end(|bytes, from| pread(&mountinfo, spare_capacity(bytes), from))?;
        let storage = Arc::new(Storage(mounts::parse(&text).unwrap_or_default()));
        Ok(OwnMounts { mountinfo, text, storage })
    }

    /// Whether no mount has changed since the file was opened. A poll of the open file reports each change once
    /// (`mounts_poll` in fs/proc_namespace.c).
    fn is_current(&self) -> bool {
        let mut asked = [PollFd::new(&self.mountinfo, PollFlags::PRI)];
        let now = Timespec::default();
        poll(&mut asked, Some(&now)) == Ok(0)
    }
}

/// Whether a file in no mount is the kernel's own memory, which is mounted nowhere. Any other file system was unmounted
/// while in use (`umount -l`), as is done with storage that does not answer.
pub(super) fn is_kernels_own(region: &Region) -> bool {
    let name = region.name.as_bytes();
    let own: [&[u8]; 6] = [b"/memfd:", b"/SYSV", b"/dev/zero", b"/anon_hugepage", b"/secretmem", b"/[aio]"];
    !name.starts_with(b"/") || own.iter().any(|own| name.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_mounts_are_read_once_while_they_stay_the_same() {
        let read = Storage::own();
        assert!(!read.0.is_empty());
        assert!(Arc::ptr_eq(&read, &Storage::own()));
    }

    #[test]
    fn a_server_is_known_by_the_type_of_its_mount() {
        let text = b"21 1 254:0 / / rw - ext4 /dev/vda rw\n\
            22 21 0:50 / /mnt/far rw - fuse.sshfs host: rw\n\
            23 21 0:51 / /mnt/far/near rw - tmpfs tmpfs rw\n\
            24 21 0:52 / /net rw - nfs4 host:/ rw\n";
        let storage = Storage(mounts::parse(text).expect("rows"));
        let far = Some(Device { major: 0, minor: 50 });
        for (path, served) in [
            ("/usr/lib/libc.so.6", None),
            ("/mnt/far", far),
            ("/mnt/far/lib/x.so", far),
            ("/mnt/farther", None),
            ("/mnt/far/near/x.so", None),
            ("/net/x", Some(Device { major: 0, minor: 52 })),
        ] {
            assert_eq!(storage.served_at(path.as_bytes()), served, "{path}");
        }
    }
}
