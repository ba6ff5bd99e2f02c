//! The limits of a process's cgroups, which may refuse it a page.

use super::Process;
use super::cgroups::{Hierarchy, number_or_no_limit};
use crate::access::{Error, Result};
use crate::kernel::mounts::Controller;
use crate::kernel::swaps::SwapAreas;
use crate::kernel::{self, Name};
use crate::source::GroupFile;
use crate::source::{File, GroupText, Source};
use rustix::io::Errno;

/// A cgroup with a limit, and the memory that is charged to it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroupLimit {
    /// The path of the group.
    pub path: Name,
    /// The most bytes that may be charged to the group.
    pub limit: u64,
    /// Bytes that are charged to the group.
    pub used: u64,
    /// Charged bytes that reclaim could free or swap out, by `memory.stat`; `None` if it cannot be read. Pages of the
    /// hugetlb pool are never reclaimed.
    pub reclaimable: Option<u64>,
    /// Whether a thread waits at the limit, and no process is killed (`oom_kill_disable` of cgroup v1).
    pub waits: bool,
}

impl GroupLimit {
    /// Returns how many more bytes may be charged to the group.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// The cgroup limits of a process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupLimits {
    /// The group of the process first, then its ancestors. Groups without a limit are left out.
    pub groups: Vec<GroupLimit>,
    /// Why further limits, if there are any, are unknown.
    pub unseen: Option<Error>,
}

#[cfg(feature = "cli")]
impl super::Machine {
    /// Returns the paths of all memory cgroups, from the root of their hierarchy.
    pub(crate) fn cgroup_paths(&self) -> Result<Vec<Name>> {
        super::cgroups::Cgroups::paths(self.source())
    }
}

impl Process {
    /// Returns the limits on all memory that is charged to the process.
    pub fn memory_limits(&self) -> GroupLimits {
        Levels::limits(&**self.source(), Limited::Memory)
    }

    /// Returns the limits on pages of the hugetlb pool with pages of `bytes` bytes. They are those of a fault: the
    /// limit on reservations applies to mmap(2).
    pub fn pool_limits(&self, bytes: u64) -> GroupLimits {
        Levels::limits(&**self.source(), Limited::Pool(bytes))
    }

    /// Returns the path of the memory cgroup of the process, from the root of the hierarchy.
    ///
    /// # Errors
    /// Fails if there are no memory cgroups, or that of the process is outside of the mounted hierarchy.
    pub fn memory_cgroup(&self) -> Result<Name> {
        let text = self.source().fetch(File::Cgroup)?;
        let hierarchy = Hierarchy::of(&**self.source(), Controller::Memory)?;
        Ok(hierarchy.full_path(&hierarchy.own_group(&text, Controller::Memory)?))
    }
}

/// The kind of memory that is limited.
#[derive(Clone, Copy)]
enum Limited {
    Memory,
    Pool(u64),
}

impl Limited {
    fn controller(self) -> Controller {
        match self {
            Limited::Memory => Controller::Memory,
            Limited::Pool(_) => Controller::Pool,
        }
    }
}

/// Reads the groups of a process in one hierarchy.
struct Levels<'a> {
    source: &'a dyn Source,
    limited: Limited,
    is_second_version: bool,
}

impl Levels<'_> {
    fn limits(source: &dyn Source, limited: Limited) -> GroupLimits {
        let mut limits = GroupLimits::default();
        if let Err(error) = Self::find(source, limited, &mut limits) {
            limits.unseen = Some(error);
        }
        limits
    }

    fn find(source: &dyn Source, limited: Limited, limits: &mut GroupLimits) -> Result<()> {
        let controller = limited.controller();
        let text = source.fetch(File::Cgroup)?;
        let hierarchy = match Hierarchy::of(source, controller) {
            // The kernel has no cgroups.
            _ if text.is_empty() => return Ok(()),
            hierarchy => hierarchy?,
        };
        let own = hierarchy.own_group(&text, controller)?;
        let levels = Levels { source, limited, is_second_version: hierarchy.is_second_version() };
        // From the top down: if a group may not use swap, its descendants may not either.
        let mut may_swap = levels.is_swap_free();
        let ends = own.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(at, _)| at);
        for end in ends.chain([own.len()]) {
            let path = own.get(..end).unwrap_or_default();
            match levels.limit(path, hierarchy.full_path(path), &mut may_swap) {
                Ok(found) => limits.groups.splice(0..0, found).for_each(drop),
                // An error in one group does not hide the limits of others.
                Err(error) => limits.unseen = Some(error),
            }
        }
        if !levels.is_root()? {
            let top = hierarchy.full_path(b"");
            let what = format!("the cgroups above {top} are outside of the mounted hierarchy");
            limits.unseen = Some(Error::not_available(what));
        }
        Ok(())
    }

    /// Returns the limit of a group, if it has one. A group without the controller has none.
    fn limit(&self, path: &[u8], name: Name, may_swap: &mut bool) -> Result<Option<GroupLimit>> {
        let number = |file| self.number(path, file);
        let [limit, used] = match (self.limited, self.is_second_version) {
            (Limited::Memory, true) => [GroupFile::Max, GroupFile::Current],
            (Limited::Memory, false) => [GroupFile::Limit, GroupFile::Usage],
            (Limited::Pool(bytes), true) => [GroupFile::PoolMax(bytes), GroupFile::PoolCurrent(bytes)],
            (Limited::Pool(bytes), false) => [GroupFile::PoolLimit(bytes), GroupFile::PoolUsage(bytes)],
        };
        let mut tightest = number(limit)?.zip(number(used)?);
        let is_memory = matches!(self.limited, Limited::Memory);
        let left = |(limit, used): (u64, u64)| limit.saturating_sub(used);
        if is_memory && self.is_second_version {
            let swap = number(GroupFile::SwapMax)?.zip(number(GroupFile::SwapCurrent)?);
            *may_swap &= swap.is_none_or(|swap| left(swap) > 0);
        } else if is_memory
            && let Some(both) = number(GroupFile::LimitWithSwap)?.zip(number(GroupFile::UsageWithSwap)?)
            && tightest.is_none_or(|tightest| left(both) <= left(tightest))
        {
            // A page that is swapped out stays charged to this limit (try_charge_memcg in mm/memcontrol.c).
            (tightest, *may_swap) = (Some(both), false);
        }
        let Some((limit, used)) = tightest else {
            return Ok(None);
        };
        let stat = || self.source.fetch(GroupText { path, file: GroupFile::Stat }).ok();
        let control = || self.source.fetch(GroupText { path, file: GroupFile::OomControl }).ok();
        let is_off = |text: Vec<u8>| String::from_utf8_lossy(&text).lines().any(|line| line == "oom_kill_disable 1");
        Ok(Some(GroupLimit {
            path: name,
            limit,
            used,
            reclaimable: if is_memory { stat().and_then(|text| reclaimable(&text, *may_swap)) } else { Some(0) },
            waits: is_memory && !self.is_second_version && control().is_some_and(is_off),
        }))
    }

    /// Reads a number of a group; `None` if it is unlimited, or the group does not have the file.
    fn number(&self, path: &[u8], file: GroupFile) -> Result<Option<u64>> {
        let text = match self.source.fetch(GroupText { path, file }) {
            Err(Error::Io { error: Errno::NOENT, .. }) => return Ok(None),
            text => text?,
        };
        number_or_no_limit(&text, file)
    }

    /// Returns whether the top of the mount is the root of the hierarchy, which has no limit. In a cgroup namespace it
    /// has the same path.
    fn is_root(&self) -> Result<bool> {
        let controller = self.limited.controller();
        let kind = if self.is_second_version { GroupFile::Type } else { GroupFile::ReleaseAgent };
        let file = kind(controller);
        match self.source.fetch(GroupText { path: b"", file }) {
            Ok(_) => Ok(!self.is_second_version),
            Err(Error::Io { error: Errno::NOENT, .. }) => Ok(self.is_second_version),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a swap area has free space, or that is unknown.
    fn is_swap_free(&self) -> bool {
        let areas = self.source.fetch(File::Swaps).ok().and_then(|text| SwapAreas::parse(&text).ok());
        areas.is_none_or(|areas| areas.0.iter().any(|area| area.used < area.size))
    }
}

/// Returns the bytes that reclaim could free, by `memory.stat`: pages on reclaimable lists, and caches of the kernel.
/// In cgroup v1 the lines with `total_` include descendants, as all lines of cgroup v2 do.
fn reclaimable(stat: &[u8], may_swap: bool) -> Option<u64> {
    const FREED: [&str; 3] = ["inactive_file", "active_file", "slab_reclaimable"];
    const SWAPPED: [&str; 2] = ["inactive_anon", "active_anon"];
    let text = String::from_utf8_lossy(stat);
    let is_first_version = text.lines().any(|line| line.starts_with("total_"));
    let mut sum = None;
    for line in text.lines() {
        let line = if is_first_version { line.strip_prefix("total_") } else { Some(line) };
        let Some((name, bytes)) = line.and_then(|line| line.split_once(' ')) else {
            continue;
        };
        if FREED.contains(&name) || SWAPPED.contains(&name) {
            // The sum is unknown if a line is damaged.
            let bytes: u64 = kernel::text::decimal(bytes.as_bytes())?;
            let counts = may_swap || FREED.contains(&name);
            sum = Some(sum.unwrap_or(0u64).saturating_add(if counts { bytes } else { 0 }));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::World;

    const V1: &str = "40 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const V2: &str = "41 31 0:36 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    fn limits(mounts: &str, group: &str, swaps: bool, files: &[(&str, &str)]) -> GroupLimits {
        let texts = vec![(File::OwnMounts, mounts.to_owned()), (File::Cgroup, group.to_owned())];
        let group_files = files.iter().map(|&(name, text)| (name.to_owned(), format!("{text}\n"))).collect();
        let (_, target) = World { texts, group_files, swaps, ..World::new([]) }.target();
        target.process.memory_limits()
    }

    fn rows(limits: &GroupLimits) -> Vec<(String, u64, Option<u64>, bool)> {
        let row = |one: &GroupLimit| (one.path.to_string(), one.left(), one.reclaimable, one.waits);
        limits.groups.iter().map(row).collect()
    }

    /// All groups count, those without the controller or a limit excepted; each has what reclaim could take there.
    #[test]
    fn each_group_up_to_the_root() {
        let files = [
            ("/a/b/memory.max", "8192"),
            ("/a/b/memory.current", "8192"),
            ("/a/b/memory.stat", "anon 8192\ninactive_anon 4096\nactive_anon 4096\ninactive_file 0\nactive_file 0"),
            ("/a/memory.max", "16384"),
            ("/a/memory.current", "12288"),
            ("/memory.stat", "anon 1"),
        ];
        let found = limits(V2, "0::/a/b/c\n", true, &files);
        assert_eq!(rows(&found), [("/a/b".into(), 0, Some(8192), false), ("/a".into(), 4096, None, false)]);
        assert!(found.unseen.is_none(), "{:?}", found.unseen);
        // Without swap nothing can be reclaimed, wherever that is forbidden.
        assert_eq!(rows(&limits(V2, "0::/a/b\n", false, &files))[0].2, Some(0));
        let forbidden = [("/a/memory.swap.max", "0"), ("/a/memory.swap.current", "0")];
        assert_eq!(rows(&limits(V2, "0::/a/b\n", true, &[&files[..], &forbidden].concat()))[0].2, Some(0));
    }

    #[test]
    fn of_the_first_version() {
        let files = [
            ("/release_agent", ""),
            ("/memory.limit_in_bytes", "9223372036854771712"),
            ("/memory.usage_in_bytes", "99999999"),
            ("/a/memory.limit_in_bytes", "8192"),
            ("/a/memory.usage_in_bytes", "4096"),
            ("/a/memory.memsw.limit_in_bytes", "12288"),
            ("/a/memory.memsw.usage_in_bytes", "12288"),
            ("/a/memory.stat", "inactive_anon 7\ntotal_inactive_anon 4096\ntotal_active_file 1024\nactive_file 5"),
            ("/a/memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 0"),
        ];
        let both = [V1, V2].concat();
        let found = limits(&both, "4:memory:/a\n0::/\n", true, &files);
        // What goes to swap stays charged to the limit of both, which is the nearer one.
        assert_eq!(rows(&found), [("/a".into(), 0, Some(1024), true)]);
        assert!(found.unseen.is_none(), "{:?}", found.unseen);
        let open = &files[..5];
        assert_eq!(rows(&limits(&both, "4:memory:/a\n", true, open)), [("/a".into(), 4096, None, false)]);
    }

    /// Damaged text, as in a capture, is no limit that is known, and no missing one.
    #[test]
    fn damaged_numbers_are_unknown() {
        let files = [
            ("/a/b/memory.max", "12x"),
            ("/a/b/memory.current", "8192"),
            ("/a/memory.max", "16384"),
            ("/a/memory.current", "16384"),
            ("/a/memory.stat", "inactive_file 4096\nactive_file 1e3"),
        ];
        let found = limits(V2, "0::/a/b\n", false, &files);
        assert_eq!(rows(&found), [("/a".into(), 0, None, false)]);
        let why = found.unseen.map(|error| error.to_string());
        assert_eq!(why.as_deref(), Some("memory.max of its cgroup is no number"));
        for (text, number) in [("max\n", Some(None)), ("9223372036854771712\n", Some(None)), ("12\n", Some(Some(12)))] {
            assert_eq!(number_or_no_limit(text.as_bytes(), GroupFile::Max).ok(), number, "{text}");
        }
        for damaged in ["", "12x", "-1", "maximum", "18446744073709551616"] {
            assert!(number_or_no_limit(damaged.as_bytes(), GroupFile::Limit).is_err(), "{damaged}");
        }
    }

    /// Groups that are not visible may have limits.
    #[test]
    fn what_is_not_seen_is_told() {
        let unseen = |mounts: &str, group: &str, files: &[(&str, &str)]| {
            limits(mounts, group, true, files).unseen.map(|error| error.to_string())
        };
        let inside = ("/cgroup.type", "domain");
        let above = "the cgroups above / are outside of the mounted hierarchy";
        assert_eq!(unseen(V2, "0::/\n", &[inside]).as_deref(), Some(above));
        assert_eq!(unseen(V1, "4:memory:/\n", &[inside]).as_deref(), Some(above));
        let outside = "its cgroup is outside of the mounted hierarchy";
        assert_eq!(unseen(V2, "0::/../other\n", &[inside]).as_deref(), Some(outside));
        let elsewhere = "the hierarchy of memory cgroups is not mounted here";
        assert_eq!(unseen(V2, "4:memory:/a\n0::/\n", &[inside]).as_deref(), Some(elsewhere));
        assert!(unseen("", "0::/a\n", &[inside]).is_some_and(|what| what.contains("not mounted here")));
        // No kernel without cgroups has limits, nor one in which nothing accounts for memory.
        assert_eq!(unseen("", "", &[inside]), None);
        assert_eq!(unseen(V2, "0::/a\n", &[("/cgroup.procs", "")]), None);
    }
}
