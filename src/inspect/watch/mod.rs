//! The changes between two samples of the same addresses. A sample costs the reads of the populated pages and a
//! comparison of raw words. Equal words are not decoded.

mod difference;
mod groups;
mod numbers;
mod pages;
mod regions;
mod snapshot;
#[cfg(test)]
mod tests;
mod watcher;
mod words;

pub use difference::{Difference, FoundChanges};
pub use groups::{ChangeCounts, ChangeGroups, ChangedGroup, ChangesOfGroup, MOST_LATER_REGIONS};
pub use numbers::NumberSet;
pub use regions::Change;
pub use snapshot::{OpenSnapshot, PageRelation, SharedPages, Snapshot, SnapshotProgress};
pub use watcher::{Look, Survival, Watcher};
