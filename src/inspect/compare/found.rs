//! What a comparison finds of one process.

use super::super::by_symbol::{SymbolAt, parts_by_symbol};
use super::super::{PageRelation, SharedPages, Snapshot};
use crate::kernel::{AddressRange, Name, PageSize, Region, VirtualAddress};
use crate::report::SharedCounts;
use std::collections::BTreeMap;

/// What two processes share.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct ComparedProcess {
    /// Each part of a region that has any pages.
    pub rows: Vec<ComparedRegion>,
    /// By symbol, if that was asked for.
    pub groups: BTreeMap<ComparedGroup, SharedCounts>,
    /// The sums of the rows.
    pub total: SharedCounts,
    /// Whether both have the layout of one program.
    pub is_forked: bool,
}

/// The counts of a part of a region.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComparedRegion {
    /// Its addresses, in the process that has it.
    pub range: AddressRange,
    /// The name of the region.
    pub region: Name,
    /// Its pages.
    pub counts: SharedCounts,
}

/// What the pages of a group have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum ComparedGroup {
    /// They begin in the symbol with that number, which is one of the process that is compared with others.
    Symbol(u32),
    /// They begin in no symbol, in regions of that name.
    Region(Name),
}

/// A part of a region, and where the other process has it.
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

    /// Where the other process has these pages.
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

    /// Notes that one of the two has ended since: nobody is there to share with, and no write copies.
    pub fn end(&mut self) {
        self.all_counts().for_each(|counts| counts.about_to_copy = 0);
    }

    /// The groups by their names; those of one name are one.
    pub fn named(&self, name: impl Fn(&ComparedGroup) -> String) -> BTreeMap<String, SharedCounts> {
        let mut named: BTreeMap<String, SharedCounts> = BTreeMap::new();
        for (group, counts) in &self.groups {
            *named.entry(name(group)).or_default() += *counts;
        }
        named
    }
}

/// What is found of a process so far.
pub(super) struct Finding<'s> {
    pub found: ComparedProcess,
    /// To add up by symbol.
    pub symbol_at: Option<SymbolAt<'s>>,
}

impl Finding<'_> {
    pub fn add_row(&mut self, region: &Region, range: AddressRange, counts: SharedCounts) {
        if counts != SharedCounts::default() {
            self.found.total += counts;
            self.found.rows.push(ComparedRegion { range, region: region.name.clone(), counts });
        }
    }

    /// Pages of the other process alone count for their region.
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
    /// Whether both processes have the pages.
    pub(super) fn are_in_both(&self) -> bool {
        matches!(self.relation, PageRelation::Shared | PageRelation::Elsewhere | PageRelation::Different)
    }
}

impl SharedCounts {
    /// Pages in different frames are no copies: each process has its own.
    pub(super) fn without_copies(&mut self) {
        let own = std::mem::take(&mut self.copied);
        self.only_here += own;
        self.only_there += own;
    }

    /// All pages.
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
