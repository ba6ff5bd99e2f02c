//! The page tables of a process. No symbol of the kernel is needed to find them: a page of the process leads to its
//! reverse map, and that to the address spaces that may map it. If no page does, as in a process that is swapped out,
//! the list of processes leads to them.
//!
//! The tables are those of the process if they map pages that, by the page map, no other process maps. Without such
//! pages, the address space must have the process as its owner. The tables are then proved: their entries must agree
//! with the page map on pages of all its regions.

use super::ground::Ground;
use super::pages::PageRecords;
use super::way::{TableLayout, Way};
use crate::access::{Error, Result};
use crate::kernel::page_table::{AddressBits, TableShape, TableStep};
use crate::kernel::{FrameNumber, PageMapEntry, PageSize, Region, TableEntry};

/// The view of `/proc` on the address space of a process.
pub(crate) trait AddressView {
    /// Fills `into` with words of its page map; `None` if one is missing.
    fn entries(&self, first: u64, into: &mut [u64]) -> Option<()>;

    /// Returns the regions of the process.
    fn regions(&self) -> Vec<Region>;

    /// Returns the process id in the initial PID namespace, if it is known.
    fn number(&self) -> Option<u32>;
}

fn all_shared() -> Error {
    Error::not_available("every page of the process is shared, so that nothing identifies its page tables")
}

/// The page tables of a process. No kernel address leaves `records`.
#[derive(Clone, Copy)]
pub(crate) struct PageTables {
    pub(super) top: u64,
    /// The kernel address of the address space (`mm_struct`).
    pub(super) space: u64,
    pub(super) shape: TableShape,
}

/// The place of a page's entry in its page table.
#[derive(Clone, Copy)]
pub(super) struct EntryPlace {
    address: u64,
    level: u8,
    shape: TableShape,
    /// The first frame of the block that the entry maps.
    first: u64,
}

impl EntryPlace {
    /// Returns whether the entry still leads to the frame. The kernel clears entries before it frees their table.
    pub(super) fn maps(&self, pages: &PageRecords) -> bool {
        let step = pages.image.word(self.address).map(|raw| self.shape.step(raw, self.level));
        matches!(step, Some(TableStep::Leaf(entry)) if entry.frame.get() == self.first)
    }
}

/// The number of pages that are read at each end of a region: its first pages are in use, or, in a stack, its last.
const AT_AN_END: u64 = 32;
/// The most regions of which pages are compared, and the most pages of each.
const MOST_REGIONS: usize = 1024;
const OF_A_REGION: usize = 8;
/// The most pages from which the tables are searched.
const MOST_WAYS: usize = 24;
/// The number of pages that must agree and that no other process maps, or all such pages if there are fewer.
const OWN_PAGES: usize = 4;
/// How often a comparison is repeated after a difference, because the page may change.
const TRIES: u32 = 4;

/// A page whose entries are compared.
struct SamplePage {
    page: u64,
    word: PageMapEntry,
}

impl SamplePage {
    /// Returns whether the page is anonymous memory.
    fn is_anonymous(&self) -> bool {
        self.word.is_present() && !self.word.is_file_or_shared()
    }

    /// Returns whether, by the page map, no other process maps the page. Only for anonymous pages that is always right.
    fn is_own(&self) -> bool {
        self.is_anonymous() && self.word.is_exclusive()
    }
}

impl PageTables {
    /// Returns the possible structures of page tables on this machine, the usual ones first.
    fn shapes(pages: &PageRecords) -> Vec<TableShape> {
        let bits = AddressBits {
            // The memory encryption of AMD.
            encryption: pages.image.info("NUMBER(sme_mask)", 10).unwrap_or_default(),
            // 64 - 52. The kernel uses 52 bits for virtual and physical addresses, or for neither.
            is_wide: pages.image.info("NUMBER(TCR_EL1_T1SZ)", 16) == Some(12),
        };
        let page = PageSize::from_bytes(pages.page_bytes);
        page.map_or_else(Vec::new, |page| TableShape::of_machine(pages.image.machine(), page, bits))
    }

    /// Returns the structure of all page tables on this machine, if the kernel shows the number of levels.
    pub(super) fn shape(pages: &PageRecords) -> Option<TableShape> {
        let levels = match pages.image.info("NUMBER(pgtable_l5_enabled)", 10) {
            Some(has_fifth) => 4 + has_fifth,
            None => {
                let page = u64::from(PageSize::from_bytes(pages.page_bytes)?.shift());
                let unused = pages.image.info("NUMBER(TCR_EL1_T1SZ)", 16)?;
                64u64.checked_sub(unused)?.checked_sub(page)?.div_ceil(page - 3)
            }
        };
        Self::shapes(pages).into_iter().find(|shape| u64::from(shape.levels) == levels)
    }

    /// Finds the page tables of the process that `space` shows.
    pub(super) fn find(
        pages: &PageRecords,
        layout: Option<&TableLayout>,
        space: &dyn AddressView,
        ground: &dyn Ground,
    ) -> Result<PageTables> {
        let unknown = || Error::not_available("this kernel's layout of the way to page tables is unknown to pmdb");
        let layout = layout.ok_or_else(unknown)?;
        let page = PageSize::from_bytes(pages.page_bytes).ok_or_else(unknown)?;
        let shapes = Self::shapes(pages);
        if shapes.is_empty() {
            return Err(Error::not_available("the page tables of this processor are unknown to pmdb"));
        }
        let samples = samples(page, space);
        let has_own = samples.iter().any(SamplePage::is_own);
        let number = space.number();
        // Right after a fork the entries of two processes are equal, and only the owners differ.
        let of = if has_own { None } else { Some(number.ok_or_else(all_shared)?) };
        let way = Way { pages, layout, page, of };
        let is_first = |one: &&SamplePage| if has_own { one.is_own() } else { one.is_anonymous() };
        let by_pages = samples.iter().filter(is_first).take(MOST_WAYS).flat_map(|own| {
            let frame = own.word.frame();
            frame.map_or_else(Vec::new, |frame| way.tops(own.page, frame))
        });
        let listed = std::iter::once_with(|| {
            let own = ground.sample()?;
            way.listed(number?, FrameNumber::new(own.frame))
        });
        let mut tried = Vec::new();
        let found = by_pages.chain(listed.flatten()).find_map(|(top, space_of_them)| {
            if tried.contains(&top) {
                return None;
            }
            tried.push(top);
            let all = shapes.iter().map(|&shape| PageTables { top, space: space_of_them, shape });
            all.into_iter().find(|tables| tables.are_of(pages, space, &samples))
        });
        let differs = "the kernel's records did not lead to page tables that agree with the page map";
        found.ok_or_else(|| Error::not_available(differs))
    }

    /// Returns whether the entries agree with the page map.
    fn are_of(&self, pages: &PageRecords, space: &dyn AddressView, samples: &[SamplePage]) -> bool {
        let (mut own, mut agreed) = (0, 0);
        for sample in samples {
            match self.agrees(pages, space, sample) {
                Some(false) => return false,
                Some(true) if sample.is_own() => own += 1,
                Some(true) => agreed += 1,
                None => {}
            }
        }
        let wanted = samples.iter().filter(|sample| sample.is_own()).count().min(OWN_PAGES);
        // A single word may agree by chance.
        own >= wanted && own + agreed >= 2
    }

    /// Returns whether the entry of a page agrees with the page map; `None` if it changes all the time, or decides
    /// nothing.
    fn agrees(&self, pages: &PageRecords, space: &dyn AddressView, sample: &SamplePage) -> Option<bool> {
        let word = || {
            let mut word = [0];
            space.entries(sample.page, &mut word)?;
            Some(PageMapEntry::new(word[0]))
        };
        let mut agreed = None;
        for _ in 0..TRIES {
            let (before, step, after) = (word()?, self.step(pages, sample.page), word()?);
            if before != after {
                continue;
            }
            agreed = match (before.frame(), step) {
                // On arm64 this may be a page that nobody may access.
                (Some(_), Some(TableStep::Unused)) => None,
                (frame, Some(TableStep::Leaf(entry))) => Some(frame == Some(entry.frame)),
                (frame, _) => Some(frame.is_none()),
            };
            if agreed == Some(true) {
                break;
            }
        }
        agreed
    }

    /// Returns the place of the entry that maps this frame at a page, if there is one.
    pub(super) fn place(&self, pages: &PageRecords, page: u64, frame: u64) -> Option<EntryPlace> {
        let mut table = self.top;
        for level in (1..=self.shape.levels).rev().filter(|_| self.shape.reaches(page)) {
            let address = table.checked_add(self.shape.slot(level, page) * 8)?;
            match self.shape.step(pages.image.word(address)?, level) {
                TableStep::Table(physical) => table = pages.memory_at(physical)?,
                TableStep::Leaf(entry) => {
                    let first = frame.checked_sub(page % self.shape.pages(level))?;
                    let place = EntryPlace { address, level, shape: self.shape, first };
                    return (entry.frame.get() == first).then_some(place);
                }
                TableStep::Empty | TableStep::Unused => return None,
            }
        }
        None
    }

    /// Returns the meaning of the entry of one page.
    fn step(&self, pages: &PageRecords, page: u64) -> Option<TableStep> {
        let mut found = None;
        self.walk(pages, page, 1, &mut |_, step| found = Some(step));
        found
    }

    /// Calls `each` with the meaning of the entry of each page whose tables can be read.
    fn walk(&self, pages: &PageRecords, first: u64, count: u64, each: &mut dyn FnMut(u64, TableStep)) {
        let end = first.saturating_add(count);
        let mut page = first;
        while page < end && self.shape.reaches(page) {
            let Some((table, level)) = self.descend(pages, &mut page, end, each) else {
                continue;
            };
            let slot = self.shape.slot(level, page);
            let entries = (self.shape.table_entries() - slot).min(end - page);
            let mut bytes = vec![0; entries as usize * 8];
            let read = table.checked_add(slot * 8).and_then(|address| pages.image.read(address, &mut bytes));
            for at in 0..entries as usize {
                if let Some(raw) = pages.image.number(&bytes, at * 8, 8).filter(|_| read.is_some()) {
                    each(page + at as u64, self.shape.step(raw, level));
                }
            }
            page += entries;
        }
    }

    /// Finds the last-level table with the entry of `page`. If an entry of a larger block maps it, or no table can be
    /// read, calls `each` with what is known up to `end`, and skips that block.
    fn descend(
        &self,
        pages: &PageRecords,
        page: &mut u64,
        end: u64,
        each: &mut dyn FnMut(u64, TableStep),
    ) -> Option<(u64, u8)> {
        let mut table = Some(self.top);
        for level in (2..=self.shape.levels).rev() {
            let place = table.and_then(|table| table.checked_add(self.shape.slot(level, *page) * 8));
            let raw = place.and_then(|place| pages.image.word(place));
            let step = raw.map(|raw| self.shape.step(raw, level));
            if let Some(TableStep::Table(physical)) = step {
                table = pages.memory_at(physical);
                continue;
            }
            let spanned = self.shape.pages(level);
            let after = (*page / spanned + 1).saturating_mul(spanned).min(end);
            for one in *page..after {
                match step {
                    Some(TableStep::Leaf(entry)) => {
                        let frame = entry.frame.checked_add(one % spanned).unwrap_or(entry.frame);
                        each(one, TableStep::Leaf(TableEntry { frame, ..entry }));
                    }
                    Some(step) => each(one, step),
                    None => {}
                }
            }
            *page = after;
            return None;
        }
        // A table that cannot be read decides nothing.
        Some((table.unwrap_or(u64::MAX), 1))
    }

    /// Reads the entries of the pages from `first` on; `None` for a page that is not mapped.
    pub(super) fn read(&self, pages: &PageRecords, first: u64, into: &mut [Option<TableEntry>]) {
        into.fill(None);
        let count = into.len() as u64;
        self.walk(pages, first, count, &mut |page, step| {
            if let (TableStep::Leaf(entry), Some(place)) = (step, into.get_mut((page - first) as usize)) {
                *place = Some(entry);
            }
        });
    }
}

/// Chooses pages of all regions, including pages that no other process maps.
fn samples(page: PageSize, space: &dyn AddressView) -> Vec<SamplePage> {
    let mut samples = Vec::new();
    for region in space.regions().iter().take(MOST_REGIONS) {
        let (start, end) = (page.index(region.range.start()), page.index(region.range.end()));
        let first_end = end.min(start.saturating_add(AT_AN_END));
        for part in [start..first_end, first_end.max(end.saturating_sub(AT_AN_END))..end] {
            let mut words = vec![0; (part.end - part.start) as usize];
            if words.is_empty() || space.entries(part.start, &mut words).is_none() {
                continue;
            }
            let pages = part.zip(words).map(|(page, word)| SamplePage { page, word: PageMapEntry::new(word) });
            let (mut present, mut others): (Vec<_>, Vec<_>) = pages.partition(|one| one.word.frame().is_some());
            present.sort_by_cached_key(|one| !one.is_own());
            // The page map hides pages that a driver has mapped.
            others.retain(|_| present.iter().any(SamplePage::is_own));
            samples.extend(present.into_iter().take(OF_A_REGION));
            samples.extend(others.into_iter().take(OF_A_REGION));
        }
    }
    samples
}
