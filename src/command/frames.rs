//! `walk pfn:A..pfn:B`: frames of physical memory instead of pages of a process.

use super::through::Arguments;
use super::{Context, Error, Flow, Outcome, Resume, groups};
use crate::eval;
use crate::inspect::{
    self, Frames, GroupBy, Groups, Need, Page, frame_words, is_average, require_of_frames,
    sweep_frames,
};
use crate::kernel::{FrameNumber, FrameRange, PageMapEntry, State, VirtualAddress};
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
    let by = match arguments
        .by
        .map(|key| groups::by(key).filter(|by| of_frames(*by)))
    {
        None => None,
        Some(Some(by)) => Some(by),
        Some(None) => {
            return Err(Error::Refused {
                message: "frames can be grouped by flags, order, node, zone and cgroup: state, kind, region and run are those of pages of a process"
                    .to_owned(),
                hint: Some("walk pfn:A..pfn:B by flags".to_owned()),
            });
        }
    };
    let mut need = Need::FLAGS | Need::COUNTS;
    need |= by.map_or(Need::empty(), GroupBy::need);
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
    if by.is_some_and(|by| by.need().contains(Need::ZONES)) {
        require_of_frames(Need::ZONES, &machine)?;
    }
    let mut grouped = by.map(Groups::new);
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let mut more = None;
    let mut matched = 0u64;
    let sink = RefCell::new(&mut *context.sink);
    let mut visit = |frames: &Frames| {
        if !filter
            .as_ref()
            .is_none_or(|filter| filter.matches(&as_page(&machine, frames), None))
        {
            return Ok(());
        }
        if grouped.is_none() && left == 0 {
            more = Some(frames.first);
            return Err(Stopped::Closed);
        }
        matched += frames.frames;
        if let Some(groups) = &mut grouped {
            groups.add(&as_page(&machine, frames), None);
            return Ok(());
        }
        left -= 1;
        let zone = inspect::zone(&machine, frames.first);
        let unread = || Reason::Changed;
        sink.borrow_mut().emit(Record::Frames(report::Frames {
            pfn: frames.first,
            physical: frames.first.physical(size),
            frames: frames.frames,
            bytes: frames.frames.checked_mul(size.bytes()),
            words: frame_words(
                &machine,
                frames.flags.ok_or_else(unread),
                frames.map_count.ok_or_else(unread),
            ),
            node: zone.as_ref().map(|zone| zone.node).map_err(Clone::clone),
            zone: zone.map(|zone| zone.name),
        }))
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
            true => each(frames).try_for_each(|frame| visit(&frame)),
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
        let rows = grouped.finish();
        groups::emit(by, &rows, arguments.limit, size, name, context.sink)?;
    }
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

/// Whether frames without a process have what is grouped by.
fn of_frames(by: GroupBy) -> bool {
    match by {
        GroupBy::Flags | GroupBy::Order | GroupBy::Node | GroupBy::Zone | GroupBy::Cgroup => true,
        GroupBy::State | GroupBy::Kind | GroupBy::Region | GroupBy::PmdMapped => false,
    }
}

/// Neighbours one by one.
fn each(frames: &Frames) -> impl Iterator<Item = Frames> + use<> {
    let all = *frames;
    (0..all.frames).map(move |index| Frames {
        first: FrameNumber::new(all.first.get() + index),
        frames: 1,
        ..all
    })
}

/// A frame as a page that nobody has mapped, for filters that ask only about its frame.
fn as_page(machine: &Machine, frames: &Frames) -> Page {
    const PRESENT: u64 = 1 << 63;
    Page {
        address: VirtualAddress::default(),
        pages: frames.frames,
        entry: PageMapEntry::new(PRESENT | frames.first.get()),
        state: State::Present,
        doubt: None,
        kind: None,
        flags: frames.flags,
        map_count: frames.map_count,
        huge: None,
        count_is_average: is_average(machine, frames.flags, frames.map_count),
        order: frames.order,
        zone: frames.zone,
        cgroup: frames.cgroup,
        behind: None,
    }
}
