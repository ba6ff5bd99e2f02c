//! Changes between two samples of the same addresses. A sample costs the reads of what is populated and a comparison of
//! raw words; words that are the same are not decoded.

mod change;
mod look;
mod pages;
mod region_groups;
mod regions;
mod sample;
mod shared_frames;
mod snapshot;
#[cfg(test)]
mod tests;
mod watcher;
mod words;

pub use change::Change;
pub use look::{Look, Sampled};
pub use region_groups::RegionGroups;
pub use snapshot::{Relation, SharedPages, Snapshot};
pub use watcher::Watcher;
