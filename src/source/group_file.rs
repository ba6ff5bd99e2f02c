//! The files of a cgroup that are read.

use super::class::questions_of;
use crate::kernel::mounts::Controller;
use std::borrow::Cow;

questions_of! {
    /// Which directories of the hierarchy of memory cgroups are listed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum CgroupQuery<'a> {
        /// All directories.
        All = "all" => machine(WhileDecoding, Cgroups),
        /// The directory with this path below the mount.
        At(path: &'a [u8]) = "at" => machine(WhileDecoding, Cgroups),
    }
}

/// A memory cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// The inode of its directory.
    pub inode: u64,
    /// The path of the group below the mount of the hierarchy.
    pub path: Vec<u8>,
}

questions_of! {
    /// A file of a cgroup.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum GroupFile {
        /// `cgroup.procs`: the processes in the group, without those of its descendants.
        Processes = "cgroup.procs" => machine(OfCgroup, Nothing),
        /// `memory.current`: the bytes charged to the group (cgroup v2).
        Current = "memory.current" => machine(WhileDecoding, Nothing),
        /// `memory.usage_in_bytes`: the bytes charged to the group (cgroup v1).
        Usage = "memory.usage_in_bytes" => machine(WhileDecoding, Nothing),
        /// `memory.stat`: the charged bytes by kind.
        Stat = "memory.stat" => machine(WhileDecoding, Nothing),
        /// `memory.max`: the most that may be charged, or `max` (cgroup v2; the root has none).
        Max = "memory.max" => machine(WhileDecoding, Nothing),
        /// `memory.limit_in_bytes`: the most that may be charged (cgroup v1). The largest number of whole pages means
        /// no limit.
        Limit = "memory.limit_in_bytes" => machine(WhileDecoding, Nothing),
        /// `memory.peak`: the most that was charged (cgroup v2, since Linux 5.19).
        Peak = "memory.peak" => machine(OfCgroup, Nothing),
        /// `memory.max_usage_in_bytes`: the most that was charged (cgroup v1).
        MaxUsage = "memory.max_usage_in_bytes" => machine(OfCgroup, Nothing),
        /// `memory.events`: contains the number of killed processes (cgroup v2).
        Events = "memory.events" => machine(OfCgroup, Nothing),
        /// `memory.oom_control`: contains the number of killed processes (cgroup v1, since Linux 4.13).
        OomControl = "memory.oom_control" => machine(WhileDecoding, Nothing),
        /// `memory.kmem.usage_in_bytes`: memory of the kernel in cgroup v1.
        KernelUsage = "memory.kmem.usage_in_bytes" => machine(OfCgroup, Nothing),
        /// `memory.swap.max`: the most bytes in swap, or `max` (cgroup v2).
        SwapMax = "memory.swap.max" => machine(WhileDecoding, Nothing),
        /// `memory.swap.current`: the bytes in swap (cgroup v2).
        SwapCurrent = "memory.swap.current" => machine(WhileDecoding, Nothing),
        /// `memory.memsw.limit_in_bytes`: the most bytes in memory and in swap (cgroup v1).
        LimitWithSwap = "memory.memsw.limit_in_bytes" => machine(WhileDecoding, Nothing),
        /// `memory.memsw.usage_in_bytes`: the bytes in memory and in swap (cgroup v1).
        UsageWithSwap = "memory.memsw.usage_in_bytes" => machine(WhileDecoding, Nothing),
        /// `hugetlb.SIZE.max`: the most bytes of the pool with pages of this size (cgroup v2). Reserved pages have a
        /// separate limit, which a fault does not check.
        PoolMax(bytes: u64) = "hugetlb.max" => machine(WhileDecoding, Nothing),
        /// `hugetlb.SIZE.current`: the bytes of the pool in use (cgroup v2).
        PoolCurrent(bytes: u64) = "hugetlb.current" => machine(WhileDecoding, Nothing),
        /// `hugetlb.SIZE.limit_in_bytes`: the most bytes of the pool (cgroup v1).
        PoolLimit(bytes: u64) = "hugetlb.limit_in_bytes" => machine(WhileDecoding, Nothing),
        /// `hugetlb.SIZE.usage_in_bytes`: the bytes of the pool in use (cgroup v1).
        PoolUsage(bytes: u64) = "hugetlb.usage_in_bytes" => machine(WhileDecoding, Nothing),
        /// `cgroup.type`: in cgroup v2 only the root of the hierarchy lacks it.
        Type(controller: Controller) = "cgroup.type" => machine(WhileDecoding, Nothing),
        /// `release_agent`: in cgroup v1 only the root of the hierarchy has it.
        ReleaseAgent(controller: Controller) = "release_agent" => machine(WhileDecoding, Blanked),
    }
}

impl GroupFile {
    /// Returns the name of the file in the directory of a group.
    pub(crate) fn name(self) -> Cow<'static, str> {
        let of_pool = |bytes, name: &str| Cow::from(format!("hugetlb.{}.{name}", pool_size(bytes)));
        Cow::from(match self {
            GroupFile::Processes => "cgroup.procs",
            GroupFile::Current => "memory.current",
            GroupFile::Usage => "memory.usage_in_bytes",
            GroupFile::Stat => "memory.stat",
            GroupFile::Max => "memory.max",
            GroupFile::Limit => "memory.limit_in_bytes",
            GroupFile::Peak => "memory.peak",
            GroupFile::MaxUsage => "memory.max_usage_in_bytes",
            GroupFile::Events => "memory.events",
            GroupFile::OomControl => "memory.oom_control",
            GroupFile::KernelUsage => "memory.kmem.usage_in_bytes",
            GroupFile::SwapMax => "memory.swap.max",
            GroupFile::SwapCurrent => "memory.swap.current",
            GroupFile::LimitWithSwap => "memory.memsw.limit_in_bytes",
            GroupFile::UsageWithSwap => "memory.memsw.usage_in_bytes",
            GroupFile::PoolMax(bytes) => return of_pool(bytes, "max"),
            GroupFile::PoolCurrent(bytes) => return of_pool(bytes, "current"),
            GroupFile::PoolLimit(bytes) => return of_pool(bytes, "limit_in_bytes"),
            GroupFile::PoolUsage(bytes) => return of_pool(bytes, "usage_in_bytes"),
            GroupFile::Type(_) => "cgroup.type",
            GroupFile::ReleaseAgent(_) => "release_agent",
        })
    }

    /// Returns the controller whose hierarchy has the file.
    pub(crate) fn controller(self) -> Controller {
        match self {
            GroupFile::PoolMax(_) | GroupFile::PoolCurrent(_) | GroupFile::PoolLimit(_) | GroupFile::PoolUsage(_) => {
                Controller::Pool
            }
            GroupFile::Type(controller) | GroupFile::ReleaseAgent(controller) => controller,
            _ => Controller::Memory,
        }
    }
}

/// Returns a page size as in the names of files (`mem_fmt` in mm/hugetlb_cgroup.c).
fn pool_size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{}GB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{}MB", bytes >> 20),
        bytes => format!("{}KB", bytes >> 10),
    }
}
