//! Two forms of flags: names, and a number.

use crate::kernel::PageFlags;

/// The name of the field with flags as a number, which stands beside the field `flags`.
pub(super) const FLAGS_RAW: &str = "flags_raw";

/// Flags by name alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FlagNames(pub PageFlags);
