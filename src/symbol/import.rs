//! The functions that a file takes from others, as its dynamic table numbers and names them.

use super::NoSymbols;
use super::clock::Clock;
use super::elf::{Source, Table};
use super::names;
use super::query::Query;
use super::table::{self, Kind, Symbol};
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
        let table = dynamic(source)?;
        let size = source.elf.symbol_bytes();
        let entry = table.symbols.part(u64::from(number) * size, size)?;
        let mut offset = None;
        let visited = table::visit_names(source, entry, &mut |name| {
            offset = Some(name);
            ControlFlow::Break(())
        });
        let offset = offset.filter(|_| visited.is_ok())?;
        Some(Import {
            number,
            offset,
            name: source.file.string(table.strings, offset)?,
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
        let query = Query::whole(name);
        let strings = names::strings(&source.file, table.strings)?;
        let mut numbers = 0..;
        table::visit_names(source, table.symbols, &mut |offset| {
            if clock.is_over() {
                return ControlFlow::Break(());
            }
            let rest = usize::try_from(offset)
                .ok()
                .and_then(|at| strings.get(at..));
            let name = rest.and_then(names::up_to_end);
            if let Some(number) = numbers.next()
                && let Some(called) = name.filter(|called| query.is(called))
            {
                let name = called.to_vec();
                let import = Import {
                    number,
                    offset,
                    name,
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
