//! The findings of a comparison with one process.

use super::super::by_symbol::{SymbolAt, parts_by_symbol};
use super::super::{PageRelation, SharedPages, Snapshot};
use crate::kernel::{AddressRange, Name, PageSize, Region, VirtualAddress};
use crate::process::Target;
use crate::report::SharedCounts;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The comparison of two processes.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct ComparedProcess {
    /// The parts of regions that have any pages.
    pub rows: Vec<ComparedRegion>,
    /// The counts by symbol, if they were asked for.
    pub groups: BTreeMap<ComparedGroup, SharedCounts>,
    /// The sums of all rows.
    pub total: SharedCounts,
    /// Whether both have the layout of one program, as after a fork.
    pub is_forked: bool,
}

/// The counts of a part of a region.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComparedRegion {
    /// The addresses of the part in the process that has it.
    pub range: AddressRange,
    /// The name of the region.
    pub region: Name,
    /// The counts of pages.
    pub counts: SharedCounts,
}

/// The common property of the pages of a group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum ComparedGroup {
    /// They begin in the symbol with this number, in the process that is compared with others.
    Symbol(u32),
    /// They begin in no symbol, in regions with this name.
    Region(Name),
}

/// A part of a region, and its address in the other process.
pub(super) struct Part<'a> {
    pub region: &'a Region,
    pub range: AddressRange,
    pub start: Option<VirtualAddress>,
    pub there: &'a Snapshot,
}

impl Part<'_> {
    pub fn range_there(&self) -> Option<AddressRange> {
        let start = self.start?;
        AddressRange::new(start, start.checked_add(self.range.len())?)
    }

    /// Returns the address of these pages in the other process.
    pub fn address_there(&self, pages: &SharedPages) -> Option<VirtualAddress> {
        match pages.relation {
            PageRelation::OnlySecond => Some(pages.address),
            _ => self.start?.checked_add(pages.address.get() - self.range.start().get()),
        }
    }
}

impl ComparedProcess {
    pub(super) fn all_counts(&mut self) -> impl Iterator<Item = &mut SharedCounts> {
        let rows = self.rows.iter_mut().map(|row| &mut row.counts);
        rows.chain(self.groups.values_mut()).chain([&mut self.total])
    }

    /// Records that one of the processes has ended: no write copies a page any more.
    pub fn end(&mut self) {
        self.all_counts().for_each(|counts| counts.about_to_copy = 0);
    }

    /// Returns the groups by name. Groups with the same name are added.
    pub fn named(&self, name: impl Fn(&ComparedGroup) -> String) -> BTreeMap<String, SharedCounts> {
        let mut named: BTreeMap<String, SharedCounts> = BTreeMap::new();
        for (group, counts) in &self.groups {
            *named.entry(name(group)).or_default() += *counts;
        }
        named
    }
}

/// The findings about a process so far.
pub(super) struct Finding<'s> {
    pub found: ComparedProcess,
    /// The process.
    pub other: &'s Target,
    /// Whether one of the two descends from the other; empty until that is asked.
    pub one_descends: OnceCell<bool>,
    /// Returns the symbol of an address, if the counts by symbol were asked for.
    pub symbol_at: Option<SymbolAt<'s>>,
}

impl Finding<'_> {
    /// Whether one of the two descends from the other, or that is unknown.
    pub fn one_descends(&self, target: &Target) -> bool {
        *self.one_descends.get_or_init(|| {
            let pids = [target, self.other].map(|one| one.process.identity().pid);
            let Ok(all) = target.machine.process_handles() else { return true };
            all.descends(pids[0], pids[1]) || all.descends(pids[1], pids[0])
        })
    }

    pub fn add_row(&mut self, region: &Region, range: AddressRange, counts: SharedCounts) {
        if counts != SharedCounts::default() {
            self.found.total += counts;
            self.found.rows.push(ComparedRegion { range, region: region.name.clone(), counts });
        }
    }

    /// Adds pages to the groups of their symbols. Pages that only the other process has are added to the group of their
    /// region.
    pub fn add_to_groups(&mut self, region: &Region, pages: &SharedPages, is_forked: bool, size: PageSize) {
        let Some(symbol_at) = &mut self.symbol_at else {
            return;
        };
        let is_alone = pages.relation == PageRelation::OnlySecond;
        let symbol_at = |address| if is_alone { (None, u64::MAX) } else { symbol_at(address) };
        for (_, count, symbol) in parts_by_symbol(size, pages.address, pages.pages, symbol_at) {
            let group = symbol.map_or_else(|| ComparedGroup::Region(region.name.clone()), ComparedGroup::Symbol);
            let mut counts = SharedCounts::default();
            counts.add_pages(&SharedPages { pages: count, ..pages.clone() });
            if !is_forked {
                counts.without_copies();
            }
            *self.found.groups.entry(group).or_default() += counts;
        }
    }

    pub fn add_to_group_of_region(&mut self, region: &Region, counts: SharedCounts) {
        if self.symbol_at.is_some() && counts != SharedCounts::default() {
            *self.found.groups.entry(ComparedGroup::Region(region.name.clone())).or_default() += counts;
        }
    }
}

impl SharedPages {
    /// Returns whether both processes have the pages.
    pub(super) fn are_in_both(&self) -> bool {
        matches!(self.relation, PageRelation::Shared | PageRelation::Elsewhere | PageRelation::Different)
    }
}

impl SharedCounts {
    /// Counts pages in different frames as pages of each process, and not as copies.
    pub(super) fn without_copies(&mut self) {
        let own = std::mem::take(&mut self.copied);
        self.only_here += own;
        self.only_there += own;
    }

    /// Returns the number of all pages.
    pub fn pages(&self) -> u64 {
        self.shared + self.copied + self.only_here + self.only_there
    }

    /// Adds neighbouring pages with the same relation.
    pub(super) fn add_pages(&mut self, pages: &SharedPages) {
        *match pages.relation {
            PageRelation::Shared | PageRelation::Elsewhere => &mut self.shared,
            PageRelation::Different => &mut self.copied,
            PageRelation::OnlyFirst => &mut self.only_here,
            PageRelation::OnlySecond => &mut self.only_there,
        } += pages.pages;
        if pages.relation == PageRelation::Elsewhere {
            self.shared_elsewhere += pages.pages;
        }
        let is_shared = matches!(pages.relation, PageRelation::Shared | PageRelation::Elsewhere);
        if is_shared && pages.copied_by_next_write {
            self.about_to_copy += pages.pages;
        }
    }
}
