//! The account of a process: where the memory is that Rss counts, in classes that add up to it.
//!
//! Every mapping of a page that Rss counts is in one [`AccountClass`](crate::report::AccountClass). The first that
//! applies counts: elsewhere (the page is moving, on a device, or failed), the kernel's own, merged, private (anonymous
//! memory and copies of file pages), shared memory, file. Private pages are mapped only here, or shared since a fork;
//! those of shared memory and of files are mapped only by this process, or by others too. [Marks] say more of the pages
//! of a class. What Rss leaves out stands [beside](crate::report::BesideRss) the sum.
//!
//! [Marks]: crate::report::AccountMark
//!
//! Without frame numbers the page map still shows most of it. [`Accounting`] settles the rest from the sums that smaps
//! has of a region, if only one answer fits them; otherwise it stays in a class of its own.
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
mod frame_counts;
mod frames;
mod grouped;
mod mapped_parts;
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
pub use frames::{FrameAccount, FrameAccountSums, counted_without_mark, counter, frame_account};
pub use grouped::{AccountSums, GroupedAccounting};
pub use objects::{
    Bound, MemoryObject, MemoryObjects, ObjectHolder, ObjectIdentity, UnknownFiles, unattached_segments,
};
pub use proof::{Check, checks};
pub use rests::FolioRest;
pub use sums::{Account, AccountEntry};
pub(in crate::inspect) use zeros::ZeroPieces;
