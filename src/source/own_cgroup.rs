//! The memory that pmdb's own cgroups leave: the target may be in the same one.

use crate::kernel::mounts::{self, Mount};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names in a group's directory, and in its `memory.stat`.
struct Names {
    limit: &'static str,
    used: &'static str,
    /// Page cache that was not used for long: the kernel drops it before anything else.
    droppable: &'static str,
}

const V1: Names =
    Names { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", droppable: "total_inactive_file" };
const V2: Names = Names { limit: "memory.max", used: "memory.current", droppable: "inactive_file" };

/// What the tightest of pmdb's own groups leaves; `None` if none of those that can be seen has a limit.
pub(super) fn room() -> Option<u64> {
    /// The hierarchy. A later mount of it is not noticed.
    static MOUNT: OnceLock<Option<Mount>> = OnceLock::new();
    let mount = MOUNT.get_or_init(|| {
        let mounts = mounts::parse(&fs::read("/proc/self/mountinfo").ok()?).ok()?;
        mounts::memory_hierarchy(&mounts).cloned()
    });
    let mount = mount.as_ref()?;
    // pmdb may have been moved to another group.
    let own = mount.group_in(&fs::read("/proc/self/cgroup").ok()?);
    let names = if mount.filesystem == "cgroup2" { V2 } else { V1 };
    tightest(path(mount.point.as_bytes()), path(&own.unwrap_or_default()), &names)
}

/// What is left in the group `own` below `point`, and in each group that it is part of.
fn tightest(point: &Path, own: &Path, names: &Names) -> Option<u64> {
    let own: PathBuf = point.components().chain(own.components().filter(|part| part.as_os_str() != "/")).collect();
    own.ancestors().take_while(|group| group.starts_with(point)).filter_map(|group| left(group, names)).min()
}

/// What is left in one group; `None` if it has no limit, or hides it.
fn left(group: &Path, names: &Names) -> Option<u64> {
    let text = |name| fs::read_to_string(group.join(name)).ok();
    let number = |name| text(name)?.trim().parse::<u64>().ok();
    let (limit, used) = (number(names.limit)?, number(names.used)?);
    let stat = text("memory.stat").unwrap_or_default();
    let droppable = stat.lines().find_map(|line| line.strip_prefix(names.droppable)?.trim().parse().ok());
    Some(limit.saturating_sub(used.saturating_sub(droppable.unwrap_or(0))))
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hierarchy of files: group, limit, used, droppable.
    fn made(names: &Names, groups: &[(&str, &str, u64, u64)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a directory");
        for (group, limit, used, droppable) in groups {
            let group = folder.path().join(group);
            fs::create_dir_all(&group).expect("a group");
            let write = |name: &str, text: String| fs::write(group.join(name), text).expect("written");
            write(names.limit, format!("{limit}\n"));
            write(names.used, format!("{used}\n"));
            write("memory.stat", format!("anon 77\n{} {droppable}\nx 5\n", names.droppable));
        }
        folder
    }

    #[test]
    fn the_tightest_group_counts_less_what_is_used() {
        for names in [V1, V2] {
            let folder = made(&names, &[("a/b", "1000", 700, 100), ("a", "500", 400, 0), ("a/other", "1", 1, 0)]);
            let left = |own: &str| tightest(folder.path(), Path::new(own), &names);
            assert_eq!(left("/a/b"), Some(100));
            assert_eq!(left("/a"), Some(100));
            // Its own directory cannot be seen, or none has a limit.
            assert_eq!(left("/a/hidden"), Some(100));
            assert_eq!(left("/"), None);
            assert_eq!(left(""), None);
        }
        let folder = made(&V2, &[("a/b", "1000", 700, 0), ("a", "max", 5, 0), (".", "250", 300, 0)]);
        assert_eq!(tightest(folder.path(), Path::new("/a/b"), &V2), Some(0));
        assert_eq!(left(&folder.path().join("a"), &V2), None);
    }
}
