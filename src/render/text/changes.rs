//! `snapshot`, `diff` and `compare`.

use super::Text;
use super::block::{region_file_name, region_name, symbols_text};
use super::cells::{length, none};
use super::lines::Lines;
use super::style::Style;
use super::tables::{END, MakeCell, PAGES, PID, SIZE, START, Table};
use super::watch::{TIME, blind, by_kind, kind, net, net_figures, numbers, story, time};
use crate::kernel::Name;
use crate::kernel::PageSize;
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::render::units::{count, counted, duration, size};
use crate::report::{
    ChangeGroup, ChangeRow, Comparison, ComparisonGroup, ComparisonSummary, DiffSummary, SharedCounts, SnapshotRow,
    SoftDirtyCleared, SoftDirtyReport,
};

impl Record for SnapshotRow {
    fn write(&self, text: &mut Text) {
        text.row(&SNAPSHOTS, self);
    }
}

impl Record for DiffSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_changes", self.changes.sum()), ("_came", self.effect.came), ("_went", self.effect.went)]
    }
}

impl Record for ChangeRow {
    fn write(&self, text: &mut Text) {
        text.row(&CHANGES, self);
    }
}

impl Record for ChangeGroup {
    fn write(&self, text: &mut Text) {
        text.row(&groups(self), self);
    }
}

impl Record for Comparison {
    fn write(&self, text: &mut Text) {
        text.row(&COMPARISONS, self);
    }
}

impl Record for ComparisonGroup {
    fn write(&self, text: &mut Text) {
        text.row(&COMPARISON_GROUPS, self);
    }
}

impl Record for ComparisonSummary {
    fn write(&self, text: &mut Text) {
        text.line(comparison_summary, self);
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        let SharedCounts { shared, copied, about_to_copy, .. } = self.counts;
        let bytes = |pages: u64| pages * self.page_size;
        vec![("_shared", bytes(shared)), ("_copied", bytes(copied)), ("_about_to_copy", bytes(about_to_copy))]
    }
}

impl Record for SoftDirtyReport {
    fn write(&self, text: &mut Text) {
        text.line(soft_dirty, self);
    }
}

impl Record for SoftDirtyCleared {
    fn write(&self, text: &mut Text) {
        text.line(soft_dirty_cleared, self);
    }
}

/// `snapshot`, `info snapshots`
pub static SNAPSHOTS: Table<SnapshotRow> = Table::of(&[
    Column::word("snapshot", 10, Role::Name).cell(|_, snapshot| Cell::new(&snapshot.name)),
    PID.cell(|_, snapshot| Cell::new(&snapshot.pid)),
    TIME.rank(1).cell(|style, snapshot| time(style, snapshot.time)),
    Column::number("present", 9, Role::Size).cell(|_, snapshot| Cell::count(snapshot.pages)),
    Column::number("swapped", 9, Role::Size).rank(2).cell(|_, snapshot| Cell::count(snapshot.swapped)),
    Column::number("memory", 8, Role::Size).cell(|_, snapshot| Cell::size(snapshot.memory)),
    Column::word("with", 10, Role::Plain).cell(|_, snapshot| with(snapshot)),
]);

/// `diff`
pub static CHANGES: Table<ChangeRow> = Table::of(&[
    Column::word("change", 15, Role::Plain).cell(|_, change| kind(change.change)),
    START.cell(|_, change| Cell::new(&change.start)),
    SIZE.cell(|_, change| length(change.start, change.end)),
    PAGES.rank(1).cell(|_, change| Cell::count(change.pages)),
    REGION.cell(|style, change| region(style, change.region.as_ref())),
    Column::name("symbol, before → after", 24, Role::Plain).cell(|_, change| told(change)),
]);

/// `diff … by KEY`
static CHANGE_GROUPS: Table<ChangeGroup> = Table::of(&[
    Column::number("pages", 10, Role::Size).cell(|_, group| Cell::count(group.pages)),
    Column::number("regions", 7, Role::Size).rank(1).cell(|_, group| Cell::count(group.regions)),
    Column::number("net", 10, Role::Size).cell(|_, group| Cell::new(net(group.effect.came, group.effect.went))),
]);

/// `compare`
pub static COMPARISONS: Table<Comparison> = Table::of(&[
    START.cell(|_, row| Cell::new(&row.start)),
    END.rank(2).cell(|_, row| Cell::new(&row.end)),
    of_pages("shared").cell(|_, row| pages(row.counts.shared)),
    of_pages("to copy").cell(|_, row| pages(row.counts.about_to_copy)),
    of_pages("copied").cell(|_, row| pages(row.counts.copied)),
    of_pages("here").rank(1).cell(|_, row| pages(row.counts.only_here)),
    of_pages("there").rank(1).cell(|_, row| pages(row.counts.only_there)),
    REGION.cell(|style, row| region(style, Some(&row.region))),
]);

/// `compare … by symbol`. The symbol may be long, and is never cut.
pub static COMPARISON_GROUPS: Table<ComparisonGroup> = Table::of(&[
    of_pages("shared").cell(|_, row| pages(row.counts.shared)),
    of_pages("to copy").cell(|_, row| pages(row.counts.about_to_copy)),
    of_pages("copied").cell(|_, row| pages(row.counts.copied)),
    of_pages("here").cell(|_, row| pages(row.counts.only_here)),
    of_pages("there").cell(|_, row| pages(row.counts.only_there)),
    Column::word("symbol", 20, Role::Plain).cell(|_, row| Cell::new(&row.symbol)),
]);

const REGION: Column = Column::name("region", 14, Role::Name);

const fn of_pages(title: &'static str) -> Column {
    Column::number(title, 8, Role::Size)
}

fn pages(pages: u64) -> Cell<'static> {
    match pages {
        0 => Cell::of(Role::Dim, "0"),
        pages => Cell::count(pages),
    }
}

/// The table of a group of changes.
pub fn groups(group: &ChangeGroup) -> Table<ChangeGroup> {
    let key: MakeCell<ChangeGroup> = |_, group| Cell::new(&group.key);
    let key = Column::word(group.by, 20, Role::Plain).cell(key);
    let changes: MakeCell<ChangeGroup> = |_, group| by_kind(&group.changes);
    let changes = Column::word("changes", 30, Role::Plain).cell(changes);
    CHANGE_GROUPS.by([Some(key), (group.by == "region").then_some(changes)])
}

fn with(snapshot: &SnapshotRow) -> Cell<'static> {
    let mut with = snapshot.with.join(", ");
    if snapshot.unread > 0 {
        with.push_str(&format!(" ({} not read)", counted(snapshot.unread, "page")));
    }
    Cell::new(with)
}

/// Where the change is, and what changed.
fn told(change: &ChangeRow) -> Cell<'static> {
    let symbols = symbols_text(change.symbol.as_ref(), change.last_symbol.as_ref());
    let mut parts: Vec<String> = symbols.into_iter().collect();
    // Frames are shown only for a single page.
    match change.pages {
        1 => parts.extend(story(change.before.as_ref(), change.after.as_ref())),
        _ => parts.extend(states(change)),
    }
    parts.extend(change.detail.clone());
    Cell::new(parts.join("  "))
}

/// `untouched → present`, where the state changed.
fn states(change: &ChangeRow) -> Option<String> {
    let (before, after) = change.before.as_ref().zip(change.after.as_ref())?;
    let differ = before.state != after.state;
    differ.then(|| format!("{} \u{2192} {}", before.state.word(), after.state.word()))
}

fn region<'a>(style: &Style, name: Option<&'a Name>) -> Cell<'a> {
    let Some(name) = name else {
        return none();
    };
    let (role, text) = match style.width {
        Some(_) => region_file_name(name),
        None => region_name(name),
    };
    Cell::of(role, text)
}

/// The totals of a diff, before its rows.
pub fn summary(lines: &mut Lines, summary: &DiffSummary) {
    let line = lines.line();
    let sign = if summary.seconds < 0.0 { "-" } else { "" };
    line.indent(2).plain(format!(
        "from {} to {}, {sign}{}: ",
        summary.from,
        summary.to,
        duration(summary.seconds.abs())
    ));
    if summary.changes.is_empty() {
        line.plain(if summary.blind.is_empty() { "nothing changed" } else { "no change seen" });
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
        line.word("", Role::Warn, format!("{pages} could not be read: their contents are not compared"));
    }
    blind(lines, &summary.blind);
}

/// `812 beside 1024 (worker): shared 12 MiB, of which the next writes copy 3.1 MiB; copied 1.2 MiB; …`
pub fn comparison_summary(lines: &mut Lines, summary: &ComparisonSummary) {
    let bytes = |pages: u64| size(pages.saturating_mul(summary.page_size));
    let counts = &summary.counts;
    let line = lines.line();
    line.indent(2).plain(format!("{} beside {} ({}): ", summary.pid, summary.other, summary.process));
    line.word("", Role::Good, format!("shared {}", bytes(counts.shared)));
    if counts.shared_elsewhere > 0 {
        line.word(" ", Role::Plain, format!("({} of it at other addresses)", bytes(counts.shared_elsewhere)));
    }
    if counts.about_to_copy > 0 {
        let text = format!("of which the next writes here copy {}", bytes(counts.about_to_copy));
        line.word(", ", Role::Warn, text);
    }
    for (role, what, pages) in [
        (Role::Note, "copied", counts.copied),
        (Role::Plain, "only here", counts.only_here),
        (Role::Plain, "only there", counts.only_there),
    ] {
        line.word("; ", role, format!("{what} {}", bytes(pages)));
    }
    let Some(memory) = &summary.memory else {
        return;
    };
    let line = lines.line();
    let amount = |bytes: Option<u64>| match bytes {
        Some(bytes) => size(bytes),
        None if memory.hidden => "hidden".to_owned(),
        None => "none".to_owned(),
    };
    line.indent(4).plain(format!(
        "process {}: unique (uss) {}, proportional share (pss) {}, swapped {}",
        summary.other,
        amount(memory.uss),
        amount(memory.pss),
        amount(memory.swapped)
    ));
}

/// The effects of clearing.
pub fn soft_dirty(lines: &mut Lines, report: &SoftDirtyReport) {
    let line = lines.line();
    let (pid, process) = (report.pid, &report.process);
    line.indent(2).plain(format!("clearing the soft-dirty bits of process {pid} ({process}):"));
    let huge = match &report.huge {
        Ok(0) => String::new(),
        Ok(huge) => format!("; {} of them are in huge pages, which have one fault for the whole", count(*huge)),
        Err(reason) => format!("; how many of them are in huge pages is not known: {reason}"),
    };
    let pages = counted(report.pages, "writable page");
    let mut effects = vec![
        format!("{pages} will be write-protected: the next write to each is a page fault{huge}"),
        "page faults, mmap and munmap of the process wait while the kernel goes through its page tables".to_owned(),
        "other readers of these bits (CRIU, another pmdb) do not see what was written before".to_owned(),
    ];
    if report.hugetlb > 0 {
        let pages = counted(report.hugetlb, "hugetlb page");
        effects.push(format!("{pages} will never show as written: the kernel tracks none of them"));
    }
    for effect in effects {
        let line = lines.line();
        line.indent(4).word("", Role::Warn, format!("- {effect}"));
    }
}

/// `cleared in 1.2 ms; 3 writable pages are soft-dirty again, or still`
pub fn soft_dirty_cleared(lines: &mut Lines, report: &SoftDirtyCleared) {
    let line = lines.line();
    line.indent(2).plain(format!("cleared in {}", duration(report.seconds)));
    if report.pages > 0 {
        let pages = counted(report.pages, "writable page");
        let verb = if report.pages == 1 { "is" } else { "are" };
        line.word("; ", Role::Note, format!("{pages} {verb} soft-dirty again, or still"));
    }
}
