//! `walk pfn:A..pfn:B`: frames of physical memory instead of pages of a process.

use super::floor::{Context, Error, Flow, Outcome, Resume};
use super::rows::{self, Largest, RowLimit, finish, say_undecided, show_largest, stop_of_sweep};
use crate::eval;
use crate::inspect::{self, Evidence, FactReader, FrameRow, FrameSweep, Groups, Question, frame_words, machine_frames};
use crate::kernel::{FrameNumber, FrameRange, Key, PageSize};
use crate::lang::{FilterExpression, KeyFacts, PageField, Spanned, TakenKeys, ValueType, WrittenKey};
use crate::process::Machine;
use crate::render::Sink;
use crate::report::{self, FramesSummary, PagesByReason, Reason, Stopped};
use std::sync::Arc;

pub(super) fn walk(
    context: &mut Context,
    range: FrameRange,
    filter: Option<&Spanned<FilterExpression<PageField>>>,
    keys: &[WrittenKey],
    cut: Option<RowLimit>,
) -> Outcome {
    let machine = context.state.machine().clone();
    let filter = filter.map(|filter| eval::frame_filter(filter, &machine, context.state)).transpose()?;
    context.state.last_address = None;
    let by = groupings(keys)?;
    let reader = FactReader::of_frames(&machine);
    let by_need = by.map_or(Ok(Evidence::empty()), |(by, and)| rows::need_of_keys(&reader, by, and))?;
    let need = Evidence::FLAGS | Evidence::COUNTS | by_need;
    let question = Question::new(filter.as_ref(), need);
    let range = match context.resume {
        Some(Resume::Frame(from)) => FrameRange::new(range.start().max(from), range.end()),
        _ => Some(range),
    };
    let Some(range) = range else {
        return Ok(Flow::Done);
    };
    let size = machine.page();
    let mut grouped = by.map(|(by, and)| Groups::new(by, reader).and(and));
    let mut left = RowLimit::limit(cut).unwrap_or(u64::MAX);
    let mut largest = RowLimit::top(cut).map(Largest::new);
    let mut more = None;
    let mut counted = 0;
    let ended = sweep(&machine, range, question, context.sink, |sweep, sink| {
        while let Some(rows) = sweep.next(sink)? {
            for frames in rows {
                if grouped.is_none() && left == 0 {
                    more = Some(frames.first);
                    return Ok(());
                }
                counted += frames.frames;
                left -= u64::from(grouped.is_none());
                match (&mut grouped, &mut largest) {
                    (Some(groups), _) => groups.add(&frames.as_page(&machine), None),
                    (None, Some(largest)) => largest.add(frames.frames, *frames),
                    (None, None) => sink.emit(&row(&machine, frames))?,
                }
            }
        }
        Ok(())
    })?;
    if let Some(groups) = grouped {
        rows::emit_groups(groups.finish(), cut, size, |_| None, context.sink)?;
    }
    show_largest(largest, "row", context.sink, |frames, sink| sink.emit(&row(&machine, frames)))?;
    ended.close(counted, size, context.sink)?;
    Ok(more.map_or(Flow::Done, |frame| Flow::More(Resume::Frame(frame))))
}

/// The keys that frames are grouped by.
fn groupings(keys: &[WrittenKey]) -> Result<Option<(Key, Option<Key>)>, Error> {
    let by = match rows::groupings(keys)? {
        None if !keys.is_empty() => return Err(no_key(Key::Run)),
        by => by,
    };
    let other = by.and_then(|(by, and)| [Some(by), and].into_iter().flatten().find(|key| !KEYS.takes(*key)));
    other.map_or(Ok(by), |other| Err(no_key(other)))
}

/// The result of a sweep of frames.
pub(super) struct FrameSweepEnd {
    /// Whether frames of the range were left out.
    is_cut_short: bool,
    /// Why the sweep was stopped, if it was.
    stopped: Option<Stopped>,
    /// The frame at which memory ends, if that is within the range.
    memory_ends: Option<FrameNumber>,
    /// Frames that the filter can neither keep nor leave out.
    undecided: PagesByReason,
}

impl FrameSweepEnd {
    /// Emits the totals of the frames that were counted. Returns the error of an interrupted sweep.
    pub fn close(self, frames: u64, size: PageSize, sink: &mut dyn Sink) -> Result<(), Error> {
        let undecided = say_undecided(&self.undecided, "frame", sink)?;
        let summary = FramesSummary {
            frames,
            bytes: frames.saturating_mul(size.bytes()),
            cut_short: self.is_cut_short,
            memory_ends: self.memory_ends,
            undecided: undecided.pages,
            why: undecided.why,
        };
        finish(&summary, self.stopped, sink)
    }
}

/// The frames of a sweep that its question keeps.
pub(super) struct FrameRows {
    frames: FrameSweep,
    total: u64,
    is_whole: bool,
}

impl FrameRows {
    /// The next frames, perhaps none; `None` after the last.
    pub fn next(&mut self, sink: &mut dyn Sink) -> Result<Option<&[FrameRow]>, Error> {
        sink.progress(self.frames.read(), self.total, "frames")?;
        let rows = self.frames.next()?;
        self.is_whole = rows.is_none();
        Ok(rows)
    }
}

/// Sweeps frames: `pull` takes those that it wants.
pub(super) fn sweep(
    machine: &Arc<Machine>,
    range: FrameRange,
    question: impl Into<Question>,
    sink: &mut dyn Sink,
    pull: impl FnOnce(&mut FrameRows, &mut dyn Sink) -> Result<(), Error>,
) -> Result<FrameSweepEnd, Error> {
    let frames = machine_frames(machine, range, question).within(sink.budget());
    let mut sweep = FrameRows { frames, total: range.frames(), is_whole: false };
    let stopped = stop_of_sweep(pull(&mut sweep, sink), sink)?;
    if stopped == Some(Stopped::Closed) {
        return Err(Stopped::Closed.into());
    }
    let read = Some(sweep.frames.read()).filter(|&read| sweep.is_whole && read < range.frames());
    let memory_ends = read.and_then(|read| range.start().checked_add(read));
    if sweep.is_whole {
        sweep.frames.require_known()?;
    }
    let undecided = sweep.frames.undecided().clone();
    Ok(FrameSweepEnd { is_cut_short: !sweep.is_whole, stopped, memory_ends, undecided })
}

/// Neighbouring frames as a row.
fn row(machine: &Machine, frames: &FrameRow) -> report::Frames {
    let size = machine.page();
    let zone = inspect::zone(machine, frames.first);
    let unread = || inspect::why_hidden(machine, frames.first).unwrap_or(Reason::Changed);
    report::Frames {
        pfn: frames.first,
        physical: frames.first.physical(size),
        frames: frames.frames,
        bytes: frames.frames.checked_mul(size.bytes()),
        words: frame_words(machine, frames.flags.ok_or_else(unread), frames.map_count.ok_or_else(unread)),
        node: zone.as_ref().map(|zone| zone.node).map_err(Clone::clone),
        zone: zone.map(|zone| zone.name),
    }
}

/// The keys that frames have without a process.
const KEYS: TakenKeys = TakenKeys { facts: KeyFacts::OfFrames, others: &[] };

/// Frames cannot be grouped by `key`.
fn no_key(key: Key) -> Error {
    let sets = KEYS.all().filter(|key| key.value_type() != ValueType::Boolean);
    let words: Vec<&str> = sets.map(Key::word).collect();
    Error::refused(
        format!(
            "`{key}` is a key for pages of a process; frames can be grouped by {} and single flags",
            words.join(", ")
        ),
        "write `walk pfn:A..pfn:B by flags`",
    )
}
