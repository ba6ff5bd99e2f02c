//! One comparison of the attached process with others.

use super::records::{Comparison, ComparisonGroup, ComparisonSummary, ComparisonTotal, SharedCounts};
use super::sums::SharedSums;
use crate::budget::Budget;
use crate::command::Error;
use crate::command::counterpart::Counterparts;
use crate::command::named_pages::{PagesOfSymbols, name_among_symbols};
use crate::command::ps::ProcessMemory;
use crate::command::rows::{self, RowLimit, note_hidden_rows};
use crate::command::snapshot::pages_done;
use crate::command::timeline::TimelineBuilder;
use crate::eval::{Origin, Spans};
use crate::inspect::{self, AddressSpace, Evidence, PageRelation, SharedPages, Snapshot};
use crate::kernel::{AddressRange, Key, Name, PageSize, Region, VirtualAddress};
use crate::process::Target;
use crate::render::Sink;
use crate::report::Stopped;
use crate::source::Identity;
use crate::state::DebugState;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What holds for all samples of a comparison.
pub(super) struct ComparisonRound {
    pub target: Arc<Target>,
    pub mine: u32,
    /// The processes that were given; `None` for children.
    pub given: Option<Vec<u32>>,
    pub spans: Option<Spans>,
    pub by: Option<Key>,
    pub cut: Option<RowLimit>,
    /// Whether there are more samples: a process may end between two.
    pub is_over_time: bool,
}

/// The counts of a part of a region.
struct RegionCounts {
    range: AddressRange,
    region: Name,
    counts: SharedCounts,
}

/// What a sample found of one process.
pub(super) struct ComparedProcess {
    pub other: Identity,
    rows: Vec<RegionCounts>,
    groups: Option<BTreeMap<String, SharedCounts>>,
    pub total: SharedCounts,
    /// Whether both have the layout of one program.
    is_forked: bool,
    /// Whether one of the two has ended since.
    is_over: bool,
}

impl ComparedProcess {
    /// Notes that one of the two has ended since the sample: nobody is there to share with, and no write copies.
    pub fn end(&mut self) {
        self.is_over = true;
        let of_groups = self.groups.iter_mut().flat_map(BTreeMap::values_mut);
        let of_rows = self.rows.iter_mut().map(|row| &mut row.counts);
        of_groups.chain(of_rows).chain([&mut self.total]).for_each(|counts| counts.about_to_copy = 0);
    }
}

impl ComparisonRound {
    pub fn page(&self) -> PageSize {
        self.target.process.page()
    }

    /// The processes to compare with now.
    pub fn find_others(&self) -> Result<Vec<u32>, Error> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let all = self.target.machine.process_handles()?.processes;
        Ok(all.iter().filter(|one| one.parent == self.mine).map(|one| one.pid).collect())
    }

    /// Begins a sample: of the attached process, whose address space is given. A timeline gets what it finds.
    pub fn sample<'a>(
        &'a self,
        space: &'a AddressSpace,
        others: &'a [u32],
        mut timeline: Option<&'a mut TimelineBuilder>,
        state: &'a DebugState,
        sink: &mut dyn Sink,
    ) -> Result<ComparedSample<'a>, Error> {
        if let Err(hidden) = space.require(Evidence::FRAMES) {
            let without =
                "without frames: `walk all where present and exclusive by region` in the child shows its copies";
            sink.note(without)?;
            return Err(hidden.into());
        }
        // With a range, only its addresses are compared.
        let is_all = self.spans.as_ref().is_none_or(|spans| *spans.origin() == Origin::All);
        let ranges = match &self.spans {
            Some(spans) if !is_all => spans.ranges().to_vec(),
            _ => space.spans(),
        };
        let symbols = (self.by == Some(Key::Symbol)).then(|| {
            let names = state.symbols.over(&self.target, space.maps());
            PagesOfSymbols::new(names, self.page())
        });
        let here = frames_of(space, ranges.clone(), sink)?;
        let layout = layout(space.maps());
        if let Some(timeline) = &mut timeline {
            // Only there can a write copy.
            let copied = space.maps().filter(|region| region.permissions.write && !region.permissions.shared);
            timeline.begin(space, &copied.flat_map(|region| region.range.within(&ranges)).collect::<Vec<_>>());
        }
        let sums = SharedSums::new(self.page());
        Ok(ComparedSample {
            round: self,
            space,
            others,
            done: 0,
            is_all,
            ranges,
            here,
            layout,
            symbols,
            timeline,
            sums,
        })
    }

    /// Shows the sums where several processes were shown, of which `ended` are not in the sums.
    pub fn show_total(
        &self,
        processes: u64,
        ended: u64,
        counts: SharedCounts,
        sink: &mut dyn Sink,
    ) -> Result<(), Stopped> {
        if processes + ended < 2 {
            return Ok(());
        }
        let page_size = self.page().bytes();
        let in_bytes = counts.in_bytes(page_size);
        sink.emit(&ComparisonTotal { pid: self.mine, processes, ended, page_size, counts, in_bytes })
    }

    /// Notes by what `top` chose the rows that were shown.
    pub fn note_order(&self, sink: &mut dyn Sink) -> Result<(), Stopped> {
        match RowLimit::top(self.cut) {
            Some(_) => sink.note("`top` prefers what was copied, then what is large"),
            None => Ok(()),
        }
    }

    /// Shows the rows of a process, if asked for, and its sums.
    pub fn show(
        &self,
        found: ComparedProcess,
        rows: bool,
        memory: Option<ProcessMemory>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let ComparedProcess { other, rows: regions, groups, total, is_forked, is_over } = found;
        let (page_size, pid) = (self.page().bytes(), other.pid);
        let is_one_of_several = memory.is_some();
        let summary = ComparisonSummary {
            pid: self.mine,
            other: pid,
            process: other.name,
            page_size,
            forked: is_forked,
            ended: is_over,
            memory,
            counts: total,
            in_bytes: total.in_bytes(page_size),
        };
        // Of several processes, it is the heading of the rows.
        if is_one_of_several {
            sink.emit(&summary)?;
        }
        match groups {
            Some(groups) => show_groups((pid, page_size), groups, self.cut, sink)?,
            None if rows => show_rows((pid, page_size), regions, self.cut, sink)?,
            None => {}
        }
        if !is_one_of_several {
            sink.emit(&summary)?;
        }
        Ok(())
    }
}

fn frames_of(space: &AddressSpace, ranges: Vec<AddressRange>, sink: &mut dyn Sink) -> inspect::Result<Snapshot> {
    let began = Instant::now();
    let mut taking = Snapshot::begin(space, ranges, Evidence::FRAMES | Evidence::KINDS, false).within(sink.budget());
    while let Some(progress) = taking.advance()? {
        if began.elapsed() >= rows::LONG_STEP {
            pages_done(progress, sink)?;
        }
    }
    taking.finish()
}

/// A sample of the attached process, which is compared with the others one by one.
pub(super) struct ComparedSample<'a> {
    round: &'a ComparisonRound,
    space: &'a AddressSpace,
    others: &'a [u32],
    /// Of the others, those that were compared.
    done: usize,
    is_all: bool,
    ranges: Vec<AddressRange>,
    here: Snapshot,
    layout: ProgramLayout,
    symbols: Option<PagesOfSymbols<'a>>,
    timeline: Option<&'a mut TimelineBuilder>,
    sums: SharedSums,
}

impl ComparedSample<'_> {
    /// The sums of the processes so far.
    pub fn into_sums(self) -> SharedSums {
        self.sums
    }

    /// What it finds of the next process; `None` after the last one.
    pub fn next(&mut self, sink: &mut dyn Sink) -> Result<Option<ComparedProcess>, Error> {
        while let Some(&other) = self.others.get(self.done) {
            sink.progress(self.done as u64, self.others.len() as u64, "processes")?;
            self.done += 1;
            match self.compare(other, sink) {
                // An exited child has no memory, even if its parent has not waited for it yet.
                Err(error) if error.status() == 3 && (self.round.given.is_none() || self.round.is_over_time) => {}
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    fn compare(&mut self, other: u32, sink: &mut dyn Sink) -> Result<ComparedProcess, Error> {
        let is_captured = self.round.target.machine.is_captured();
        let other = if is_captured { self.round.target.member(other) } else { Target::attach(other) };
        let other = other?.within(sink.budget());
        let machine = &self.round.target.machine;
        let (mine, its) = (self.round.mine, other.process.identity().pid);
        // As after vfork, or clone with CLONE_VM alone.
        if !self.round.is_over_time && matches!(machine.find_memory(&[mine], its), Some(Ok(_))) {
            sink.note(format!("processes {mine} and {its} have one address space: neither has copies of its own"))?;
        }
        let space = AddressSpace::of(&other)?;
        let is_forked = self.layout == layout(space.maps());
        let mut side = Side {
            here: &self.here,
            there: &frames_of(&space, space.spans(), sink)?,
            other: other.process.identity(),
            page_size: self.round.page().bytes(),
            rows: Vec::new(),
            symbols: self.symbols.as_mut(),
            timeline: self.timeline.as_deref_mut().filter(|_| is_forked),
            groups: BTreeMap::new(),
            total: SharedCounts::default(),
            sums: &mut self.sums,
            is_forked,
            space: self.space,
        };
        let compared = side.regions_here(&self.ranges, sink)?;
        if self.is_all {
            side.regions_there(compared, sink)?;
        }
        if !is_forked {
            side.all_counts().for_each(SharedCounts::without_copies);
        }
        side.sums.end_process(&side.total);
        let Side { other, rows, groups, total, .. } = side;
        let groups = self.symbols.is_some().then_some(groups);
        Ok(ComparedProcess { other, rows, groups, total, is_forked, is_over: false })
    }
}

/// The places of the stack and of the kernel's pages, which differ in each program that is executed, and are the same
/// after a fork.
type ProgramLayout = [Option<VirtualAddress>; 2];

fn layout<'r>(regions: impl Iterator<Item = &'r Region>) -> ProgramLayout {
    let mut layout = [None; 2];
    for region in regions {
        match region.name.as_bytes() {
            // Its start moves.
            b"[stack]" => layout[0] = Some(region.range.end()),
            b"[vdso]" => layout[1] = Some(region.range.start()),
            _ => {}
        }
    }
    layout
}

impl SharedCounts {
    /// Pages in different frames are no copies: each process has its own.
    fn without_copies(&mut self) {
        let own = std::mem::take(&mut self.copied);
        self.only_here += own;
        self.only_there += own;
    }
}

/// Counts neighbouring pages with the same relation.
fn add(counts: &mut SharedCounts, pages: &SharedPages) {
    *match pages.relation {
        PageRelation::Shared | PageRelation::Elsewhere => &mut counts.shared,
        PageRelation::Different => &mut counts.copied,
        PageRelation::OnlyFirst => &mut counts.only_here,
        PageRelation::OnlySecond => &mut counts.only_there,
    } += pages.pages;
    if pages.relation == PageRelation::Elsewhere {
        counts.shared_elsewhere += pages.pages;
    }
    let is_shared = matches!(pages.relation, PageRelation::Shared | PageRelation::Elsewhere);
    if is_shared && pages.copied_by_next_write {
        counts.about_to_copy += pages.pages;
    }
}

fn pages(counts: &SharedCounts) -> u64 {
    counts.shared + counts.copied + counts.only_here + counts.only_there
}

fn add_counts(sum: &mut SharedCounts, counts: SharedCounts) {
    sum.shared += counts.shared;
    sum.shared_elsewhere += counts.shared_elsewhere;
    sum.copied += counts.copied;
    sum.only_here += counts.only_here;
    sum.only_there += counts.only_there;
    sum.about_to_copy += counts.about_to_copy;
}

/// One comparison: the rows, and their sums.
struct Side<'a, 'n> {
    here: &'a Snapshot,
    there: &'a Snapshot,
    other: Identity,
    page_size: u64,
    rows: Vec<RegionCounts>,
    /// To add up by symbol.
    symbols: Option<&'a mut PagesOfSymbols<'n>>,
    timeline: Option<&'a mut TimelineBuilder>,
    groups: BTreeMap<String, SharedCounts>,
    total: SharedCounts,
    /// Those of all processes.
    sums: &'a mut SharedSums,
    is_forked: bool,
    /// Of the attached process.
    space: &'a AddressSpace,
}

impl Side<'_, '_> {
    /// Compares the part of each region of the attached process that lies in `ranges`. Returns the compared ranges of
    /// the other process.
    fn regions_here(&mut self, ranges: &[AddressRange], sink: &mut dyn Sink) -> Result<Vec<AddressRange>, Stopped> {
        let counterparts = Counterparts::new(self.there.regions());
        let mut compared = Vec::new();
        for region in self.here.regions() {
            for part in region.range.within(ranges) {
                sink.check()?;
                let mut counts = SharedCounts::default();
                let start = counterparts.of(region, part);
                let is_wiped = self.is_wiped(region, part, start, &mut sink.budget());
                let is_forked = self.is_forked && !is_wiped;
                for mut pages in self.here.compare(part, self.there, start) {
                    // In a read-only region no write can copy a page.
                    pages.copied_by_next_write &= region.permissions.write;
                    add(&mut counts, &pages);
                    let theirs = match pages.relation {
                        PageRelation::OnlySecond => Some(pages.address),
                        _ => start.and_then(|start| start.checked_add(pages.address.get() - part.start().get())),
                    };
                    self.sums.add(&pages, is_forked, self.there, theirs);
                    if is_forked {
                        self.draw(&pages);
                    }
                    if start.is_some() {
                        self.add_to_groups(region, &pages, is_forked);
                    }
                }
                if is_wiped {
                    counts.without_copies();
                }
                if let Some(start) = start {
                    let end = start.checked_add(part.len()).unwrap_or(start);
                    compared.extend(AddressRange::new(start, end));
                } else {
                    self.add_to_group_of_region(region, counts);
                }
                self.row(region, part, counts);
            }
        }
        Ok(compared)
    }

    /// Whether a fork gives the child nothing of the region: then different frames are no copies. Smaps, which costs
    /// the kernel more than the page map, is asked only where no page is shared, and some are different.
    fn is_wiped(
        &self,
        region: &Region,
        part: AddressRange,
        start: Option<VirtualAddress>,
        budget: &mut Budget,
    ) -> bool {
        if !self.is_forked {
            return false;
        }
        let mut differs = false;
        for pages in self.here.compare(part, self.there, start) {
            match pages.relation {
                PageRelation::Shared | PageRelation::Elsewhere => return false,
                PageRelation::Different => differs = true,
                PageRelation::OnlyFirst | PageRelation::OnlySecond => {}
            }
        }
        differs && self.space.is_wiped_by_fork(region, budget)
    }

    /// Adds the parts of the other process's regions that have no counterpart here.
    fn regions_there(&mut self, compared: Vec<AddressRange>, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let compared = Spans::new(compared, Origin::Written);
        let compared = compared.as_ref().map_or(&[][..], Spans::ranges);
        for region in self.there.regions() {
            sink.check()?;
            for rest in region.range.outside(compared) {
                let places: Vec<u64> = self.there.places_alone_in(rest, self.here).collect();
                let counts = SharedCounts { only_there: places.len() as u64, ..SharedCounts::default() };
                self.sums.add_there(places.into_iter());
                self.add_to_group_of_region(region, counts);
                self.row(region, rest, counts);
            }
        }
        Ok(())
    }

    /// Draws pages that both processes have.
    fn draw(&mut self, pages: &SharedPages) {
        let is_copied = pages.relation == PageRelation::Different;
        if !is_copied && !matches!(pages.relation, PageRelation::Shared | PageRelation::Elsewhere) {
            return;
        }
        let range = AddressRange::of_length(pages.address, pages.pages.saturating_mul(self.page_size));
        if let (Some(timeline), Some(range)) = (&mut self.timeline, range) {
            timeline.see_shared(range, is_copied);
        }
    }

    /// Symbols are those of the attached process; pages of the other process alone count for their region.
    fn add_to_groups(&mut self, region: &Region, pages: &SharedPages, is_forked: bool) {
        let Some(symbols) = &mut self.symbols else {
            return;
        };
        let groups = &mut self.groups;
        let parts = match pages.relation {
            PageRelation::OnlySecond => vec![(pages.address, pages.pages, None)],
            _ => symbols.split(pages.address, pages.pages).collect(),
        };
        for (_, count, symbol) in parts {
            let name = symbol.map_or_else(|| name_among_symbols(&region.name), |symbol| symbols.name(symbol));
            let part = SharedPages { pages: count, ..pages.clone() };
            let mut counts = SharedCounts::default();
            add(&mut counts, &part);
            if !is_forked {
                counts.without_copies();
            }
            add_counts(groups.entry(name).or_default(), counts);
        }
    }

    fn add_to_group_of_region(&mut self, region: &Region, counts: SharedCounts) {
        if self.symbols.is_some() && counts != SharedCounts::default() {
            add_counts(self.groups.entry(name_among_symbols(&region.name)).or_default(), counts);
        }
    }

    fn all_counts(&mut self) -> impl Iterator<Item = &mut SharedCounts> {
        let rows = self.rows.iter_mut().map(|row| &mut row.counts);
        rows.chain(self.groups.values_mut()).chain([&mut self.total])
    }

    fn row(&mut self, region: &Region, range: AddressRange, counts: SharedCounts) {
        if counts == SharedCounts::default() {
            return;
        }
        add_counts(&mut self.total, counts);
        self.rows.push(RegionCounts { range, region: region.name.clone(), counts });
    }
}

/// By what `top` sorts rows: a small region that was copied is worth more than a large one that is shared.
fn copied_first(counts: &SharedCounts) -> (u64, u64) {
    (counts.copied, pages(counts))
}

fn show_rows(
    (other, page_size): (u32, u64),
    mut rows: Vec<RegionCounts>,
    cut: Option<RowLimit>,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let more = rows::keep_shown(&mut rows, cut, |row| copied_first(&row.counts));
    rows.into_iter().try_for_each(|RegionCounts { range, region, counts }| {
        let (start, end, in_bytes) = (range.start(), range.end(), counts.in_bytes(page_size));
        sink.emit(&Comparison { other, start, end, region, page_size, counts, in_bytes })
    })?;
    note_hidden_rows(more, "region", sink)
}

/// The rows of `by symbol`, the most copied or about to be copied first.
fn show_groups(
    (other, page_size): (u32, u64),
    groups: BTreeMap<String, SharedCounts>,
    cut: Option<RowLimit>,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, counts)| Reverse((counts.copied + counts.about_to_copy, counts.shared)));
    let more = rows::keep_shown(&mut groups, cut, |(_, counts)| copied_first(counts));
    let mut groups = groups.into_iter();
    groups.try_for_each(|(symbol, counts)| {
        let in_bytes = counts.in_bytes(page_size);
        sink.emit(&ComparisonGroup { other, symbol, page_size, counts, in_bytes })
    })?;
    note_hidden_rows(more, "symbol", sink)
}
