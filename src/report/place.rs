//! Where a frame lies, and the cgroup that it is charged to, for several records.

use super::record::record;
use super::{Fact, Reason};
use crate::kernel::Name;
use std::fmt;

record! {
    /// The place of a frame, and the cgroup that is charged for it.
    #[derive(Eq)]
    pub struct FramePlace {
        /// Memory zone.
        zone: Fact<String>,
        /// NUMA node.
        node: Fact<u32>,
        /// The resources of `/proc/iomem` that hold it, the outermost first.
        iomem: Fact<Vec<Name>>,
        /// Inode of the memory cgroup that the frame is charged to; 0 for none.
        cgroup: Fact<u64>,
        /// The path of that cgroup.
        cgroup_path: Fact<CgroupPath>,
    }
}

impl FramePlace {
    /// For a frame about which nothing can be known.
    pub fn unknown(reason: &Reason) -> Self {
        FramePlace {
            zone: Err(reason.clone()),
            node: Err(reason.clone()),
            iomem: Err(reason.clone()),
            cgroup: Err(reason.clone()),
            cgroup_path: Err(reason.clone()),
        }
    }
}

/// The directory of a memory cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CgroupPath {
    /// From the root of the hierarchy.
    Path(Name),
    /// No directory has this inode: the group was removed while pages were still charged to it, or is outside of the
    /// mounted hierarchy.
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
