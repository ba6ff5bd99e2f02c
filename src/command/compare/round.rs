//! One comparison of the attached process with others.

use super::records::{self, ComparisonGroup, ComparisonSummary, ComparisonTotal};
use crate::access::Identity;
use crate::command::floor::Error;
use crate::command::named_pages::{PagesOfSymbols, name_among_symbols};
use crate::command::ps::ProcessMemory;
use crate::command::rows::{self, RowLimit, note_hidden_rows};
use crate::command::snapshot::pages_done;
use crate::command::timeline::TimelineBuilder;
use crate::eval::{Origin, Spans};
use crate::inspect::compare::{ComparedGroup, ComparedProcess, ComparedRegion, Comparison, SharedSums};
use crate::inspect::{self, AddressSpace, Evidence, Snapshot, SymbolAt};
use crate::kernel::{AddressRange, Key, PageSize};
use crate::process::Target;
use crate::render::{More, Sink};
use crate::report::{SharedCounts, Stopped};
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

/// What a sample found of one process.
pub(super) struct FoundProcess {
    pub other: Identity,
    found: ComparedProcess,
    /// The groups of `by symbol` by their names.
    groups: Option<BTreeMap<String, SharedCounts>>,
    /// Whether one of the two has ended since.
    is_over: bool,
}

impl FoundProcess {
    /// Notes that one of the two has ended since the sample. Returns the bytes that it may have copied by then.
    pub fn end(&mut self, page_size: PageSize) -> u64 {
        self.is_over = true;
        let about_to_copy = self.found.total.about_to_copy;
        self.found.end();
        self.groups.iter_mut().flat_map(BTreeMap::values_mut).for_each(|counts| counts.about_to_copy = 0);
        about_to_copy.saturating_mul(page_size.bytes())
    }
}

impl ComparisonRound {
    pub fn page_size(&self) -> PageSize {
        self.target.process.page_size()
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
        timeline: Option<&'a mut TimelineBuilder>,
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
        let part = self.spans.as_ref().filter(|spans| *spans.origin() != Origin::All).map(Spans::ranges);
        let ranges = part.map_or_else(|| space.spans(), <[_]>::to_vec);
        let symbols = (self.by == Some(Key::Symbol))
            .then(|| PagesOfSymbols::new(state.symbols.over(&self.target, space.regions()), self.page_size()));
        let here = frames_of(space, ranges.clone(), sink)?;
        let mut comparison = Comparison::new(space, here).with_budget(sink.budget());
        if let Some(part) = part {
            comparison = comparison.only(part);
        }
        if let Some(timeline) = timeline {
            // Only there can a write copy.
            let copied = space.regions().filter(|region| region.permissions.write && !region.permissions.shared);
            let copied: Vec<AddressRange> = copied.flat_map(|region| region.range.within(&ranges)).collect();
            timeline.begin(space, &copied, symbols.as_ref().map(PagesOfSymbols::names));
            comparison = comparison.seen_by(|range, is_copied| timeline.see_shared(range, is_copied));
        }
        Ok(ComparedSample { round: self, comparison, symbols })
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
        let page_size = self.page_size().bytes();
        let in_bytes = counts.in_bytes(page_size);
        sink.emit(&ComparisonTotal { pid: self.mine, processes, ended, page_size, counts, in_bytes })
    }

    /// Shows the rows of a process, if asked for, and its sums.
    pub fn show(
        &self,
        found: FoundProcess,
        rows: bool,
        memory: Option<ProcessMemory>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let FoundProcess { other, found, groups, is_over } = found;
        let (page_size, pid) = (self.page_size().bytes(), other.pid);
        // Of several processes, or after samples, the sums are the heading of the rows.
        let is_heading = self.is_over_time || memory.is_some();
        let summary = ComparisonSummary {
            pid: self.mine,
            other: pid,
            process: other.name,
            page_size,
            forked: found.is_forked,
            ended: is_over,
            memory,
            counts: found.total,
            in_bytes: found.total.in_bytes(page_size),
        };
        if is_heading {
            sink.emit(&summary)?;
        }
        match groups {
            Some(groups) => show_groups((pid, is_over, page_size), groups, self.cut, sink)?,
            None if rows => show_rows((pid, is_over, page_size), found.rows, self.cut, sink)?,
            None => {}
        }
        if !is_heading {
            sink.emit(&summary)?;
        }
        Ok(())
    }
}

fn frames_of(space: &AddressSpace, ranges: Vec<AddressRange>, sink: &mut dyn Sink) -> inspect::Result<Snapshot> {
    let began = Instant::now();
    let is_long = |_: &_| began.elapsed() >= rows::LONG_STEP;
    let taking = Comparison::snapshot(space, ranges).with_budget(sink.budget());
    taking.take(|progress| Some(progress).filter(is_long).map_or(Ok(()), |progress| pages_done(progress, sink)))
}

/// A sample of the attached process, which is compared with the others one by one.
pub(super) struct ComparedSample<'a> {
    round: &'a ComparisonRound,
    comparison: Comparison<'a>,
    symbols: Option<PagesOfSymbols<'a>>,
}

impl ComparedSample<'_> {
    /// The sums of the processes so far.
    pub fn into_sums(self) -> SharedSums {
        self.comparison.finish()
    }

    /// Compares with each of the others, and passes what it finds to `take`.
    pub fn each(
        &mut self,
        others: &[u32],
        sink: &mut dyn Sink,
        mut take: impl FnMut(FoundProcess, &mut dyn Sink) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (done, &other) in (0..).zip(others) {
            sink.progress(done, others.len() as u64, "processes")?;
            match self.compare(other, sink) {
                // An exited child has no memory, even if its parent has not waited for it yet.
                Err(error) if error.status() == 3 && (self.round.given.is_none() || self.round.is_over_time) => {}
                found => take(found?, sink)?,
            }
        }
        Ok(())
    }

    fn compare(&mut self, other: u32, sink: &mut dyn Sink) -> Result<FoundProcess, Error> {
        let is_captured = self.round.target.machine.is_captured();
        let other = if is_captured { self.round.target.member(other) } else { Target::attach(other) };
        let other = other?.with_budget(sink.budget());
        let machine = &self.round.target.machine;
        let (mine, its) = (self.round.mine, other.process.identity().pid);
        // As after vfork, or clone with CLONE_VM alone.
        if !self.round.is_over_time && matches!(machine.find_memory(&[mine], its), Some(Ok(_))) {
            sink.note(format!("processes {mine} and {its} have one address space: neither has copies of its own"))?;
        }
        let space = AddressSpace::of(&other)?;
        let there = frames_of(&space, space.spans(), sink)?;
        let symbol_at = self.symbols.as_mut().map(|symbols| Box::new(|address| symbols.at(address)) as SymbolAt);
        let found = self.comparison.add(&space, &there, symbol_at)?;
        let groups = self.symbols.as_ref().map(|symbols| {
            found.named(|group| match group {
                ComparedGroup::Symbol(symbol) => symbols.name(*symbol),
                ComparedGroup::Region(region) => name_among_symbols(region),
            })
        });
        Ok(FoundProcess { other: other.process.identity(), found, groups, is_over: false })
    }
}

/// By what `top` sorts rows: a small region that was copied is worth more than a large one that is shared.
fn copied_first(counts: &SharedCounts) -> (u64, u64) {
    (counts.copied, counts.pages())
}

fn show_rows(
    (other, ended, page_size): (u32, bool, u64),
    mut rows: Vec<ComparedRegion>,
    cut: Option<RowLimit>,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    // With `limit` they are the first.
    if cut.is_none() {
        rows.sort_by_cached_key(|row| Reverse(copied_first(&row.counts)));
    }
    let more = rows::keep_shown(&mut rows, cut, |row| copied_first(&row.counts));
    rows.into_iter().try_for_each(|ComparedRegion { range, region, counts, .. }| {
        let (start, end, in_bytes) = (range.start(), range.end(), counts.in_bytes(page_size));
        sink.emit(&records::Comparison { other, start, end, region, ended, page_size, counts, in_bytes })
    })?;
    note_hidden_rows(more, "region", sink)
}

/// The rows of `by symbol`, the most copied or about to be copied first.
fn show_groups(
    (other, ended, page_size): (u32, bool, u64),
    groups: BTreeMap<String, SharedCounts>,
    cut: Option<RowLimit>,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    if cut.is_some() {
        sink.show(More::SmallRows);
    }
    let of = groups.values().map(SharedCounts::differing).fold(0, u64::saturating_add);
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_cached_key(|(_, counts)| Reverse((counts.copied + counts.about_to_copy, counts.shared)));
    let more = rows::keep_shown(&mut groups, cut, |(_, counts)| copied_first(counts));
    let mut groups = groups.into_iter();
    groups.try_for_each(|(symbol, counts)| {
        let in_bytes = counts.in_bytes(page_size);
        sink.emit(&ComparisonGroup { other, symbol, of, ended, page_size, counts, in_bytes })
    })?;
    note_hidden_rows(more, "symbol", sink)
}
