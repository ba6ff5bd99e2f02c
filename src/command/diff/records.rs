//! The records of `diff`, and how they are written.

use crate::kernel::{Name, PageSize, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{
    Cell, Column, ColumnOf, MakeCell, PAGES, REGION, SIZE, START, Table, length, none, region_file, region_key,
};
use crate::render::text::Text;
use crate::render::text::block::symbols_text;
use crate::render::text::changes::{
    CHANGED_REGION, blind, by_kind, frames_alone, kind, net, net_figures, no_change, numbers, states, story,
};
use crate::render::text::lines::Lines;
use crate::render::text::words::group_heading;
use crate::render::theme::Role;
use crate::render::units::{counted, duration};
use crate::report::record::record;
use crate::report::{Blind, Declared, EventKind, NetEffect, Numbers, PageFacts, Shape, SymbolBrief};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[DiffSummary::SHAPE, ChangeRow::SHAPE, ChangeGroup::SHAPE];

record! {
    /// The totals of `diff`, printed first.
    pub struct DiffSummary as "diff-summary" {
        /// The earlier snapshot.
        from: String,
        /// The later one, or `now`.
        to: String,
        /// Seconds between them.
        seconds: f64,
        /// Pages of each kind of change; for changes of regions, regions.
        changes: Numbers<EventKind>,
        /// Bytes that came and went.
        [flat] effect: NetEffect,
        /// Rows that `limit` or `top` left out.
        cut: u64,
        /// Present pages whose contents could not be compared, where both snapshots have contents.
        uncompared: u64,
        /// Kinds of change that the snapshots cannot show, each with the reason.
        blind: Vec<Blind>,
    }

    /// A row of `diff`.
    pub struct ChangeRow as "change" {
        /// The change.
        change: EventKind,
        /// Its first address.
        start: VirtualAddress,
        /// The address after the last byte.
        end: VirtualAddress,
        /// Pages; for a region that went or shrank, those that were in memory or in swap.
        pages: u64,
        /// The first page as it was.
        before: Option<PageFacts>,
        /// The first page as it is.
        after: Option<PageFacts>,
        /// Name of the region.
        region: Option<Name>,
        /// The symbol at the first byte.
        symbol: Option<SymbolBrief>,
        /// The symbol at the last byte of the pages.
        [optional] last_symbol: Option<SymbolBrief>,
        /// More, in words: what became of a region.
        [optional] detail: Option<String>,
    }

    /// A row of `diff … by KEY`.
    pub struct ChangeGroup as "change-group" {
        /// The key: `region`, `symbol`, `change`, or a fact.
        by: String,
        /// The group. Of a region: its addresses, permissions and name. Of a fact: its value after the changes.
        key: String,
        /// By region: its name.
        [optional] region: Option<Name>,
        /// By region: its bytes after the changes, or before them if it went.
        [optional] region_bytes: Option<u64>,
        /// Pages that changed. A page that changed in two ways counts twice.
        pages: u64,
        /// Changes of regions, counted one by one.
        regions: u64,
        /// Pages of each kind of change; for changes of regions, regions. Pages that went with their region count as
        /// gone.
        changes: Numbers<EventKind>,
        /// Bytes that came and went.
        [flat] effect: NetEffect,
    }
}

impl Record for ChangeRow {
    fn write(&self, text: &mut Text) {
        text.row(&CHANGES, self);
    }
}

/// `diff`
static CHANGES: Table<ChangeRow> = Table::of(&[
    Column::word("change", 15, Role::Plain).cell(|_, change| kind(change.change)),
    START.cell(|_, change| Cell::new(&change.start)),
    SIZE.cell(|_, change| length(change.start, change.end)),
    PAGES.rank(1).cell(|_, change| Cell::count(change.pages)),
    REGION.cell(|style, change| region_file(style, change.region.as_ref())),
    Column::word("symbol, before → after", 24, Role::Plain).cell(|_, change| change_cell(change)),
]);

/// Where the change is, and what changed.
fn change_cell(change: &ChangeRow) -> Cell<'static> {
    let symbols = symbols_text(change.symbol.as_ref(), change.last_symbol.as_ref());
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let what = match (change.pages, states(before, after)) {
        (0 | 1, _) => story(before, after),
        (_, Some(states)) => vec![states],
        (_, None) => first_page(before, after),
    };
    let cell = |what: Vec<String>| {
        let parts = symbols.iter().chain(&what).chain(&change.detail);
        parts.map(String::as_str).collect::<Vec<_>>().join("  ")
    };
    let short = match change.pages {
        // Start and size of the part are in the row, and the size of the region in front of its range.
        _ if matches!(change.change, EventKind::RegionGrew | EventKind::RegionShrank) => {
            let size = change.detail.as_deref().and_then(|detail| detail.split_once(": "));
            return match size {
                Some((size, _)) => Cell::new(cell(what)).or(size.to_owned()),
                None => Cell::new(cell(what)),
            };
        }
        0 | 1 => frames_alone(change.change, before, after).map(|frames| vec![frames]),
        _ => None,
    };
    match short {
        Some(short) => Cell::new(cell(what)).or(cell(short)),
        None => Cell::new(cell(what)),
    }
}

/// The frames of the first of several pages: those of the others need not follow them.
fn first_page(before: Option<&PageFacts>, after: Option<&PageFacts>) -> Vec<String> {
    match (before.and_then(|before| before.pfn), after.and_then(|after| after.pfn)) {
        (Some(was), Some(is)) if was != is => vec![format!("first pfn:{was} → pfn:{is}")],
        _ => story(before, after).into_iter().map(|story| format!("first page: {story}")).collect(),
    }
}

impl Record for ChangeGroup {
    fn write(&self, text: &mut Text) {
        text.row(&groups(self), self);
    }
}

/// The table of a group of changes.
fn groups(group: &ChangeGroup) -> Table<ChangeGroup> {
    let of_region: MakeCell<ChangeGroup> = |_, group| region_key(&group.key);
    let key: MakeCell<ChangeGroup> = |_, group| Cell::new(&group.key);
    let key = match group.by.as_str() {
        "region" => CHANGED_REGION.cell(of_region),
        by => Column::word(group_heading(by), 20, Role::Plain).cell(key),
    };
    let changes: MakeCell<ChangeGroup> = |_, group| by_kind(&group.changes);
    if group.by != "region" {
        return CHANGE_GROUPS.by([Some(key), None]);
    }
    let changes = Column::word("changed pages", 30, Role::Plain).cell(changes);
    CHANGED_REGIONS.by([Some(key), Some(changes)])
}

const NET: ColumnOf<ChangeGroup> =
    Column::number("net memory", 10, Role::Size).cell(|_, group| Cell::new(net(group.effect.came, group.effect.went)));

/// `diff … by KEY`
static CHANGE_GROUPS: Table<ChangeGroup> = Table::of(&[
    Column::number("pages", 10, Role::Size).cell(|_, group| Cell::count(group.pages)),
    Column::number("regions", 14, Role::Size).rank(1).cell(|_, group| Cell::count(group.regions)),
    NET,
]);

/// `diff … by region`. The pages are in the column of the changes, with what became of the region.
static CHANGED_REGIONS: Table<ChangeGroup> = Table::of(&[
    NET,
    Column::number("region size", 11, Role::Size).cell(|_, group| group.region_bytes.map_or_else(none, Cell::size)),
]);

impl Record for DiffSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_changes", self.changes.sum()), ("_came", self.effect.came), ("_went", self.effect.went)]
    }
}

/// The totals of a diff, before its rows.
fn summary(lines: &mut Lines, summary: &DiffSummary) {
    let line = lines.line();
    let sign = if summary.seconds < 0.0 { "-" } else { "" };
    // Only times in whole seconds are the same.
    let distance = match summary.seconds {
        0.0 => "less than 1 s".to_owned(),
        seconds => format!("{sign}{}", duration(seconds.abs())),
    };
    line.indent(2).plain(format!("from {} to {}, {distance}: ", summary.from, summary.to));
    if summary.changes.is_empty() {
        let hides_writes = summary.blind.iter().any(|blind| blind.kind == EventKind::Written);
        match summary.blind.as_slice() {
            [] => _ = line.plain("nothing changed"),
            _ => no_change(line, hides_writes),
        }
    }
    numbers(line, &summary.changes);
    net_figures(line, &summary.effect);
    if summary.cut > 0 {
        let text = format!("{} not shown", counted(summary.cut, "row"));
        line.word("; ", Role::Note, text);
    }
    if summary.uncompared > 0 {
        let line = lines.line();
        let pages = counted(summary.uncompared, "present page");
        let whose = if summary.uncompared == 1 { "its" } else { "their" };
        line.word("", Role::Warn, format!("{pages} could not be read: {whose} contents are not compared"));
    }
    blind(lines, &summary.blind);
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::va;
    use crate::kernel::{FrameNumber, State};
    use crate::report::Why;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(diff_summary()),
            Box::new(change_of_pages()),
            Box::new(moved_pages()),
            Box::new(change_of_region()),
            Box::new(change_group()),
        ]
    }

    pub fn diff_summary() -> DiffSummary {
        DiffSummary {
            from: "before".into(),
            to: "now".into(),
            seconds: 12.5,
            changes: Numbers(vec![(EventKind::Came, 512), (EventKind::CopiedOnWrite, 1), (EventKind::RegionGrew, 1)]),
            effect: NetEffect { came: 2 << 20, swap_went: 128 << 10, ..NetEffect::default() },
            cut: 2,
            uncompared: 3,
            blind: vec![Blind {
                kind: EventKind::Written,
                reason: "writes in place show only after `snapshot NAME with content`".into(),
            }],
        }
    }

    fn facts(state: State, frame: Option<u64>) -> PageFacts {
        PageFacts {
            state,
            pfn: frame.map(FrameNumber::new),
            flags: None,
            map_count: None,
            map_count_average: false,
            node: None,
            why: Why::default(),
        }
    }

    pub fn change_of_pages() -> ChangeRow {
        ChangeRow {
            change: EventKind::CopiedOnWrite,
            start: va(0x5555_5555_8000),
            end: va(0x5555_5555_9000),
            pages: 1,
            before: Some(facts(State::Present, Some(0x1a4eac))),
            after: Some(facts(State::Present, Some(0x22))),
            region: Some(Name::from("/usr/bin/demo")),
            symbol: Some(SymbolBrief { name: Name::from("counter"), offset: 0, module: Name::from("demo") }),
            last_symbol: Some(SymbolBrief { name: Name::from("table"), offset: 31, module: Name::from("demo") }),
            detail: None,
        }
    }

    pub fn moved_pages() -> ChangeRow {
        let start = va(0x7fff_f000_0000);
        let (symbol, last_symbol) = (None, None);
        let region = Some(Name::default());
        let (change, pages) = (EventKind::Moved, 2);
        ChangeRow { change, start, end: va(0x7fff_f000_2000), pages, region, symbol, last_symbol, ..change_of_pages() }
    }

    pub fn change_of_region() -> ChangeRow {
        ChangeRow {
            change: EventKind::RegionGrew,
            start: va(0x5555_5557_a000),
            end: va(0x5555_5559_b000),
            pages: 0,
            before: None,
            after: None,
            region: Some(Name::from("[heap]")),
            symbol: None,
            last_symbol: None,
            detail: Some("now 264 KiB: 0x555555559000..0x55555559b000".into()),
        }
    }

    pub fn change_group() -> ChangeGroup {
        let effect = NetEffect { came: 1 << 20, went: 176 << 10, ..NetEffect::default() };
        ChangeGroup {
            by: "region".into(),
            key: "0x555555559000..0x55555557a000 rw-p [heap]".into(),
            region: Some("[heap]".into()),
            region_bytes: Some(132 << 10),
            pages: 300,
            regions: 1,
            changes: Numbers(vec![(EventKind::Came, 256), (EventKind::Went, 44), (EventKind::RegionGrew, 1)]),
            effect,
        }
    }
}
