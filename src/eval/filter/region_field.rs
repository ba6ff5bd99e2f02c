//! The values of the fields of regions, which [`crate::lang::field`] names: each field once.

use crate::inspect::{Backing, RegionAmount, RegionStats, ViewedRegion};
use crate::kernel::Name;
use crate::kernel::words::Worded as _;
use crate::lang::{FilterField as _, RegionField};

/// The value of a field for one region.
pub enum RegionValue {
    /// The field has no value, so that a condition on it is neither true nor false.
    Unknown,
    /// A boolean value.
    Is(bool),
    /// A number.
    Number(u64),
    /// An unknown number of bytes, up to this: the memory and swap of a region are at most its length.
    AtMost(u64),
    /// A text in several forms.
    Texts(Vec<Name>),
}

/// Returns the amount of memory that is a field, if it is one and has to be counted.
pub fn amount(field: RegionField) -> Option<RegionAmount> {
    // `shared` is a condition too.
    RegionAmount::from_word(field.name()).filter(|_| field.is_integer())
}

/// Returns the value of a field. The populated part of a region is unknown without `stats`, and if these depend on
/// states that are uncertain or hidden.
pub fn value(field: RegionField, viewed: &ViewedRegion, stats: Option<&RegionStats>) -> RegionValue {
    use RegionField as F;
    use RegionValue::{Is, Number, Texts, Unknown};
    let region = &viewed.region;
    let (permissions, range) = (region.permissions, region.range);
    let known = |is: Option<bool>| is.map_or(Unknown, Is);
    let counted = |amount| {
        let bytes = |stats: &RegionStats| stats.certain_amount(amount).map_or(RegionValue::AtMost(range.len()), Number);
        stats.map_or(Unknown, bytes)
    };
    match field {
        F::Size => Number(range.len()),
        F::Rss | F::Present | F::Pss | F::Swapped | F::SharedBytes | F::ExclusiveBytes | F::Huge => {
            amount(field).map_or(Unknown, counted)
        }
        F::Start => Number(range.start().get()),
        F::End => Number(range.end().get()),
        F::Offset => Number(region.offset),
        F::Inode => Number(region.inode),
        F::Name => Texts(region.names().collect()),
        F::Perms => match permissions.right(|_| true) {
            Some(_) => Texts(vec![Name::from(permissions.letters())]),
            None => Unknown,
        },
        F::Readable => known(permissions.right(|rights| rights.read)),
        F::Writable => known(permissions.right(|rights| rights.write)),
        F::Executable => known(permissions.right(|rights| rights.execute)),
        F::Private => known(permissions.sharing().map(|shared| !shared)),
        F::Shared => known(permissions.sharing()),
        F::Anonymous => Is(!region.maps_object() && viewed.backing != Backing::Kernel),
        F::File => Is(region.maps_object()),
        F::Deleted => Is(region.is_deleted_file()),
    }
}
