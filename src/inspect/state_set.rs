//! The states that a page may be in: one, unless its entry does not say which.

use crate::kernel::State;
use crate::report::{Reason, Why};

/// The states that a page may be in, given what was read of it, and the likeliest. Nearly always there is only one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StateSet {
    likeliest: State,
    /// Why there are others.
    cause: Option<Cause>,
    /// A bit for each.
    bits: u16,
}

/// Why it is not certain which state an entry without a page stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Cause {
    /// Type and offset are hidden without CAP_SYS_ADMIN.
    Hidden,
    /// The type is not a swap area's, and the kernel's configuration, which tells the other types apart, cannot be
    /// read.
    Special,
    /// The page map shows no markers of hugetlb pages, and a scan found one.
    Pool,
    /// The page map shows no markers of hugetlb pages, and there is no scan to find one.
    PoolUnscanned,
}

const fn bit(state: State) -> u16 {
    1 << state as u16
}

impl From<State> for StateSet {
    #[inline]
    fn from(state: State) -> Self {
        StateSet { likeliest: state, cause: None, bits: bit(state) }
    }
}

impl StateSet {
    fn uncertain(cause: Cause, likeliest: State, others: &[State]) -> Self {
        let bits = |bits, &state| bits | bit(state);
        StateSet { likeliest, cause: Some(cause), bits: others.iter().fold(bit(likeliest), bits) }
    }

    /// Adds a state, if it is possible.
    fn or(self, state: State, is_possible: bool) -> Self {
        let bits = self.bits | if is_possible { bit(state) } else { 0 };
        StateSet { bits, ..self }
    }

    /// The states of an entry whose type and offset are hidden. Bit 57 (write-protected) is visible to everybody.
    pub(crate) fn hidden(write_protected: bool, swap_in_use: bool, guards_are_marked: bool) -> Self {
        let likeliest = match write_protected {
            true => State::UffdWp,
            false if swap_in_use => State::Swapped,
            false => State::Poisoned,
        };
        let others = [State::Migrating, State::Hwpoison, State::Device];
        StateSet::uncertain(Cause::Hidden, likeliest, &others)
            .or(State::Swapped, swap_in_use)
            .or(State::Poisoned, !write_protected)
            .or(State::Guard, !write_protected && !guards_are_marked)
    }

    /// The states of an entry whose type is not that of a swap area, if the kernel's configuration cannot be read.
    /// Migration entries are the likeliest: every kernel has them, and they are by far the most frequent.
    pub(super) fn special() -> Self {
        let others = [State::Hwpoison, State::Device];
        StateSet::uncertain(Cause::Special, State::Migrating, &others)
    }

    /// The states of an empty hugetlb entry, given whether a scan found anything (`None` without a scan). Poisoned is
    /// likelier than migrating: a page stays poisoned, and migrates only for a moment.
    pub(super) fn of_pool(is_anything: Option<bool>) -> Option<Self> {
        let (cause, likeliest) = match is_anything {
            None => (Cause::PoolUnscanned, State::Untouched),
            Some(true) => (Cause::Pool, State::Poisoned),
            Some(false) => return None,
        };
        let others = [State::Poisoned, State::Migrating, State::Hwpoison];
        Some(StateSet::uncertain(cause, likeliest, &others))
    }

    /// The state, or the likeliest.
    #[inline]
    pub fn likeliest(self) -> State {
        self.likeliest
    }

    /// Itself, if there is more than one.
    #[inline]
    pub fn if_uncertain(self) -> Option<Self> {
        self.cause.map(|_| self)
    }

    /// Whether there is only one.
    #[inline]
    pub fn is_certain(self) -> bool {
        self.cause.is_none()
    }

    /// Whether `state` is one of them.
    #[inline]
    pub fn may_be(self, state: State) -> bool {
        self.bits & bit(state) != 0
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
        let text = match self.cause? {
            Cause::Hidden => {
                let may_be = self.alternatives_if_hidden();
                return Some(Reason::not_permitted(format!(
                    "not certain: type and offset of the entry are hidden without CAP_SYS_ADMIN; {may_be}"
                )));
            }
            Cause::Special => {
                "not certain: without the kernel's configuration, the states migrating, hwpoison and device cannot be told apart"
            }
            Cause::Pool => {
                "not certain: the page map does not show which marker a hugetlb page has; the state may be poisoned, migrating or hwpoison"
            }
            Cause::PoolUnscanned => {
                "not certain: the page map does not show markers of hugetlb pages, and only PAGEMAP_SCAN (Linux 6.7) shows whether there is one; the state may be poisoned, migrating or hwpoison"
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
        let hidden = (0..8u8).map(|bits| StateSet::hidden(bits & 1 != 0, bits & 2 != 0, bits & 4 != 0));
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
