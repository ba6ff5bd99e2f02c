//! `watch … by region`: changes added up for each region.

use super::super::rows;
use super::records::EventGroup;
use crate::inspect::{AddressSpace, Change, RegionGroups};
use crate::kernel::Region;
use crate::kernel::words::worded;
use crate::report::{EventKind, NetEffect, Numbers};
use std::cmp::Reverse;
use std::collections::BTreeMap;

worded! {
    /// What `watch … by KEY` groups changes by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WatchKey, word {
        /// The region of a page.
        Region = "region",
    }
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
    by: WatchKey,
    regions: RegionGroups,
    /// By the number of the region; `None` for those that were put together.
    sums: BTreeMap<Option<usize>, GroupChanges>,
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
    pub fn new(by: WatchKey) -> Self {
        Sums { by, regions: RegionGroups::of_at_most(MOST_LATER), sums: BTreeMap::new() }
    }

    /// Follows the regions to the next sample.
    pub fn see(&mut self, space: &AddressSpace) {
        self.regions.see(space.regions().iter().map(|viewed| &viewed.region));
    }

    pub fn add(&mut self, region: &Region, change: &Change, sample: u64) {
        let sum = self.sums.entry(self.regions.number(region)).or_default();
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
        let Sums { by, regions, sums } = self;
        let mut groups: Vec<EventGroup> = sums
            .into_iter()
            .map(|(number, sum)| {
                let region = number.and_then(|number| regions.region(number));
                let together = || format!("all regions after the first {MOST_LATER} new ones");
                EventGroup {
                    by: by.word(),
                    key: region.map_or_else(together, rows::name_of_region),
                    region: region.map(|region| region.name.clone()).unwrap_or_default(),
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
    use crate::process::fake::region;

    #[test]
    fn regions_without_end_are_put_together_and_no_total_is_lost() {
        let mut sums = Sums::new(WatchKey::Region);
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
        let mut sums = Sums::new(WatchKey::Region);
        sums.add(&first, &came(3), 1);
        sums.forget();
        sums.add(&second, &came(2), 2);
        let groups: Vec<_> = sums.finish().iter().map(|group| (group.pages, group.effect.came)).collect();
        assert_eq!(groups, [(3, 0), (2, 2)]);
    }
}
