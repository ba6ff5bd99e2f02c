//! The answers about facts, and the definition of a fact.

use super::super::address_space::AddressSpace;
use super::super::page::{Evidence, Page};
use super::super::region::ViewedRegion;
use super::super::{KernelBehaviour as _, Result};
use super::gap::Gap;
use crate::kernel::{PageSize, State};
use crate::process::Machine;
use crate::report::{EventKind, Fact, PageFacts, Reason};
use std::sync::{Arc, OnceLock};

/// The answer about a fact of one page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Answer {
    /// The value: a number, 0 or 1 for no or yes, or a number that stands for a word.
    Is(u64),
    /// The page has such a fact, which is unknown for this reason.
    Unknown(Gap),
    /// The page has no such fact.
    None,
    /// The fact was not asked for.
    NotAsked,
}

impl Answer {
    /// Returns the value, if it is known.
    #[inline]
    pub fn value(self) -> Option<u64> {
        match self {
            Answer::Is(value) => Some(value),
            _ => None,
        }
    }

    /// Returns yes or no, if it is known.
    #[inline]
    pub fn holds(self) -> Option<bool> {
        self.value().map(|value| value != 0)
    }

    /// Returns the answer for yes or no; `otherwise` if that is unknown.
    #[inline]
    pub(super) fn of(value: Option<bool>, otherwise: Answer) -> Answer {
        value.map_or(otherwise, |value| Answer::Is(value.into()))
    }
}

/// The definition of a fact: all that depends on which fact it is.
pub(super) struct Definition {
    /// The evidence that a sweep of pages reads for the value.
    pub need: fn(&AddressSpace) -> Evidence,
    /// The evidence that a sweep of frames reads for the value. Frames have only the facts that the table marks as
    /// theirs.
    pub need_of_frames: fn(&Machine) -> Evidence,
    /// The value for a page.
    pub of: fn(&Page, &Here<'_>) -> Answer,
    /// The text that shows a value, and the reason if it is not exact.
    pub shown: fn(u64, &Machine) -> (String, Option<Reason>),
    /// The texts of a value, one of which filters match; for facts that are texts.
    pub texts: fn(u64, &Subject) -> Fact<Vec<Vec<u8>>>,
    /// Fails where the texts cannot be known at all.
    pub require_texts: fn(&Machine) -> Result<()>,
    /// All values on a machine as texts, if they are few.
    pub all_texts: fn(&Machine) -> Option<Vec<String>>,
    /// The text for pages that have no such fact.
    pub absent: &'static str,
    /// The default number of groups by the fact that are shown, the largest first; `None` for all.
    pub most_groups: Option<u64>,
    /// The fact in samples; `None` if they do not have it.
    pub sampled: Option<Sampled>,
}

/// A fact in the samples of `watch` and the snapshots of `diff`.
pub(super) struct Sampled {
    /// The evidence that samples read for it.
    pub need: Evidence,
    /// The kind of change of this fact alone, which is shown on request.
    pub change: Option<EventKind>,
    /// The value before or after a change; `None` if changes do not have it.
    pub of: Option<fn(&PageFacts) -> Answer>,
}

/// The data that a value depends on beside the page.
pub(super) struct Here<'a> {
    pub region: Option<&'a ViewedRegion>,
    pub of: &'a Subject,
}

/// The owner of the pages: an address space, or a machine without a process.
pub(super) struct Subject {
    /// `None` for frames without a process.
    pub space: Option<AddressSpace>,
    pub machine: Arc<Machine>,
    pub size: PageSize,
    hides_swapped: OnceLock<bool>,
    marks_huge_files: OnceLock<bool>,
}

impl Subject {
    pub fn new(space: Option<AddressSpace>, machine: &Arc<Machine>) -> Self {
        Subject {
            space,
            machine: Arc::clone(machine),
            size: machine.page_size(),
            hides_swapped: OnceLock::new(),
            marks_huge_files: OnceLock::new(),
        }
    }

    /// Returns whether some pages of shared memory may be in swap without any sign of it.
    pub fn hides_swapped(&self) -> bool {
        let hides = |space: &AddressSpace| space.viewed_regions().iter().any(|viewed| space.hides_swapped(viewed));
        *self.hides_swapped.get_or_init(|| self.space.as_ref().is_some_and(hides))
    }

    /// Returns whether bit 61 is set on all pages of files and of shared memory.
    pub fn marks_huge_files(&self) -> bool {
        let marks = |space: &AddressSpace| space.huge_files_are_marked();
        *self.marks_huge_files.get_or_init(|| self.space.as_ref().is_some_and(marks))
    }
}

/// Returns the answer for a fact of the frame of a page.
#[inline]
pub(super) fn of_frame(page: &Page, value: Option<u64>) -> Answer {
    of_frame_or(page, value, Gap::Changed)
}

/// Returns the answer for a fact of the frame of a page. For a page with a frame, `gap` is why the fact is unknown.
#[inline]
pub(super) fn of_frame_or(page: &Page, value: Option<u64>, gap: Gap) -> Answer {
    match (page.state(), value) {
        (State::PfnMapped, None) => Answer::Unknown(Gap::DeviceFrame),
        (State::Present | State::PfnMapped, Some(value)) => Answer::Is(value),
        (State::Present, None) => Answer::Unknown(gap),
        _ => Answer::None,
    }
}
