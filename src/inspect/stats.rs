//! What is in a region, in bytes.

use super::Result;
use super::page::Need;
use super::sweep::sweep;
use super::totals::Totals;
use super::view::{View, ViewedRegion, no_scan};
use crate::kernel::{Kind, State};
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

/// Counts what is in `viewed`. Of `need`, [`Need::COUNTS`] asks for `shared` and `private` (without the right to read map counts from
/// bit 56, where that can be trusted), [`Need::HUGE`] for `huge`; what is not asked for says so.
///
/// Fails when the target is gone, and when `check` says so.
pub fn region_stats(
    view: &View<'_>,
    viewed: &ViewedRegion,
    need: Need,
    check: &mut dyn FnMut() -> Result<(), Stopped>,
) -> Result<RegionStats> {
    let wants_shares = need.contains(Need::COUNTS);
    let counts = wants_shares && view.availability().counts.is_ok();
    let wanted = match (wants_shares, counts) {
        (true, false) => need | Need::HUGE | Need::KINDS,
        _ => need,
    };
    let wanted = view.obtainable(wanted & (Need::COUNTS | Need::HUGE | Need::KINDS));
    let size = view.page();
    let mut totals = Totals::new(size);
    let (mut shared, mut private, mut unknown, mut huge) = (0u64, 0u64, 0u64, 0u64);
    sweep(view, &[viewed.range()], wanted, check, &mut |chunk| {
        for page in chunk.pages() {
            totals.add(&page);
            if page.state != State::Present {
                continue;
            }
            let bytes = page.bytes(size);
            if page.huge == Some(true) {
                huge += bytes;
            }
            let nobodys = match page.map_count {
                Some(count) => count == 0,
                None => matches!(page.kind, Some(Kind::Zero | Kind::HugeZero)),
            };
            match page.exclusive() {
                _ if nobodys => {}
                Some(true) => private += bytes,
                Some(false) if page.map_count.is_none() && page.kind.is_none() => unknown += bytes,
                Some(false) => shared += bytes,
                None => unknown += bytes,
            }
        }
        Ok(())
    })?;
    let not_asked = || Err(Reason::NotApplicable("not looked at"));
    let shares = |bytes: u64| match (wants_shares, unknown) {
        (false, _) => not_asked(),
        (true, 0) => Ok(bytes),
        (true, _) => Err(match &view.availability().counts {
            Err(reason) => reason.clone(),
            Ok(()) => Reason::Changed,
        }),
    };
    Ok(RegionStats {
        present: totals.state(State::Present) << size.shift(),
        swapped: totals.state(State::Swapped) << size.shift(),
        shared: shares(shared),
        private: shares(private),
        huge: match (need.contains(Need::HUGE), wanted.contains(Need::HUGE)) {
            (false, _) => not_asked(),
            (true, true) => Ok(huge),
            (true, false) => Err(no_scan()),
        },
        states: totals.states(),
    })
}
