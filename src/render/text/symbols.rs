//! The tables of `info symbols` and `info modules`.

use super::Text;
use super::cells::{none, optional, region as name};
use super::tables::{END, START, Table};
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::report::{ModuleReport, SymbolRow};

impl Record for SymbolRow {
    fn write(&self, text: &mut Text) {
        text.row(&SYMBOLS, self);
    }
}

impl Record for ModuleReport {
    fn write(&self, text: &mut Text) {
        text.row(&MODULES, self);
    }
}

/// `info symbols`
pub static SYMBOLS: Table<SymbolRow> = Table::of(&[
    Column::word("address", 14, Role::Address).cell(|_, row| Cell::new(&row.symbol.address)),
    Column::number("size", 8, Role::Size).rank(1).cell(|_, row| match row.symbol.size {
        0 => none(),
        bytes => Cell::count(bytes),
    }),
    Column::word("kind", 8, Role::Plain).rank(2).cell(|_, row| Cell::new(row.symbol.kind)),
    Column::name("module", 14, Role::Name).uncut(24).cell(|_, row| Cell::new(&row.symbol.module)),
    Column::name("symbol", 24, Role::Symbol).cell(|_, row| Cell::new(&row.symbol.name)),
]);

/// `info modules`
pub static MODULES: Table<ModuleReport> = Table::of(&[
    START.cell(|_, module| Cell::new(&module.start)),
    END.rank(2).cell(|_, module| Cell::new(&module.end)),
    Column::number("symbols", 7, Role::Size).cell(|_, module| module.symbols.map_or_else(none, Cell::count)),
    Column::word("from", 10, Role::Plain).cell(|_, module| module.answers.map_or_else(none, Cell::new)),
    // As most linkers make it: twenty bytes.
    Column::name("build-id", 12, Role::Raw).rank(1).uncut(40).cell(|_, module| optional(&module.build_id)),
    Column::name("name", 18, Role::Name).uncut(40).cell(|style, module| name(style, &module.name, module.deleted)),
    Column::name("debug file, or why none", 24, Role::Plain).cell(|_, module| debug_file(module)),
]);

fn debug_file(module: &ModuleReport) -> Cell<'_> {
    let of = |field| module.why.of(field);
    match (&module.debug_file, of("symbols")) {
        (Some(path), _) => Cell::of(Role::Name, path),
        (None, Some(reason)) => Cell::of(Role::Warn, reason.cause()),
        // A module with only exported symbols shows why.
        (None, None) if module.answers == Some("dynamic") => match (of("answers"), of("debug_file")) {
            (Some(reason), _) => Cell::of(Role::Warn, reason.cause()),
            (None, Some(reason)) => Cell::of(Role::Dim, reason.cause()),
            (None, None) => none(),
        },
        _ => none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::Layout;
    use crate::render::theme::Theme;

    #[test]
    fn symbols_keep_their_module_in_a_narrow_terminal() {
        for width in [60, 66, 70, 80] {
            let mut out = Vec::new();
            let columns = SYMBOLS.columns();
            let mut layout = Layout::new(Theme::PLAIN, columns, Some(width));
            layout.heading(&mut out);
            let heading = String::from_utf8(out).unwrap();
            assert!(heading.contains("module") && heading.contains("symbol"), "{width}: {heading}");
        }
    }
}
