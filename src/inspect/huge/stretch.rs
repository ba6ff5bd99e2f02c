//! The place of one huge page, and what is in it.

use super::super::page::Page;
use crate::kernel::{Kind, State};
use crate::process::BackingContent;

/// What is in the place of one huge page, or in the part of it that a region has: numbers of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stretch {
    /// In small pages of memory.
    pub small: u64,
    /// Of these, private copies of file pages.
    pub copies: u64,
    /// Of these, mapped by others too.
    pub shared: u64,
    /// Of these, those of which that is unknown.
    pub maybe_shared: u64,
    /// Mapped by one PMD.
    pub huge: u64,
    /// In small pages, or mapped by one PMD.
    pub unclear: u64,
    /// Of the hugetlb pool.
    pub pool: u64,
    /// Mappings of the zero page.
    pub zeros: u64,
    /// Pages of the huge zero page.
    pub huge_zeros: u64,
    /// In swap.
    pub swapped: u64,
    /// With nothing there.
    pub untouched: u64,
    /// Of these, those that the file or the shared memory has in memory.
    pub cached: u64,
    /// Of these, those of which that is unknown.
    pub maybe_cached: u64,
    /// Of these, those that it has elsewhere: shared memory in swap.
    pub cached_in_swap: u64,
    /// Guard pages and poisoned ones.
    pub guards: u64,
    /// Write-protected by userfaultfd.
    pub write_protected: u64,
    /// Moving, on a device, failed.
    pub elsewhere: u64,
}

impl Stretch {
    /// Only untouched pages.
    pub fn of_untouched(page: &Page, pages: u64) -> Self {
        let mut stretch = Stretch { untouched: pages, ..Stretch::default() };
        let content = match page.content {
            Some(BackingContent::Hole | BackingContent::PastEnd) => None,
            // Nothing is in the page cache for it. Only shared memory has its pages elsewhere.
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
            // Counted above, or no memory.
            _ => {}
        }
    }

    /// Shared memory in swap is behind an untouched page.
    fn cached_in_swap_only(&mut self, pages: u64) {
        self.merge(&Stretch { untouched: pages, cached_in_swap: pages, ..Stretch::default() });
    }

    fn add_present(&mut self, page: &Page, pages: u64) {
        match (page.kind, page.huge) {
            (Some(Kind::Hugetlb), _) => self.pool += pages,
            // It takes no memory, and the next write makes it huge.
            (Some(Kind::HugeZero), _) => self.huge_zeros += pages,
            (_, Some(true)) => self.huge += pages,
            (Some(Kind::Zero), _) => self.zeros += pages,
            (_, None) => self.unclear += pages,
            (kind, Some(false)) => {
                self.small += pages;
                if kind == Some(Kind::PrivateCopy) {
                    self.copies += pages;
                }
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

    /// Whether there is a page table: a fault then fills one page of it.
    pub fn is_occupied(&self) -> bool {
        [self.small, self.unclear, self.zeros, self.swapped, self.guards, self.write_protected, self.elsewhere]
            .iter()
            .any(|&n| n > 0)
    }
}
