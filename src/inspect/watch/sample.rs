//! A sample of the watched addresses.

use super::words::PageWords;
use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::classify::{Backing, RegionFacts};
use crate::inspect::page::Facts;
use crate::inspect::sweep::{Chunk, Sweep};
use crate::kernel::{AddressRange, PageSize, Region, VirtualAddress};

/// A sample that is being taken.
pub(super) struct Sampling {
    space: AddressSpace,
    spans: Vec<AddressRange>,
    words: PageWords,
    pages: Sweep,
}

impl Sampling {
    /// Samples `spans`. Flags and map counts are read if `extra` has them, and what `more` needs as far as it can be
    /// known here. Words that are the same as in `before` will be shared with it.
    pub fn new(space: AddressSpace, spans: Vec<AddressRange>, [extra, more]: [Facts; 2], before: &PageWords) -> Self {
        // Where frames are hidden, only the scan shows that a write has replaced the page of zeros.
        let hides_zeros = space.availability().frames.is_err();
        let tells_zeros = hides_zeros || extra.contains(Facts::KINDS) && space.target().process.has_scan();
        let zeros = if tells_zeros { Facts::KINDS } else { Facts::empty() };
        let extra = extra & (Facts::FLAGS | Facts::COUNTS);
        let need = space.obtainable(Facts::HUGE | Facts::OWNERS | zeros | more) | extra | Facts::ENTRIES;
        let pages = space.pages(&spans, need);
        Sampling { space, spans, words: before.next(extra), pages }
    }

    /// The same, with what it may take.
    pub fn within(self, budget: Budget) -> Self {
        Sampling { pages: self.pages.within(budget), ..self }
    }

    /// Takes the next pages. False after the last ones.
    pub fn advance(&mut self, before: &PageWords) -> Result<bool> {
        let goes_on = self.pages.advance()?;
        if let Some(chunk) = self.pages.chunk().filter(|_| goes_on) {
            self.words.add(&chunk, self.space.page(), before);
        }
        Ok(goes_on)
    }

    /// The pages that were taken last.
    pub fn chunk(&self) -> Option<Chunk<'_>> {
        self.pages.chunk()
    }

    /// Whether regions changed meanwhile, once it has ended.
    pub fn has_changed(&self) -> bool {
        !self.pages.changed().is_empty()
    }

    /// The sample, once it has ended.
    pub fn finish(self) -> (Sample, AddressSpace) {
        let Sampling { space, spans, words, .. } = self;
        let regions = around(&space, &spans);
        (Sample { words, regions, spans, page: space.page() }, space)
    }
}

/// The words of the watched addresses at one time, and the regions in them and next to them.
pub(super) struct Sample {
    pub words: PageWords,
    pub regions: Vec<(Region, Backing)>,
    pub spans: Vec<AddressRange>,
    pub page: PageSize,
}

impl Sample {
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
