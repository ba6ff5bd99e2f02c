//! The totals of a walk.

use super::page::{Facts, Page};
use crate::kernel::{AddressRange, PageSize, State, VirtualAddress};
use std::collections::BTreeMap;

/// Counts of pages, which are added in address order.
#[derive(Debug)]
pub struct Totals {
    /// Pages.
    pub pages: u64,
    size: PageSize,
    states: StateCounts,
    /// `None` when frames are hidden or not needed.
    physical: Option<Physical>,
}

/// Counts of physically contiguous runs.
#[derive(Default, Debug)]
struct Physical {
    runs: u64,
    /// Pages of the longest.
    longest: u64,
    /// Where that begins.
    longest_at: VirtualAddress,
    /// Where the last one begins.
    last_at: VirtualAddress,
    /// Pages of the last one so far.
    last: u64,
    /// The page index and the frame with which the last one would go on.
    next: Option<(u64, u64)>,
}

impl Totals {
    /// For pages of `size` bytes, of which `need` is known.
    pub fn new(size: PageSize, need: Facts) -> Self {
        Totals { pages: 0, size, states: StateCounts::default(), physical: need.has_entries().then(Physical::default) }
    }

    /// The size of a page.
    pub fn size(&self) -> PageSize {
        self.size
    }

    /// Takes the next page.
    #[inline]
    pub fn add(&mut self, page: &Page) {
        self.pages = self.pages.saturating_add(page.pages);
        self.states.add(page.state(), page.pages);
        if page.entry.is_frame_hidden() {
            self.physical = None;
        }
        if let Some(physical) = &mut self.physical {
            physical.add(page, self.size);
        }
    }

    /// Bytes in all pages.
    pub fn bytes(&self) -> u64 {
        self.pages.saturating_mul(self.size.bytes())
    }

    /// Physically contiguous runs, without those of the zero page ([`Facts::KINDS`] tells it); `None` when frames are
    /// hidden, and when only states are found out.
    pub fn runs(&self) -> Option<u64> {
        self.physical.as_ref().map(|physical| physical.runs)
    }

    /// Bytes in the longest of them, 0 when there is none; `None` as for [`Totals::runs`].
    pub fn longest_run_bytes(&self) -> Option<u64> {
        let physical = self.physical.as_ref()?;
        Some(physical.longest.saturating_mul(self.size.bytes()))
    }

    /// Where the longest of them begins, the first of equally long ones; `None` where there is none.
    pub fn longest_run_start(&self) -> Option<VirtualAddress> {
        let physical = self.physical.as_ref()?;
        (physical.runs > 0).then_some(physical.longest_at)
    }

    /// Where the longest of them lies; `None` when there is none, and as for [`Totals::runs`].
    pub fn longest_run(&self) -> Option<AddressRange> {
        let start = self.longest_run_start()?;
        let end = start.checked_add(self.longest_run_bytes()?)?;
        AddressRange::new(start, end)
    }

    /// Pages in one state.
    pub fn state(&self, state: State) -> u64 {
        self.states.of(state)
    }

    /// Pages in each state.
    pub fn states(&self) -> StateCounts {
        self.states
    }
}

impl Physical {
    #[inline]
    fn add(&mut self, page: &Page, size: PageSize) {
        // The page of zeros is one frame, however often it is mapped, and nobody's memory.
        let Some(frame) = page.frame().filter(|_| !page.is_zero()) else {
            return;
        };
        let (index, frame) = (size.index(page.address), frame.get());
        if self.next != Some((index, frame)) {
            self.runs += 1;
            self.last = 0;
            self.last_at = page.address;
        }
        self.last += page.pages;
        if self.last > self.longest {
            (self.longest, self.longest_at) = (self.last, self.last_at);
        }
        self.next = Some((index + page.pages, frame + page.pages));
    }
}

/// Pages in each state, in the order of [`State::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StateCounts([u64; State::ALL.len()]);

impl StateCounts {
    #[inline]
    fn add(&mut self, state: State, pages: u64) {
        if let Some(count) = self.0.get_mut(state as usize) {
            *count = count.saturating_add(pages);
        }
    }

    /// Pages in one state.
    pub fn of(&self, state: State) -> u64 {
        self.0.get(state as usize).copied().unwrap_or_default()
    }

    /// The states that any page was in.
    pub fn map(&self) -> BTreeMap<State, u64> {
        let all = State::ALL.iter().map(|&state| (state, self.of(state)));
        all.filter(|&(_, pages)| pages > 0).collect()
    }
}
