//! The pages of a sweep that its question keeps, and their totals. Questions that go through pages are made of it: they
//! are pulled, and each [`Step`] is one answer, or says how far the sweep has come.

use super::filter::Question;
use super::page::{Evidence, Page};
use super::rows::{Neighbours, Totals};
use super::sweep::{ChunkPlace, Selection, Sweep};
use super::{AddressSpace, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, State, VirtualAddress};

/// What a question gives that is pulled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<T> {
    /// So much of all is done: pages, frames, regions or processes were visited.
    Visited {
        /// The number visited.
        done: u64,
        /// All of them.
        total: u64,
    },
    /// An answer.
    Found(T),
}

/// The pages that a question keeps, in address order.
#[must_use]
pub struct KeptPages {
    space: AddressSpace,
    sweep: Sweep,
    question: Question,
    /// Pages before the last chunk, in it, and of all ranges.
    done: u64,
    current: u64,
    total: u64,
    /// Counts of the pages that were taken.
    totals: Totals,
    selection: Selection,
    /// How far the pages of the last chunk were taken; `None` if that is to the end.
    place: Option<ChunkPlace>,
    /// Untouched pages in the totals before those of a region that hides which pages are in swap.
    untouched: Option<u64>,
    hides_swapped: bool,
}

/// What a sweep counted.
#[derive(Debug)]
#[non_exhaustive]
pub struct PageSums {
    /// The counts of the pages.
    pub totals: Totals,
    /// Whether regions changed during the sweep.
    pub changed: bool,
    /// What is uncertain about the pages that the filter keeps and leaves out.
    pub selection: Selection,
    /// Whether pages in the totals count as untouched that may be in swap.
    pub hides_swapped: bool,
}

impl AddressSpace {
    /// The pages of `ranges` (in order, disjoint) that `question` keeps.
    ///
    /// # Errors
    /// The target is a core, which has no page map.
    pub fn kept_pages(&self, ranges: &[AddressRange], question: impl Into<Question>) -> Result<KeptPages> {
        // Nothing to sweep is no answer where no page is known.
        self.target().process.require_page_map()?;
        let question = question.into();
        Ok(KeptPages {
            space: self.clone(),
            sweep: self.pages(ranges, question.clone()),
            totals: Totals::new(self.page_size(), question.need()),
            question,
            done: 0,
            current: 0,
            total: ranges.iter().map(|range| range.pages(self.page_size())).sum(),
            selection: Selection::default(),
            place: None,
            untouched: None,
            hides_swapped: false,
        })
    }
}

impl KeptPages {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        KeptPages { sweep: self.sweep.with_budget(budget), ..self }
    }

    /// Goes on to the next pages. False after the last.
    fn advance(&mut self) -> Result<bool> {
        self.end_chunk();
        let Some(chunk) = self.sweep.next()? else {
            self.selection.require_known()?;
            return Ok(false);
        };
        let hides =
            |viewed| !self.question.need().contains(Evidence::SHARED_CONTENT) && self.space.hides_swapped(viewed);
        self.untouched = chunk.region.is_some_and(hides).then(|| self.totals.state(State::Untouched));
        self.done = self.done.saturating_add(self.current);
        self.current = chunk.pages;
        self.place = Some(ChunkPlace::default());
        Ok(true)
    }

    /// Looks at what the last pages added to the totals.
    fn end_chunk(&mut self) {
        self.hides_swapped |= self.untouched.take().is_some_and(|before| self.totals.state(State::Untouched) > before);
    }

    /// Gives `take` the next pages, each with the index of its region, and adds them to the totals. Returns how far it
    /// has come; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Sweep::next`], and at the end, that a fact that the question asks is unknown of all pages.
    pub fn each(&mut self, mut take: impl FnMut(&Page, Option<usize>)) -> Result<Option<Step<()>>> {
        self.find_map(|page, region, totals| {
            totals.add(page);
            take(page, region);
            None
        })
    }

    /// Gives `take` the pages, each with the index of its region, up to the first answer. It adds those that count to
    /// the totals.
    #[inline]
    pub(super) fn find_map<T>(
        &mut self,
        mut take: impl FnMut(&Page, Option<usize>, &mut Totals) -> Option<T>,
    ) -> Result<Option<Step<T>>> {
        if let Some(place) = self.place.take()
            && let Some(chunk) = self.sweep.chunk()
        {
            let mut pages = chunk.pages_from(place);
            // A `for` loop would copy each page.
            while let Some(page) = &pages.next() {
                if !self.selection.takes(page, &chunk, &self.question) {
                    continue;
                }
                if let Some(found) = take(page, chunk.region_index, &mut self.totals) {
                    self.place = Some(pages.place());
                    return Ok(Some(Step::Found(found)));
                }
            }
        }
        Ok(self.advance()?.then_some(Step::Visited { done: self.done, total: self.total }))
    }

    /// What was counted.
    pub fn finish(mut self) -> PageSums {
        self.end_chunk();
        PageSums {
            changed: !self.sweep.changed_ranges().is_empty(),
            totals: self.totals,
            selection: self.selection,
            hides_swapped: self.hides_swapped,
        }
    }
}

/// Rows of neighbouring pages that a question keeps, in address order.
///
/// ```
/// use pmdb::inspect::{PhysicalRuns, Step};
/// use pmdb::{AddressRange, AddressSpace, Evidence, Target};
///
/// let buffer = vec![1; 1 << 20];
/// let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
/// let space = AddressSpace::in_ranges(&Target::attach(std::process::id())?, &[range])?;
/// let mut runs = space.rows::<PhysicalRuns>(&[range], Evidence::ENTRIES)?;
/// while let Some(step) = runs.next()? {
///     if let Step::Found(run) = step {
///         println!("{}: {} pages from {:?}", run.start, run.pages, run.frame);
///     }
/// }
/// println!("{} bytes", runs.finish().totals.bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct RowSweep<N: Neighbours> {
    pages: KeptPages,
    rows: N,
    /// How many rows may still end.
    left: u64,
    more: Option<VirtualAddress>,
}

impl AddressSpace {
    /// The rows of the pages of `ranges` (in order, disjoint) that `question` keeps.
    ///
    /// # Errors
    /// The target is a core, which has no page map.
    pub fn rows<N: Neighbours>(&self, ranges: &[AddressRange], question: impl Into<Question>) -> Result<RowSweep<N>> {
        let pages = self.kept_pages(ranges, question)?;
        Ok(RowSweep { pages, rows: N::new(self.page_size()), left: u64::MAX, more: None })
    }
}

impl<N: Neighbours> RowSweep<N> {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        RowSweep { pages: self.pages.with_budget(budget), ..self }
    }

    /// The same, which ends after so many rows.
    pub fn limit(self, rows: u64) -> Self {
        RowSweep { left: rows, ..self }
    }

    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Sweep::next`].
    pub fn next(&mut self) -> Result<Option<Step<N::Row>>> {
        if self.more.is_some() {
            return Ok(None);
        }
        let RowSweep { pages, rows, left, more } = self;
        let step = pages.find_map(|page, region, totals| {
            let row = rows.push(page, region);
            *left = left.saturating_sub(u64::from(row.is_some()));
            match left {
                0 => *more = Some(page.address),
                _ => totals.add(page),
            }
            row
        })?;
        Ok(step.or_else(|| self.take_last().map(Step::Found)))
    }

    /// The row that has not ended, for a sweep that is given up: its pages are in the totals.
    pub fn take_last(&mut self) -> Option<N::Row> {
        if self.more.is_some() { None } else { self.rows.finish() }
    }

    /// Where the row begins that would be one too many.
    pub fn more(&self) -> Option<VirtualAddress> {
        self.more
    }

    /// What was counted.
    pub fn finish(self) -> PageSums {
        self.pages.finish()
    }
}
