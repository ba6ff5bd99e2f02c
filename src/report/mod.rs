//! What commands say: records, plain data. `render` turns them into text or JSON; nothing here is formatted.
//!
//! A record that misses a fact says why: a field is `None` and [`Why`] holds the reason under the field's name, so that hidden, not
//! readable, and not known on this kernel never look like zero.

mod capabilities;
mod explanation;
pub mod field;
mod folio;
mod frame_words;
mod line;
mod memory;
mod page;
mod place;
mod read;
mod reason;
mod record;
mod region;
mod session;
mod sink;
mod walk;
mod watch;
mod who;
mod why;
mod wire;

pub use capabilities::*;
pub use explanation::*;
pub use field::Hex;
pub use folio::*;
pub use frame_words::FrameWords;
pub use line::*;
pub use memory::*;
pub use page::*;
pub use place::*;
pub use read::*;
pub use reason::{Fact, Reason};
pub use region::*;
pub use session::*;
pub use sink::{Sink, Stopped};
pub use walk::*;
pub use watch::*;
pub use who::*;
pub use why::Why;

use serde::Serialize;

/// One thing that a command says. In JSON one object a line, its `type` the name of the variant.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Record {
    /// `translate ADDR`
    Translation(Box<Translation>),
    /// `explain`
    Explanation(Box<Explanation>),
    /// A row of `translate RANGE`: physically contiguous pages.
    Run(Run),
    /// A row of `walk`.
    Pages(Pages),
    /// A row of `walk pfn:A..pfn:B`.
    Frames(Frames),
    /// The totals that close a walk.
    WalkSummary(WalkSummary),
    /// What closes a walk of frames.
    FramesSummary(FramesSummary),
    /// A row of `walk … by`.
    Group(Group),
    /// A row of `summary`.
    Summary(SummaryRow),
    /// A row of `who`.
    Mapper(Mapper),
    /// What closes `who`.
    WhoSummary(WhoSummary),
    /// `region`, and a row of `regions`.
    Region(Box<RegionReport>),
    /// The totals that close `regions`.
    RegionsSummary(RegionsSummary),
    /// `flags`
    PageFlags(FlagsReport),
    /// `decode`
    Decoded(Decoded),
    /// A line of `watch`.
    Event(Event),
    /// What `watch` says before it starts.
    WatchStart(WatchStart),
    /// What `watch` says when it ends.
    WatchSummary(WatchSummary),
    /// `--how`: a read behind the answer.
    Read(KernelRead),
    /// What closes the reads.
    ReadsSummary(ReadsSummary),
    /// A row of `x`.
    Memory(Box<Memory>),
    /// A row of `find`.
    Match(Match),
    /// What closes `find`.
    FindSummary(FindSummary),
    /// A row of `telescope`.
    Telescope(Box<Telescope>),
    /// `print`
    Value(ValueReport),
    /// `info symbol`, `info address`
    Symbol(SymbolReport),
    /// A row of `info symbols`.
    #[serde(rename = "symbol")]
    SymbolRow(SymbolReport),
    /// What closes `info symbols`.
    SymbolsSummary(SymbolsSummary),
    /// A row of `info modules`.
    Module(ModuleReport),
    /// `info line`
    Line(Box<LineReport>),
    /// `info process`
    Process(Box<ProcessReport>),
    /// `info capabilities`
    Capabilities(Box<Capabilities>),
    /// A row of `ps`, and of an ambiguous name.
    ProcessEntry(ProcessRow),
    /// `attach`, `detach`: what the session is now looking at.
    Target(TargetReport),
    /// `show`
    Setting(SettingReport),
    /// `history`
    History(HistoryEntry),
    /// `echo`
    Text(Text),
    /// `help`, `apropos`
    Help(Help),
    /// Something the reader should know that is no answer: a remedy, a caution.
    Note(Note),
    /// `assert`
    Assertion(AssertionReport),
    /// What closes a run with assertions.
    AssertionsSummary(AssertionsSummary),
    /// A failure.
    Error(ErrorReport),
    /// The end of a request (`--serve`).
    End(End),
}
