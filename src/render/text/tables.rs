//! The tables and their columns.

use crate::render::columns::Column;
use crate::render::theme::Role;

/// A kind of table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    Runs,
    Pages,
    Frames,
    Groups(&'static str),
    Summary,
    Mappers,
    Reads,
    Symbols,
    Modules,
    Regions,
    Events,
    Processes,
    Settings,
    History,
}

const START: Column = Column::word("start", 14, Role::Address);
const END: Column = Column::word("end", 14, Role::Address);
const SIZE: Column = Column::number("size", 8, Role::Size);
const PAGES: Column = Column::number("pages", 6, Role::Size);
const STATE: Column = Column::word("state", 10, Role::Plain);
const FRAME: Column = Column::word("frame", 9, Role::Frame);
const PHYSICAL: Column = Column::word("physical", 13, Role::Physical);
const COUNT: Column = Column::number("count", 5, Role::Size);
const FLAGS: Column = Column::name("flags", 17, Role::Flag);

const RUNS: [Column; 7] = [
    START,
    END,
    SIZE,
    PAGES.rank(1),
    Column::word("physical", 13, Role::Physical),
    FRAME,
    STATE,
];
const PAGE_ROWS: [Column; 10] = [
    START,
    END.rank(2),
    SIZE,
    PAGES.rank(3),
    STATE,
    Column::word("kind", 14, Role::Plain),
    FRAME,
    COUNT,
    Column::name("region", 14, Role::Name),
    FLAGS.rank(1),
];
const FRAME_ROWS: [Column; 8] = [
    FRAME,
    PHYSICAL,
    SIZE,
    Column::number("frames", 7, Role::Size).rank(1),
    COUNT,
    Column::word("zone", 7, Role::Name),
    Column::number("node", 4, Role::Size).rank(2),
    FLAGS,
];
const SUMMARY: [Column; 5] = [
    Column::number("pages", 10, Role::Size),
    SIZE,
    Column::word("raw", 18, Role::Raw).rank(1),
    Column::word("letters", 38, Role::Flag).rank(2),
    FLAGS,
];
const MAPPERS: [Column; 7] = [
    Column::number("pid", 7, Role::Size),
    Column::name("process", 15, Role::Name),
    Column::word("address", 14, Role::Address),
    Column::number("pages", 5, Role::Size).rank(1),
    Column::word("perms", 5, Role::Plain).rank(2),
    Column::name("region", 14, Role::Name),
    Column::name("symbol", 16, Role::Symbol),
];
const READS: [Column; 4] = [
    Column::word("offset", 12, Role::Address),
    Column::word("value", 18, Role::Raw),
    Column::word("file", 20, Role::Plain),
    Column::name("what", 24, Role::Plain),
];
const SYMBOLS: [Column; 5] = [
    Column::word("address", 14, Role::Address),
    Column::number("size", 8, Role::Size).rank(1),
    Column::word("kind", 8, Role::Plain).rank(2),
    Column::name("module", 14, Role::Name).uncut(24),
    Column::name("symbol", 24, Role::Symbol),
];
const MODULES: [Column; 7] = [
    START,
    END.rank(2),
    Column::number("symbols", 7, Role::Size),
    Column::word("from", 10, Role::Plain),
    // As most linkers make it: twenty bytes.
    Column::name("build-id", 12, Role::Raw).rank(1).uncut(40),
    Column::name("name", 18, Role::Name).uncut(40),
    Column::name("debug file, or why none", 24, Role::Plain),
];
const REGIONS: [Column; 10] = [
    START,
    END.rank(3),
    Column::word("perms", 5, Role::Plain),
    SIZE,
    Column::number("present", 8, Role::Size),
    Column::number("swapped", 8, Role::Size),
    Column::number("shared", 8, Role::Size),
    Column::number("private", 8, Role::Size).rank(2),
    Column::number("huge", 8, Role::Size).rank(1),
    Column::name("name", 16, Role::Name),
];
const EVENTS: [Column; 5] = [
    Column::word("time", 12, Role::Dim),
    Column::word("address", 14, Role::Address),
    Column::number("pages", 5, Role::Size).rank(1),
    Column::word("event", 15, Role::Plain),
    Column::word("before → after, where", 44, Role::Plain),
];
const PROCESSES: [Column; 6] = [
    Column::number("pid", 7, Role::Size),
    Column::number("user", 6, Role::Plain),
    Column::word("state", 5, Role::Plain),
    Column::number("resident", 8, Role::Size),
    Column::name("name", 16, Role::Name),
    Column::name("command line", 12, Role::Dim),
];
const SETTINGS: [Column; 3] = [
    Column::word("setting", 14, Role::Command),
    Column::word("value", 12, Role::Plain),
    Column::word("meaning", 20, Role::Dim),
];
const HISTORY: [Column; 2] = [
    Column::number("", 5, Role::Dim),
    Column::word("", 20, Role::Plain),
];

impl Table {
    /// Its columns.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Table::Runs => RUNS.into(),
            Table::Pages => PAGE_ROWS.into(),
            Table::Frames => FRAME_ROWS.into(),
            // The key comes last: it may be long, and is never cut.
            Table::Groups(by) => vec![
                Column::number("pages", 10, Role::Size),
                SIZE,
                Column::word(by, 20, Role::Plain),
            ],
            Table::Summary => SUMMARY.into(),
            Table::Mappers => MAPPERS.into(),
            Table::Reads => READS.into(),
            Table::Symbols => SYMBOLS.into(),
            Table::Modules => MODULES.into(),
            Table::Regions => REGIONS.into(),
            Table::Events => EVENTS.into(),
            Table::Processes => PROCESSES.into(),
            Table::Settings => SETTINGS.into(),
            Table::History => HISTORY.into(),
        }
    }

    /// Whether its columns need titles.
    pub fn has_heading(self) -> bool {
        self != Table::History
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
            let columns = Table::Symbols.columns();
            let mut layout = Layout::new(Theme::PLAIN, columns, Some(width));
            layout.heading(&mut out).unwrap();
            let heading = String::from_utf8(out).unwrap();
            assert!(
                heading.contains("module") && heading.contains("symbol"),
                "{width}: {heading}"
            );
        }
    }
}
