//! Flags, by their names and as a number.

use crate::kernel::PageFlags;

/// The name of the field with the flags as a number, which follows the field `flags`.
pub(super) const FLAGS_RAW: &str = "flags_raw";

/// Flags that are serialized by name only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FlagNames(pub PageFlags);
