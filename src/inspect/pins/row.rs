//! The rows of a search for pins: neighbouring pages that are held alike.

use super::super::holders::{self, FrameHolders, Pins};
use super::super::page::Page;
use crate::kernel::{AddressRange, PageSize, State, VirtualAddress};
use crate::report::{Fact, Holders, Reason};

/// Neighbouring pages of one region that are held alike, whatever their frames.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PinnedPages {
    /// The pages.
    pub pages: Page,
    /// Who holds the folio of each.
    pub held: Fact<FrameHolders>,
    /// The references by holder.
    pub holders: Fact<Holders>,
    /// Pins of each: exact for large folios. Of other pages only 0 is certain, because any 1024 references look like a
    /// pin.
    pub pins: Fact<u64>,
    /// The most pins that the references allow, if the number is not known.
    pub pins_at_most: Option<u64>,
}

impl PinnedPages {
    /// Of a row. `unproved` is why pins of large folios are unknown, if they are.
    pub(super) fn of(row: &Page, unproved: Option<&Reason>) -> PinnedPages {
        let absent = || match row.state() {
            State::Present => holders::not_shown(),
            _ => Reason::NotApplicable("no frame is mapped here"),
        };
        let held = row.holders.ok_or_else(absent);
        let pins = held.clone().and_then(|held| match (held.pins, unproved) {
            (Pins::Unknown, Some(reason)) => Err(reason.clone()),
            _ => held.pins(),
        });
        let pins_at_most = held.as_ref().ok().and_then(|held| match held.pins {
            Pins::AtMost(most) => Some(u64::from(most)),
            _ => None,
        });
        let holders = held.clone().and_then(|held| held.holders().ok_or_else(holders::not_shown));
        PinnedPages { pages: *row, held, holders, pins, pins_at_most }
    }

    /// The size of the large folios that the pages are part of.
    pub fn folio_bytes(&self, size: PageSize) -> Option<u64> {
        self.held.as_ref().ok().filter(|held| held.order > 0).map(|held| size.bytes() << held.order)
    }

    /// What is pinned, if something is or may be: a pin holds the whole folio.
    pub(super) fn pinned_folio(&self, size: PageSize) -> Option<AddressRange> {
        let held = self.held.as_ref().ok()?;
        if self.pins_at_most.is_none() && !self.pins.as_ref().is_ok_and(|&pins| pins > 0) {
            return None;
        }
        let folio = size.bytes() << held.order;
        let start = VirtualAddress::new(self.pages.address.get() & !(folio - 1));
        let end = self.pages.end(size).get().checked_next_multiple_of(folio).unwrap_or(u64::MAX);
        AddressRange::new(start, VirtualAddress::new(end))
    }
}

/// Puts neighbours together that are held alike.
pub(super) struct HeldRows {
    size: PageSize,
    /// The row that may still grow, and its region.
    last: Option<(Page, Option<usize>)>,
}

impl HeldRows {
    pub(super) fn new(size: PageSize) -> Self {
        HeldRows { size, last: None }
    }

    /// The last row.
    pub(super) fn take_last(&mut self) -> Option<Page> {
        self.last.take().map(|(row, _)| row)
    }

    /// Takes the next page. Returns the finished row if the page starts a new one.
    pub(super) fn push(&mut self, page: &Page, region: Option<usize>) -> Option<Page> {
        match &mut self.last {
            Some((row, of))
                if *of == region
                    && row.end(self.size) == page.address
                    && row.states == page.states
                    && row.holders == page.holders =>
            {
                row.pages += page.pages;
                None
            }
            row => row.replace((*page, region)).map(|(row, _)| row),
        }
    }
}
