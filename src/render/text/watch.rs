//! `watch`: a line for each change.

use super::Text;
use super::block::symbols_text;
use super::cells::{none, optional};
use super::lines::Lines;
use super::style::Style;
use super::tables::Table;
use super::{footnotes, words};
use crate::kernel::{PageSize, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::line::Line;
use crate::render::svg::Svg;
use crate::render::theme::Role;
use crate::render::units::{count, counted, duration, size, time_of_day};
use crate::report::{
    Blind, Event, EventGroup, EventKind, FlagNames, NetEffect, Numbers, PageFacts, TimelineRow, TimelineSample,
    WatchStart, WatchSummary,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;

impl Record for Event {
    fn write(&self, text: &mut Text) {
        text.row(&EVENTS, self);
    }

    fn address(&self) -> Option<VirtualAddress> {
        self.address
    }
}

impl Record for WatchStart {
    fn write(&self, text: &mut Text) {
        text.line(start, self);
    }

    fn begins_stream(&self) -> bool {
        true
    }
}

impl Record for EventGroup {
    fn write(&self, text: &mut Text) {
        text.row(&EVENT_GROUPS, self);
    }
}

impl Record for WatchSummary {
    fn write(&self, text: &mut Text) {
        text.end_pictures();
        text.line(summary, self);
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_changes", self.events.sum())]
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.end_pictures();
        false
    }
}

impl Record for TimelineRow {
    fn write(&self, text: &mut Text) {
        text.timeline().add_row(self);
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.add_row(self);
        true
    }
}

impl Record for TimelineSample {
    fn write(&self, text: &mut Text) {
        text.timeline().add_sample(self);
        text.draw_timeline();
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.add_sample(self);
        true
    }
}

/// `watch`
pub static EVENTS: Table<Event> = Table::of(&[
    TIME.cell(|style, event| time(style, event.time)),
    Column::word("address", 14, Role::Address).cell(|_, event| optional(&event.address)),
    Column::number("pages", 5, Role::Size).rank(1).cell(|_, event| match event.kind {
        EventKind::Executed | EventKind::Exited => none(),
        _ => Cell::count(event.pages),
    }),
    Column::word("event", 15, Role::Plain).cell(|_, event| kind(event.kind)),
    Column::word("before → after, where", 44, Role::Plain).cell(|_, event| told(event)),
]);

/// `watch … by KEY`
pub static EVENT_GROUPS: Table<EventGroup> = Table::of(&[
    Column::number("pages", 8, Role::Size).cell(|_, group| Cell::count(group.pages)),
    Column::number("net", 10, Role::Size).cell(|_, group| Cell::new(net(group.effect.came, group.effect.went))),
    Column::number("samples", 7, Role::Dim).cell(|_, group| Cell::count(group.samples)),
    Column::word("region", 44, Role::Name).cell(|_, group| Cell::new(&group.key)),
    Column::word("changes", 30, Role::Plain).cell(|_, group| by_kind(&group.events)),
]);

/// `came 7, region grew 1`
pub fn by_kind(changes: &Numbers<EventKind>) -> Cell<'static> {
    let changes = changes.iter().map(|(kind, number)| format!("{} {}", kind.words(), count(*number)));
    Cell::new(changes.collect::<Vec<_>>().join(", "))
}

pub const TIME: Column = Column::word("time", 12, Role::Dim);

pub fn time(style: &Style, time: f64) -> Cell<'static> {
    Cell::new(time_of_day(time, style.zone()))
}

pub fn kind(kind: EventKind) -> Cell<'static> {
    Cell::of(role(kind), kind.words())
}

/// What changed, and where.
fn told(event: &Event) -> Cell<'static> {
    let told = |mut parts: Vec<String>| {
        place_of(event, &mut parts);
        parts.join("  ")
    };
    let whole = story(event.before.as_ref(), event.after.as_ref());
    let cell = Cell::new(told(whole));
    match frames_alone(event) {
        Some(short) => cell.or(told(vec![short])),
        None => cell,
    }
}

/// Only the frames before and after, for a narrow terminal: the kind of the event says the rest.
fn frames_alone(event: &Event) -> Option<String> {
    let is_told = matches!(event.kind, EventKind::Came | EventKind::Went | EventKind::Moved | EventKind::CopiedOnWrite);
    let side = |facts: &Option<PageFacts>| {
        let frame = facts.as_ref().and_then(|facts| facts.pfn);
        frame.map(|frame| frame.to_string()).unwrap_or_default()
    };
    let (before, after) = (side(&event.before), side(&event.after));
    let short = format!("{before} → {after}");
    (is_told && !(before.is_empty() && after.is_empty())).then(|| short.trim().to_owned())
}

/// Adds where the change is.
fn place_of(event: &Event, story: &mut Vec<String>) {
    if let Some(detail) = &event.detail {
        story.push(detail.clone());
    }
    if let Some(region) = event.region.as_ref().filter(|name| !name.is_empty()) {
        story.push(region.file_name().to_string());
    }
    story.extend(symbols_text(event.symbol.as_ref(), event.last_symbol.as_ref()));
}

pub fn role(kind: EventKind) -> Role {
    match kind {
        EventKind::Came | EventKind::SwappedIn | EventKind::RegionAppeared => Role::Good,
        EventKind::Went | EventKind::SwappedOut | EventKind::RegionWent => Role::Warn,
        EventKind::Executed | EventKind::Exited => Role::Bad,
        _ => Role::Note,
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
        let is = match after.pfn {
            Some(frame) if before.state == after.state => frame.to_string(),
            _ => side(after),
        };
        parts.push(format!("{} → {is}", side(before)));
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

fn side(facts: &PageFacts) -> String {
    let state = facts.state.word();
    match (facts.pfn, facts.why.is_empty()) {
        (Some(frame), _) => format!("{state} {frame}"),
        (None, true) => state.to_owned(),
        (None, false) => format!("most likely {state}"),
    }
}

/// The first lines of `watch`.
pub fn start(lines: &mut Lines, start: &WatchStart) {
    let line = lines.line();
    line.plain(format!(
        "watching {}, a sample every {}; Ctrl-C ends it",
        counted(start.pages, "page"),
        duration(start.every)
    ));
    blind(lines, &start.blind);
}

/// The kinds of change that cannot be seen here, by reason.
pub fn blind(lines: &mut Lines, blind: &[Blind]) {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for blind in blind {
        by_reason.entry(blind.reason.as_str()).or_default().push(blind.kind.words());
    }
    for (reason, kinds) in by_reason {
        footnotes::line(lines, "unseen", Role::Note, &kinds, reason);
    }
}

/// The last line of `watch`.
pub fn summary(lines: &mut Lines, summary: &WatchSummary) {
    let line = lines.line();
    let mut samples = counted(summary.samples, "sample");
    if summary.missed > 0 {
        samples.push_str(&format!(" of the {} that were due", count(summary.samples + summary.missed)));
    }
    line.plain(format!("watched for {} in {samples}; ", duration(summary.seconds))).indent(2);
    if summary.events.is_empty() {
        line.plain("nothing changed");
    }
    numbers(line, &summary.events);
    net_figures(line, &summary.effect);
    if let Some(why) = ended(summary.ended) {
        line.word("; ", Role::Dim, why);
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

fn ended(word: &str) -> Option<String> {
    Some(match word {
        "interrupted" => "ended by Ctrl-C".into(),
        "count" => "ended by `count`".into(),
        "duration" => "ended by `for`".into(),
        "until" => "ended as `until` came true".into(),
        "exited" => "ended as the process exited".into(),
        other => format!("ended: {other}"),
    })
}
