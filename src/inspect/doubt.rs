//! Entries without a page that do not say what they are: their states are the likeliest, and each may be another.

use super::kernel_behaviour::KernelBehaviour;
use super::observation::{Backing, PageObservation, RegionFacts};
use crate::kernel::State;
use crate::kernel::swaps::SwapMeaning;
use crate::process::Categories;
use crate::report::Reason;

/// Why the state of an entry without a page is no more than the likeliest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Doubt {
    /// Type and offset are hidden without CAP_SYS_ADMIN.
    Hidden {
        /// Bit 57, which is shown to everybody.
        write_protected: bool,
        /// Whether it can be a slot of a swap area.
        swap_in_use: bool,
        /// Whether a guard page would show by bit 58.
        guards_are_marked: bool,
    },
    /// The type is none of a swap area, and without the kernel's configuration it cannot be told which of the others it is.
    Special,
    /// Of the hugetlb pool the page map shows nothing that is not present, and a scan says that something is there.
    Pool,
    /// The same, and there is no scan to say so.
    PoolUnasked,
}

/// Whether the state of what is not present is in doubt; `None` where it is certain.
#[inline]
pub fn doubt(
    evidence: PageObservation,
    place: Option<RegionFacts>,
    rules: &dyn KernelBehaviour,
) -> Option<Doubt> {
    let entry = evidence.entry?;
    let Some(swap) = entry.swap() else {
        let is_empty = !entry.is_present() && !entry.is_uffd_wp();
        let of_pool = place.is_some_and(|place| place.backing == Backing::Hugetlb);
        return match evidence.categories {
            _ if !is_empty || !of_pool => None,
            None => Some(Doubt::PoolUnasked),
            Some(categories) => categories
                .contains(Categories::SWAPPED)
                .then_some(Doubt::Pool),
        };
    };
    if entry.is_guard() {
        return None;
    }
    if entry.is_swap_hidden() {
        return Some(Doubt::Hidden {
            write_protected: entry.is_uffd_wp(),
            swap_in_use: rules.swap_in_use(),
            guards_are_marked: rules.guards_are_marked(),
        });
    }
    (rules.swap_meaning(swap.kind) == SwapMeaning::Special).then_some(Doubt::Special)
}

impl Doubt {
    /// The likeliest.
    pub fn likeliest(self) -> State {
        match self {
            Doubt::Hidden {
                write_protected: true,
                ..
            } => State::UffdWp,
            Doubt::Hidden {
                swap_in_use: true, ..
            } => State::Swapped,
            Doubt::Hidden { .. } => State::Poisoned,
            // What a kernel without readable configuration has always, and by far the most often.
            Doubt::Special => State::Migrating,
            // What stays; pages are on their way for no more than a moment.
            Doubt::Pool => State::Poisoned,
            Doubt::PoolUnasked => State::Untouched,
        }
    }

    /// Whether it may be `state`.
    pub fn may_be(self, state: State) -> bool {
        match self {
            Doubt::Hidden {
                write_protected,
                swap_in_use,
                guards_are_marked,
            } => match state {
                State::Swapped => swap_in_use,
                State::UffdWp => write_protected,
                State::Poisoned => !write_protected,
                State::Guard => !write_protected && !guards_are_marked,
                State::Migrating | State::Hwpoison | State::Device => true,
                _ => false,
            },
            Doubt::Special => matches!(state, State::Migrating | State::Hwpoison | State::Device),
            Doubt::Pool => matches!(state, State::Poisoned | State::Migrating | State::Hwpoison),
            Doubt::PoolUnasked => state == State::Untouched || Doubt::Pool.may_be(state),
        }
    }

    /// What it may be.
    pub fn states(self) -> impl Iterator<Item = State> {
        let all = State::ALL.iter().copied();
        all.filter(move |&state| self.may_be(state))
    }

    /// Why, and what else it may be.
    pub fn reason(self) -> Reason {
        let (write_protected, swap_in_use, guards_are_marked) = match self {
            Doubt::Hidden {
                write_protected,
                swap_in_use,
                guards_are_marked,
            } => (write_protected, swap_in_use, guards_are_marked),
            Doubt::Special => return Reason::NotOnThisKernel(
                "not certain: without the kernel's configuration, migration, failed memory and device memory cannot be told apart".into(),
            ),
            Doubt::Pool => return Reason::NotOnThisKernel(
                "not certain: the page map does not show which marker a hugetlb page has; it may be poisoned, on its way to another frame, or failed memory".into(),
            ),
            Doubt::PoolUnasked => return Reason::NotOnThisKernel(
                "not certain: the page map does not show markers of hugetlb pages, and only PAGEMAP_SCAN tells that there is one (Linux 6.7); it may be poisoned, on its way to another frame, or failed memory".into(),
            ),
        };
        let marker = match guards_are_marked {
            true => "a marker (poisoned)",
            false => "a marker (poisoned, guard)",
        };
        let may_be = match (write_protected, swap_in_use) {
            (true, true) => "write-protected for certain, it may be in swap as well".to_owned(),
            (true, false) => {
                "write-protected for certain, it may also be on its way to another frame".to_owned()
            }
            (false, true) => format!(
                "it may be in swap, {marker}, on its way to another frame, failed memory or a device's"
            ),
            (false, false) => format!(
                "without swap in use, it may be {marker}, on its way to another frame, failed memory or a device's"
            ),
        };
        Reason::not_permitted(format!(
            "not certain: type and offset of the entry are hidden without CAP_SYS_ADMIN; {may_be}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every doubt there can be.
    fn all() -> impl Iterator<Item = Doubt> {
        let hidden = (0..8u8).map(|bits| Doubt::Hidden {
            write_protected: bits & 1 != 0,
            swap_in_use: bits & 2 != 0,
            guards_are_marked: bits & 4 != 0,
        });
        hidden.chain([Doubt::Special, Doubt::Pool, Doubt::PoolUnasked])
    }

    #[test]
    fn the_likeliest_is_possible_and_never_the_only_one() {
        for doubt in all() {
            assert!(doubt.may_be(doubt.likeliest()), "{doubt:?}");
            assert!(doubt.states().count() > 1, "{doubt:?}");
            assert!(doubt.reason().to_string().starts_with("not certain"));
        }
    }

    #[test]
    fn an_entry_that_is_not_empty_is_never_what_leaves_it_empty() {
        // Of the pool what is shown is empty.
        for doubt in all().filter(|&doubt| doubt != Doubt::PoolUnasked) {
            for state in [
                State::Present,
                State::Untouched,
                State::PfnMapped,
                State::Outside,
                State::Unmapped,
            ] {
                assert!(!doubt.may_be(state), "{doubt:?} {state:?}");
            }
        }
    }
}
