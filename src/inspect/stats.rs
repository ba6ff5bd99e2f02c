//! The memory of a region in bytes, added up as smaps does.

use super::Result;
use super::address_space::AddressSpace;
use super::error::{no_scan, swap_hidden};
use super::filter::{Filter, Question};
use super::folio::FolioTotals;
use super::page::{Evidence, Page};
use super::region::ViewedRegion;
use super::rows::{StateCounts, Totals};
use super::states::StateSet;
use super::sweep::{Selection, Sweep};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Kind, State};
use crate::process::Categories;
use crate::report::{Fact, LargeFolios, Reason};
use std::collections::VecDeque;

/// The memory of a region. While nothing changes, `shared + private` equals Rss of smaps (for the hugetlb pool
/// Shared_Hugetlb + Private_Hugetlb). `present` also includes the zero page, which smaps does not count.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RegionStats {
    /// Bytes of present pages, the zero page included.
    pub present: u64,
    /// Bytes that map the zero page.
    pub zero: Fact<u64>,
    /// Bytes that the kernel counts as Rss: present, without the zero page. The hugetlb pool has none
    /// ([`ViewedRegion::is_in_rss`]).
    pub rss: Fact<u64>,
    /// The possible states of the first page whose state is uncertain: `swapped` and `states` are then only the most
    /// likely numbers.
    pub uncertain: Option<StateSet>,
    /// Bytes in swap. Shared memory in swap leaves an empty entry in the page map, as if nobody had touched it.
    pub swapped: Fact<u64>,
    /// Bytes of frames that are mapped more than once.
    pub shared: Fact<u64>,
    /// Of these, bytes of frames that are mapped here once and otherwise only by pmdb itself, as far as map counts show
    /// it.
    pub shared_with_pmdb: u64,
    /// Bytes of frames that are mapped once.
    pub private: Fact<u64>,
    /// The proportional share: each page divided by how often it is mapped, as smaps counts Pss. The hugetlb pool has
    /// none ([`ViewedRegion::is_in_rss`]).
    pub pss: Fact<u64>,
    /// Whether `shared`, `private` and `pss` are computed from map counts that are averages over large folios.
    pub average: bool,
    /// Bytes mapped by whole PMDs, or from the hugetlb pool.
    pub huge: Fact<u64>,
    /// Large folios by size and by how they are mapped, the largest first.
    pub folios: Fact<Vec<LargeFolios>>,
    /// Pages in each state.
    pub states: StateCounts,
    /// Why there are no numbers, if the target has no page map.
    pub missing: Option<Reason>,
}

impl RegionStats {
    /// The uncertain states, if `swapped` is one of them: a page of the hugetlb pool never is.
    pub fn uncertainly_swapped(&self) -> Option<StateSet> {
        self.uncertain.filter(|states| states.may_be(State::Swapped))
    }

    /// Why the page map hides the pages of the region, if it does. The numbers are then meaningless.
    pub fn why_hidden(&self) -> Option<Reason> {
        if self.missing.is_some() {
            return self.missing.clone();
        }
        let any = |state| self.states.of(state) > 0;
        match (any(State::PfnMapped), any(State::Outside)) {
            (true, _) => Some(Reason::NotOnThisKernel(
                "the page map does not show the pages of device mappings (VM_PFNMAP)".to_owned(),
            )),
            (_, true) => Some(Reason::NotApplicable("the page map ends before this region")),
            _ => None,
        }
    }

    /// The sums of a target without a page map.
    fn without_page_map(reason: &Reason) -> Self {
        let unknown = || Err(reason.clone());
        RegionStats {
            present: 0,
            zero: unknown(),
            rss: unknown(),
            uncertain: None,
            swapped: unknown(),
            shared: unknown(),
            shared_with_pmdb: 0,
            private: unknown(),
            pss: unknown(),
            average: false,
            huge: unknown(),
            folios: Err(reason.clone()),
            states: StateCounts::default(),
            missing: Some(reason.clone()),
        }
    }
}

/// The memory of regions, one after the other. Dropping it ends what is under way.
#[must_use]
pub struct RegionSweep {
    space: AddressSpace,
    need: Evidence,
    wanted: Evidence,
    pages: Sweep,
    /// The filter of the pages that are added up, and what it leaves undecided; all are if absent.
    chosen: Option<(Question, Selection)>,
    /// The region that is being added up.
    current: Option<(usize, RegionTally)>,
    /// A region that has been added up, after those of `missing` that are before it.
    done: Option<(usize, RegionTally)>,
    /// Regions of which pages are unknown, in order, and why.
    missing: VecDeque<(usize, Reason)>,
}

impl AddressSpace {
    /// The memory of each region in `ranges` (in order, disjoint), or of its part there. [`Evidence::COUNTS`] gives
    /// `shared`, `private` and `pss`, [`Evidence::HUGE`] gives `huge`, [`Evidence::ORDER`] gives `folios`; a fact not
    /// in `need` is unknown. Where only flags show the zero page, `zero` and `rss` need [`Evidence::KINDS`]. Without
    /// the right to read map counts, `shared` and `private` come from bit 56 where it is reliable.
    pub fn region_stats(&self, ranges: &[AddressRange], need: Evidence) -> RegionSweep {
        self.stats_of_pages(ranges, need, None)
    }

    /// The same of the pages that a filter keeps.
    pub(crate) fn stats_of_pages(
        &self,
        ranges: &[AddressRange],
        need: Evidence,
        filter: Option<&Filter>,
    ) -> RegionSweep {
        let available = self.availability();
        let mut wanted = need & (Evidence::COUNTS | Evidence::HUGE | Evidence::ORDER) | Evidence::KINDS;
        if need.contains(Evidence::COUNTS) && available.counts.is_err() {
            wanted |= Evidence::HUGE;
        }
        let counts_are_exact = !need.contains(Evidence::COUNTS) || self.has_exact_counts();
        let zeros_in_scan = !need.contains(Evidence::KINDS) || available.categories.contains(Categories::ZERO);
        if !counts_are_exact || !zeros_in_scan {
            // Flags tell which map counts are averages, and which pages are the zero page where no scan does.
            wanted |= Evidence::FLAGS;
        }
        let wanted = self.obtainable(wanted);
        // Where bit 56 is reliable, a page with it set has a map count of 1: map counts are read only for other pages.
        // Flags, which tell averages and folios, are read for all.
        let is_unknown =
            Filter::new(Evidence::ENTRIES, |page, _| page.huge != Some(false) || page.exclusive() != Some(true));
        let question = if let Some(filter) = filter {
            Question::of_kept(filter, wanted)
        } else if wanted.intersects(Evidence::FLAGS | Evidence::ORDER) {
            Question::from(wanted)
        } else {
            Question::of_kept(&is_unknown, wanted)
        };
        let (known, missing) = self.known_parts(ranges);
        let chosen = filter.map(|_| (question.clone(), Selection::default()));
        let pages = self.pages(&known, question);
        RegionSweep { space: self.clone(), need, wanted, pages, chosen, current: None, done: None, missing }
    }

    /// The memory of one region, and whether it changed during the read. There is none if no page of it was read.
    ///
    /// # Errors
    /// Those of [`Sweep::next`].
    #[cfg(feature = "cli")]
    pub(crate) fn stats_of(
        &self,
        viewed: &ViewedRegion,
        need: Evidence,
        budget: Budget,
    ) -> Result<(Option<RegionStats>, bool)> {
        let mut regions = self.region_stats(&[viewed.range()], need).with_budget(budget);
        let mut stats = None;
        while let Some((_, last)) = regions.next()? {
            stats = Some(last);
        }
        Ok((stats, !regions.changed_ranges().is_empty()))
    }

    /// The parts of `ranges` in regions whose pages are known there, and the other regions.
    fn known_parts(&self, ranges: &[AddressRange]) -> (Vec<AddressRange>, VecDeque<(usize, Reason)>) {
        let process = &self.target().process;
        let (mut known, mut missing) = (Vec::new(), VecDeque::new());
        for range in ranges {
            let from = self.region_from(0, range.start());
            let regions = self.viewed_regions().iter().enumerate().skip(from);
            let parts = regions.map_while(|(index, viewed)| Some((index, viewed.range().intersection(*range)?)));
            for (index, part) in parts {
                match process.require_entries(part) {
                    Ok(()) => known.push(part),
                    Err(error) => missing.push_back((index, error.into())),
                }
            }
        }
        (known, missing)
    }
}

impl RegionSweep {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        RegionSweep { pages: self.pages.with_budget(budget), ..self }
    }

    /// The next region; `None` after the last one.
    ///
    /// # Errors
    /// Those of [`Sweep::next`].
    pub fn next(&mut self) -> Result<Option<(&ViewedRegion, RegionStats)>> {
        self.next_watched(&mut |_| {})
    }

    /// The same. Calls `look` with the number of the next pages that were looked at.
    pub(crate) fn next_watched(&mut self, look: &mut dyn FnMut(u64)) -> Result<Option<(&ViewedRegion, RegionStats)>> {
        let next = self.next_index(look)?;
        Ok(next.and_then(|(index, stats)| Some((self.space.viewed_regions().get(index)?, stats))))
    }

    /// The same, with the index of the region among [`AddressSpace::viewed_regions`].
    pub(super) fn next_index(&mut self, look: &mut dyn FnMut(u64)) -> Result<Option<(usize, RegionStats)>> {
        while self.done.is_none()
            && let Some(chunk) = self.pages.next()?
        {
            look(chunk.pages);
            let Some(index) = chunk.region_index else {
                continue;
            };
            if self.current.as_ref().is_none_or(|(last, _)| *last != index) {
                self.done = self.current.replace((index, RegionTally::new(&self.space, self.need, self.wanted)));
            }
            match (&mut self.current, &mut self.chosen) {
                (Some((_, tally)), Some((question, selection))) => {
                    selection.matching_pages(chunk, question).for_each(|page| tally.add(&page));
                }
                (Some((_, tally)), None) => chunk.pages().for_each(|page| tally.add(&page)),
                (None, _) => {}
            }
        }
        self.done = self.done.take().or_else(|| self.current.take());
        let next = self.done.as_ref().map(|(index, _)| *index);
        if self.missing.front().is_some_and(|(index, _)| next.is_none_or(|next| *index < next))
            && let Some((index, reason)) = self.missing.pop_front()
        {
            return Ok(Some((index, RegionStats::without_page_map(&reason))));
        }
        let Some((index, tally)) = self.done.take() else {
            return Ok(None);
        };
        let viewed = self.space.viewed_regions().get(index);
        let stats = viewed.map(|viewed| (index, tally.stats(&self.space, viewed, self.need, self.wanted)));
        self.space.check()?;
        Ok(stats)
    }

    /// What the filter left undecided so far.
    #[cfg(feature = "cli")]
    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.chosen.as_ref().map(|(_, selection)| selection)
    }

    /// Regions that changed during the sweep, once it has ended.
    pub fn changed_ranges(&self) -> &[AddressRange] {
        self.pages.changed_ranges()
    }
}

/// Fraction bits of a sum of shares (PSS_SHIFT in fs/proc/task_mmu.c). Each division is truncated to as many bits as in
/// the kernel, so that the sums are equal.
const PSS_SHIFT: u32 = 12;

/// The pages of a region added up so far, and the bytes of present ones.
struct RegionTally {
    totals: Totals,
    uncertain: Option<StateSet>,
    large: FolioTotals,
    /// Whether map counts are of single pages; `None` if unknown.
    exact: Option<bool>,
    zero: u64,
    shared: u64,
    shared_with_pmdb: u64,
    private: u64,
    /// Not known whether shared or private.
    unknown: u64,
    /// Of unknown kind: perhaps the zero page.
    unknown_kind: u64,
    /// In units of 2^-12 bytes.
    pss: u64,
    /// Without a map count.
    uncounted: u64,
    average: bool,
    huge: u64,
    /// Present bytes that a PMD may map or not: it is unknown.
    unscanned: u64,
}

impl RegionTally {
    fn new(space: &AddressSpace, need: Evidence, wanted: Evidence) -> RegionTally {
        RegionTally {
            totals: Totals::new(space.page_size(), wanted),
            uncertain: None,
            large: FolioTotals::new(space.page_size()),
            exact: if need.contains(Evidence::COUNTS) { space.target().machine.has_exact_map_counts() } else { None },
            zero: 0,
            shared: 0,
            shared_with_pmdb: 0,
            private: 0,
            unknown: 0,
            unknown_kind: 0,
            pss: 0,
            uncounted: 0,
            average: false,
            huge: 0,
            unscanned: 0,
        }
    }

    #[inline]
    fn add(&mut self, page: &Page) {
        self.totals.add(page);
        self.uncertain = self.uncertain.or(page.states.if_uncertain());
        if page.state() != State::Present {
            return;
        }
        let size = self.totals.size();
        let bytes = page.bytes(size);
        match page.huge {
            Some(true) => self.huge += bytes,
            None if page.kind == Some(Kind::Hugetlb) => self.huge += bytes,
            None => self.unscanned += bytes,
            Some(false) => {}
        }
        if page.is_zero() {
            self.zero += bytes;
            return;
        }
        self.large.add(page);
        // Flags exclude the zero page, though not a merged page.
        if page.kind.is_none() && page.flags.is_none() {
            self.unknown_kind += bytes;
        }
        self.average |= page.count_is_average;
        let private = page.is_private(self.exact);
        match private {
            Some(true) => self.private += bytes,
            Some(false) => {
                self.shared += bytes;
                if page.is_shared_with_pmdb() {
                    self.shared_with_pmdb += bytes;
                }
            }
            None => self.unknown += bytes,
        }
        match page.map_count.or((private == Some(true)).then_some(1)) {
            Some(count) => {
                let one = (size.bytes() << PSS_SHIFT) / count.max(1);
                self.pss = self.pss.saturating_add(one.saturating_mul(page.pages));
            }
            None => self.uncounted += bytes,
        }
    }

    /// The stats, with a reason for each that was not in `need` or could not be obtained from what was `read`.
    fn stats(&self, space: &AddressSpace, viewed: &ViewedRegion, need: Evidence, read: Evidence) -> RegionStats {
        let available = space.availability();
        let not_asked = || Reason::NotApplicable("not looked at");
        let known = |bytes: u64, unknown: u64| match (need.contains(Evidence::COUNTS), unknown) {
            (false, _) => Err(not_asked()),
            (true, 0) => Ok(bytes),
            (true, _) => Err(match (&available.counts, self.average) {
                (Err(reason), _) => reason.clone(),
                (Ok(()), true) => Reason::NotOnThisKernel(
                    "pmdb cannot determine whether map counts here are averages over large folios".into(),
                ),
                (Ok(()), false) => Reason::words_hidden(),
            }),
        };
        let bytes = |state| self.totals.state(state) << space.page_size().shift();
        let present = bytes(State::Present);
        let zero = match (self.unknown_kind, &available.flags) {
            (0, _) => Ok(self.zero),
            (_, Err(reason)) => Err(reason.clone()),
            (_, Ok(())) if !read.contains(Evidence::FLAGS) => Err(not_asked()),
            (_, Ok(())) => Err(Reason::words_hidden()),
        };
        RegionStats {
            present,
            rss: viewed.is_in_rss().and_then(|()| Ok(present.saturating_sub(zero.clone()?))),
            zero,
            uncertain: self.uncertain,
            swapped: if self.totals.state(State::Untouched) > 0 && space.hides_swapped(viewed) {
                Err(swap_hidden("use `region ADDR full`"))
            } else {
                Ok(bytes(State::Swapped))
            },
            shared: known(self.shared, self.unknown),
            shared_with_pmdb: self.shared_with_pmdb,
            private: known(self.private, self.unknown),
            pss: viewed.is_in_rss().and_then(|()| known(self.pss >> PSS_SHIFT, self.uncounted)),
            average: self.average,
            huge: match (need.contains(Evidence::HUGE), self.unscanned) {
                (false, _) => Err(not_asked()),
                (true, 0) => Ok(self.huge),
                (true, _) if space.has_no_huge(viewed) => Ok(0),
                (true, _) => Err(no_scan()),
            },
            folios: match (need.contains(Evidence::ORDER), &available.flags) {
                (false, _) => Err(not_asked()),
                (true, Ok(())) => Ok(self.large.finish()),
                (true, Err(reason)) => Err(reason.clone()),
            },
            states: self.totals.states(),
            missing: None,
        }
    }
}
