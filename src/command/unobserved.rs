//! The changes that neither samples nor snapshots show, with the reasons.

use super::floor::Error;
use crate::inspect::{self, AddressSpace, Evidence, Watcher};
use crate::kernel::AddressRange;
use crate::process::Target;
use crate::render::Sink;
use crate::report::{Blind, EventKind};
use std::time::Duration;

/// The kinds of change that cannot be seen, each with the reason.
pub(super) fn unobservable(space: &AddressSpace, ranges: &[AddressRange], wanted: Evidence) -> Vec<Blind> {
    let kinds = Watcher::unobservable(space, ranges, wanted).into_iter();
    let blind = kinds.map(|(kind, reason)| Blind { kind, reason: reason.to_string() });
    blind.collect()
}

/// The reason why a watch does not show writes that leave a page in its place, if it does not.
pub(super) fn writes_in_place(space: &AddressSpace, wanted: Evidence) -> Option<Blind> {
    let reason = match &space.availability().soft_dirty {
        Ok(()) if wanted.contains(Evidence::SOFT_DIRTY) => return None,
        Ok(()) => "writes in place show only with `with soft_dirty`".to_owned(),
        Err(reason) => {
            format!("writes in place do not show: {reason}; `snapshot NAME with content` and a later `diff` show them")
        }
    };
    Some(Blind { kind: EventKind::Written, reason })
}

/// The reason why copies on write that another process makes do not show, if it can make some: private memory in
/// `ranges` is now mapped by another process too. A forked child that copies a page leaves it where it is here.
pub(super) fn copies_elsewhere(
    space: &AddressSpace,
    ranges: &[AddressRange],
    wanted: Evidence,
    sink: &mut dyn Sink,
) -> Result<Option<Blind>, Error> {
    // Without frames, another remark says already what can be seen of copies.
    if wanted.contains(Evidence::COUNTS) || space.availability().frames.is_err() {
        return Ok(None);
    }
    match space.shares_private_memory(ranges, sink.budget()) {
        Ok(true) => {}
        // That the process has gone, the first sample reports.
        Ok(false) | Err(inspect::Error::Exited | inspect::Error::Executed) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    Ok(Some(Blind {
        kind: EventKind::CopiedOnWrite,
        reason: "if another process copies a page that it shares with this one, only the map count changes here (`with mapcount`)".to_owned(),
    }))
}

/// Notes how copies may show if the process forked within this time: as moves, and those of a child not at all.
pub(super) fn note_forks(target: &Target, within: Duration, between: &str, sink: &mut dyn Sink) -> Result<(), Error> {
    if target.machine.has_forked(target.process.identity().pid, within)? {
        let moved = format!("if a fork and then a copy fall between {between}, the page shows as `moved`");
        sink.note(format!("{moved}, and copies by the child may not show: `compare children` counts all copies"))?;
    }
    Ok(())
}
