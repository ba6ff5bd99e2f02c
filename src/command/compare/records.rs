//! The records of `compare`, and how they are written.

use crate::command::ps::ProcessMemory;
use crate::kernel::{Name, PageSize, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, END, REGION, START, Table, amount, region_file};
use crate::render::text::Text;
use crate::render::text::changes::{TIME, time};
use crate::render::text::lines::{Line, Lines};
use crate::render::text::words::PAGE_BEGINS_IN;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, Shape, SharedCounts};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[
    Comparison::SHAPE,
    ComparisonGroup::SHAPE,
    ComparisonSample::SHAPE,
    ComparisonSummary::SHAPE,
    ComparisonTotal::SHAPE,
];

record! {
    /// The same in bytes.
    #[derive(Copy, Default, Eq)]
    pub struct SharedBytes {
        /// `shared` in bytes.
        shared_bytes: u64,
        /// `shared_elsewhere` in bytes.
        shared_elsewhere_bytes: u64,
        /// `copied` in bytes.
        copied_bytes: u64,
        /// `only_here` in bytes.
        only_here_bytes: u64,
        /// `only_there` in bytes.
        only_there_bytes: u64,
        /// `about_to_copy` in bytes.
        about_to_copy_bytes: u64,
    }

    /// A row of `compare`: a region.
    pub struct Comparison as "comparison" {
        /// The other process.
        other: u32,
        /// First address of the region, in the process that has it.
        start: VirtualAddress,
        /// The address after its last byte.
        end: VirtualAddress,
        /// Its name.
        region: Name,
        /// Whether one of the two has ended since: nothing is yet to copy.
        [optional] ended: bool,
        /// Bytes in a page.
        page_size: u64,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
        /// The same in bytes.
        [flat] in_bytes: SharedBytes,
    }

    /// A row of `compare … by symbol`.
    pub struct ComparisonGroup as "comparison-group" {
        /// The other process.
        other: u32,
        /// The symbol, or the name of the region where pages begin in none. `*name` is anonymous memory whose start the
        /// variable `name` holds; `*name[..]` if more than 4 words of it hold one.
        symbol: String,
        /// Pages of all rows of the process that are not shared, or that the next write copies.
        of: u64,
        /// Whether one of the two has ended since: nothing is yet to copy.
        [optional] ended: bool,
        /// Bytes in a page.
        page_size: u64,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
        /// The same in bytes.
        [flat] in_bytes: SharedBytes,
    }

    /// A sample of `compare … every DURATION`: the sums of all compared processes. Each page of the attached process,
    /// and each copied frame, counts once.
    pub struct ComparisonSample as "comparison-sample" {
        /// Seconds since the epoch.
        time: f64,
        /// Processes that were compared.
        processes: u64,
        /// Bytes in a page.
        page_size: u64,
        /// Bytes of frames copied in a second since the sample before; `null` in the first one.
        rate: Option<u64>,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
        /// The same in bytes.
        [flat] in_bytes: SharedBytes,
    }

    /// The totals of `compare` with several processes. Each page of the attached process, and each copied frame, counts
    /// once, however many of the processes have it.
    #[derive(Eq)]
    pub struct ComparisonTotal as "comparison-total" {
        /// The attached process.
        pid: u32,
        /// Processes that were compared.
        processes: u64,
        /// Processes in the rows before that are not in these sums: they had ended before the last sample.
        ended: u64,
        /// Bytes in a page.
        page_size: u64,
        /// Pages by how they are shared.
        [flat] counts: SharedCounts,
        /// The same in bytes.
        [flat] in_bytes: SharedBytes,
    }

    /// The totals of `compare` with one process.
    pub struct ComparisonSummary as "comparison-summary" {
        /// The attached process.
        pid: u32,
        /// The other process.
        other: u32,
        /// The name of the other process.
        process: Name,
        /// Bytes in a page.
        page_size: u64,
        /// Whether both have the layout of one program, as after a fork.
        forked: bool,
        /// Whether one of the two has ended since this sample: it may have copied what it still shared then.
        [optional] ended: bool,
        /// The kernel's own amounts of the other process, where several are compared.
        [optional] memory: Option<ProcessMemory>,
        /// Pages by how both share them.
        [flat] counts: SharedCounts,
        /// The same in bytes.
        [flat] in_bytes: SharedBytes,
    }
}

impl SharedCounts {
    /// The pages that differ, or will after a write.
    pub(super) fn differing(&self) -> u64 {
        [self.copied, self.only_here, self.only_there, self.about_to_copy].into_iter().fold(0, u64::saturating_add)
    }

    /// The same in bytes.
    pub(super) fn in_bytes(&self, page_size: u64) -> SharedBytes {
        let bytes = |pages: u64| pages.saturating_mul(page_size);
        SharedBytes {
            shared_bytes: bytes(self.shared),
            shared_elsewhere_bytes: bytes(self.shared_elsewhere),
            copied_bytes: bytes(self.copied),
            only_here_bytes: bytes(self.only_here),
            only_there_bytes: bytes(self.only_there),
            about_to_copy_bytes: bytes(self.about_to_copy),
        }
    }
}

impl Record for Comparison {
    fn write(&self, text: &mut Text) {
        let differing = self.counts.differing();
        text.row_of_difference(&COMPARISONS.without(without(self.ended)), self, (differing, differing));
    }

    fn ends_pictures(&self) -> bool {
        true
    }
}

const YET_TO_COPY: &str = "yet to copy";

/// The column that tells nothing of a process that has ended.
fn without(is_ended: bool) -> Option<&'static str> {
    is_ended.then_some(YET_TO_COPY)
}

/// `compare`
static COMPARISONS: Table<Comparison> = Table::of(&[
    START.cell(|_, row| Cell::new(&row.start)),
    END.rank(2).cell(|_, row| Cell::new(&row.end)),
    of_bytes("shared").cell(|_, row| bytes(row.page_size, row.counts.shared)),
    of_bytes(YET_TO_COPY).cell(|_, row| bytes(row.page_size, row.counts.about_to_copy)),
    of_bytes("copied").cell(|_, row| bytes(row.page_size, row.counts.copied)),
    of_bytes("only attached").rank(1).cell(|_, row| bytes(row.page_size, row.counts.only_here)),
    of_bytes("only other").rank(1).cell(|_, row| bytes(row.page_size, row.counts.only_there)),
    REGION.cell(|style, row| region_file(style, Some(&row.region))),
]);

impl Record for ComparisonGroup {
    fn write(&self, text: &mut Text) {
        let in_bytes = |pages: u64| pages.saturating_mul(self.page_size);
        let table = COMPARISON_GROUPS.without(without(self.ended));
        text.row_of_difference(&table, self, (in_bytes(self.counts.differing()), in_bytes(self.of)));
    }

    fn ends_pictures(&self) -> bool {
        true
    }
}

/// `compare … by symbol`. The symbol may be long, and is never cut.
static COMPARISON_GROUPS: Table<ComparisonGroup> = Table::of(&[
    of_bytes("shared").cell(|_, row| bytes(row.page_size, row.counts.shared)),
    of_bytes(YET_TO_COPY).cell(|_, row| bytes(row.page_size, row.counts.about_to_copy)),
    of_bytes("copied").cell(|_, row| bytes(row.page_size, row.counts.copied)),
    of_bytes("only attached").cell(|_, row| bytes(row.page_size, row.counts.only_here)),
    of_bytes("only other").cell(|_, row| bytes(row.page_size, row.counts.only_there)),
    Column::word(PAGE_BEGINS_IN, 20, Role::Plain).cell(|_, row| Cell::new(&row.symbol)),
]);

impl Record for ComparisonSample {
    fn write(&self, text: &mut Text) {
        text.row(&SAMPLES, self);
    }

    fn begins_stream(&self) -> bool {
        true
    }
}

/// `compare … every DURATION`
static SAMPLES: Table<ComparisonSample> = Table::of(&[
    TIME.cell(|style, sample| time(style, sample.time)),
    Column::number("processes", 9, Role::Plain).rank(1).cell(|_, sample| Cell::count(sample.processes)),
    of_bytes("shared").cell(|_, sample| bytes(sample.page_size, sample.counts.shared).sampled()),
    of_bytes(YET_TO_COPY).cell(|_, sample| bytes(sample.page_size, sample.counts.about_to_copy).sampled()),
    of_bytes("copied").cell(|_, sample| bytes(sample.page_size, sample.counts.copied).sampled()),
    of_bytes("only other").rank(2).cell(|_, sample| bytes(sample.page_size, sample.counts.only_there).sampled()),
    Column::number("copied / s", 10, Role::Size).cell(|_, sample| match sample.rate {
        Some(rate) => Cell::size(rate).sampled(),
        None => Cell::of(Role::Dim, "-"),
    }),
]);

const fn of_bytes(title: &'static str) -> Column {
    Column::number(title, if title.len() < 8 { 8 } else { title.len() }, Role::Size)
}

fn bytes(page_size: u64, pages: u64) -> Cell<'static> {
    amount(pages.saturating_mul(page_size))
}

impl Record for ComparisonSummary {
    fn write(&self, text: &mut Text) {
        if self.memory.is_none() && text.awaits_answer() {
            text.answer_of_rows(comparison_summary, self);
        } else {
            text.heading_of_rows(comparison_summary, self);
        }
        text.line(comparison_remarks, self);
    }

    fn ends_pictures(&self) -> bool {
        true
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        variables(&self.counts, self.page_size)
    }
}

impl Record for ComparisonTotal {
    fn write(&self, text: &mut Text) {
        text.line(comparison_total, self);
    }

    fn ends_pictures(&self) -> bool {
        true
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        variables(&self.counts, self.page_size)
    }
}

/// The variables that keep the sums, in bytes.
fn variables(counts: &SharedCounts, page_size: u64) -> Vec<(&'static str, u64)> {
    let SharedCounts { shared, copied, about_to_copy, .. } = *counts;
    let bytes = |pages: u64| pages * page_size;
    vec![("_shared", bytes(shared)), ("_copied", bytes(copied)), ("_about_to_copy", bytes(about_to_copy))]
}

/// `812 compared with 4 processes together: shared 12 MiB; …`. With one, these are the sums above.
fn comparison_total(lines: &mut Lines, total: &ComparisonTotal) {
    if total.processes < 2 {
        return;
    }
    let head = format!("{} compared with {} together: ", total.pid, counted(total.processes, "process"));
    let whose = (total.pid, "the others");
    write_counts(lines.line().indent(2).plain(head), whose, &total.counts, total.page_size);
    let text = "totals count each page and each copied frame once";
    lines.line().indent(2).prose(Role::Note, text);
}

/// `812 compared with 1024 (worker): shared 12 MiB (the next writes of 812 would copy 3.1 MiB of it); …`
fn comparison_summary(lines: &mut Lines, summary: &ComparisonSummary) {
    let ended = if summary.ended { ", ended" } else { "" };
    let head = format!("{} compared with {} ({}{ended}): ", summary.pid, summary.other, summary.process);
    let whose = (summary.pid, &*summary.other.to_string());
    write_counts(lines.line().indent(2).plain(head), whose, &summary.counts, summary.page_size);
}

/// What the sums leave out, and the other memory of the process.
fn comparison_remarks(lines: &mut Lines, summary: &ComparisonSummary) {
    if !summary.forked {
        let text = "not parent and child: nothing counts as copied";
        lines.line().indent(2).prose(Role::Note, text);
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

/// `shared 12 MiB (the next writes of 812 would copy 3.1 MiB of it); copied so far …`
fn write_counts(line: &mut Line, (pid, others): (u32, &str), counts: &SharedCounts, page_size: u64) {
    let bytes = |pages: u64| size(pages.saturating_mul(page_size));
    line.word("", Role::Good, format!("shared {}", bytes(counts.shared)));
    if counts.shared_elsewhere > 0 {
        line.plain(" ").prose(Role::Plain, format!("({} at different addresses)", bytes(counts.shared_elsewhere)));
    }
    if counts.about_to_copy > 0 {
        let text = format!("(the next writes of {pid} would copy {} of it)", bytes(counts.about_to_copy));
        line.plain(" ").prose(Role::Warn, text);
    }
    for (role, what, pages) in [
        (Role::Warn, "copied so far".to_owned(), counts.copied),
        (Role::Plain, format!("only in {pid}"), counts.only_here),
        (Role::Plain, format!("only in {others}"), counts.only_there),
    ] {
        line.word("; ", role, format!("{what} {}", bytes(pages)));
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::va;

    fn counted(counts: SharedCounts) -> (SharedCounts, SharedBytes) {
        (counts, counts.in_bytes(4096))
    }

    pub fn all() -> Vec<Box<dyn Record>> {
        let of_total = SharedCounts { shared: 2048, copied: 2048, about_to_copy: 40, ..SharedCounts::default() };
        let (counts, in_bytes) = counted(of_total);
        vec![
            Box::new(comparison()),
            Box::new(comparison_group()),
            Box::new(small_group()),
            Box::new(comparison_sample()),
            Box::new(comparison_summary()),
            Box::new(ComparisonGroup { ended: true, ..comparison_group() }),
            Box::new(ComparisonTotal { pid: 4242, processes: 4, ended: 1, page_size: 4096, counts, in_bytes }),
        ]
    }

    /// Less than 1 % of what differs.
    fn small_group() -> ComparisonGroup {
        let (counts, in_bytes) = counted(SharedCounts { copied: 1, ..SharedCounts::default() });
        ComparisonGroup { symbol: "environ of libc.so.6".into(), counts, in_bytes, ..comparison_group() }
    }

    fn comparison_sample() -> ComparisonSample {
        let (counts, in_bytes) = counted(SharedCounts {
            shared: 262_144,
            copied: 10_240,
            about_to_copy: 262_000,
            ..SharedCounts::default()
        });
        ComparisonSample {
            time: 1_700_000_000.25,
            processes: 1,
            page_size: 4096,
            rate: Some(40 << 20),
            counts,
            in_bytes,
        }
    }

    pub fn comparison() -> Comparison {
        let (counts, in_bytes) = counted(SharedCounts {
            shared: 20,
            shared_elsewhere: 0,
            copied: 3,
            only_here: 0,
            only_there: 1,
            about_to_copy: 18,
        });
        Comparison {
            other: 4243,
            start: va(0x5555_5555_9000),
            end: va(0x5555_5557_a000),
            region: Name::from("[heap]"),
            ended: false,
            page_size: 4096,
            counts,
            in_bytes,
        }
    }

    pub fn comparison_group() -> ComparisonGroup {
        let (counts, in_bytes) = counted(SharedCounts {
            shared: 1_024,
            shared_elsewhere: 0,
            copied: 3,
            only_here: 0,
            only_there: 0,
            about_to_copy: 1_020,
        });
        ComparisonGroup {
            other: 4243,
            symbol: "cache of demo".into(),
            of: 2000,
            ended: false,
            page_size: 4096,
            counts,
            in_bytes,
        }
    }

    pub fn comparison_summary() -> ComparisonSummary {
        let (counts, in_bytes) = counted(SharedCounts {
            shared: 700,
            shared_elsewhere: 400,
            copied: 30,
            only_here: 12,
            only_there: 1,
            about_to_copy: 300,
        });
        ComparisonSummary {
            pid: 4242,
            other: 4243,
            process: Name::from("demo"),
            page_size: 4096,
            forked: true,
            ended: false,
            memory: Some(ProcessMemory {
                rss: Some(3 << 20),
                pss: Some(2 << 20),
                uss: Some(160 << 10),
                swapped: Some(0),
                huge: Some(0),
                hidden: false,
            }),
            counts,
            in_bytes,
        }
    }
}
