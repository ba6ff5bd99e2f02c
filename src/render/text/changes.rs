//! Changes of pages and regions, as `watch` and `diff` write them.

use super::lines::Lines;
use super::words;
use crate::render::columns::{Cell, Column};
use crate::render::text::footnotes;
use crate::render::text::lines::{Line, Style};
use crate::render::theme::Role;
use crate::render::units::{count, counted, size, time_of_day};
use crate::report::{Blind, EventKind, FlagNames, NetEffect, Numbers, PageFacts};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// `came 7, region grew 1`
pub fn by_kind(changes: &Numbers<EventKind>) -> Cell<'static> {
    let changes = changes.iter().map(|(kind, number)| format!("{} {}", kind.words(), count(*number)));
    Cell::new(changes.collect::<Vec<_>>().join(", "))
}

/// The region of changes, before what changed in it.
pub const CHANGED_REGION: Column = Column::name("region", 29, Role::Name).uncut(44);
pub const TIME: Column = Column::word("time", 12, Role::Dim);

pub fn time(style: &Style, time: f64) -> Cell<'static> {
    Cell::new(time_of_day(time, style.zone()))
}

pub fn kind(kind: EventKind) -> Cell<'static> {
    Cell::of(role(kind), kind.words())
}

pub fn role(kind: EventKind) -> Role {
    match kind {
        EventKind::Came | EventKind::SwappedIn | EventKind::RegionAppeared => Role::Good,
        EventKind::Went | EventKind::SwappedOut | EventKind::RegionWent => Role::Warn,
        EventKind::Executed | EventKind::Exited => Role::Bad,
        EventKind::Moved | EventKind::ChangedNode => Role::Physical,
        EventKind::CopiedOnWrite | EventKind::Split | EventKind::Collapsed => Role::Physical,
        EventKind::Merged | EventKind::Unmerged => Role::Physical,
        _ => Role::Plain,
    }
}

/// What changed: the facts that differ, or both sides for a change of state or frame.
pub fn story(before: Option<&PageFacts>, after: Option<&PageFacts>) -> Vec<String> {
    let (Some(before), Some(after)) = (before, after) else {
        let one = before.or(after);
        return one.map(side).into_iter().collect();
    };
    let mut parts = Vec::new();
    if before.state != after.state || before.pfn != after.pfn {
        parts.push(match (before.pfn, after.pfn) {
            (Some(was), Some(is)) if before.state == after.state => format!("pfn:{was} → pfn:{is}"),
            _ => format!("{} → {}", side(before), side(after)),
        });
    }
    if let (Some(FlagNames(was)), Some(FlagNames(is))) = (before.flags, after.flags)
        && was != is
    {
        let gone = words::flag_names(was.difference(is), false).into_iter().map(|name| format!("-{name}"));
        let come = words::flag_names(is.difference(was), false).into_iter().map(|name| format!("+{name}"));
        parts.push(come.chain(gone).collect::<Vec<_>>().join(" "));
    }
    if let (Some(was), Some(is)) = (before.map_count, after.map_count)
        && was != is
    {
        let was = words::map_count(was, before.map_count_average);
        let is = words::map_count(is, after.map_count_average);
        parts.push(format!("mapped {was} → {is}"));
    }
    if parts.is_empty() {
        parts.push(side(after));
    }
    parts
}

/// Whether the kind of a change says all but the frames.
fn is_told(kind: EventKind) -> bool {
    use EventKind::{Came, ChangedNode, CopiedOnWrite, Moved, Went};
    matches!(kind, Came | Went | Moved | ChangedNode | CopiedOnWrite)
}

/// Only the frames before and after, or else the state, for a narrow terminal.
pub fn frames_alone(kind: EventKind, before: Option<&PageFacts>, after: Option<&PageFacts>) -> Option<String> {
    let sides = || [before, after].into_iter().flatten();
    let side =
        |facts: &PageFacts| facts.pfn.map_or_else(|| facts.state.word().to_owned(), |frame| format!("pfn:{frame}"));
    let has_frame = sides().any(|facts| facts.pfn.is_some());
    (is_told(kind) && has_frame).then(|| sides().map(side).collect::<Vec<_>>().join(" → "))
}

/// `untouched → present`, where the state changed.
pub fn states(before: Option<&PageFacts>, after: Option<&PageFacts>) -> Option<String> {
    let (before, after) = before.zip(after)?;
    let differ = before.state != after.state;
    differ.then(|| format!("{} \u{2192} {}", before.state.word(), after.state.word()))
}

fn side(facts: &PageFacts) -> String {
    let state = facts.state.word();
    match (facts.pfn, facts.why.is_empty()) {
        (Some(frame), _) => format!("{state} pfn:{frame}"),
        (None, true) => state.to_owned(),
        (None, false) => format!("most likely {state}"),
    }
}

/// The kinds of change that cannot be seen here, by reason.
pub fn blind(lines: &mut Lines, blind: &[Blind]) {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for blind in blind {
        by_reason.entry(blind.reason.as_str()).or_default().push(blind.kind.words());
    }
    for (reason, mut kinds) in by_reason {
        kinds.retain(|kind| lines.style.is_news(kind, reason));
        if kinds.is_empty() {
            continue;
        }
        footnotes::line(lines, "unseen", Role::Note, &kinds, reason);
    }
}

/// What the totals say if there was no change.
pub fn no_change(line: &mut Line, hides_writes: bool) {
    line.plain("no change");
    if hides_writes {
        line.plain(" (writes in place cannot be seen)");
    }
}

/// The number of each kind of change.
pub fn numbers(line: &mut Line, numbers: &Numbers<EventKind>) {
    let mut separator = "";
    for (kind, number) in numbers.iter() {
        let number = if kind.is_of_pages() { counted(*number, "page") } else { count(*number) };
        line.word(separator, role(*kind), format!("{}: {number}", kind.words()));
        separator = ", ";
    }
}

/// `; +1.2 MiB present, -4 KiB swapped`; nothing if neither memory nor swap was touched.
pub fn net_figures(line: &mut Line, effect: &NetEffect) {
    let figures = [(effect.came, effect.went, "present"), (effect.swap_came, effect.swap_went, "swapped")];
    let mut separator = "; ";
    for (came, went, what) in figures.into_iter().filter(|(came, went, _)| came != went) {
        line.word(separator, Role::Size, format!("{} {what}", net(came, went)));
        separator = ", ";
    }
    if separator == "; " && *effect != NetEffect::default() {
        line.word(separator, Role::Size, "no net change");
    }
}

/// `+1.2 MiB`
pub fn net(came: u64, went: u64) -> String {
    match came.cmp(&went) {
        Ordering::Equal => "0".to_owned(),
        Ordering::Greater => format!("+{}", size(came - went)),
        Ordering::Less => format!("-{}", size(went - came)),
    }
}
