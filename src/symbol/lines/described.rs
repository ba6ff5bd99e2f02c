//! Where the functions of a unit are described.

use super::NoLines;
use super::sections::Bytes;
use super::units::Units;
use gimli::{Dwarf, Unit};

/// What describes the functions of a unit: itself, unless they were split off.
#[derive(Clone, Copy)]
pub(super) struct Described<'s, 'a> {
    pub(super) dwarf: &'s Dwarf<Bytes<'a>>,
    pub(super) unit: &'s Unit<Bytes<'a>>,
    /// Those of its file.
    pub(super) units: &'s Units,
    /// The units of the file that several share, or why that is not read.
    pub(super) shared: Result<&'s Units, &'s NoLines>,
}
