//! The rows of `pins`.

use crate::inspect::Page;
use crate::kernel::PageSize;

/// Puts neighbours together that are held alike, whatever their frames.
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
