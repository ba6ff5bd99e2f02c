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
        /// A page is no longer present.
        Went = "went",
        /// A page has another frame, with the same contents as far as pmdb can see.
        Moved = "moved",
        /// A page was swapped out.
        SwappedOut = "swapped out",
        /// A page was swapped in.
        SwappedIn = "swapped in",
        /// A private copy replaced a shared page or a page of a file.
        CopiedOnWrite = "copied on write",
        /// A huge page is now mapped by small entries.
        Split = "split",
        /// Small pages are now mapped as one huge page.
        Collapsed = "collapsed",
        /// The contents of a page changed (only in `diff`, with `content`).
        Written = "written",
        /// A guard page was installed.
        GuardInstalled = "guard installed",
        /// A guard page was removed.
        GuardRemoved = "guard removed",
        /// The flags of a frame changed.
        FlagsChanged = "flags changed",
        /// The map count of a frame changed.
        MapCountChanged = "map count changed",
        /// A page was written: its soft-dirty bit was set.
        SoftDirty = "soft-dirty",
        /// A region appeared.
        RegionAppeared = "region appeared",
        /// A region grew.
        RegionGrew = "region grew",
        /// A region shrank.
        RegionShrank = "region shrank",
        /// A region was removed.
        RegionWent = "region went",
        /// The permissions of a region changed.
        RegionChanged = "region changed",
        /// The process executed another program.
        Executed = "executed",
        /// The process exited.
        Exited = "exited",
    }
}

impl EventKind {
    /// Whether pages came, went or were swapped: their frames are not the change.
    pub const fn is_of_presence(self) -> bool {
        matches!(self, EventKind::Came | EventKind::Went | EventKind::SwappedOut | EventKind::SwappedIn)
    }

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
