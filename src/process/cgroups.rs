//! Memory cgroups: from an inode number, as `/proc/kpagecgroup` gives it, to the path of a directory.

use crate::kernel::Name;
use crate::kernel::mounts::{self, Mount};
use crate::source::{Error, File, Groups, Result, Source};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Known groups: for each inode the path below the mount, or `None` if there is no such group. The first query for an
/// unknown inode walks the hierarchy once for all groups.
#[derive(Default)]
pub(super) struct Cgroups(Mutex<BTreeMap<u64, Option<Vec<u8>>>>);

impl Cgroups {
    /// The mount point of the hierarchy.
    pub(super) fn mount(source: &dyn Source) -> Result<Name> {
        let point = Hierarchy::of(source)?.mount.point;
        source.cgroups(Groups::At(b"")).map(|_| point)
    }

    /// The path of the group with that inode; `None` if no directory has it. Mostly it is a group of the target itself
    /// (`/proc/PID/cgroup`).
    pub(super) fn path(&self, inode: u64, source: &dyn Source) -> Result<Option<Name>> {
        let hierarchy = Hierarchy::of(source)?;
        let is_at = |path: &[u8]| -> Result<bool> {
            let groups = source.cgroups(Groups::At(path))?;
            Ok(groups.iter().any(|group| group.inode == inode))
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&inode) {
            // The kernel counts these numbers up: a group that is gone does not soon come back.
            Some(None) => return Ok(None),
            // It may have been removed or renamed since.
            Some(Some(path)) if is_at(path)? => {
                return Ok(Some(hierarchy.full_path(path)));
            }
            _ => {}
        }
        let of_process = source.whole(File::Cgroup).ok();
        if let Some(path) = of_process.and_then(|text| hierarchy.mount.group_in(&text))
            && is_at(&path)?
        {
            let name = hierarchy.full_path(&path);
            known.insert(inode, Some(path));
            return Ok(Some(name));
        }
        known.retain(|_, path| path.is_none());
        let groups = source.cgroups(Groups::All)?.into_iter();
        known.extend(groups.map(|group| (group.inode, Some(group.path))));
        let found = known.entry(inode).or_insert(None);
        Ok(found.as_ref().map(|path| hierarchy.full_path(path)))
    }
}

/// The mounted hierarchy that memory is charged to.
struct Hierarchy {
    mount: Mount,
}

impl Hierarchy {
    fn of(source: &dyn Source) -> Result<Self> {
        let mounts = mounts::parse(&source.whole(File::OwnMounts)?)?;
        let mount = mounts::memory_hierarchy(&mounts).cloned();
        let mount = mount.ok_or_else(|| {
            Error::not_available("no hierarchy of memory cgroups is mounted here: their paths are not known")
        })?;
        Ok(Hierarchy { mount })
    }

    /// The path from the root of the hierarchy, of which only a part may be mounted.
    fn full_path(&self, path: &[u8]) -> Name {
        let root = self.mount.root.as_bytes();
        let root = root.strip_suffix(b"/").unwrap_or(root);
        match [root, path].concat() {
            top if top.is_empty() => Name::from("/"),
            path => Name::new(path),
        }
    }
}
