//! The words of a frame, as many records have them.

use super::wire::{flag_names, flags_hex, not};
use crate::kernel::PageFlags;
use serde::Serialize;

/// What the kernel's files have of a frame: of `/proc/kpageflags` and `/proc/kpagecount` a word each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(into = "Written")]
pub struct FrameWords {
    /// Its flags; of several frames, those that all of them have.
    pub flags: Option<PageFlags>,
    /// How often it is mapped.
    pub map_count: Option<u64>,
    /// Whether that may be an average over the large folio that it is of.
    pub map_count_average: bool,
}

/// As JSON has them: flags by name and as a number.
#[derive(Serialize)]
struct Written {
    #[serde(serialize_with = "flag_names")]
    flags: Option<PageFlags>,
    #[serde(serialize_with = "flags_hex")]
    flags_raw: Option<PageFlags>,
    map_count: Option<u64>,
    #[serde(skip_serializing_if = "not")]
    map_count_average: bool,
}

impl From<FrameWords> for Written {
    fn from(words: FrameWords) -> Self {
        Written {
            flags: words.flags,
            flags_raw: words.flags,
            map_count: words.map_count,
            map_count_average: words.map_count_average,
        }
    }
}
