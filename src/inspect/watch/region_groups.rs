//! Regions from sample to sample: which of a later list goes on from which of an earlier one.

use super::regions::is_same_mapping;
use super::sample::spanning;
use crate::kernel::Region;
use std::collections::HashMap;

/// Gives each region a number that it keeps while it grows, shrinks and changes its rights, and that its parts have
/// after it was split. A region that was unmapped and is mapped again in the same way has its number again.
#[derive(Default)]
pub struct RegionGroups {
    /// The regions seen last, in address order.
    last: Vec<(Region, Option<usize>)>,
    /// The regions seen; if that were too many, only those seen last.
    known: HashMap<Region, Option<usize>>,
    groups: Vec<Region>,
    /// The most regions that get numbers beside those of the first list.
    most_later: Option<usize>,
    /// How many numbers there may be, once a list has been seen.
    most: Option<usize>,
}

impl RegionGroups {
    /// Of the regions that are not in the first list, at most so many get numbers.
    pub fn of_at_most(later: usize) -> Self {
        RegionGroups { most_later: Some(later), ..RegionGroups::default() }
    }

    /// Takes the regions of a later sample, in address order.
    pub fn see<'r>(&mut self, regions: impl Iterator<Item = &'r Region>) {
        let regions: Vec<&Region> = regions.collect();
        if regions.iter().copied().eq(self.last.iter().map(|(region, _)| region)) {
            return;
        }
        if let (None, Some(later)) = (self.most, self.most_later) {
            self.most = Some(regions.len() + later);
        }
        let now: Vec<(Region, Option<usize>)> =
            regions.into_iter().map(|region| (region.clone(), self.number(region))).collect();
        if self.most.is_some_and(|most| self.known.len() > 2 * most + now.len()) {
            self.known = self.last.iter().chain(&now).cloned().collect();
        }
        // Of a region that was split, the longest part gives the rights.
        let mut shortest_first: Vec<&(Region, Option<usize>)> = now.iter().collect();
        shortest_first.sort_by_key(|(region, _)| region.range.len());
        for (region, number) in shortest_first {
            if let Some(group) = number.and_then(|number| self.groups.get_mut(number)) {
                let range = spanning(group.range, region.range);
                *group = Region { range, ..region.clone() };
            }
        }
        self.last = now;
    }

    /// The number of a region. One that was not seen goes on from the region seen last that it has most of, among
    /// those with the same rights if there are any. `None`: it is one of those that came when there were too many.
    pub fn number(&mut self, region: &Region) -> Option<usize> {
        if let Some(number) = self.known.get(region) {
            return *number;
        }
        let first = self.last.partition_point(|(one, _)| one.range.end() <= region.range.start());
        let touched = self.last.iter().skip(first);
        let overlapping = touched.map_while(|(one, number)| Some((one, number, one.range.intersection(region.range)?)));
        let earlier = overlapping.filter(|(one, ..)| is_same_mapping(one, region));
        let closest = earlier.max_by_key(|(one, _, part)| (one.permissions == region.permissions, part.len()));
        let next = Some(self.groups.len()).filter(|number| self.most.is_none_or(|most| *number < most));
        let number = closest.map_or(next, |(_, number, _)| *number);
        if number == Some(self.groups.len()) {
            self.groups.push(region.clone());
        }
        self.known.insert(region.clone(), number);
        number
    }

    /// The region with that number as it was seen last, with all addresses that it ever had.
    pub fn region(&self, number: usize) -> Option<&Region> {
        self.groups.get(number)
    }

    /// Begins again: no later region goes on from one before.
    pub fn forget(&mut self) {
        self.last.clear();
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Name, Permissions};
    use crate::process::fake::region;

    fn with(start: u64, pages: u64, write: bool, name: &str) -> Region {
        let permissions = Permissions { read: true, write, ..Permissions::default() };
        Region { permissions, name: Name::from(name), ..region(start, pages) }
    }

    /// The numbers of each list in turn.
    fn numbers(lists: &[Vec<Region>]) -> (Vec<Vec<usize>>, RegionGroups) {
        let mut groups = RegionGroups::default();
        let each = |regions: &Vec<Region>| {
            groups.see(regions.iter());
            regions.iter().map(|region| groups.number(region).expect("a number")).collect()
        };
        (lists.iter().map(each).collect(), groups)
    }

    #[test]
    fn a_region_that_grows_and_shrinks_stays_one() {
        let heap = |pages| with(0x1000, pages, true, "[heap]");
        let stack = |start: u64| with(start, 0x9000 - start, true, "[stack]");
        let (found, groups) = numbers(&[
            vec![heap(4), stack(0x8000)],
            vec![heap(9), stack(0x7000)],
            vec![],
            vec![heap(9), stack(0x8000)],
        ]);
        assert_eq!(found, [vec![0, 1], vec![0, 1], vec![], vec![0, 1]]);
        assert_eq!(groups.region(0), Some(&heap(9)));
        assert_eq!(groups.region(1), Some(&stack(0x7000)), "all addresses that it had");
    }

    #[test]
    fn memory_of_other_rights_is_another_region_even_where_the_border_moves() {
        let arena = |used| vec![with(0x1000, used, true, ""), with(0x1000 + used, 100 - used, false, "")];
        let (found, groups) = numbers(&[arena(10), arena(20), arena(60)]);
        assert_eq!(found, [[0, 1], [0, 1], [0, 1]]);
        assert_eq!(groups.region(0), Some(&with(0x1000, 60, true, "")));
    }

    #[test]
    fn parts_belong_to_the_region_that_was_split() {
        let whole = with(0x1000, 10, true, "");
        let parts = vec![with(0x1000, 6, true, ""), with(0x1006, 1, false, ""), with(0x1007, 3, true, "")];
        let (found, groups) = numbers(&[vec![whole.clone()], parts]);
        assert_eq!(found, [vec![0], vec![0, 0, 0]]);
        assert_eq!(groups.region(0), Some(&whole));
    }

    /// Memory that grows is another region in each sample.
    #[test]
    fn few_of_very_many_are_remembered() {
        let mut groups = RegionGroups::of_at_most(3);
        for pages in 1..1000 {
            let (grows, new) = (with(0x1000, pages, true, "[heap]"), with(0x2000 + 2 * pages, 1, true, ""));
            groups.see([&grows, &new].into_iter());
            assert_eq!(groups.number(&grows), Some(0));
            assert_eq!(groups.number(&new), (pages <= 4).then_some(pages as usize));
        }
        assert!(groups.groups.len() == 5 && groups.known.len() < 20, "{}", groups.known.len());
    }

    #[test]
    fn other_memory_at_the_same_place_is_another_region() {
        let one = with(0x1000, 4, true, "[anon:one]");
        let other = with(0x1000, 4, true, "[anon:other]");
        let neighbour = with(0x1004, 4, true, "[anon:one]");
        let (found, mut groups) = numbers(&[vec![one.clone()], vec![other], vec![one.clone(), neighbour]]);
        assert_eq!(found, [vec![0], vec![1], vec![0, 2]]);
        // As after an exec.
        groups.forget();
        assert_eq!(groups.number(&one), Some(3));
    }
}
