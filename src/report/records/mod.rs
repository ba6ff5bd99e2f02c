//! The output of commands: records, plain data. `render` turns them into text or JSON; nothing here is formatted.
//!
//! A record gives a reason for each missing fact: the field is `None`, and [`Why`](super::Why) holds the reason under
//! the field's name. So hidden, not readable, and not known on this kernel never look like zero.
//!
//! Here are the records that several commands emit, and their parts. A record of one command is declared with it.
//! [`SHARED`] describes each with its fields: the JSON reference follows from that.

mod account;
mod capabilities;
mod explanation;
mod line;
mod map;
mod page;
mod read;
mod region;
mod serve;
mod session;
mod thread;
mod timeline;
mod walk;
mod watch;
mod who;

pub use account::*;
pub use capabilities::*;
pub use explanation::*;
pub use line::*;
pub use map::*;
pub use page::*;
pub use read::*;
pub use region::*;
pub use serve::*;
pub use session::*;
pub use thread::ThreadRow;
pub use timeline::*;
pub use walk::*;
pub use watch::*;
pub use who::*;

use super::json::{Declared, Shape};

/// The records that several commands emit.
pub const SHARED: &[Shape] = &[
    Translation::SHAPE,
    Explanation::SHAPE,
    Run::SHAPE,
    Pages::SHAPE,
    Frames::SHAPE,
    WalkSummary::SHAPE,
    FramesSummary::SHAPE,
    Group::SHAPE,
    MapRegion::SHAPE,
    AccountRow::SHAPE,
    AccountGroup::SHAPE,
    AccountSummary::SHAPE,
    SummaryRow::SHAPE,
    Mapper::SHAPE,
    WhoSummary::SHAPE,
    RegionReport::SHAPE,
    RegionsSummary::SHAPE,
    FlagsReport::SHAPE,
    Decoded::SHAPE,
    TimelineRow::SHAPE,
    TimelineSample::SHAPE,
    KernelRead::SHAPE,
    ReadsSummary::SHAPE,
    ValueReport::SHAPE,
    DisplayReport::SHAPE,
    SymbolReport::SHAPE,
    SymbolRow::SHAPE,
    SymbolsSummary::SHAPE,
    ModuleReport::SHAPE,
    LineReport::SHAPE,
    ProcessReport::SHAPE,
    Capabilities::SHAPE,
    ProcessRow::SHAPE,
    ThreadRow::SHAPE,
    TargetReport::SHAPE,
    SettingReport::SHAPE,
    HistoryEntry::SHAPE,
    Text::SHAPE,
    Help::SHAPE,
    Note::SHAPE,
    AssertionReport::SHAPE,
    AssertionsSummary::SHAPE,
    ErrorReport::SHAPE,
    Hello::SHAPE,
    End::SHAPE,
];
