//! The functions at a place, with names and positions. References between entries lead to a name.

use super::path::{self, text};
use super::rows::InstructionRow;
use super::scopes::FunctionScope;
use super::sections::SectionReader;
use super::units::{Opener, Units};
use super::{Frame, NoLines};
use crate::budget::Budget;
use crate::kernel::Name;
use crate::symbol::demangle::may_be_mangled;
use crate::symbol::reason::or_fault;
use gimli::{AttributeValue, Dwarf, Unit, UnitOffset};

/// The unit that describes the functions of a unit: the same one, unless its debug information is split.
#[derive(Clone, Copy)]
pub(super) struct DescribingUnit<'s, 'a> {
    pub(super) dwarf: &'s Dwarf<SectionReader<'a>>,
    pub(super) unit: &'s Unit<SectionReader<'a>>,
    /// The units of the file with this unit.
    pub(super) units: &'s Units,
    /// The units of the file that several modules share, or why it is not read.
    pub(super) shared: Result<&'s Units, &'s NoLines>,
}

/// A unit with a line table, and the unit that describes its functions.
pub(super) struct UnitWithLines<'s, 'a> {
    pub(super) dwarf: &'s Dwarf<SectionReader<'a>>,
    pub(super) unit: &'s Unit<SectionReader<'a>>,
    pub(super) describing: DescribingUnit<'s, 'a>,
}

impl UnitWithLines<'_, '_> {
    /// Returns the frames at `row` in the functions of `chain` (the outermost first) and in `symbol`, the innermost
    /// first. `missing` gets the reason if some are unknown.
    pub(super) fn frames(
        &self,
        row: &InstructionRow,
        chain: &[FunctionScope],
        symbol: Option<&Name>,
        missing: &mut Option<NoLines>,
        budget: &mut Budget,
    ) -> Result<Vec<Frame>, NoLines> {
        let mut frames = vec![Frame {
            function: None,
            is_named_by_symbol: false,
            file: path::of_file(self.dwarf, self.unit, row.file),
            line: row.line,
            column: row.column,
        }];
        for scope in chain.iter().rev() {
            let called = of_function(self.describing, scope.entry, budget);
            let called = or_fault(called, missing)?.flatten();
            // An inlined function has no symbol.
            let symbol = symbol.filter(|_| scope.call.is_none());
            let (function, is_named_by_symbol) = match (called, symbol) {
                (Some(FunctionName::Linked(name)), _) => (Some(name), false),
                // A name such as `operator()` lacks its class, which the symbol has.
                (Some(FunctionName::Plain(_)), Some(symbol)) if may_be_mangled(symbol.as_bytes()) => {
                    (Some(symbol.clone()), false)
                }
                (Some(FunctionName::Plain(name)), _) => (Some(name), false),
                (None, symbol) => (symbol.cloned(), symbol.is_some()),
            };
            if let Some(last) = frames.last_mut() {
                last.function = function;
                last.is_named_by_symbol = is_named_by_symbol;
            }
            if let Some(call) = scope.call {
                frames.push(Frame {
                    function: None,
                    is_named_by_symbol: false,
                    file: path::of_file(self.dwarf, self.unit, call.file),
                    line: call.line,
                    column: call.column,
                });
            }
        }
        Ok(frames)
    }
}

/// The longest chain of references that is followed.
const MOST_HOPS: usize = 16;
/// The longest name that is shown, in bytes.
const LONGEST: usize = 64 * 1024;

/// The name of a function, by its origin.
pub(super) enum FunctionName {
    /// The linkage name.
    Linked(Name),
    /// The name in the source, without class or namespace, because there is no linkage name.
    Plain(Name),
}

/// Finds the name of a function.
pub(super) fn of_function(
    describing: DescribingUnit<'_, '_>,
    entry: UnitOffset,
    budget: &mut Budget,
) -> Result<Option<FunctionName>, NoLines> {
    let DescribingUnit { mut dwarf, mut units, unit, shared } = describing;
    let mut elsewhere: Option<Unit<SectionReader<'_>>> = None;
    let mut entry = entry;
    let mut plain = None;
    for _ in 0..MOST_HOPS {
        let unit = elsewhere.as_ref().unwrap_or(unit);
        let mut entries = unit.entries_raw(Some(entry))?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            break;
        };
        budget.spend(1 + abbreviation.attributes().len() as u64)?;
        let mut origin = None;
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    if let Some(name) = text(dwarf, unit, value).and_then(checked_name) {
                        return Ok(Some(FunctionName::Linked(name)));
                    }
                }
                gimli::DW_AT_name if plain.is_none() => {
                    plain = text(dwarf, unit, value).and_then(checked_name);
                    if let (None, AttributeValue::DebugStrRefSup(_), Err(why)) = (&plain, value, shared) {
                        return Err(why.clone());
                    }
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => origin = Some(value),
                _ => {}
            }
        }
        let offset = match origin {
            Some(AttributeValue::UnitRef(offset)) => {
                entry = offset;
                continue;
            }
            Some(AttributeValue::DebugInfoRef(offset)) => offset,
            Some(AttributeValue::DebugInfoRefSup(offset)) => match (shared, dwarf.sup()) {
                (Ok(shared), Some(sup)) => {
                    (dwarf, units) = (sup, shared);
                    offset
                }
                (Err(why), _) if plain.is_none() => return Err(why.clone()),
                _ => break,
            },
            _ => break,
        };
        let Some(begin) = units.unit_at_offset(offset.0) else {
            break;
        };
        budget.look()?;
        let other = Opener::default().open_at(dwarf, begin)?;
        let Some(offset) = offset.to_unit_offset(&other.header) else {
            break;
        };
        elsewhere = Some(other);
        entry = offset;
    }
    Ok(plain.map(FunctionName::Plain))
}

fn checked_name(bytes: &[u8]) -> Option<Name> {
    (!bytes.is_empty() && bytes.len() <= LONGEST).then(|| Name::new(bytes))
}
