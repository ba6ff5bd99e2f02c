//! The changes of a page between two samples.

use super::regions::{self, Change, Residence, effect, is_same_mapping};
use super::words::{SampledPage, WordSample, spanning};
use crate::inspect::StateSet;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::{PageObservation, RegionFacts, classify};
use crate::inspect::frames::is_average;
use crate::inspect::page::Evidence;
use crate::kernel::{AddressRange, PageSize, Region, State, VirtualAddress};
use crate::report::{EventKind, FlagNames, NetEffect, PageFacts};
use std::ops::Range;

/// The rule by which neighbouring pages with the same change share a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinRule {
    /// Their states are the same. If they changed frames, the frames must be consecutive too.
    NextFrames,
    /// Their states are the same.
    SameStates,
}

/// Two samples to compare.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub before: &'a WordSample,
    pub now: &'a WordSample,
    pub space: &'a AddressSpace,
}

impl<'a> Pair<'a> {
    /// Returns the changes, only those `within` the ranges if any are given: first regions, then pages in address
    /// order. Ends early once `goes_on`, which is called often, returns false.
    pub fn changes(
        self,
        extra: Evidence,
        join: JoinRule,
        within: Option<&'a [AddressRange]>,
        goes_on: impl FnMut() -> bool + 'a,
    ) -> impl Iterator<Item = Change> + 'a {
        let (regions, new) = self.region_changes(within);
        let size = self.space.page_size();
        let is_within = move |page: u64| {
            let range = AddressRange::of_length(VirtualAddress::new(page << size.shift()), size.bytes());
            within.is_none_or(|sorted| range.is_some_and(|range| range.within(sorted).next().is_some()))
        };
        // Only a watch considers frames, and it compares consecutive samples.
        let is_next = join == JoinRule::NextFrames;
        let differing = self.now.words.differences(&self.before.words, new.into(), is_next, goes_on);
        let tells_huge = self.before.tells_huge && self.now.tells_huge;
        let mut merger = Merger { pair: self, extra, join, tells_huge, growing: Vec::new() };
        let differing = differing.filter(move |(page, ..)| is_within(*page)).map(Some).chain([None]);
        let pages = differing.flat_map(move |next| match next {
            Some((page, then, now)) => merger.push(page, then, now),
            None => merger.finish(),
        });
        regions.into_iter().chain(pages)
    }

    /// Returns the changes of regions, with the pages that went with them, and the indices of newly mapped pages. These
    /// have no earlier contents to be compared with.
    fn region_changes(self, within: Option<&[AddressRange]>) -> (Vec<Change>, Vec<Range<u64>>) {
        fn regions(sample: &WordSample) -> Vec<&Region> {
            sample.regions.iter().map(|(region, _)| region).collect()
        }
        let (mut changes, mut new) = (Vec::new(), Vec::new());
        if self.before.regions == self.now.regions {
            return (changes, new);
        }
        let size = self.space.page_size();
        // If a region ends outside of the samples, only the sampled part is known.
        let sampled = |range: AddressRange| {
            let parts = [self.before, self.now].map(|sample| sample.sampled_part(range));
            let is_within = within.is_none_or(|within| range.within(within).next().is_some());
            parts.into_iter().flatten().reduce(spanning).filter(|_| is_within)
        };
        for change in regions::compare_regions(&regions(self.before), &regions(self.now)) {
            let range = change.range;
            if matches!(change.kind, EventKind::RegionAppeared | EventKind::RegionGrew) {
                new.push(size.index(range.start())..size.index(range.end()));
            }
            let Some(range) = sampled(range) else {
                continue;
            };
            let (pages, effect) = match change.kind {
                EventKind::RegionWent | EventKind::RegionShrank => self.pages_gone_with(range, within),
                _ => (0, NetEffect::default()),
            };
            changes.push(Change {
                address: Some(range.start()),
                pages,
                effect,
                range: Some(range),
                region: change.before.or(change.after).cloned(),
                region_after: change.before.and(change.after).cloned(),
                ..Change::of_process(change.kind)
            });
        }
        (changes, new)
    }

    /// Returns the number of pages of `range` that had contents before, and the net effect of their loss.
    fn pages_gone_with(self, range: AddressRange, within: Option<&[AddressRange]>) -> (u64, NetEffect) {
        let size = self.space.page_size();
        let place = self.before.place(range.start()).map(|(_, place)| place);
        let (mut gone, mut sum) = (0, NetEffect::default());
        let mut add = |part: AddressRange| {
            let first = size.index(part.start());
            for (_, page) in self.before.words.pages(first, first + part.pages(size)) {
                let state = self.states(page, place).likeliest();
                gone += u64::from(Residence::of(state) != Residence::Nowhere);
                sum += effect(state, State::Unmapped, size.bytes());
            }
        };
        match within {
            Some(within) => range.within(within).for_each(&mut add),
            None => add(range),
        }
        (gone, sum)
    }

    /// Returns the kind for a page that moved between frames on different nodes.
    fn on_another_node(self, kind: EventKind, then: SampledPage, now: SampledPage) -> Option<EventKind> {
        let is_other = kind == EventKind::Moved && self.node(then)? != self.node(now)?;
        is_other.then_some(EventKind::ChangedNode)
    }

    /// Returns the NUMA node of the frame.
    fn node(self, seen: SampledPage) -> Option<u32> {
        Some(self.space.zones().ok()?.of(seen.entry.frame()?)?.node)
    }

    fn page_facts(self, seen: SampledPage, place: Option<RegionFacts>, extra: Evidence) -> PageFacts {
        let states = self.states(seen, place);
        PageFacts {
            why: states.why("state"),
            state: states.likeliest(),
            pfn: seen.entry.frame(),
            flags: seen.flags.map(FlagNames),
            map_count: seen.map_count,
            map_count_average: is_average(&self.space.target().machine, seen.flags, seen.map_count),
            node: if extra.contains(Evidence::ZONES) { self.node(seen) } else { None },
        }
    }

    fn states(self, seen: SampledPage, place: Option<RegionFacts>) -> StateSet {
        let evidence = PageObservation { flags: seen.flags, ..PageObservation::of(seen.entry) };
        classify(evidence, place, self.space).0
    }
}

/// Joins neighbouring pages with the same change.
struct Merger<'a> {
    pair: Pair<'a>,
    extra: Evidence,
    join: JoinRule,
    /// Whether both samples show huge mappings, without which a split or collapse is not visible.
    tells_huge: bool,
    /// The unfinished changes, at most one of each kind: flags and map count of a page can change at once.
    growing: Vec<Change>,
}

impl Merger<'_> {
    /// Adds a page that differs. Returns the changes that end before it.
    fn push(&mut self, page: u64, then: SampledPage, now: SampledPage) -> Vec<Change> {
        let size = self.pair.space.page_size();
        let address = VirtualAddress::new(page << size.shift());
        // Pages that went with their region are in its change.
        let Some((region, place)) = self.pair.now.place(address) else {
            return Vec::new();
        };
        let place_then = self.pair.before.place(address);
        let place_then = place_then.and_then(|(then, place)| is_same_mapping(then, region).then_some(place));
        let [then, now] = [then, now].map(|seen| SampledPage { is_huge: seen.is_huge && self.tells_huge, ..seen });
        let before = self.pair.page_facts(then, place_then, self.extra);
        let after = self.pair.page_facts(now, Some(place), self.extra);
        let (main, others) = event_kinds(then, before.state, now, after.state, self.extra);
        let main = main.map(|kind| self.pair.on_another_node(kind, then, now).unwrap_or(kind));
        let main = main.map(|kind| (kind, effect(before.state, after.state, size.bytes())));
        // Further changes of the same page have no net effect.
        let others = others.map(|kind| (kind, NetEffect::default()));
        let mut ended = Vec::new();
        for (kind, effect) in main.into_iter().chain(others) {
            let change = Change {
                address: Some(address),
                pages: 1,
                effect,
                before: Some(before.clone()),
                after: Some(after.clone()),
                region: Some(region.clone()),
                ..Change::of_process(kind)
            };
            ended.extend(self.add(change));
        }
        ended
    }

    /// Adds a change. Returns the change of the same kind that ends before it.
    fn add(&mut self, change: Change) -> Option<Change> {
        let (size, join) = (self.pair.space.page_size(), self.join);
        let slot = self.growing.iter_mut().find(|growing| growing.kind == change.kind);
        match slot {
            Some(growing) if continues_change(growing, &change, size, join) => {
                growing.pages += 1;
                growing.effect += change.effect;
            }
            Some(growing) => return Some(std::mem::replace(growing, change)),
            None => self.growing.push(change),
        }
        None
    }

    /// Returns the unfinished changes.
    fn finish(&mut self) -> Vec<Change> {
        self.growing.sort_by_cached_key(|change| change.address);
        std::mem::take(&mut self.growing)
    }
}

/// Returns whether `next` is the same change of the next page and joins `growing`.
fn continues_change(growing: &Change, next: &Change, size: PageSize, join: JoinRule) -> bool {
    let follows = |a: &PageFacts, b: &PageFacts| match (a.pfn, b.pfn) {
        (Some(first), Some(next)) => first.checked_add(growing.pages) == Some(next),
        (a, b) => a.is_none() && b.is_none(),
    };
    let same = |a: &Option<PageFacts>, b: &Option<PageFacts>, is_anywhere: bool| match (a, b) {
        (Some(a), Some(b)) => {
            let is_alike = a.state == b.state
                && a.why == b.why
                && a.flags == b.flags
                && a.map_count == b.map_count
                && a.node == b.node;
            is_alike && (join == JoinRule::SameStates || is_anywhere || follows(a, b))
        }
        (a, b) => a.is_none() && b.is_none(),
    };
    let end = growing.address.and_then(|address| address.checked_add(growing.pages << size.shift()));
    end == next.address
        && growing.region == next.region
        && same(&growing.before, &next.before, growing.kind.had_scattered_frames())
        && same(&growing.after, &next.after, growing.kind.has_scattered_frames())
}

/// Returns the change of the place of a page, and its other changes, as far as both entries show them.
fn event_kinds(
    then: SampledPage,
    before: State,
    now: SampledPage,
    after: State,
    extra: Evidence,
) -> (Option<EventKind>, impl Iterator<Item = EventKind> + use<>) {
    let same_frame = before == State::Present && after == State::Present && then.entry.frame() == now.entry.frame();
    let flags = same_frame && extra.contains(Evidence::FLAGS) && then.flags != now.flags;
    let counts = same_frame && extra.contains(Evidence::COUNTS) && then.map_count != now.map_count;
    let main = main_kind(then, before, now, after);
    // The kernel sets the bit of a new page as in its region, and that of a page that it collapses.
    let soft_dirty = extra.contains(Evidence::SOFT_DIRTY)
        && !then.entry.is_soft_dirty()
        && now.entry.is_soft_dirty()
        && [before, after].into_iter().all(|state| Residence::of(state) != Residence::Nowhere)
        && !matches!(main, Some(EventKind::CopiedOnWrite | EventKind::Unmerged | EventKind::Collapsed));
    let written = match (then.contents, now.contents) {
        // A copy on write was written to.
        (Some(then), Some(now)) => then != now && !matches!(main, Some(EventKind::CopiedOnWrite | EventKind::Unmerged)),
        _ => false,
    };
    let others = [
        written.then_some(EventKind::Written),
        flags.then_some(EventKind::FlagsChanged),
        counts.then_some(EventKind::MapCountChanged),
        soft_dirty.then_some(EventKind::SoftDirty),
    ];
    (main, others.into_iter().flatten())
}

/// Returns the change of the place of a page.
fn main_kind(then: SampledPage, before: State, now: SampledPage, after: State) -> Option<EventKind> {
    use Residence::{Memory, Nowhere, Swap};
    use State::{Guard, Migrating, Present};
    Some(match (before, after) {
        (Guard, Guard) => return None,
        (_, Guard) => EventKind::GuardInstalled,
        (Guard, _) => EventKind::GuardRemoved,
        (Present, Present) => return kind_of_present(then, now),
        // The entry of a migrating page has the frame that the page leaves.
        (Migrating, Present) => {
            let left = then.entry.swap().map(|swap| swap.offset);
            let arrived = now.entry.frame().map(|frame| frame.get());
            return (left != arrived && arrived.is_some()).then_some(EventKind::Moved);
        }
        _ => match (Residence::of(before), Residence::of(after)) {
            (Swap, Memory) => EventKind::SwappedIn,
            (Memory, Swap) => EventKind::SwappedOut,
            (Nowhere, Memory | Swap) => EventKind::Came,
            (Memory | Swap, Nowhere) => EventKind::Went,
            // The page is migrating: a later sample shows its new frame.
            (Memory, Memory) | (Swap, Swap) | (Nowhere, Nowhere) => return None,
        },
    })
}

fn kind_of_present(then: SampledPage, now: SampledPage) -> Option<EventKind> {
    match (then.is_merged, now.is_merged) {
        (false, true) => return Some(EventKind::Merged),
        (true, false) => return Some(EventKind::Unmerged),
        _ => {}
    }
    // Bit 61 is also set for the huge zero page.
    let copied =
        if then.is_zero { !now.is_zero } else { then.entry.is_file_or_shared() && !now.entry.is_file_or_shared() };
    Some(match (then.is_huge, now.is_huge) {
        (false, true) => EventKind::Collapsed,
        // A private copy lacks bit 61, also if frame numbers are hidden.
        _ if copied => EventKind::CopiedOnWrite,
        _ if then.entry.frame() == now.entry.frame() => match (then.is_huge, now.is_huge) {
            (true, false) => EventKind::Split,
            _ => return None,
        },
        // A page that was shared and is exclusive now was copied by a write. A page that was exclusive was moved by the
        // kernel.
        _ if !then.entry.is_exclusive() && now.entry.is_exclusive() => EventKind::CopiedOnWrite,
        _ => EventKind::Moved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::PageMapEntry;

    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const EXCLUSIVE: u64 = 1 << 56;
    const DIRTY: u64 = 1 << 55;

    fn page(entry: u64, huge: bool) -> SampledPage {
        SampledPage { entry: PageMapEntry::new(entry), is_huge: huge, ..SampledPage::default() }
    }

    fn said(before: (u64, State), after: (u64, State)) -> Vec<EventKind> {
        let (then, now) = (page(before.0, false), page(after.0, false));
        let (main, others) = event_kinds(then, before.1, now, after.1, Evidence::SOFT_DIRTY);
        main.into_iter().chain(others).collect()
    }

    /// A page that comes or goes has one row, although its bit 55 changes too.
    #[test]
    fn only_a_write_makes_a_page_soft_dirty() {
        use EventKind::*;
        use State::{Guard, Present, Swapped, Untouched};
        let (clean, dirty) = (PRESENT | EXCLUSIVE | 500, PRESENT | EXCLUSIVE | DIRTY | 500);
        let (hole, clean_hole) = ((DIRTY, Untouched), (0, Untouched));
        for (before, after, kinds) in [
            ((clean, Present), (dirty, Present), &[SoftDirty][..]),
            ((dirty, Present), (clean, Present), &[]),
            (hole, (dirty, Present), &[Came]),
            (clean_hole, (dirty, Present), &[Came]),
            ((dirty, Present), clean_hole, &[Went]),
            ((clean, Present), hole, &[Went]),
            (clean_hole, hole, &[]),
            ((dirty, Present), (SWAPPED | DIRTY | 32, Swapped), &[SwappedOut]),
            ((SWAPPED | 32, Swapped), (dirty, Present), &[SwappedIn, SoftDirty]),
            ((SWAPPED | DIRTY | 32, Swapped), (dirty, Present), &[SwappedIn]),
            ((clean, Present), (SWAPPED | DIRTY | 1 << 58, Guard), &[GuardInstalled]),
            // A copy on write has been written to.
            ((PRESENT | 500, Present), (PRESENT | EXCLUSIVE | DIRTY | 501, Present), &[CopiedOnWrite]),
        ] {
            assert_eq!(said(before, after), kinds, "{before:x?}, {after:x?}");
        }
    }

    /// Each row of a page has the effect of its two states once.
    #[test]
    fn the_effect_follows_from_both_states() {
        use State::{Guard, Migrating, Poisoned, Present, Swapped, Untouched};
        let sums = |before, after| {
            let NetEffect { came, went, swap_came, swap_went } = effect(before, after, 1);
            (came, went, swap_came, swap_went)
        };
        for (before, after, expected) in [
            (Untouched, Present, (1, 0, 0, 0)),
            (Present, Untouched, (0, 1, 0, 0)),
            (Present, Guard, (0, 1, 0, 0)),
            (Guard, Present, (1, 0, 0, 0)),
            (Guard, Untouched, (0, 0, 0, 0)),
            (Untouched, Swapped, (0, 0, 1, 0)),
            (Swapped, Untouched, (0, 0, 0, 1)),
            (Swapped, Guard, (0, 0, 0, 1)),
            (Swapped, Present, (1, 0, 0, 1)),
            (Present, Swapped, (0, 1, 1, 0)),
            (Present, Migrating, (0, 0, 0, 0)),
            (Migrating, Swapped, (0, 1, 1, 0)),
            (Present, Poisoned, (0, 1, 0, 0)),
            (State::Unmapped, Present, (1, 0, 0, 0)),
        ] {
            assert_eq!(sums(before, after), expected, "{before:?}, {after:?}");
        }
    }
}
