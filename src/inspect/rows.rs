//! Neighbours put together as they stream by: rows of `walk`, physically contiguous runs of `translate`.

use super::page::Page;
use crate::kernel::{FrameNumber, Kind, PageFlags, PageMapEntry, PageSize, State, VirtualAddress};

/// Neighbouring pages of one region with the same state, kind, flags, map count, order and size of mapping, and with consecutive frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The pages; flags are those that all of them have.
    pub page: Page,
    /// Index of the region among [`View::regions`](super::View::regions); `None` for pages in no region.
    pub region: Option<usize>,
}

/// Makes [`Row`]s of pages in address order; holds one.
#[derive(Debug)]
pub struct Rows {
    size: PageSize,
    row: Option<Row>,
}

impl Rows {
    /// For pages of `size` bytes.
    pub fn new(size: PageSize) -> Self {
        Rows { size, row: None }
    }

    /// Takes the next page. Gives back the row before it, if the page does not belong to that.
    #[inline]
    pub fn push(&mut self, page: &Page, region: Option<usize>) -> Option<Row> {
        let next = Row {
            page: *page,
            region,
        };
        match &mut self.row {
            Some(row) if joins(row, &next, self.size) => {
                row.page.pages += page.pages;
                row.page.flags = row.page.flags.zip(page.flags).map(|(a, b)| a & b);
                None
            }
            row => row.replace(next),
        }
    }

    /// The last row.
    pub fn finish(&mut self) -> Option<Row> {
        self.row.take()
    }
}

/// Whether `next` goes on where `row` ends, and is the same.
fn joins(row: &Row, next: &Row, size: PageSize) -> bool {
    /// A head and its tails are one folio.
    fn of_folio(flags: Option<PageFlags>) -> Option<PageFlags> {
        flags.map(|flags| flags | PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL)
    }
    let (a, b) = (&row.page, &next.page);
    row.region == next.region
        && a.end(size) == b.address
        && a.state == b.state
        && a.kind == b.kind
        && a.huge == b.huge
        && a.map_count == b.map_count
        && a.order == b.order
        && of_folio(a.flags) == of_folio(b.flags)
        && a.frames_go_on(b)
}

/// Pages that follow each other virtually and physically; or, without visible frames, that are in the same state. Neighbours that are all
/// the one zero page make a run too, though not a physical one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first byte.
    pub start: VirtualAddress,
    /// Pages in it.
    pub pages: u64,
    /// The first entry.
    pub entry: PageMapEntry,
    /// The first frame, if there is one and it is not hidden.
    pub frame: Option<FrameNumber>,
    /// Their state.
    pub state: State,
    /// Their kind, if it is the same for all.
    pub kind: Option<Kind>,
}

impl Run {
    /// The address after the last page; the last address there is when they reach the very end.
    pub fn end(&self, size: PageSize) -> VirtualAddress {
        let bytes = self.pages.saturating_mul(size.bytes());
        VirtualAddress::new(self.start.get().saturating_add(bytes))
    }
}

/// Makes [`Run`]s of pages in address order, across regions; holds one.
#[derive(Debug)]
pub struct Runs {
    size: PageSize,
    /// The run as one page, and whether its kind is that of all.
    run: Option<(Page, bool)>,
}

impl Runs {
    /// For pages of `size` bytes.
    pub fn new(size: PageSize) -> Self {
        Runs { size, run: None }
    }

    /// Takes the next page. Gives back the run before it, if the page does not belong to that.
    #[inline]
    pub fn push(&mut self, page: &Page) -> Option<Run> {
        match &mut self.run {
            Some((run, alike))
                if run.end(self.size) == page.address
                    && run.state == page.state
                    && run.is_zero() == page.is_zero()
                    && run.frames_go_on(page) =>
            {
                run.pages += page.pages;
                *alike &= run.kind == page.kind;
                None
            }
            run => run.replace((*page, true)).map(finished),
        }
    }

    /// The last run.
    pub fn finish(&mut self) -> Option<Run> {
        self.run.take().map(finished)
    }
}

fn finished((page, alike): (Page, bool)) -> Run {
    Run {
        start: page.address,
        pages: page.pages,
        entry: page.entry,
        frame: page.frame(),
        state: page.state,
        kind: page.kind.filter(|_| alike),
    }
}
