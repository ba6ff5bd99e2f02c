//! `account`

use super::Text;
use super::cells::amount;
use super::lines::Lines;
use super::tables::{MakeCell, Table};
use super::totals;
use crate::kernel::PageSize;
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::render::units::{percent, size};
use crate::report::AccountClass::{
    Anonymous, Elsewhere, FileHere, FileOthers, FileUnclear, Forked, Kernel, Merged, PrivateCopies, PrivateUnclear,
    ShmemHere, ShmemOthers, ShmemUnclear, Unclear,
};
use crate::report::{AccountClass, AccountGroup, AccountProof, AccountRow, AccountSummary, Fact};

impl Record for AccountRow {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&CLASSES, self);
    }
}

impl Record for AccountGroup {
    fn write(&self, text: &mut Text) {
        text.row(&groups(self), self);
    }
}

impl Record for AccountSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
        text.notes();
    }

    fn totals(&self, page: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", page.pages_in(self.bytes)), ("_bytes", self.bytes)]
    }
}

/// `account`
static CLASSES: Table<AccountRow> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    SHARE.cell(|_, row| share(row.bytes, row.of)),
    Column::word("class", 26, Role::Plain).cell(|_, row| Cell::new(words(row.class))),
    Column::word("of which; freed by", 24, Role::Dim).cell(|_, row| of_which(row)),
]);

/// `account … by KEY`
static GROUPS: Table<AccountGroup> = Table::of(&[
    bytes("bytes").cell(|_, row| Cell::size(row.bytes)),
    SHARE.cell(|_, row| share(row.bytes, row.of)),
    bytes("own").cell(|_, row| sum(row, &[Anonymous, PrivateCopies])),
    bytes("forked").cell(|_, row| sum(row, &[Forked, Merged, PrivateUnclear])),
    bytes("shmem").cell(|_, row| sum(row, &[ShmemHere, ShmemOthers, ShmemUnclear])),
    bytes("file").cell(|_, row| sum(row, &[FileHere, FileOthers, FileUnclear])),
    bytes("other").rank(1).cell(|_, row| sum(row, &[Kernel, Elsewhere, Unclear])),
]);

const SHARE: Column = Column::number("share", 6, Role::Plain);

const fn bytes(title: &'static str) -> Column {
    Column::number(title, 8, Role::Size)
}

/// The table of a group.
fn groups(group: &AccountGroup) -> Table<AccountGroup> {
    let key: MakeCell<AccountGroup> = |_, group| Cell::new(&group.key);
    GROUPS.by([Some(Column::word(group.by, 20, Role::Plain).cell(key)), None])
}

fn share(part: u64, whole: u64) -> Cell<'static> {
    percent(part, whole).map_or_else(|| Cell::of(Role::Dim, "-"), Cell::new)
}

fn sum(group: &AccountGroup, classes: &[AccountClass]) -> Cell<'static> {
    let of = group.classes.iter().filter(|(class, _)| classes.contains(class));
    amount(of.map(|(_, bytes)| bytes).sum())
}

/// A class in a few words.
fn words(class: AccountClass) -> &'static str {
    match class {
        Anonymous => "anonymous, only here",
        PrivateCopies => "copies of files, only here",
        Forked => "shared since a fork",
        Merged => "merged (KSM)",
        PrivateUnclear => "anonymous, here or shared",
        ShmemHere => "shared memory, only here",
        ShmemOthers => "shared memory, with others",
        ShmemUnclear => "shared memory, unknown",
        FileHere => "file pages, only here",
        FileOthers => "file pages, with others",
        FileUnclear => "file pages, unknown",
        Kernel => "of the kernel (vdso)",
        Elsewhere => "moving, at a device, failed",
        _ => "of unknown kind",
    }
}

/// `1.2 GiB huge, 300 MiB lazily freed; free or munmap`
fn of_which(row: &AccountRow) -> Cell<'static> {
    let marks: [(&Fact<u64>, &str); 8] = [
        (&row.huge, "huge"),
        (&row.zeros, "all-zero pieces of these"),
        (&row.to_copy, "copied by the next writes here"),
        (&row.lazily_freed, "lazily freed"),
        (&row.locked, "locked"),
        (&row.dirty, "dirty"),
        (&row.several, "mapped several times here"),
        (&row.with_pmdb, "only with pmdb"),
    ];
    let known = marks.iter().filter_map(|(bytes, what)| Some((*bytes.as_ref().ok()?, what)));
    let parts: Vec<String> =
        known.filter(|(bytes, _)| *bytes > 0).map(|(bytes, what)| format!("{} {what}", size(bytes))).collect();
    let parts = parts.join(", ");
    Cell::new(if parts.is_empty() { row.freed_by.to_owned() } else { format!("{parts}; {}", row.freed_by) })
}

/// The sum and its proof, the frames, and what stands beside.
fn summary(lines: &mut Lines, summary: &AccountSummary) {
    let line = lines.line();
    line.indent(2).plain(format!("{} ({}): {}", summary.pid, summary.process, size(summary.bytes)));
    if let Ok(kernel) = &summary.kernel {
        proof(lines, summary, kernel);
    }
    match &summary.distinct {
        Ok(distinct) if *distinct < summary.bytes => {
            let again = size(summary.bytes - distinct);
            lines.line().indent(2).plain(format!(
                "frames: {} are different ones; {again} are mapped again in this process",
                size(*distinct)
            ));
        }
        Ok(_) => {}
        Err(reason) => {
            lines.line().indent(2).word("", Role::Note, format!("different frames: {reason}"));
        }
    }
    if let (Ok(marked), Ok(now)) = (&summary.lazily_freed, &summary.lazy_free)
        && *marked > 0
    {
        let written = size(marked.saturating_sub(*now));
        lines.line().indent(2).plain(format!(
            "lazily freed: the kernel can reclaim {} now; {written} were written since they were freed",
            size(*now)
        ));
    }
    let mut beside: Vec<String> = Vec::new();
    if let Ok(tables) = &summary.page_tables {
        beside.push(format!("page tables {}", size(*tables)));
    }
    let amounts = summary.beside.iter().filter(|(_, bytes)| *bytes > 0);
    beside.extend(amounts.map(|(what, bytes)| format!("{} {}", what.word().replace('_', " "), size(*bytes))));
    if !beside.is_empty() {
        lines.line().indent(2).plain(format!("not in the sum: {}", beside.join(", ")));
    }
    if summary.map_count_average {
        lines.line().indent(2).word("", Role::Warn, "sharing of large folios rests on averages of map counts");
    }
    totals::remarks(lines, summary.cut_short, summary.changed);
}

/// The sum compared with the kernel's.
fn proof(lines: &mut Lines, summary: &AccountSummary, kernel: &AccountProof) {
    let line = lines.line();
    line.indent(2);
    let is_exact = kernel.differing.is_empty() && kernel.before == kernel.after;
    if is_exact {
        line.word("", Role::Good, "equals smaps_rollup").plain(format!(": {}", kernel.compared.join(", ")));
    } else if kernel.before == kernel.after && summary.bytes == kernel.after {
        line.plain(format!("equals Rss of smaps_rollup, {}", size(kernel.after)));
    } else {
        let (before, after) = (size(kernel.before), size(kernel.after));
        line.plain(format!("Rss of smaps_rollup: {before} before the count, {after} after it"));
    }
    for check in kernel.differing.iter().filter(|check| check.field != "Rss") {
        lines.line().indent(4).plain(format!(
            "{}: {} counted, {} in smaps_rollup",
            check.field,
            size(check.counted),
            size(check.kernel)
        ));
    }
    for cause in &kernel.causes {
        lines.line().indent(4).word("", Role::Note, cause);
    }
    if let Some(vm_rss) = kernel.vm_rss.filter(|&vm_rss| vm_rss != kernel.after) {
        lines.line().indent(2).plain(format!("VmRSS is {}: the kernel updates its counters in batches", size(vm_rss)));
    }
}
