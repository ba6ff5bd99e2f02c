//! The contents of the place of one huge page.

use super::super::holders::FrameHolders;
use super::super::page::Page;
use crate::kernel::{Kind, State};
use crate::process::BackingContent;

/// The numbers of pages in the place of one huge page, or in the part of it within a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stretch {
    /// Pages that are mapped as small pages.
    pub small: u64,
    /// Those small pages that are private copies of file pages.
    pub copies: u64,
    /// Those small pages that have other mappings.
    pub shared: u64,
    /// Those small pages of which it is unknown whether they have other mappings.
    pub maybe_shared: u64,
    /// Whether pins or other references hold one of those small pages.
    pub is_held: bool,
    /// Pages that one PMD maps.
    pub huge: u64,
    /// Present pages of which it is unknown whether one PMD maps them.
    pub unclear: u64,
    /// Pages of the hugetlb pool.
    pub pool: u64,
    /// Mappings of the zero page.
    pub zeros: u64,
    /// Pages of the huge zero page.
    pub huge_zeros: u64,
    /// Pages in swap.
    pub swapped: u64,
    /// Untouched pages.
    pub untouched: u64,
    /// Those untouched pages that the file or the shared memory has in memory.
    pub cached: u64,
    /// Those untouched pages of which that is unknown.
    pub maybe_cached: u64,
    /// Those untouched pages that shared memory has in swap.
    pub cached_in_swap: u64,
    /// Guard pages and poisoned pages.
    pub guards: u64,
    /// Pages that userfaultfd write-protects.
    pub write_protected: u64,
    /// Pages that are migrating, on a device, or lost to a hardware error.
    pub elsewhere: u64,
}

impl Stretch {
    /// Returns the numbers for `pages` untouched pages that are like `page`.
    pub fn of_untouched(page: &Page, pages: u64) -> Self {
        let mut stretch = Stretch { untouched: pages, ..Stretch::default() };
        let content = match page.content {
            Some(BackingContent::Hole | BackingContent::PastEnd) => None,
            // The file has the page on disk only. Shared memory that is not in memory is in swap.
            Some(BackingContent::Contents { cached: false }) if page.kind == Some(Kind::NotCached) => None,
            Some(BackingContent::Contents { cached: true }) => Some(&mut stretch.cached),
            Some(BackingContent::Contents { cached: false }) => Some(&mut stretch.cached_in_swap),
            None => Some(&mut stretch.maybe_cached),
        };
        if let Some(content) = content {
            *content = pages;
        }
        stretch
    }

    /// Adds `pages` pages that are like `page`.
    pub fn add(&mut self, page: &Page, pages: u64) {
        if page.entry.is_uffd_wp() {
            self.write_protected += pages;
        }
        match page.state() {
            State::Present => self.add_present(page, pages),
            State::Swapped if page.slot.is_some() => self.cached_in_swap_only(pages),
            State::Swapped => self.swapped += pages,
            State::Guard | State::Poisoned => self.guards += pages,
            State::Migrating | State::Hwpoison | State::Device => self.elsewhere += pages,
            State::Untouched => self.merge(&Stretch::of_untouched(page, pages)),
            // Counted as write-protected above, or no memory.
            _ => {}
        }
    }

    /// Adds untouched pages whose shared memory is in swap.
    fn cached_in_swap_only(&mut self, pages: u64) {
        self.merge(&Stretch { untouched: pages, cached_in_swap: pages, ..Stretch::default() });
    }

    fn add_present(&mut self, page: &Page, pages: u64) {
        match (page.kind, page.huge) {
            (Some(Kind::Hugetlb), _) => self.pool += pages,
            // The huge zero page takes no memory, and the next write replaces it by a huge page.
            (Some(Kind::HugeZero), _) => self.huge_zeros += pages,
            (_, Some(true)) => self.huge += pages,
            (Some(Kind::Zero), _) => self.zeros += pages,
            (_, None) => self.unclear += pages,
            (kind, Some(false)) => {
                self.small += pages;
                if kind == Some(Kind::PrivateCopy) {
                    self.copies += pages;
                }
                self.is_held |= page.holders.is_some_and(FrameHolders::is_kept);
                match page.exclusive() {
                    Some(true) => {}
                    Some(false) => self.shared += pages,
                    None => self.maybe_shared += pages,
                }
            }
        }
    }

    fn merge(&mut self, other: &Stretch) {
        self.untouched += other.untouched;
        self.cached += other.cached;
        self.maybe_cached += other.maybe_cached;
        self.cached_in_swap += other.cached_in_swap;
    }

    /// Returns whether the place has a page table: then a fault fills one entry of it.
    pub fn is_occupied(&self) -> bool {
        [self.small, self.unclear, self.zeros, self.swapped, self.guards, self.write_protected, self.elsewhere]
            .iter()
            .any(|&n| n > 0)
    }
}
