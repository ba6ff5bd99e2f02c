//! What is in a region, in bytes.

use super::Result;
use super::page::{Need, Page};
use super::sweep::sweep;
use super::totals::Totals;
use super::view::{View, ViewedRegion, no_scan};
use crate::kernel::{AddressRange, Kind, State};
use crate::report::{Fact, Reason, Stopped};
use std::collections::BTreeMap;

/// What is in a region. For a quiet process `shared + private` is what smaps calls Rss (and for the hugetlb pool
/// Shared_Hugetlb + Private_Hugetlb).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionStats {
    /// Bytes with a frame mapped, the zero page included.
    pub present: u64,
    /// Bytes in swap.
    pub swapped: u64,
    /// Bytes with a frame that is mapped elsewhere too. The zero page is nobody's and counts for neither.
    pub shared: Fact<u64>,
    /// Bytes with a frame that is mapped only here.
    pub private: Fact<u64>,
    /// Bytes mapped by whole PMDs, or from the hugetlb pool.
    pub huge: Fact<u64>,
    /// Pages in each state.
    pub states: BTreeMap<State, u64>,
}

/// Counts what is in each of `regions` (some of the view's, in address order), in one sweep of them all, and gives it to `each`. Of
/// `need`, [`Need::COUNTS`] asks for `shared` and `private` (without the right to read map counts from bit 56, where that can be
/// trusted), [`Need::HUGE`] for `huge`; what is not asked for says so.
///
/// Fails when the target is gone, and when `check` or `each` say so.
pub fn region_stats<'v>(
    view: &'v View<'_>,
    regions: &[&ViewedRegion],
    need: Need,
    check: &mut dyn FnMut() -> Result<(), Stopped>,
    each: &mut dyn FnMut(&'v ViewedRegion, RegionStats) -> Result<(), Stopped>,
) -> Result<()> {
    let wanted = match need.contains(Need::COUNTS) && view.availability().counts.is_err() {
        true => need | Need::HUGE | Need::KINDS,
        false => need,
    };
    let wanted = view.obtainable(wanted & (Need::COUNTS | Need::HUGE | Need::KINDS));
    let spans: Vec<AddressRange> = regions.iter().map(|viewed| viewed.range()).collect();
    let mut current: Option<(usize, Tally)> = None;
    let mut finish = |(index, tally): (usize, Tally)| match view.regions().get(index) {
        Some(viewed) => each(viewed, tally.stats(view, need, wanted)),
        None => Ok(()),
    };
    sweep(view, &spans, wanted, check, &mut |chunk| {
        let Some(index) = chunk.region_index else {
            return Ok(());
        };
        if current.as_ref().is_none_or(|(last, _)| *last != index)
            && let Some(done) = current.replace((index, Tally::new(view)))
        {
            finish(done)?;
        }
        if let Some((_, tally)) = &mut current {
            chunk.pages().for_each(|page| tally.add(&page));
        }
        Ok(())
    })?;
    Ok(current.take().map_or(Ok(()), finish)?)
}

/// What has gone by of a region: pages, and bytes of those that are present.
struct Tally {
    totals: Totals,
    shared: u64,
    private: u64,
    unknown: u64,
    huge: u64,
}

impl Tally {
    fn new(view: &View<'_>) -> Tally {
        Tally {
            totals: Totals::new(view.page()),
            shared: 0,
            private: 0,
            unknown: 0,
            huge: 0,
        }
    }

    #[inline]
    fn add(&mut self, page: &Page) {
        self.totals.add(page);
        if page.state != State::Present {
            return;
        }
        let bytes = page.bytes(self.totals.size());
        if page.huge == Some(true) {
            self.huge += bytes;
        }
        let nobodys = match page.map_count {
            Some(count) => count == 0,
            None => matches!(page.kind, Some(Kind::Zero | Kind::HugeZero)),
        };
        match page.exclusive() {
            _ if nobodys => {}
            Some(true) => self.private += bytes,
            Some(false) if page.map_count.is_none() && page.kind.is_none() => self.unknown += bytes,
            Some(false) => self.shared += bytes,
            None => self.unknown += bytes,
        }
    }

    /// Of what was asked for and what could be `obtained`.
    fn stats(&self, view: &View<'_>, need: Need, obtained: Need) -> RegionStats {
        let not_asked = || Err(Reason::NotApplicable("not looked at"));
        let shares = |bytes: u64| match (need.contains(Need::COUNTS), self.unknown) {
            (false, _) => not_asked(),
            (true, 0) => Ok(bytes),
            (true, _) => Err(match &view.availability().counts {
                Err(reason) => reason.clone(),
                Ok(()) => Reason::Changed,
            }),
        };
        let bytes = |state| self.totals.state(state) << view.page().shift();
        RegionStats {
            present: bytes(State::Present),
            swapped: bytes(State::Swapped),
            shared: shares(self.shared),
            private: shares(self.private),
            huge: match (need.contains(Need::HUGE), obtained.contains(Need::HUGE)) {
                (false, _) => not_asked(),
                (true, true) => Ok(self.huge),
                (true, false) => Err(no_scan()),
            },
            states: self.totals.states(),
        }
    }
}
