//! How often pages are pinned, who else holds them, and who may have pinned them.
//!
//! ```
//! use pmdb::inspect::Step;
//! use pmdb::inspect::pins::PinStep;
//! use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//!
//! let buffer = vec![1; 4096];
//! let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
//! let space = AddressSpace::of(&Target::attach(std::process::id())?)?;
//! let mut search = space.pins(&[range], Evidence::empty())?;
//! while let Some(step) = search.next()? {
//!     if let Step::Found(PinStep::Row(row)) = step {
//!         println!("{}: {:?} pins", row.pages.address, row.pins);
//!     }
//! }
//! for holder in search.finish().holders {
//!     println!("perhaps pinned by {} of {}", holder.device.word(), holder.process.name);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod holders;
mod row;

use super::classify::Backing;
use super::kept::{KeptPages, PageSums, Step};
use super::page::{Evidence, Page};
use super::region::ViewedRegion;
use super::who::{self, FrameQuestion, SearchEvent};
use super::{AddressSpace, Error, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, FrameNumber, State};
use crate::process;
use crate::report::Reason;
use holders::Holders;
pub use holders::PinHolder;
pub(in crate::inspect) use holders::registered_buffers;
use row::HeldRows;
pub use row::PinnedPages;
use std::collections::VecDeque;

/// Frames of pinned rows for which other processes are searched.
const MOST_SEARCHED: usize = 4;

/// What a search for pins comes to.
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "there is one step at a time")]
pub enum PinStep {
    /// Neighbouring pages that are held alike.
    Row(PinnedPages),
    /// The file descriptors of this process are unknown.
    Unknown(u32, process::Error),
    /// So many of all processes were searched for those that map a pinned page too.
    Searched {
        /// How many.
        done: u64,
        /// Of how many.
        total: u64,
    },
}

/// What a search for pins counted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PinSums {
    /// Pages that were looked at.
    pub pages: u64,
    /// Pinned pages.
    pub pinned: u64,
    /// Pages that may be pinned: their references are not explained.
    pub possibly_pinned: u64,
    /// Pages whose pins are unknown.
    pub unknown: u64,
    /// Resident pages of the hugetlb pool.
    pub hugetlb: u64,
    /// Pages that are or may be pinned, but are in no registered buffer that was found.
    pub unlisted: u64,
    /// Number of processes whose file descriptors were searched, where pins are known.
    pub searched: u64,
}

impl PinSums {
    /// Adds a page to those of the hugetlb pool, if it is one.
    fn add_of_pool(&mut self, page: &Page, region: Option<usize>, regions: &[ViewedRegion]) {
        let is_of_pool = region.and_then(|index| regions.get(index)).is_some_and(|one| one.backing == Backing::Hugetlb);
        self.hugetlb += if is_of_pool && page.state() == State::Present { page.pages } else { 0 };
    }
}

/// The result of a search for pins.
#[derive(Debug)]
#[non_exhaustive]
pub struct PinReport {
    /// Buffers and file descriptors that may have pinned the pages.
    pub holders: Vec<PinHolder>,
    /// The counts.
    pub sums: PinSums,
    /// The pages.
    pub pages: PageSums,
}

/// A part of the work: it is called until it gives no step.
type Task = fn(&mut PinSearch) -> Result<Option<Step<PinStep>>>;

/// A search for the pins of pages, and for those who may have pinned them.
#[must_use]
pub struct PinSearch {
    space: AddressSpace,
    ranges: Vec<AddressRange>,
    tasks: VecDeque<Task>,
    pages: KeptPages,
    rows: HeldRows,
    holders: Holders,
    /// Frames of pinned rows that others map, and that are in no known buffer.
    shared: VecDeque<(FrameNumber, Page)>,
    other: Option<OtherSearch>,
    /// Why pins are unknown: `None` if the kernel's own records of frames tell them.
    unknown: Option<Reason>,
    /// Why pins of large folios are unknown, if they are.
    unproved: Option<Reason>,
    sums: PinSums,
    budget: Budget,
}

/// The search for others who map a pinned row.
struct OtherSearch {
    search: who::Search,
    row: Page,
    /// How many holders were known before.
    before: usize,
}

impl AddressSpace {
    /// Why evidence is unknown here, if it is.
    ///
    /// # Errors
    /// Fails for other reasons than that.
    pub(in crate::inspect) fn why_unknown(&self, need: Evidence) -> Result<Option<Reason>> {
        match self.require(need) {
            Err(Error::Unknown { reason, .. }) => Ok(Some(reason)),
            other => other.map(|()| None),
        }
    }

    /// The pins of the pages of `ranges` (in order, disjoint), and with [`Evidence::HOLES`] in `holes` also what is not
    /// mapped there.
    ///
    /// # Errors
    /// The target is a core, which has no page map.
    pub fn pins(&self, ranges: &[AddressRange], holes: Evidence) -> Result<PinSearch> {
        let unknown = self.why_unknown(Evidence::REFERENCES)?;
        let (own, family): (Task, Task) = (PinSearch::search_own, PinSearch::search_descendants);
        let (need, tasks): (_, VecDeque<Task>) = match unknown {
            None => {
                let facts = Evidence::PINS | Evidence::KINDS;
                (facts, [own, PinSearch::next_row, PinSearch::search_others, family].into())
            }
            // Which pages are in a buffer is all that is known of them.
            Some(_) => (Evidence::empty(), [own, family, PinSearch::count_in_buffers].into()),
        };
        let mut holders = Holders::default();
        if unknown.is_some() {
            holders.unlisted = ranges.iter().map(|&range| (range, 0)).collect();
        }
        Ok(PinSearch {
            unproved: if unknown.is_none() { self.why_unknown(Evidence::PINS)? } else { None },
            space: self.clone(),
            ranges: ranges.to_vec(),
            tasks,
            pages: self.kept_pages(ranges, need | holes)?,
            rows: HeldRows::new(self.page_size()),
            holders,
            shared: VecDeque::new(),
            other: None,
            unknown,
            sums: PinSums::default(),
            budget: Budget::unlimited(),
        })
    }
}

impl PinSearch {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        PinSearch { pages: self.pages.with_budget(budget.clone()), budget, ..self }
    }

    /// Why pins are unknown here: only buffers and descriptors are searched, and pages in a registered buffer are
    /// possibly pinned. Others may be mapped there since.
    pub fn why_unknown(&self) -> Option<&Reason> {
        self.unknown.as_ref()
    }

    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// The target is gone, processes cannot be listed, or the budget is over.
    pub fn next(&mut self) -> Result<Option<Step<PinStep>>> {
        loop {
            if let Some((pid, error)) = self.holders.refused.pop_front() {
                return Ok(Some(Step::Found(PinStep::Unknown(pid, error))));
            }
            let Some(task) = self.tasks.front() else {
                return Ok(None);
            };
            let step = task(self)?;
            if step.is_some() {
                return Ok(step);
            }
            self.tasks.pop_front();
        }
    }

    /// The row that has not ended, for a search that is given up: its pages are in the totals.
    pub fn take_last(&mut self) -> Option<PinnedPages> {
        let row = self.rows.take_last()?;
        Some(self.row(&row))
    }

    /// What was found.
    pub fn finish(mut self) -> PinReport {
        let (unknown, unlisted) = (self.sums.unknown, self.sums.unlisted);
        let is_likely = |is_pinned: bool, one: &PinHolder| match self.unknown {
            // A device may have pinned any page that no registered buffer explains.
            None => is_pinned || one.buffer.is_none() && unlisted > 0,
            Some(_) => one.buffer.is_some() || unknown > 0,
        };
        self.holders.found.retain(|(is_pinned, one)| is_likely(*is_pinned, one));
        if self.unknown.is_none() {
            self.sums.searched = self.holders.searched.len() as u64;
        }
        PinReport {
            holders: self.holders.found.into_iter().map(|(_, one)| one).collect(),
            sums: self.sums,
            pages: self.pages.finish(),
        }
    }

    /// Adds the descriptors of the process.
    fn search_own(&mut self) -> Result<Option<Step<PinStep>>> {
        let process = &self.space.target().process;
        let (ranges, is_known) = (&self.ranges, self.unknown.is_none());
        let is_wanted = |buffer: AddressRange| is_known || buffer.within(ranges).next().is_some();
        self.holders.add(&process.identity(), process.pinning_descriptors(), is_wanted);
        Ok(None)
    }

    /// The next row of pages that are held alike.
    fn next_row(&mut self) -> Result<Option<Step<PinStep>>> {
        let (rows, sums, regions) = (&mut self.rows, &mut self.sums, self.space.viewed_regions());
        let step = self.pages.find_map(|page, region, totals| {
            totals.add(page);
            sums.add_of_pool(page, region, regions);
            rows.push(page, region)
        })?;
        Ok(match step {
            Some(Step::Found(row)) => Some(Step::Found(PinStep::Row(self.row(&row)))),
            Some(Step::Visited { done, total }) => Some(Step::Visited { done, total }),
            None => self.take_last().map(|row| Step::Found(PinStep::Row(row))),
        })
    }

    /// Counts the pages in a registered buffer.
    fn count_in_buffers(&mut self) -> Result<Option<Step<PinStep>>> {
        let (size, sums, buffers) =
            (self.space.page_size(), &mut self.sums, self.holders.whole_pages(self.space.page_size()));
        let regions = self.space.viewed_regions();
        let step = self.pages.find_map(|page, region, totals| {
            totals.add(page);
            sums.add_of_pool(page, region, regions);
            sums.pages += page.pages;
            if let (State::Present, Some(range)) = (page.state(), page.range(size)) {
                let inside: u64 = range.within(&buffers).map(|part| part.pages(size)).sum();
                sums.possibly_pinned += inside;
                sums.unknown += page.pages - inside;
            }
            None
        })?;
        Ok(step)
    }

    /// Counts a row. If no buffer of the process explains its pins, and others map it, these are to be searched.
    fn row(&mut self, row: &Page) -> PinnedPages {
        let row = PinnedPages::of(row, self.unproved.as_ref());
        let sums = &mut self.sums;
        sums.pages += row.pages.pages;
        match (&row.pins, row.pins_at_most) {
            (Ok(0), _) => {}
            (Ok(_), _) => sums.pinned += row.pages.pages,
            (Err(_), Some(_)) => sums.possibly_pinned += row.pages.pages,
            (Err(Reason::NotApplicable(_)), None) => {}
            (Err(_), None) => sums.unknown += row.pages.pages,
        }
        if let Some(pinned) = row.pinned_folio(self.space.page_size())
            && !self.holders.explain(pinned)
        {
            sums.unlisted += row.pages.pages;
            self.holders.add_unlisted(pinned, row.pages.pages);
            let is_shared = row.holders.as_ref().is_ok_and(|holders| holders.mappings > 1);
            let is_searched = is_shared && self.shared.len() < MOST_SEARCHED;
            self.shared.extend(row.pages.frame().filter(|_| is_searched).map(|frame| (frame, row.pages)));
        }
        row
    }

    /// Adds the descriptors of other processes that map a pinned frame.
    fn search_others(&mut self) -> Result<Option<Step<PinStep>>> {
        let (target, size) = (self.space.target(), self.space.page_size().bytes());
        loop {
            let Some(OtherSearch { search, row, before }) = &mut self.other else {
                let Some((frame, row)) = self.shared.pop_front() else {
                    return Ok(None);
                };
                let search = who::who(&target.machine, &FrameQuestion::of(frame))?.with_budget(self.budget.clone());
                self.other = Some(OtherSearch { search, row, before: self.holders.found.len() });
                continue;
            };
            match search.next()? {
                Some(SearchEvent::Visited { done, total }) => {
                    return Ok(Some(Step::Found(PinStep::Searched { done, total })));
                }
                Some(SearchEvent::Found(mapper)) if mapper.process.is_same_process(&target.process.identity()) => {}
                Some(SearchEvent::Found(mapper)) => {
                    // A process that has exited holds nothing.
                    let Some(other) = mapper.target().transpose() else { continue };
                    let descriptors = other.and_then(|other| other.process.pinning_descriptors());
                    let page = AddressRange::of_length(mapper.address, size);
                    let has_it = |buffer| page.is_some_and(|page| page.intersection(buffer).is_some());
                    self.holders.add(&mapper.process, descriptors, has_it);
                }
                None => {
                    if self.holders.list_since(*before) {
                        self.sums.unlisted -= row.pages;
                        self.holders.unlisted.retain(|(pinned, _)| !pinned.contains(row.address));
                    }
                    self.other = None;
                }
            }
        }
    }

    /// Adds the descriptors of descendants. A child inherits a ring with the buffers that its parent registered, and
    /// may be the only one to have it still; it need not map the pages any more.
    fn search_descendants(&mut self) -> Result<Option<Step<PinStep>>> {
        let target = self.space.target();
        if self.holders.unlisted.is_empty() || target.machine.is_captured() {
            return Ok(None);
        }
        for one in target.machine.process_handles()?.family_of(target.process.identity().pid) {
            self.budget.look()?;
            if self.holders.searched.contains(&one.pid) {
                continue;
            }
            // A process that has ended holds nothing.
            let Ok(opened) = target.machine.open(&one) else { continue };
            // After exec its addresses are others, and its rings are closed.
            if opened.process.executable() == target.process.executable() {
                let descriptors = opened.process.pinning_descriptors();
                self.sums.unlisted -= self.holders.add_inherited(&opened.process.identity(), descriptors);
            }
        }
        Ok(None)
    }
}
