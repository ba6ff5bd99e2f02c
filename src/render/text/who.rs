//! `who`: the mappings, and the summary: how many were found, and whether that is all.

use super::Text;
use super::footnotes::Footnotes;
use super::lines::Lines;
use super::tables::{PERMISSIONS, PID, Table};
use super::{cells, words};
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::report::{Mapper, SearchEnd, WhoSummary, Why};

impl Record for Mapper {
    fn write(&self, text: &mut Text) {
        text.row(&MAPPERS, self);
    }
}

impl Record for WhoSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }
}

/// The mappings.
pub static MAPPERS: Table<Mapper> = Table::of(&[
    PID.cell(|_, mapper| Cell::new(&mapper.pid)),
    Column::name("process", 15, Role::Name).cell(|_, mapper| Cell::new(&mapper.name)),
    Column::word("address", 14, Role::Address).cell(|_, mapper| Cell::new(&mapper.address)),
    Column::number("pages", 5, Role::Size).rank(1).cell(|_, mapper| Cell::count(mapper.pages)),
    PERMISSIONS.rank(2).cell(|_, mapper| match &mapper.region {
        Some(region) => Cell::new(region.perms.letters()),
        None => Cell::new("-"),
    }),
    Column::name("region", 14, Role::Name).cell(|style, mapper| match &mapper.region {
        Some(region) => cells::region(style, &region.name, region.deleted),
        None => Cell::of(Role::Dim, "gone"),
    }),
    Column::name("symbol", 16, Role::Symbol).cell(|_, mapper| cells::symbol(&mapper.symbol)),
]);

/// `frame 0x1a4eac at 0x1a4eac000: 3 mappings in 2 processes; the kernel counts 3`, and how complete that is.
pub fn summary(lines: &mut Lines, summary: &WhoSummary) {
    let line = lines.line();
    line.indent(2).plain("frame ").push(Role::Frame, summary.pfn);
    if let Some(physical) = summary.physical {
        line.plain(" at ").push(Role::Physical, physical);
    }
    if summary.ended == SearchEnd::Nobody {
        let why = summary.because.as_deref().unwrap_or_default();
        line.word(": ", Role::Plain, format!("no process maps it: {why}"));
        return moved(lines, summary);
    }
    let found = match summary.counts.mappings {
        0 => "no mapping found".to_owned(),
        mappings => format!("{} in {}", counted(mappings, "mapping"), counted(summary.counts.processes, "process")),
    };
    line.word(": ", Role::Plain, found);
    if let Some(own) = summary.words.own_mappings {
        line.word(", ", Role::Plain, format!("{} of them by pmdb itself", count(own)));
    }
    if let Ok(times) = summary.words.map_count {
        let times = words::map_count(count(times), summary.words.map_count_average);
        line.word("; ", Role::Plain, format!("the kernel counts {times}"));
    }
    let looked_at = format!("looked at {}", of(summary));
    let (role, text) = match summary.ended {
        SearchEnd::Counted => (Role::Note, format!("all mappings found, after looking at {}", of(summary))),
        SearchEnd::Limit => {
            let more = match missing(summary) {
                Some(missing) => format!("the kernel counts {} more", counted(missing, "mapping")),
                None => "there may be more mappings".to_owned(),
            };
            (Role::Note, format!("{looked_at}, up to the limit: {more}"))
        }
        SearchEnd::Interrupted => (Role::Warn, format!("{looked_at}, then stopped: there may be more mappings")),
        SearchEnd::Searched | SearchEnd::Nobody => (Role::Note, searched(summary, looked_at)),
    };
    prose(lines, role, &text);
    let counts = &summary.counts;
    let mut remark = |role, number, noun, what: &str| {
        if number > 0 {
            prose(lines, role, &format!("{} {what}", counted(number, noun)));
        }
    };
    // If all mappings are found, unread processes do not matter.
    if summary.ended != SearchEnd::Counted {
        let what = "could not be read";
        remark(Role::Warn, counts.unreadable, "process", what);
    }
    remark(Role::Note, counts.gone, "process", "ended meanwhile");
    let what = "not shown: the same memory as a process shown above";
    remark(Role::Note, counts.same_memory, "process", what);
    let what = "shown above ended during the search: the frame is no longer mapped there";
    remark(Role::Warn, counts.left, "mapping", what);
    if !summary.lists_all && summary.ended != SearchEnd::Counted && missing(summary).is_none() {
        prose(lines, Role::Warn, &format!("not searched: processes {UNLISTED}"));
    }
    moved(lines, summary);
    Footnotes::of(&Why::of_row(summary), |_, _| true).write(lines);
}

fn moved(lines: &mut Lines, summary: &WhoSummary) {
    if summary.moved {
        let text = "the page has moved to another frame meanwhile: run it again";
        prose(lines, Role::Warn, text);
    }
}

/// `12 of 113 processes`
fn of(summary: &WhoSummary) -> String {
    let counts = &summary.counts;
    format!("{} of {}", count(counts.looked_at), counted(counts.listed, "process"))
}

/// The result of a search through everything.
fn searched(summary: &WhoSummary, looked_at: String) -> String {
    if let Some(because) = &summary.because {
        return format!("{looked_at}, because the count does not show when all are found: {because}");
    }
    let Some(missing) = missing(summary) else {
        return looked_at;
    };
    let (it, belongs) = if missing == 1 { ("it", "belongs") } else { ("they", "belong") };
    let elsewhere = match (summary.counts.unreadable, summary.lists_all) {
        (0, true) => format!("{it} came or went during the search, or {belongs} to the kernel"),
        (0, false) => format!("{it} may be in a process {UNLISTED}"),
        (_, true) => format!("{it} may be in a process that could not be read"),
        (_, false) => format!("{it} may be in a process that could not be read, or in one {UNLISTED}"),
    };
    format!("{looked_at}: {} not found; {elsewhere}", counted(missing, "mapping"))
}

/// Which processes a `/proc` does not list that does not list all.
const UNLISTED: &str = "outside of this pid namespace, or hidden by hidepid";

/// How many mappings the kernel counts beyond those that were found, if its count is exact.
fn missing(summary: &WhoSummary) -> Option<u64> {
    let times = *summary.words.map_count.as_ref().ok()?;
    let missing = times.checked_sub(summary.counts.mappings)?;
    (missing > 0 && summary.because.is_none()).then_some(missing)
}

fn prose(lines: &mut Lines, role: Role, text: &str) {
    let line = lines.line();
    line.indent(2).prose(role, text);
}
