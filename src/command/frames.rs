//! `walk pfn:A..pfn:B`: frames of physical memory instead of pages of a process.

use super::cut::{Cut, Largest, show_largest};
use super::page_sweep::Arguments;
use super::{Context, Error, Flow, Outcome, Resume, groups};
use crate::eval;
use crate::inspect::{
    self, Frames, GroupBy, Groups, Need, frame_words, require_of_frames, sweep_frames,
};
use crate::kernel::FrameRange;
use crate::process::Machine;
use crate::report::{self, FramesSummary, Reason, Record, Stopped};
use std::cell::RefCell;

pub(super) fn walk(context: &mut Context, range: FrameRange, arguments: &Arguments) -> Outcome {
    let machine = context.state.machine().clone();
    let filter = match arguments.filter {
        Some(filter) => Some(eval::frame_filter(filter, &machine, context.state)?),
        None => None,
    };
    context.state.last_address = None;
    let by = match groups::parted(arguments.by)? {
        None if arguments.by.is_empty() => None,
        Some((by, and)) if of_frames(by) && and.is_none_or(of_frames) => Some((by, and)),
        _ => {
            return Err(Error::Refused {
                message: "frames can be grouped by flags, order, node, zone, cgroup and mapcount: the other keys are those of pages of a process"
                    .to_owned(),
                hint: Some("walk pfn:A..pfn:B by flags".to_owned()),
            });
        }
    };
    let by_need = by.map_or(Need::empty(), |(by, and)| {
        let and = and.map_or(Need::empty(), GroupBy::need_of_frames);
        by.need_of_frames() | and
    });
    let mut need = Need::FLAGS | Need::COUNTS;
    need |= by_need;
    need |= filter
        .as_ref()
        .map_or(Need::empty(), |filter| filter.need());
    let range = match context.resume {
        Some(Resume::Frame(from)) => FrameRange::new(range.start().max(from), range.end()),
        _ => Some(range),
    };
    let Some(range) = range else {
        return Ok(Flow::Done);
    };
    let size = machine.page();
    if by_need.contains(Need::ZONES) {
        require_of_frames(Need::ZONES, &machine)?;
    }
    let mut grouped = by.map(|(by, and)| Groups::new(by).and(and));
    let mut left = Cut::limit(arguments.cut).unwrap_or(u64::MAX);
    let mut largest = Cut::top(arguments.cut).map(Largest::new);
    let mut more = None;
    let mut matched = 0u64;
    let sink = RefCell::new(&mut *context.sink);
    let mut visit = |frames: &Frames| {
        if !filter
            .as_ref()
            .is_none_or(|filter| filter.matches(&frames.as_page(&machine), None))
        {
            return Ok(());
        }
        if grouped.is_none() && left == 0 {
            more = Some(frames.first);
            return Err(Stopped::Closed);
        }
        matched += frames.frames;
        if let Some(groups) = &mut grouped {
            groups.add(&frames.as_page(&machine), None);
            return Ok(());
        }
        left -= 1;
        match &mut largest {
            Some(largest) => {
                largest.add(frames.frames, *frames);
                Ok(())
            }
            None => sink.borrow_mut().emit(row(&machine, frames)),
        }
    };
    let one_by_one = filter
        .as_ref()
        .is_some_and(|filter| filter.need().contains(Need::EACH));
    let swept = sweep_frames(
        &machine,
        range,
        need,
        &mut |done| sink.borrow_mut().progress(done, range.frames(), "frames"),
        &mut |frames| match one_by_one {
            true => frames.each().try_for_each(|frame| visit(&frame)),
            false => visit(frames),
        },
    );
    let (looked_at, stopped) = match swept {
        Ok(looked_at) => (Some(looked_at), None),
        Err(inspect::Error::Stopped(_)) if more.is_some() => (None, None),
        Err(inspect::Error::Stopped(stopped)) => (None, Some(stopped)),
        Err(error) => return Err(error.into()),
    };
    if stopped == Some(Stopped::Closed) {
        return Err(Stopped::Closed.into());
    }
    if let (Some(by), Some(grouped)) = (by, grouped) {
        let name = |key| groups::name(&machine, key);
        let rows = grouped.finish_parted();
        groups::emit(by, rows, arguments.cut, size, name, context.sink)?;
    }
    show_largest(largest, "row", context.sink, |frames, sink| {
        sink.emit(row(&machine, frames))
    })?;
    context.sink.emit(Record::FramesSummary(FramesSummary {
        frames: matched,
        bytes: matched.saturating_mul(size.bytes()),
        cut_short: more.is_some() || stopped.is_some(),
        memory_ends: looked_at
            .filter(|&looked_at| looked_at < range.frames())
            .and_then(|looked_at| range.start().checked_add(looked_at)),
    }))?;
    match (stopped, more) {
        (Some(stopped), _) => Err(stopped.into()),
        (None, Some(frame)) => Ok(Flow::More(Resume::Frame(frame))),
        (None, None) => Ok(Flow::Done),
    }
}

/// Neighbouring frames as a row.
fn row(machine: &Machine, frames: &Frames) -> Record {
    let size = machine.page();
    let zone = inspect::zone(machine, frames.first);
    let unread = || Reason::Changed;
    Record::Frames(report::Frames {
        pfn: frames.first,
        physical: frames.first.physical(size),
        frames: frames.frames,
        bytes: frames.frames.checked_mul(size.bytes()),
        words: frame_words(
            machine,
            frames.flags.ok_or_else(unread),
            frames.map_count.ok_or_else(unread),
        ),
        node: zone.as_ref().map(|zone| zone.node).map_err(Clone::clone),
        zone: zone.map(|zone| zone.name),
    })
}

/// Whether frames without a process have what is grouped by.
fn of_frames(by: GroupBy) -> bool {
    match by {
        GroupBy::Flags | GroupBy::Order | GroupBy::Node | GroupBy::Zone | GroupBy::Cgroup => true,
        GroupBy::MapCount => true,
        GroupBy::State | GroupBy::Kind | GroupBy::Region | GroupBy::PmdMapped => false,
        GroupBy::Exclusive | GroupBy::Symbol => false,
    }
}
