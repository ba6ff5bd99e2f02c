//! The account of a process: the memory that Rss counts, in classes that add up to it.
//!
//! Each mapping of a page that Rss counts is in one [`AccountClass`](crate::report::AccountClass), the first that
//! applies: elsewhere (the page is migrating, on a device, or failed), kernel, merged, private (anonymous memory and
//! copies of file pages), shared memory, file. Private pages have one mapping, or are shared since a fork. Pages of
//! shared memory and of files are mapped by this process only, or by others too. [Marks] show more about the pages of a
//! class. Memory that Rss leaves out is [beside](crate::report::BesideRss) the sum.
//!
//! [Marks]: crate::report::AccountMark
//!
//! Without frame numbers, the page map still shows most of it. [`Accounting`] settles the rest with the sums of smaps
//! for each region, if they fit only one answer. Otherwise it remains in an unclear class.
//!
//! ```
//! use pmdb::inspect::account::{Account, checks};
//! use pmdb::report::AccountClass;
//! use pmdb::{AddressSpace, Evidence, Target};
//!
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::of(&target)?;
//! let mut accounting = space.account(&space.spans(), Evidence::empty(), false);
//! let mut all = Account::default();
//! while let Some(step) = accounting.next()? {
//!     if let Some((_, account)) = step.region {
//!         all.merge(account);
//!     }
//! }
//! for class in AccountClass::ALL {
//!     println!("{} bytes {}", all.of(*class), class.word());
//! }
//! let rollup = target.machine.rollup_of(std::process::id())?;
//! for check in checks(&all, &rollup, space.counts_zeros_as_merged()) {
//!     println!("{}: {} counted, {} in smaps_rollup", check.field, check.counted, check.kernel);
//! }
//! # assert!(all.of(AccountClass::Anonymous) > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accounting;
mod class;
mod family;
mod filesystems;
mod frame_counts;
mod frames;
mod grouped;
mod mapped_parts;
mod object_counter;
mod object_regions;
mod objects;
mod overlaps;
mod proof;
mod rests;
mod settle;
mod sums;
#[cfg(test)]
mod tests;
mod zeros;

pub use accounting::{AccountStep, Accounting};
pub use family::{
    ChargeSearch, ClassSum, Family, FamilyGroup, FamilyGroupKey, FamilyKey, FamilyMember, FamilyStep, FamilySums,
    GroupCharges, UncountedProcesses, called, descendants, of_cgroup,
};
pub use filesystems::{MemoryFilesystem, MemoryFilesystems, memory_filesystems};
pub use frames::{FrameAccount, FrameAccountSums, counted_without_mark, counter, frame_account};
pub use grouped::{AccountSums, GroupedAccounting};
pub use objects::{
    Bound, MemoryObject, MemoryObjects, ObjectHolder, ObjectIdentity, UnknownFiles, unattached_segments,
};
pub use proof::{Check, checks};
pub use rests::FolioRest;
pub use sums::{Account, AccountEntry};
pub(in crate::inspect) use zeros::ZeroPieces;
