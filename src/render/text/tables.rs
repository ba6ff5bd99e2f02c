//! The tables: which columns they have, and how a record fills a row.

use super::Look;
use super::block::{missing, region_name};
use super::footnotes::Footnotes;
use super::{watch, words};
use crate::kernel::{FrameNumber, Kind, PageFlags, State};
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::render::units::{count, counted, percent, size};
use crate::report::*;
use std::io::{self, Write};

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

/// The row that a record is, if it is one. Reasons for what is missing go to the footnotes.
pub fn row(record: &Record, look: &Look, notes: &mut Footnotes) -> Option<(Table, Vec<Cell>)> {
    let row = match record {
        Record::Run(run) => {
            notes.collect(&run.why);
            (Table::Runs, run_cells(run))
        }
        Record::Pages(pages) => {
            notes.collect(&pages.why);
            (Table::Pages, page_cells(pages))
        }
        Record::Frames(frames) => (Table::Frames, frame_cells(frames)),
        Record::Group(group) => (Table::Groups(group.by), group_cells(group)),
        Record::Region(region) if super::region::is_row(region) => {
            notes.collect(&region.why);
            (Table::Regions, region_cells(region))
        }
        Record::Event(event) => (Table::Events, watch::cells(look, event)),
        Record::ProcessEntry(process) => (Table::Processes, process_cells(process)),
        Record::Setting(setting) => (
            Table::Settings,
            vec![
                Cell::new(&setting.name),
                Cell::new(&setting.value),
                Cell::new(&setting.meaning),
            ],
        ),
        Record::History(entry) => (
            Table::History,
            vec![Cell::new(entry.number), Cell::new(&entry.line)],
        ),
        _ => return None,
    };
    Some(row)
}

fn run_cells(run: &Run) -> Vec<Cell> {
    vec![
        Cell::new(run.start),
        Cell::new(run.end),
        Cell::new(size(run.end.get().saturating_sub(run.start.get()))),
        Cell::new(count(run.pages)),
        match run.physical {
            Some(physical) => Cell::new(physical),
            None => absent(&run.why, "physical", run.state),
        },
        frame(run.pfn, &run.why, run.state),
        state(run.state),
    ]
}

fn page_cells(pages: &Pages) -> Vec<Cell> {
    let (role, name) = region_name(&pages.region.file_name());
    vec![
        Cell::new(pages.start),
        Cell::new(pages.end),
        Cell::new(size(pages.end.get().saturating_sub(pages.start.get()))),
        Cell::new(count(pages.pages)),
        state(pages.state),
        match (pages.kind, pages.huge) {
            (Some(kind @ (Kind::Anonymous | Kind::File | Kind::Shmem)), Some(true)) => {
                Cell::new(format!("{} huge", kind.word()))
            }
            (Some(kind), _) => Cell::new(kind.word()),
            (None, _) => absent(&pages.why, "kind", State::Untouched),
        },
        frame(pages.pfn, &pages.why, pages.state),
        match pages.map_count {
            Some(times) => Cell::new(count(times)),
            None => absent(&pages.why, "map_count", pages.state),
        },
        Cell::of(role, name),
        match pages.flags {
            Some(flags) => Cell::new(telling_flags(flags)),
            None => absent(&pages.why, "flags", pages.state),
        },
    ]
}

fn frame_cells(frames: &Frames) -> Vec<Cell> {
    let unknown = || Cell::of(Role::Warn, "?");
    vec![
        Cell::new(frames.pfn),
        frames.physical.map_or_else(unknown, Cell::new),
        frames
            .bytes
            .map_or_else(unknown, |bytes| Cell::new(size(bytes))),
        Cell::new(count(frames.frames)),
        frames
            .map_count
            .map_or_else(unknown, |times| Cell::new(count(times))),
        frames.zone.as_ref().map_or_else(unknown, Cell::new),
        frames.node.map_or_else(unknown, Cell::new),
        frames
            .flags
            .map_or_else(unknown, |flags| Cell::new(telling_flags(flags))),
    ]
}

fn group_cells(group: &Group) -> Vec<Cell> {
    let key = match group.by {
        "region" => region_name(&crate::kernel::Name::from(group.key.as_str())).1,
        _ => group.key.clone(),
    };
    let role = match (group.by, State::from_word(&key)) {
        ("state", Some(state)) => words::state_role(state),
        _ => Role::Plain,
    };
    vec![
        Cell::new(count(group.pages)),
        Cell::new(size(group.bytes)),
        Cell::of(role, key),
    ]
}

fn region_cells(region: &RegionReport) -> Vec<Cell> {
    let part = |bytes: Option<u64>, field| match bytes {
        Some(0) => Cell::of(Role::Dim, "0"),
        Some(bytes) => Cell::new(size(bytes)),
        None => absent(&region.why, field, State::Present),
    };
    let (role, mut name) = region_name(&region.name);
    let mut short = region_name(&region.name.file_name()).1;
    if region.deleted {
        name.push_str(" (deleted)");
        short.push_str(" (deleted)");
    }
    vec![
        Cell::new(region.start),
        Cell::new(region.end),
        Cell::new(&region.perms),
        Cell::new(size(region.size)),
        part(region.present, "present"),
        part(region.swapped, "swapped"),
        part(region.shared, "shared"),
        part(region.private, "private"),
        part(region.huge, "huge"),
        Cell::of(role, name).or(short),
    ]
}

fn process_cells(process: &ProcessRow) -> Vec<Cell> {
    vec![
        Cell::new(process.pid),
        Cell::new(process.user),
        Cell::new(process.state),
        match process.resident {
            Some(bytes) => Cell::new(size(bytes)),
            None => Cell::of(Role::Dim, "-"),
        },
        Cell::new(&process.name),
        Cell::new(&process.command_line),
    ]
}

fn state(state: State) -> Cell {
    Cell::of(words::state_role(state), state.word())
}

fn frame(frame: Option<FrameNumber>, why: &Why, state: State) -> Cell {
    match frame {
        Some(frame) => Cell::new(frame),
        None => absent(why, "pfn", state),
    }
}

/// What stands for a missing value. Without a reason it is unknown if there could be one, and none otherwise.
fn absent(why: &Why, field: &str, state: State) -> Cell {
    let (role, text) = match (why.of(field), state) {
        (None, State::Present) => (Role::Warn, "?"),
        _ => missing(why, field),
    };
    Cell::of(role, text)
}

/// Set on most pages in use, or said by the kind already: named last, so that a narrow terminal cuts them first.
const EVERYDAY: PageFlags = PageFlags::UPTODATE
    .union(PageFlags::LRU)
    .union(PageFlags::MMAP)
    .union(PageFlags::ANON)
    .union(PageFlags::SWAPBACKED)
    .union(PageFlags::COMPOUND_HEAD)
    .union(PageFlags::COMPOUND_TAIL);

fn telling_flags(flags: PageFlags) -> String {
    let mut names = flags.difference(EVERYDAY).names();
    names.extend(flags.intersection(EVERYDAY).names());
    match names.is_empty() {
        true => "none set".into(),
        false => names.join(" "),
    }
}

/// `512 pages, 2 MiB: 500 present, 12 untouched`, and how contiguous they are.
pub fn walk_summary(look: &Look, summary: &WalkSummary, out: &mut dyn Write) -> io::Result<()> {
    let mut line = look.line();
    line.indent(2).plain(format!(
        "{}, {}",
        counted(summary.pages, "page"),
        size(summary.bytes)
    ));
    let mut separator = ": ";
    for (state, pages) in summary.states.iter().filter(|(_, pages)| **pages > 0) {
        let text = format!("{} {}", count(*pages), state.word());
        line.word(separator, words::state_role(*state), text);
        separator = ", ";
    }
    if let (Some(runs), Some(longest)) = (summary.runs, summary.longest_run_bytes)
        && runs > 0
    {
        let runs = counted(runs, "physical run");
        line.word("; ", Role::Plain, runs).word(
            ", ",
            Role::Plain,
            format!("the longest {}", size(longest)),
        );
    }
    line.end(out)?;
    if summary.cut_short {
        let mut line = look.line();
        line.push(
            Role::Note,
            "stopped early: the totals are of what was looked at",
        );
        line.end(out)?;
    }
    if summary.changed {
        let mut line = look.line();
        line.push(
            Role::Warn,
            "the regions changed meanwhile: run it again for a consistent picture",
        );
        line.end(out)?;
    }
    Ok(())
}

/// `23 regions, 12 MiB: 3 MiB present (25 %)`
pub fn regions_summary(
    look: &Look,
    summary: &RegionsSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = look.line();
    line.plain(format!(
        "{}, {}",
        counted(summary.regions, "region"),
        size(summary.size)
    ));
    if let Some(present) = summary.present {
        line.plain(format!(": {} present", size(present)));
        if let Some(share) = percent(present, summary.size) {
            line.plain(format!(" ({share})"));
        }
    }
    if let Some(swapped) = summary.swapped.filter(|&swapped| swapped > 0) {
        line.plain(format!(", {} swapped", size(swapped)));
    }
    line.end(out)
}
