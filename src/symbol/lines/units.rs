//! The unit of the debug information to which an address belongs.

use super::NoLines;
use super::rows::RowPass;
use super::scopes::{CodeRanges, root_ranges};
use super::sections::SectionReader;
use crate::budget::Budget;
use crate::symbol::reason::or_fault;
use gimli::{
    Abbreviations, DebugAbbrev, DebugAbbrevOffset, DebugInfoOffset, DebugInfoUnitHeadersIter, Dwarf, Reader, Section,
    Unit, UnitHeader, UnitType,
};
use std::sync::Arc;

/// The most address ranges for one file.
const MOST_RANGES: usize = 1 << 22;

/// The units of a file, and the addresses that they cover.
#[derive(Default)]
pub(super) struct Units {
    /// The offset of each unit in `.debug_info`, in order.
    pub(super) offsets: Vec<usize>,
    /// The ranges of addresses, by start.
    covered: Vec<UnitRange>,
    /// Whether some units are described in separate files.
    has_split: bool,
    /// Why some units were skipped.
    pub(super) fault: Option<NoLines>,
}

/// A range of file addresses that a unit claims.
struct UnitRange {
    begin: u64,
    end: u64,
    unit: usize,
    /// The greatest end among this range and those before it.
    reach: u64,
}

impl Units {
    /// Reads the first entry of every unit.
    pub(super) fn read(dwarf: &Dwarf<SectionReader<'_>>, budget: &mut Budget) -> Result<Units, NoLines> {
        let (mut opener, mut units) = (Opener::default(), Units::default());
        let mut headers = dwarf.units();
        while let Some((header, offset)) = units.add_next(&mut headers, budget)? {
            let claims =
                matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_) | UnitType::SplitCompilation(_));
            if claims {
                let unit = opener.open(dwarf, header);
                units.has_split |= unit.as_ref().is_ok_and(|unit| unit.dwo_id.is_some());
                let claimed = unit.and_then(|unit| units.claim(dwarf, &unit, offset, budget));
                or_fault(claimed, &mut units.fault)?;
            }
        }
        units.covered.sort_unstable_by_key(|one| (one.begin, one.unit));
        let mut reach = 0;
        for one in &mut units.covered {
            reach = one.end.max(reach);
            one.reach = reach;
        }
        Ok(units)
    }

    /// Lists the units without reading their entries.
    pub(super) fn list(dwarf: &Dwarf<SectionReader<'_>>, budget: &mut Budget) -> Result<Units, NoLines> {
        let (mut units, mut headers) = (Units::default(), dwarf.units());
        while units.add_next(&mut headers, budget)?.is_some() {}
        Ok(units)
    }

    /// Adds the next unit, by its header and its offset in `.debug_info`.
    fn add_next<'a>(
        &mut self,
        headers: &mut DebugInfoUnitHeadersIter<SectionReader<'a>>,
        budget: &mut Budget,
    ) -> Result<Option<(UnitHeader<SectionReader<'a>>, usize)>, NoLines> {
        loop {
            budget.look()?;
            let next = headers.next().map_err(NoLines::from);
            let Some(header) = or_fault(next, &mut self.fault)?.flatten() else {
                return Ok(None);
            };
            if let Some(offset) = header.debug_info_offset() {
                self.offsets.push(offset.0);
                return Ok(Some((header, offset.0)));
            }
        }
    }

    fn claim(
        &mut self,
        dwarf: &Dwarf<SectionReader<'_>>,
        unit: &Unit<SectionReader<'_>>,
        offset: usize,
        budget: &mut Budget,
    ) -> Result<(), NoLines> {
        let mut add = |begin: u64, end: u64| {
            if self.covered.len() >= MOST_RANGES {
                return Err(NoLines::TooLarge);
            }
            self.covered.push(UnitRange { begin, end, unit: offset, reach: 0 });
            Ok(())
        };
        let claimed = root_ranges(dwarf, unit)?;
        let mut ranges = CodeRanges::of(dwarf, unit, &claimed)?;
        let mut any = false;
        while let Some((begin, end)) = ranges.next(budget)? {
            any = true;
            add(begin, end)?;
        }
        let mut rows = RowPass::new(unit);
        while !any && let Some((begin, end)) = rows.sequence(budget)? {
            add(begin, end)?;
        }
        Ok(())
    }

    /// Returns an empty list, for a file in which no unit is looked up by offset.
    pub(super) fn none() -> &'static Units {
        static NONE: Units = Units { offsets: Vec::new(), covered: Vec::new(), has_split: false, fault: None };
        &NONE
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn size(&self) -> u64 {
        let covered = self.covered.capacity() * size_of::<UnitRange>();
        (covered + self.offsets.capacity() * size_of::<usize>()) as u64
    }

    /// Returns the units that claim `address`, by their offsets in `.debug_info`.
    pub(super) fn units_at(&self, address: u64, budget: &mut Budget) -> Result<Vec<usize>, NoLines> {
        let after = self.covered.partition_point(|one| one.begin <= address);
        let mut units = Vec::new();
        for one in self.covered.iter().take(after).rev() {
            budget.go_on()?;
            if one.reach <= address || units.len() >= MOST_CLAIMANTS {
                break;
            }
            if address < one.end && !units.contains(&one.unit) {
                units.push(one.unit);
            }
        }
        Ok(units)
    }

    /// Returns the unit that contains an offset in `.debug_info`.
    pub(super) fn unit_at_offset(&self, offset: usize) -> Option<usize> {
        let after = self.offsets.partition_point(|&begin| begin <= offset);
        self.offsets.get(after.checked_sub(1)?).copied()
    }
}

/// The most units that are searched for one address.
const MOST_CLAIMANTS: usize = 16;

/// The most bytes of abbreviations in one unit: compilers write some thousands. In memory they need sixteen times as
/// much.
const LARGEST_ABBREVIATIONS: usize = 4 << 20;

fn abbreviations(section: &DebugAbbrev<SectionReader<'_>>, at: DebugAbbrevOffset) -> Result<Abbreviations, NoLines> {
    let all = section.reader();
    let end = at.0.saturating_add(LARGEST_ABBREVIATIONS);
    match all.slice().get(..end) {
        None => Ok(section.abbreviations(at)?),
        Some(first) => DebugAbbrev::new(first, all.endian()).abbreviations(at).map_err(|error| match error {
            gimli::Error::UnexpectedEof(_) => NoLines::TooLarge,
            error => error.into(),
        }),
    }
}

/// Opens units, and caches the abbreviations, which neighbouring units share.
#[derive(Default)]
pub(super) struct Opener(Option<(DebugAbbrevOffset, Arc<Abbreviations>)>);

impl Opener {
    /// Opens the unit of a header.
    pub(super) fn open<'a>(
        &mut self,
        dwarf: &Dwarf<SectionReader<'a>>,
        header: UnitHeader<SectionReader<'a>>,
    ) -> Result<Unit<SectionReader<'a>>, NoLines> {
        let at = header.debug_abbrev_offset();
        let abbreviations = match &self.0 {
            Some((known, abbreviations)) if *known == at => Arc::clone(abbreviations),
            _ => {
                let read = Arc::new(abbreviations(&dwarf.debug_abbrev, at)?);
                self.0 = Some((at, Arc::clone(&read)));
                read
            }
        };
        Ok(Unit::new_with_abbreviations(dwarf, header, abbreviations)?)
    }

    /// Opens the unit that begins at an offset in `.debug_info`.
    pub(super) fn open_at<'a>(
        &mut self,
        dwarf: &Dwarf<SectionReader<'a>>,
        offset: usize,
    ) -> Result<Unit<SectionReader<'a>>, NoLines> {
        let header = dwarf.unit_header(DebugInfoOffset(offset))?;
        self.open(dwarf, header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::RunTimeEndian;

    #[test]
    fn abbreviations_are_bounded() {
        // Each: its number, a tag, no children, no attributes.
        let one = |number: u32| {
            let low = |shift: u32| (number >> shift & 0x7f) as u8;
            [low(0) | 0x80, low(7) | 0x80, low(14) | 0x80, low(21), 0x34, 0, 0, 0]
        };
        let read = |count: u32, rest: &[u8]| {
            // The first is of an odd size, so that none ends where reading does.
            let mut bytes = vec![0x80, 0x80, 0x80, 0x82, 0, 0x34, 0, 0, 0];
            bytes.extend((1..=count).flat_map(one));
            bytes.extend(rest);
            let section = DebugAbbrev::new(&bytes, RunTimeEndian::Little);
            abbreviations(&section, DebugAbbrevOffset(0))
        };
        assert!(read(1000, &[0]).is_ok_and(|found| found.get(1000).is_some()));
        assert!(read(1000, &[0; LARGEST_ABBREVIATIONS]).is_ok());
        assert!(matches!(read(1 << 19, &[0]), Err(NoLines::TooLarge)));
        assert!(matches!(read(1000, &[0xff; 20]), Err(NoLines::Damaged(_))));
    }
}
