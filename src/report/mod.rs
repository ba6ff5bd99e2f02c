//! The words for facts, and the reasons for unknown ones.
//!
//! A missing fact is never zero: it is a [`Reason`], in its place ([`Fact`]) or in the reasons of the record ([`Why`]).

#[cfg(feature = "cli")]
mod error_code;
mod facts;
mod flag_names;
mod huge;
#[cfg(feature = "serde")]
#[doc(hidden)]
pub mod json;
mod kernel_record;
mod reason;
pub(crate) mod record;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod records;
mod words;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use error_code::{EXIT_STATUSES, ErrorCode};
pub use facts::{
    CgroupPath, FolioMapping, FolioReport, FramePlace, FrameWords, HowMapped, LargeFolios, NetEffect, PageFacts,
    SharedCounts, WhoCounts,
};
pub use flag_names::FlagNames;
pub use huge::{HugeBy, HugePast, HugeRefusal, KnownPins};
pub use kernel_record::{
    FilePage, FreeBlock, Holders, KernelRecord, REFERENCES_OF_A_PIN, RecordedOwner, SlabPage, TableEntryReport,
};
pub use reason::{Fact, PagesByReason, Reason, Stopped};
pub use record::Why;
pub use words::{
    AccessOutcome, AccountClass, AccountMark, BesideRss, ChargeClass, Effect, EventKind, FamilyClass, Fault,
    FrameClass, MapKey, Movable, ObjectKind, Owner,
};

#[cfg(feature = "serde")]
#[doc(hidden)]
pub use json::*;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use records::*;
