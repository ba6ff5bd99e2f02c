//! `walk … by KEY`: pages counted by what they have in common.

use super::doubt::Doubt;
use super::page::{InZone, Need, Page};
use crate::kernel::{Kind, PageFlags, State};
use std::collections::HashMap;

/// By what pages are grouped. Physically contiguous runs are no group but a stream: see [`Runs`](super::Runs).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupBy {
    /// State.
    State,
    /// Kind.
    Kind,
    /// The frame's flags, all of them together.
    Flags,
    /// Region.
    Region,
    /// The order of the folio.
    Order,
    /// NUMA node.
    Node,
    /// Memory zone.
    Zone,
    /// Memory cgroup.
    Cgroup,
    /// Whether one PMD maps the page as a huge page.
    PmdMapped,
}

impl GroupBy {
    /// What has to be read for it.
    pub fn need(self) -> Need {
        match self {
            GroupBy::State | GroupBy::Region => Need::empty(),
            GroupBy::Kind => Need::KINDS,
            GroupBy::Flags => Need::FLAGS,
            GroupBy::Order => Need::ORDER,
            GroupBy::Node | GroupBy::Zone => Need::ZONES,
            GroupBy::Cgroup => Need::CGROUPS,
            GroupBy::PmdMapped => Need::HUGE.union(Need::KINDS),
        }
    }
}

/// What the pages of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum GroupKey {
    /// State, and why it is no more than the likeliest.
    State(State, Option<Doubt>),
    /// Kind; for pages of which it is not known, what is in doubt if that is why.
    Kind(Option<Kind>, Option<Doubt>),
    /// Flags as a raw word.
    Flags(OfFrame<u64>),
    /// Index of the region among [`View::regions`](super::View::regions); `None` for pages in no region.
    Region(Option<usize>),
    /// The order of the folio; not told of folios that changed under way.
    Order(OfFrame<u8>),
    /// NUMA node; not told of frames in no zone.
    Node(OfFrame<u32>),
    /// Memory zone; not told of frames in no zone.
    Zone(OfFrame<InZone>),
    /// Inode of the memory cgroup, 0 for pages charged to none.
    Cgroup(OfFrame<u64>),
    /// Whether one PMD maps the page as a huge page.
    PmdMapped(OfFrame<bool>),
}

/// What is known of the frame of a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum OfFrame<T> {
    /// It is this.
    Is(T),
    /// There is a frame, and it was not told.
    Untold,
    /// There is a frame that the page map does not show.
    Hidden,
    /// There is no frame.
    None,
}

impl<T> OfFrame<T> {
    fn of(page: &Page, told: Option<T>) -> Self {
        match (told, page.state) {
            (Some(told), _) => OfFrame::Is(told),
            (None, State::Present) => OfFrame::Untold,
            (None, State::PfnMapped) => OfFrame::Hidden,
            (None, _) => OfFrame::None,
        }
    }
}

/// Counts pages by group.
#[derive(Debug)]
pub struct Groups {
    by: GroupBy,
    pages: HashMap<GroupKey, u64>,
    /// The group of the page before: mostly also that of the next.
    last: Option<(GroupKey, u64)>,
}

impl Groups {
    /// Without pages yet.
    pub fn new(by: GroupBy) -> Self {
        Groups {
            by,
            pages: HashMap::new(),
            last: None,
        }
    }

    /// Takes a page of the region with that index.
    #[inline]
    pub fn add(&mut self, page: &Page, region: Option<usize>) {
        let key = match self.by {
            GroupBy::State => GroupKey::State(page.state, page.doubt),
            GroupBy::Kind => GroupKey::Kind(page.kind, page.doubt.filter(|_| page.kind.is_none())),
            GroupBy::Flags => {
                GroupKey::Flags(OfFrame::of(page, page.flags.map(|flags| flags.bits())))
            }
            GroupBy::Region => GroupKey::Region(region),
            GroupBy::Order => GroupKey::Order(OfFrame::of(page, page.order)),
            GroupBy::Node => GroupKey::Node(OfFrame::of(page, page.zone.map(|zone| zone.node))),
            GroupBy::Zone => GroupKey::Zone(OfFrame::of(page, page.zone)),
            GroupBy::Cgroup => GroupKey::Cgroup(OfFrame::of(page, page.cgroup)),
            GroupBy::PmdMapped => GroupKey::PmdMapped(match page.state {
                State::Present => OfFrame::of(page, page.is_pmd_mapped()),
                _ => OfFrame::of(page, None),
            }),
        };
        match &mut self.last {
            Some((last, pages)) if *last == key => *pages = pages.saturating_add(page.pages),
            last => {
                if let Some((key, pages)) = last.replace((key, page.pages)) {
                    self.count(key, pages);
                }
            }
        }
    }

    /// Counts `pages` pages of a group.
    pub fn count(&mut self, key: GroupKey, pages: u64) {
        let sum = self.pages.entry(key).or_default();
        *sum = sum.saturating_add(pages);
    }

    /// The groups: regions by address, others with the most pages first.
    pub fn finish(mut self) -> Vec<(GroupKey, u64)> {
        if let Some((key, pages)) = self.last.take() {
            self.count(key, pages);
        }
        let mut groups: Vec<(GroupKey, u64)> = self.pages.into_iter().collect();
        groups.sort_by_key(|&(key, pages)| match self.by {
            GroupBy::Region => (0, key),
            _ => (u64::MAX - pages, key),
        });
        groups
    }
}

impl GroupKey {
    /// The flags of a flags group.
    pub fn flags(self) -> Option<PageFlags> {
        match self {
            GroupKey::Flags(OfFrame::Is(bits)) => Some(PageFlags::from_bits_retain(bits)),
            _ => None,
        }
    }
}
