//! The sums of changes: of all, and of groups with a common property.

use super::regions::{Change, RegionGroups};
use crate::inspect::by_symbol::{SymbolAt, parts_by_symbol};
use crate::inspect::fact::{Answer, answer_of_change};
use crate::kernel::{Key, Name, PageSize, Region};
use crate::report::{EventKind, NetEffect};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The most groups of regions that appear after the first sample. It is needed as a watch may last for days.
pub const MOST_LATER_REGIONS: usize = 1 << 16;

/// The sums of some changes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// The number of pages, with those that went with their region. A page that changed twice counts twice.
    pub pages: u64,
    /// The number of each kind: pages, regions or processes. Pages that went with their region count as gone.
    pub kinds: BTreeMap<EventKind, u64>,
    /// The number of changes of each kind. A change is of neighbouring pages.
    pub rows: BTreeMap<EventKind, u64>,
    /// The net effect on the memory of the process.
    pub effect: NetEffect,
}

impl ChangeCounts {
    /// Adds a change. Returns the number that it counts for: its pages, or 1 for a region or the process.
    pub fn add(&mut self, change: &Change) -> u64 {
        self.add_pages(change, change.pages)
    }

    /// Adds a part of the pages of a change.
    fn add_pages(&mut self, change: &Change, pages: u64) -> u64 {
        let is_of_pages = change.kind.is_of_pages();
        let number = if is_of_pages { pages } else { 1 };
        *self.kinds.entry(change.kind).or_default() += number;
        if !is_of_pages && pages > 0 {
            *self.kinds.entry(EventKind::Went).or_default() += pages;
        }
        *self.rows.entry(change.kind).or_default() += 1;
        self.pages += pages;
        self.effect += change.effect.part(pages, change.pages);
        number
    }

    /// Returns the number of changes of regions.
    pub fn regions(&self) -> u64 {
        self.rows.iter().filter(|(kind, _)| kind.is_of_regions()).map(|(_, rows)| rows).sum()
    }
}

impl AddAssign for ChangeCounts {
    fn add_assign(&mut self, other: ChangeCounts) {
        for (sums, others) in [(&mut self.kinds, other.kinds), (&mut self.rows, other.rows)] {
            others.into_iter().for_each(|(kind, number)| *sums.entry(kind).or_default() += number);
        }
        self.pages += other.pages;
        self.effect += other.effect;
    }
}

/// The common property of the changes of a group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum ChangedGroup {
    /// The changes are in the region with this number; `None` if it appeared after there were too many.
    Region(Option<usize>),
    /// The pages have this answer after the change.
    Pages(Answer),
    /// The pages begin in the symbol with this number.
    Symbol(u32),
    /// The pages begin in no symbol, or the changes are of regions with this name.
    NoSymbol(Name),
    /// The changes are of this kind. In groups by an answer for pages, it is used for changes of regions.
    Kind(EventKind),
}

/// A group of changes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangesOfGroup {
    /// The common property.
    pub group: ChangedGroup,
    /// The region as it was seen last, with all addresses that it had, if changes are grouped by region.
    pub region: Option<Region>,
    /// The sums of the changes.
    pub counts: ChangeCounts,
    /// The number of samples with such changes.
    pub samples: u64,
}

/// Groups changes by a key.
pub struct ChangeGroups<'a> {
    by: Key,
    size: PageSize,
    symbol_at: Option<SymbolAt<'a>>,
    regions: RegionGroups,
    groups: BTreeMap<ChangedGroup, Sums>,
}

#[derive(Default)]
struct Sums {
    counts: ChangeCounts,
    samples: u64,
    /// The last sample that is counted in `samples`.
    last: Option<u64>,
}

impl<'a> ChangeGroups<'a> {
    /// Returns groups by a key of changes, for pages of `size` bytes.
    pub fn new(by: Key, size: PageSize) -> Self {
        let regions = RegionGroups::of_at_most(MOST_LATER_REGIONS);
        ChangeGroups { by, size, symbol_at: None, regions, groups: BTreeMap::new() }
    }

    /// Sets the symbols in which pages begin, for groups by symbol. Without them, no page begins in a symbol.
    #[must_use]
    pub fn with_symbols(self, symbol_at: SymbolAt<'a>) -> Self {
        ChangeGroups { symbol_at: Some(symbol_at), ..self }
    }

    /// Continues with the regions of the next sample, in address order.
    pub fn see<'r>(&mut self, regions: impl Iterator<Item = &'r Region>) {
        self.regions.see(regions);
    }

    /// Adds a change of the sample with this number. A change of the whole process is in no group. An exec begins new
    /// regions and new net effects.
    pub fn add(&mut self, change: &Change, sample: u64) {
        if change.kind == EventKind::Executed {
            self.regions.forget();
            self.groups.values_mut().for_each(|sums| sums.counts.effect = NetEffect::default());
        }
        let Some(region) = &change.region else {
            return;
        };
        let group = match self.by {
            Key::Symbol => return self.add_by_symbol(change, &region.name, sample),
            Key::Region => ChangedGroup::Region(self.regions.number(region)),
            Key::Page(field) => match change.after.as_ref().and_then(|after| answer_of_change(field, after)) {
                Some(answer) => ChangedGroup::Pages(answer),
                None => ChangedGroup::Kind(change.kind),
            },
            Key::Change | Key::Mapping | Key::Run => ChangedGroup::Kind(change.kind),
        };
        self.add_pages(group, change, change.pages, sample);
    }

    /// Adds a change of pages to the groups of the symbols in which its pages begin.
    fn add_by_symbol(&mut self, change: &Change, region: &Name, sample: u64) {
        let symbol_at = self.symbol_at.as_mut().filter(|_| change.kind.is_of_pages());
        let (Some(address), Some(symbol_at)) = (change.address, symbol_at) else {
            return self.add_pages(ChangedGroup::NoSymbol(region.clone()), change, change.pages, sample);
        };
        let parts: Vec<_> = parts_by_symbol(self.size, address, change.pages, symbol_at).collect();
        for (_, pages, symbol) in parts {
            let group = symbol.map_or_else(|| ChangedGroup::NoSymbol(region.clone()), ChangedGroup::Symbol);
            self.add_pages(group, change, pages, sample);
        }
    }

    fn add_pages(&mut self, group: ChangedGroup, change: &Change, pages: u64, sample: u64) {
        let sums = self.groups.entry(group).or_default();
        sums.counts.add_pages(change, pages);
        if sums.last.replace(sample) != Some(sample) {
            sums.samples += 1;
        }
    }

    /// Returns the groups; those by region in the order in which the regions were seen first.
    pub fn finish(self) -> Vec<ChangesOfGroup> {
        let ChangeGroups { regions, groups, .. } = self;
        let region = |group: &ChangedGroup| match group {
            ChangedGroup::Region(number) => number.and_then(|number| regions.region(number)).cloned(),
            _ => None,
        };
        let groups = groups.into_iter().map(|(group, Sums { counts, samples, .. })| {
            let region = region(&group);
            ChangesOfGroup { group, region, counts, samples }
        });
        groups.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{PageFact, PageField, State, VirtualAddress};
    use crate::process::fake::region;
    use crate::report::PageFacts;

    fn of_region(start: u64, kind: EventKind, pages: u64) -> Change {
        let effect = NetEffect { came: pages, ..NetEffect::default() };
        Change { region: Some(region(start, 16)), pages, effect, ..Change::of_process(kind) }
    }

    #[test]
    fn pages_and_regions_are_counted() {
        let mut counts = ChangeCounts::default();
        assert_eq!(counts.add(&of_region(0x1000, EventKind::SwappedIn, 3)), 3);
        assert_eq!(counts.add(&of_region(0x1000, EventKind::RegionGrew, 0)), 1);
        // A region counts once, and so do the pages that went with it, each.
        assert_eq!(counts.add(&of_region(0x1000, EventKind::RegionShrank, 9)), 1);
        assert_eq!(counts.add(&of_region(0x1000, EventKind::SwappedIn, 4)), 4);
        let kinds =
            [(EventKind::Went, 9), (EventKind::SwappedIn, 7), (EventKind::RegionGrew, 1), (EventKind::RegionShrank, 1)];
        assert_eq!(counts.kinds, kinds.into());
        assert_eq!((counts.rows[&EventKind::SwappedIn], counts.regions(), counts.pages), (2, 2, 16));
        // The memory of an executed program counts as effect, not as pages.
        let effect = NetEffect { came: 5, ..NetEffect::default() };
        counts.add(&Change { effect, ..Change::of_process(EventKind::Executed) });
        assert_eq!((counts.effect.came, counts.regions()), (16 + 5, 2));
        let once = counts.clone();
        counts += once;
        assert_eq!((counts.kinds[&EventKind::Went], counts.regions(), counts.pages), (18, 4, 32));
        assert_eq!(counts.effect.came, 2 * (16 + 5));
    }

    #[test]
    fn regions_without_end_are_put_together_and_no_total_is_lost() {
        let mut groups = ChangeGroups::new(Key::Region, PageSize::FOUR_KIB);
        let later = MOST_LATER_REGIONS as u64 + 5;
        for start in 0..later {
            let one = region(0x1000 + 2 * start, 1);
            groups.see([&one].into_iter());
            let change = Change { region: Some(one), pages: 1, ..Change::of_process(EventKind::Came) };
            groups.add(&change, start);
        }
        let groups = groups.finish();
        assert_eq!(groups.len(), MOST_LATER_REGIONS + 2, "the first, those that came later, and the rest");
        assert_eq!(groups.iter().map(|group| group.counts.pages).sum::<u64>(), later);
        let rest = &groups[0];
        assert_eq!((&rest.group, rest.counts.pages, rest.samples), (&ChangedGroup::Region(None), 4, 4));
    }

    #[test]
    fn the_net_effect_is_that_of_the_last_program() {
        let mut groups = ChangeGroups::new(Key::Region, PageSize::FOUR_KIB);
        groups.add(&of_region(0x1000, EventKind::Came, 3), 1);
        groups.add(&Change::of_process(EventKind::Executed), 2);
        groups.add(&of_region(0x2000, EventKind::Came, 2), 2);
        let groups = groups.finish();
        let groups: Vec<_> = groups.iter().map(|group| (group.counts.pages, group.counts.effect.came)).collect();
        assert_eq!(groups, [(3, 0), (2, 2)]);
    }

    #[test]
    fn changes_add_up_by_what_the_pages_are_after_them() {
        let after = |state, map_count| PageFacts {
            state,
            pfn: None,
            flags: None,
            map_count,
            map_count_average: false,
            node: None,
            why: Default::default(),
        };
        let change = |kind, pages, after| Change { after, ..of_region(0x1000, kind, pages) };
        let changes = [
            change(EventKind::Came, 3, Some(after(State::Present, Some(1)))),
            change(EventKind::SwappedOut, 2, Some(after(State::Swapped, None))),
            change(EventKind::MapCountChanged, 4, Some(after(State::Present, Some(2)))),
            change(EventKind::RegionWent, 1, None),
        ];
        use ChangedGroup::{Kind, Pages};
        let known = |value| Pages(Answer::Is(value));
        let went = (Kind(EventKind::RegionWent), 1);
        for (fact, expected) in [
            (
                PageFact::State,
                [(known(State::Present as u64), 7), (known(State::Swapped as u64), 2), went.clone()].as_slice(),
            ),
            (PageFact::MapCount, &[(known(1), 3), (known(2), 4), (Pages(Answer::None), 2), went]),
        ] {
            let mut groups = ChangeGroups::new(Key::Page(PageField::Fact(fact)), PageSize::FOUR_KIB);
            changes.iter().for_each(|change| groups.add(change, 1));
            let found: Vec<_> = groups.finish().into_iter().map(|group| (group.group, group.counts.pages)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn changes_are_split_between_the_symbols_that_pages_begin_in() {
        let symbol_at = |address: VirtualAddress| if address.get() < 0x1000_2000 { (Some(7), 2) } else { (None, 9) };
        let mut groups = ChangeGroups::new(Key::Symbol, PageSize::FOUR_KIB).with_symbols(Box::new(symbol_at));
        let address = Some(VirtualAddress::new(0x1000_0000));
        groups.add(&Change { address, ..of_region(0x1_0000, EventKind::Came, 5) }, 1);
        groups.add(&of_region(0x1_0000, EventKind::RegionWent, 1), 1);
        let groups = groups.finish();
        let found = groups.iter().map(|of| (of.group.clone(), of.counts.pages, of.counts.effect.came));
        let no_symbol = ChangedGroup::NoSymbol(Name::default());
        assert_eq!(found.collect::<Vec<_>>(), [(ChangedGroup::Symbol(7), 2, 2), (no_symbol, 4, 4)]);
        let kinds = [(EventKind::Came, 3), (EventKind::Went, 1), (EventKind::RegionWent, 1)];
        assert_eq!(groups[1].counts.kinds, kinds.into());
    }
}
