//! The comparison of the pages of a process with those of others: shared pages, copies since a fork, and pages that
//! only one of them has.
//!
//! ```
//! use pmdb::inspect::compare::Comparison;
//! use pmdb::{AddressSpace, Evidence, Target};
//!
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::of(&target)?;
//! if let Err(reason) = space.require(Evidence::FRAMES) {
//!     println!("pages cannot be compared: {reason}");
//!     return Ok(());
//! }
//! let here = Comparison::snapshot(&space, space.spans()).finish()?;
//! let mut comparison = Comparison::new(&space, here);
//! let parent = AddressSpace::of(&Target::attach(std::os::unix::process::parent_id())?)?;
//! let there = Comparison::snapshot(&parent, parent.spans()).finish()?;
//! let found = comparison.add(&parent, &there, None)?;
//! for row in &found.rows {
//!     println!("{} {}: {} pages in the same frames", row.range.start(), row.region, row.counts.shared);
//! }
//! println!("the next writes copy {} pages", found.total.about_to_copy);
//! # assert!(found.total.shared + found.total.only_here > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counterpart;
mod found;
mod sums;

pub use found::{ComparedGroup, ComparedProcess, ComparedRegion};
pub use sums::{CopiesOverTime, SharedSums};

use super::address_space::AddressSpace;
use super::by_symbol::SymbolAt;
use super::page::Evidence;
use super::{OpenSnapshot, PageRelation, Result, Snapshot};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::report::SharedCounts;
use counterpart::Counterparts;
use found::{Finding, Part};
use std::cell::OnceCell;
use std::sync::Arc;

/// Receives pages that both processes have after a fork, and whether they are copies.
type SeePages<'a> = Box<dyn FnMut(AddressRange, bool) + 'a>;

/// A comparison of a process with others, one after another.
#[must_use]
pub struct Comparison<'a> {
    space: AddressSpace,
    here: Arc<Snapshot>,
    ranges: Arc<[AddressRange]>,
    /// Whether the ranges are all memory of the process. Only then, all memory of the others is compared.
    is_all: bool,
    layout: ProgramLayout,
    see: Option<SeePages<'a>>,
    sums: SharedSums,
    budget: Budget,
}

impl<'a> Comparison<'a> {
    /// Begins a snapshot of the evidence that a comparison of ranges needs. The ranges are in order and disjoint.
    pub fn snapshot(space: &AddressSpace, ranges: Vec<AddressRange>) -> OpenSnapshot {
        Snapshot::begin(space, ranges, Evidence::FRAMES | Evidence::KINDS, false)
    }

    /// Returns a comparison of the process of `space`, whose snapshot is `here`.
    pub fn new(space: &AddressSpace, here: Snapshot) -> Self {
        Comparison {
            space: space.clone(),
            here: Arc::new(here),
            ranges: space.spans().into(),
            is_all: true,
            layout: layout(space.regions()),
            see: None,
            sums: SharedSums::new(space.page_size()),
            budget: Budget::unlimited(),
        }
    }

    /// Limits the comparison to these ranges.
    pub fn only(self, ranges: &[AddressRange]) -> Self {
        Comparison { ranges: ranges.into(), is_all: false, ..self }
    }

    /// Calls `see` with the pages that both processes have after a fork, and whether they are copies.
    pub fn seen_by(self, see: impl FnMut(AddressRange, bool) + 'a) -> Self {
        Comparison { see: Some(Box::new(see)), ..self }
    }

    /// Limits the comparison by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Comparison { budget, ..self }
    }

    /// Compares with another process, whose snapshot is `there`. With `symbol_at`, it also counts by symbol.
    ///
    /// # Errors
    /// Fails if the [budget](Self::with_budget) is used up.
    pub fn add(
        &mut self,
        other: &AddressSpace,
        there: &Snapshot,
        symbol_at: Option<SymbolAt<'_>>,
    ) -> Result<ComparedProcess> {
        let is_forked = self.layout == layout(other.regions());
        let mut finding = Finding {
            found: ComparedProcess { is_forked, ..ComparedProcess::default() },
            one_descends: OnceCell::new(),
            other: other.target(),
            symbol_at,
        };
        let compared = self.add_regions_here(there, &mut finding)?;
        if self.is_all {
            self.add_regions_there(there, &compared, &mut finding)?;
        }
        let mut compared = finding.found;
        if !is_forked {
            compared.all_counts().for_each(SharedCounts::without_copies);
        }
        self.sums.end_process(&compared.total);
        Ok(compared)
    }

    /// Returns the sums over all processes.
    pub fn finish(self) -> SharedSums {
        self.sums
    }

    /// Compares all regions of the process. Returns the compared ranges of the other process.
    fn add_regions_here(&mut self, there: &Snapshot, found: &mut Finding<'_>) -> Result<Vec<AddressRange>> {
        let counterparts = Counterparts::new(there.regions());
        let mut compared = Vec::new();
        let (here, ranges) = (Arc::clone(&self.here), Arc::clone(&self.ranges));
        for region in here.regions() {
            for range in region.range.within(&ranges) {
                self.budget.look()?;
                let part = Part { region, range, start: counterparts.of(region, range), there };
                compared.extend(part.range_there());
                self.add_part(&part, found);
            }
        }
        Ok(compared)
    }

    fn add_part(&mut self, part: &Part<'_>, found: &mut Finding<'_>) {
        let is_unrelated = self.is_unrelated(part, found);
        let is_forked = found.found.is_forked && !is_unrelated;
        let mut counts = SharedCounts::default();
        for mut pages in self.here.compare(part.range, part.there, part.start) {
            // A write to a read-only region fails and copies nothing.
            pages.copied_by_next_write &= part.region.permissions.write;
            counts.add_pages(&pages);
            self.sums.add(&pages, is_forked, part.there, part.address_there(&pages));
            let range =
                AddressRange::of_length(pages.address, pages.pages.saturating_mul(self.space.page_size().bytes()));
            if let (Some(see), Some(range), true) = (&mut self.see, range, is_forked && pages.are_in_both()) {
                see(range, pages.relation == PageRelation::Different);
            }
            if part.start.is_some() {
                found.add_to_groups(part.region, &pages, is_forked, self.space.page_size());
            }
        }
        if is_unrelated {
            counts.without_copies();
        }
        found.add_row(part.region, part.range, counts);
        if part.start.is_none() {
            found.add_to_group_of_region(part.region, counts);
        }
    }

    /// Returns whether different frames are no copies since a fork: siblings may have mapped the region after the fork,
    /// and a fork may not copy the region to the child. Both cost more than pagemap to find out, so they are asked only
    /// if no page is shared and some are different.
    fn is_unrelated(&mut self, part: &Part<'_>, found: &Finding<'_>) -> bool {
        if !found.found.is_forked {
            return false;
        }
        let mut differs = false;
        for pages in self.here.compare(part.range, part.there, part.start) {
            match pages.relation {
                PageRelation::Shared | PageRelation::Elsewhere => return false,
                PageRelation::Different => differs = true,
                PageRelation::OnlyFirst | PageRelation::OnlySecond => {}
            }
        }
        differs
            && (!found.one_descends(self.space.target()) || self.space.is_wiped_by_fork(part.region, &mut self.budget))
    }

    /// Adds the parts of regions of the other process that have no counterpart in this one.
    fn add_regions_there(
        &mut self,
        there: &Snapshot,
        compared: &[AddressRange],
        found: &mut Finding<'_>,
    ) -> Result<()> {
        let compared = AddressRange::joined(compared);
        for region in there.regions() {
            self.budget.look()?;
            for rest in region.range.outside(&compared) {
                let places: Vec<u64> = there.places_alone_in(rest, &self.here).collect();
                let counts = SharedCounts { only_there: places.len() as u64, ..SharedCounts::default() };
                self.sums.add_there(places.into_iter());
                found.add_row(region, rest, counts);
                found.add_to_group_of_region(region, counts);
            }
        }
        Ok(())
    }
}

/// The end of the stack and the start of the vdso. They differ after each exec, and stay the same in a fork.
type ProgramLayout = [Option<VirtualAddress>; 2];

fn layout<'r>(regions: impl Iterator<Item = &'r Region>) -> ProgramLayout {
    let mut layout = [None; 2];
    for region in regions {
        match region.name.as_bytes() {
            // The start of the stack moves.
            b"[stack]" => layout[0] = Some(region.range.end()),
            b"[vdso]" => layout[1] = Some(region.range.start()),
            _ => {}
        }
    }
    layout
}
