//! Records of `watch`.

use super::description::Form;
use super::field::leaf;
use super::record::record;
use super::wire::{FlagNames, Numbers};
use super::{NetEffect, SymbolBrief, Why};
use crate::kernel::words::worded;
use crate::kernel::{FrameNumber, Name, State, VirtualAddress};
use serde::Serialize;

leaf!(EventKind => Form::Text);

worded! {
    /// What happened to a page, a region or the target.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
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

record! {
    /// One change.
    pub struct Event {
        /// Seconds since the epoch.
        time: f64,
        /// First address; `null` for events of the whole process.
        address: Option<VirtualAddress>,
        /// Neighbouring pages that changed in the same way; for a region that went or shrank, those that were in memory
        /// or in swap.
        pages: u64,
        /// What happened.
        kind: EventKind,
        /// The page before.
        before: Option<PageFacts>,
        /// The page after.
        after: Option<PageFacts>,
        /// Name of the region.
        region: Option<Name>,
        /// The symbol at the first byte.
        symbol: Option<SymbolBrief>,
        /// The symbol at the last byte of the pages.
        [optional] last_symbol: Option<SymbolBrief>,
        /// More, in words: the new end of a region, the program executed.
        [optional] detail: Option<String>,
    }

    /// One side of an event: the page before or after it.
    #[derive(Eq)]
    pub struct PageFacts with why if noted {
        /// State.
        state: State,
        /// First frame.
        pfn: Option<FrameNumber>,
        /// Flags, when they are watched.
        flags: Option<FlagNames>,
        /// Map count, when it is watched.
        map_count: Option<u64>,
        /// Whether the map count may be an average over a large folio.
        [optional] map_count_average: bool,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }

    /// What is being watched, and what cannot be seen here.
    pub struct WatchStart {
        /// Pages in the range now.
        pages: u64,
        /// Seconds between two samples.
        every: f64,
        /// Kinds of event that cannot be seen here, each with the reason.
        blind: Vec<Blind>,
    }

    /// A kind of event that cannot be seen.
    #[derive(Eq)]
    pub struct Blind {
        /// The kind.
        kind: EventKind,
        /// Why not.
        reason: String,
    }

    /// A row of `watch … by KEY`.
    pub struct EventGroup {
        /// The key: `region`.
        by: &'static str,
        /// The group: addresses, permissions and name of the region.
        key: String,
        /// Name of the region.
        region: Name,
        /// Pages in all changes. A page that changed twice counts twice.
        pages: u64,
        /// Samples that showed a change.
        samples: u64,
        /// Changes of each kind, counted in pages; changes of the region are counted one by one. Pages that went with
        /// their region count as gone.
        events: Numbers<EventKind>,
        /// Bytes that came and went; if the process executed another program, since then.
        [flat] effect: NetEffect,
    }

    /// How a watch ended.
    pub struct WatchSummary {
        /// Samples taken.
        samples: u64,
        /// Samples that were due while an earlier one was still being taken.
        missed: u64,
        /// Seconds it lasted.
        seconds: f64,
        /// Events of each kind. A change of several pages counts once for each page, a change of a region or of the
        /// process once. Pages that went with their region count as gone.
        events: Numbers<EventKind>,
        /// Bytes that came and went; if the process executed another program, since then.
        [flat] effect: NetEffect,
        /// Rows of each kind. A row holds neighbouring pages that changed in the same way.
        rows: Numbers<EventKind>,
        /// Why it ended: `interrupted`, `count`, `duration`, `until`, `exited`.
        ended: &'static str,
    }
}
