//! Mounts (`/proc/PID/mountinfo`): where each filesystem is, and its device number. Leases (`/proc/locks`): the holder
//! of a lease gets a signal when another program opens the file.

use super::text::{self, BadLine};
use super::{Device, Name};

/// The kinds of files whose contents are not on a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MemoryFiles {
    /// Shared memory: pages that only swap backs.
    Shared,
    /// Pages of the hugetlb pool.
    Hugetlb,
    /// Contents that the kernel makes: what can be mapped is memory of the kernel or of a driver.
    Generated,
}

/// The storage of the files with one device number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FilesOn {
    /// In memory only.
    Memory(MemoryFiles),
    /// On a disk or a server.
    Storage,
    /// No mounted filesystem with this number is visible.
    NoMount,
}

/// A controller of cgroups whose limits may refuse a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Controller {
    /// All memory that is charged to a group.
    Memory,
    /// Pages of the hugetlb pool.
    Pool,
}

impl Controller {
    /// Returns the name of the controller in mount options and in `/proc/PID/cgroup`.
    pub const fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Pool => "hugetlb",
        }
    }
}

/// One mount.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Mount {
    /// The number of the mount, as `mnt_id` of fdinfo gives it.
    pub id: u32,
    /// `st_dev` of the files on the mount (btrfs and overlayfs give others).
    pub device: Device,
    /// The directory of the filesystem that is mounted: `/` unless only a part of it is.
    pub root: Name,
    /// The directory at which the filesystem is mounted.
    pub point: Name,
    /// The type of the filesystem: `ext4`, `tmpfs` …
    pub filesystem: String,
    /// Options of the filesystem, with commas between them.
    pub options: String,
}

impl Mount {
    /// Returns where the files of the mount are stored.
    pub fn files(&self) -> FilesOn {
        self.memory_files().map_or(FilesOn::Storage, FilesOn::Memory)
    }

    /// Returns the kind of memory that holds the files of the mount, if they are only in memory. devtmpfs is tmpfs by
    /// another name.
    pub fn memory_files(&self) -> Option<MemoryFiles> {
        match &*self.filesystem {
            "tmpfs" | "devtmpfs" => Some(MemoryFiles::Shared),
            "rootfs" if self.has_options_of_tmpfs() => Some(MemoryFiles::Shared),
            "hugetlbfs" => Some(MemoryFiles::Hugetlb),
            "proc" | "sysfs" | "debugfs" | "tracefs" | "securityfs" | "configfs" | "bpf" | "resctrl" => {
                Some(MemoryFiles::Generated)
            }
            _ => None,
        }
    }

    /// Returns whether the options are those of tmpfs. The filesystem of an initramfs, `rootfs`, is tmpfs or ramfs
    /// (rootfs_init_fs_context in init/do_mounts.c), and ramfs has only `mode`. The kernel prints the size unless it is
    /// half of the memory (shmem_show_options in mm/shmem.c): that of rootfs was computed before boot memory was freed.
    fn has_options_of_tmpfs(&self) -> bool {
        let mut options = self.options.split(',').map(|option| option.split('=').next());
        options.any(|name| matches!(name, Some("size" | "nr_inodes" | "inode64" | "inode32" | "huge")))
    }

    /// Returns whether another program or machine serves the files, so that a request may never return.
    pub fn is_served(&self) -> bool {
        let kind = self.filesystem.split('.').next();
        kind.is_some_and(|kind| SERVED.contains(&kind))
    }

    /// Returns whether the files are those of other filesystems, which may be anywhere.
    pub fn is_stacked(&self) -> bool {
        matches!(&*self.filesystem, "overlay" | "ecryptfs")
    }

    /// Returns the directories of an overlay that have its files, as they were given to mount(2): seen from the root or
    /// the working directory of that process, and maybe through links.
    pub fn layers(&self) -> impl Iterator<Item = Name> {
        let is_overlay = self.filesystem == "overlay";
        let options = self.options.split(',').filter_map(|option| option.split_once('=')).filter(move |_| is_overlay);
        options.flat_map(|(name, value)| {
            // The kernel writes the colon of a path as `\:` or in octal digits (ovl_show_options in
            // fs/overlayfs/params.c), and a backslash always in octal digits.
            let value = value.replace("\\134:", "\\072");
            let separator = if name == "lowerdir" { ':' } else { '\0' };
            let is_layer = matches!(name, "lowerdir" | "lowerdir+" | "datadir+" | "upperdir");
            let paths = value.split(separator).filter(|path| is_layer && !path.is_empty());
            paths.map(|path| Name::new(text::unescape_octal(path.as_bytes()))).collect::<Vec<_>>()
        })
    }

    /// The value of an option that is written as `name=value`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the path below this mount of the group in `/proc/PID/cgroup`, which has a line for each hierarchy. The
    /// mount must be one of a cgroup hierarchy.
    pub fn group_in(&self, text: &[u8], controller: Controller) -> Option<Vec<u8>> {
        let path = groups(text).find_map(|(controllers, path)| {
            let is_this = match self.filesystem.as_bytes() {
                b"cgroup2" => controllers.is_empty(),
                _ => has_controller(controllers, controller),
            };
            is_this.then_some(path)
        })?;
        let root = self.root.as_bytes();
        // The group is outside of the reader's cgroup namespace.
        if path.split(|&byte| byte == b'/').any(|part| part == b"..") {
            return None;
        }
        let below = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root))?;
        Some(below.strip_suffix(b"/").unwrap_or(below).to_vec())
    }

    /// Returns whether this is the mount of a cgroup v1 hierarchy with this controller.
    fn is_first_with(&self, controller: Controller) -> bool {
        self.filesystem == "cgroup" && has_controller(self.options.as_bytes(), controller)
    }
}

/// Returns the hierarchy that a controller uses: one of cgroup v1, or otherwise that of cgroup v2.
pub fn hierarchy(mounts: &[Mount], controller: Controller) -> Option<&Mount> {
    let first = mounts.iter().find(|mount| mount.is_first_with(controller));
    first.or_else(|| mounts.iter().find(|mount| mount.filesystem == "cgroup2"))
}

/// Returns whether a cgroup v1 hierarchy has the controller, by `/proc/PID/cgroup`. That file also lists hierarchies
/// that are not mounted here.
pub fn is_in_first_version(text: &[u8], controller: Controller) -> bool {
    groups(text).any(|(controllers, _)| has_controller(controllers, controller))
}

/// Returns the lines of `/proc/PID/cgroup`: controllers with commas between them, and a path.
fn groups(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
        Some((parts.next()?, parts.next()?))
    })
}

fn has_controller(names: &[u8], controller: Controller) -> bool {
    names.split(|&byte| byte == b',').any(|one| one == controller.name().as_bytes())
}

/// Decodes the file line by line: `id parent major:minor root point options [tags] - type source options`.
pub fn mounts(bytes: &[u8]) -> impl Iterator<Item = Result<Mount, BadLine>> {
    text::lines(bytes).map(|line| mount(line.bytes).ok_or_else(|| line.bad("mountinfo")))
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = text::fields(line);
    let id = text::decimal(fields.next()?)?;
    let mut fields = fields.skip(1);
    let (major, minor) = text::split_once(fields.next()?, b':')?;
    let path = |field| Name::new(text::unescape_octal(field));
    let (root, point) = (path(fields.next()?), path(fields.next()?));
    // Any number of tags may precede the dash.
    let mut rest = fields.skip(1).skip_while(|field| *field != b"-");
    // The source, between the type and the options, may be empty.
    let (filesystem, options) = (rest.nth(1)?, rest.last().unwrap_or_default());
    Some(Mount {
        id,
        root,
        point,
        device: Device { major: text::decimal(major)?, minor: text::decimal(minor)? },
        filesystem: text::lossy(filesystem),
        options: text::lossy(options),
    })
}

/// Types of filesystems with a server, as mountinfo names them. FUSE has subtypes (`fuse.sshfs`).
const SERVED: [&str; 14] = [
    "fuse", "fuseblk", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "coda", "lustre", "gfs2",
    "ocfs2",
];

/// A lease that opening the file for reading would break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The process id of the holder; 0 if the kernel does not show it.
    pub holder: u32,
    /// The inode number of the file.
    pub inode: u64,
}

impl Lease {
    /// Whether the lease may be on a file with this inode number. Device numbers are not compared: overlayfs and btrfs
    /// show different ones in different places. Only 32 bits are compared: a 32-bit kernel prints no more of the
    /// number.
    pub fn may_be_on(&self, inode: u64) -> bool {
        self.inode as u32 == inode as u32
    }
}

/// Returns for each line the lease, if opening the file for reading would break it. A line that is not understood (a
/// blocked lock, a kind that a later kernel adds) is no lease.
///
/// A lease for reading (`F_RDLCK`) conflicts only with writers. A lease that is being broken (`BREAKING`) is listed
/// under the type that it will have, and its file cannot be opened yet.
pub fn leases(bytes: &[u8]) -> impl Iterator<Item = Option<Lease>> {
    text::lines(bytes).map(|line| lease(line.fields()))
}

/// `1: LEASE ACTIVE WRITE 812 08:01:1234 0 EOF` (`lock_get_status` in fs/locks.c); delegations have the same form.
fn lease<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> Option<Lease> {
    let (_number, kind) = (fields.next()?, fields.next()?);
    let (standing, access) = (fields.next()?, fields.next()?);
    let is_lease = matches!(kind, b"LEASE" | b"DELEG");
    if !is_lease || (standing, access) == (b"ACTIVE", b"READ") {
        return None;
    }
    // The kernel prints -1 for a holder on another machine.
    let holder = text::decimal(fields.next()?).unwrap_or(0);
    let inode = fields.next()?.rsplit(|&byte| byte == b':').next()?;
    Some(Lease { holder, inode: text::decimal(inode)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Vec<Mount>, BadLine> {
        mounts(bytes).collect()
    }

    #[test]
    fn rows() {
        let text = b"24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw,size=12k\n\
            25 24 0:23 / /dev/shm rw shared:5 master:1 - tmpfs tmpfs rw\n\
            26 24 0:30 / /dev/hugepages rw - hugetlbfs hugetlbfs rw,pagesize=2M\n\
            27 1 254:0 / /with\\040blank\\040-\\040dash rw - ext4 /dev/vda rw\n";
        let mounts = parse(text).expect("rows");
        let rows: Vec<_> =
            mounts.iter().map(|m| (m.device.major, m.device.minor, &*m.filesystem, m.memory_files())).collect();
        assert_eq!(
            rows,
            [
                (0, 6, "devtmpfs", Some(MemoryFiles::Shared)),
                (0, 23, "tmpfs", Some(MemoryFiles::Shared)),
                (0, 30, "hugetlbfs", Some(MemoryFiles::Hugetlb)),
                (254, 0, "ext4", None)
            ]
        );
        assert_eq!(parse(b"24 27 0:6 / /dev rw devtmpfs\n").map_err(|bad| bad.line), Err(1));
    }

    /// The first filesystem of a kernel is of one of two types, and has the name of neither.
    #[test]
    fn the_filesystem_of_an_initramfs() {
        for (options, expected) in [
            ("rw", None),
            ("rw,mode=700", None),
            ("rw,size=3026016k,nr_inodes=756504", Some(MemoryFiles::Shared)),
            ("rw,inode64", Some(MemoryFiles::Shared)),
        ] {
            let text = format!("1 1 0:2 / / rw - rootfs rootfs {options}\n");
            let mounts = parse(text.as_bytes()).expect("a row");
            assert_eq!(mounts[0].memory_files(), expected, "{options}");
        }
    }

    #[test]
    fn where_and_how() {
        let text = b"27 1 254:0 /a\\134b /with\\040blank\\040-\\040dash rw shared:1 - ext4 /dev/vda rw,x=1\n\
            28 1 0:9 / /bare rw - proc  ro\n";
        let mounts = parse(text).expect("rows");
        let rows: Vec<_> =
            mounts.iter().map(|mount| (mount.root.as_bytes(), mount.point.as_bytes(), &*mount.options)).collect();
        let (first, second): (&[u8], &[u8]) = (b"/a\\b", b"/with blank - dash");
        assert_eq!(rows, [(first, second, "rw,x=1"), (b"/", b"/bare", "ro")]);
    }

    #[test]
    fn layers_of_an_overlay() {
        let layers = |options: &str| {
            let text = format!("24 22 0:40 / /merged rw - overlay overlay {options}\n");
            let mounts = parse(text.as_bytes()).expect("a row");
            mounts[0].layers().map(|layer| layer.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(layers("rw,lowerdir=/a:l/B,upperdir=/c,workdir=/d,xino=off"), ["/a", "l/B", "/c"]);
        // Paths of one option each, since Linux 6.8.
        assert_eq!(layers("rw,lowerdir+=/a:b,datadir+=/d"), ["/a:b", "/d"]);
        // A colon, a comma, and layers that have only data.
        assert_eq!(layers("rw,lowerdir=/a\\134:b\\054c:/d\\072e::/f"), ["/a:b,c", "/d:e", "/f"]);
        let other = parse(b"24 22 0:40 / /m rw - ext4 /dev/x rw,upperdir=/a\n").expect("a row");
        assert_eq!((other[0].layers().count(), other[0].is_stacked()), (0, false));
    }

    #[test]
    fn the_hierarchy_that_has_memory() {
        let two = "20 1 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let others = "11 1 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            12 1 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=memory\n";
        let one = "14 1 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let point = |texts: &[&str]| {
            let mounts = parse(texts.concat().as_bytes()).expect("rows");
            hierarchy(&mounts, Controller::Memory).map(|mount| mount.point.to_string())
        };
        assert_eq!(point(&[two, others, one]).as_deref(), Some("/sys/fs/cgroup/memory"));
        assert_eq!(point(&[others, two]).as_deref(), Some("/sys/fs/cgroup/unified"));
        assert_eq!(point(&[others]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = parse(&bytes);
        }
    }

    #[test]
    fn leases_that_a_reader_breaks_are_found() {
        let text = b"1: FLOCK  ADVISORY  WRITE 28948 fe:00:10625054 0 EOF\n\
            2: LEASE  ACTIVE    WRITE 812 08:01:1234 0 EOF\n\
            3: LEASE  ACTIVE    READ 813 08:01:1235 0 EOF\n\
            4: LEASE  BREAKING  READ 814 00:1f:1236 0 EOF\n\
            5: LEASE  BREAKING  UNLCK 815 00:1f:1237 0 EOF\n\
            6: DELEG  ACTIVE    WRITE -1 00:1f:1238 0 EOF\n\
            7: POSIX  ADVISORY  WRITE 816 00:1f:1239 0 EOF\n\
            7: -> POSIX  ADVISORY  WRITE 817 00:1f:1239 0 EOF\n\
            8: LEASE  ACTIVE    WRITE 818 <none>:0 0 EOF\n\
            9: LEASE  ACTIVE\n";
        let found: Vec<_> = leases(text).flatten().map(|lease| (lease.holder, lease.inode)).collect();
        let expected = [(812, 1234), (814, 1236), (815, 1237), (0, 1238), (818, 0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_lease_is_matched_by_its_inode_number_alone() {
        let lease = Lease { holder: 812, inode: 7 };
        assert!(lease.may_be_on(7));
        assert!(lease.may_be_on(7 | 1 << 32), "as a 32-bit kernel prints it");
        assert!(!lease.may_be_on(8));
    }
}
