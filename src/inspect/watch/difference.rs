//! The difference between two snapshots.

use super::groups::{ChangeCounts, ChangeGroups, ChangesOfGroup};
use super::regions::Change;
use super::snapshot::Snapshot;
use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::address_space::AddressSpace;
use crate::inspect::by_symbol::SymbolAt;
use crate::inspect::filter::{Filter, Question};
use crate::inspect::kept::{KeptPages, Step};
use crate::inspect::page::Evidence;
use crate::kernel::{AddressRange, Key};
use crate::report::PagesByReason;

/// A comparison of two snapshots of a process. Dropping it stops the worker threads.
///
/// ```
/// use pmdb::inspect::{Difference, Snapshot};
/// use pmdb::kernel::Key;
/// use pmdb::{AddressRange, AddressSpace, Evidence, Target};
///
/// let target = Target::attach(std::process::id())?;
/// // So much memory is mapped anew, and nothing is there before it is written.
/// let mut buffer = vec![0; 64 << 20];
/// let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
/// let space = AddressSpace::in_ranges(&target, &[range])?;
/// let snapshot = || Snapshot::begin(&space, vec![range], Evidence::empty(), false).finish();
/// let before = snapshot()?;
/// buffer[..1 << 20].fill(1);
/// let after = snapshot()?;
/// let found = Difference::new(&space, &before, &after).by(Key::Change, None).finish()?;
/// for change in &found.changes {
///     println!("{:?}: {} pages {}", change.address, change.pages, change.kind.words());
/// }
/// println!("{} bytes came, {} went", found.counts.effect.came, found.counts.effect.went);
/// # assert!(found.counts.effect.came > 0 && found.groups.is_some_and(|groups| !groups.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "it compares only when it is pulled or finished"]
pub struct Difference<'a> {
    space: &'a AddressSpace,
    before: &'a Snapshot,
    after: &'a Snapshot,
    /// The ranges that are compared; `None` for all of the snapshots.
    ranges: Option<Vec<AddressRange>>,
    filter: Option<Question>,
    /// The sweep for the pages that match the filter, and the ranges of these pages.
    matching: Option<(KeptPages, Vec<AddressRange>)>,
    groups: Option<ChangeGroups<'a>>,
    /// [`Evidence::ZONES`], if changes are grouped by node.
    more: Evidence,
    budget: Budget,
    /// The result of the comparison, once it is complete.
    found: Option<FoundChanges>,
}

/// The changes between two snapshots.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct FoundChanges {
    /// The changes in the order of their addresses.
    pub changes: Vec<Change>,
    /// The sums of the changes.
    pub counts: ChangeCounts,
    /// The groups of changes, if they were asked for. Groups by region are in address order.
    pub groups: Option<Vec<ChangesOfGroup>>,
    /// The pages for which the filter is undecided.
    pub undecided: PagesByReason,
    /// The number of pages that changed without the filter, if the filter keeps no change.
    pub left_out: u64,
}

impl<'a> Difference<'a> {
    /// Returns a comparison of two snapshots of a process. `space` is its current address space, at least where
    /// `before` was taken.
    pub fn new(space: &'a AddressSpace, before: &'a Snapshot, after: &'a Snapshot) -> Self {
        Difference {
            space,
            before,
            after,
            ranges: None,
            filter: None,
            matching: None,
            groups: None,
            more: Evidence::empty(),
            budget: Budget::unlimited(),
            found: None,
        }
    }

    /// Limits the comparison to these ranges, which are in order and disjoint.
    pub fn only(self, ranges: Option<&[AddressRange]>) -> Self {
        Difference { ranges: ranges.map(<[_]>::to_vec), ..self }
    }

    /// Limits the comparison to the pages that match the filter at present.
    pub fn matching(self, filter: Option<&Filter>) -> Self {
        Difference { filter: filter.map(|filter| Question::of_kept(filter, Evidence::empty())), ..self }
    }

    /// Also groups the changes by a key. `symbol_at` returns the symbols for groups by symbol.
    pub fn by(self, key: Key, symbol_at: Option<SymbolAt<'a>>) -> Self {
        let mut groups = ChangeGroups::new(key, self.space.page_size());
        groups.see(self.before.regions());
        groups.see(self.after.regions());
        let groups = match symbol_at {
            Some(symbol_at) => groups.with_symbols(symbol_at),
            None => groups,
        };
        Difference { groups: Some(groups), more: key.need_of_samples() & Evidence::ZONES, ..self }
    }

    /// Limits the comparison by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Difference { budget, ..self }
    }

    /// Makes the next step, in which pages are tested against the filter. Returns `None` once the comparison is
    /// complete.
    ///
    /// # Errors
    /// Fails if the target is gone, the kernel refuses a read, or the [budget](Self::with_budget) is used up. With a
    /// filter, it fails if the target is a core, which has no page map, or if a fact of the filter is unknown for all
    /// pages.
    pub fn next(&mut self) -> Result<Option<Step<()>>> {
        if self.found.is_some() {
            return Ok(None);
        }
        if let (Some(filter), None) = (&self.filter, &self.matching) {
            let ranges = self.ranges.as_deref().unwrap_or(self.after.spans());
            let pages = self.space.kept_pages(ranges, filter.clone())?.with_budget(self.budget.clone());
            self.matching = Some((pages, Vec::new()));
        }
        let size = self.space.page_size();
        if let Some((pages, found)) = &mut self.matching
            && let Some(step) = pages.each(|page, _| found.extend(page.range(size)))?
        {
            return Ok(Some(step));
        }
        self.compare()?;
        Ok(None)
    }

    /// Makes all remaining steps. Returns the result.
    ///
    /// # Errors
    /// Fails like [`Difference::next`].
    pub fn finish(mut self) -> Result<FoundChanges> {
        while self.next()?.is_some() {}
        Ok(self.found.unwrap_or_default())
    }

    fn compare(&mut self) -> Result<()> {
        let compared = self.ranges.as_deref();
        let matching = self.matching.as_ref().map(|(_, ranges)| AddressRange::joined(ranges));
        let within = matching.as_deref().or(compared);
        let mut difference = FoundChanges::default();
        for change in self.before.changes_with(self.more, self.after, within, self.space, &mut self.budget) {
            difference.counts.add(&change);
            difference.changes.push(change);
        }
        if difference.changes.is_empty() && matching.is_some() {
            let others = self.before.changes(self.after, compared, self.space, &mut self.budget);
            difference.left_out = others.map(|change| change.pages).sum();
        }
        self.budget.check()?;
        difference.changes.sort_by_cached_key(|change| change.address);
        if let Some((pages, _)) = self.matching.take() {
            difference.undecided = pages.finish().selection.undecided;
        }
        if let Some(mut groups) = self.groups.take() {
            difference.changes.iter().for_each(|change| groups.add(change, 0));
            difference.groups = Some(groups.finish());
        }
        self.found = Some(difference);
        Ok(())
    }
}
