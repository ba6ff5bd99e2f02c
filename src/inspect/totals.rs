//! What closes a walk: counts of what went by.

use super::page::Page;
use super::rows::{Run, Runs};
use crate::kernel::{Kind, PageSize, State};
use std::collections::BTreeMap;

/// Counts of the pages that went by in address order.
#[derive(Debug)]
pub struct Totals {
    /// Pages.
    pub pages: u64,
    size: PageSize,
    states: StateCounts,
    runs: Runs,
    physical_runs: u64,
    longest: u64,
    hidden: bool,
}

impl Totals {
    /// For pages of `size` bytes.
    pub fn new(size: PageSize) -> Self {
        Totals {
            pages: 0,
            size,
            states: StateCounts::default(),
            runs: Runs::new(size),
            physical_runs: 0,
            longest: 0,
            hidden: false,
        }
    }

    /// The size of a page.
    pub fn size(&self) -> PageSize {
        self.size
    }

    /// Takes the next page.
    #[inline]
    pub fn add(&mut self, page: &Page) {
        self.pages = self.pages.saturating_add(page.pages);
        self.states.add(page.state, page.pages);
        self.hidden |= page.entry.is_frame_hidden();
        if let Some(run) = self.runs.push(page) {
            self.count(run);
        }
    }

    /// Closes the last run: before the counts of runs are asked for.
    pub fn finish(&mut self) {
        if let Some(run) = self.runs.finish() {
            self.count(run);
        }
    }

    fn count(&mut self, run: Run) {
        // However often it is mapped, the page of zeros is one, and nobody's.
        let is_zero = matches!(run.kind, Some(Kind::Zero | Kind::HugeZero));
        if run.frame.is_some() && !is_zero {
            self.physical_runs += 1;
            self.longest = self.longest.max(run.pages);
        }
    }

    /// Bytes in all pages.
    pub fn bytes(&self) -> u64 {
        self.pages.saturating_mul(self.size.bytes())
    }

    /// Physically contiguous runs, without those of the zero page ([`Need::KINDS`](super::Need::KINDS) tells it); `None` when frames are
    /// hidden.
    pub fn runs(&self) -> Option<u64> {
        (!self.hidden).then_some(self.physical_runs)
    }

    /// Bytes in the longest of them, 0 when there is none; `None` when frames are hidden.
    pub fn longest_run_bytes(&self) -> Option<u64> {
        (!self.hidden).then(|| self.longest.saturating_mul(self.size.bytes()))
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
