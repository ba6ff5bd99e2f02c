//! Neighbours put together as they stream by: rows of `walk`, physically contiguous runs of `translate`, and the totals
//! that close a walk. And pages counted by what they have in common: `walk … by KEY`.

use super::fact::{Answer, FactReader};
use super::page::{Evidence, Page};
use super::states::StateSet;
use crate::kernel::{
    AddressRange, FrameNumber, Key, Kind, PageFlags, PageSize, PhysicalAddress, State, VirtualAddress,
};
use std::collections::{BTreeMap, HashMap};

/// Neighbouring pages of one region with the same state, kind, flags, map count, order and size of mapping, and with
/// consecutive frames or with the same ones over and over, as the zero pages and merged pages have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PageRow {
    /// The pages; flags are those that all of them have.
    pub page: Page,
    /// Index of the region among [`AddressSpace::viewed_regions`](super::AddressSpace::viewed_regions); `None` for
    /// pages in no region.
    pub region: Option<usize>,
    /// The number of different frames, if those of the first pages repeat; `None` if each page has its own.
    pub frames: Option<u64>,
}

/// Puts neighbouring pages together. Holds one row.
pub trait Neighbours {
    /// What pages become.
    type Row;

    /// Whether each row is one physically contiguous run.
    const ARE_RUNS: bool;

    /// For pages of `size` bytes.
    fn new(size: PageSize) -> Self;

    /// Takes the next page, and the index of its region. Returns the finished row if the page starts a new one.
    fn push(&mut self, page: &Page, region: Option<usize>) -> Option<Self::Row>;

    /// The last row.
    fn finish(&mut self) -> Option<Self::Row>;

    /// The size of a row: whether it has frames, if rows are runs of frames, and its pages.
    fn size(row: &Self::Row) -> (bool, u64);
}

/// Makes [`PageRow`]s of pages in address order.
#[derive(Debug)]
pub struct PageRows {
    size: PageSize,
    row: Option<PageRow>,
}

impl Neighbours for PageRows {
    type Row = PageRow;
    const ARE_RUNS: bool = false;

    fn new(size: PageSize) -> Self {
        PageRows { size, row: None }
    }

    fn size(row: &PageRow) -> (bool, u64) {
        (false, row.page.pages)
    }

    #[inline]
    fn push(&mut self, page: &Page, region: Option<usize>) -> Option<PageRow> {
        let next = PageRow { page: *page, region, frames: None };
        match &mut self.row {
            Some(row) if joins(row, &next, self.size) => {
                row.frames = row.frames_with(page);
                row.page.pages += page.pages;
                row.page.flags = row.page.flags.zip(page.flags).map(|(a, b)| a & b);
                None
            }
            row => row.replace(next),
        }
    }

    fn finish(&mut self) -> Option<PageRow> {
        self.row.take()
    }
}

/// Whether `next` starts where `row` ends, and is the same.
fn joins(row: &PageRow, next: &PageRow, size: PageSize) -> bool {
    /// A head and its tails are one folio.
    fn of_folio(flags: Option<PageFlags>) -> Option<PageFlags> {
        flags.map(|flags| flags | PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL)
    }
    let (a, b) = (&row.page, &next.page);
    row.region == next.region
        && a.end(size) == b.address
        && a.states == b.states
        && a.kind == b.kind
        && a.huge == b.huge
        && a.map_count == b.map_count
        && a.own_mappings == b.own_mappings
        && a.order == b.order
        && of_folio(a.flags) == of_folio(b.flags)
        && row.follows(b)
}

impl PageRow {
    /// Whether the frames of `next` are those that come after the row's.
    fn follows(&self, next: &Page) -> bool {
        match (self.page.frame(), next.frame(), self.frames) {
            (Some(first), Some(second), None) => {
                first.checked_add(self.page.pages) == Some(second) || self.begins_again(next)
            }
            (Some(first), Some(second), Some(frames)) => {
                let done = self.page.pages % frames;
                first.checked_add(done) == Some(second) && done + next.pages <= frames
            }
            (None, None, _) => true,
            _ => false,
        }
    }

    /// Whether `next` has the first frames of the row, and no others.
    fn begins_again(&self, next: &Page) -> bool {
        self.page.frame() == next.frame() && next.frame().is_some() && next.pages <= self.page.pages
    }

    /// How many frames the row has with `next`, which joins it.
    fn frames_with(&self, next: &Page) -> Option<u64> {
        self.frames.or_else(|| self.begins_again(next).then_some(self.page.pages))
    }
}

/// Neighbouring pages with consecutive frames, or, without visible frames, in the same state. Neighbours that all map
/// the zero page are together, although they are no run: see [`PhysicalRun::is_zero`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PhysicalRun {
    /// The first byte.
    pub start: VirtualAddress,
    /// Pages in it.
    pub pages: u64,
    /// The first frame, if there is one and it is not hidden.
    pub frame: Option<FrameNumber>,
    /// Their states.
    pub states: StateSet,
    /// Their kind, if it is the same for all.
    pub kind: Option<Kind>,
}

impl PhysicalRun {
    /// Whether all its pages map the zero page: they are not contiguous physically, and [`Totals`] counts no run.
    pub fn is_zero(&self) -> bool {
        self.states.likeliest() == State::Present && matches!(self.kind, Some(Kind::Zero | Kind::HugeZero))
    }

    /// The address after the last page; the last address there is when they reach the very end.
    pub fn end(&self, size: PageSize) -> VirtualAddress {
        let bytes = self.pages.saturating_mul(size.bytes());
        VirtualAddress::new(self.start.get().saturating_add(bytes))
    }
}

/// Makes [`PhysicalRun`]s of pages in address order, across regions.
#[derive(Debug)]
pub struct PhysicalRuns {
    size: PageSize,
    /// The run as one page, and whether its kind is that of all.
    run: Option<(Page, bool)>,
}

impl Neighbours for PhysicalRuns {
    type Row = PhysicalRun;
    const ARE_RUNS: bool = true;

    fn new(size: PageSize) -> Self {
        PhysicalRuns { size, run: None }
    }

    fn size(run: &PhysicalRun) -> (bool, u64) {
        (run.states.likeliest() == State::Present, run.pages)
    }

    #[inline]
    fn push(&mut self, page: &Page, _: Option<usize>) -> Option<PhysicalRun> {
        match &mut self.run {
            Some((run, alike))
                if run.end(self.size) == page.address
                    && run.states == page.states
                    && run.is_zero() == page.is_zero()
                    && (run.frames_go_on(page) || run.is_zero() && run.kind == page.kind) =>
            {
                run.pages += page.pages;
                *alike &= run.kind == page.kind;
                None
            }
            run => run.replace((*page, true)).map(finish_run),
        }
    }

    fn finish(&mut self) -> Option<PhysicalRun> {
        self.run.take().map(finish_run)
    }
}

fn finish_run((page, alike): (Page, bool)) -> PhysicalRun {
    PhysicalRun {
        start: page.address,
        pages: page.pages,
        frame: page.frame(),
        states: page.states,
        kind: page.kind.filter(|_| alike),
    }
}

/// Counts of pages, which are added in address order.
#[derive(Debug)]
pub struct Totals {
    /// Pages.
    pub pages: u64,
    size: PageSize,
    states: StateCounts,
    /// `None` when frames are hidden or not needed.
    physical: Option<RunCounts>,
}

/// Counts of physically contiguous runs.
#[derive(Default, Debug)]
struct RunCounts {
    runs: u64,
    /// Pages of the longest.
    longest: u64,
    /// Where that begins.
    longest_at: VirtualAddress,
    /// The first and the last frame of all runs.
    frames: Option<(u64, u64)>,
    /// Zero pages, which are in no run.
    zeros: u64,
    /// Pages in runs that may be zero pages.
    perhaps_zeros: u64,
    /// Where the last one begins.
    last_at: VirtualAddress,
    /// Pages of the last one so far.
    last: u64,
    /// The page index and the frame with which the last one would go on.
    next: Option<(u64, u64)>,
}

impl Totals {
    /// For pages of `size` bytes, of which `need` is known.
    pub fn new(size: PageSize, need: Evidence) -> Self {
        Totals { pages: 0, size, states: StateCounts::default(), physical: need.has_entries().then(RunCounts::default) }
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

    /// Physically contiguous runs, without those of the zero page ([`Evidence::KINDS`] tells it); `None` when frames
    /// are hidden, and when only states are found out.
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

    /// The physical addresses of the first and the last byte of all runs; `None` when there is none, and as for
    /// [`Totals::runs`].
    pub fn physical_extent(&self) -> Option<(PhysicalAddress, PhysicalAddress)> {
        let (lowest, highest) = self.physical.as_ref()?.frames?;
        let start_of = |frame| FrameNumber::new(frame).physical(self.size);
        let last_byte = start_of(highest)?.get() | (self.size.bytes() - 1);
        Some((start_of(lowest)?, PhysicalAddress::new(last_byte)))
    }

    /// Pages that map the zero page and so are in no run.
    pub fn zeros(&self) -> u64 {
        self.physical.as_ref().map_or(0, |physical| physical.zeros)
    }

    /// Pages in runs of which it is unknown whether they map the zero page, where their kinds were asked for.
    pub fn perhaps_zeros(&self) -> u64 {
        self.physical.as_ref().map_or(0, |physical| physical.perhaps_zeros)
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

impl RunCounts {
    #[inline]
    fn add(&mut self, page: &Page, size: PageSize) {
        // The zero page is one frame, however often it is mapped, and nobody's memory.
        if page.is_zero() {
            self.zeros += page.pages;
        }
        let Some(frame) = page.frame().filter(|_| !page.is_zero()) else {
            return;
        };
        let may_be_zero = page.kind.is_none() && page.flags.is_none();
        if may_be_zero && !page.entry.is_exclusive() && !page.entry.is_file_or_shared() {
            self.perhaps_zeros += page.pages;
        }
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
        let (lowest, highest) = self.frames.unwrap_or((frame, frame));
        self.frames = Some((lowest.min(frame), highest.max(frame + page.pages.saturating_sub(1))));
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

/// What the pages of a group have in common, by one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Group {
    /// What is known of each of them.
    Known(Answer),
    /// The average of the map counts of a large folio: it is the count of no page.
    Average(u64),
    /// Index of the region among [`AddressSpace::viewed_regions`](super::AddressSpace::viewed_regions); `None` for
    /// pages in no region.
    Region(Option<usize>),
    /// The number that the caller has given the symbol in which the page begins.
    Symbol(Option<u32>),
}

/// The group by one key, or by two.
pub type GroupKeys = (Group, Option<Group>);

/// Pages counted by group.
#[non_exhaustive]
pub struct GroupCounts {
    /// What they are grouped by.
    pub by: Key,
    /// The second key, which splits each group.
    pub and: Option<Key>,
    /// What read the facts of the pages.
    pub reader: FactReader,
    /// The pages of each group: regions by address, others with the most pages first.
    pub pages: Vec<(GroupKeys, u64)>,
}

/// Counts pages by group. Runs of frames are a stream, not a group: see [`PhysicalRuns`](super::PhysicalRuns).
pub struct Groups {
    by: Key,
    and: Option<Key>,
    reader: FactReader,
    pages: HashMap<GroupKeys, u64>,
    /// The group of the last page: mostly the next has the same.
    last: Option<(GroupKeys, u64)>,
}

impl Groups {
    /// Without pages yet.
    pub fn new(by: Key, reader: FactReader) -> Self {
        Groups { by, and: None, reader, pages: HashMap::new(), last: None }
    }

    /// Splits each group by a second key.
    #[must_use]
    pub fn and(self, and: Option<Key>) -> Self {
        Groups { and, ..self }
    }

    /// Takes a page of the region with that index.
    #[inline]
    pub fn add(&mut self, page: &Page, region: Option<usize>) {
        self.add_named(page, region, None);
    }

    /// The same of a page that begins in the symbol with that number.
    #[inline]
    pub fn add_named(&mut self, page: &Page, region: Option<usize>, symbol: Option<u32>) {
        let of = |key| self.reader.group(key, page, region, symbol);
        let key = (of(self.by), self.and.map(of));
        match &mut self.last {
            Some((last, pages)) if *last == key => *pages = pages.saturating_add(page.pages),
            last => {
                if let Some((key, pages)) = last.replace((key, page.pages)) {
                    self.sum(key, pages);
                }
            }
        }
    }

    fn sum(&mut self, key: GroupKeys, pages: u64) {
        let sum = self.pages.entry(key).or_default();
        *sum = sum.saturating_add(pages);
    }

    /// What was counted.
    pub fn finish(mut self) -> GroupCounts {
        if let Some((key, pages)) = self.last.take() {
            self.sum(key, pages);
        }
        let mut pages: Vec<(GroupKeys, u64)> = self.pages.into_iter().collect();
        pages.sort_by_cached_key(|&((first, second), pages)| {
            let region = match first {
                Group::Region(region) => Some(region),
                _ => None,
            };
            (region, u64::MAX - pages, first, second)
        });
        GroupCounts { by: self.by, and: self.and, reader: self.reader, pages }
    }
}

impl FactReader {
    /// The group of a page by `key`.
    #[inline]
    pub fn group(&self, key: Key, page: &Page, region: Option<usize>, symbol: Option<u32>) -> Group {
        match key {
            Key::Page(field) => match self.average(field, page) {
                Some(average) => Group::Average(average),
                None => Group::Known(self.answer(field, page, self.region(region))),
            },
            Key::Symbol => Group::Symbol(symbol),
            Key::Region | Key::Mapping | Key::Run | Key::Change => Group::Region(region),
        }
    }
}
