//! What clearing the soft-dirty bits of a process would change.

use super::error::no_scan;
use super::filter::{Filter, Question};
use super::kept::{KeptPages, Step};
use super::page::{Evidence, Page};
use super::{AddressSpace, Result};
use crate::budget::Budget;
use crate::kernel::Kind;
use crate::report::Fact;

/// Pages that a clearing changes: they are counted as they are pulled.
#[must_use]
pub struct SoftDirtyPages {
    pages: KeptPages,
    counts: SoftDirtyCounts,
}

/// Counts of soft-dirty pages.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SoftDirtyCounts {
    /// Pages that are mapped.
    pub pages: u64,
    /// Those of them that are mapped as huge pages.
    pub huge: Fact<u64>,
    /// Hugetlb pages, which have no bits of their own.
    pub hugetlb: u64,
}

impl AddressSpace {
    /// Counts the pages that `filter` keeps: soft-dirty ones.
    ///
    /// # Errors
    /// The target is a core, which has no page map.
    pub fn soft_dirty_pages(&self, filter: &Filter) -> Result<SoftDirtyPages> {
        let need = self.obtainable(Evidence::KINDS | Evidence::HUGE);
        let huge = if need.contains(Evidence::HUGE) { Ok(0) } else { Err(no_scan()) };
        let pages = self.kept_pages(&self.spans(), Question::of_kept(filter, need))?;
        Ok(SoftDirtyPages { pages, counts: SoftDirtyCounts { pages: 0, huge, hugetlb: 0 } })
    }
}

impl SoftDirtyPages {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        SoftDirtyPages { pages: self.pages.with_budget(budget), ..self }
    }

    /// Counts the next pages. Returns how far it has come; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Sweep::next`](super::Sweep::next).
    pub fn next(&mut self) -> Result<Option<Step<()>>> {
        let counts = &mut self.counts;
        self.pages.each(|page, _| counts.add(page))
    }

    /// The counts so far.
    pub fn finish(self) -> SoftDirtyCounts {
        self.counts
    }
}

impl SoftDirtyCounts {
    fn add(&mut self, page: &Page) {
        if page.kind == Some(Kind::Hugetlb) {
            self.hugetlb += page.pages;
        } else if page.entry.is_present() {
            self.pages += page.pages;
            if let (Some(true), Ok(huge)) = (page.huge, &mut self.huge) {
                *huge += page.pages;
            }
        }
    }
}
