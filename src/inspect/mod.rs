//! The engine: what pages are, found and followed. No parsing, no printing.
//!
//! A command makes an [`AddressSpace`] of the target (its regions at this moment) and asks it for one page's
//! [`PageDetail`], or pulls many from [`AddressSpace::pages`]; [`PageRows`], [`PhysicalRuns`], [`Totals`] and
//! [`Groups`] put neighbours together as they stream by. What a page *is* is decided in one place,
//! [`classify`](classify::classify), from bytes alone. Only a plain sum of present pages goes without it.
//!
//! All that takes long is pulled (pages, regions, frames, mappers, samples), ends when it is dropped, and takes no more
//! than its [`Budget`](crate::budget::Budget).

pub mod account;
mod address_space;
pub mod classify;
mod detail;
mod error;
mod explain;
mod filter;
mod folio;
mod frames;
mod groups;
mod memory;
mod ordered_pool;
mod outcome;
mod page;
mod region;
mod rows;
mod selection;
mod stats;
mod sweep;
#[cfg(test)]
mod tests;
mod watch;
pub mod who;

pub use address_space::AddressSpace;
pub use classify::{Backing, KernelBehaviour};
pub use detail::PageDetail;
pub use error::{Availability, Error, Result, kind_unknown, no_scan};
pub use explain::Consequences;
pub use filter::{Filter, Question, require_cgroup_paths, require_of_frames};
pub use folio::Folio;
pub use frames::{
    FrameDetail, FrameRow, FrameSweep, cgroup_path, frame_detail, frame_words, is_average, machine_frames, zone,
};
pub use groups::{GroupBy, GroupKey, Groups, Keys, OfFrame};
pub use memory::{Absent, ByteSource, Contents, MemoryRead, ReadEnd, first_absent, read_resident};
pub use outcome::{Access, OwnerUnknown};
pub use page::{Facts, InZone, Page, StateSet};
pub use region::ViewedRegion;
pub use rows::{Neighbours, PageRow, PageRows, PhysicalRun, PhysicalRuns, StateCounts, Totals};
pub use selection::Selection;
pub use stats::{RegionStats, RegionSweep};
pub use sweep::{Chunk, Pages, Sweep};
pub use watch::{Change, Look, PageRelation, RegionGroups, SharedPages, Snapshot, Survival, Watcher};
