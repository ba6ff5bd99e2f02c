//! Records of `watch … as timeline`.

use super::Mark;
use crate::kernel::{Name, VirtualAddress};
use crate::report::record::record;

record! {
    /// A row of `watch … as timeline`.
    pub struct TimelineRow as "timeline-row" {
        /// Its place among the rows, from 0.
        row: u64,
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Pages of regions in it.
        pages: u64,
        /// The region that it began in, as `maps` names it.
        region: Option<Name>,
        /// Regions that share the row.
        regions: u64,
    }

    /// A column of `watch … as timeline`.
    pub struct TimelineSample as "timeline-sample" {
        /// Seconds since the epoch.
        time: f64,
        /// A cell for each row so far, in order, neighbours that are alike together.
        cells: Vec<TimelineCells>,
    }

    /// Neighbouring rows that are alike in a sample.
    #[derive(Copy, Eq)]
    pub struct TimelineCells {
        /// Their number.
        cells: u64,
        /// The most important that is in each, as in `map-region`.
        mark: Mark,
        /// Whether there is something else in each.
        mixed: bool,
        /// Whether something has changed in each since the sample before.
        changed: bool,
    }
}
