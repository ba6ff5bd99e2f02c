//! `walk … by KEY`: pages counted by what they have in common.

use super::address_space::AddressSpace;
use super::page::{Facts, InZone, Page, StateSet};
use crate::kernel::{Kind, PageFlags, State};
use std::collections::HashMap;

/// The key that pages are grouped by. Physically contiguous runs are a stream, not a group: see
/// [`PhysicalRuns`](super::PhysicalRuns).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
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
    /// How often the frame is mapped.
    MapCount,
    /// Whether the page is mapped only here.
    Exclusive,
    /// The symbol in which the page begins, which the caller gives for each page.
    Symbol,
}

impl GroupBy {
    /// What has to be read for it in `space`.
    pub fn need(self, space: &AddressSpace) -> Facts {
        let available = space.availability();
        match self {
            // Bit 56 is wrong inside huge mappings; a map count never is. Without map counts, the huge mappings have to
            // be found.
            GroupBy::Exclusive if available.counts.is_ok() => counts(space.has_exact_counts()),
            GroupBy::Exclusive => Facts::HUGE.union(Facts::KINDS),
            GroupBy::MapCount => counts(space.has_exact_counts()),
            _ => self.need_of_frames(),
        }
    }

    /// What has to be read for it in a sweep of frames.
    pub fn need_of_frames(self) -> Facts {
        match self {
            GroupBy::State | GroupBy::Region | GroupBy::Symbol => Facts::empty(),
            GroupBy::MapCount | GroupBy::Exclusive => Facts::COUNTS.union(Facts::FLAGS),
            GroupBy::Kind => Facts::KINDS,
            GroupBy::Flags => Facts::FLAGS,
            GroupBy::Order => Facts::ORDER,
            GroupBy::Node | GroupBy::Zone => Facts::ZONES,
            GroupBy::Cgroup => Facts::CGROUPS,
            GroupBy::PmdMapped => Facts::HUGE.union(Facts::KINDS),
        }
    }
}

/// Map counts; where some are averages over large folios, flags tell which.
fn counts(are_exact: bool) -> Facts {
    if are_exact { Facts::COUNTS } else { Facts::COUNTS.union(Facts::FLAGS) }
}

/// What the pages of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum GroupKey {
    /// The states that the pages are in, or may be in.
    State(StateSet),
    /// Kind. Where it is unknown because the state is uncertain: the states that the pages may be in.
    Kind(Option<Kind>, Option<StateSet>),
    /// Flags as a raw word.
    Flags(OfFrame<u64>),
    /// Index of the region among [`AddressSpace::regions`](super::AddressSpace::regions); `None` for pages in no
    /// region.
    Region(Option<usize>),
    /// The order of the folio; unknown for folios that changed meanwhile.
    Order(OfFrame<u8>),
    /// NUMA node; unknown for frames in no zone.
    Node(OfFrame<u32>),
    /// Memory zone; unknown for frames in no zone.
    Zone(OfFrame<InZone>),
    /// Inode of the memory cgroup, 0 for pages charged to none.
    Cgroup(OfFrame<u64>),
    /// Whether one PMD maps the page as a huge page.
    PmdMapped(OfFrame<bool>),
    /// How often the frame is mapped, and whether that is an average over its folio.
    MapCount(OfFrame<(u64, bool)>),
    /// Whether the page is mapped only here.
    Exclusive(OfFrame<bool>),
    /// The number that the caller has given the symbol in which the page begins.
    Symbol(Option<u32>),
}

/// What is known of the frame of a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum OfFrame<T> {
    /// It is this.
    Is(T),
    /// There is a frame, and this is unknown.
    Unknown,
    /// There is a frame that the page map does not show.
    Hidden,
    /// There is no frame.
    None,
}

impl<T> OfFrame<T> {
    fn of(page: &Page, value: Option<T>) -> Self {
        match (value, page.state()) {
            (Some(value), _) => OfFrame::Is(value),
            (None, State::Present) => OfFrame::Unknown,
            (None, State::PfnMapped) => OfFrame::Hidden,
            (None, _) => OfFrame::None,
        }
    }
}

/// One key, or two.
pub type Keys = (GroupKey, Option<GroupKey>);

/// Counts pages by group.
#[derive(Debug)]
pub struct Groups {
    by: GroupBy,
    and: Option<GroupBy>,
    pages: HashMap<Keys, u64>,
    /// The group of the last page: mostly the next has the same.
    last: Option<(Keys, u64)>,
}

impl Groups {
    /// Without pages yet.
    pub fn new(by: GroupBy) -> Self {
        Groups { by, and: None, pages: HashMap::new(), last: None }
    }

    /// Splits each group by a second key.
    #[must_use]
    pub fn and(self, and: Option<GroupBy>) -> Self {
        Groups { and, ..self }
    }

    /// Takes a page of the region with that index.
    #[inline]
    pub fn add(&mut self, page: &Page, region: Option<usize>) {
        self.add_named(page, region, None);
    }

    /// The same of a page that begins in the symbol with that number.
    #[inline]
    pub fn add_named(&mut self, page: &Page, region: Option<usize>, symbol: Option<u32>) {
        let key =
            (GroupKey::of(self.by, page, region, symbol), self.and.map(|and| GroupKey::of(and, page, region, symbol)));
        match &mut self.last {
            Some((last, pages)) if *last == key => *pages = pages.saturating_add(page.pages),
            last => {
                if let Some((key, pages)) = last.replace((key, page.pages)) {
                    self.sum(key, pages);
                }
            }
        }
    }

    /// Counts `pages` pages of a group without a second key.
    pub fn count(&mut self, key: GroupKey, pages: u64) {
        self.sum((key, None), pages);
    }

    fn sum(&mut self, key: Keys, pages: u64) {
        let sum = self.pages.entry(key).or_default();
        *sum = sum.saturating_add(pages);
    }

    /// The groups by their first key: regions by address, others with the most pages first.
    pub fn finish(self) -> Vec<(GroupKey, u64)> {
        let groups = self.finish_parted().into_iter();
        groups.map(|((key, _), pages)| (key, pages)).collect()
    }

    /// The groups by both keys.
    pub fn finish_parted(mut self) -> Vec<(Keys, u64)> {
        if let Some((key, pages)) = self.last.take() {
            self.sum(key, pages);
        }
        let mut groups: Vec<(Keys, u64)> = self.pages.into_iter().collect();
        groups.sort_by_key(|&((first, second), pages)| {
            let region = match first {
                GroupKey::Region(region) => Some(region),
                _ => None,
            };
            (region, u64::MAX - pages, first, second)
        });
        groups
    }
}

impl GroupKey {
    /// The group of a page.
    #[inline]
    fn of(by: GroupBy, page: &Page, region: Option<usize>, symbol: Option<u32>) -> Self {
        match by {
            GroupBy::State => GroupKey::State(page.states),
            GroupBy::Kind => GroupKey::Kind(page.kind, page.states.if_uncertain().filter(|_| page.kind.is_none())),
            GroupBy::Flags => GroupKey::Flags(OfFrame::of(page, page.flags.map(|flags| flags.bits()))),
            GroupBy::Region => GroupKey::Region(region),
            GroupBy::Order => GroupKey::Order(OfFrame::of(page, page.order)),
            GroupBy::Node => GroupKey::Node(OfFrame::of(page, page.zone.map(|zone| zone.node))),
            GroupBy::Zone => GroupKey::Zone(OfFrame::of(page, page.zone)),
            GroupBy::Cgroup => GroupKey::Cgroup(OfFrame::of(page, page.cgroup)),
            GroupBy::PmdMapped => {
                let is_present = page.state() == State::Present;
                let value = page.is_pmd_mapped().filter(|_| is_present);
                GroupKey::PmdMapped(OfFrame::of(page, value))
            }
            GroupBy::MapCount => {
                GroupKey::MapCount(OfFrame::of(page, page.map_count.map(|count| (count, page.count_is_average))))
            }
            GroupBy::Exclusive => GroupKey::Exclusive(OfFrame::of(page, page.exclusive())),
            GroupBy::Symbol => GroupKey::Symbol(symbol),
        }
    }

    /// The flags of a flags group.
    pub fn flags(self) -> Option<PageFlags> {
        match self {
            GroupKey::Flags(OfFrame::Is(bits)) => Some(PageFlags::from_bits_retain(bits)),
            _ => None,
        }
    }
}
