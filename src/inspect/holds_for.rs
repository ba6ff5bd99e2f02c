//! Whether pages match: some, all or none of those in ranges.

use super::filter::{Filter, Question};
use super::kept::Step;
use super::page::Evidence;
use super::sweep::{Selection, Sweep};
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

/// Whether a filter holds for pages: they are looked at as they are pulled, up to those that decide it.
#[must_use]
pub struct HoldsFor {
    of: Quantifier,
    sweep: Sweep,
    question: Question,
    selection: Selection,
    /// Whether it holds for a page so far.
    any: bool,
    is_decided: bool,
    done: u64,
    total: u64,
}

impl AddressSpace {
    /// Whether it is certain that a filter holds for some, all or none of the pages of `ranges` (in order, disjoint),
    /// and the pages for which that was unknown.
    ///
    /// ```
    /// use pmdb::inspect::{Filter, Quantifier};
    /// use pmdb::kernel::State;
    /// use pmdb::{AddressRange, AddressSpace, Evidence, Target};
    ///
    /// let buffer = vec![1; 1 << 20];
    /// let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
    /// let space = AddressSpace::in_ranges(&Target::attach(std::process::id())?, &[range])?;
    /// let is_present = Filter::new(Evidence::empty(), |page, _| page.state() == State::Present);
    /// let mut pages = space.holds_for(Quantifier::Any, &[range], &is_present);
    /// while pages.next()?.is_some() {}
    /// let (holds, _) = pages.finish();
    /// println!("is any of it resident: {holds}");
    /// # assert!(holds);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn holds_for(&self, of: Quantifier, ranges: &[AddressRange], filter: &Filter) -> HoldsFor {
        let question = Question::of_kept(filter, Evidence::empty());
        HoldsFor {
            of,
            sweep: self.pages(ranges, question.clone()),
            question,
            selection: Selection::default(),
            any: false,
            is_decided: false,
            done: 0,
            total: ranges.iter().map(|range| range.pages(self.page_size())).sum(),
        }
    }
}

impl HoldsFor {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        HoldsFor { sweep: self.sweep.with_budget(budget), ..self }
    }

    /// Looks at the next pages. Returns how far it has come; `None` after those that decide it.
    ///
    /// # Errors
    /// Those of [`Sweep::next`], and at the end, that a fact that the filter asks is unknown of all pages.
    pub fn next(&mut self) -> Result<Option<Step<()>>> {
        if self.is_decided {
            return Ok(None);
        }
        let Some(chunk) = self.sweep.next()? else {
            self.selection.require_known()?;
            return Ok(None);
        };
        for page in chunk.pages() {
            let undecided = self.selection.undecided.pages();
            let matches = self.selection.keeps(&page, chunk.region, &self.question);
            self.any |= matches;
            self.is_decided = match self.of {
                Quantifier::Any | Quantifier::None => self.any,
                // A page of which it is unknown decides nothing.
                Quantifier::All => !matches && self.selection.undecided.pages() == undecided,
            };
            if self.is_decided {
                return Ok(None);
            }
        }
        self.done = self.done.saturating_add(chunk.pages);
        Ok(Some(Step::Visited { done: self.done, total: self.total }))
    }

    /// Whether it is certain that it holds, and of the pages up to those that decide it the ones for which that was
    /// unknown.
    pub fn finish(self) -> (bool, PagesByReason) {
        // A page of which it is unknown keeps it from being known.
        let is_certain = self.selection.undecided.pages() == 0;
        let holds = match self.of {
            Quantifier::Any => self.any,
            Quantifier::All => !self.is_decided && self.any && is_certain,
            Quantifier::None => !self.any && is_certain,
        };
        (holds, self.selection.undecided)
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
            let holds = |of| answer(space.holds_for(of, &space.spans(), &from(first, known)));
            assert_eq!([Any, All, None].map(holds), expected, "{first}, {known}");
        }
        let nothing = |of| answer(space.holds_for(of, &[], &from(500, 600)));
        assert_eq!([Any, All, None].map(nothing), [false, false, true]);
    }

    fn answer(mut pages: HoldsFor) -> bool {
        while pages.next().expect("an answer").is_some() {}
        pages.finish().0
    }

    #[test]
    fn progress_is_in_pages_and_ends_at_those_that_decide() {
        let mut world = World::new([region(0x1000, 4), region(0x2000, 4)]);
        world.maps(0x1000, 4, 500);
        world.maps(0x2000, 4, 600);
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let frames = |from: u64| {
            let test = move |page: &Page| page.frame().is_some_and(|frame| frame.get() >= from);
            Filter::new(Evidence::FRAMES | Evidence::EACH, move |page, _| test(page))
        };
        let steps = |from| {
            let mut pages = space.holds_for(Quantifier::Any, &space.spans(), &frames(from));
            std::iter::from_fn(|| pages.next().expect("a step")).collect::<Vec<_>>()
        };
        let visited = |done| Step::Visited { done, total: 8 };
        assert_eq!(steps(500), []);
        assert_eq!(steps(600), [visited(4)]);
        assert_eq!(steps(700), [visited(4), visited(8)]);
    }
}
