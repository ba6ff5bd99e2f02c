//! The engine: what pages are, found and followed. No parsing, no printing.
//!
//! A command makes an [`AddressSpace`] of the target (its regions at this moment) and asks it for one page's
//! [`PageDetail`], or pulls many from [`AddressSpace::pages`]; [`PageRows`], [`PhysicalRuns`], [`Totals`] and
//! [`Groups`] put neighbours together as they stream by. What a page *is* is decided in one place,
//! [`classify`](classify::classify), from bytes alone. Only a plain sum of present pages goes without it.
//!
//! All that takes long is pulled (pages, regions, frames, mappers, samples), ends when it is dropped, and takes no more
//! than its [`Budget`](crate::budget::Budget). Larger questions are pulled step by step ([`Step`]): where bytes stand
//! ([`find`]), what memory holds ([`examine`]), who has pinned pages ([`pins`]), who maps a frame ([`who`]), how much
//! memory regions have ([`AddressSpace::kept_regions`]), which pages and frames match ([`AddressSpace::kept_pages`],
//! [`AddressSpace::rows`], [`machine_frames`]), what changed between two snapshots ([`Difference`], and by what changes
//! add up, [`ChangeGroups`]), and what code is not as in its file (`patches`, with the feature `symbols`).
//!
//! # Which facts answer which question
//!
//! [`Evidence`] are what [`AddressSpace::pages`] has to find out about each page. States need none.
//!
//! | question | facts | of each [`Page`] |
//! |---|---|---|
//! | how much is resident? | none | [`state`](Page::state) is `Present` |
//! | what is in swap, and in which slot? | [`ENTRIES`](Evidence::ENTRIES) | [`state`](Page::state) is `Swapped`; `entry.swap()` and [`AddressSpace::swap_device`] |
//! | what of shared memory is in swap? | none | [`state`](Page::state) is `Swapped`, and [`slot`](Page::slot), where the kernel's own records can be read |
//! | and where they cannot? | [`SHARED_CONTENT`](Evidence::SHARED_CONTENT) | [`kind`](Page::kind) is `MaybeSwapped`: its state is `Untouched` |
//! | what is on huge pages? | [`HUGE`](Evidence::HUGE) | [`huge`](Page::huge), `None` where that is unknown |
//! | is it anonymous, of a file, or the zero page? | [`KINDS`](Evidence::KINDS) | [`kind`](Page::kind) |
//! | where is it physically? | [`FRAMES`](Evidence::FRAMES) | [`frame`](Page::frame) |
//! | is it shared? | [`COUNTS`](Evidence::COUNTS) | [`map_count`](Page::map_count) |
//!
//! A fact that cannot be known here ends the sweep with an error: [`AddressSpace::require`] names it before, and
//! [`AddressSpace::obtainable`] leaves it out. If only one state is possible, [`Page::states`] is certain.
//!
//! ```
//! # use pmdb::kernel::State;
//! # use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//! let buffer = vec![1; 4 << 20];
//! let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
//! let space = AddressSpace::in_ranges(&Target::attach(std::process::id())?, &[range])?;
//! let mut pages = space.pages(&[range], space.obtainable(Evidence::HUGE));
//! while let Some(chunk) = pages.next()? {
//!     for page in chunk.pages() {
//!         match (page.state(), page.huge) {
//!             (State::Present, Some(true)) => {}
//!             (State::Present, Some(false)) => println!("{}: {} small pages", page.address, page.pages),
//!             (state, _) => println!("{}: {} pages are {}", page.address, page.pages, state.word()),
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod account;
#[cfg(feature = "symbols")]
mod address_names;
mod address_space;
mod by_symbol;
pub mod chains;
pub mod classify;
pub mod compare;
mod contents;
#[cfg(feature = "cli")]
mod core_file;
mod detail;
mod error;
pub mod examine;
mod explain;
#[doc(hidden)]
pub mod fact;
mod filter;
pub mod find;
mod flag_counts;
mod folio;
mod frames;
pub mod heap;
mod hidden_words;
mod holders;
mod holds_for;
pub mod huge;
mod kept;
mod kept_regions;
mod kernel_record;
mod limits;
mod map;
mod memory;
mod movable;
mod ordered_pool;
mod outcome;
mod page;
#[cfg(feature = "symbols")]
pub mod patches;
pub mod pins;
#[cfg(feature = "symbols")]
mod pointed;
#[cfg(feature = "cli")]
mod populated_rows;
mod region;
mod region_amount;
mod rows;
mod shared_copies;
mod soft_dirty;
mod states;
mod stats;
mod sweep;
mod table_entry;
#[cfg(test)]
mod tests;
#[cfg(feature = "cli")]
pub(crate) mod unmerged;
mod watch;
pub mod who;

#[cfg(feature = "symbols")]
pub use address_names::{AddressName, AddressNames};
pub use address_space::AddressSpace;
pub use by_symbol::SymbolAt;
#[doc(hidden)]
pub use by_symbol::parts_by_symbol;
pub use classify::{Backing, KernelBehaviour};
pub use contents::{AFTER_END, Absent, ByteSource, Contents};
#[cfg(feature = "cli")]
pub(crate) use core_file::{CoreContents, write_core};
pub use detail::PageDetail;
#[doc(hidden)]
pub use error::no_scan;
pub use error::{Availability, Error, Result};
pub use explain::Consequences;
#[doc(hidden)]
pub use fact::{Answer, FactReader, Gap, kind_unknown};
pub use filter::{AskedField, Filter, Question, require_of_frames};
pub use flag_counts::FlagCounts;
pub use folio::Folio;
#[doc(hidden)]
pub use frames::frame_words;
pub use frames::{
    FrameDetail, FrameRow, FrameSums, FrameSweep, frame_detail, is_average, is_no_frame, machine_frames, zone,
};
#[doc(hidden)]
pub use hidden_words::why_hidden;
pub use holders::{FrameHolders, Pins};
pub use holds_for::{HoldsFor, Quantifier};
pub use kept::{KeptPages, PageSums, RowSweep, Step};
pub use kept_regions::{KeptRegions, RegionQuestion, RegionSums};
#[cfg(feature = "cli")]
pub(crate) use kernel_record::kernel_record;
pub use limits::AccessLimits;
pub use map::{MapCell, MapSweep, RegionMap};
pub use memory::{MemoryRead, ReadEnd, Unread, first_absent, read_resident};
#[cfg(feature = "cli")]
pub(crate) use memory::{ResidentMemory, has_memory, is_resident};
#[doc(hidden)]
pub use movable::movable;
pub use outcome::{Access, OwnerUnknown};
pub use page::{Evidence, FolioFit, InZone, Page};
#[cfg(feature = "cli")]
pub(crate) use populated_rows::{PopulatedRow, RegionPart, divided};
pub use region::ViewedRegion;
pub use region_amount::RegionAmount;
pub use rows::{
    Group, GroupCounts, GroupKeys, Groups, Neighbours, PageRow, PageRows, PhysicalRun, PhysicalRuns, StateCounts,
    Totals,
};
pub use soft_dirty::{SoftDirtyCounts, SoftDirtyPages};
#[cfg(all(test, feature = "cli"))]
pub(crate) use states::HiddenEntry;
pub use states::{StateSet, Uncertainty};
pub use stats::{RegionStats, RegionSweep};
pub use sweep::{Chunk, ChunkPages, Selection, Sweep};
pub use watch::{
    Change, ChangeCounts, ChangeGroups, ChangedGroup, ChangesOfGroup, Difference, FoundChanges, Look,
    MOST_LATER_REGIONS, NumberSet, OpenSnapshot, PageRelation, SharedPages, Snapshot, SnapshotProgress, Survival,
    Watcher,
};
