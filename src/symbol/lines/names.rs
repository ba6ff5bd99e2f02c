//! The names of functions, found by following an entry's references.

use super::NoLines;
use super::described::Described;
use super::path::text;
use super::sections::Bytes;
use super::units::Opener;
use crate::budget::Budget;
use crate::kernel::Name;
use gimli::{AttributeValue, Unit, UnitOffset};

/// A longer chain of references is not followed.
const MOST_HOPS: usize = 16;
/// Longer names are not shown.
const LONGEST: usize = 64 * 1024;

/// The name of a function, of two kinds.
pub(super) enum Called {
    /// The linkage name.
    Linked(Name),
    /// The name in the source, without its class or namespace: there is no linkage name.
    Plain(Name),
}

/// The name of a function.
pub(super) fn of_function(
    described: Described<'_, '_>,
    entry: UnitOffset,
    budget: &mut Budget,
) -> Result<Option<Called>, NoLines> {
    let Described { mut dwarf, mut units, unit, shared } = described;
    let mut elsewhere: Option<Unit<Bytes<'_>>> = None;
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
                    if let Some(name) = text(dwarf, unit, value).and_then(named) {
                        return Ok(Some(Called::Linked(name)));
                    }
                }
                gimli::DW_AT_name if plain.is_none() => {
                    plain = text(dwarf, unit, value).and_then(named);
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
        let Some(begin) = units.holding(offset.0) else {
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
    Ok(plain.map(Called::Plain))
}

fn named(bytes: &[u8]) -> Option<Name> {
    (!bytes.is_empty() && bytes.len() <= LONGEST).then(|| Name::new(bytes))
}
