//! The records of `watch`, and how they are written.

use crate::command::schedule::SamplesEnd;
use crate::kernel::{Name, PageSize, VirtualAddress};
use crate::render::Record;
use crate::render::columns::{Cell, Column, ColumnOf, MakeCell, Table, none, optional, region_key};
use crate::render::text::Text;
use crate::render::text::block::symbols_text;
use crate::render::text::changes::{
    CHANGED_REGION, TIME, blind, by_kind, frames_alone, kind, net, net_figures, no_change, numbers, states, story, time,
};
use crate::render::text::lines::Lines;
use crate::render::text::words::group_heading;
use crate::render::theme::Role;
use crate::render::units::{count, counted, duration};
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Blind, Declared, EventKind, NetEffect, Numbers, PageFacts, Shape, SymbolBrief};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] =
    &[Event::SHAPE, WatchStart::SHAPE, EventGroup::SHAPE, WatchSummary::SHAPE];

record! {
    /// A line of `watch`.
    pub struct Event as "event" {
        /// Beginning of the sample that shows it, in seconds since the epoch.
        time: f64,
        /// First address; `null` for events of the whole process.
        address: Option<VirtualAddress>,
        /// Neighbouring pages that changed in the same way; for a region that went or shrank, those that were in memory
        /// or in swap.
        pages: u64,
        /// The event.
        kind: EventKind,
        /// The first page before. The frames of the others are anywhere if the pages came, went, were swapped or were
        /// copied; otherwise they follow its frame.
        before: Option<PageFacts>,
        /// The first page after.
        after: Option<PageFacts>,
        /// Name of the region.
        region: Option<Name>,
        /// The symbol at the first byte.
        symbol: Option<SymbolBrief>,
        /// The symbol at the last byte of the pages.
        [optional] last_symbol: Option<SymbolBrief>,
        /// More, in words: the new end of a region, the program executed.
        [optional] detail: Option<String>,
    }

    /// The heading of `watch`.
    pub struct WatchStart as "watch-start" {
        /// Pages in the range now.
        pages: u64,
        /// Seconds between two samples.
        every: f64,
        /// Kinds of event that cannot be seen here, each with the reason.
        blind: Vec<Blind>,
    }

    /// A row of `watch … by KEY`.
    pub struct EventGroup as "event-group" {
        /// The key: `region`, or a fact.
        by: String,
        /// The group: addresses, permissions and name of the region, or the value of the fact after the changes.
        key: String,
        /// By region: its name.
        [optional] region: Option<Name>,
        /// Pages in all changes. A page that changed twice counts twice.
        pages: u64,
        /// Samples that showed a change.
        samples: u64,
        /// Changes of each kind, counted in pages; changes of the region are counted one by one. Pages that went with
        /// their region count as gone.
        events: Numbers<EventKind>,
        /// Bytes that came and went; if the process executed another program, since then.
        [flat] effect: NetEffect,
    }

    /// The totals of `watch`.
    pub struct WatchSummary as "watch-summary" {
        /// Number of samples.
        samples: u64,
        /// Samples that were due during an earlier one.
        missed: u64,
        /// Seconds it lasted.
        seconds: f64,
        /// Events of each kind. A change of several pages counts once for each page, a change of a region or of the
        /// process once. Pages that went with their region count as gone.
        events: Numbers<EventKind>,
        /// Bytes that came and went; if the process executed another program, since then.
        [flat] effect: NetEffect,
        /// Rows of each kind. A row holds neighbouring pages that changed in the same way.
        rows: Numbers<EventKind>,
        /// Why it ended: `interrupted`, `count`, `duration`, `until`, `exited`.
        ended: SamplesEnd,
        /// Whether writes in place did not show.
        hides_writes: bool,
    }
}

impl Record for Event {
    fn write(&self, text: &mut Text) {
        text.row(&EVENTS, self);
    }

    fn address(&self) -> Option<VirtualAddress> {
        self.address
    }
}

/// `watch`
static EVENTS: Table<Event> = Table::of(&[
    TIME.cell(|style, event| time(style, event.time)),
    Column::word("address", 14, Role::Address).cell(|_, event| optional(&event.address)),
    Column::number("pages", 5, Role::Size).rank(1).cell(|_, event| match event.kind {
        EventKind::Executed | EventKind::Exited => none(),
        _ => Cell::count(event.pages),
    }),
    Column::word("event", 11, Role::Plain).uncut(15).cell(|_, event| kind(event.kind)),
    Column::word("before → after, where", 44, Role::Plain).cell(|_, event| event_cell(event)),
]);

/// What changed, and where.
fn event_cell(event: &Event) -> Cell<'static> {
    let with_place = |mut parts: Vec<String>| {
        place_of(event, &mut parts);
        parts.join("  ")
    };
    let (before, after) = (event.before.as_ref(), event.after.as_ref());
    // The first frame would mislead: the others need not follow it.
    let is_of_several = event.pages > 1;
    if is_of_several && event.kind.has_scattered_frames() {
        let first = || {
            after?.pfn?;
            Some(format!("{}, and {} more", story(before, after).join("  "), count(event.pages - 1)))
        };
        return Cell::new(with_place(states(before, after).or_else(first).into_iter().collect()));
    }
    let whole = story(before.filter(|_| !(is_of_several && event.kind.had_scattered_frames())), after);
    let cell = Cell::new(with_place(whole));
    match frames_alone(event.kind, before, after) {
        Some(short) => cell.or(with_place(vec![short])),
        None => cell,
    }
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

impl Record for WatchStart {
    fn write(&self, text: &mut Text) {
        text.line(start, self);
    }

    fn begins_stream(&self) -> bool {
        true
    }
}

/// The first lines of `watch`.
fn start(lines: &mut Lines, start: &WatchStart) {
    let line = lines.line();
    line.plain(format!(
        "watching {}, a sample every {}; Ctrl-C ends it",
        counted(start.pages, "page"),
        duration(start.every)
    ));
    blind(lines, &start.blind);
}

impl Record for EventGroup {
    fn write(&self, text: &mut Text) {
        let key: MakeCell<EventGroup> = |_, group| Cell::new(&group.key);
        let key = match self.region {
            Some(_) => OF_REGION,
            None => Column::word(group_heading(&self.by), 20, Role::Plain).cell(key),
        };
        let changes: MakeCell<EventGroup> = |_, group| by_kind(&group.events);
        let changes = Column::word("changes", 24, Role::Plain).cell(changes);
        text.row(&EVENT_GROUPS.by([Some(key), Some(changes)]), self);
    }
}

/// `watch … by KEY`
static EVENT_GROUPS: Table<EventGroup> = Table::of(&[
    Column::number("pages", 6, Role::Size).cell(|_, group| Cell::count(group.pages)),
    Column::number("net", 10, Role::Size).cell(|_, group| Cell::new(net(group.effect.came, group.effect.went))),
    Column::number("samples", 7, Role::Dim).rank(1).cell(|_, group| Cell::count(group.samples)),
]);

const OF_REGION: ColumnOf<EventGroup> = CHANGED_REGION.cell(|_, group| region_key(&group.key));

impl Record for WatchSummary {
    fn write(&self, text: &mut Text) {
        text.line(summary, self);
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_changes", self.events.sum())]
    }

    fn ends_pictures(&self) -> bool {
        true
    }
}

/// The last line of `watch`.
fn summary(lines: &mut Lines, summary: &WatchSummary) {
    let line = lines.line();
    let mut samples = counted(summary.samples, "sample");
    if summary.missed > 0 {
        samples.push_str(&format!(" of the {} that were due", count(summary.samples + summary.missed)));
    }
    line.plain(format!("watched for {} in {samples}", duration(summary.seconds))).indent(2);
    // That it exited is why the watch ended.
    let is_change = |(kind, _): &&(EventKind, u64)| *kind != EventKind::Exited;
    let events = Numbers(summary.events.iter().filter(is_change).copied().collect());
    if !events.is_empty() {
        line.plain("; ");
        numbers(line, &events);
    } else if summary.effect == NetEffect::default() {
        line.plain("; ");
        no_change(line, summary.hides_writes);
    }
    net_figures(line, &summary.effect);
    if summary.ended == SamplesEnd::Exited && summary.effect != NetEffect::default() {
        line.plain(" with the exit");
    }
    line.word("; ", Role::Dim, words_for_end(summary.ended));
}

fn words_for_end(end: SamplesEnd) -> &'static str {
    match end {
        SamplesEnd::Interrupted => "ended by Ctrl-C",
        SamplesEnd::Count => "ended by `count`",
        SamplesEnd::Duration => "ended by `for`",
        SamplesEnd::Until => "ended because `until` became true",
        SamplesEnd::Exited => "ended because the process exited",
    }
}

words!(SamplesEnd => "samples_end");

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::{counter, pfn, va, why};
    use crate::kernel::{PageFlags, State};
    use crate::report::{FlagNames, Reason};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(event()),
            Box::new(copied_event()),
            Box::new(flags_event()),
            Box::new(uncertain_event()),
            Box::new(exit_event()),
            Box::new(watch_start()),
            Box::new(event_group()),
            Box::new(EventGroup { by: "state".into(), key: "swapped".into(), region: None, ..event_group() }),
            Box::new(watch_summary()),
        ]
    }

    pub fn event() -> Event {
        Event {
            time: 1_700_000_000.125,
            address: Some(va(0x555555558000)),
            pages: 1,
            kind: EventKind::CopiedOnWrite,
            before: Some(facts(State::Present, Some(0x1a4eac))),
            after: Some(facts(State::Present, Some(0x2b3f00))),
            region: Some(Name::from("/usr/bin/demo")),
            symbol: Some(SymbolBrief { offset: 0, ..counter() }),
            last_symbol: Some(SymbolBrief { offset: 4095, ..counter() }),
            detail: None,
        }
    }

    /// The frames of the others are anywhere.
    pub fn copied_event() -> Event {
        Event { pages: 3, ..event() }
    }

    pub fn flags_event() -> Event {
        let side = |flags, map_count| PageFacts {
            flags: Some(FlagNames(flags)),
            map_count: Some(map_count),
            map_count_average: map_count == 2,
            ..facts(State::Present, Some(0x2b3f00))
        };
        Event {
            kind: EventKind::FlagsChanged,
            before: Some(side(PageFlags::REFERENCED, 2)),
            after: Some(side(PageFlags::DIRTY, 1)),
            symbol: None,
            last_symbol: None,
            ..event()
        }
    }

    /// To one who may not see swap slots.
    pub fn uncertain_event() -> Event {
        let hidden = Reason::not_permitted("hidden: swap slots need CAP_SYS_ADMIN");
        let after = PageFacts { why: why(&[("state", hidden)]), ..facts(State::Swapped, None) };
        Event {
            kind: EventKind::SwappedOut,
            before: Some(facts(State::Present, None)),
            after: Some(after),
            symbol: None,
            last_symbol: None,
            ..event()
        }
    }

    pub fn exit_event() -> Event {
        Event {
            address: None,
            kind: EventKind::Exited,
            before: None,
            after: None,
            region: None,
            symbol: None,
            last_symbol: None,
            detail: Some("process 812 (demo) has exited".into()),
            ..event()
        }
    }

    pub fn watch_start() -> WatchStart {
        let blind = |kind, reason: &str| Blind { kind, reason: reason.into() };
        WatchStart {
            pages: 512,
            every: 0.1,
            blind: vec![
                blind(EventKind::Moved, "frames are hidden without CAP_SYS_ADMIN"),
                blind(EventKind::Written, "writes in place show only with `with soft_dirty`"),
                blind(EventKind::CopiedOnWrite, "frames are hidden without CAP_SYS_ADMIN"),
            ],
        }
    }

    pub fn watch_summary() -> WatchSummary {
        WatchSummary {
            samples: 124,
            missed: 3,
            seconds: 12.34,
            events: Numbers(vec![(EventKind::Came, 3), (EventKind::CopiedOnWrite, 1), (EventKind::RegionGrew, 1)]),
            rows: Numbers(vec![(EventKind::Came, 2), (EventKind::CopiedOnWrite, 1), (EventKind::RegionGrew, 1)]),
            effect: NetEffect { came: 12 << 10, ..NetEffect::default() },
            ended: SamplesEnd::Interrupted,
            hides_writes: true,
        }
    }

    pub fn event_group() -> EventGroup {
        EventGroup {
            by: "region".into(),
            key: "0x555555559000..0x55555557a000 rw-p [heap]".into(),
            region: Some(Name::from("[heap]")),
            pages: 1_536,
            samples: 12,
            events: Numbers(vec![
                (EventKind::Came, 1_024),
                (EventKind::CopiedOnWrite, 512),
                (EventKind::RegionGrew, 3),
            ]),
            effect: NetEffect { came: 4 << 20, went: 64 << 10, ..NetEffect::default() },
        }
    }

    pub fn facts(state: State, frame: Option<u64>) -> PageFacts {
        PageFacts {
            state,
            pfn: frame.map(pfn),
            flags: None,
            map_count: None,
            map_count_average: false,
            node: None,
            why: Default::default(),
        }
    }
}
