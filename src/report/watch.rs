//! Records of `watch`.

use super::wire::{flag_names, not};
use super::{SymbolBrief, Why};
use crate::kernel::{FrameNumber, Name, PageFlags, State, VirtualAddress};
use serde::{Serialize, Serializer};

/// What happened to a page, a region or the target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A page became present.
    Came,
    /// A page is no longer there.
    Went,
    /// Another frame, same contents as far as can be told.
    Moved,
    /// To swap.
    SwappedOut,
    /// From swap.
    SwappedIn,
    /// A shared or file page was replaced by a private copy.
    CopiedOnWrite,
    /// A huge page is now mapped by small entries.
    Split,
    /// Small pages are now mapped as one huge page.
    Collapsed,
    /// A guard page came.
    GuardInstalled,
    /// A guard page went.
    GuardRemoved,
    /// Page flags changed.
    FlagsChanged,
    /// The map count changed.
    MapCountChanged,
    /// The soft-dirty bit changed.
    SoftDirty,
    /// A region appeared.
    RegionAppeared,
    /// A region grew.
    RegionGrew,
    /// A region shrank.
    RegionShrank,
    /// A region went.
    RegionWent,
    /// A region's rights changed.
    RegionChanged,
    /// The process runs another program.
    Executed,
    /// The process exited.
    Exited,
}

impl EventKind {
    /// Whether it happens to pages, rather than to a region or to the process.
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

    /// What happened, in words: `copied on write`.
    pub const fn words(self) -> &'static str {
        match self {
            EventKind::Came => "came",
            EventKind::Went => "went",
            EventKind::Moved => "moved",
            EventKind::SwappedOut => "swapped out",
            EventKind::SwappedIn => "swapped in",
            EventKind::CopiedOnWrite => "copied on write",
            EventKind::Split => "split",
            EventKind::Collapsed => "collapsed",
            EventKind::GuardInstalled => "guard installed",
            EventKind::GuardRemoved => "guard removed",
            EventKind::FlagsChanged => "flags changed",
            EventKind::MapCountChanged => "map count changed",
            EventKind::SoftDirty => "soft-dirty",
            EventKind::RegionAppeared => "region appeared",
            EventKind::RegionGrew => "region grew",
            EventKind::RegionShrank => "region shrank",
            EventKind::RegionWent => "region went",
            EventKind::RegionChanged => "region changed",
            EventKind::Executed => "executed",
            EventKind::Exited => "exited",
        }
    }
}

/// One change.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Seconds since the epoch.
    pub time: f64,
    /// Where it starts; `None` for events of the whole process.
    pub address: Option<VirtualAddress>,
    /// Pages that changed the same way at the same time.
    pub pages: u64,
    /// What happened.
    pub kind: EventKind,
    /// How it was.
    pub before: Option<PageFacts>,
    /// How it is.
    pub after: Option<PageFacts>,
    /// Name of the region.
    pub region: Option<Name>,
    /// The symbol there.
    pub symbol: Option<SymbolBrief>,
    /// More, in words: the new end of a region, the program executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

fn counts<S: Serializer>(events: &[(EventKind, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(events.iter().map(|(kind, count)| (kind, count)))
}

/// What an event compares: one side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PageFacts {
    /// State.
    pub state: State,
    /// First frame.
    pub pfn: Option<FrameNumber>,
    /// Flags, when they are watched.
    #[serde(serialize_with = "flag_names")]
    pub flags: Option<PageFlags>,
    /// Map count, when it is watched.
    pub map_count: Option<u64>,
    /// Whether that may be an average over the large folio that it is of.
    #[serde(skip_serializing_if = "not")]
    pub map_count_average: bool,
    /// Why the state is no more than the likeliest, if it is.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// What is being watched, and what cannot be seen here.
#[derive(Clone, Debug, Serialize)]
pub struct WatchStart {
    /// Pages in the range now.
    pub pages: u64,
    /// Seconds between two looks.
    pub every: f64,
    /// Kinds of event that cannot be seen here, each with the reason.
    pub blind: Vec<Blind>,
}

/// A kind of event that cannot be seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Blind {
    /// The kind.
    pub kind: EventKind,
    /// Why not.
    pub reason: String,
}

/// How a watch ended.
#[derive(Clone, Debug, Serialize)]
pub struct WatchSummary {
    /// Looks taken.
    pub looks: u64,
    /// Seconds it lasted.
    pub seconds: f64,
    /// Events of each kind. A change of several pages counts once for each page, a change of a region or of the process once.
    #[serde(serialize_with = "counts")]
    pub events: Vec<(EventKind, u64)>,
    /// Rows of each kind. A row holds neighbouring pages that changed in the same way.
    #[serde(serialize_with = "counts")]
    pub rows: Vec<(EventKind, u64)>,
    /// Why it ended: `interrupted`, `count`, `duration`, `until`, `exited`.
    pub ended: &'static str,
}
