//! The values of the fields of regions, which [`crate::lang::field`] names. `None` is "no answer for this one", which is
//! neither true nor false.

use crate::inspect::{Backing, RegionStats, ViewedRegion};
use crate::lang::RegionField;

/// Whether a field of regions needs to know what is populated: the `stats` of [`integer`].
pub fn needs_stats(field: RegionField) -> bool {
    use RegionField as F;
    matches!(field, F::Rss | F::Present | F::Pss | F::Swapped | F::SharedBytes | F::PrivateBytes | F::Huge)
}

/// The value of a boolean field of regions; `None` for other fields, and where a core file does not tell.
pub fn boolean(field: RegionField, viewed: &ViewedRegion) -> Option<bool> {
    use RegionField as F;
    let region = &viewed.region;
    Some(match field {
        F::Size | F::Start | F::End => return None,
        F::Rss | F::Present | F::Pss | F::Swapped | F::SharedBytes | F::PrivateBytes | F::Huge => return None,
        F::Offset | F::Inode | F::Name | F::Perms => return None,
        F::Readable => return region.permissions.right(|rights| rights.read),
        F::Writable => return region.permissions.right(|rights| rights.write),
        F::Executable => return region.permissions.right(|rights| rights.execute),
        F::Private => return region.permissions.sharing().map(|shared| !shared),
        F::Shared => return region.permissions.sharing(),
        F::Anonymous => region.inode == 0 && viewed.backing != Backing::Kernel,
        F::File => region.inode != 0,
        F::Deleted => region.is_deleted_file(),
    })
}

/// The least and the greatest value that a field of regions can have where [`integer`] has none: no more bytes
/// are in memory or in swap than the region is long. `None` for other fields.
pub fn bounds(field: RegionField, viewed: &ViewedRegion) -> Option<(u64, u64)> {
    needs_stats(field).then(|| (0, viewed.region.range.len()))
}

/// The value of a number field of regions; `None` for other fields, without `stats`, and where these rest on states
/// that are uncertain or hidden.
pub fn integer(field: RegionField, viewed: &ViewedRegion, stats: Option<&RegionStats>) -> Option<u64> {
    let region = &viewed.region;
    let stats = stats.filter(|stats| stats.why_hidden().is_none());
    match field {
        RegionField::Size => Some(region.range.len()),
        RegionField::Start => Some(region.range.start().get()),
        RegionField::End => Some(region.range.end().get()),
        RegionField::Offset => Some(region.offset),
        RegionField::Inode => Some(region.inode),
        RegionField::Rss => stats.and_then(|stats| stats.rss.clone().ok()),
        RegionField::Present => stats.map(|stats| stats.present),
        RegionField::SharedBytes => stats.and_then(|stats| stats.shared.clone().ok()),
        RegionField::PrivateBytes => stats.and_then(|stats| stats.private.clone().ok()),
        RegionField::Pss => stats.and_then(|stats| stats.pss.clone().ok()),
        RegionField::Huge => stats.and_then(|stats| stats.huge.clone().ok()),
        RegionField::Swapped => stats.and_then(|stats| stats.certainly_swapped().ok()),
        _ => None,
    }
}

/// Whether `is` holds for the value of a text field of regions, or for the part of a name after the last slash. `None`
/// for other fields.
pub fn text_is(field: RegionField, viewed: &ViewedRegion, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
    let region = &viewed.region;
    match field {
        RegionField::Name => Some(region.names().any(|name| is(name.as_bytes()))),
        RegionField::Perms => region.permissions.right(|_| true).map(|_| is(region.permissions.letters().as_bytes())),
        _ => None,
    }
}
