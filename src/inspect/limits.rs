//! What may refuse a page for lack of room: the file system of its object, and the cgroups of the process.

use super::address_space::AddressSpace;
use super::classify::Backing;
use super::outcome::{Charge, Room};
use super::region::ViewedRegion;
use crate::kernel::PageSize;
use crate::kernel::mapped_file::FilesystemRoom;
use crate::process::{GroupLimit, GroupLimits};
use crate::report::{Fact, Reason};

/// The limits that may refuse an access. `None` where none does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessLimits {
    /// How full the file system of its object is, if it may have no room; or why that is unknown.
    pub room: Fact<Option<FilesystemRoom>>,
    /// The nearest cgroup of the process that has no room for a page; or why it is unknown whether there is one.
    pub group: Fact<Option<GroupLimit>>,
}

impl Default for AccessLimits {
    fn default() -> Self {
        AccessLimits { room: Ok(None), group: Ok(None) }
    }
}

impl AccessLimits {
    /// Finds how full the file system behind a region is.
    pub(super) fn find_room(&mut self, space: &AddressSpace, viewed: &ViewedRegion) {
        let region = &viewed.region;
        let may_grow = match viewed.backing {
            // The kernel's own mounts have no limit.
            Backing::Shmem | Backing::Hugetlb => !space.target().machine.is_unmounted(region.device),
            Backing::File => region.permissions.shared && region.permissions.write,
            _ => false,
        };
        // A server may be asked for it.
        if !may_grow {
            return;
        }
        self.room = match space.target().modules.mapped_file(region) {
            Ok(file) => Ok(file.room.filter(|&left| of_room(left, space.page_size()) != Room::Enough)),
            Err(error) => Err(error.into()),
        };
    }

    /// The room for new pages of its object.
    pub(super) fn room(&self, page: PageSize) -> Room {
        match &self.room {
            Ok(left) => left.map_or(Room::Enough, |left| of_room(left, page)),
            Err(_) => Room::Unknown,
        }
    }

    /// Finds whether a memory cgroup of the process is at its limit, and what happens then.
    pub(super) fn find_memory_limit(&mut self, space: &AddressSpace) -> Charge {
        let bytes = space.page_size().bytes();
        let GroupLimits { groups, unseen, .. } = space.target().process.memory_limits();
        let mut reached: Vec<GroupLimit> = groups.into_iter().filter(|group| group.left() < bytes).collect();
        // All of them are charged: where reclaim would find too little decides, then where it may.
        let is_short = |group: &GroupLimit| Some(group.left().saturating_add(group.reclaimable?) < bytes);
        let first = |short| reached.iter().position(|group| is_short(group) == short);
        let short = first(Some(true)).or_else(|| first(None));
        let decides = (!reached.is_empty()).then(|| reached.swap_remove(short.unwrap_or(0)));
        let charge = match &decides {
            Some(group) if short.is_some() && group.waits => Charge::MayWait,
            Some(_) if short.is_some() => Charge::MayKill,
            _ => Charge::Passes,
        };
        self.set_group(decides, unseen);
        charge
    }

    /// Whether a cgroup of the process is at its limit on pages of the pool, which have `bytes` bytes.
    pub(super) fn find_pool_limit(&mut self, space: &AddressSpace, bytes: u64) -> bool {
        let GroupLimits { groups, unseen, .. } = space.target().process.pool_limits(bytes);
        let reached = groups.into_iter().find(|group| group.left() < bytes);
        let is_reached = reached.is_some();
        self.set_group(reached, unseen);
        is_reached
    }

    fn set_group(&mut self, reached: Option<GroupLimit>, unseen: Option<crate::process::Error>) {
        self.group = match (reached, unseen) {
            (None, Some(error)) => Err(Reason::from(error).of("the limits of its cgroups are unknown:")),
            (reached, _) => Ok(reached),
        };
    }
}

/// What the hugetlb pool has for a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PoolRoom {
    /// Whether it has pages that are free and not reserved; `None` if that is unknown.
    pub has_spare: Option<bool>,
    /// Whether reserved pages may be used here: not those of other nodes.
    pub is_reserve_in_reach: bool,
}

impl PoolRoom {
    /// Of the pool with pages of `bytes` bytes. Only nodes count that the cpuset of the process and the memory policy
    /// of the region permit (dequeue_hugetlb_folio_vma in mm/hugetlb.c).
    pub(super) fn of(space: &AddressSpace, viewed: &ViewedRegion, bytes: u64) -> Self {
        let machine = &space.target().machine;
        let free = |node| machine.free_pool_pages(bytes, node);
        let nodes = machine.nodes();
        let start = viewed.range().start();
        let may_use = |node| Some((node, space.target().process.may_use_node(start, node)?));
        let usable = if nodes.len() < 2 {
            free(None)
        } else {
            let known: Option<Vec<(u32, bool)>> = nodes.into_iter().map(may_use).collect();
            let add = |sum: u64, node| Some(sum.saturating_add(free(Some(node))?));
            let usable = |nodes: Vec<(u32, bool)>| nodes.into_iter().filter(|(_, may)| *may).map(|(node, _)| node);
            known.and_then(|nodes| usable(nodes).try_fold(0, add))
        };
        let is_more = |(free, reserved)| free > reserved;
        PoolRoom {
            has_spare: usable.zip(machine.reserved_pool_pages(bytes)).map(is_more),
            is_reserve_in_reach: usable != Some(0),
        }
    }
}

/// The room that a file system has. Memory tells exactly how much is left. On a disk, blocks kept for root and blocks
/// that are allocated only when the file is written back make less than 1 %, or less than 8 MiB, uncertain.
fn of_room(left: FilesystemRoom, page: PageSize) -> Room {
    const UNCERTAIN_BYTES: u64 = 8 << 20;
    let needed = page.bytes().max(left.block);
    match left.available {
        available if left.is_memory && available < needed => Room::None,
        _ if left.is_memory => Room::Enough,
        available if available < UNCERTAIN_BYTES.max(left.bytes / 100) => Room::Little,
        _ => Room::Enough,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::kernel::VirtualAddress;
    use crate::process::fake::File;
    use crate::process::fake::{PAGE, World, region};
    use crate::report::Effect;

    /// What the first write to anonymous memory may do, with these files of the process's cgroup.
    fn effects(files: &[(&str, &str)]) -> Vec<Effect> {
        let mounts = "41 31 0:36 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let texts = vec![(File::OwnMounts, mounts.to_owned()), (File::Cgroup, "0::/a\n".to_owned())];
        let group_files = files.iter().map(|&(name, text)| (format!("/a/{name}"), format!("{text}\n"))).collect();
        let (_, target) = World { texts, group_files, ..World::new([region(0x200, 4)]) }.target();
        let (space, detail) = AddressSpace::detail_at(&target, VirtualAddress::new(0x201 * PAGE)).expect("a page");
        space.predict_access(&detail, &mut Budget::unlimited()).expect("an answer").write.effects
    }

    /// At the limit, only what memory.stat shows keeps the OOM killer away.
    #[test]
    fn what_reclaim_can_free_is_known_or_may_be_too_little() {
        let full = [("memory.max", "8192"), ("memory.current", "8192")];
        let with = |stat: &'static str| effects(&[&full[..], &[("memory.stat", stat)]].concat());
        let (passes, may_kill) = (vec![Effect::Zeros], vec![Effect::Zeros, Effect::OutOfMemory]);
        assert_eq!(effects(&full), may_kill, "it cannot be read");
        assert_eq!(with("inactive_file 4096\nactive_file 0"), passes);
        assert_eq!(with("inactive_file 2048\nactive_file 0"), may_kill, "less than a page");
        assert_eq!(with("inactive_file 1e9\nactive_file 0"), may_kill, "it is damaged");
        // Sums of foreign numbers do not wrap.
        let most = format!("inactive_file {0}\nactive_file {0}", u64::MAX);
        assert_eq!(effects(&[&full[..], &[("memory.stat", &most)]].concat()), passes);
        let nearly = [("memory.max", "8192"), ("memory.current", "8191"), ("memory.stat", &*most)];
        assert_eq!(effects(&nearly), passes);
        // With room, none of this is asked.
        assert_eq!(effects(&[("memory.max", "8192"), ("memory.current", "0")]), passes);
    }
}
