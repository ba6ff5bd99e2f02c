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

static RUNS: [Column; 7] = [
    START,
    END,
    SIZE,
    PAGES.rank(1),
    Column::word("physical", 13, Role::Physical),
    FRAME,
    STATE,
];
static PAGE_ROWS: [Column; 10] = [
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
static FRAME_ROWS: [Column; 8] = [
    FRAME,
    PHYSICAL,
    SIZE,
    Column::number("frames", 7, Role::Size).rank(1),
    COUNT,
    Column::word("zone", 7, Role::Name),
    Column::number("node", 4, Role::Size).rank(2),
    FLAGS,
];
static REGIONS: [Column; 10] = [
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
static EVENTS: [Column; 5] = [
    Column::word("time", 12, Role::Dim),
    Column::word("address", 14, Role::Address),
    Column::number("pages", 5, Role::Size).rank(1),
    Column::word("event", 15, Role::Plain),
    Column::word("before → after, where", 44, Role::Plain),
];
static PROCESSES: [Column; 6] = [
    Column::number("pid", 7, Role::Size),
    Column::number("user", 6, Role::Plain),
    Column::word("state", 5, Role::Plain),
    Column::number("resident", 8, Role::Size),
    Column::name("name", 16, Role::Name),
    Column::name("command line", 12, Role::Dim),
];
static SETTINGS: [Column; 3] = [
    Column::word("setting", 14, Role::Command),
    Column::word("value", 12, Role::Plain),
    Column::word("meaning", 20, Role::Dim),
];
static HISTORY: [Column; 2] = [
    Column::number("", 5, Role::Dim),
    Column::word("", 20, Role::Plain),
];

macro_rules! groups {
    ($($key:literal)*) => {
        fn group_columns(by: &str) -> &'static [Column] {
            match by {
                $($key => {
                    static COLUMNS: [Column; 3] = [
                        Column::number("pages", 10, Role::Size),
                        SIZE,
                        Column::word($key, 20, Role::Plain),
                    ];
                    &COLUMNS
                })*
                _ => {
                    static COLUMNS: [Column; 3] = [
                        Column::number("pages", 10, Role::Size),
                        SIZE,
                        Column::word("group", 20, Role::Plain),
                    ];
                    &COLUMNS
                }
            }
        }
    };
}
groups!("state" "kind" "flags" "region" "run" "order" "node" "zone" "cgroup");

impl Table {
    /// Its columns.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Table::Runs => &RUNS,
            Table::Pages => &PAGE_ROWS,
            Table::Frames => &FRAME_ROWS,
            Table::Groups(by) => group_columns(by),
            Table::Regions => &REGIONS,
            Table::Events => &EVENTS,
            Table::Processes => &PROCESSES,
            Table::Settings => &SETTINGS,
            Table::History => &HISTORY,
        }
    }

    /// Whether its columns need titles.
    pub fn has_heading(self) -> bool {
        self != Table::History
    }
}
