//! The output of commands: records, plain data. `render` turns them into text or JSON; nothing here is formatted.
//!
//! A record gives a reason for each missing fact: the field is `None`, and [`Why`](super::Why) holds the reason under
//! the field's name. So hidden, not readable, and not known on this kernel never look like zero.
//!
//! [`RECORDS`] describes each record with its fields: the JSON reference follows from it.

mod capabilities;
mod explanation;
mod line;
mod map;
mod memory;
mod page;
mod read;
mod region;
mod serve;
mod session;
mod shapes;
mod sink;
mod snapshot;
mod thread;
mod timeline;
mod walk;
mod watch;
mod who;

pub use capabilities::*;
pub use explanation::*;
pub use line::*;
pub use map::*;
pub use memory::*;
pub use page::*;
pub use read::*;
pub use region::*;
pub use serve::*;
pub use session::*;
pub use sink::Sink;
pub use snapshot::*;
pub use thread::ThreadRow;
pub use timeline::*;
pub use walk::*;
pub use watch::*;
pub use who::*;

use super::json::Shape;
use shapes::shapes;
use std::sync::LazyLock;

shapes! {
    /// A record. In JSON each is one object in one line, with the name of the variant as its `type`.
    #[non_exhaustive]
    pub enum Record by "type" {
        /// `translate ADDR`
        "translation" Translation(Box<Translation>),
        /// `explain`
        "explanation" Explanation(Box<Explanation>),
        /// A row of `translate RANGE`: physically contiguous pages.
        "run" Run(Run),
        /// A row of `walk`.
        "pages" Pages(Pages),
        /// A row of `walk pfn:A..pfn:B`.
        "frames" Frames(Frames),
        /// The totals of a walk.
        "walk-summary" WalkSummary(WalkSummary),
        /// The totals of a walk of frames.
        "frames-summary" FramesSummary(FramesSummary),
        /// A row of `walk … by`.
        "group" Group(Group),
        /// A region of `map`.
        "map-region" MapRegion(MapRegion),
        /// A row of `summary`.
        "summary" Summary(SummaryRow),
        /// A row of `who`.
        "mapper" Mapper(Mapper),
        /// The totals of `who`.
        "who-summary" WhoSummary(WhoSummary),
        /// `region`, and a row of `regions`.
        "region" Region(Box<RegionReport>),
        /// The totals of `regions`.
        "regions-summary" RegionsSummary(RegionsSummary),
        /// `flags`
        "page-flags" PageFlags(FlagsReport),
        /// `decode`
        "decoded" Decoded(Decoded),
        /// A line of `watch`.
        "event" Event(Event),
        /// The heading of `watch`.
        "watch-start" WatchStart(WatchStart),
        /// A row of `watch … by KEY`.
        "event-group" EventGroup(EventGroup),
        /// The totals of `watch`.
        "watch-summary" WatchSummary(WatchSummary),
        /// A row of `watch … as timeline`.
        "timeline-row" TimelineRow(TimelineRow),
        /// A column of `watch … as timeline`.
        "timeline-sample" TimelineSample(TimelineSample),
        /// `snapshot`, and a row of `info snapshots`.
        "snapshot" Snapshot(SnapshotRow),
        /// The totals of `diff`, printed first.
        "diff-summary" DiffSummary(Box<DiffSummary>),
        /// A row of `diff`.
        "change" Change(Box<ChangeRow>),
        /// A row of `diff … by KEY`.
        "change-group" ChangeGroup(ChangeGroup),
        /// A row of `compare`: a region.
        "comparison" Comparison(Comparison),
        /// A row of `compare … by symbol`.
        "comparison-group" ComparisonGroup(ComparisonGroup),
        /// The totals of `compare`.
        "comparison-summary" ComparisonSummary(ComparisonSummary),
        /// The expected effect of `soft-dirty clear`.
        "soft-dirty" SoftDirty(SoftDirtyReport),
        /// The effect of `soft-dirty clear`.
        "soft-dirty-cleared" SoftDirtyCleared(SoftDirtyCleared),
        /// `--how`: a read that the answer used.
        "read" Read(KernelRead),
        /// The totals of the reads.
        "reads-summary" ReadsSummary(ReadsSummary),
        /// A row of `x`.
        "memory" Memory(Box<Memory>),
        /// A row of `find`.
        "match" Match(Match),
        /// The totals of `find`.
        "find-summary" FindSummary(FindSummary),
        /// A row of `patched`.
        "patch" Patch(Box<Patch>),
        /// The totals of `patched`.
        "patched-summary" PatchedSummary(PatchedSummary),
        /// A row of `telescope`.
        "telescope" Telescope(Box<Telescope>),
        /// `print`
        "value" Value(ValueReport),
        /// An answer that is shown at each prompt.
        "display" Display(DisplayReport),
        /// `info symbol`, `info address`
        "symbol" Symbol(SymbolReport),
        /// A row of `info symbols`.
        "symbol" SymbolRow(SymbolReport),
        /// The totals of `info symbols`.
        "symbols-summary" SymbolsSummary(SymbolsSummary),
        /// A row of `info modules`.
        "module" Module(ModuleReport),
        /// `info line`
        "line" Line(Box<LineReport>),
        /// `info process`
        "process" Process(Box<ProcessReport>),
        /// `info capabilities`
        "capabilities" Capabilities(Box<Capabilities>),
        /// A row of `ps`, and of an ambiguous name.
        "process-entry" ProcessEntry(ProcessRow),
        /// A row of `info threads`.
        "thread" Thread(ThreadRow),
        /// `attach`, `detach`: the session's new target.
        "target" Target(TargetReport),
        /// `show`
        "setting" Setting(SettingReport),
        /// `history`
        "history" History(HistoryEntry),
        /// `echo`
        "text" Text(Text),
        /// `help`, `apropos`
        "help" Help(Help),
        /// A remark beside the answer: a remedy, a caution.
        "note" Note(Note),
        /// `assert`
        "assertion" Assertion(AssertionReport),
        /// The totals of a run with assertions.
        "assertions-summary" AssertionsSummary(AssertionsSummary),
        /// A failure.
        "error" Error(ErrorReport),
        /// The first record of `--serve`.
        "hello" Hello(Hello),
        /// The end of a request (`--serve`).
        "end" End(End),
    }
}

/// Every record, sorted by the word that JSON has as its `type`.
pub static RECORDS: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let mut records = Record::SHAPES.to_vec();
    records.sort_by_key(|shape| shape.name);
    records
});
