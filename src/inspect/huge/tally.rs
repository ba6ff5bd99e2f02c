//! The sums of bytes for each refusal.

use super::rules::{HugeRegion, HugeRules, OfRegion};
use super::stretch::Stretch;
use crate::inspect::classify::Backing;
use crate::kernel::AddressRange;
use crate::process::HugeSize;
use crate::report::{HugeBy, HugeRefusal};
use std::collections::BTreeMap;

/// The bytes of memory by the way in which they are mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HugeCounts {
    /// Bytes that are mapped by one PMD for each huge page.
    pub huge: u64,
    /// Present bytes of which only PAGEMAP_SCAN (Linux 6.7) would show whether PMDs map them.
    pub unclear: u64,
    /// Bytes of the hugetlb pool.
    pub pool: u64,
    /// Bytes that map the huge zero page, which takes no memory.
    pub huge_zeros: u64,
    /// Bytes in small pages.
    pub small: u64,
    /// Those bytes in small pages whose region asked for huge pages (MADV_HUGEPAGE).
    pub advised_small: u64,
    /// Bytes in swap.
    pub swapped: u64,
    /// Untouched bytes of accessible memory.
    pub untouched: u64,
}

/// A part of memory that a reason concerns: neighbouring places of huge pages in one region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HugeStretch {
    /// The addresses of the part.
    pub range: AddressRange,
    /// The bytes in it that the reason concerns.
    pub bytes: u64,
}

/// A reason for the absence of huge pages, and the bytes that it concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HugeReason {
    /// Whether a fault or khugepaged makes no huge page of these bytes.
    pub by: HugeBy,
    /// The refusal; `None` if nothing prevents a huge page at present.
    pub reason: Option<HugeRefusal>,
    /// The bytes that it concerns. Several refusals may concern the same bytes.
    pub bytes: u64,
    /// Those bytes for which the kernel checks this refusal first.
    pub first: u64,
    /// Those bytes for which it is the only refusal.
    pub only: u64,
    /// The index of the region with most of the bytes.
    pub region: usize,
    /// The bytes in that region.
    pub region_bytes: u64,
    /// The parts of memory that it concerns, in address order; `None` if they are many.
    pub stretches: Option<Vec<HugeStretch>>,
}

/// A size of huge pages, and the memory whose settings permit it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HugeSizeUse {
    /// The size with its settings.
    pub size: HugeSize,
    /// The bytes of memory, untouched memory included.
    pub allowed: u64,
}

/// The reasons why memory is not on huge pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HugeReport {
    /// The bytes of all memory of the ranges.
    pub counts: HugeCounts,
    /// The reasons in the order of the kernel's checks. `None` comes last.
    pub reasons: Vec<HugeReason>,
    /// The sizes that the kernel has, in ascending order.
    pub sizes: Vec<HugeSizeUse>,
    /// The region with the most bytes that were probably touched before its advice, with these bytes: its first part
    /// has small pages, and all of the rest is huge or untouched.
    pub touched_early: Option<(usize, u64)>,
}

/// The order of small and other memory in a region.
#[derive(Clone, Copy, Default)]
struct PartsOfRegion {
    is_advised: bool,
    /// Bytes in small pages that nothing keeps from becoming huge.
    small: u64,
    /// Bytes of the huge and untouched places after them.
    later: u64,
    /// Bytes of huge places before the last of them, and of untouched ones between them.
    between: u64,
}

impl PartsOfRegion {
    fn add(&mut self, small: u64, others: u64, is_huge: bool) {
        if small > 0 {
            self.small = self.small.saturating_add(small);
            self.between = self.between.saturating_add(std::mem::take(&mut self.later));
        } else if self.small > 0 {
            self.later = self.later.saturating_add(others);
        } else if is_huge {
            self.between = self.between.saturating_add(others);
        }
    }

    /// The bytes that were probably touched before the advice. khugepaged may have made some of them huge since, but
    /// less than half: of a part that is mostly huge, the pages may have become small for other causes.
    fn touched_early(&self) -> u64 {
        if self.is_advised && self.later > 0 && self.between < self.small { self.small } else { 0 }
    }
}

#[derive(Clone, Default)]
struct Sum {
    bytes: u64,
    first: u64,
    only: u64,
    stretches: Stretches,
}

/// The parts of memory of a reason, as long as they are few.
#[derive(Clone, Default)]
struct Stretches {
    all: Vec<HugeStretch>,
    are_many: bool,
}

impl Stretches {
    const MOST: usize = 12;

    /// Adds the next part of the same region.
    fn add(&mut self, range: AddressRange, bytes: u64) {
        if self.are_many {
            return;
        }
        let joined = self.all.last_mut().filter(|last| last.range.end() == range.start());
        match joined.and_then(|last| Some((AddressRange::new(last.range.start(), range.end())?, last))) {
            Some((whole, last)) => *last = HugeStretch { range: whole, bytes: last.bytes.saturating_add(bytes) },
            None => self.extend(vec![HugeStretch { range, bytes }], false),
        }
    }

    /// Adds those of the next region.
    fn extend(&mut self, more: Vec<HugeStretch>, are_many: bool) {
        self.are_many |= are_many || self.all.len() + more.len() > Self::MOST;
        if self.are_many {
            self.all.clear();
        } else {
            self.all.extend(more);
        }
    }

    fn if_few(&self) -> Option<Vec<HugeStretch>> {
        (!self.are_many).then(|| self.all.clone())
    }
}

type HugeKey = (HugeBy, Option<HugeRefusal>);

/// Sums up the places of huge pages.
#[derive(Default)]
pub(super) struct HugeTally {
    counts: HugeCounts,
    all: BTreeMap<HugeKey, (Sum, usize, u64)>,
    of_region: BTreeMap<HugeKey, Sum>,
    allowed_bytes: BTreeMap<u64, u64>,
    parts: PartsOfRegion,
    touched_early: Option<(usize, u64)>,
}

impl HugeTally {
    /// Adds `times` places of huge pages that are like `stretch`, at `range`. `page` is the size of a page in bytes.
    pub fn add(
        &mut self,
        rules: &HugeRules,
        (region, of): (&HugeRegion<'_>, &OfRegion),
        (stretch, is_whole): (&Stretch, bool),
        (times, range): (u64, AddressRange),
        page: u64,
    ) {
        let bytes = |pages: u64| pages.saturating_mul(page).saturating_mul(times);
        let is_accessible = region.permissions.read || region.permissions.write || region.permissions.execute;
        let untouched = if is_accessible { stretch.untouched } else { 0 };
        let counts = &mut self.counts;
        counts.huge += bytes(stretch.huge);
        counts.pool += bytes(stretch.pool);
        counts.huge_zeros += bytes(stretch.huge_zeros);
        if region.backing == Backing::Hugetlb {
            return;
        }
        counts.small += bytes(stretch.small);
        let is_advised = region.smaps.has_flag("hg");
        counts.advised_small += if is_advised { bytes(stretch.small) } else { 0 };
        counts.unclear += bytes(stretch.unclear);
        counts.swapped += bytes(stretch.swapped);
        counts.untouched = counts.untouched.saturating_add(bytes(untouched));
        let zeros = stretch.zeros + stretch.huge_zeros;
        let memory = bytes(stretch.small + stretch.huge + stretch.swapped + zeros + untouched);
        for size in rules.settings.sizes.iter().filter(|size| rules.allows(region, size.bytes)) {
            let allowed = self.allowed_bytes.entry(size.bytes).or_default();
            *allowed = allowed.saturating_add(memory);
        }
        if untouched > 0 && region.backing != Backing::Kernel {
            let reasons = rules.fault(of, region, stretch, is_whole);
            self.note(HugeBy::Fault, &reasons, bytes(untouched), range);
        }
        if stretch.copies > 0 {
            self.note(HugeBy::Khugepaged, &rules.copies(of, region), bytes(stretch.copies), range);
        }
        let rest = stretch.small - stretch.copies + stretch.swapped;
        // What is cut by the end of the region is small in any case.
        if is_whole {
            self.parts.is_advised = is_advised;
            self.parts.add(bytes(stretch.small), bytes(stretch.huge + untouched), stretch.huge > 0);
        }
        if rest > 0 {
            let reasons = rules.khugepaged(of, region, stretch, is_whole);
            self.note(HugeBy::Khugepaged, &reasons, bytes(rest), range);
        }
    }

    fn note(&mut self, by: HugeBy, reasons: &[HugeRefusal], bytes: u64, range: AddressRange) {
        let is_alone = reasons.len() < 2;
        let mut add = |reason, is_first: bool| {
            let sum = self.of_region.entry((by, reason)).or_default();
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.first = sum.first.saturating_add(if is_first { bytes } else { 0 });
            sum.only = sum.only.saturating_add(if is_alone { bytes } else { 0 });
            sum.stretches.add(range, bytes);
        };
        match reasons {
            [] => add(None, true),
            reasons => reasons.iter().enumerate().for_each(|(index, &reason)| add(Some(reason), index == 0)),
        }
    }

    /// Ends the region with this index.
    pub fn end_region(&mut self, index: usize) {
        let early = std::mem::take(&mut self.parts).touched_early();
        if early > self.touched_early.map_or(0, |(_, most)| most) {
            self.touched_early = Some((index, early));
        }
        for (key, sum) in std::mem::take(&mut self.of_region) {
            let (all, region, most) = self.all.entry(key).or_default();
            all.bytes = all.bytes.saturating_add(sum.bytes);
            all.first = all.first.saturating_add(sum.first);
            all.only = all.only.saturating_add(sum.only);
            all.stretches.extend(sum.stretches.all, sum.stretches.are_many);
            if sum.bytes > *most {
                (*region, *most) = (index, sum.bytes);
            }
        }
    }

    /// Returns the report on the sums so far.
    pub fn report(&self, rules: &HugeRules) -> HugeReport {
        let reason = |(&(by, reason), (sum, region, region_bytes)): (&HugeKey, &(Sum, usize, u64))| HugeReason {
            by,
            reason,
            bytes: sum.bytes,
            first: sum.first,
            only: sum.only,
            region: *region,
            region_bytes: *region_bytes,
            stretches: sum.stretches.if_few(),
        };
        let mut reasons: Vec<HugeReason> = self.all.iter().map(reason).collect();
        reasons.sort_by_cached_key(|one| (one.by, one.reason.map_or(usize::MAX, |reason| rules.rank(reason))));
        let allowed = |bytes| self.allowed_bytes.get(&bytes).copied().unwrap_or_default();
        let sizes = rules.settings.sizes.iter().map(|&size| HugeSizeUse { size, allowed: allowed(size.bytes) });
        HugeReport { counts: self.counts, reasons, sizes: sizes.collect(), touched_early: self.touched_early }
    }
}

#[cfg(test)]
mod tests {
    use super::{PartsOfRegion, Stretches};
    use crate::kernel::{AddressRange, VirtualAddress};

    #[test]
    fn neighbouring_places_are_one_stretch_and_many_are_not_kept() {
        let range = |start: u64| AddressRange::of_length(VirtualAddress::new(start), 0x1000).expect("a range");
        let mut few = Stretches::default();
        [0x1000, 0x2000, 0x8000].into_iter().for_each(|start| few.add(range(start), 16));
        let found: Vec<_> = few.if_few().into_iter().flatten().map(|one| (one.range.len(), one.bytes)).collect();
        assert_eq!(found, [(0x2000, 32), (0x1000, 16)]);
        // A region that follows without a gap is another one.
        few.extend(vec![few.all[1]], false);
        assert_eq!(few.all.len(), 3);
        (0..20).for_each(|index| few.add(range(0x10_0000 + index * 0x2000), 16));
        assert_eq!(few.if_few(), None);
    }

    fn early(is_advised: bool, places: &[(u64, u64, bool)]) -> u64 {
        let mut parts = PartsOfRegion { is_advised, ..PartsOfRegion::default() };
        places.iter().for_each(|&(small, others, is_huge)| parts.add(small, others, is_huge));
        parts.touched_early()
    }

    #[test]
    fn small_pages_before_huge_or_untouched_ones_were_touched_before_the_advice() {
        let (small, huge, untouched) = ((2, 0, false), (0, 2, true), (0, 2, false));
        assert_eq!(early(true, &[small, small, huge, untouched]), 4);
        assert_eq!(early(true, &[small, untouched]), 2);
        assert_eq!(early(false, &[small, huge]), 0);
        assert_eq!(early(true, &[small, small]), 0);
        assert_eq!(early(true, &[huge, small, huge]), 0);
        assert_eq!(early(true, &[small, huge, small]), 0);
        assert_eq!(early(true, &[(64, 0, false), huge, (64, 0, false), huge]), 128);
        // khugepaged began at the front.
        let mended = [(0, 16, true), (225, 0, false), (0, 700, true)];
        assert_eq!(early(true, &mended), 225);
        assert_eq!(early(true, &[(0, 130, true), (111, 0, false), huge]), 0, "most of it is huge");
    }
}
