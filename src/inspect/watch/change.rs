//! A change between two samples.

use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::report::{EventKind, PageFacts, Stopped};

/// What happened between two samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The kind of change.
    pub kind: EventKind,
    /// Where it starts; `None` for what happened to the whole process.
    pub address: Option<VirtualAddress>,
    /// The number of neighbouring pages; 0 for the whole process. Their frames, before and after, follow each other
    /// too.
    pub pages: u64,
    /// For changes of a region: the addresses that changed.
    pub range: Option<AddressRange>,
    /// The first page as it was.
    pub before: Option<PageFacts>,
    /// The first page as it is.
    pub after: Option<PageFacts>,
    /// The region. For a change of the region: as it was, unless it is new.
    pub region: Option<Region>,
    /// The region as it is, for a change of a region that is still there.
    pub region_after: Option<Region>,
}

/// Receives each change, and says whether to go on.
pub type ChangeSink<'a> = dyn FnMut(Change) -> Result<(), Stopped> + 'a;

impl Change {
    pub(crate) fn of_process(kind: EventKind) -> Change {
        Change {
            kind,
            address: None,
            pages: 0,
            range: None,
            before: None,
            after: None,
            region: None,
            region_after: None,
        }
    }
}
