//! Records of `watch`.

use super::SymbolBrief;
use crate::kernel::{Name, VirtualAddress};
use crate::report::json::Numbers;
use crate::report::record::record;
use crate::report::{EventKind, NetEffect, PageFacts};

record! {
    /// A line of `watch`.
    pub struct Event as "event" {
        /// Seconds since the epoch.
        time: f64,
        /// First address; `null` for events of the whole process.
        address: Option<VirtualAddress>,
        /// Neighbouring pages that changed in the same way; for a region that went or shrank, those that were in memory
        /// or in swap.
        pages: u64,
        /// The event.
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

    /// The heading of `watch`.
    pub struct WatchStart as "watch-start" {
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
    pub struct EventGroup as "event-group" {
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

    /// The totals of `watch`.
    pub struct WatchSummary as "watch-summary" {
        /// Number of samples.
        samples: u64,
        /// Samples that were due during an earlier one.
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
