//! A picture of memory: cells of equal numbers of pages, region by region.

use super::Result;
use super::address_space::AddressSpace;
use super::fact::{Answer, FactReader};
use super::filter::Question;
use super::kept::{KeptPages, PageSums, Step};
use super::page::{Evidence, Page};
use crate::budget::Budget;
use crate::kernel::{AddressRange, PageFact, PageField, PageFlags, PageSize, State, VirtualAddress};
use crate::report::{MapKey, PagesByReason, Reason};
use std::collections::BTreeMap;

/// The most cells of a region.
const MOST_CELLS: u64 = 512;

/// The drawn part of one region, or of a hole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RegionMap<M> {
    /// Its addresses.
    pub range: AddressRange,
    /// The index of the region among [`AddressSpace::viewed_regions`]; `None` for addresses in no region.
    pub region: Option<usize>,
    /// Pages in a cell; the last one may have fewer.
    pub cell_pages: u64,
    /// The cells, in address order.
    pub cells: Vec<MapCell<M>>,
    /// The pages of each mark, the least mark first.
    pub marks: BTreeMap<M, u64>,
}

/// Some pages of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MapCell<M> {
    /// The least mark of its pages; `None` if there are none.
    pub mark: Option<M>,
    /// Whether it has other pages too.
    pub is_mixed: bool,
    /// How many pages were drawn: with a filter, not all of them.
    pub drawn: u64,
    /// How many pages have what was asked.
    pub has: u64,
    /// How many pages were asked.
    pub asked: u64,
}

/// Draws maps. Dropping it ends what is under way.
///
/// ```
/// use pmdb::inspect::{Question, Step};
/// use pmdb::kernel::State;
/// use pmdb::{AddressSpace, Evidence, Target};
///
/// let space = AddressSpace::of(&Target::attach(std::process::id())?)?;
/// let look = |page: &pmdb::inspect::Page| (page.state() == State::Present).then_some('#');
/// let mut map = space.map(&space.spans(), Question::from(Evidence::empty()), None, look)?;
/// while let Some(step) = map.next()? {
///     if let Step::Found(region) = step {
///         let cells: String = region.cells.iter().map(|cell| cell.mark.unwrap_or('.')).collect();
///         println!("{}: {} pages per cell: {cells}", region.range.start(), region.cell_pages);
///     }
/// }
/// # assert!(map.finish().totals.pages > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct MapSweep<M> {
    pages: KeptPages,
    parts: MapParts<M>,
}

/// Makes the parts of a map.
struct MapParts<M> {
    space: AddressSpace,
    ranges: Vec<AddressRange>,
    look: fn(&Page) -> Option<M>,
    measure: Option<(MapKey, FactReader)>,
    /// Pages of which it is unknown whether they have what is asked.
    unknown: PagesByReason,
    drawing: Option<RegionMap<M>>,
}

impl AddressSpace {
    /// What has to be found out about pages for the share `by` a key.
    ///
    /// # Errors
    /// It cannot be known here.
    pub fn need_of_map(&self, by: MapKey) -> Result<Evidence> {
        let fact = match by {
            MapKey::Resident => return Ok(Evidence::empty()),
            MapKey::Sharing => PageFact::Exclusive,
            MapKey::LazyFree => PageFact::Flags,
        };
        Ok(FactReader::of_pages(self).require(PageField::Fact(fact))?.unwrap_or_default())
    }

    /// A map of the pages of `ranges` (in order, disjoint) that `question` keeps. `look` gives the mark of a page: that
    /// of a cell is the least of its pages. With `by` cells count pages too; that takes
    /// [`need_of_map`](AddressSpace::need_of_map).
    ///
    /// # Errors
    /// The target is a core, which has no page map.
    pub fn map<M: Copy + Ord>(
        &self,
        ranges: &[AddressRange],
        question: Question,
        by: Option<MapKey>,
        look: fn(&Page) -> Option<M>,
    ) -> Result<MapSweep<M>> {
        let parts = MapParts {
            space: self.clone(),
            ranges: ranges.to_vec(),
            look,
            measure: by.map(|by| (by, FactReader::of_pages(self))),
            unknown: PagesByReason::default(),
            drawing: None,
        };
        Ok(MapSweep { pages: self.kept_pages(ranges, question)?, parts })
    }
}

impl<M: Copy + Ord> MapSweep<M> {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        MapSweep { pages: self.pages.with_budget(budget), ..self }
    }

    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Sweep::next`](super::Sweep::next).
    pub fn next(&mut self) -> Result<Option<Step<RegionMap<M>>>> {
        let MapSweep { pages, parts } = self;
        let step = pages.find_map(|page, region, totals| {
            totals.add(page);
            parts.add(page, region)
        })?;
        Ok(step.or_else(|| parts.drawing.take().map(|last| Step::Found(last.finish(parts.space.page_size())))))
    }

    /// Pages of which it is unknown whether they have what was asked.
    pub fn unknown(&self) -> &PagesByReason {
        &self.parts.unknown
    }

    /// What was counted.
    pub fn finish(self) -> PageSums {
        self.pages.finish()
    }
}

impl<M: Copy + Ord> MapParts<M> {
    /// Draws neighbouring pages. Returns the part before, if they are in another one.
    fn add(&mut self, page: &Page, region: Option<usize>) -> Option<RegionMap<M>> {
        let has = self.measure.as_ref().and_then(|(by, _)| has(*by, page));
        if let Some((by, reader)) = &self.measure
            && has.is_none()
            && let Some(reason) = why_unknown(*by, page, reader)
        {
            self.unknown.add(page.pages, reason);
        }
        let size = self.space.page_size();
        let is_in = |part: &RegionMap<M>| part.region == region && part.range.contains(page.address);
        let done = match &self.drawing {
            Some(part) if is_in(part) => None,
            _ => {
                let next = self.begin(page, region);
                std::mem::replace(&mut self.drawing, next)
            }
        };
        if let Some(part) = self.drawing.as_mut().filter(|part| is_in(part)) {
            part.add(page, size, (self.look)(page), has);
        }
        done.map(|done| done.finish(size))
    }

    /// The wanted part of the page's region around the page.
    fn begin(&self, page: &Page, region: Option<usize>) -> Option<RegionMap<M>> {
        let size = self.space.page_size();
        let viewed = region.and_then(|index| self.space.viewed_regions().get(index));
        // The first page may begin before the range does.
        let is_in = |range: &AddressRange| size.floor(range.start()) <= page.address && page.address < range.end();
        let next = self.ranges.partition_point(|range| range.end() <= page.address);
        let asked = self.ranges.get(next).copied().filter(is_in);
        let own = page.range(size);
        let bounds = [viewed.map(|viewed| viewed.range()), asked];
        let start = bounds.iter().flatten().map(|one| one.start()).max();
        let end = bounds.iter().flatten().map(|one| one.end()).min();
        // Cells are of whole pages.
        let end = end.and_then(|end| end.get().checked_next_multiple_of(size.bytes())).map(VirtualAddress::new);
        let whole = start.zip(end).and_then(|(start, end)| AddressRange::new(size.floor(start), end));
        // A hole is as long as its page record.
        let range = match viewed {
            Some(_) => whole.or(own),
            None => own,
        }?;
        let pages = range.pages(size);
        let cell_pages = pages.div_ceil(MOST_CELLS).next_power_of_two();
        let cells = usize::try_from(pages.div_ceil(cell_pages)).unwrap_or_default();
        let cell = MapCell { mark: None, is_mixed: false, drawn: 0, has: 0, asked: 0 };
        Some(RegionMap { range, region, cell_pages, cells: vec![cell; cells], marks: BTreeMap::new() })
    }
}

impl<M: Copy + Ord> RegionMap<M> {
    fn add(&mut self, page: &Page, size: PageSize, mark: Option<M>, has: Option<bool>) {
        let before = page.address.get() - self.range.start().get();
        let first = before / size.bytes();
        let last = first.saturating_add(page.pages.max(1)) - 1;
        let [from, to] = [first, last].map(|page| usize::try_from(page / self.cell_pages));
        let (Ok(from), Ok(to)) = (from, to) else {
            return;
        };
        if let Some(mark) = mark {
            let all = self.range.pages(size);
            *self.marks.entry(mark).or_default() += (last + 1).min(all) - first.min(all);
        }
        let cells = self.cells.iter_mut().skip(from).take(to - from + 1);
        for (cell, number) in cells.zip(from as u64..) {
            let start = number * self.cell_pages;
            let pages = (last + 1).min(start + self.cell_pages) - first.max(start);
            cell.is_mixed |= cell.mark.is_some() && cell.mark != mark;
            cell.mark = cell.mark.into_iter().chain(mark).min();
            cell.drawn += pages;
            cell.has += if has == Some(true) { pages } else { 0 };
            cell.asked += if has.is_some() { pages } else { 0 };
        }
    }

    /// Cells of which a filter has left out pages have other pages too.
    fn finish(mut self, size: PageSize) -> Self {
        let mut left = self.range.pages(size);
        for cell in &mut self.cells {
            let all = left.min(self.cell_pages);
            left -= all;
            cell.is_mixed |= cell.mark.is_some() && cell.drawn < all;
        }
        self
    }
}

/// Whether a page has what is asked; `None` for a page that is not asked, or has no answer.
fn has(by: MapKey, page: &Page) -> Option<bool> {
    match by {
        MapKey::Resident => Some(page.state() == State::Present && !page.is_zero()),
        _ if page.state() != State::Present || page.is_zero() => None,
        MapKey::Sharing => page.exclusive().map(|exclusive| !exclusive),
        MapKey::LazyFree => page.flags.map(PageFlags::is_lazily_freed),
    }
}

/// Why that is unknown of a page that is asked, and has no answer.
fn why_unknown(by: MapKey, page: &Page, reader: &FactReader) -> Option<Reason> {
    if page.state() != State::Present || page.is_zero() {
        return None;
    }
    match reader.answer(PageField::Fact(PageFact::Exclusive), page, None) {
        Answer::Unknown(gap) if by == MapKey::Sharing => Some(reader.reason(gap, None)),
        _ => Some(Reason::words_hidden()),
    }
}
