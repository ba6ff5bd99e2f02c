//! All functions that debug information describes, for files whose symbol table was stripped.

use super::NoLines;
use super::frames::{DescribingUnit, FunctionName, of_function};
use super::scopes::{CodeRanges, EntryRanges};
use super::sections::Sections;
use super::units::{Opener, Units};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::symbol::elf::ElfFile;
use crate::symbol::reason::or_fault;
use gimli::{AttributeValue, UnitOffset};

/// The most functions of one file.
const MOST_FUNCTIONS: usize = 1 << 19;
/// The most bytes of all their names.
const MOST_TEXT: usize = 128 << 20;

/// A function with code.
pub(in crate::symbol) struct DescribedFunction {
    /// The linkage name, or the name in the source if there is none.
    pub(in crate::symbol) name: Name,
    /// The file address of the first byte.
    pub(in crate::symbol) address: u64,
    /// The size of the first part in bytes: the compiler may have moved unlikely code elsewhere.
    pub(in crate::symbol) size: u64,
    /// Whether other files may call it.
    pub(in crate::symbol) is_external: bool,
}

/// Returns the functions in the debug information of `source`, without those of units that are described in separate
/// files. Damaged units are skipped.
pub(in crate::symbol) fn described_functions(
    source: &ElfFile,
    budget: &mut Budget,
) -> Result<Vec<DescribedFunction>, NoLines> {
    let Some(sections) = Sections::read(source, budget)? else {
        return Ok(Vec::new());
    };
    let dwarf = sections.dwarf();
    let units = Units::list(&dwarf, budget)?;
    let (mut found, mut text, mut fault) = (Vec::new(), 0, None);
    let mut opener = Opener::default();
    for &offset in &units.offsets {
        budget.look()?;
        let Some(unit) = or_fault(opener.open_at(&dwarf, offset), &mut fault)? else {
            continue;
        };
        // The file that several modules share (dwz) seldom describes functions with code.
        let shared = Err(&NoLines::NotNamed);
        let describing = DescribingUnit { dwarf: &dwarf, unit: &unit, units: &units, shared };
        let entries = or_fault(entries_with_code(describing, budget), &mut fault)?.unwrap_or_default();
        for (entry, (address, end), is_external) in entries {
            if found.len() >= MOST_FUNCTIONS || text >= MOST_TEXT {
                return Ok(found);
            }
            let name = or_fault(of_function(describing, entry, budget), &mut fault)?.flatten();
            if let Some(FunctionName::Linked(name) | FunctionName::Plain(name)) = name {
                text += name.as_bytes().len();
                found.push(DescribedFunction { name, address, size: end - address, is_external });
            }
        }
    }
    Ok(found)
}

/// An entry, its first range, and whether the function is external.
type EntryWithCode = (UnitOffset, (u64, u64), bool);

/// Returns the functions with code in a unit, up to the first damaged entry.
fn entries_with_code(describing: DescribingUnit<'_, '_>, budget: &mut Budget) -> Result<Vec<EntryWithCode>, NoLines> {
    let DescribingUnit { dwarf, unit, .. } = describing;
    let mut with_code = Vec::new();
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let entry = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        budget.spend(1 + abbreviation.attributes().len() as u64)?;
        if abbreviation.tag() != gimli::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let (mut claimed, mut is_external) = (EntryRanges::default(), false);
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            claimed.take(dwarf, unit, &attribute)?;
            let is_set = matches!(attribute.value(), AttributeValue::Flag(true));
            is_external |= attribute.name() == gimli::DW_AT_external && is_set;
        }
        if let Some(range) = CodeRanges::of(dwarf, unit, &claimed)?.next(budget)? {
            with_code.push((entry, range, is_external));
        }
        if with_code.len() >= MOST_FUNCTIONS {
            break;
        }
    }
    Ok(with_code)
}
