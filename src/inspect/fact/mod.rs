//! The facts about a page or a frame: the evidence for each, its value, the text that shows it, and why it is unknown.
//! Filters, groups and functions all use this module, so that they have the same value or the same reason. The words
//! are in `kernel::page_fact`.

mod answer;
mod definitions;
mod gap;
mod words;

use super::Result;
use super::address_space::AddressSpace;
use super::filter::require_of_frames;
use super::page::{Evidence, Page};
use super::region::ViewedRegion;
use crate::kernel::{Key, PageFact, PageField, PageFlags, ValueType, page_flags};
use crate::process::Machine;
use crate::report::{EventKind, Fact, PageFacts, Reason};
pub use answer::Answer;
use answer::{Here, Sampled, Subject};
pub use gap::Gap;
use std::sync::{Arc, Mutex, PoisonError};

/// The texts of a value, or why they are unknown.
type Texts = Fact<Vec<Vec<u8>>>;

/// Reads facts of the pages of one address space, or of the frames of one machine.
pub struct FactReader {
    subject: Subject,
    /// The texts of the last value: the next page mostly has the same.
    last_texts: Mutex<Option<((PageFact, u64), Texts)>>,
}

impl FactReader {
    /// Returns a reader for the pages of `space`.
    pub fn of_pages(space: &AddressSpace) -> Self {
        let subject = Subject::new(Some(space.clone()), &space.target().machine);
        FactReader { subject, last_texts: Mutex::new(None) }
    }

    /// Returns a reader for frames without a process.
    pub fn of_frames(machine: &Arc<Machine>) -> Self {
        FactReader { subject: Subject::new(None, machine), last_texts: Mutex::new(None) }
    }

    /// Returns the answer for `field` of a page of a region.
    #[inline]
    pub fn answer(&self, field: PageField, page: &Page, region: Option<&ViewedRegion>) -> Answer {
        let here = Here { region, of: &self.subject };
        let answer = match field {
            PageField::Fact(fact) => (fact.definition().of)(page, &here),
            PageField::State(state) => words::is_in_state(state, page, &here),
            PageField::Kind(kind) => words::is_of_kind(kind, page, &here),
            PageField::Flag(flag) => words::has_flag(flag, page),
        };
        match answer {
            // A free frame has no map count, and is in no folio.
            Answer::Unknown(Gap::Changed) if self.subject.space.is_none() => Answer::None,
            answer => answer,
        }
    }

    /// Returns the average of map counts that replaces the page's own count: groups show it, and no filter matches it.
    pub(super) fn average(&self, field: PageField, page: &Page) -> Option<u64> {
        let is_average = field == PageField::Fact(PageFact::MapCount) && page.count_is_average;
        page.map_count.filter(|_| is_average)
    }

    /// Returns why a fact is unknown, for pages of `region`; without one, for pages of any region.
    pub fn reason(&self, gap: Gap, region: Option<&ViewedRegion>) -> Reason {
        let Some(space) = &self.subject.space else {
            return gap.reason(&Ok(()));
        };
        let contents = || match region {
            Some(viewed) => viewed.why_content_unknown().cloned(),
            None => Reason::of_all(space.viewed_regions().iter().filter_map(ViewedRegion::why_content_unknown)),
        };
        let of_contents = if gap == Gap::Contents { contents() } else { None };
        of_contents.unwrap_or_else(|| gap.reason(&space.availability().counts))
    }

    /// Returns whether `is` holds for one of the texts of a value.
    ///
    /// # Errors
    /// The texts are unknown, with the reason.
    pub fn text_is(&self, fact: PageFact, value: u64, is: &dyn Fn(&[u8]) -> bool) -> Fact<bool> {
        let mut last = self.last_texts.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = match &*last {
            Some((known, texts)) if *known == (fact, value) => texts,
            _ => &last.insert(((fact, value), (fact.definition().texts)(value, &self.subject))).1,
        };
        texts.as_ref().map(|texts| texts.iter().any(|text| is(text))).map_err(Clone::clone)
    }

    /// Returns all texts of a fact on this machine, if they are few, such as the names of zones.
    pub fn texts(&self, fact: PageFact) -> Option<Vec<String>> {
        (fact.definition().all_texts)(&self.subject.machine)
    }

    /// Returns the name of the group of pages with this answer, and why the pages may not belong to it.
    pub fn shown(&self, field: PageField, answer: Answer) -> (String, Option<Reason>) {
        let definition = field.fact().definition();
        match answer {
            Answer::Is(value) if field.value_type() == ValueType::Boolean => {
                let not = if value == 0 { "not " } else { "" };
                (format!("{not}{}", Key::Page(field)), None)
            }
            Answer::Is(value) => (definition.shown)(value, &self.subject.machine),
            Answer::Unknown(Gap::NoZone) => ("in no zone".to_owned(), None),
            Answer::Unknown(gap) => {
                let name = match (field, gap) {
                    (PageField::Fact(PageFact::State), gap) => gap.likeliest().word(),
                    (_, Gap::DeviceFrame) => "hidden",
                    _ => "unknown",
                };
                (name.to_owned(), Some(self.reason(gap, None)))
            }
            Answer::None | Answer::NotAsked => (definition.absent.to_owned(), None),
        }
    }

    /// Checks that `field` can be known. Returns the evidence that a sweep reads for the fact, or for whether it has
    /// this word. Returns `None` for frames if they have no such fact.
    ///
    /// # Errors
    /// It cannot be known here.
    pub fn require(&self, field: PageField) -> Result<Option<Evidence>> {
        let fact = field.fact();
        let need = match &self.subject.space {
            Some(space) => {
                let need = words::need(field, space, &self.subject).unwrap_or_else(|| (fact.definition().need)(space));
                space.require(need)?;
                need
            }
            None if !fact.row().is_of_frames => return Ok(None),
            None => {
                let need = (fact.definition().need_of_frames)(&self.subject.machine);
                require_of_frames(need, &self.subject.machine)?;
                need
            }
        };
        Ok(Some(need))
    }

    /// Checks that `field` can be known by a filter, which compares the texts of facts. Returns the same as
    /// [`FactReader::require`].
    ///
    /// # Errors
    /// As [`FactReader::require`]; the texts cannot be known here.
    pub fn require_compared(&self, field: PageField) -> Result<Option<Evidence>> {
        let need = self.require(field)?;
        if need.is_some() {
            (field.fact().definition().require_texts)(&self.subject.machine)?;
        }
        Ok(need)
    }

    /// Returns the region with this index; `None` for frames, and for pages in no region.
    #[inline]
    pub(super) fn region(&self, index: Option<usize>) -> Option<&ViewedRegion> {
        self.subject.space.as_ref()?.viewed_regions().get(index?)
    }
}

/// Returns the facts whose changes samples show on request, in the order of the kinds of change.
pub fn changing_facts() -> impl Iterator<Item = PageFact> {
    let of = |kind| PageFact::ALL.iter().copied().find(|fact| fact.change() == Some(kind));
    EventKind::ALL.iter().filter_map(move |&kind| of(kind))
}

impl PageFact {
    fn sampled(self) -> Option<&'static Sampled> {
        self.definition().sampled.as_ref()
    }

    /// Returns the default number of groups by the fact that are shown, the largest first; `None` for all.
    pub fn most_groups(self) -> Option<u64> {
        self.definition().most_groups
    }

    /// Returns the kind of change of this fact alone, which samples show on request.
    pub fn change(self) -> Option<EventKind> {
        self.sampled()?.change
    }

    /// Returns the evidence that samples read for the fact; `None` if they do not have it.
    pub fn need_of_samples(self) -> Option<Evidence> {
        Some(self.sampled()?.need)
    }
}

impl Key {
    /// Returns the evidence that samples read for the key; none if it is not a fact of pages.
    pub fn need_of_samples(self) -> Evidence {
        match self {
            Key::Page(field) => field.fact().need_of_samples().unwrap_or_default(),
            _ => Evidence::empty(),
        }
    }
}

/// A check that the table of words and the definitions agree on which facts changes have.
const _: () = {
    let mut index = 0;
    while index < PageFact::ALL.len() {
        let fact = PageFact::ALL[index];
        let is_of_changes = matches!(fact.definition().sampled, Some(Sampled { of: Some(_), .. }));
        assert!(fact.row().is_of_changes == is_of_changes);
        index += 1;
    }
};

/// Returns the answer for `field` before or after a change; `None` if changes do not have it.
pub fn answer_of_change(field: PageField, facts: &PageFacts) -> Option<Answer> {
    let answer = (field.fact().sampled()?.of?)(facts);
    Some(match (field, answer) {
        (PageField::State(state), Answer::Is(value)) => Answer::Is((value == state as u64).into()),
        (PageField::Flag(flag), Answer::Is(bits)) => {
            Answer::Is(page_flags::holds(flag, PageFlags::from_bits_retain(bits)).into())
        }
        (_, answer) => answer,
    })
}

/// The reason why it is unknown whether a present page is mapped only there.
pub(super) use definitions::why_not_exclusive;

/// Returns why the kind of a page in a region is unknown.
pub fn kind_unknown(page: &Page) -> Reason {
    words::kind_gap(page).reason(&Ok(()))
}
