//! `walk pfn:A..pfn:B`: frames of physical memory instead of pages of a process.

use super::through::{Arguments, flags_key};
use super::{Context, Error, Flow, Outcome, Resume};
use crate::eval;
use crate::inspect::{self, Frames, Need, Page, is_average, sweep_frames};
use crate::kernel::{FrameNumber, FrameRange, PageFlags, PageMapEntry, State, VirtualAddress};
use crate::lang::GroupKey;
use crate::report::{self, FramesSummary, Note, Record, Stopped};
use std::cell::RefCell;
use std::collections::HashMap;

pub(super) fn walk(context: &mut Context, range: FrameRange, arguments: &Arguments) -> Outcome {
    let machine = context.state.machine().clone();
    let filter = match arguments.filter {
        Some(filter) => Some(eval::frame_filter(filter, machine.page(), context.state)?),
        None => None,
    };
    let by_flags = match arguments.by {
        None => false,
        Some(GroupKey::Flags) => true,
        Some(_) => {
            return Err(Error::Refused {
                message: "frames can be grouped by flags only: state, kind, region and run are those of pages of a process"
                    .to_owned(),
                hint: Some("walk pfn:A..pfn:B by flags".to_owned()),
            });
        }
    };
    let range = match context.resume {
        Some(Resume::Frame(from)) => FrameRange::new(range.start().max(from), range.end()),
        _ => Some(range),
    };
    let Some(range) = range else {
        return Ok(Flow::Done);
    };
    let size = machine.page();
    let zones = machine.zones().ok();
    let mut groups: HashMap<u64, u64> = HashMap::new();
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let mut more = None;
    let mut matched = 0u64;
    let sink = RefCell::new(&mut *context.sink);
    let mut visit = |frames: &Frames| {
        if !filter
            .as_ref()
            .is_none_or(|filter| filter.matches(&as_page(frames), None))
        {
            return Ok(());
        }
        if !by_flags && left == 0 {
            more = Some(frames.first);
            return Err(Stopped::Closed);
        }
        matched += frames.frames;
        if by_flags {
            *groups
                .entry(frames.flags.unwrap_or_default().bits())
                .or_default() += frames.frames;
            return Ok(());
        }
        left -= 1;
        let zone = zones.as_ref().and_then(|zones| zones.of(frames.first));
        sink.borrow_mut().emit(Record::Frames(report::Frames {
            pfn: frames.first,
            physical: frames.first.physical(size),
            frames: frames.frames,
            bytes: frames.frames.checked_mul(size.bytes()),
            flags: frames.flags,
            flags_raw: frames.flags,
            map_count: frames.map_count,
            map_count_average: is_average(&*machine, frames.flags, frames.map_count),
            zone: zone.map(|zone| zone.name.clone()),
            node: zone.map(|zone| zone.node),
        }))
    };
    let one_by_one = filter
        .as_ref()
        .is_some_and(|filter| filter.need().contains(Need::EACH));
    let swept = sweep_frames(
        &*machine,
        range,
        Need::FLAGS | Need::COUNTS,
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
    let limit = arguments.limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let mut rows: Vec<(u64, u64)> = groups.into_iter().collect();
    rows.sort_by_key(|&(flags, frames)| (u64::MAX - frames, flags));
    for &(flags, frames) in rows.iter().take(limit) {
        context.sink.emit(Record::Group(report::Group {
            by: "flags",
            key: flags_key(PageFlags::from_bits_retain(flags)),
            pages: frames,
            bytes: frames.saturating_mul(size.bytes()),
        }))?;
    }
    if let Some(more) = rows.len().checked_sub(limit).filter(|&more| more > 0) {
        let message = format!("{more} more groups; the totals are of all of them");
        context.sink.emit(Record::Note(Note { message }))?;
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
fn as_page(frames: &Frames) -> Page {
    const PRESENT: u64 = 1 << 63;
    Page {
        address: VirtualAddress::default(),
        pages: frames.frames,
        entry: PageMapEntry::new(PRESENT | frames.first.get()),
        state: State::Present,
        kind: None,
        flags: frames.flags,
        map_count: frames.map_count,
        huge: None,
        count_is_average: false,
        order: None,
        zone: None,
        cgroup: None,
        behind: None,
    }
}
