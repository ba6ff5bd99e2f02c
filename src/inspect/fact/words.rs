//! The question whether a page has one state, kind or flag. That often needs less evidence than the state, kind or
//! flags themselves.

use super::super::address_space::AddressSpace;
use super::super::classify::{Backing, KernelBehaviour as _};
use super::super::page::{Evidence, Page};
use super::Gap;
use super::answer::{Answer, Here, Subject, of_frame_or};
use crate::kernel::{Kind, PageField, PageFlags, State, page_flags};
use crate::process::BackingContent;

/// Returns the evidence for whether a page has this state, kind or flag; `None` for other words, or if it is the same
/// as for the fact itself.
pub(super) fn need(field: PageField, space: &AddressSpace, of: &Subject) -> Option<Evidence> {
    match field {
        // A page of shared memory may be in swap only if its object has contents that are not in memory.
        PageField::State(State::Swapped) if of.hides_swapped() => Some(Evidence::SHARED_CONTENT),
        PageField::Kind(Kind::Anonymous | Kind::Zero | Kind::PrivateCopy) => None,
        // Bit 61 decides for most pages. For the others, the evidence for zero pages is needed.
        PageField::Kind(Kind::File | Kind::Shmem | Kind::DeviceMemory)
            if !space.huge_files_are_marked() && space.require(Evidence::KINDS).is_ok() =>
        {
            None
        }
        PageField::Kind(Kind::Ksm) => Some(Evidence::FLAGS),
        PageField::Kind(Kind::MaybeSwapped) => Some(Evidence::SHARED_CONTENT),
        PageField::Kind(kind) if of_content(kind) => Some(Evidence::CONTENT),
        PageField::Kind(_) => Some(Evidence::ENTRIES),
        PageField::State(_) | PageField::Flag(_) | PageField::Fact(_) => None,
    }
}

/// Returns whether a page in swap would look like this one: an untouched page of shared memory whose contents are not
/// in memory, or are unknown.
fn may_be_swapped(page: &Page, here: &Here<'_>) -> bool {
    let is_empty =
        page.state() == State::Untouched && here.region.is_some_and(|viewed| viewed.backing == Backing::Shmem);
    is_empty && matches!(page.content, None | Some(BackingContent::Contents { cached: false }))
}

/// Returns the state of a page.
#[inline]
pub(super) fn state(page: &Page, here: &Here<'_>) -> Answer {
    match page.states.cause() {
        Some(cause) => Answer::Unknown(Gap::Uncertain(cause)),
        None if may_be_swapped(page, here) && here.of.hides_swapped() => Answer::Unknown(Gap::Swap),
        None => Answer::Is(page.state() as u64),
    }
}

#[inline]
pub(super) fn is_in_state(state: State, page: &Page, here: &Here<'_>) -> Answer {
    match page.states.is(state) {
        _ if state == State::Swapped && may_be_swapped(page, here) && here.of.hides_swapped() => {
            Answer::Unknown(Gap::Swap)
        }
        Some(is) => Answer::Is(is.into()),
        None => page.states.cause().map_or(Answer::None, |cause| Answer::Unknown(Gap::Uncertain(cause))),
    }
}

/// Returns the kind of a page.
#[inline]
pub(super) fn kind(page: &Page) -> Answer {
    match (page.kind, page.states.cause()) {
        (Some(kind), _) => Answer::Is(kind as u64),
        (None, Some(cause)) => Answer::Unknown(Gap::Uncertain(cause)),
        (None, None) => match page.state() {
            State::PfnMapped | State::Present => Answer::Unknown(kind_gap(page)),
            // The page is in no region.
            _ => Answer::None,
        },
    }
}

/// Returns why the kind of a page in a region is unknown.
pub(super) fn kind_gap(page: &Page) -> Gap {
    match page.flags {
        _ if page.state() == State::PfnMapped => Gap::DeviceOrCopy,
        Some(flags) if flags.contains(PageFlags::KSM) => Gap::MergedFlag,
        Some(_) => Gap::Kind,
        None => Gap::NoFlags,
    }
}

pub(super) fn is_of_kind(asked: Kind, page: &Page, here: &Here<'_>) -> Answer {
    if of_content(asked) {
        return is_of_content(asked, page);
    }
    match kind(page) {
        Answer::Is(kind) => Answer::Is((kind == asked as u64).into()),
        Answer::Unknown(_) if !may_be(asked, page, here) => Answer::Is(0),
        unknown => unknown,
    }
}

/// Returns whether a page of unknown kind may be of this one. If the kernel sets bit 61 on all pages of files and of
/// shared memory, a present page without it is private memory, merged, or the zero page.
fn may_be(asked: Kind, page: &Page, here: &Here<'_>) -> bool {
    let is_private = matches!(asked, Kind::Anonymous | Kind::PrivateCopy | Kind::Ksm | Kind::Zero);
    let is_marked = here.of.marks_huge_files() || page.huge == Some(false);
    let of_pool = here.region.is_some_and(|viewed| viewed.backing == Backing::Hugetlb);
    let is_told = page.state() == State::Present && is_marked && !of_pool && !page.entry.is_file_or_shared();
    is_private || !is_told
}

/// Returns whether this kind of an untouched page shows only in the page cache of its file or shared memory.
const fn of_content(kind: Kind) -> bool {
    matches!(kind, Kind::Cached | Kind::NotCached | Kind::PastEnd | Kind::MaybeSwapped)
}

fn is_of_content(asked: Kind, page: &Page) -> Answer {
    let holds = match (page.state(), page.kind, page.content) {
        (State::Untouched, Some(Kind::File | Kind::Secret | Kind::Hugetlb), _) if asked == Kind::MaybeSwapped => false,
        (State::Untouched, Some(Kind::File | Kind::Shmem | Kind::Secret | Kind::Hugetlb), None) => {
            return Answer::Unknown(Gap::Contents);
        }
        // Untouched pages of the pool have the kind of the pool, whatever their file has.
        (State::Untouched, Some(Kind::Hugetlb), Some(content)) => match content {
            BackingContent::Hole => false,
            BackingContent::PastEnd => asked == Kind::PastEnd,
            BackingContent::Contents { .. } => asked == Kind::Cached,
        },
        (_, kind, _) => kind == Some(asked),
    };
    Answer::Is(holds.into())
}

/// Returns whether the frame has `flag`.
#[inline]
pub(super) fn has_flag(flag: PageFlags, page: &Page) -> Answer {
    of_frame_or(page, page.flags.map(|flags| page_flags::holds(flag, flags).into()), Gap::Hidden)
}
