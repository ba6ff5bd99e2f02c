//! What changed between two snapshots.

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

/// Compares two snapshots of a process. Dropping it ends what is under way.
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
    /// Where they are compared; `None` for all that they have.
    ranges: Option<Vec<AddressRange>>,
    filter: Option<Question>,
    /// The sweep that looks for the pages that match, and those that it has found.
    matching: Option<(KeptPages, Vec<AddressRange>)>,
    groups: Option<ChangeGroups<'a>>,
    /// [`Evidence::ZONES`], if changes are added up by node.
    more: Evidence,
    budget: Budget,
    /// What was found, once all was compared.
    found: Option<FoundChanges>,
}

/// What changed between two snapshots.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct FoundChanges {
    /// The changes, by address.
    pub changes: Vec<Change>,
    /// Their sums.
    pub counts: ChangeCounts,
    /// Their groups, if they were asked for: regions in the order of their addresses.
    pub groups: Option<Vec<ChangesOfGroup>>,
    /// The pages that the filter can neither keep nor leave out.
    pub undecided: PagesByReason,
    /// Where the filter keeps no change: the pages that changed without it.
    pub left_out: u64,
}

impl<'a> Difference<'a> {
    /// Of a process, which `space` shows as it is now, at least where `before` was taken.
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

    /// The same of these ranges alone (in order, disjoint).
    pub fn only(self, ranges: Option<&[AddressRange]>) -> Self {
        Difference { ranges: ranges.map(<[_]>::to_vec), ..self }
    }

    /// The same of the pages that match now.
    pub fn matching(self, filter: Option<&Filter>) -> Self {
        Difference { filter: filter.map(|filter| Question::of_kept(filter, Evidence::empty())), ..self }
    }

    /// The same, which adds the changes up by a key too. By symbol, `symbol_at` gives the symbols.
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

    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        Difference { budget, ..self }
    }

    /// The next step: each is of pages that are tested whether they match. `None` once all was compared.
    ///
    /// # Errors
    /// The target is gone, the kernel refuses a read, or the [budget](Self::with_budget) is over. With a filter: the
    /// target is a core, which has no page map, or a fact that it asks is unknown of all pages.
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

    /// Compares what is left.
    ///
    /// # Errors
    /// As [`Difference::next`].
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
