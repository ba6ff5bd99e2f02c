//! The records of `huge`.

use super::reasons::{HugeRow, weight, words};
use crate::kernel::huge::HugeChoice;
use crate::kernel::words::{Worded as _, fragment};
use crate::kernel::{Name, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, END, START, Table, none};
use crate::render::text::block::{ANONYMOUS, mapped_file_name};
use crate::render::text::lines::Lines;
use crate::render::text::{Text, pages};
use crate::render::theme::Role;
use crate::render::units::{counted, duration, size};
use crate::report::record::record;
use crate::report::{Fact, HugeBy, HugePast, KnownPins, RegionBrief, Why};

record! {
    /// A row of `huge`: a size that the settings allow.
    #[derive(Eq)]
    pub struct HugeSizeRow as "huge-size" {
        /// Bytes of such a page.
        size: u64,
        /// The setting for memory.
        memory: Option<HugeChoice>,
        /// The setting for shared memory.
        shared: Option<HugeChoice>,
        /// Bytes of memory whose settings allow it, also of untouched memory.
        allowed: u64,
    }

    /// A row of `huge … with content`: the zero-filled subpages of a huge page.
    #[derive(Eq)]
    pub struct HugeZerosRow as "huge-zeros" {
        /// First address of the huge page.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Bytes of zero-filled subpages.
        zeros: u64,
        /// The runs of these pieces.
        pieces: Vec<HugePiece>,
    }

    /// Zero-filled subpages that follow each other.
    #[derive(Eq)]
    pub struct HugePiece {
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
    }

    /// The sums of `huge`, and the settings of the kernel.
    pub struct HugePages as "huge-summary" with why {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// The release of the kernel, whose rules are used.
        kernel: String,
        /// Bytes of a huge page.
        size: u64,
        /// Bytes mapped by one PMD each.
        huge: u64,
        /// Bytes in small pages, or mapped by one PMD: only PAGEMAP_SCAN (Linux 6.7) shows which.
        unclear: u64,
        /// Bytes of the hugetlb pool.
        pool: u64,
        /// Bytes that map the huge zero page, which needs no memory.
        huge_zeros: u64,
        /// Bytes in small pages.
        small: u64,
        /// Of these, bytes of regions with MADV_HUGEPAGE.
        advised_small: u64,
        /// Bytes in small pages that were probably touched before the advice: they are the first part of a region, and
        /// the rest is huge or untouched.
        touched_early: u64,
        /// The region with them.
        [optional] early_region: Option<RegionBrief>,
        /// Bytes in swap.
        swapped: u64,
        /// Whether shared memory in swap is not among them: the page map has nothing for it.
        [optional] hides_swapped: bool,
        /// Accessible bytes that nobody has touched.
        untouched: u64,
        /// Bytes of zero-filled subpages of huge pages, with `with content`.
        zeros: Fact<u64>,
        /// Bytes of huge pages that could not be read.
        unread: u64,
        /// Possible causes if no obstacle is visible now.
        past: Vec<HugePast>,
        /// Free blocks as large as a huge page.
        free_blocks: Fact<u64>,
        /// The setting for memory (`enabled`); `null` on a kernel without transparent huge pages.
        memory: Option<HugeChoice>,
        /// The setting for shared memory (`shmem_enabled`).
        shared: Option<HugeChoice>,
        /// The most empty pages that khugepaged allows (`max_ptes_none`).
        max_empty: Option<u64>,
        /// The most swapped pages (`max_ptes_swap`).
        max_swapped: Option<u64>,
        /// The most shared pages (`max_ptes_shared`).
        max_shared: Option<u64>,
        /// Bytes that khugepaged examines, of all processes, before it sleeps (`pages_to_scan`, as whole huge pages).
        scanned: Option<u64>,
        /// Milliseconds that it sleeps (`scan_sleep_millisecs`).
        sleep: Option<u64>,
        /// About how often it has examined all processes since this one started: an estimate from its passes since the
        /// machine started and from its pace.
        passes: Option<u64>,
        /// The pins that are known.
        pins: KnownPins,
        /// Why not all pins are known.
        [flat] why: Why,
        /// Whether regions changed during the command.
        changed: bool,
        /// Whether the command was interrupted: the sums are then of the first part.
        cut_short: bool,
    }
}

impl Record for HugeSizeRow {
    fn write(&self, text: &mut Text) {
        if text.is_full() {
            text.row(&SIZES, self);
        }
    }
}

impl Record for HugeZerosRow {
    fn write(&self, text: &mut Text) {
        text.row(&ZEROS, self);
    }
}

impl Record for HugePages {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
        text.notes();
    }
}

static SIZES: Table<HugeSizeRow> = Table::of(&[
    Column::number("huge page", 9, Role::Size).cell(|_, row| Cell::size(row.size)),
    Column::word("setting", 8, Role::Plain).cell(|_, row| choice(row.memory)),
    Column::word("shmem setting", 13, Role::Plain).cell(|_, row| choice(row.shared)),
    Column::number("allowed for", 11, Role::Size).cell(|_, row| match row.allowed {
        0 => Cell::new("no memory"),
        bytes => Cell::size(bytes),
    }),
]);

static ZEROS: Table<HugeZerosRow> = Table::of(&[
    START.cell(|_, row| Cell::new(&row.start)),
    END.cell(|_, row| Cell::new(&row.end)),
    Column::number("zeros", 8, Role::Size).cell(|_, row| Cell::size(row.zeros)),
    Column::word("pieces", 24, Role::Dim).cell(|_, row| pieces(row)),
]);

fn choice(choice: Option<HugeChoice>) -> Cell<'static> {
    choice.map_or_else(none, |choice| Cell::new(choice.word()))
}

/// What is on huge pages, what is not, and the reason that concerns most; of a range if it is one.
pub(super) fn answer(pages: &HugePages, rows: &[HugeRow], range: Option<&str>) -> String {
    let range = range.map_or_else(String::new, |range| format!("{range} of "));
    let huge = match (pages.huge, pages.unclear) {
        (0, 0) => None,
        (huge, 0) => Some(size(huge)),
        (0, unclear) => Some(format!("up to {}", size(unclear))),
        (huge, unclear) => Some(format!("{} to {}", size(huge), size(huge.saturating_add(unclear)))),
    };
    let huge = match (huge, pages.pool) {
        (None, 0) => "nothing on huge pages".to_owned(),
        (None, pool) if pages.small == 0 => format!("all {} on hugetlb pages", size(pool)),
        (None, pool) => format!("{} on hugetlb pages", size(pool)),
        (Some(huge), 0) => format!("{huge} on huge pages"),
        (Some(huge), pool) => format!("{huge} on huge pages, {} on hugetlb pages", size(pool)),
    };
    let small = match (pages.small, pages.unclear) {
        (0, 0) if pages.pool == 0 => ", and nothing in small pages".to_owned(),
        (0, _) => String::new(),
        (small, _) => format!(" and {} in small pages", size(small)),
    };
    // If hardly any memory is in small pages, or less than a huge page, the answer is about untouched memory.
    let resident = pages.huge.saturating_add(pages.unclear).saturating_add(pages.small).saturating_add(pages.swapped);
    let hardly_small = (resident / 20).max(pages.size);
    let small_or_swapped = pages.small.saturating_add(pages.swapped);
    let is_hardly_small = small_or_swapped < hardly_small && pages.untouched > (resident / 20).max(small_or_swapped);
    let by = if is_hardly_small { HugeBy::Fault } else { HugeBy::Khugepaged };
    let of_kind = rows.iter().filter(|row| row.by == by);
    let why = of_kind.max_by_key(|row| weight(row)).map_or_else(String::new, |row| match row.reason {
        None if is_hardly_small => format!(". {} is untouched: the next access maps a huge page", size(row.bytes)),
        Some(_) if is_hardly_small => {
            format!(". {} is untouched: the next access maps a small page ({})", size(row.bytes), words(row))
        }
        Some(_) => format!(". Main reason ({}): {}", size(row.bytes), words(row)),
        None => possible(pages, row.bytes),
    });
    format!("{range}{} ({}) has {huge}{small}{why}", pages.process, pages.pid)
}

/// What is said of bytes that nothing visible keeps small.
fn possible(pages: &HugePages, bytes: u64) -> String {
    let (bytes, knows_pins) = (size(bytes), pages.pins == KnownPins::All);
    match passes(pages) {
        Some(passes) => {
            let pins = if knows_pins { "" } else { ": pages may be pinned (unknown here)" };
            let past = if is_early(pages) {
                format!("{bytes} of it was probably touched before the advice, and")
            } else {
                format!("Nothing visible keeps {bytes} of it small, but")
            };
            format!(". {past} khugepaged has probably passed {passes} and left it{pins}")
        }
        None => {
            let unless = if knows_pins { "" } else { ", unless pages are pinned (unknown here)" };
            let past = if is_early(pages) { "It was probably touched before the advice. " } else { "" };
            format!(". {past}MADV_COLLAPSE or khugepaged can make {bytes} of it huge{unless}")
        }
    }
}

/// Whether most small pages were probably touched before the advice.
fn is_early(pages: &HugePages) -> bool {
    pages.touched_early > 0 && pages.touched_early >= pages.small / 2
}

/// How often khugepaged has passed, if that is often enough that it came by, unless the memory or its advice is new:
/// `about 107 times`.
fn passes(pages: &HugePages) -> Option<String> {
    const ENOUGH: u64 = 3;
    pages.passes.filter(|passes| *passes >= ENOUGH).map(|passes| format!("about {}", counted(passes, "time")))
}

/// `4 KiB +2 MiB, …`: the offsets and lengths of the first pieces.
fn pieces(row: &HugeZerosRow) -> Cell<'static> {
    const SHOWN: usize = 3;
    let at = |piece: &HugePiece| {
        let offset = piece.start.get().saturating_sub(row.start.get());
        format!("{} at +{}", size(piece.end.get().saturating_sub(piece.start.get())), size(offset))
    };
    let mut shown: Vec<String> = row.pieces.iter().take(SHOWN).map(at).collect();
    if row.pieces.len() > SHOWN {
        shown.push(format!("{} more", row.pieces.len() - SHOWN));
    }
    Cell::new(shown.join(", "))
}

fn summary(lines: &mut Lines, pages: &HugePages) {
    let mut parts = Vec::new();
    for (bytes, what) in [
        (pages.unclear, "huge or small (no PAGEMAP_SCAN)"),
        (pages.huge_zeros, "of the huge zero page, which needs no memory"),
        (pages.swapped, "in swap"),
    ] {
        if bytes > 0 {
            parts.push(format!("{} {what}", size(bytes)));
        }
    }
    if pages.hides_swapped {
        parts.push("without shared memory in swap, which the page map does not show".to_owned());
    }
    if !parts.is_empty() {
        lines.line().indent(2).plain(format!("besides: {}", parts.join(", ")));
    }
    if lines.style.is_full && pages.advised_small > 0 {
        let text = format!(
            "{} of the small pages are in memory with the advice for huge pages (MADV_HUGEPAGE)",
            size(pages.advised_small)
        );
        lines.line().indent(2).plain(text);
    }
    if let Some(region) = pages.early_region.as_ref().filter(|_| lines.style.is_full || !is_early(pages)) {
        let name = match mapped_file_name(&region.name, region.without_path).1 {
            name if name == ANONYMOUS => region.start.to_string(),
            name => name.to_string(),
        };
        let early = size(pages.touched_early);
        let text = format!("likely cause: the small part of {name} ({early}) was probably touched before the advice");
        lines.line().indent(2).word("", Role::Note, text);
    }
    if let Ok(zeros) = pages.zeros {
        let unread = match pages.unread {
            0 => String::new(),
            unread => format!("; {} could not be read", size(unread)),
        };
        lines.line().indent(2).plain(format!("zero-filled subpages of huge pages: {}{unread}", size(zeros)));
    }
    if lines.style.is_full {
        lines.line().indent(2).plain(format!("rules of Linux {}; a huge page has {}", pages.kernel, size(pages.size)));
        settings(lines, pages);
    }
    blocks_and_past(lines, pages);
}

/// The settings that it goes by.
fn settings(lines: &mut Lines, pages: &HugePages) {
    let choice = |choice: Option<HugeChoice>| choice.map_or("none", HugeChoice::word);
    let mut settings =
        vec![format!("memory {}", choice(pages.memory)), format!("shared memory {}", choice(pages.shared))];
    let limits = [(pages.max_empty, "empty"), (pages.max_swapped, "swapped"), (pages.max_shared, "shared")];
    let limits: Vec<String> = limits.iter().filter_map(|(most, what)| Some(format!("{} {what}", (*most)?))).collect();
    if !limits.is_empty() {
        settings.push(format!("khugepaged up to {} pages", limits.join(", ")));
    }
    lines.line().indent(2).plain(format!("settings: {}", settings.join("; ")));
}

/// What else counts: free blocks, and the past.
fn blocks_and_past(lines: &mut Lines, pages: &HugePages) {
    let is_full = lines.style.is_full;
    match &pages.free_blocks {
        Ok(0) => {
            let text = "no free block is that large now: the kernel must first move pages together (compaction)";
            lines.line().indent(2).word("", Role::Note, text);
        }
        Ok(blocks) if is_full => {
            let blocks = counted(*blocks, "free block");
            lines.line().indent(2).plain(format!("the machine has {blocks} of {}", size(pages.size)));
        }
        Ok(_) => {}
        Err(reason) => {
            lines.line().indent(2).word("", Role::Note, format!("free blocks: {reason}"));
        }
    }
    if !pages.past.is_empty() && (is_full || !is_early(pages)) {
        past(lines, pages);
    }
    pages::remarks(lines, pages.cut_short, pages.changed);
}

/// What may have kept pages small, and may be over.
fn past(lines: &mut Lines, pages: &HugePages) {
    let passes = passes(pages);
    if lines.style.is_full
        && let (Some(bytes), Some(sleep @ 1..)) = (pages.scanned, pages.sleep)
    {
        let pace = format!("khugepaged examines up to {} every {}", size(bytes), duration(sleep as f64 / 1000.0));
        lines.line().indent(2).plain(pace + ", of all processes");
        if let Some(passes) = &passes {
            let since = "since the process started: it came by, unless the memory or its advice is newer";
            lines.line().indent(2).plain(format!("it has probably passed {passes} {since}"));
        }
    }
    lines.line().indent(2).plain("possible causes where there is no obstacle now:");
    for past in pages.past.iter().filter(|past| **past != HugePast::NotYet || passes.is_none()) {
        let unknown = match (past, pages.why.of("pins")) {
            (HugePast::Pinned, Some(reason)) => format!(" (unknown here: {})", reason.cause_in_short()),
            _ => String::new(),
        };
        lines.line().indent(4).plain(format!("  {}{unknown}", fragment(past.about())));
    }
}

/// Samples of these records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::super::reasons::HugePart;
    use super::*;
    use crate::kernel::Permissions;
    use crate::report::{Hex, HugeRefusal, Reason};

    pub fn all() -> Vec<Box<dyn Record>> {
        let heap = RegionBrief {
            start: VirtualAddress::new(0x5555_5555_9000),
            end: VirtualAddress::new(0x5557_5555_9000),
            perms: Permissions { read: true, write: true, ..Permissions::default() },
            offset: Hex(0),
            name: Name::from("[heap]"),
            deleted: false,
            without_path: false,
        };
        let row = |by, reason, bytes, first| HugeRow {
            by,
            reason,
            bytes,
            of: 7 << 30,
            first,
            only: first / 2,
            region: Some(heap.clone()),
            region_bytes: bytes / 2,
            parts: None,
        };
        let at = |offset: u64| VirtualAddress::new(0x7f00_0000_0000 + offset);
        let piece = |start, end| HugePiece { start: at(start), end: at(end) };
        let summary = HugePages {
            pid: 812,
            process: Name::from("redis-server"),
            kernel: "6.18.44".into(),
            size: 2 << 20,
            huge: 1 << 30,
            unclear: 0,
            pool: 0,
            huge_zeros: 0,
            small: 300 << 20,
            advised_small: 100 << 20,
            touched_early: 100 << 20,
            early_region: Some(heap.clone()),
            swapped: 4096,
            hides_swapped: false,
            untouched: 7 << 30,
            zeros: Err(Reason::NotApplicable("contents were not looked at")),
            unread: 0,
            past: HugePast::ALL.to_vec(),
            free_blocks: Ok(772),
            memory: Some(HugeChoice::Madvise),
            shared: Some(HugeChoice::Never),
            max_empty: Some(511),
            max_swapped: Some(64),
            max_shared: Some(256),
            scanned: Some(16 << 20),
            sleep: Some(10_000),
            passes: Some(1),
            pins: KnownPins::All,
            why: Why::default(),
            changed: false,
            cut_short: false,
        };
        let mut unknown_pins = Why::default();
        unknown_pins.note("pins", &Reason::NotOnThisKernel("there is no /proc/kcore".into()));
        let without = HugePages {
            advised_small: 0,
            touched_early: 0,
            early_region: None,
            zeros: Ok(2_093_056),
            unread: 4096,
            past: Vec::new(),
            unclear: 6 << 20,
            pool: 4 << 20,
            huge_zeros: 8 << 20,
            free_blocks: Ok(0),
            memory: None,
            max_empty: None,
            max_swapped: None,
            max_shared: None,
            scanned: None,
            sleep: None,
            passes: None,
            pins: KnownPins::Registered,
            why: unknown_pins,
            changed: true,
            cut_short: true,
            hides_swapped: true,
            ..summary.clone()
        };
        vec![
            Box::new(HugeZerosRow {
                start: at(0),
                end: at(2 << 20),
                zeros: 2_080_768,
                pieces: vec![
                    piece(0x1000, 0x5000),
                    piece(0x6000, 0x7000),
                    piece(0x8000, 0x9000),
                    piece(0xb000, 0x20_0000),
                ],
            }),
            Box::new(row(HugeBy::Fault, Some(HugeRefusal::Occupied), 1 << 20, 1 << 20)),
            Box::new(row(HugeBy::Fault, Some(HugeRefusal::NotAdvised), 7 << 30, (7 << 30) - (1 << 20))),
            Box::new(row(HugeBy::Khugepaged, Some(HugeRefusal::Shared), 200 << 20, 0)),
            Box::new(row(HugeBy::Khugepaged, None, 100 << 20, 100 << 20)),
            Box::new(HugeRow {
                parts: Some(vec![
                    HugePart { start: at(0), end: at(2 << 30), bytes: 2 << 30 },
                    HugePart { start: at(7 << 30), end: at(9 << 30), bytes: 1 << 30 },
                    HugePart { start: at(10 << 30), end: at((10 << 30) + (1 << 20)), bytes: 1 << 20 },
                ]),
                ..row(HugeBy::Fault, Some(HugeRefusal::Guards), 3 << 30, 0)
            }),
            Box::new(HugeSizeRow { size: 65536, memory: Some(HugeChoice::Madvise), shared: None, allowed: 300 << 20 }),
            Box::new(summary),
            Box::new(without),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::reasons::sort;
    use super::*;

    fn of<T: Record + Clone>(records: &[Box<dyn Record>]) -> Vec<T> {
        records.iter().filter_map(|record| record.downcast_ref::<T>().cloned()).collect()
    }

    #[test]
    fn the_first_row_has_the_reason_of_the_answer() {
        let records = samples::all();
        let (mut rows, pages) = (of::<HugeRow>(&records), of::<HugePages>(&records).remove(0));
        sort(&mut rows);
        let first = rows.first().map(words);
        assert!(first.is_some_and(|first| answer(&pages, &rows, None).ends_with(&*first)));
    }

    #[test]
    fn the_answer_names_what_concerns_most_and_what_is_unclear() {
        let records = samples::all();
        let (rows, pages) = (of::<HugeRow>(&records), of::<HugePages>(&records).remove(0));
        assert_eq!(
            answer(&pages, &rows, None),
            "redis-server (812) has 1 GiB on huge pages and 300 MiB in small pages. Main reason (200 MiB): \
             more shared than max_ptes_shared"
        );
        let hardly_small = HugePages { small: 4 << 20, ..pages.clone() };
        assert_eq!(
            answer(&hardly_small, &rows, None),
            "redis-server (812) has 1 GiB on huge pages and 4 MiB in small pages. 7 GiB is untouched: the next \
             access maps a small page (setting `madvise`, no MADV_HUGEPAGE)"
        );
        let possible: Vec<HugeRow> = rows.into_iter().filter(|row| row.reason.is_none()).collect();
        assert_eq!(
            answer(&pages, &possible, Some("heap")),
            "heap of redis-server (812) has 1 GiB on huge pages and 300 MiB in small pages. MADV_COLLAPSE or \
             khugepaged can make 100 MiB of it huge"
        );
        let passed = HugePages { passes: Some(107), ..pages.clone() };
        assert_eq!(
            answer(&passed, &possible, None),
            "redis-server (812) has 1 GiB on huge pages and 300 MiB in small pages. Nothing visible keeps 100 MiB of it \
             small, but khugepaged has probably passed about 107 times and left it"
        );
        let early = HugePages { touched_early: 290 << 20, pins: KnownPins::Registered, ..passed };
        assert_eq!(
            answer(&early, &possible, None),
            "redis-server (812) has 1 GiB on huge pages and 300 MiB in small pages. 100 MiB of it was probably touched \
             before the advice, and khugepaged has probably passed about 107 times and left it: pages may be pinned (unknown \
             here)"
        );
        let in_pool = HugePages { huge: 0, small: 0, pool: 2 << 20, ..pages.clone() };
        assert_eq!(answer(&in_pool, &[], None), "redis-server (812) has all 2 MiB on hugetlb pages");
        let answer = |huge, unclear| answer(&HugePages { huge, unclear, small: 0, ..pages.clone() }, &[], None);
        let who = "redis-server (812) has";
        assert_eq!(answer(0, 0), format!("{who} nothing on huge pages, and nothing in small pages"));
        assert_eq!(answer(0, 6 << 20), format!("{who} up to 6 MiB on huge pages"));
        assert_eq!(answer(2 << 20, 6 << 20), format!("{who} 2 MiB to 8 MiB on huge pages"));
    }
}
