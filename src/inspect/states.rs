//! The states that a page may be in: one, unless its entry does not say which.

use crate::kernel::State;
use crate::report::{Reason, Why};

/// The states that a page may be in, given what was read of it, and the likeliest. Nearly always there is only one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StateSet(States);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum States {
    Certain(State),
    Uncertain(Uncertainty),
}

const _: () = assert!(size_of::<StateSet>() == 2);

/// Why it is not certain which state an entry without a page stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Uncertainty {
    /// Type and offset are hidden without CAP_SYS_ADMIN; bit 57 is set, and swap is in use.
    ProtectedOrSwapped,
    /// The same without swap.
    Protected,
    /// Hidden: in swap, or a marker. The entries of guard pages are marked.
    SwapOrMarker,
    /// The same, also of a guard page.
    SwapMarkerOrGuard,
    /// Hidden: a marker, because no swap is in use.
    Marker,
    /// The same, also of a guard page.
    MarkerOrGuard,
    /// The type is not a swap area's, and the kernel's configuration, which tells the other types apart, cannot be
    /// read.
    Special,
    /// The page map shows no markers of hugetlb pages, and a scan found one.
    Pool,
    /// The page map shows no markers of hugetlb pages, and there is no scan to find one.
    PoolUnscanned,
}

impl Uncertainty {
    /// The states that are possible, the likeliest first. Of the entries with other types those of migration are the
    /// likeliest: every kernel has them, and they are by far the most frequent. In the pool poisoned is likelier than
    /// migrating: a page stays poisoned, and migrates only for a moment.
    const fn states(self) -> &'static [State] {
        use State::{Device, Guard, Hwpoison, Migrating, Poisoned, Swapped, UffdWp, Untouched};
        match self {
            Uncertainty::ProtectedOrSwapped => &[UffdWp, Swapped, Migrating, Hwpoison, Device],
            Uncertainty::Protected => &[UffdWp, Migrating, Hwpoison, Device],
            Uncertainty::SwapOrMarker => &[Swapped, Poisoned, Migrating, Hwpoison, Device],
            Uncertainty::SwapMarkerOrGuard => &[Swapped, Guard, Poisoned, Migrating, Hwpoison, Device],
            Uncertainty::Marker => &[Poisoned, Migrating, Hwpoison, Device],
            Uncertainty::MarkerOrGuard => &[Poisoned, Guard, Migrating, Hwpoison, Device],
            Uncertainty::Special => &[Migrating, Hwpoison, Device],
            Uncertainty::Pool => &[Poisoned, Migrating, Hwpoison],
            Uncertainty::PoolUnscanned => &[Untouched, Poisoned, Migrating, Hwpoison],
        }
    }
}

/// What is known of an entry whose type and offset are hidden.
#[derive(Clone, Copy)]
pub(crate) struct HiddenEntry {
    /// Bit 57, which is visible to everybody.
    pub is_write_protected: bool,
    /// Whether any swap area is in use.
    pub swap_in_use: bool,
    /// Whether this kernel marks the entries of guard pages, and this one is not marked.
    pub guards_are_marked: bool,
}

impl From<Uncertainty> for StateSet {
    fn from(cause: Uncertainty) -> Self {
        StateSet(States::Uncertain(cause))
    }
}

impl From<State> for StateSet {
    #[inline]
    fn from(state: State) -> Self {
        StateSet(States::Certain(state))
    }
}

impl StateSet {
    /// The states of an entry whose type and offset are hidden.
    pub(crate) fn hidden(entry: HiddenEntry) -> Self {
        let HiddenEntry { is_write_protected, swap_in_use, guards_are_marked } = entry;
        StateSet(States::Uncertain(match (is_write_protected, swap_in_use, guards_are_marked) {
            (true, true, _) => Uncertainty::ProtectedOrSwapped,
            (true, false, _) => Uncertainty::Protected,
            (false, true, true) => Uncertainty::SwapOrMarker,
            (false, true, false) => Uncertainty::SwapMarkerOrGuard,
            (false, false, true) => Uncertainty::Marker,
            (false, false, false) => Uncertainty::MarkerOrGuard,
        }))
    }

    /// The states of an entry whose type is not that of a swap area, if the kernel's configuration cannot be read.
    pub(super) fn special() -> Self {
        StateSet(States::Uncertain(Uncertainty::Special))
    }

    /// The states of an empty hugetlb entry, given whether a scan found anything (`None` without a scan).
    pub(super) fn of_pool(is_anything: Option<bool>) -> Option<Self> {
        let cause = match is_anything {
            None => Uncertainty::PoolUnscanned,
            Some(true) => Uncertainty::Pool,
            Some(false) => return None,
        };
        Some(StateSet(States::Uncertain(cause)))
    }

    /// The state, or the likeliest.
    #[inline]
    pub fn likeliest(self) -> State {
        match self.0 {
            States::Certain(state) => state,
            States::Uncertain(cause) => cause.states().first().copied().unwrap_or(State::Untouched),
        }
    }

    /// Itself, if there is more than one.
    #[inline]
    pub fn if_uncertain(self) -> Option<Self> {
        (!self.is_certain()).then_some(self)
    }

    /// Why there are several; `None` if there is only one.
    #[inline]
    pub fn cause(self) -> Option<Uncertainty> {
        match self.0 {
            States::Certain(_) => None,
            States::Uncertain(cause) => Some(cause),
        }
    }

    /// Whether there is only one.
    #[inline]
    pub fn is_certain(self) -> bool {
        matches!(self.0, States::Certain(_))
    }

    /// Whether `state` is one of them.
    #[inline]
    pub fn may_be(self, state: State) -> bool {
        match self.0 {
            States::Certain(only) => only == state,
            States::Uncertain(cause) => cause.states().contains(&state),
        }
    }

    /// Whether it is `state`; `None` where that is not certain.
    #[inline]
    pub fn is(self, state: State) -> Option<bool> {
        if self.may_be(state) { self.is_certain().then_some(true) } else { Some(false) }
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = State> {
        let all = State::ALL.iter().copied();
        all.filter(move |&state| self.may_be(state))
    }

    /// Why the state is uncertain, and what it may be; `None` if it is certain.
    pub fn uncertainty(self) -> Option<Reason> {
        let States::Uncertain(cause) = self.0 else {
            return None;
        };
        let text = match cause {
            Uncertainty::Special => {
                "not certain: without the kernel's configuration, the states migrating, hwpoison and device cannot be distinguished"
            }
            Uncertainty::Pool => {
                "not certain: the page map does not show which marker a hugetlb page has; the state may be poisoned, migrating or hwpoison"
            }
            Uncertainty::PoolUnscanned => {
                "not certain: the page map does not show markers of hugetlb pages, and only PAGEMAP_SCAN (Linux 6.7) shows whether there is one; the state may be poisoned, migrating or hwpoison"
            }
            Uncertainty::ProtectedOrSwapped
            | Uncertainty::Protected
            | Uncertainty::SwapOrMarker
            | Uncertainty::SwapMarkerOrGuard
            | Uncertainty::Marker
            | Uncertainty::MarkerOrGuard => {
                let may_be = self.alternatives_if_hidden();
                return Some(Reason::not_permitted(format!(
                    "not certain: type and offset of the entry are hidden without CAP_SYS_ADMIN; {may_be}"
                )));
            }
        };
        Some(Reason::NotOnThisKernel(text.to_owned()))
    }

    fn alternatives_if_hidden(self) -> String {
        let markers = if !self.may_be(State::Guard) { "poisoned" } else { "poisoned, guard" };
        match (self.may_be(State::UffdWp), self.may_be(State::Swapped)) {
            (true, true) => "the page is write-protected, and may also be in swap".to_owned(),
            (true, false) => "the page is write-protected, and may also be migrating".to_owned(),
            (false, true) => {
                format!("the state may be swapped, {markers}, migrating, hwpoison or device")
            }
            (false, false) => {
                format!("no swap is in use, so the state may be {markers}, migrating, hwpoison or device")
            }
        }
    }

    /// The uncertainty as the reason for `field`, if there is any.
    pub fn why(self, field: &'static str) -> Why {
        let mut why = Why::default();
        if let Some(reason) = self.uncertainty() {
            why.note(field, &reason);
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every uncertain set that can occur.
    fn all() -> impl Iterator<Item = StateSet> {
        let hidden = (0..8u8).map(|bits| {
            StateSet::hidden(HiddenEntry {
                is_write_protected: bits & 1 != 0,
                swap_in_use: bits & 2 != 0,
                guards_are_marked: bits & 4 != 0,
            })
        });
        let of_pool = [None, Some(true)].into_iter().flat_map(StateSet::of_pool);
        hidden.chain([StateSet::special()]).chain(of_pool)
    }

    #[test]
    fn a_state_alone_is_certain() {
        for state in State::ALL {
            let set = StateSet::from(*state);
            assert_eq!(set.likeliest(), *state);
            assert_eq!(set.iter().collect::<Vec<_>>(), [*state]);
            assert_eq!(set.uncertainty(), None);
            assert_eq!(set.if_uncertain(), None);
            for other in State::ALL {
                assert_eq!(set.is(*other), Some(other == state));
            }
        }
    }

    #[test]
    fn the_likeliest_is_possible_and_never_the_only_one() {
        for set in all() {
            assert_eq!(set.is(set.likeliest()), None, "{set:?}");
            assert!(set.iter().count() > 1, "{set:?}");
            let reason = set.uncertainty().expect("a reason").to_string();
            assert!(reason.starts_with("not certain"));
        }
    }

    #[test]
    fn an_uncertain_entry_that_is_not_empty_is_neither_present_nor_untouched() {
        // Only an entry of the hugetlb pool may be empty and uncertain.
        for set in all().filter(|set| set.likeliest() != State::Untouched) {
            for state in [State::Present, State::Untouched, State::PfnMapped, State::Outside, State::Unmapped] {
                assert_eq!(set.is(state), Some(false), "{set:?} {state:?}");
            }
        }
    }
}
