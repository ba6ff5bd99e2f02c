//! Memory zones and nodes, from `/proc/zoneinfo`.

use super::FrameNumber;

/// The zones of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Zones(Vec<Zone>);

/// One zone: a stretch of frames on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, …
    pub name: String,
    /// First frame.
    pub start: FrameNumber,
    /// Frames spanned.
    pub spanned: u64,
}

impl Zones {
    /// The zone that spans `frame`.
    pub fn of(&self, frame: FrameNumber) -> Option<&Zone> {
        self.0.iter().find(|zone| {
            frame
                .checked_sub(zone.start.get())
                .is_some_and(|into| into.get() < zone.spanned)
        })
    }
}
