//! The mounts of a process, by which storage that may not answer (FUSE, network) is recognized.

use super::directory::{Directory, own_file, read_to_end};
use super::memory::Memory;
use crate::access::{self, Result};
use crate::budget::{Budget, OutOfBudget, until_interrupted};
use crate::kernel::mounts::Mount;
use crate::kernel::{Device, Name, Region};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, pread};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The mounts that a process sees, as far as they can be read.
pub(super) struct Storage {
    mounts: Vec<Mount>,
    /// Those of pmdb, if they are others: mostly, the overlay of a container was mounted outside.
    own: Option<Arc<Storage>>,
}

/// The most overlays above each other (`FILESYSTEM_MAX_STACK_DEPTH` in include/linux/fs.h).
const MOST_STACKED: usize = 2;

impl Storage {
    /// Reads the mounts of the process with this directory and memory. The kernel needs more time for mountinfo than
    /// for most files, and `who` needs the mounts of every process. So those of pmdb are used for all processes that
    /// see the same ones.
    pub(super) fn of(directory: &Directory, memory: &Memory) -> Result<Arc<Storage>> {
        let outlook = Outlook::of(directory, |name| memory.path(name));
        if outlook.is_some() && outlook == *own_outlook() {
            return Storage::own();
        }
        let text = directory.read(&memory.path("mountinfo"));
        let own = Storage::own()?;
        Storage::new(&text.unwrap_or_default(), Some(own), &mut until_interrupted())
    }

    /// Decodes the mounts in a text; none if it is damaged. Each costs one step.
    pub(super) fn new(text: &[u8], own: Option<Arc<Storage>>, budget: &mut Budget) -> Result<Arc<Storage>> {
        let mounts = access::mounts(text, budget).unwrap_or_default();
        budget.check()?;
        Ok(Arc::new(Storage { mounts, own }))
    }

    /// Returns the mounts of pmdb.
    pub(super) fn own() -> Result<Arc<Storage>> {
        match own(|own| own.storage.clone()) {
            Err(Errno::CANCELED) => Err(OutOfBudget::Interrupted.into()),
            own => Ok(own.unwrap_or_else(|_| Arc::new(Storage { mounts: Vec::new(), own: None }))),
        }
    }

    /// Returns whether a server provides the file that `region` maps. `None` if no mount has its device.
    pub(super) fn serves(&self, region: &Region) -> Option<bool> {
        let mount = self.mounts.iter().find(|mount| mount.device == region.device)?;
        Some(self.is_served(mount, MOST_STACKED))
    }

    /// Returns the device of a filesystem through which `path` leads, without regard to links, if a server provides it.
    pub(super) fn served_at(&self, path: &[u8]) -> Option<Device> {
        self.served_below(path, MOST_STACKED)
    }

    /// Returns the device of a filesystem through which `path` leads, if a server may provide it or mounts what is
    /// below. Returns `device`, which is mounted at `path`, if such a server is possible: in a chroot the mount of the
    /// root is not listed, and damaged mounts are not known at all. Paths of the layers of an overlay prove nothing:
    /// they may have links, or be those of another root.
    pub(super) fn served_above(&self, device: Device, path: &[u8]) -> Option<Device> {
        let may_wait = |mount: &&Mount| mount.is_served() || mount.is_stacked() || mount.filesystem == "autofs";
        let served = self.on_the_way_to(path).find(may_wait);
        let is_listed = |is: &dyn Fn(&Mount) -> bool| self.on_the_way_to(path).any(is);
        let is_known = is_listed(&|mount| mount.point.as_bytes() == b"/")
            && is_listed(&|mount| mount.point.as_bytes() == path && mount.device == device);
        served.map(|mount| mount.device).or_else(|| (!is_known).then_some(device))
    }

    /// Returns the same as [`served_at`](Self::served_at). Only so many overlays are examined above each other.
    fn served_below(&self, path: &[u8], stacked: usize) -> Option<Device> {
        self.on_the_way_to(path).find(|mount| self.is_served(mount, stacked)).map(|mount| mount.device)
    }

    /// Returns whether a server provides the files of a mount, or those of a layer.
    fn is_served(&self, mount: &Mount, stacked: usize) -> bool {
        let Some(below) = stacked.checked_sub(1) else {
            return mount.is_served();
        };
        let layer_is_served = |layer: Name| {
            let lists = [Some(self), self.own.as_deref()];
            lists.into_iter().flatten().any(|list| list.served_below(layer.as_bytes(), below).is_some())
        };
        mount.is_served() || mount.layers().any(layer_is_served)
    }

    /// Returns the mounts at `path` and at the directories above it.
    fn on_the_way_to(&self, path: &[u8]) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(move |mount| {
            let point = mount.point.as_bytes();
            let rest = path.strip_prefix(point.strip_suffix(b"/").unwrap_or(point));
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        })
    }
}

/// The facts that decide which mounts a process sees.
#[derive(PartialEq)]
struct Outlook {
    /// The mount namespace, as the link in `/proc` names it.
    namespace: Vec<u8>,
    /// Device and inode of the root directory, which chroot(2) changes.
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

/// Returns the outlook of pmdb, which never changes.
fn own_outlook() -> &'static Option<Outlook> {
    static OWN: OnceLock<Option<Outlook>> = OnceLock::new();
    OWN.get_or_init(|| Outlook::of(&Directory::open("/proc/self").ok()?, str::to_owned))
}

/// The mounts of pmdb when they were last read.
static OWN: Mutex<Option<OwnMounts>> = Mutex::new(None);

/// Returns the text of mountinfo of pmdb.
pub(super) fn own_text() -> rustix::io::Result<Vec<u8>> {
    own(|own| own.text.clone())
}

/// Returns what `wanted` selects from the mounts of pmdb. One command needs them several times, so they are read again
/// only after they have changed.
fn own<T>(wanted: impl Fn(&OwnMounts) -> T) -> rustix::io::Result<T> {
    let mut kept = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.take() {
        Some(own) if own.is_current() => Ok(wanted(kept.insert(own))),
        _ => Ok(wanted(kept.insert(OwnMounts::read()?))),
    }
}

/// Mounts, with the text and the open file from which they were read.
struct OwnMounts {
    mountinfo: OwnedFd,
    text: Vec<u8>,
    storage: Arc<Storage>,
}

impl OwnMounts {
    fn read() -> rustix::io::Result<OwnMounts> {
        let mountinfo = own_file("mountinfo")?;
        let text = read_to_end(|bytes, from| pread(&mountinfo, spare_capacity(bytes), from))?;
        let storage = Storage::new(&text, None, &mut until_interrupted()).map_err(|_| Errno::CANCELED)?;
        Ok(OwnMounts { mountinfo, text, storage })
    }

    /// Returns whether no mount has changed since the file was opened. A poll of the open file reports each change once
    /// (`mounts_poll` in fs/proc_namespace.c).
    fn is_current(&self) -> bool {
        let mut asked = [PollFd::new(&self.mountinfo, PollFlags::PRI)];
        let now = Timespec::default();
        poll(&mut asked, Some(&now)) == Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Error;
    use crate::budget::tests::whole_or_given_up;

    /// Only a way that is listed as a whole is known to need no server.
    #[test]
    fn a_way_without_a_server_is_proved() {
        const ROOT: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw\n";
        const SHM: &str = "25 22 0:23 / /dev/shm rw - tmpfs tmpfs rw\n";
        let above = |mounts: &[&str], point: &str| {
            let storage = Storage::new(mounts.concat().as_bytes(), None, &mut until_interrupted()).expect("mounts");
            storage.served_above(Device { major: 0, minor: 23 }, point.as_bytes()).map(|device| device.minor)
        };
        assert_eq!(above(&[ROOT, SHM], "/dev/shm"), None);
        let below = "26 25 0:23 / /home/user/far/tmp rw - tmpfs tmpfs rw\n";
        let served = "24 22 0:40 / /home/user/far rw - fuse.sshfs none rw\n";
        assert_eq!(above(&[ROOT, served, below], "/home/user/far/tmp"), Some(40));
        let automatic = "24 22 0:41 / /home/user rw - autofs none rw\n";
        assert_eq!(above(&[ROOT, automatic, below], "/home/user/far/tmp"), Some(41));
        // Whatever is written of its layers.
        let overlay = "24 22 0:42 / /home rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d\n";
        assert_eq!(above(&[ROOT, overlay, below], "/home/user/far/tmp"), Some(42));
        // In a chroot; another filesystem; nothing that can be read.
        assert_eq!(above(&[SHM], "/dev/shm"), Some(23));
        assert_eq!(above(&[ROOT, "25 22 0:24 / /dev/shm rw - tmpfs tmpfs rw\n"], "/dev/shm"), Some(23));
        assert_eq!(above(&[], "/dev/shm"), Some(23));
        assert_eq!(above(&[ROOT, SHM, "damaged\n"], "/dev/shm"), Some(23));
    }

    #[test]
    fn own_mounts_are_read_once_while_they_stay_the_same() {
        let read = Storage::own().expect("mounts");
        assert!(!read.mounts.is_empty());
        assert!(Arc::ptr_eq(&read, &Storage::own().expect("mounts")));
    }

    #[test]
    fn a_server_is_known_by_the_type_of_its_mount() {
        let text = b"21 1 254:0 / / rw - ext4 /dev/vda rw\n\
            22 21 0:50 / /mnt/far rw - fuse.sshfs host: rw\n\
            23 21 0:51 / /mnt/far/near rw - tmpfs tmpfs rw\n\
            24 21 0:52 / /net rw - nfs4 host:/ rw\n";
        let given_up = whole_or_given_up(|mut budget| match Storage::new(text, None, &mut budget) {
            Ok(storage) => Ok(storage.mounts.clone()),
            Err(Error::OutOfBudget(why)) => Err(why),
            Err(error) => panic!("{error}"),
        });
        assert!(given_up > 0);
        let storage = Storage::new(text, None, &mut Budget::unlimited()).expect("mounts");
        let far = Some(Device { major: 0, minor: 50 });
        for (path, served) in [
            ("/usr/lib/libc.so.6", None),
            ("/mnt/far", far),
            ("/mnt/far/lib/x.so", far),
            ("/mnt/farther", None),
            ("/mnt/far/near/x.so", far),
            ("/net/x", Some(Device { major: 0, minor: 52 })),
        ] {
            assert_eq!(storage.served_at(path.as_bytes()), served, "{path}");
        }
    }

    #[test]
    fn an_overlay_is_served_if_a_layer_is() {
        let storage = |texts: &[&str], own| {
            Storage::new(texts.concat().as_bytes(), own, &mut until_interrupted()).expect("mounts")
        };
        const FAR: &str = "22 1 0:50 / /mnt/far rw - fuse.sshfs host: rw\n";
        const LOWER: &str = "23 1 0:60 / /merged rw - overlay overlay rw,lowerdir=/etc:/mnt/far/layer\n";
        const UPPER: &str = "24 1 0:61 / /twice rw - overlay overlay rw,lowerdir=/merged/a:/b\n";
        let served = |storage: &Storage, path: &str| storage.served_at(path.as_bytes()).map(|device| device.minor);
        let here = storage(&[FAR, LOWER, UPPER], None);
        assert_eq!(served(&here, "/merged/lib/x.so"), Some(60));
        assert_eq!(served(&here, "/twice/x.so"), Some(61));
        assert_eq!(served(&storage(&[LOWER, UPPER], None), "/merged/x.so"), None);
        // A container does not see what its root was made of.
        let root = "23 1 0:60 / / rw - overlay overlay rw,lowerdir=/mnt/far/layer,upperdir=/c,workdir=/d\n";
        let inner = storage(&[root], Some(storage(&[FAR], None)));
        assert_eq!(served(&inner, "/usr/lib/x.so"), Some(60));
        // Each above the other, as no kernel mounts them.
        let ring = "25 1 0:62 / /ring rw - overlay overlay rw,lowerdir=/ring/a:/ring/b\n";
        assert_eq!(served(&storage(&[ring], None), "/ring/x"), None);
    }
}
