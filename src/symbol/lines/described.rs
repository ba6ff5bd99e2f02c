//! Where the functions of a unit are described.

use super::NoLines;
use super::sections::Bytes;
use super::units::Units;
use gimli::{Dwarf, Unit};

/// The unit that describes the functions of a unit: itself, unless its debug information is split.
#[derive(Clone, Copy)]
pub(super) struct Described<'s, 'a> {
    pub(super) dwarf: &'s Dwarf<Bytes<'a>>,
    pub(super) unit: &'s Unit<Bytes<'a>>,
    /// Those of its file.
    pub(super) units: &'s Units,
    /// The units of the file that several modules share, or why it is not read.
    pub(super) shared: Result<&'s Units, &'s NoLines>,
}
