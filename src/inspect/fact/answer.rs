//! The answers about facts, and what a definition of a fact has.

use super::super::address_space::AddressSpace;
use super::super::page::{Evidence, Page};
use super::super::region::ViewedRegion;
use super::super::{KernelBehaviour as _, Result};
use super::gap::Gap;
use crate::kernel::{PageSize, State};
use crate::process::Machine;
use crate::report::{EventKind, Fact, PageFacts, Reason};
use std::sync::{Arc, OnceLock};

/// What is known of one page: there are four answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Answer {
    /// The value: a number, 0 or 1 for no or yes, or a number that stands for a word.
    Is(u64),
    /// There is such a fact, and this is why it is unknown.
    Unknown(Gap),
    /// The page has no such fact.
    None,
    /// The fact was not asked for.
    NotAsked,
}

impl Answer {
    /// The value, if it is known.
    #[inline]
    pub fn value(self) -> Option<u64> {
        match self {
            Answer::Is(value) => Some(value),
            _ => None,
        }
    }

    /// Yes or no, if it is known.
    #[inline]
    pub fn holds(self) -> Option<bool> {
        self.value().map(|value| value != 0)
    }

    /// Yes or no, or why that is unknown.
    #[inline]
    pub(super) fn of(value: Option<bool>, otherwise: Answer) -> Answer {
        value.map_or(otherwise, |value| Answer::Is(value.into()))
    }
}

/// What a fact is, in one place.
pub(super) struct Definition {
    /// What a sweep of pages has to read for its value.
    pub need: fn(&AddressSpace) -> Evidence,
    /// The same for a sweep of frames, which has no other facts than those that the table says.
    pub need_of_frames: fn(&Machine) -> Evidence,
    /// Its value for a page.
    pub of: fn(&Page, &Here<'_>) -> Answer,
    /// A value as it is shown, and why it is not what it should be.
    pub shown: fn(u64, &Machine) -> (String, Option<Reason>),
    /// The texts of a value, one of which filters match; for facts that are texts.
    pub texts: fn(u64, &Subject) -> Fact<Vec<Vec<u8>>>,
    /// Fails where the texts cannot be known at all.
    pub require_texts: fn(&Machine) -> Result<()>,
    /// All that it can be on a machine, in words, if they are few.
    pub all_texts: fn(&Machine) -> Option<Vec<String>>,
    /// What is shown for pages that have no such fact.
    pub absent: &'static str,
    /// Of how many groups rows are shown if nothing else is asked for, the largest; `None` for all.
    pub most_groups: Option<u64>,
    /// What samples hold of it; `None` if nothing.
    pub sampled: Option<Sampled>,
}

/// What the samples of `watch` and the snapshots of `diff` hold of a fact.
pub(super) struct Sampled {
    /// What they read for it.
    pub need: Evidence,
    /// The kind of change of this fact alone, which is shown on request.
    pub change: Option<EventKind>,
    /// Its value before or after a change; `None` where changes do not have it.
    pub of: Option<fn(&PageFacts) -> Answer>,
}

/// What a value depends on beside the page.
pub(super) struct Here<'a> {
    pub region: Option<&'a ViewedRegion>,
    pub of: &'a Subject,
}

/// What has the pages: an address space, or a machine without a process.
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

    /// Whether some pages of shared memory may be in swap, and nothing here shows which.
    pub fn hides_swapped(&self) -> bool {
        let hides = |space: &AddressSpace| space.viewed_regions().iter().any(|viewed| space.hides_swapped(viewed));
        *self.hides_swapped.get_or_init(|| self.space.as_ref().is_some_and(hides))
    }

    /// Whether bit 61 is set on all pages of files and of shared memory.
    pub fn marks_huge_files(&self) -> bool {
        let marks = |space: &AddressSpace| space.huge_files_are_marked();
        *self.marks_huge_files.get_or_init(|| self.space.as_ref().is_some_and(marks))
    }
}

/// The answer about the frame of a page.
#[inline]
pub(super) fn of_frame(page: &Page, value: Option<u64>) -> Answer {
    of_frame_or(page, value, Gap::Changed)
}

/// The same; for a page that has a frame, `gap` is why nothing is known.
#[inline]
pub(super) fn of_frame_or(page: &Page, value: Option<u64>, gap: Gap) -> Answer {
    match (page.state(), value) {
        (State::PfnMapped, None) => Answer::Unknown(Gap::DeviceFrame),
        (State::Present | State::PfnMapped, Some(value)) => Answer::Is(value),
        (State::Present, None) => Answer::Unknown(gap),
        _ => Answer::None,
    }
}
