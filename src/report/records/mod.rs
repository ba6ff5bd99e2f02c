//! The output of commands: records, plain data. `render` turns them into text or JSON; nothing here is formatted.
//!
//! A record gives a reason for each missing fact: the field is `None`, and [`Why`](super::Why) holds the reason under
//! the field's name. So hidden, not readable, and not known on this kernel never look like zero.
//!
//! Here are the records that several commands emit, and their parts. A record of one command is declared with it.
//! [`SHARED`] describes each with its fields: the JSON reference follows from that.

mod page;
mod session;

pub use page::*;
pub use session::*;

use super::json::{Declared, Shape};

/// The records that several commands emit.
pub const SHARED: &[Shape] = &[
    Translation::SHAPE,
    Explanation::SHAPE,
    PagesRow::SHAPE,
    Frames::SHAPE,
    WalkSummary::SHAPE,
    FramesSummary::SHAPE,
    PageGroup::SHAPE,
    RegionReport::SHAPE,
    TimelineRow::SHAPE,
    TimelineSample::SHAPE,
    TargetReport::SHAPE,
    EchoedText::SHAPE,
    Help::SHAPE,
    Note::SHAPE,
    Answer::SHAPE,
    AssertionReport::SHAPE,
    AssertionsSummary::SHAPE,
    ErrorReport::SHAPE,
    Hello::SHAPE,
    End::SHAPE,
];
