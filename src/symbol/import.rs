//! The functions that a file takes from others, as its dynamic table numbers and names them.

use super::NoSymbols;
use super::clock::Clock;
use super::names;
use super::query::Query;
use super::section::{LONGEST_NAME, Table};
use super::source::Source;
use super::table::{Kind, Symbol};
use crate::kernel::Name;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A function of the dynamic table.
#[derive(Clone)]
pub(super) struct Import {
    number: u32,
    /// Where its name is among the strings of the table.
    offset: u32,
    name: Vec<u8>,
}

impl Import {
    /// That of a number.
    pub(super) fn of(source: &Source, number: u32) -> Option<Import> {
        let Source { file, elf } = source;
        let table = dynamic(source)?;
        let at = u64::from(number).checked_mul(elf.symbol_bytes() as u64)?;
        // The name comes first in an entry of either width.
        let entry = file.read(table.offset.checked_add(at)?, 4, "symbol table");
        let offset = u32::try_from(elf.number(&entry.ok()?)).ok()?;
        Some(Import {
            number,
            offset,
            name: table.strings.get(file, offset)?,
        })
    }

    /// All that a person calls `name`, by number; only those found until then, once `clock` has run out.
    pub(super) fn called(
        source: &Source,
        name: &str,
        clock: &mut Clock,
    ) -> Result<HashMap<u32, Import>, NoSymbols> {
        let mut found = HashMap::new();
        let Some(table) = dynamic(source) else {
            return Ok(found);
        };
        let Source { file, elf } = source;
        let query = Query::whole(name);
        let strings = names::strings(file, table.strings)?;
        let size = elf.symbol_bytes();
        let whole = table.size / size as u64 * size as u64;
        let mut numbers = 0..;
        file.pass(table.offset, whole, size, "symbol table", &mut |bytes| {
            for (entry, number) in bytes.chunks_exact(size).zip(&mut numbers) {
                if clock.is_over() {
                    return ControlFlow::Break(());
                }
                let offset = entry.first_chunk::<4>().map_or(0, |word| elf.number(word));
                let Ok(offset) = u32::try_from(offset) else {
                    continue;
                };
                let rest = usize::try_from(offset)
                    .ok()
                    .and_then(|at| strings.get(at..));
                let name = rest.and_then(|rest| names::up_to_end(rest, LONGEST_NAME));
                let Some(called) = name.filter(|called| query.is(called)) else {
                    continue;
                };
                let import = Import {
                    number,
                    offset,
                    name: called.to_vec(),
                };
                found.insert(number, import);
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// What stands for it in the file itself at an address, and what that is called.
    pub(super) fn plt_or_got(
        &self,
        source: &Source,
        (address, size): (u64, u64),
        kind: Kind,
        suffix: &str,
    ) -> (Symbol, Name) {
        let section = source.elf.section_at(address);
        let symbol = Symbol {
            address,
            size,
            name: self.offset,
            section: section.and_then(|number| u16::try_from(number).ok()),
            number: self.number,
            table: 0,
            kind,
            local: true,
        };
        let name = [&self.name, suffix.as_bytes()].concat();
        (symbol, Name::new(name))
    }
}

/// The table that the dynamic linker goes by.
fn dynamic(source: &Source) -> Option<&Table> {
    source.elf.tables.iter().find(|table| !table.full)
}
