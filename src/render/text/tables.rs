//! The tables and their columns.

use crate::render::columns::Column;
use crate::render::theme::Role;

/// A kind of table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    columns: &'static [Column],
    /// The titles of the last columns, if these are group keys.
    keys: [Option<&'static str>; 2],
}

impl Table {
    const fn of(columns: &'static [Column]) -> Self {
        Table {
            columns,
            keys: [None; 2],
        }
    }

    /// Groups by `by`, and by `and` inside.
    pub fn groups(by: &'static str, and: Option<&'static str>) -> Self {
        let keys = match is_reversed(by, and) {
            true => [and, Some(by)],
            false => [Some(by), and],
        };
        Table { keys, ..GROUPS }
    }

    /// Changes in groups by `key`.
    pub fn change_groups(key: &'static str) -> Self {
        Table {
            keys: [Some(key), None],
            ..CHANGE_GROUPS
        }
    }

    /// Its columns.
    pub fn columns(self) -> Vec<Column> {
        let width = if self.keys[1].is_some() { 14 } else { 20 };
        let keys = self.keys.into_iter().flatten();
        let keys = keys.map(|key| Column::word(key, width, Role::Plain));
        self.columns.iter().copied().chain(keys).collect()
    }

    /// Whether its columns need titles.
    pub fn has_heading(self) -> bool {
        self != HISTORY
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.columns, other.columns) && self.keys == other.keys
    }
}

impl Eq for Table {}

const START: Column = Column::word("start", 14, Role::Address);
const END: Column = Column::word("end", 14, Role::Address);
const SIZE: Column = Column::number("size", 8, Role::Size);
const PAGES: Column = Column::number("pages", 6, Role::Size);
const STATE: Column = Column::word("state", 10, Role::Plain);
const FRAME: Column = Column::word("frame", 9, Role::Frame);
const PHYSICAL: Column = Column::word("physical", 13, Role::Physical);
const COUNT: Column = Column::number("count", 5, Role::Size);
const FLAGS: Column = Column::name("flags", 17, Role::Flag);

/// `translate RANGE`
pub static RUNS: Table = Table::of(&[
    START,
    END.rank(2),
    SIZE,
    PAGES.rank(3),
    Column::word("physical", 13, Role::Physical),
    FRAME.rank(1),
    STATE,
]);
/// `walk`
pub static PAGE_ROWS: Table = Table::of(&[
    START,
    END.rank(3),
    SIZE,
    PAGES.rank(4),
    STATE,
    Column::word("kind", 14, Role::Plain),
    FRAME.rank(1),
    COUNT.rank(2),
    Column::name("region", 12, Role::Name),
    FLAGS.rank(5),
]);
/// `walk` of frames
pub static FRAME_ROWS: Table = Table::of(&[
    FRAME,
    PHYSICAL,
    SIZE,
    Column::number("frames", 7, Role::Size).rank(1),
    COUNT,
    Column::word("zone", 7, Role::Name),
    Column::number("node", 4, Role::Size).rank(2),
    FLAGS,
]);
/// `summary`
pub static SUMMARY: Table = Table::of(&[
    Column::number("pages", 10, Role::Size),
    SIZE,
    Column::word("raw", 18, Role::Raw).rank(1),
    Column::word("letters", 38, Role::Flag).rank(2),
    FLAGS,
]);
/// `who`
pub static MAPPERS: Table = Table::of(&[
    Column::number("pid", 7, Role::Size),
    Column::name("process", 15, Role::Name),
    Column::word("address", 14, Role::Address),
    Column::number("pages", 5, Role::Size).rank(1),
    Column::word("perms", 5, Role::Plain).rank(2),
    Column::name("region", 14, Role::Name),
    Column::name("symbol", 16, Role::Symbol),
]);
/// `--how`
pub static READS: Table = Table::of(&[
    Column::word("offset", 12, Role::Address),
    Column::word("value", 18, Role::Raw),
    Column::word("file", 20, Role::Plain),
    Column::word("what", 24, Role::Plain),
]);
/// `info symbols`
pub static SYMBOLS: Table = Table::of(&[
    Column::word("address", 14, Role::Address),
    Column::number("size", 8, Role::Size).rank(1),
    Column::word("kind", 8, Role::Plain).rank(2),
    Column::name("module", 14, Role::Name).uncut(24),
    Column::name("symbol", 24, Role::Symbol),
]);
/// `info modules`
pub static MODULES: Table = Table::of(&[
    START,
    END.rank(2),
    Column::number("symbols", 7, Role::Size),
    Column::word("from", 10, Role::Plain),
    // As most linkers make it: twenty bytes.
    Column::name("build-id", 12, Role::Raw).rank(1).uncut(40),
    Column::name("name", 18, Role::Name).uncut(40),
    Column::name("debug file, or why none", 24, Role::Plain),
]);
/// `regions`
pub static REGIONS: Table = Table::of(&[
    START,
    END.rank(4),
    Column::word("perms", 5, Role::Plain),
    SIZE,
    Column::number("present", 8, Role::Size),
    Column::number("swapped", 8, Role::Size).rank(1),
    Column::number("shared", 8, Role::Size).rank(2),
    Column::number("private", 8, Role::Size).rank(5),
    Column::number("huge", 8, Role::Size).rank(3),
    Column::name("name", 16, Role::Name),
]);
/// `regions`, with the proportional share
pub static SHARES: Table = Table::of(&[
    START,
    END.rank(4),
    Column::word("perms", 5, Role::Plain),
    SIZE,
    Column::number("present", 8, Role::Size),
    Column::number("pss", 8, Role::Size),
    Column::number("swapped", 8, Role::Size).rank(1),
    Column::number("shared", 8, Role::Size).rank(2),
    Column::number("private", 8, Role::Size).rank(5),
    Column::number("huge", 8, Role::Size).rank(3),
    Column::name("name", 16, Role::Name),
]);
/// Where the proportional share stands among them.
pub const SHARE: usize = 5;
/// `watch`
pub static EVENTS: Table = Table::of(&[
    Column::word("time", 12, Role::Dim),
    Column::word("address", 14, Role::Address),
    Column::number("pages", 5, Role::Size).rank(1),
    Column::word("event", 15, Role::Plain),
    Column::word("before → after, where", 44, Role::Plain),
]);
/// `watch … by KEY`
pub static EVENT_GROUPS: Table = Table::of(&[
    Column::number("pages", 8, Role::Size),
    Column::number("samples", 7, Role::Dim),
    Column::name("region", 20, Role::Name),
    Column::word("changes", 30, Role::Plain),
]);
/// `ps`
pub static PROCESSES: Table = Table::of(&[
    Column::number("pid", 7, Role::Size),
    Column::number("user", 6, Role::Plain),
    Column::word("state", 5, Role::Plain),
    Column::number("resident", 8, Role::Size),
    Column::name("name", 16, Role::Name),
    Column::name("command line", 12, Role::Dim),
]);
/// `snapshot`, `info snapshots`
pub static SNAPSHOTS: Table = Table::of(&[
    Column::word("snapshot", 10, Role::Name),
    Column::number("pid", 7, Role::Size),
    Column::word("time", 12, Role::Dim).rank(1),
    Column::number("present", 9, Role::Size),
    Column::number("swapped", 9, Role::Size).rank(2),
    Column::number("memory", 8, Role::Size),
    Column::word("with", 10, Role::Plain),
]);
/// `diff`
pub static CHANGES: Table = Table::of(&[
    Column::word("change", 15, Role::Plain),
    START,
    SIZE,
    PAGES.rank(1),
    Column::name("region", 14, Role::Name),
    Column::name("symbol, before → after", 24, Role::Plain),
]);
/// `compare`
pub static COMPARISONS: Table = Table::of(&[
    START,
    END.rank(2),
    Column::number("shared", 8, Role::Size),
    Column::number("to copy", 8, Role::Size),
    Column::number("copied", 8, Role::Size),
    Column::number("here", 8, Role::Size).rank(1),
    Column::number("there", 8, Role::Size).rank(1),
    Column::name("region", 14, Role::Name),
]);
/// `compare … by symbol`. The symbol may be long, and is never cut.
pub static COMPARISON_GROUPS: Table = Table::of(&[
    Column::number("shared", 8, Role::Size),
    Column::number("to copy", 8, Role::Size),
    Column::number("copied", 8, Role::Size),
    Column::number("here", 8, Role::Size),
    Column::number("there", 8, Role::Size),
    Column::word("symbol", 20, Role::Plain),
]);
/// `info threads`
pub static THREADS: Table = Table::of(&[
    Column::number("id", 7, Role::Size),
    Column::name("name", 15, Role::Name),
    Column::word("state", 5, Role::Plain),
    Column::word("stack pointer", 14, Role::Address),
    Column::word("stands at", 14, Role::Address).rank(1),
    Column::name("symbol", 16, Role::Symbol),
]);
/// `ps`, with what the kernel counts of their memory
pub static PROCESS_MEMORY: Table = Table::of(&[
    Column::number("pid", 7, Role::Size),
    Column::number("user", 6, Role::Plain).rank(2),
    Column::number("rss", 8, Role::Size),
    Column::number("pss", 8, Role::Size),
    Column::number("uss", 8, Role::Size),
    Column::number("swapped", 8, Role::Size),
    Column::number("huge", 8, Role::Size).rank(1),
    Column::name("name", 16, Role::Name),
    Column::name("command line", 12, Role::Dim).rank(3),
]);
/// `show`
pub static SETTINGS: Table = Table::of(&[
    Column::word("setting", 17, Role::Command),
    Column::word("value", 12, Role::Plain),
    Column::word("meaning", 20, Role::Dim),
]);
/// `history`
pub static HISTORY: Table = Table::of(&[
    Column::number("", 5, Role::Dim),
    Column::word("", 20, Role::Plain),
]);

/// `diff … by KEY`
static CHANGE_GROUPS: Table = Table::of(&[
    Column::number("pages", 10, Role::Size),
    Column::number("net", 10, Role::Size),
]);

/// `by KEY`. The keys come last: they may be long, and are never cut.
static GROUPS: Table = Table::of(&[Column::number("pages", 10, Role::Size), SIZE]);

/// Whether the second of two keys is shown first, because the first is long and long values stand last.
pub fn is_reversed(by: &str, and: Option<&str>) -> bool {
    let is_long = |key: &str| ["region", "flags", "cgroup", "symbol"].contains(&key);
    is_long(by) && and.is_some_and(|and| !is_long(and))
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
            layout.heading(&mut out).unwrap();
            let heading = String::from_utf8(out).unwrap();
            assert!(
                heading.contains("module") && heading.contains("symbol"),
                "{width}: {heading}"
            );
        }
    }
}
