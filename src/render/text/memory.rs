//! What memory holds: rows as gdb's `x` has them.

use super::Text;
use super::block::{region_file_name, symbol, symbol_text};
use super::lines::Lines;
use super::style::Style;
use super::words;
use crate::kernel::{Kind, State};
use crate::lang::Format;
use crate::render::Record;
use crate::render::line::Line;
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::report::{Bytes, FindSummary, Match, Memory, Patch, PatchedSummary, RegionBrief, Telescope, Why};

impl Record for Memory {
    fn write(&self, text: &mut Text) {
        text.line(row, self);
    }
}

impl Record for Match {
    fn write(&self, text: &mut Text) {
        text.line(found, self);
    }
}

impl Record for FindSummary {
    fn write(&self, text: &mut Text) {
        text.line(find_summary, self);
    }
}

impl Record for Patch {
    fn write(&self, text: &mut Text) {
        text.line(patch, self);
    }
}

impl Record for PatchedSummary {
    fn write(&self, text: &mut Text) {
        text.line(patched_summary, self);
    }
}

impl Record for Telescope {
    fn write(&self, text: &mut Text) {
        text.line(telescope, self);
    }
}

/// Columns from one tab stop to the next: gdb writes tabs.
const TAB: usize = 8;

/// Columns of an address of a 64-bit process.
const ADDRESS: usize = 14;

/// `0x7ffe… <buf+16>: 0x01 0x02`
pub fn row(lines: &mut Lines, memory: &Memory) {
    let style = &lines.style;
    let mut line = units(style, memory, false);
    let is_wide = style.width.is_some_and(|width| line.column() > width);
    // A text may contain blanks, at which the line must not wrap.
    let is_text = memory.format == Format::Text.letter();
    let has_blanks = || memory.values.iter().any(|value| value.contains(' '));
    if is_wide && !(is_text && has_blanks()) {
        line = units(style, memory, true);
    }
    lines.add(line);
}

/// With tabs before the values, as in gdb, or with single blanks if that is too wide.
fn units(style: &Style, memory: &Memory, is_narrow: bool) -> Line {
    let mut line = Line::new(style.theme, style.width.filter(|_| is_narrow));
    line.indent(4);
    line.push(Role::Address, memory.address);
    if let Some(named) = &memory.symbol {
        line.plain(" ");
        symbol(&mut line, named);
    }
    line.plain(":");
    for (index, value) in memory.values.iter().enumerate() {
        if is_narrow {
            line.plain(" ")
        } else {
            tab(&mut line)
        };
        line.plain(value);
        if let Some(Some(named)) = memory.symbols.get(index) {
            line.push(Role::Symbol, format!(" {}", symbol_text(named)));
        }
    }
    let uncertain = is_uncertain(&memory.why);
    match memory.cut_by {
        _ if memory.bytes.is_none() => {
            tab(&mut line);
            absent(&mut line, memory.state, memory.kind, memory.unread, uncertain);
            if memory.length > memory.unit.into() {
                line.push(Role::Dim, format!("  ({} of it)", size(memory.length)));
            }
            let reasons = ["kind", "source"].map(|field| memory.why.of(field));
            for reason in reasons.into_iter().flatten() {
                line.push(Role::Note, format!("  ({})", reason.cause()));
            }
        }
        Some(state) => {
            let uncertain = memory.why.of("cut_by").is_some();
            absent(&mut line, state, None, memory.unread, uncertain);
        }
        None => {}
    }
    if memory.source == Some("file") {
        line.push(Role::Note, "  (file)");
    }
    if memory.faulted {
        let state = memory.state.word();
        line.push(Role::Warn, format!("  (faulted in: was {state})"));
    }
    line
}

fn tab(line: &mut Line) -> &mut Line {
    line.pad_to((line.column() / TAB + 1) * TAB)
}

/// `<not resident: untouched>`
fn absent(line: &mut Line, state: State, kind: Option<Kind>, unread: Option<&str>, uncertain: bool) {
    let word = state.word();
    let told = match (unread, kind) {
        (Some(why), _) => format!("<not read: {why}>"),
        // Mapped device memory: a read could be a command to the device.
        (None, _) if state == State::PfnMapped => format!("<not read: {word}>"),
        (None, _) if uncertain => format!("<not resident: most likely {word}>"),
        (None, Some(kind @ (Kind::Cached | Kind::NotCached | Kind::PastEnd | Kind::MaybeSwapped))) => {
            format!("<not resident: {word}, {}>", kind.word())
        }
        (None, _) => format!("<not resident: {word}>"),
    };
    line.push(words::state_role(state), told);
}

/// `0x7ffe… <buf+16> [heap]`
pub fn found(lines: &mut Lines, found: &Match) {
    let line = lines.line().limit(None);
    line.push(Role::Address, found.address);
    if let Some(named) = &found.symbol {
        line.plain(" ");
        symbol(line, named);
    }
    if let Some(region) = &found.region {
        of_region(line, region);
    }
    if found.source == "file" {
        line.push(Role::Note, "  (file)");
    }
}

fn of_region(line: &mut Line, region: &RegionBrief) {
    let name = region_file_name(&region.name).1;
    line.push(Role::Dim, format!("  {name} {}", region.perms));
}

/// `2 matches in 1.2 MiB; not looked at: 12 pages untouched, 3 swapped`
pub fn find_summary(lines: &mut Lines, summary: &FindSummary) {
    let line = lines.line();
    line.indent(2);
    let matches = counted(summary.matches, "match");
    let searched = match summary.searched {
        0 => "0 B".to_owned(),
        bytes => size(bytes),
    };
    line.plain(format!("{matches} in {searched}"));
    if summary.cached > 0 {
        let text = format!("{} from the page cache", counted(summary.cached, "page"));
        line.word(", ", Role::Note, text);
    }
    let mut separator = "; not resident, not searched: ";
    let states = summary.states.iter().map(|(state, pages)| match state {
        State::Untouched => (state, pages.saturating_sub(summary.cached + summary.cache_unread)),
        _ => (state, *pages),
    });
    for (state, pages) in states.filter(|(state, pages)| **state != State::Present && *pages > 0) {
        let text = format!("{} {}", counted(pages, "page"), state.word());
        line.word(separator, words::state_role(*state), text);
        separator = ", ";
    }
    if summary.unread > 0 {
        let text = format!("{} could not be read", counted(summary.unread, "page"));
        line.word("; ", Role::Warn, text);
    }
    if summary.cache_unread > 0 {
        let pages = counted(summary.cache_unread, "untouched page");
        let why = summary.why.of("cache_unread");
        let why = why.map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("the page cache could not be searched for {pages}{why}");
        line.word("; ", Role::Warn, text);
    }
    if summary.cut_short {
        line.word("; ", Role::Note, "stopped early");
    }
}

/// The most bytes of a stretch that are shown.
const MOST_PATCHED: usize = 16;

/// `0x55… <work+19> int3 (cc, in the file c7) a r-xp`
pub fn patch(lines: &mut Lines, patch: &Patch) {
    let line = lines.line();
    line.indent(4).push(Role::Address, patch.address);
    if let Some(named) = &patch.symbol {
        line.plain(" ");
        symbol(line, named);
    }
    let digits = |bytes: &Bytes| {
        let shown = bytes.0.iter().take(MOST_PATCHED);
        let mut text: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
        if bytes.0.len() > MOST_PATCHED {
            text.push(format!("\u{2026} ({})", size(patch.length)));
        }
        text.join(" ")
    };
    match (&patch.memory, &patch.file) {
        (Some(memory), Some(file)) => {
            line.plain("  ");
            if let Some(name) = patch.breakpoint {
                line.push(Role::Warn, format!("{name}  "));
            }
            line.push(Role::Raw, digits(memory));
            line.push(Role::Dim, format!("  in the file: {}", digits(file)));
        }
        _ => {
            let text = format!("  {} private, the same as the file", size(patch.length));
            line.push(Role::Note, text);
        }
    }
    of_region(line, &patch.region);
}

/// `3 private copies of code pages: 2 stretches differ (2 B, 1 breakpoint), 1 page is the same as the file`
pub fn patched_summary(lines: &mut Lines, summary: &PatchedSummary) {
    let line = lines.line();
    line.indent(2);
    if summary.private_copies == 0 {
        line.plain("no code page is a private copy");
    } else {
        let copies = match summary.private_copies {
            1 => "1 code page is a private copy".to_owned(),
            pages => format!("{} code pages are private copies", count(pages)),
        };
        line.plain(copies);
    }
    if summary.stretches > 0 {
        let stretches = counted(summary.stretches, "stretch");
        let differ = if summary.stretches == 1 { "differs" } else { "differ" };
        let text = format!("{stretches} {differ} from the file ({})", size(summary.bytes));
        line.word("; ", Role::Warn, text);
        if summary.breakpoints > 0 {
            line.word(", ", Role::Warn, counted(summary.breakpoints, "breakpoint"));
        }
    }
    if summary.equal > 0 {
        let verb = if summary.equal == 1 { "is" } else { "are" };
        let text = format!("{} {verb} the same as the file", counted(summary.equal, "page"));
        line.word("; ", Role::Note, text);
    }
    if summary.uncompared > 0 {
        let why = summary.why.of("uncompared");
        let why = why.map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("{} not compared{why}", counted(summary.uncompared, "page"));
        line.word("; ", Role::Warn, text);
    }
    if summary.cut_short {
        line.word("; ", Role::Note, "stopped early");
    }
}

/// `0x7ffe… +0x08 0x55… <main+4> tgt r-xp → 0x41`
pub fn telescope(lines: &mut Lines, row: &Telescope) {
    let line = lines.line();
    line.indent(4).push(Role::Address, row.address);
    line.pad_to(ADDRESS).push(Role::Dim, format!("  +{:#05x}", row.offset)).plain("  ");
    match row.value {
        Some(value) => _ = line.push(Role::Raw, format!("{value:#x}")),
        None => word_absent(line, row.state, &row.why),
    }
    of_file(line, row.source);
    for (index, link) in row.chain.iter().enumerate() {
        if index > 0 {
            line.push(Role::Dim, " \u{2192} ").push(Role::Raw, link.address);
        }
        if let Some(named) = &link.symbol {
            line.plain(" ");
            symbol(line, named);
        }
        of_region(line, &link.region);
        of_file(line, link.source);
    }
    let Some(last) = row.chain.last() else {
        if row.ends == "cycle" {
            line.plain(" (a cycle)");
        }
        return;
    };
    line.push(Role::Dim, " \u{2192} ");
    match (row.ends, &last.text, last.value) {
        ("text", Some(text), _) => _ = line.plain(text),
        (_, _, None) => word_absent(line, last.state, &last.why),
        ("cycle", _, Some(value)) => _ = line.plain(format!("{value:#x} (a cycle)")),
        ("depth", _, Some(value)) => _ = line.plain(format!("{value:#x} \u{2192} \u{2026}")),
        (_, _, Some(value)) => _ = line.plain(format!("{value:#x}")),
    }
}

/// A word that was not read, and why, if it is in the page cache.
fn word_absent(line: &mut Line, state: State, why: &Why) {
    absent(line, state, None, None, is_uncertain(why));
    if let Some(reason) = why.of("source") {
        line.push(Role::Note, format!("  ({})", reason.cause()));
    }
}

/// Marks a word of the page cache that the process has not mapped.
fn of_file(line: &mut Line, source: Option<&str>) {
    if source == Some("file") {
        line.push(Role::Note, " (file)");
    }
}

fn is_uncertain(why: &Why) -> bool {
    why.of("state").is_some()
}
