//! Whether pages match: some, all or none of those in ranges.

use super::filter::{Filter, Question};
use super::page::Evidence;
use super::sweep::Selection;
use super::{AddressSpace, Result};
use crate::budget::Budget;
use crate::kernel::AddressRange;
use crate::report::PagesByReason;

/// For how many pages a filter must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// For at least one.
    Any,
    /// For each, and there is at least one.
    All,
    /// For none.
    None,
}

impl AddressSpace {
    /// Whether it is certain that a filter holds for some, all or none of the pages of `ranges` (in order, disjoint),
    /// and the pages for which that was unknown. No page is read after those that decide it.
    ///
    /// ```
    /// use pmdb::budget::Budget;
    /// use pmdb::inspect::{Filter, Quantifier};
    /// use pmdb::kernel::State;
    /// use pmdb::{AddressRange, AddressSpace, Evidence, Target};
    ///
    /// let buffer = vec![1; 1 << 20];
    /// let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
    /// let space = AddressSpace::within(&Target::attach(std::process::id())?, &[range])?;
    /// let is_present = Filter::new(Evidence::empty(), |page, _| page.state() == State::Present);
    /// let (holds, _) = space.holds_for(Quantifier::Any, &[range], &is_present, Budget::unlimited())?;
    /// println!("is any of it resident: {holds}");
    /// # assert!(holds);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The target is gone, the kernel refuses a read, a fact that the filter asks is unknown of all pages, or the
    /// budget is over.
    pub fn holds_for(
        &self,
        of: Quantifier,
        ranges: &[AddressRange],
        filter: &Filter,
        budget: Budget,
    ) -> Result<(bool, PagesByReason)> {
        let question = Question::of_kept(filter, Evidence::empty());
        let mut pages = self.pages(ranges, question.clone()).within(budget);
        let mut selection = Selection::default();
        let mut any = false;
        while let Some(chunk) = pages.next()? {
            for page in chunk.pages() {
                let undecided = selection.undecided.pages();
                let matches = selection.keeps(&page, chunk.region, &question);
                any |= matches;
                let is_decided = match of {
                    Quantifier::Any | Quantifier::None => any,
                    // A page of which it is unknown decides nothing.
                    Quantifier::All => !matches && selection.undecided.pages() == undecided,
                };
                if is_decided {
                    return Ok((of == Quantifier::Any, selection.undecided));
                }
            }
        }
        selection.require_known()?;
        // A page of which it is unknown keeps it from being known.
        let is_certain = selection.undecided.pages() == 0;
        let holds = match of {
            Quantifier::Any => false,
            Quantifier::All => any && is_certain,
            Quantifier::None => is_certain,
        };
        Ok((holds, selection.undecided))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{Page, ViewedRegion};
    use crate::process::fake::{World, region};
    use crate::report::Reason;

    #[test]
    fn a_filter_holds_for_some_pages_for_all_or_for_none() {
        let mut world = World::new([region(0x1000, 4)]);
        world.maps(0x1000, 4, 500);
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let unknown = |_: &Page, _: Option<&ViewedRegion>| Some(Reason::Changed);
        // A frame from `first` on matches; of those from `known` on nothing is known.
        let from = |first: u64, known: u64| {
            let test =
                move |page: &Page| page.frame().filter(|frame| frame.get() < known).map(|frame| frame.get() >= first);
            Filter::with_unknown(Evidence::FRAMES | Evidence::EACH, move |page, _| test(page), unknown)
        };
        use Quantifier::{All, Any, None};
        for (first, known, expected) in [
            (500, 600, [true, true, false]),
            (502, 600, [true, false, false]),
            (504, 600, [false, false, true]),
            (500, 503, [true, false, false]),
            (503, 503, [false, false, false]),
        ] {
            let holds = |of| {
                space.holds_for(of, &space.spans(), &from(first, known), Budget::unlimited()).expect("an answer").0
            };
            assert_eq!([Any, All, None].map(holds), expected, "{first}, {known}");
        }
        let nothing = |of| space.holds_for(of, &[], &from(500, 600), Budget::unlimited()).expect("an answer").0;
        assert_eq!([Any, All, None].map(nothing), [false, false, true]);
    }
}
