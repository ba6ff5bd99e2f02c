//! The sweep that makes an account.

use super::super::Result;
use super::super::address_space::AddressSpace;
use super::super::filter::Question;
use super::super::page::{Evidence, Page};
use super::super::region::ViewedRegion;
use super::super::sweep::Sweep;
use super::class::{CountingRules, MapTimes};
use super::frame_counts::FrameCounts;
use super::object_counter::ObjectCounter;
use super::object_regions::has_counted_parts;
use super::objects::MemoryObjects;
use super::overlaps::overlaps;
use super::rests::{FolioRest, RestSearch};
use super::settle::{settle, settle_droppable, settle_locked};
use super::sums::{Account, AccountEntry, Amount};
use super::zeros::ZeroPieces;
use crate::budget::Budget;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Kind, PageFlags, PageSize, State};
use crate::process::Categories;
use crate::report::{AccountClass, AccountMark, Fact, Reason};

/// A step of an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AccountStep<'a> {
    /// The number of pages that were visited.
    pub pages: u64,
    /// Those of the pages that are counted, in address order, each with its entry.
    pub counted: &'a [(Page, AccountEntry)],
    /// The account of a region whose pages are complete, or of its part in the ranges, with the index of the region in
    /// [`AddressSpace::viewed_regions`].
    pub region: Option<(usize, &'a Account)>,
}

/// A sweep that makes the account of ranges, region by region. Dropping it stops the worker threads.
#[must_use]
pub struct Accounting {
    counter: PageCounter,
    /// The sweep over the memory that may be mapped several times; `None` once it is done.
    first: Option<Sweep>,
    /// How often the process maps each frame that it may map several times.
    times: Option<FrameCounts>,
    pages: Sweep,
    current: Option<(usize, Account)>,
    /// The region that the last step completed, and its account.
    done: Option<(usize, Account)>,
    /// The number of pages of the ranges.
    total: u64,
}

/// Counts pages in an account.
struct PageCounter {
    space: AddressSpace,
    rules: CountingRules,
    budget: Budget,
    /// The ranges that may be mapped several times.
    overlaps: Vec<AddressRange>,
    zeros: Option<ZeroPieces>,
    /// The counted pages of the last step, if `keeps_pages`.
    counted: Vec<(Page, AccountEntry)>,
    /// Whether the counted pages are kept: a page is large, and sums alone need none.
    keeps_pages: bool,
    /// The counted pages whose frames may have several mappings in the process.
    repeated: RepeatedPages,
    objects: ObjectCounter,
    rests: RestSearch,
    is_average: bool,
}

/// Pages whose frames may have several mappings in the process.
#[derive(Default)]
struct RepeatedPages {
    frames: FrameCounts,
    pages: u64,
}

impl RepeatedPages {
    fn add_pages(&mut self, page: &Page) -> Result<()> {
        if let Some(frame) = page.frame() {
            self.frames.add(frame, page.pages)?;
            self.pages += page.pages;
        }
        Ok(())
    }
}

impl AddressSpace {
    /// Begins the account of `ranges`: the classes of the memory that Rss counts. The ranges are in order and disjoint.
    /// `more` is evidence of each page that the caller needs. With `content`, huge pages are read to find zero-filled
    /// subpages, without a page fault. The space must have all regions ([`AddressSpace::of`]).
    pub fn account(&self, ranges: &[AddressRange], more: Evidence, content: bool) -> Accounting {
        self.account_beside(None, ranges, more, content)
    }

    /// Begins an account as [`account`](Self::account) does, with the current sums of the kernel (smaps_rollup). If
    /// these show that no page is merged and none lazily freed, the flags of plain memory are not read.
    pub fn account_beside(
        &self,
        rollup: Option<&Smaps>,
        ranges: &[AddressRange],
        more: Evidence,
        content: bool,
    ) -> Accounting {
        let rests = RestSearch::of(&self.target().machine);
        let is_plain = more.is_empty() && !content && !rests.needs_frames();
        let frames = if is_plain { Evidence::ANY_FRAME } else { Evidence::FRAMES };
        let need = Evidence::KINDS | frames | Evidence::FLAGS | Evidence::COUNTS | Evidence::HUGE | more;
        let may_lock = self.target().process.locked_bytes() != Some(0);
        let are_none = |field| rollup.is_some_and(|rollup| rollup.field(field) == Some(0));
        // `LazyFree` is in smaps since Linux 4.12, `KSM` since Linux 6.6.
        let none_freed = are_none("LazyFree") || self.target().machine.lazily_freed_pages() == Some(0);
        let flags_tell_nothing = none_freed && (are_none("KSM") || !self.is_merging()) && !may_lock;
        let is_asked = more.intersects(Evidence::FLAGS | Evidence::ORDER);
        let scanned = self.availability().categories.contains(Categories::ZERO | Categories::HUGE);
        let spared = if flags_tell_nothing && scanned && !is_asked { Evidence::FLAGS } else { Evidence::empty() };
        let overlaps = overlaps(self.viewed_regions());
        let hides_frames = self.availability().frames.is_err();
        let first = (!hides_frames && !overlaps.is_empty())
            .then(|| self.pages(&overlaps, self.obtainable(Evidence::FRAMES | Evidence::HUGE | Evidence::ENTRIES)));
        let mut objects = ObjectCounter::default();
        objects.enter(self);
        let counter = PageCounter {
            space: self.clone(),
            rules: CountingRules {
                exact: self.target().machine.has_exact_map_counts(),
                tails_show_flags: self.kernel() >= (6, 10),
                have_counts_failed: self.kernel() >= (6, 9),
                may_lock,
                none_freed: !spared.is_empty(),
            },
            budget: Budget::unlimited(),
            overlaps,
            zeros: content.then(ZeroPieces::default),
            counted: Vec::new(),
            keeps_pages: true,
            repeated: RepeatedPages::default(),
            objects,
            rests,
            is_average: false,
        };
        let question = Question::from(self.obtainable(need) | Evidence::ENTRIES).sparing(spared);
        Accounting {
            counter,
            first,
            times: (!hides_frames).then(FrameCounts::default),
            pages: self.pages(ranges, question),
            total: ranges.iter().map(|range| range.pages(self.page_size())).sum(),
            current: None,
            done: None,
        }
    }
}

impl Accounting {
    /// Limits the sweep by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Accounting {
            pages: self.pages.with_budget(budget.clone()),
            first: self.first.map(|first| first.with_budget(budget.clone())),
            counter: PageCounter { budget, ..self.counter },
            ..self
        }
    }

    /// Returns the next step; `None` after the last one.
    ///
    /// # Errors
    /// Fails like [`Sweep::next`].
    pub fn next(&mut self) -> Result<Option<AccountStep<'_>>> {
        self.counter.counted.clear();
        self.done = None;
        if let (Some(first), Some(times)) = (&mut self.first, &mut self.times) {
            match first.next()? {
                // The second sweep counts these pages.
                Some(chunk) => {
                    for page in chunk.pages().filter(may_be_repeated) {
                        page.frame().map_or(Ok(()), |frame| times.add(frame, page.pages))?;
                    }
                    return Ok(Some(self.step(0)));
                }
                None => self.first = None,
            }
        }
        let Some(chunk) = self.pages.next()? else {
            self.done = self.current.take();
            self.done.as_ref().map_or(Ok(()), |(index, _)| self.counter.look_for_rests(*index))?;
            self.settle_done()?;
            return Ok(self.done.is_some().then(|| self.step(0)));
        };
        let pages = chunk.pages;
        let (Some(index), Some(viewed)) = (chunk.region_index, chunk.region) else {
            return Ok(Some(self.step(pages)));
        };
        self.done = self.current.take_if(|(last, _)| *last != index);
        if let Some(owner) = self.done.as_ref().map(|(done, _)| *done).or(self.counter.rests.is_full().then_some(index))
        {
            self.counter.look_for_rests(owner)?;
        }
        let (_, account) = self.current.get_or_insert_with(|| (index, Account::default()));
        let maps_object = has_counted_parts(viewed);
        let mut chunk_pages = chunk.pages();
        // A `for` loop would copy each page.
        while let Some(page) = &chunk_pages.next() {
            if maps_object {
                self.counter.objects.add_page(&viewed.region, page, self.counter.space.page_size());
            }
            self.counter.add(page, viewed, self.times.as_ref(), account)?;
        }
        self.settle_done()?;
        Ok(Some(self.step(pages)))
    }

    /// The same without the pages that count in each step.
    pub(super) fn without_pages(mut self) -> Self {
        self.counter.keeps_pages = false;
        self
    }

    fn step(&self, pages: u64) -> AccountStep<'_> {
        AccountStep {
            pages,
            counted: &self.counter.counted,
            region: self.done.as_ref().map(|(index, account)| (*index, account)),
        }
    }

    /// Settles with smaps what the pages of the completed region left unknown.
    fn settle_done(&mut self) -> Result<()> {
        if let Some((index, account)) = &mut self.done
            && needs_settling(account)
            && let Some(viewed) = self.counter.space.viewed_regions().get(*index)
        {
            let smaps = self.counter.space.smaps_within(&mut self.counter.budget).unwrap_or_default();
            let of_region = Smaps::at(smaps, viewed.range().start()).filter(|one| one.range == viewed.range());
            if let Some(smaps) = of_region {
                settle(account, smaps, viewed, self.counter.space.counts_zeros_as_merged());
            }
            settle_locked(account, of_region);
            settle_droppable(account, of_region);
        }
        Ok(self.counter.budget.check()?)
    }

    /// Returns the bytes of the different frames in `total`, the sum of all regions: frames with several mappings in
    /// the process count once. Pages that are elsewhere have no frame.
    pub fn distinct(&self, total: &Account) -> Fact<u64> {
        self.counter.space.availability().frames.clone()?;
        let size = self.counter.space.page_size().bytes();
        let again = (self.counter.repeated.pages - self.counter.repeated.frames.distinct()).saturating_mul(size);
        Ok(total.total().saturating_sub(total.of(AccountClass::Elsewhere)).saturating_sub(again))
    }

    /// Returns the unmapped rests of the large anonymous folios that the process maps in part. It is complete after the
    /// last step.
    pub fn rests(&self) -> Fact<Vec<FolioRest>> {
        self.counter.space.availability().frames.clone()?;
        self.counter.rests.rests(&self.counter.space.target().machine)
    }

    /// Adds deleted files on disks to the [objects](Self::objects) if `open` is set. These files are opened.
    pub fn opening_deleted_files(mut self, open: bool) -> Self {
        if open {
            self.counter.objects.with_deleted_files();
        }
        self
    }

    /// Returns the objects in memory that the process maps or has a descriptor of, and that have more pages than its
    /// page tables. It is called once, after the last step of an account of the whole process. Each object costs one
    /// step of the [budget](Self::with_budget).
    ///
    /// # Errors
    /// Fails if the budget is used up.
    pub fn objects(&mut self) -> Result<MemoryObjects> {
        let PageCounter { objects, space, budget, .. } = &mut self.counter;
        let mut objects = std::mem::take(objects);
        objects.add_process(space, budget)?;
        Ok(objects.finish(&space.target().machine))
    }

    /// Returns why a mark is unknown for some pages.
    pub fn why_unknown(&self, mark: AccountMark) -> Reason {
        let available = self.counter.space.availability();
        let refused = match mark {
            AccountMark::Huge => Err(super::super::error::no_scan()),
            AccountMark::ToCopy | AccountMark::WithPmdb => available.counts.clone(),
            AccountMark::Several => available.frames.clone(),
            AccountMark::LazilyFreed | AccountMark::Droppable | AccountMark::Locked | AccountMark::Dirty => {
                available.flags.clone()
            }
            AccountMark::Zeros => Err(Reason::NotApplicable("contents were not looked at")),
        };
        refused.err().unwrap_or_else(|| match mark {
            AccountMark::LazilyFreed | AccountMark::Droppable | AccountMark::Locked | AccountMark::Dirty
                if !self.counter.rules.tails_show_flags =>
            {
                Reason::NotOnThisKernel("before Linux 6.10 only the first page of a large folio shows its flags".into())
            }
            AccountMark::Locked => Reason::NotApplicable("smaps does not show whether the region is locked"),
            _ => Reason::words_hidden(),
        })
    }

    /// Returns the address space whose pages are counted.
    pub fn space(&self) -> &AddressSpace {
        &self.counter.space
    }

    /// Returns the number of pages of the ranges.
    pub(super) fn total_pages(&self) -> u64 {
        self.total
    }

    /// Returns whether a map count was an average over a large folio.
    pub fn is_average(&self) -> bool {
        self.counter.is_average
    }

    /// Returns the ranges of regions that changed during the sweep. It is complete after the last step.
    pub fn changed_ranges(&self) -> &[AddressRange] {
        self.pages.changed_ranges()
    }
}

impl PageCounter {
    /// Searches the frames of a region for folios that are mapped in part.
    fn look_for_rests(&mut self, index: usize) -> Result<()> {
        self.rests.search(index, &self.space.target().machine, &mut self.budget)
    }

    /// Counts equal neighbouring pages. `times` is how often the process maps frames.
    fn add(
        &mut self,
        page: &Page,
        viewed: &ViewedRegion,
        times: Option<&FrameCounts>,
        account: &mut Account,
    ) -> Result<()> {
        self.is_average |= page.count_is_average;
        if matches!(page.kind, Some(Kind::Anonymous | Kind::PrivateCopy))
            && page.state() == State::Present
            && page.huge != Some(true)
            && page.flags.is_none_or(PageFlags::is_in_large_folio)
            && let Some(frame) = page.frame()
        {
            self.rests.add(frame, page.pages);
        }
        let size = self.space.page_size();
        let is_object = matches!(page.kind, Some(Kind::File | Kind::Shmem | Kind::DriverMemory | Kind::Secret));
        let is_repeated = is_object && may_be_repeated(page);
        match (times, page.frame()) {
            (Some(times), Some(frame)) if is_repeated => {
                let mut from = 0;
                for (pages, times) in times.runs(frame, page.pages) {
                    let part = Page { pages, ..page.nth(from, size) };
                    from += pages;
                    if times != Some(0) && times != Some(1) {
                        self.repeated.add_pages(&part)?;
                    }
                    let times = times.map_or(MapTimes::Unknown, |times| MapTimes::Known(times.max(1)));
                    self.count(&part, times, viewed, account)?;
                }
            }
            (None, _) if is_repeated => {
                for (part, overlaps) in parts(page, &self.overlaps, size) {
                    let times = if overlaps { MapTimes::Unknown } else { MapTimes::Known(1) };
                    self.count(&part, times, viewed, account)?;
                }
            }
            _ => {
                if page.kind == Some(Kind::Ksm) && !page.entry.is_exclusive() {
                    self.repeated.add_pages(page)?;
                }
                self.count(page, MapTimes::Known(1), viewed, account)?;
            }
        }
        Ok(())
    }

    /// Counts pages whose frames the process maps `times` times.
    fn count(&mut self, page: &Page, times: MapTimes, viewed: &ViewedRegion, account: &mut Account) -> Result<()> {
        let Some(mut counted) = self.rules.count(page, viewed, times) else {
            return Ok(());
        };
        let bytes = page.bytes(self.space.page_size());
        counted.zeros = match (&mut self.zeros, page.huge) {
            _ if counted.class().is_none() => Amount::default(),
            (_, Some(false)) => Amount::default(),
            (Some(zeros), Some(true)) => zeros.of(&self.space, page, &mut self.budget)?,
            _ => Amount { known: 0, unknown: bytes },
        };
        account.add(&counted, bytes);
        if self.keeps_pages {
            self.counted.push((*page, counted));
        }
        Ok(())
    }
}

/// Returns whether the process may map the frame of a present page several times. Bit 56 excludes it, except in huge
/// mappings.
fn may_be_repeated(page: &Page) -> bool {
    page.state() == State::Present && (page.huge != Some(false) || !page.entry.is_exclusive())
}

/// Splits a page at the ends of `ranges`, which are in order. Returns each part and whether it is in a range.
fn parts(page: &Page, ranges: &[AddressRange], size: PageSize) -> Vec<(Page, bool)> {
    let Some(whole) = page.range(size) else {
        return vec![(*page, true)];
    };
    let inside = whole.within(ranges).map(|part| (part, true));
    let mut all: Vec<(AddressRange, bool)> = inside.chain(whole.outside(ranges).map(|part| (part, false))).collect();
    all.sort_unstable_by_key(|(part, _)| part.start());
    let part = |(range, overlaps): (AddressRange, bool)| {
        let index = (range.start().get() - page.address.get()) >> size.shift();
        (Page { pages: range.pages(size), ..page.nth(index, size) }, overlaps)
    };
    all.into_iter().map(part).collect()
}

/// Returns whether smaps may decide classes or marks that are unknown.
fn needs_settling(account: &Account) -> bool {
    use AccountClass::{FileUnclear, PrivateUnclear, ShmemUnclear, Unclear};
    account.of_all(&[PrivateUnclear, ShmemUnclear, FileUnclear, Unclear]) > 0
        || [AccountMark::Dirty, AccountMark::Huge].iter().any(|&mark| account.all_marked(mark).is_none())
        || [AccountMark::Locked, AccountMark::LazilyFreed].iter().any(|&mark| account.all_marked(mark) != Some(0))
}
