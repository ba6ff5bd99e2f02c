//! The changes that are seen.

use crate::kernel::words::worded;

worded! {
    /// What happened to a page, a region or the target.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum EventKind, words {
        /// A page became present.
        Came = "came",
        /// A page is no longer there.
        Went = "went",
        /// A page has another frame, and as far as can be known the same contents.
        Moved = "moved",
        /// A page went to swap.
        SwappedOut = "swapped out",
        /// A page came back from swap.
        SwappedIn = "swapped in",
        /// A shared or file page was replaced by a private copy.
        CopiedOnWrite = "copied on write",
        /// A huge page is now mapped by small entries.
        Split = "split",
        /// Small pages are now mapped as one huge page.
        Collapsed = "collapsed",
        /// The contents changed: `diff` of snapshots with content.
        Written = "written",
        /// A guard page came.
        GuardInstalled = "guard installed",
        /// A guard page went.
        GuardRemoved = "guard removed",
        /// Page flags changed.
        FlagsChanged = "flags changed",
        /// The map count changed.
        MapCountChanged = "map count changed",
        /// The soft-dirty bit was set: the page was written to.
        SoftDirty = "soft-dirty",
        /// A region appeared.
        RegionAppeared = "region appeared",
        /// A region grew.
        RegionGrew = "region grew",
        /// A region shrank.
        RegionShrank = "region shrank",
        /// A region went.
        RegionWent = "region went",
        /// A region's rights changed.
        RegionChanged = "region changed",
        /// The process runs another program.
        Executed = "executed",
        /// The process exited.
        Exited = "exited",
    }
}

impl EventKind {
    /// Whether it is about pages, rather than a region or the process.
    pub const fn is_of_pages(self) -> bool {
        !matches!(
            self,
            EventKind::RegionAppeared
                | EventKind::RegionGrew
                | EventKind::RegionShrank
                | EventKind::RegionWent
                | EventKind::RegionChanged
                | EventKind::Executed
                | EventKind::Exited
        )
    }
}
