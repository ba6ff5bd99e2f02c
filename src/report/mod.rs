//! The words for facts, and for what is unknown and why.
//!
//! A fact that is missing is never zero: it is a [`Reason`], by itself ([`Fact`]) or among those of a record ([`Why`]).

mod account;
#[cfg(feature = "cli")]
mod error_code;
mod event_kind;
mod flag_names;
mod folio;
mod frame_words;
mod huge;
#[cfg(feature = "serde")]
#[doc(hidden)]
pub mod json;
mod net_effect;
mod outcome;
mod page_counts;
mod page_facts;
mod place;
mod reason;
pub(crate) mod record;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod records;
mod stopped;
mod who_counts;
mod why;

pub use account::{AccountClass, AccountMark, BesideRss, FamilyClass};
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use error_code::ErrorCode;
pub use event_kind::EventKind;
pub use flag_names::FlagNames;
pub use folio::{FolioMapping, FolioReport, HowMapped, LargeFolios};
pub use frame_words::FrameWords;
pub use huge::{HugeBy, HugePast, HugeRefusal};
pub use net_effect::NetEffect;
pub use outcome::{Effect, Fault, Outcome, Owner};
pub use page_counts::PagesByReason;
pub use page_facts::PageFacts;
pub use place::{CgroupPath, FramePlace};
pub use reason::{Fact, Reason};
pub use stopped::Stopped;
pub use who_counts::WhoCounts;
pub use why::Why;

#[cfg(feature = "serde")]
#[doc(hidden)]
pub use json::*;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use records::*;
