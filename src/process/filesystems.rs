//! Filesystems in memory that are mounted: which there are, and how full they are.

use super::{Machine, Process, Result, core_notes};
use crate::access::Error;
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mapped_file::FilesystemRoom;
use crate::kernel::mounts::{MemoryFiles, Mount};
use crate::kernel::{Device, Name};
use crate::source::{File, Probe};
use std::collections::{BTreeMap, BTreeSet};

/// A mounted filesystem in memory that a search has found.
pub(crate) struct FoundFilesystem {
    /// The type: `tmpfs`, `devtmpfs`, `hugetlbfs` …
    pub kind: String,
    /// The directory where it is mounted, as pmdb reaches it: in another mount namespace through `/proc/PID/root`.
    pub path: Name,
    pub device: Device,
    /// Whether only a part of its directories is there.
    pub is_part: bool,
    pub room: FilesystemRoom,
}

/// Filesystems in memory whose size is unknown.
pub(crate) struct UnknownFilesystems {
    /// Whether they use pages of the hugetlb pool; `None` for any filesystems, of which the mounts are unknown.
    pub is_hugetlb: Option<bool>,
    pub reason: Error,
}

/// A search for the filesystems in memory that pmdb and some processes see: each device once, and each outlook of
/// processes once.
#[derive(Default)]
pub(crate) struct FilesystemSearch {
    found: BTreeMap<Device, FoundFilesystem>,
    /// Those whose size is unknown.
    failed: BTreeMap<Device, UnknownFilesystems>,
    /// Why the mounts of a process are unknown.
    unknown: Option<Error>,
    /// The mount namespaces and root directories whose mounts were read.
    seen: BTreeSet<[Vec<u8>; 2]>,
}

impl FilesystemSearch {
    /// Adds those that pmdb sees. Each mount costs one step.
    pub fn add_own(&mut self, machine: &Machine, budget: &mut Budget) -> std::result::Result<(), OutOfBudget> {
        let source = machine.source();
        let room = |mount: &Mount| source.fetch(Probe::OwnFilesystem(mount.device, mount.point.as_bytes()));
        let mounts = core_notes::mounts(source, File::OwnMounts, budget);
        self.add(mounts, room, |mount| mount.point.clone()).map(drop)
    }

    /// Adds those that a process sees. Each mount costs one step.
    pub fn add_process(&mut self, process: &Process, budget: &mut Budget) -> std::result::Result<(), OutOfBudget> {
        let source = &**process.source();
        let link = |file| source.fetch(file).ok();
        // A capture has no links: there, not each process has an answer about each filesystem.
        let outlook = link(File::MountNamespace).zip(link(File::Root)).map(<[_; 2]>::from);
        if outlook.as_ref().is_some_and(|outlook| self.seen.contains(outlook)) {
            return Ok(());
        }
        let room = |mount: &Mount| source.fetch(Probe::Filesystem(mount.device, mount.point.as_bytes()));
        let path = |mount: &Mount| {
            let root = format!("/proc/{}/root", process.identity().pid);
            Name::new([root.as_bytes(), mount.point.as_bytes()].concat())
        };
        let is_known = self.add(core_notes::mounts(source, File::Mounts, budget), room, path)?;
        self.seen.extend(outlook.filter(|_| is_known));
        Ok(())
    }

    /// Adds those of the mounts that are in memory. Returns whether the mounts are known.
    fn add(
        &mut self,
        mounts: Result<Vec<Mount>>,
        room: impl Fn(&Mount) -> Result<Vec<u64>>,
        path: impl Fn(&Mount) -> Name,
    ) -> std::result::Result<bool, OutOfBudget> {
        let mounts = match mounts {
            Err(Error::OutOfBudget(over)) => return Err(over),
            Err(error) => {
                self.unknown.get_or_insert(error);
                return Ok(false);
            }
            Ok(mounts) => mounts,
        };
        let in_memory =
            |mount: &Mount| matches!(mount.memory_files(), Some(MemoryFiles::Shared | MemoryFiles::Hugetlb));
        for mount in mounts.into_iter().filter(in_memory) {
            let (device, is_part) = (mount.device, mount.root.as_bytes() != b"/");
            // A part stands for the whole only as long as no mount of the whole is found.
            if self.found.get(&device).is_some_and(|known| is_part || !known.is_part) {
                continue;
            }
            // Without a limit the filesystem does not count its files.
            let without_limit =
                || Error::not_available(format!("the {} at {} has no limit", mount.filesystem, mount.point));
            let room = room(&mount).and_then(|words| FilesystemRoom::from_words(&words).ok_or_else(without_limit));
            match room {
                Err(Error::OutOfBudget(over)) => return Err(over),
                Err(reason) => {
                    let is_hugetlb = Some(mount.memory_files() == Some(MemoryFiles::Hugetlb));
                    self.failed.entry(device).or_insert(UnknownFilesystems { is_hugetlb, reason });
                }
                Ok(room) => {
                    let path = path(&mount);
                    self.found.insert(device, FoundFilesystem { kind: mount.filesystem, path, device, is_part, room });
                }
            }
        }
        Ok(true)
    }

    /// Returns the filesystems, and those of unknown size: each once, however many processes see it.
    pub fn finish(mut self) -> (impl Iterator<Item = FoundFilesystem>, impl Iterator<Item = UnknownFilesystems>) {
        self.failed.retain(|device, _| !self.found.contains_key(device));
        let of_mounts = self.unknown.map(|reason| UnknownFilesystems { is_hugetlb: None, reason });
        (self.found.into_values(), of_mounts.into_iter().chain(self.failed.into_values()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::World;

    const SHM: &str = "25 22 0:23 / /dev/shm rw - tmpfs tmpfs rw\n";
    const PART: &str = "26 22 0:23 /app /srv rw - tmpfs tmpfs rw\n";

    /// Searches the mounts of pmdb, then those of processes. The result is the path of each filesystem, and whether
    /// only a part of it is there.
    fn found(own: &str, others: &[&[(File, &str)]]) -> Vec<(String, bool)> {
        let mut search = FilesystemSearch::default();
        let world = |texts: &[(File, &str)]| {
            let texts = texts.iter().map(|&(file, text)| (file, text.to_owned())).collect();
            World { texts, statfs: Some([0x0102_1994, 4096, 100, 90, 90]), ..World::new([]) }.target().1
        };
        let mut budget = Budget::unlimited();
        search.add_own(&world(&[(File::OwnMounts, own)]).machine, &mut budget).expect("time");
        for texts in others {
            search.add_process(&world(texts).process, &mut budget).expect("time");
        }
        search.finish().0.map(|one| (one.path.to_string(), one.is_part)).collect()
    }

    #[test]
    fn the_whole_filesystem_is_better_than_a_part() {
        let shm = [("/dev/shm".to_owned(), false)];
        assert_eq!(found(&[PART, SHM].concat(), &[]), shm);
        assert_eq!(found(&[SHM, PART].concat(), &[]), shm);
        assert_eq!(found(PART, &[]), [("/srv".to_owned(), true)]);
        let inner = found(PART, &[&[(File::Mounts, SHM)]]);
        assert!(matches!(&inner[..], [(path, false)] if path.ends_with("/root/dev/shm")), "{inner:?}");
    }

    #[test]
    fn each_filesystem_of_unknown_size_is_one() {
        let seen = |root| [(File::MountNamespace, "mnt:[1]"), (File::Root, root), (File::Mounts, SHM)];
        let other = "27 22 0:24 / /dev/hugepages rw - hugetlbfs none rw\n";
        let mut search = FilesystemSearch::default();
        let mut budget = Budget::unlimited();
        for (own, texts) in
            [(true, [(File::OwnMounts, other)].as_slice()), (false, &seen("/")), (false, &seen("/jail"))]
        {
            let texts = texts.iter().map(|&(file, text)| (file, text.to_owned())).collect();
            // Without `statfs`.
            let target = World { texts, ..World::new([]) }.target().1;
            let added = if own {
                search.add_own(&target.machine, &mut budget)
            } else {
                search.add_process(&target.process, &mut budget)
            };
            added.expect("time");
        }
        let (found, unknown) = search.finish();
        let unknown: Vec<_> = unknown.map(|one| one.is_hugetlb).collect();
        assert_eq!((found.count(), unknown), (0, vec![Some(false), Some(true)]));
    }

    /// Thousands of processes may share one mount namespace.
    #[test]
    fn each_outlook_is_read_once() {
        let seen = |root, mounts| [(File::MountNamespace, "mnt:[1]"), (File::Root, root), (File::Mounts, mounts)];
        let other = "27 22 0:24 / /run rw - tmpfs tmpfs rw\n";
        assert_eq!(found("", &[&seen("/", SHM), &seen("/", other)]).len(), 1);
        assert_eq!(found("", &[&seen("/", SHM), &seen("/jail", other)]).len(), 2);
        // Mounts that cannot be read say nothing about those of the next process.
        assert_eq!(found("", &[&seen("/", "damaged\n"), &seen("/", other)]).len(), 1);
    }
}
