//! A question about pages, made ready to be asked of millions.

use super::page::{Need, Page};
use super::view::ViewedRegion;

type Test<'f> = dyn Fn(&Page, Option<&ViewedRegion>) -> bool + 'f;

/// A predicate over pages, and what has to be read to answer it. Check [`View::require`](super::View::require) with [`Filter::need`]
/// before a walk.
pub struct Filter<'f> {
    need: Need,
    test: Box<Test<'f>>,
}

impl<'f> Filter<'f> {
    /// From what the test needs, and the test: of a page (or of neighbours that are the same; one by one if `need` has
    /// [`Need::EACH`]) and the region it lies in.
    pub fn new(need: Need, test: impl Fn(&Page, Option<&ViewedRegion>) -> bool + 'f) -> Self {
        Filter {
            need,
            test: Box::new(test),
        }
    }

    /// What a sweep has to find out.
    pub fn need(&self) -> Need {
        self.need
    }

    /// Whether it holds for the page.
    #[inline]
    pub fn matches(&self, page: &Page, region: Option<&ViewedRegion>) -> bool {
        (self.test)(page, region)
    }
}

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("need", &self.need).finish()
    }
}
