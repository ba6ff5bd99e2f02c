//! The records that commands output: plain data, which `render` formats as text or JSON.
//!
//! A record has a reason for each missing fact: the field is `None`, and [`Why`](super::Why) has the reason under the
//! name of the field. A fact that is hidden, unreadable or not shown by the kernel thus never looks like zero.
//!
//! This module has the records that several commands output, and their parts. A record of one command is declared with
//! the command. [`SHARED`] describes each with its fields, which make the JSON reference.

mod page;
mod session;

pub use page::*;
pub use session::*;

use super::json::{Declared, Shape};

/// The descriptions of the records that several commands output.
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
