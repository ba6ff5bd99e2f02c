//! A sample of the watched addresses.

use super::words::PageWords;
use crate::inspect::Result;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::{Backing, RegionFacts};
use crate::inspect::page::Facts;
use crate::inspect::sweep::{Chunk, Sweep, sweep};
use crate::kernel::{AddressRange, PageSize, Region, VirtualAddress};
use crate::report::Stopped;

/// Receives the pages of a sample.
pub type Seen<'a> = dyn FnMut(&Chunk<'_>) + 'a;

/// The words of the watched addresses at one time, and the regions in them and next to them.
pub(super) struct Sample {
    pub words: PageWords,
    pub regions: Vec<(Region, Backing)>,
    pub spans: Vec<AddressRange>,
    pub page: PageSize,
}

impl Sample {
    /// Samples `spans`, and returns the result of the sweep. Flags and map counts are read if `extra` has them. Words
    /// that are the same as in `before` are shared with it. `check` is called between reads. `seen` receives the pages,
    /// with what `more` needs as far as it can be known here.
    pub fn take(
        space: &AddressSpace,
        spans: Vec<AddressRange>,
        extra: Facts,
        before: &PageWords,
        check: &mut dyn FnMut() -> std::result::Result<(), Stopped>,
        (more, seen): (Facts, &mut Seen<'_>),
    ) -> Result<(Sample, Sweep)> {
        let size = space.page();
        // Where frames are hidden, only the scan shows that a write has replaced the page of zeros.
        let hides_zeros = space.availability().frames.is_err();
        let tells_zeros = hides_zeros || extra.contains(Facts::KINDS) && space.target().process.has_scan();
        let zeros = if tells_zeros { Facts::KINDS } else { Facts::empty() };
        let extra = extra & (Facts::FLAGS | Facts::COUNTS);
        let need = space.obtainable(Facts::HUGE | Facts::OWNERS | zeros | more) | extra | Facts::ENTRIES;
        let mut words = before.next(extra);
        let swept = sweep(space, &spans, need, check, &mut |chunk| {
            words.add(chunk, size, before);
            seen(chunk);
            Ok(())
        })?;
        let regions = around(space, &spans);
        Ok((Sample { words, regions, spans, page: size }, swept))
    }

    /// The region of `address`, and what classification needs to know of it.
    pub fn place(&self, address: VirtualAddress) -> Option<(&Region, RegionFacts)> {
        let after = self.regions.partition_point(|(region, _)| region.range.start() <= address);
        let (region, backing) = self.regions.get(after.checked_sub(1)?)?;
        let facts = RegionFacts::plain(*backing, region.permissions.shared);
        region.range.contains(address).then_some((region, facts))
    }

    /// The part of `range` that was sampled, with the gaps in it.
    pub fn covered(&self, range: AddressRange) -> Option<AddressRange> {
        range.within(&self.spans).reduce(spanning)
    }
}

/// From the first address of both to the last.
pub(super) fn spanning(a: AddressRange, b: AddressRange) -> AddressRange {
    AddressRange::new(a.start().min(b.start()), a.end().max(b.end())).unwrap_or(a)
}

/// The regions in `spans`, which are in order, and those next to each span: they may grow into it.
fn around(space: &AddressSpace, spans: &[AddressRange]) -> Vec<(Region, Backing)> {
    let mut found = Vec::new();
    let mut next = 0;
    for span in spans {
        let first = space.region_from(next, span.start());
        let above = space.region_from(first, span.end());
        let regions = space.regions().get(next.max(first.saturating_sub(1))..space.regions().len().min(above + 1));
        let regions = regions.unwrap_or_default();
        found.extend(regions.iter().map(|viewed| (viewed.region.clone(), viewed.backing)));
        next = next.max(above + 1);
    }
    found
}
