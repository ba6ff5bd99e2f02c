//! The addresses that an entry of the debug information covers, and the functions around addresses: the function of the
//! code, and those that were inlined into it.
//!
//! The entries of a unit are read once, in the order of the file, with a list of open functions instead of recursion,
//! because a hostile file may nest its entries deeply.

use super::NoLines;
use super::sections::SectionReader;
use crate::budget::Budget;
use gimli::{Attribute, AttributeValue, Dwarf, RangeListsOffset, RngListIter, Unit, UnitOffset};

/// The address of code that the linker left out of the program. No real code begins there.
pub(super) const NOWHERE: u64 = 0;

/// The addresses of an entry.
#[derive(Clone, Copy, Default)]
pub(super) struct EntryRanges {
    low: Option<u64>,
    high: Option<High>,
    list: Option<RangeListsOffset>,
}

#[derive(Clone, Copy)]
enum High {
    Address(u64),
    Size(u64),
}

impl EntryRanges {
    /// Reads an attribute, if it is one of the addresses.
    pub(super) fn take(
        &mut self,
        dwarf: &Dwarf<SectionReader<'_>>,
        unit: &Unit<SectionReader<'_>>,
        attribute: &Attribute<SectionReader<'_>>,
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

/// Returns the addresses in the first entry of a unit.
pub(super) fn root_ranges(
    dwarf: &Dwarf<SectionReader<'_>>,
    unit: &Unit<SectionReader<'_>>,
) -> Result<EntryRanges, NoLines> {
    let mut entries = unit.entries_raw(None)?;
    let mut claimed = EntryRanges::default();
    if let Some(abbreviation) = entries.read_abbreviation()? {
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            claimed.take(dwarf, unit, &attribute)?;
        }
    }
    Ok(claimed)
}

/// The ranges of an entry, without empty ones and those left out of the program.
pub(super) struct CodeRanges<'a> {
    list: Option<RngListIter<SectionReader<'a>>>,
    only: Option<(u64, u64)>,
}

impl<'a> CodeRanges<'a> {
    pub(super) fn of(
        dwarf: &Dwarf<SectionReader<'a>>,
        unit: &Unit<SectionReader<'a>>,
        claimed: &EntryRanges,
    ) -> Result<Self, NoLines> {
        let list = claimed.list.map(|list| dwarf.ranges(unit, list)).transpose()?;
        let low = claimed.low.filter(|_| list.is_none());
        let only = low.zip(claimed.high).and_then(|(low, high)| {
            let end = match high {
                High::Address(end) => end,
                High::Size(size) => low.checked_add(size)?,
            };
            is_code(low, end).then_some((low, end))
        });
        Ok(CodeRanges { list, only })
    }

    /// Returns the next range.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<(u64, u64)>, NoLines> {
        while let Some(list) = &mut self.list
            && let Some(range) = list.next()?
        {
            budget.go_on()?;
            if is_code(range.begin, range.end) {
                return Ok(Some((range.begin, range.end)));
            }
        }
        Ok(self.only.take())
    }
}

fn is_code(begin: u64, end: u64) -> bool {
    begin != NOWHERE && begin < end
}

/// The deepest inlining of a function. Deeper ones are left out.
const DEEPEST: usize = 256;

/// The most functions around all addresses together: a line with code in thousands of places is inlined some ten levels
/// deep.
const MOST_SCOPES: usize = 1 << 20;

/// A function around an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FunctionScope {
    /// The entry of the function.
    pub(super) entry: UnitOffset,
    /// The place of the call, if the function was inlined.
    pub(super) call: Option<InlinedCall>,
}

/// The place of an inlined call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct InlinedCall {
    pub(super) file: u64,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
}

/// A function whose entries are being read.
struct OpenFunction {
    depth: isize,
    entry: UnitOffset,
    /// Whether one of the addresses is inside the function.
    is_inside: bool,
}

/// Returns for each of `addresses` (in order) the functions around it, the outermost first; empty if there is none.
pub(super) fn around(
    dwarf: &Dwarf<SectionReader<'_>>,
    unit: &Unit<SectionReader<'_>>,
    addresses: &[u64],
    budget: &mut Budget,
) -> Result<Vec<Vec<FunctionScope>>, NoLines> {
    let mut chains: Vec<Vec<FunctionScope>> = vec![Vec::new(); addresses.len()];
    let mut open: Vec<OpenFunction> = Vec::new();
    let mut taken = 0;
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let (entry, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else {
            budget.go_on()?;
            continue;
        };
        budget.spend(1 + abbreviation.attributes().len() as u64)?;
        while open.last().is_some_and(|last| depth <= last.depth) {
            open.pop();
        }
        let tag = abbreviation.tag();
        let inlined = tag == gimli::DW_TAG_inlined_subroutine;
        let within = open.last().is_some_and(|last| last.is_inside);
        if open.is_empty() && chains.iter().all(|chain| !chain.is_empty()) {
            break;
        }
        if tag != gimli::DW_TAG_subprogram && !(inlined && within) {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut claimed = EntryRanges::default();
        let mut call = InlinedCall::default();
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            claimed.take(dwarf, unit, &attribute)?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_call_file, AttributeValue::FileIndex(file)) => call.file = file,
                (gimli::DW_AT_call_line, _) => call.line = attribute.udata_value().filter(|&line| line > 0),
                (gimli::DW_AT_call_column, _) => {
                    call.column = attribute.udata_value().filter(|&column| column > 0);
                }
                _ => {}
            }
        }
        let scope = FunctionScope { entry, call: inlined.then_some(call) };
        let mut holds = false;
        let mut ranges = CodeRanges::of(dwarf, unit, &claimed)?;
        while let Some((begin, end)) = ranges.next(budget)? {
            let first = addresses.partition_point(|&address| address < begin);
            let after = addresses.partition_point(|&address| address < end);
            for chain in chains.get_mut(first..after).unwrap_or_default() {
                budget.go_on()?;
                if take(chain, scope, &open) {
                    holds = true;
                    taken += 1;
                }
            }
            if taken > MOST_SCOPES {
                return Err(NoLines::TooLarge);
            }
        }
        open.push(OpenFunction { depth, entry, is_inside: holds });
    }
    Ok(chains)
}

/// Adds `scope` to a chain, if it is inside the chain's last function. Returns whether it is.
fn take(chain: &mut Vec<FunctionScope>, scope: FunctionScope, open: &[OpenFunction]) -> bool {
    let Some(last) = chain.last() else {
        if scope.call.is_none() {
            chain.push(scope);
        }
        return scope.call.is_none();
    };
    let within = open.binary_search_by_key(&last.entry, |one| one.entry).is_ok();
    if !within || chain.len() >= DEEPEST {
        return false;
    }
    if scope.call.is_none() {
        // A function within a function, such as a lambda, has a separate frame.
        chain.clear();
    }
    chain.push(scope);
    true
}
