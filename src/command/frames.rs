//! `walk pfn:A..pfn:B`: frames of physical memory instead of pages of a process.

use super::floor::{Context, Error, Flow, Outcome, Resume};
use super::rows::{self, Largest, RowLimit, finish, pull, say_undecided, show_largest};
use crate::eval;
use crate::inspect::{self, Evidence, FactReader, FrameRow, FrameSums, Groups, Question, frame_words, machine_frames};
use crate::kernel::{FrameNumber, FrameRange, Key, PageSize};
use crate::lang::{FilterExpression, KeyFacts, PageField, Span, Spanned, TakenKeys, ValueType, WrittenKey};
use crate::process::Machine;
use crate::render::Sink;
use crate::report::{self, FramesSummary, Reason, Stopped};

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
    let mut groups = by.map(|(by, and)| Groups::new(by, reader).and(and));
    let mut largest = RowLimit::top(cut).map(Largest::new);
    let limit = RowLimit::limit(cut).filter(|_| groups.is_none());
    let kept = machine_frames(&machine, range, question).limit(limit.unwrap_or(u64::MAX));
    let mut kept = kept.with_budget(context.sink.budget());
    let next = || kept.next();
    let stopped = pull(context.sink, "frames", next, |frames, sink| {
        match (&mut groups, &mut largest) {
            (Some(groups), _) => groups.add(&frames.as_page(&machine), None),
            (None, Some(largest)) => largest.add(frames.frames, frames),
            (None, None) => sink.emit(&row(&machine, &frames))?,
        }
        Ok(())
    })?;
    if let Some(groups) = groups {
        rows::emit_groups(groups.finish(), cut, machine.page_size(), |_| None, context.sink)?;
    }
    show_largest(largest, "row", context.sink, |frames, sink| sink.emit(&row(&machine, frames)))?;
    let more = kept.more();
    close(&kept.finish(), stopped, machine.page_size(), context.sink)?;
    Ok(more.map_or(Flow::Done, |frame| Flow::More(Resume::Frame(frame))))
}

/// Fails if a frame, which stands at this place of the line, does not exist.
pub(super) fn require_frame(machine: &Machine, frame: FrameNumber, at: Span) -> Result<(), Error> {
    if !inspect::is_no_frame(machine, frame) {
        return Ok(());
    }
    let message = format!("no such frame: {frame} is beyond physical memory, and no device has it");
    Err(eval::Error::new(at, message).into())
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

/// Emits the totals of the frames. Returns the error of a stopped sweep.
pub(super) fn close(
    sums: &FrameSums,
    stopped: Option<Stopped>,
    size: PageSize,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let undecided = say_undecided(&sums.undecided, "frame", sink)?;
    let summary = FramesSummary {
        frames: sums.frames,
        bytes: sums.frames.saturating_mul(size.bytes()),
        cut_short: sums.cut_short,
        memory_ends: sums.memory_ends,
        undecided: undecided.pages,
        why: undecided.why,
    };
    finish(&summary, stopped, sink)
}

/// Neighbouring frames as a row.
fn row(machine: &Machine, frames: &FrameRow) -> report::Frames {
    let size = machine.page_size();
    let zone = inspect::zone(machine, frames.first);
    let unread = || inspect::why_hidden(machine, frames.first).unwrap_or(Reason::Changed);
    report::Frames {
        pfn: frames.first,
        physical: frames.first.physical(size),
        frames: frames.frames,
        bytes: frames.frames.checked_mul(size.bytes()),
        words: frame_words(machine, frames.facts.flags.ok_or_else(unread), frames.facts.map_count.ok_or_else(unread)),
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
