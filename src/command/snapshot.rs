//! `snapshot`, `snapshot delete NAME`, `info snapshots`: the page map at one time, kept to be compared.

use super::watch::current_ranges;
use super::{About, Context, Error, Example, Flow, Group, Outcome};
use crate::eval::{self, Extent, Origin, Spans};
use crate::inspect::{Need, Snapshot, View};
use crate::lang::{self, Kept, Spanned};
use crate::report::{Record, SnapshotRow};
use crate::state::{DebugState, NamedSnapshot};
use std::time::SystemTime;

pub(super) const ABOUT: About = About {
    name: "snapshot",
    group: Group::Time,
    summary: "keep the page map, to ask later what changed",
    text: "Keeps the page map of the process, or of a range, under a name; without a name it is called s1, s2 and so on. `diff` \
           compares two snapshots, or one with the present. A snapshot of a name that is taken replaces that one. Snapshots stay \
           when another process is attached, and go when pmdb ends.\n\n\
           `with` keeps more: flags (`/proc/kpageflags`), counts (how often each frame is mapped), and content: a hash of each \
           resident page, by which `diff` finds pages that were written in place. Pages that are not resident are not touched. The \
           kernel marks pages that are read as used.\n\n\
           `snapshot delete NAME` forgets one; `info snapshots` lists them with the memory that they take.",
    examples: &[
        Example {
            line: "snapshot before",
            does: "the whole process",
        },
        Example {
            line: "snapshot in demo_busy with content",
            does: "a symbol, with what its pages hold",
        },
        Example {
            line: "snapshot before\nsnapshot delete before",
            does: "forget one",
        },
    ],
};

pub(super) const ABOUT_INFO: About = About {
    name: "info snapshots",
    group: Group::Time,
    summary: "the snapshots that were taken",
    text: "Name, process, time, pages that were present, what is kept beside the page map, and the memory that each takes.",
    examples: &[Example {
        line: "snapshot\ninfo snapshots",
        does: "all of them",
    }],
};

pub(super) fn run(
    context: &mut Context,
    name: Option<&str>,
    range: Option<&Spanned<lang::Range>>,
    with: &[Kept],
) -> Outcome {
    let spans = range.map(|range| spans(range, context.state)).transpose()?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => context.state.snapshots.free_name(),
    };
    let taken = take(context, name, spans, with)?;
    context.sink.emit(Record::Snapshot(row(&taken)))?;
    context.state.snapshots.add(taken);
    Ok(Flow::Done)
}

pub(super) fn delete(context: &mut Context, name: &Spanned<String>) -> Outcome {
    match context.state.snapshots.delete(&name.node) {
        true => Ok(Flow::Done),
        false => Err(unknown(context.state, name)),
    }
}

pub(super) fn list(context: &mut Context) -> Outcome {
    for snapshot in context.state.snapshots.iter() {
        context.sink.emit(Record::Snapshot(row(snapshot)))?;
    }
    if context.state.snapshots.iter().next().is_none() {
        return Err(Error::Refused {
            message: "no snapshot has been taken".to_owned(),
            hint: Some("snapshot NAME takes one".to_owned()),
        });
    }
    Ok(Flow::Done)
}

/// What a range stands for in `in RANGE`; `None` for `all`.
pub(super) fn spans(range: &Spanned<lang::Range>, state: &DebugState) -> Result<Spans, Error> {
    match eval::range(range, state)? {
        Extent::Addresses(spans) => Ok(spans),
        Extent::Frames(_) => {
            let error = eval::Error::new(
                range.at,
                "a snapshot is of pages of the process, not of frames",
            );
            Err(error.into())
        }
    }
}

/// The snapshot of that name.
pub(super) fn called<'a>(
    state: &'a DebugState,
    name: &Spanned<String>,
) -> Result<&'a NamedSnapshot, Error> {
    state
        .snapshots
        .called(&name.node)
        .ok_or_else(|| unknown(state, name))
}

fn unknown(state: &DebugState, name: &Spanned<String>) -> Error {
    let error = eval::Error::new(name.at, format!("no snapshot is called '{}'", name.node));
    let names: Vec<String> = state.snapshots.iter().map(|one| one.name.clone()).collect();
    let hint = match names.is_empty() {
        true => "snapshot NAME takes one".to_owned(),
        false => format!("there is {}", names.join(", ")),
    };
    error.hint(hint).into()
}

/// Takes a snapshot of what is attached.
pub(super) fn take(
    context: &mut Context,
    name: String,
    spans: Option<Spans>,
    with: &[Kept],
) -> Result<NamedSnapshot, Error> {
    let target = context.target()?;
    let view = View::of(&target)?;
    let spans = spans.filter(|spans| *spans.origin() != Origin::All);
    let ranges = match &spans {
        Some(spans) => current_ranges(spans, &view, &context.state.symbols, &target),
        None => view.spans(),
    };
    let mut extra = Need::empty();
    for kept in with {
        extra |= match kept {
            Kept::Flags => Need::FLAGS,
            Kept::Counts => Need::COUNTS,
            Kept::Content => Need::empty(),
        };
    }
    view.require(extra)?;
    extra |= view.obtainable(Need::SOFT_DIRTY);
    let contents = with.contains(&Kept::Content);
    let time = SystemTime::now();
    let sink = &mut context.sink;
    let snapshot = Snapshot::take(&view, ranges, extra, contents, &mut || sink.check())?;
    Ok(NamedSnapshot {
        name,
        process: target.process.identity(),
        time,
        spans,
        snapshot,
    })
}

/// What a snapshot keeps beside the page map.
pub(super) fn kept(snapshot: &Snapshot) -> Vec<Kept> {
    let is_kept = |kept: &Kept| match kept {
        Kept::Flags => snapshot.extra().contains(Need::FLAGS),
        Kept::Counts => snapshot.extra().contains(Need::COUNTS),
        Kept::Content => snapshot.has_contents(),
    };
    Kept::ALL.iter().copied().filter(is_kept).collect()
}

fn row(named: &NamedSnapshot) -> SnapshotRow {
    let snapshot = &named.snapshot;
    SnapshotRow {
        name: named.name.clone(),
        pid: named.process.pid,
        process: named.process.name.clone(),
        time: seconds(named.time),
        pages: snapshot.present(),
        swapped: snapshot.swapped(),
        with: kept(snapshot).into_iter().map(Kept::word).collect(),
        unread: snapshot.unread(),
        memory: snapshot.size() as u64,
    }
}

/// Seconds since the epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
