//! The addresses that an entry of the debug information covers.

use super::NoLines;
use super::sections::Bytes;
use crate::budget::Budget;
use gimli::{Attribute, AttributeValue, Dwarf, RangeListsOffset, Unit};

/// The address of code that the linker left out of the program: no real code begins there.
pub(super) const NOWHERE: u64 = 0;

/// The addresses of an entry.
#[derive(Clone, Copy, Default)]
pub(super) struct Claimed {
    low: Option<u64>,
    high: Option<High>,
    list: Option<RangeListsOffset>,
}

#[derive(Clone, Copy)]
enum High {
    Address(u64),
    Size(u64),
}

impl Claimed {
    /// Takes an attribute into account.
    pub(super) fn take(
        &mut self,
        dwarf: &Dwarf<Bytes<'_>>,
        unit: &Unit<Bytes<'_>>,
        attribute: &Attribute<Bytes<'_>>,
    ) -> Result<(), gimli::Error> {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = dwarf.attr_address(unit, attribute.value())?,
            gimli::DW_AT_high_pc => {
                self.high = match attribute.value() {
                    AttributeValue::Udata(size) => Some(High::Size(size)),
                    value => dwarf.attr_address(unit, value)?.map(High::Address),
                }
            }
            gimli::DW_AT_ranges => self.list = dwarf.attr_ranges_offset(unit, attribute.value())?,
            _ => {}
        }
        Ok(())
    }
}

/// The addresses in the first entry of a unit.
pub(super) fn root_ranges(dwarf: &Dwarf<Bytes<'_>>, unit: &Unit<Bytes<'_>>) -> Result<Claimed, NoLines> {
    let mut entries = unit.entries_raw(None)?;
    let mut claimed = Claimed::default();
    if let Some(abbreviation) = entries.read_abbreviation()? {
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            claimed.take(dwarf, unit, &attribute)?;
        }
    }
    Ok(claimed)
}

/// Visits the ranges that are not empty, and were not left out of the program.
pub(super) fn each_range(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    claimed: &Claimed,
    budget: &mut Budget,
    visit: &mut dyn FnMut(u64, u64, &mut Budget) -> Result<(), NoLines>,
) -> Result<(), NoLines> {
    if let Some(list) = claimed.list {
        let mut ranges = dwarf.ranges(unit, list)?;
        while let Some(range) = ranges.next()? {
            budget.go_on()?;
            if range.begin != NOWHERE && range.begin < range.end {
                visit(range.begin, range.end, budget)?;
            }
        }
        return Ok(());
    }
    let (Some(low), Some(high)) = (claimed.low, claimed.high) else {
        return Ok(());
    };
    let end = match high {
        High::Address(end) => Some(end),
        High::Size(size) => low.checked_add(size),
    };
    match end {
        Some(end) if low != NOWHERE && low < end => visit(low, end, budget),
        _ => Ok(()),
    }
}
