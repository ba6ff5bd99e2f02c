//! Where a frame lies, and who pays for it: what several records say in the same words.

use super::{Fact, Why};
use crate::kernel::Name;
use crate::kernel::zones::Zone;
use serde::{Serialize, Serializer};
use std::fmt;

/// Where a frame lies, and who pays for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FramePlace {
    /// Memory zone.
    pub zone: Option<String>,
    /// NUMA node.
    pub node: Option<u32>,
    /// The resources of `/proc/iomem` that hold it, the outermost first.
    pub iomem: Option<Vec<Name>>,
    /// Inode of the directory of its memory cgroup; 0 for none.
    pub cgroup: Option<u64>,
    /// The path of that directory.
    pub cgroup_path: Option<CgroupPath>,
}

impl FramePlace {
    /// Takes the facts apart, and notes under the name of each field why it is not known.
    pub fn of(facts: PlaceFacts, why: &mut Why) -> Self {
        let zone = why.take("zone", facts.zone);
        if let (None, Some(reason)) = (&zone, why.of("zone").cloned()) {
            why.note("node", &reason);
        }
        FramePlace {
            node: zone.as_ref().map(|zone| zone.node),
            zone: zone.map(|zone| zone.name),
            iomem: why.take("iomem", facts.iomem),
            cgroup: why.take("cgroup", facts.cgroup),
            cgroup_path: why.take("cgroup_path", facts.cgroup_path),
        }
    }
}

/// What is known of where a frame lies.
#[derive(Clone, Debug)]
pub struct PlaceFacts {
    /// The zone and node.
    pub zone: Fact<Zone>,
    /// The resources of `/proc/iomem`, the outermost first.
    pub iomem: Fact<Vec<Name>>,
    /// Inode of the directory of the memory cgroup that it is charged to; 0 for none.
    pub cgroup: Fact<u64>,
    /// The path of that directory.
    pub cgroup_path: Fact<CgroupPath>,
}

/// The directory of a memory cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CgroupPath {
    /// From the root of the hierarchy.
    Path(Name),
    /// No directory has this inode: the group was removed while pages were still charged to it, or lies outside of what is shown here.
    Gone(u64),
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CgroupPath::Path(path) => path.fmt(f),
            CgroupPath::Gone(inode) => write!(f, "@{inode}"),
        }
    }
}

impl Serialize for CgroupPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
