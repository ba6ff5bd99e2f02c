//! The sums of bytes for each refusal.

use super::rules::{HugeRegion, HugeRules, OfRegion};
use super::stretch::Stretch;
use crate::inspect::classify::Backing;
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
    /// Bytes in swap.
    pub swapped: u64,
    /// Untouched bytes of accessible memory.
    pub untouched: u64,
}

/// A reason for the absence of huge pages, and the bytes that it concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
}

#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    first: u64,
    only: u64,
}

type HugeKey = (HugeBy, Option<HugeRefusal>);

/// Sums up the places of huge pages.
#[derive(Default)]
pub(super) struct HugeTally {
    counts: HugeCounts,
    all: BTreeMap<HugeKey, (Sum, usize, u64)>,
    of_region: BTreeMap<HugeKey, Sum>,
    allowed_bytes: BTreeMap<u64, u64>,
}

impl HugeTally {
    /// Adds `times` places of huge pages that are like `stretch`. `page` is the size of a page in bytes.
    pub fn add(
        &mut self,
        rules: &HugeRules,
        (region, of): (&HugeRegion<'_>, &OfRegion),
        (stretch, is_whole): (&Stretch, bool),
        times: u64,
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
            self.note(HugeBy::Fault, &reasons, bytes(untouched));
        }
        if stretch.copies > 0 {
            self.note(HugeBy::Khugepaged, &rules.copies(of, region), bytes(stretch.copies));
        }
        let rest = stretch.small - stretch.copies + stretch.swapped;
        if rest > 0 {
            let reasons = rules.khugepaged(of, region, stretch, is_whole);
            self.note(HugeBy::Khugepaged, &reasons, bytes(rest));
        }
    }

    fn note(&mut self, by: HugeBy, reasons: &[HugeRefusal], bytes: u64) {
        let is_alone = reasons.len() < 2;
        let mut add = |reason, is_first: bool| {
            let sum = self.of_region.entry((by, reason)).or_default();
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.first = sum.first.saturating_add(if is_first { bytes } else { 0 });
            sum.only = sum.only.saturating_add(if is_alone { bytes } else { 0 });
        };
        match reasons {
            [] => add(None, true),
            reasons => reasons.iter().enumerate().for_each(|(index, &reason)| add(Some(reason), index == 0)),
        }
    }

    /// Ends the region with this index.
    pub fn end_region(&mut self, index: usize) {
        for (key, sum) in std::mem::take(&mut self.of_region) {
            let (all, region, most) = self.all.entry(key).or_default();
            all.bytes = all.bytes.saturating_add(sum.bytes);
            all.first = all.first.saturating_add(sum.first);
            all.only = all.only.saturating_add(sum.only);
            if sum.bytes > *most {
                (*region, *most) = (index, sum.bytes);
            }
        }
    }

    /// Returns the report on the sums so far.
    pub fn report(&self, rules: &HugeRules) -> HugeReport {
        let reason = |(&(by, reason), &(sum, region, region_bytes)): (&HugeKey, &(Sum, usize, u64))| HugeReason {
            by,
            reason,
            bytes: sum.bytes,
            first: sum.first,
            only: sum.only,
            region,
            region_bytes,
        };
        let mut reasons: Vec<HugeReason> = self.all.iter().map(reason).collect();
        reasons.sort_by_cached_key(|one| (one.by, one.reason.map_or(usize::MAX, |reason| rules.rank(reason))));
        let allowed = |bytes| self.allowed_bytes.get(&bytes).copied().unwrap_or_default();
        let sizes = rules.settings.sizes.iter().map(|&size| HugeSizeUse { size, allowed: allowed(size.bytes) });
        HugeReport { counts: self.counts, reasons, sizes: sizes.collect() }
    }
}
