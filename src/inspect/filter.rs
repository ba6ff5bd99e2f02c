//! A filter on pages, compiled so that it can be applied to millions.

use super::address_space::AddressSpace;
use super::classify::{RegionFacts, absent_kind};
use super::page::{Facts, Page};
use super::region::ViewedRegion;
use std::sync::Arc;

type Test = dyn Fn(&Page, Option<&ViewedRegion>) -> bool + Send + Sync;

/// A predicate over pages, and what has to be read to answer it. Check
/// [`AddressSpace::require`](super::AddressSpace::require) with [`Filter::need`] before a walk.
#[derive(Clone)]
pub struct Filter {
    need: Facts,
    test: Arc<Test>,
}

impl Filter {
    /// From a test and what it needs. The test gets a page and its region. Neighbours that are the same come as one
    /// page, unless `need` has [`Facts::EACH`].
    pub fn new(need: Facts, test: impl Fn(&Page, Option<&ViewedRegion>) -> bool + Send + Sync + 'static) -> Self {
        Filter { need, test: Arc::new(test) }
    }

    /// What a sweep has to find out.
    pub fn need(&self) -> Facts {
        self.need
    }

    /// Whether it holds for the page.
    #[inline]
    pub fn matches(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        (self.test)(page, region)
    }

    /// Whether the page is left out only because its state is uncertain: in one of its possible states it would be
    /// kept.
    pub fn is_undecided(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        if page.states.is_certain() || self.matches(page, region) {
            return false;
        }
        let place = region.map(|viewed| RegionFacts::plain(viewed.backing, viewed.region.permissions.shared));
        page.states.iter().any(|state| {
            let as_if =
                Page { states: state.into(), kind: absent_kind(state, page.entry, place, page.content), ..*page };
            self.matches(&as_if, region)
        })
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("need", &self.need).finish()
    }
}

/// What a sweep has to find out, and of which pages. A [`Facts`] alone means all pages.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is needed of pages that the filter keeps.
    pub(super) need: Facts,
    /// The pages for which `need` is read. All pages come, and the caller filters them. A page that the filter
    /// does not keep may have only what the filter needs.
    pub(super) filter: Option<Filter>,
}

impl Question {
    /// Reads what `filter` needs of all pages, and `need` of the pages that it keeps.
    pub fn of_kept(filter: &Filter, need: Facts) -> Self {
        Question { need: need | filter.need(), filter: Some(filter.clone()) }
    }

    /// The same with an optional filter: without one, `need` is of all pages.
    pub fn new(filter: Option<&Filter>, need: Facts) -> Self {
        match filter {
            Some(filter) => Question::of_kept(filter, need),
            None => need.into(),
        }
    }

    /// Whether the filter keeps the page.
    #[inline]
    pub fn keeps(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(page, region))
    }

    /// Whether the filter has no answer for the page, because its state is uncertain.
    pub fn is_undecided(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.is_undecided(page, region))
    }

    /// What is needed of pages that the filter keeps: never less than the filter needs.
    pub fn need(&self) -> Facts {
        self.need
    }

    /// Adds all that has to be read for it in `space`.
    pub(super) fn with_implied(self, space: &AddressSpace) -> Self {
        Question { need: space.with_implied(self.need), ..self }
    }

    /// What is needed of every page.
    pub(super) fn first(&self, space: &AddressSpace) -> Facts {
        match &self.filter {
            Some(filter) => self.need.difference(Facts::WORDS) | space.with_implied(filter.need()),
            None => self.need,
        }
    }

    /// Whether the scan, and not flags, has to distinguish the zero page from anonymous memory.
    pub(super) fn scans_for_zero(&self, first: Facts) -> bool {
        let scans = |need: Facts| need.contains(Facts::KINDS) && !need.contains(Facts::FLAGS);
        let by_filter = |filter: &Filter| filter.need().contains(Facts::KINDS);
        scans(self.need) || scans(first) && self.filter.as_ref().is_some_and(by_filter)
    }
}

impl From<Facts> for Question {
    fn from(need: Facts) -> Self {
        Question { need, filter: None }
    }
}
