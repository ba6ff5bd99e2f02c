//! A change between two samples.

use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::report::{EventKind, PageFacts, Stopped};

/// What happened between two samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// What.
    pub kind: EventKind,
    /// Where it starts; `None` for what happened to the whole process.
    pub address: Option<VirtualAddress>,
    /// Pages to which it happened, one after the other; 0 for the whole process. Where there are frames, before and after, those of the
    /// pages follow each other too.
    pub pages: u64,
    /// For changes of a region: the addresses that changed.
    pub range: Option<AddressRange>,
    /// The first page as it was.
    pub before: Option<PageFacts>,
    /// The first page as it is.
    pub after: Option<PageFacts>,
    /// The region; if that is the change, as it was, unless it is new.
    pub region: Option<Region>,
    /// For changes of a region that is still there: as it is.
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
