//! Memory cgroups: the path of a directory for an inode number of `/proc/kpagecgroup`, and the memory of a group.

use super::core_notes;
use crate::access::{Error, Result};
use crate::budget::until_interrupted;
use crate::kernel::mounts::{self, Controller, Mount};
use crate::kernel::{self, Name};
use crate::source::GroupFile;
use crate::source::{CgroupQuery, File, GroupText, Source};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The groups found so far: for each inode the path below the mount, or `None` if there is no such group. The first
/// query for an unknown inode walks the hierarchy once for all groups.
#[derive(Default)]
pub(super) struct Cgroups(Mutex<BTreeMap<u64, Option<Vec<u8>>>>);

/// The memory that is charged to a group and its descendants.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CgroupMemory {
    /// The path of the group.
    pub path: Name,
    /// The processes in the group and its descendants, as far as they are in the PID namespace of `/proc`.
    pub processes: Vec<u32>,
    /// The number of its other processes. Cgroup v2 shows 0 for the id of each, and cgroup v1 nothing.
    pub outside: Result<u64>,
    /// The inodes of the directories of the group and its descendants.
    pub inodes: BTreeSet<u64>,
    /// Whether the group is the root of the hierarchy, for which the kernel does not count all memory.
    pub is_root: bool,
    /// Bytes that are charged to the group.
    pub current: Result<u64>,
    /// The most bytes that may be charged to the group; `None` if it has no limit.
    pub limit: Result<Option<u64>>,
    /// The most bytes that were charged to the group.
    pub peak: Result<u64>,
    /// The number of its processes that the OOM killer killed.
    pub killed: Result<u64>,
    /// `memory.stat`: names and bytes, including descendants. The names are those of cgroup v2. In cgroup v1 the kernel
    /// memory is in a separate file.
    pub stat: Result<BTreeMap<&'static str, u64>>,
}

/// The lines of `memory.stat` that are read: the name in cgroup v2, and in cgroup v1 the one that includes descendants.
const STAT: [(&str, &str); 8] = [
    ("anon", "total_rss"),
    ("file", "total_cache"),
    ("shmem", "total_shmem"),
    ("file_mapped", "total_mapped_file"),
    ("kernel", ""),
    ("sock", ""),
    ("zswap", ""),
    ("zswapped", ""),
];

impl CgroupMemory {
    /// Reads a group by its path, from the root of the hierarchy or with the mount point.
    pub(super) fn of(path: &[u8], source: &dyn Source) -> Result<Self> {
        let hierarchy = Hierarchy::of(source, Controller::Memory)?;
        let (point, root) = (hierarchy.mount.point.as_bytes(), hierarchy.mount.root.as_bytes());
        let is_below = |path: &[u8]| path.is_empty() || path.starts_with(b"/");
        let below = match path.strip_prefix(point) {
            Some(below) if is_below(below) => below,
            _ => match path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root)) {
                Some(below) if is_below(below) => below,
                _ => path,
            },
        };
        let mut below = below.strip_suffix(b"/").unwrap_or(below).to_vec();
        if !below.is_empty() && !below.starts_with(b"/") {
            below.insert(0, b'/');
        }
        if below.split(|&byte| byte == b'/').any(|part| matches!(part, b"." | b".."))
            || source.fetch(CgroupQuery::At(&below))?.is_empty()
        {
            let what = format!("no such memory cgroup: `{}` in {}", Name::copied(path), hierarchy.mount.point);
            return Err(Error::not_available(what));
        }
        let is_in = |path: &[u8]| path.strip_prefix(below.as_slice()).is_some_and(is_below);
        let (mut processes, mut outside, mut inodes) = (Vec::new(), 0, BTreeSet::new());
        for group in source.fetch(CgroupQuery::All)?.iter().filter(|group| is_in(&group.path)) {
            let text = match source.fetch(GroupText { path: &group.path, file: GroupFile::Processes }) {
                // A capture of other processes does not have the list.
                Err(error @ Error::NotAvailable { .. }) => return Err(error),
                // A group that was removed since has no processes.
                text => text.unwrap_or_default(),
            };
            inodes.insert(group.inode);
            let (listed, others) = listed_processes(&text);
            processes.extend(listed);
            outside += others;
        }
        let lists_all = hierarchy.is_second_version();
        let number = |file: GroupFile| -> Result<u64> {
            let text = source.fetch(GroupText { path: &below, file })?;
            kernel::text::decimal(text.trim_ascii()).ok_or_else(|| no_number(file))
        };
        let either = |new, old| number(new).or_else(|_| number(old));
        let is_root = below.is_empty() || *below == *b"/";
        let limit = |file| source.fetch(GroupText { path: &below, file }).map(|text| Some((text, file)));
        let killed = |file| source.fetch(GroupText { path: &below, file }).and_then(|text| count_of_kills(&text));
        let mut stat = source.fetch(GroupText { path: &below, file: GroupFile::Stat }).map(|text| stat(&text));
        if let (Ok(stat), Ok(bytes)) = (&mut stat, number(GroupFile::KernelUsage)) {
            stat.entry("kernel").or_insert(bytes);
        }
        Ok(CgroupMemory {
            path: hierarchy.full_path(&below),
            processes,
            outside: if lists_all { Ok(outside) } else { not_listed(source) },
            inodes,
            is_root,
            current: either(GroupFile::Current, GroupFile::Usage),
            limit: match limit(GroupFile::Max) {
                Err(Error::Io { error: Errno::NOENT, .. }) => match limit(GroupFile::Limit) {
                    // The root of the hierarchy has no limit.
                    Err(Error::Io { error: Errno::NOENT, .. }) if is_root => Ok(None),
                    found => found,
                },
                found => found,
            }
            .and_then(|found| found.map_or(Ok(None), |(text, file)| number_or_no_limit(&text, file))),
            peak: either(GroupFile::Peak, GroupFile::MaxUsage),
            killed: killed(GroupFile::Events).or_else(|_| killed(GroupFile::OomControl)),
            stat,
        })
    }
}

/// Parses `cgroup.procs`: the processes, and the number of those in another PID namespace, which are shown as 0.
fn listed_processes(text: &[u8]) -> (Vec<u32>, u64) {
    let text = String::from_utf8_lossy(text);
    let (listed, others): (Vec<u32>, Vec<u32>) =
        text.lines().filter_map(|line| line.parse::<u32>().ok()).partition(|&pid| pid > 0);
    (listed, others.len() as u64)
}

/// Returns the number of processes that `cgroup.procs` of cgroup v1 leaves out, because they have no number in pmdb's
/// PID namespace (`pidlist_array_load` in kernel/cgroup/cgroup-v1.c). All have one in the initial namespace.
fn not_listed(source: &dyn Source) -> Result<u64> {
    /// The link `/proc/self/ns/pid` in the initial namespace (`PROC_PID_INIT_INO` in include/linux/proc_ns.h).
    const INITIAL: &[u8] = b"pid:[4026531836]";
    match source.fetch(File::OwnProcessNamespace) {
        Ok(namespace) if namespace == INITIAL => Ok(0),
        _ => Err(Error::not_available("cgroup v1 lists only the processes of pmdb's PID namespace")),
    }
}

/// Parses a number of a group; `None` for the words that mean no limit.
pub(super) fn number_or_no_limit(text: &[u8], file: GroupFile) -> Result<Option<u64>> {
    /// Cgroup v1 has no word for no limit: it shows the largest number of whole pages.
    const NO_LIMIT: u64 = i64::MAX as u64 >> 16 << 16;
    match text.trim_ascii() {
        b"max" => Ok(None),
        number => {
            let number: u64 = kernel::text::decimal(number).ok_or_else(|| no_number(file))?;
            Ok(Some(number).filter(|&bytes| bytes < NO_LIMIT))
        }
    }
}

fn no_number(file: GroupFile) -> Error {
    Error::not_available(format!("{} of its cgroup is no number", file.name()))
}

/// Parses the line `oom_kill` of `memory.events` or `memory.oom_control`.
fn count_of_kills(text: &[u8]) -> Result<u64> {
    let text = String::from_utf8_lossy(text);
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    count.ok_or_else(|| Error::not_available("the kernel does not count the processes that it kills"))
}

fn stat(text: &[u8]) -> BTreeMap<&'static str, u64> {
    let mut by_name = BTreeMap::new();
    let text = String::from_utf8_lossy(text);
    let is_first = text.lines().any(|line| line.starts_with("total_"));
    for line in text.lines() {
        let Some((name, Ok(bytes))) = line.split_once(' ').map(|(name, bytes)| (name, bytes.trim().parse())) else {
            continue;
        };
        let is_named = |(new, old): &&(&str, &str)| name == if is_first { *old } else { *new };
        if let Some((name, _)) = STAT.iter().find(is_named) {
            by_name.insert(*name, bytes);
        }
    }
    by_name
}

impl Cgroups {
    /// Returns the mount point of the hierarchy.
    pub(super) fn mount(source: &dyn Source) -> Result<Name> {
        let point = Hierarchy::of(source, Controller::Memory)?.mount.point;
        source.fetch(CgroupQuery::At(b"")).map(|_| point)
    }

    /// Returns the paths of all groups.
    #[cfg(feature = "cli")]
    pub(super) fn paths(source: &dyn Source) -> Result<Vec<Name>> {
        let hierarchy = Hierarchy::of(source, Controller::Memory)?;
        let groups = source.fetch(CgroupQuery::All)?;
        Ok(groups.iter().map(|group| hierarchy.full_path(&group.path)).collect())
    }

    /// Returns the path of the group with this inode; `None` if no directory has it. Groups of the target
    /// (`/proc/PID/cgroup`) are tried first, because mostly it is one of them.
    pub(super) fn path(&self, inode: u64, source: &dyn Source) -> Result<Option<Name>> {
        let hierarchy = Hierarchy::of(source, Controller::Memory)?;
        let is_at = |path: &[u8]| -> Result<bool> {
            let groups = source.fetch(CgroupQuery::At(path))?;
            Ok(groups.iter().any(|group| group.inode == inode))
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&inode) {
            // The kernel counts inode numbers up, so that the number of a removed group is not soon reused.
            Some(None) => return Ok(None),
            // The cgroup may have been removed or renamed since.
            Some(Some(path)) if is_at(path)? => {
                return Ok(Some(hierarchy.full_path(path)));
            }
            _ => {}
        }
        let of_process = source.fetch(File::Cgroup).ok();
        if let Some(path) = of_process.and_then(|text| hierarchy.mount.group_in(&text, Controller::Memory))
            && is_at(&path)?
        {
            let name = hierarchy.full_path(&path);
            known.insert(inode, Some(path));
            return Ok(Some(name));
        }
        known.retain(|_, path| path.is_none());
        let groups = source.fetch(CgroupQuery::All)?.into_iter();
        known.extend(groups.map(|group| (group.inode, Some(group.path))));
        let found = known.entry(inode).or_insert(None);
        Ok(found.as_ref().map(|path| hierarchy.full_path(path)))
    }
}

/// The mounted hierarchy that a controller uses.
pub(super) struct Hierarchy {
    pub(super) mount: Mount,
}

impl Hierarchy {
    pub(super) fn of(source: &dyn Source, controller: Controller) -> Result<Self> {
        let mounts = core_notes::mounts(source, File::OwnMounts, &mut until_interrupted())?;
        let mount = mounts::hierarchy(&mounts, controller).cloned();
        let name = controller.name();
        let none = || Error::not_available(format!("{name} cgroups are not mounted here: their paths are unknown"));
        Ok(Hierarchy { mount: mount.ok_or_else(none)? })
    }

    pub(super) fn is_second_version(&self) -> bool {
        self.mount.filesystem == "cgroup2"
    }

    /// Returns the path below the mount of the group that `/proc/PID/cgroup` names.
    pub(super) fn own_group(&self, text: &[u8], controller: Controller) -> Result<Vec<u8>> {
        if self.is_second_version() && mounts::is_in_first_version(text, controller) {
            let name = controller.name();
            return Err(Error::not_available(format!("the hierarchy of {name} cgroups is not mounted here")));
        }
        let own = self.mount.group_in(text, controller);
        own.ok_or_else(|| Error::not_available("its cgroup is outside of the mounted hierarchy"))
    }

    /// Returns the path from the root of the hierarchy, of which only a part may be mounted.
    pub(super) fn full_path(&self, path: &[u8]) -> Name {
        let root = self.mount.root.as_bytes();
        let root = root.strip_suffix(b"/").unwrap_or(root);
        match [root, path].concat() {
            top if top.is_empty() => Name::from("/"),
            path => Name::new(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_hierarchies() {
        let new = stat(
            b"anon 4096\nfile 8192\nkernel 1024\nfile_mapped 4096\nshmem 0\nanon_thp 7\nzswap 512\nzswapped 4096\n",
        );
        assert_eq!(
            new,
            BTreeMap::from([
                ("anon", 4096),
                ("file", 8192),
                ("kernel", 1024),
                ("file_mapped", 4096),
                ("shmem", 0),
                ("zswap", 512),
                ("zswapped", 4096)
            ])
        );
        let old = stat(b"cache 1\nrss 2\ntotal_cache 8192\ntotal_rss 4096\ntotal_mapped_file 0\nrss_huge 4\n");
        assert_eq!(old, BTreeMap::from([("anon", 4096), ("file", 8192), ("file_mapped", 0)]));
    }

    #[test]
    fn processes_of_another_namespace_have_no_number() {
        assert_eq!(listed_processes(b"0\n12\n0\n7\n-1\nx\n"), (vec![12, 7], 2));
        assert_eq!(listed_processes(b""), (vec![], 0));
    }

    /// Cgroup v1 leaves out what cgroup v2 shows as 0.
    #[test]
    fn processes_that_are_left_out_are_unknown() {
        use crate::process::fake::World;
        use crate::source::Cgroup;
        let outside = |mounts: &str, namespace: &str| {
            let text = |file, text: &str| (file, text.to_owned());
            let texts = vec![text(File::OwnMounts, mounts), text(File::OwnProcessNamespace, namespace)];
            let group_files = [("/cgroup.procs".to_owned(), "12\n0\n".to_owned())].into();
            let (_, target) =
                World { texts, group_files, cgroups: vec![Cgroup { inode: 1, path: Vec::new() }], ..World::new([]) }
                    .target();
            target.machine.cgroup_memory(b"/").expect("the root").outside.map_err(|error| error.to_string())
        };
        const V1: &str = "40 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        const V2: &str = "41 31 0:36 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(outside(V2, "pid:[4026532000]"), Ok(1));
        assert_eq!(outside(V1, "pid:[4026531836]"), Ok(0));
        let unknown = "cgroup v1 lists only the processes of pmdb's PID namespace".to_owned();
        assert_eq!(outside(V1, "pid:[4026532000]"), Err(unknown.clone()));
        assert_eq!(outside(V1, ""), Err(unknown));
    }

    #[test]
    fn kills_of_both_hierarchies() {
        assert_eq!(count_of_kills(b"low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n").ok(), Some(2));
        assert_eq!(count_of_kills(b"oom_kill_disable 1\nunder_oom 0\noom_kill 5\n").ok(), Some(5));
        assert!(count_of_kills(b"oom_kill_disable 1\nunder_oom 0\n").is_err());
    }
}
