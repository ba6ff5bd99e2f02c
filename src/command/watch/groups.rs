//! `watch … by KEY`: changes added up for each region, or by what the pages are after them.

use super::super::change_groups::{group_of_change, key_of_changes, name_of_group};
use super::super::floor::Error;
use super::super::rows;
use super::records::EventGroup;
use crate::inspect::{AddressSpace, Answer, Change, Evidence, FactReader, RegionGroups};
use crate::kernel::{Key, Region};
use crate::lang::{KeyFacts, TakenKeys, WrittenKey};
use crate::report::{EventKind, NetEffect, Numbers};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The keys of `watch … by`: those that its samples do not hold are refused when the line runs.
pub(super) const KEYS: TakenKeys = TakenKeys { facts: KeyFacts::OfChanges, others: &[Key::Region] };

/// The key of `by`. Samples with `wanted` hold it, and it can be known here.
pub(super) fn key(by: &WrittenKey, wanted: Evidence, space: &AddressSpace) -> Result<Key, Error> {
    let key = key_of_changes(by, wanted, |fact| format!("add `with {}`", fact.row().word))?;
    if let Key::Page(field) = key {
        space.require(field.fact().need_of_samples().unwrap_or_default())?;
    }
    Ok(key)
}

/// Counts a change of some pages: each of them, or the one region or process that it is about, and the pages that went
/// with their region. Returns how many it counts for `count`.
pub(in crate::command) fn tally(events: &mut BTreeMap<EventKind, u64>, kind: EventKind, pages: u64) -> u64 {
    let number = if kind.is_of_pages() { pages } else { 1 };
    *events.entry(kind).or_default() += number;
    if !kind.is_of_pages() && pages > 0 {
        *events.entry(EventKind::Went).or_default() += pages;
    }
    number
}

/// The most regions that came during the watch and have sums of their own: a watch may last for days.
const MOST_LATER: usize = 1 << 16;

/// Changes added up.
pub(super) struct Sums {
    by: Key,
    reader: FactReader,
    regions: RegionGroups,
    sums: BTreeMap<ChangeGroup, GroupChanges>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeGroup {
    /// The number of the region; `None` for those that were put together.
    Region(Option<usize>),
    /// What the pages are after the change.
    Pages(Answer),
    /// Changes of regions.
    OfRegions(EventKind),
}

#[derive(Default)]
struct GroupChanges {
    pages: u64,
    events: BTreeMap<EventKind, u64>,
    effect: NetEffect,
    samples: u64,
    /// The last sample that `samples` counts.
    last: Option<u64>,
}

impl Sums {
    /// `reader` names the groups.
    pub fn new(by: Key, reader: FactReader) -> Self {
        Sums { by, reader, regions: RegionGroups::of_at_most(MOST_LATER), sums: BTreeMap::new() }
    }

    /// Follows the regions to the next sample.
    pub fn see(&mut self, space: &AddressSpace) {
        self.regions.see(space.regions().iter().map(|viewed| &viewed.region));
    }

    pub fn add(&mut self, region: &Region, change: &Change, sample: u64) {
        let group = match self.by {
            Key::Page(field) => match group_of_change(field, change.after.as_ref()) {
                Some(answer) => ChangeGroup::Pages(answer),
                None => ChangeGroup::OfRegions(change.kind),
            },
            _ => ChangeGroup::Region(self.regions.number(region)),
        };
        let sum = self.sums.entry(group).or_default();
        sum.pages += change.pages;
        tally(&mut sum.events, change.kind, change.pages);
        sum.effect += change.effect;
        if sum.last.replace(sample) != Some(sample) {
            sum.samples += 1;
        }
    }

    /// Another program was executed: it has other regions, and what the previous one had is not compared with them.
    pub fn forget(&mut self) {
        self.regions.forget();
        self.sums.values_mut().for_each(|sum| sum.effect = NetEffect::default());
    }

    /// The one with the most pages first.
    pub fn finish(self) -> Vec<EventGroup> {
        let Sums { by, reader, regions, sums } = self;
        let together = || format!("all regions after the first {MOST_LATER} new ones");
        let name = |group| match (by, group) {
            (Key::Page(field), ChangeGroup::Pages(answer)) => name_of_group(&reader, field, answer),
            (_, ChangeGroup::OfRegions(kind)) => kind.words().to_owned(),
            (_, ChangeGroup::Region(Some(number))) => {
                regions.region(number).map_or_else(together, rows::name_of_region)
            }
            _ => together(),
        };
        let mut groups: Vec<EventGroup> = sums
            .into_iter()
            .map(|(group, sum)| {
                let region = match group {
                    ChangeGroup::Region(number) => Some(number.and_then(|number| regions.region(number))),
                    _ => None,
                };
                EventGroup {
                    by: by.to_string(),
                    key: name(group),
                    region: region.map(|region| region.map(|region| region.name.clone()).unwrap_or_default()),
                    pages: sum.pages,
                    samples: sum.samples,
                    events: Numbers(sum.events.into_iter().collect()),
                    effect: sum.effect,
                }
            })
            .collect();
        groups.sort_by_key(|group| Reverse(group.pages));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{PageFact, PageField, State};
    use crate::process::fake::{World, region};
    use crate::report::PageFacts;

    fn reader() -> FactReader {
        let (_, target) = World::new([region(0x1000, 4)]).target();
        FactReader::of_pages(&AddressSpace::of(&target).expect("a space"))
    }

    #[test]
    fn regions_without_end_are_put_together_and_no_total_is_lost() {
        let mut sums = Sums::new(Key::Region, reader());
        let later = MOST_LATER as u64 + 5;
        for start in 0..later {
            let one = region(0x1000 + 2 * start, 1);
            sums.regions.see([&one].into_iter());
            sums.add(&one, &Change { pages: 1, ..Change::of_process(EventKind::Came) }, start);
        }
        let groups = sums.finish();
        assert_eq!(groups.len(), MOST_LATER + 2, "the first, those that came later, and the rest");
        assert_eq!(groups.iter().map(|group| group.pages).sum::<u64>(), later);
        assert_eq!((groups[0].pages, groups[0].key.starts_with("all regions after ")), (4, true), "{}", groups[0].key);
    }

    #[test]
    fn the_net_effect_is_that_of_the_last_program() {
        let came = |pages| Change {
            pages,
            effect: NetEffect { came: pages, ..NetEffect::default() },
            ..Change::of_process(EventKind::Came)
        };
        let (first, second) = (region(0x1000, 4), region(0x2000, 4));
        let mut sums = Sums::new(Key::Region, reader());
        sums.add(&first, &came(3), 1);
        sums.forget();
        sums.add(&second, &came(2), 2);
        let groups: Vec<_> = sums.finish().iter().map(|group| (group.pages, group.effect.came)).collect();
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
            why: Default::default(),
        };
        let change = |kind, pages, after| Change { pages, after, ..Change::of_process(kind) };
        let changes = [
            change(EventKind::Came, 3, Some(after(State::Present, Some(1)))),
            change(EventKind::SwappedOut, 2, Some(after(State::Swapped, None))),
            change(EventKind::MapCountChanged, 4, Some(after(State::Present, Some(2)))),
            change(EventKind::RegionWent, 1, None),
        ];
        let one = region(0x1000, 16);
        for (fact, expected) in [
            (PageFact::State, [("present", 7), ("swapped", 2), ("region went", 1)].as_slice()),
            (PageFact::MapCount, &[("2", 4), ("1", 3), ("no frame", 2), ("region went", 1)]),
        ] {
            let mut sums = Sums::new(Key::Page(PageField::Fact(fact)), reader());
            changes.iter().for_each(|change| sums.add(&one, change, 1));
            let groups = sums.finish();
            let found: Vec<_> = groups.iter().map(|group| (group.key.as_str(), group.pages)).collect();
            assert_eq!(found, expected);
            assert!(groups.iter().all(|group| group.region.is_none() && group.by == fact.row().word));
        }
    }
}
