//! What happened to a page between two samples.

use super::change::{Change, ChangeSink};
use super::sample::Sample;
use super::words::SampledPage;
use crate::inspect::StateSet;
use crate::inspect::classify::{PageObservation, classify};
use crate::inspect::page::Need;
use crate::inspect::view::View;
use crate::kernel::{PageSize, State, VirtualAddress};
use crate::report::{EventKind, FlagNames, PageFacts, Stopped};

/// Which neighbouring pages that changed the same way share a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// Those whose frames follow each other.
    SameFrames,
    /// All whose states are the same.
    SameStates,
}

/// Joins neighbouring pages that changed the same way.
pub(super) struct Merger<'a> {
    before: &'a Sample,
    now: &'a Sample,
    view: &'a View<'a>,
    extra: Need,
    join: Join,
    /// One change of each kind may be growing: flags and map count of a page can change at once.
    growing: Vec<Change>,
}

impl<'a> Merger<'a> {
    pub fn new(before: &'a Sample, now: &'a Sample, view: &'a View<'a>, extra: Need, join: Join) -> Self {
        Merger { before, now, view, extra, join, growing: Vec::new() }
    }

    /// Adds a page that differs.
    pub fn push(
        &mut self,
        page: u64,
        then: SampledPage,
        now: SampledPage,
        sink: &mut ChangeSink<'_>,
    ) -> Result<(), Stopped> {
        let address = VirtualAddress::new(page << self.view.page().shift());
        // Pages that went with their region were reported with it.
        let Some((region, place)) = self.now.place(address) else {
            return Ok(());
        };
        let place_then = self.before.place(address).map(|(_, place)| place);
        let states = |seen: SampledPage, place| {
            let evidence = PageObservation { flags: seen.flags, ..PageObservation::of(seen.entry) };
            classify(evidence, place, self.view).0
        };
        let before = facts(then, states(then, place_then));
        let after = facts(now, states(now, Some(place)));
        for kind in kinds(then, before.state, now, after.state, self.extra) {
            let change = Change {
                address: Some(address),
                pages: 1,
                before: Some(before.clone()),
                after: Some(after.clone()),
                region: Some(region.clone()),
                ..Change::of_process(kind)
            };
            self.add(change, sink)?;
        }
        Ok(())
    }

    fn add(&mut self, change: Change, sink: &mut ChangeSink<'_>) -> Result<(), Stopped> {
        let (size, join) = (self.view.page(), self.join);
        let slot = self.growing.iter_mut().find(|growing| growing.kind == change.kind);
        match slot {
            Some(growing) if goes_on(growing, &change, size, join) => growing.pages += 1,
            Some(growing) => sink(std::mem::replace(growing, change))?,
            None => self.growing.push(change),
        }
        Ok(())
    }

    /// Reports the changes that are left.
    pub fn finish(mut self, sink: &mut ChangeSink<'_>) -> Result<(), Stopped> {
        self.growing.sort_by_key(|change| change.address);
        self.growing.into_iter().try_for_each(sink)
    }
}

fn facts(seen: SampledPage, states: StateSet) -> PageFacts {
    PageFacts {
        why: states.why("state"),
        state: states.likeliest(),
        pfn: seen.entry.frame(),
        flags: seen.flags.map(FlagNames),
        map_count: seen.map_count,
        map_count_average: false,
    }
}

/// Whether `next` is the same change of the page after those of `growing`, and joins them.
fn goes_on(growing: &Change, next: &Change, size: PageSize, join: Join) -> bool {
    let follows = |a: &PageFacts, b: &PageFacts| match (a.pfn, b.pfn) {
        _ if join == Join::SameStates => true,
        (Some(first), Some(next)) => first.checked_add(growing.pages) == Some(next),
        (a, b) => a.is_none() && b.is_none(),
    };
    let same = |a: &Option<PageFacts>, b: &Option<PageFacts>| match (a, b) {
        (Some(a), Some(b)) => {
            a.state == b.state && a.why == b.why && a.flags == b.flags && a.map_count == b.map_count && follows(a, b)
        }
        (a, b) => a.is_none() && b.is_none(),
    };
    let end = growing.address.and_then(|address| address.checked_add(growing.pages << size.shift()));
    end == next.address
        && growing.region == next.region
        && same(&growing.before, &next.before)
        && same(&growing.after, &next.after)
}

/// What happened, as far as the entries of both samples show.
fn kinds(
    then: SampledPage,
    before: State,
    now: SampledPage,
    after: State,
    extra: Need,
) -> impl Iterator<Item = EventKind> + use<> {
    let same_frame = before == State::Present && after == State::Present && then.entry.frame() == now.entry.frame();
    let flags = same_frame && extra.contains(Need::FLAGS) && then.flags != now.flags;
    let counts = same_frame && extra.contains(Need::COUNTS) && then.map_count != now.map_count;
    let soft_dirty = extra.contains(Need::SOFT_DIRTY) && then.entry.is_soft_dirty() != now.entry.is_soft_dirty();
    let main = main_kind(then, before, now, after);
    let written = match (then.contents, now.contents) {
        // A copy on write has been written to.
        (Some(then), Some(now)) => then != now && main != Some(EventKind::CopiedOnWrite),
        _ => false,
    };
    [
        main,
        written.then_some(EventKind::Written),
        flags.then_some(EventKind::FlagsChanged),
        counts.then_some(EventKind::MapCountChanged),
        soft_dirty.then_some(EventKind::SoftDirty),
    ]
    .into_iter()
    .flatten()
}

/// What happened to the place of the page.
fn main_kind(then: SampledPage, before: State, now: SampledPage, after: State) -> Option<EventKind> {
    use State::{Guard, Migrating, Present, Swapped};
    Some(match (before, after) {
        (Guard, Guard) => return None,
        (_, Guard) => EventKind::GuardInstalled,
        (Guard, _) => EventKind::GuardRemoved,
        // It is migrating: a later sample shows its new frame.
        (Present, Migrating) => return None,
        // The entry of a migrating page holds the frame that it leaves.
        (Migrating, Present) => {
            let left = then.entry.swap().map(|swap| swap.offset);
            let arrived = now.entry.frame().map(|frame| frame.get());
            return (left != arrived && arrived.is_some()).then_some(EventKind::Moved);
        }
        (Present, Present) => return still_present(then, now),
        (Swapped, Present) => EventKind::SwappedIn,
        (Present, Swapped) => EventKind::SwappedOut,
        (Swapped, Swapped) => return None,
        (_, Present | Swapped) => EventKind::Came,
        (Present | Swapped, _) => EventKind::Went,
        _ => return None,
    })
}

fn still_present(then: SampledPage, now: SampledPage) -> Option<EventKind> {
    let copied = then.entry.is_file_or_shared() && !now.entry.is_file_or_shared();
    Some(match (then.huge, now.huge) {
        (false, true) => EventKind::Collapsed,
        // A private copy loses bit 61 even where frames are hidden.
        _ if copied => EventKind::CopiedOnWrite,
        _ if then.entry.frame() == now.entry.frame() => match (then.huge, now.huge) {
            (true, false) => EventKind::Split,
            _ => return None,
        },
        // A page that was shared and no longer is was copied by a write. A page that was exclusive was moved by the
        // kernel.
        _ if !then.entry.is_exclusive() && now.entry.is_exclusive() => EventKind::CopiedOnWrite,
        _ => EventKind::Moved,
    })
}
