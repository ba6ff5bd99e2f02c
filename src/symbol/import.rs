//! The functions that a file imports from others, by their number and name in its dynamic table.

use super::NoSymbols;
use super::elf::{Source, Table};
use super::names;
use super::query::Query;
use super::table::{self, Kind, Symbol};
use crate::budget::Budget;
use crate::kernel::Name;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A function of the dynamic table.
#[derive(Clone)]
pub(super) struct Import {
    number: u32,
    /// The offset of its name in the string table.
    offset: u32,
    name: Vec<u8>,
}

impl Import {
    /// The function with a number.
    pub(super) fn of(source: &Source, number: u32) -> Option<Import> {
        let table = dynamic(source)?;
        let size = source.elf.symbol_bytes();
        let entry = table.symbols.part(u64::from(number) * size, size)?;
        let mut offset = None;
        let visited = table::visit_names(source, entry, &mut Budget::unlimited(), &mut |name| {
            offset = Some(name);
            ControlFlow::Break(())
        });
        let offset = offset.filter(|_| visited.is_ok())?;
        Some(Import { number, offset, name: source.file.string(table.strings, offset)? })
    }

    /// All functions that `name` means, by number.
    pub(super) fn called(source: &Source, name: &str, budget: &mut Budget) -> Result<HashMap<u32, Import>, NoSymbols> {
        let mut found = HashMap::new();
        let Some(table) = dynamic(source) else {
            return Ok(found);
        };
        let query = Query::whole(name);
        let strings = names::strings(&source.file, table.strings, budget)?;
        let mut numbers = 0..;
        table::visit_names(source, table.symbols, budget, &mut |offset| {
            let rest = usize::try_from(offset).ok().and_then(|at| strings.get(at..));
            let name = rest.and_then(names::up_to_end);
            if let Some(number) = numbers.next()
                && let Some(called) = name.filter(|called| query.is(called))
            {
                let name = called.to_vec();
                let import = Import { number, offset, name };
                found.insert(number, import);
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Its stub or slot at an address in the file, with the name of that.
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

/// The table that the dynamic linker uses.
fn dynamic(source: &Source) -> Option<&Table> {
    source.elf.tables.iter().find(|table| !table.full)
}
