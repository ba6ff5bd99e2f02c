//! A sample of the watched addresses.

use super::words::PageWords;
use crate::inspect::Result;
use crate::inspect::classify::{Backing, RegionFacts};
use crate::inspect::page::Need;
use crate::inspect::sweep::{Chunk, Sweep, sweep};
use crate::inspect::view::View;
use crate::kernel::{AddressRange, PageSize, Region, VirtualAddress};
use crate::report::Stopped;

/// Receives the pages of a sample.
pub type Seen<'a> = dyn FnMut(&Chunk<'_>) + 'a;

/// The words and regions of the watched addresses at one time.
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
        view: &View<'_>,
        spans: Vec<AddressRange>,
        extra: Need,
        before: &PageWords,
        check: &mut dyn FnMut() -> std::result::Result<(), Stopped>,
        (more, seen): (Need, &mut Seen<'_>),
    ) -> Result<(Sample, Sweep)> {
        let size = view.page();
        // Where frames are hidden, only the scan shows that a write has replaced the page of zeros.
        let hides_zeros = view.availability().frames.is_err();
        let tells_zeros = hides_zeros || extra.contains(Need::KINDS) && view.target().process.has_scan();
        let zeros = if tells_zeros { Need::KINDS } else { Need::empty() };
        let extra = extra & (Need::FLAGS | Need::COUNTS);
        let need = view.obtainable(Need::HUGE | Need::OWNERS | zeros | more) | extra | Need::ENTRIES;
        let mut words = before.next(extra);
        let swept = sweep(view, &spans, need, check, &mut |chunk| {
            words.add(chunk, size, before);
            seen(chunk);
            Ok(())
        })?;
        let regions = view.regions().iter().map(|viewed| (viewed.region.clone(), viewed.backing));
        let sample = Sample { words, regions: regions.collect(), spans, page: size };
        Ok((sample, swept))
    }

    /// The region of `address`, and what classification needs to know of it.
    pub fn place(&self, address: VirtualAddress) -> Option<(&Region, RegionFacts)> {
        let after = self.regions.partition_point(|(region, _)| region.range.start() <= address);
        let (region, backing) = self.regions.get(after.checked_sub(1)?)?;
        let facts = RegionFacts::plain(*backing, region.permissions.shared);
        region.range.contains(address).then_some((region, facts))
    }

    pub fn covers(&self, range: AddressRange) -> bool {
        range.within(&self.spans).next().is_some()
    }
}
