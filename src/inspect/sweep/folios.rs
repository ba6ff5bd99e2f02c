//! How the large folios of the pages that a sweep has read are mapped around each page.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::folio::Folio;
use super::super::page::FolioFit;
use super::chunk::{PageStretch, PageStretches, StretchWords};
use super::columns::Column;
use crate::process;

/// A large folio, the page index at which it begins (below 0 it wraps), the index of the region, and the answer.
type Found = (Folio, u64, Option<usize>, FolioFit);

/// Sets the words of [`Column::Folios`], of the pages whose orders were read.
pub(super) fn find_folios(stretches: &mut PageStretches, space: &AddressSpace) -> process::Result<()> {
    let mut fits = std::mem::take(stretches.columns.begin(Column::Folios, stretches.entries.len()));
    let mut last = None;
    for stretch in &stretches.all {
        find_of_stretch(stretches, stretch, space, &mut last, &mut fits)?;
    }
    *stretches.columns.of_mut(Column::Folios) = fits;
    Ok(())
}

fn find_of_stretch(
    stretches: &PageStretches,
    stretch: &PageStretch,
    space: &AddressSpace,
    last: &mut Option<Found>,
    fits: &mut [u64],
) -> process::Result<()> {
    let viewed = stretch.region.and_then(|index| space.viewed_regions().get(index));
    let (Some(viewed), StretchWords::Read { at: slots, stride, .. }) = (viewed, &stretch.words) else {
        return Ok(());
    };
    let page = space.page_size();
    let start = page.index(stretch.range.start());
    let entries = stretches.entries.get(slots.clone()).unwrap_or_default();
    let orders = stretches.columns.of(Column::Orders).get(slots.clone()).unwrap_or_default();
    let fits = fits.get_mut(slots.clone()).unwrap_or_default();
    for (at, (entry, (order, fit))) in
        (start..).step_by(*stride as usize).zip(entries.iter().zip(orders.iter().zip(fits)))
    {
        let (Some(frame), Some(order @ 1..)) = (entry.frame(), u8::try_from(*order).ok()) else {
            continue;
        };
        let folio = Folio::around(frame, order);
        let index = folio.index(frame).unwrap_or_default();
        let begins = at.wrapping_sub(index);
        let found = match *last {
            Some((same, from, region, found)) if (same, from, region) == (folio, begins, stretch.region) => found,
            _ => {
                let places = folio.places(index, at, viewed.range(), page);
                let mapped = if *stride >= folio.frames() || viewed.backing == Backing::Hugetlb {
                    folio.frames()
                } else if *stride == 1 && start <= places.start && places.end <= start + entries.len() as u64 {
                    let places = (places.start - start) as usize..(places.end - start) as usize;
                    folio.count_mapped(index, at, start + places.start as u64, entries.get(places).unwrap_or_default())
                } else {
                    folio.mapped_pages(&space.target().process, index, at, places)?
                };
                folio.fit(index, at, mapped)
            }
        };
        *last = Some((folio, begins, stretch.region, found));
        *fit = found as u64;
    }
    Ok(())
}
