//! Files of debug information that may be installed while pmdb runs.

use super::NoLines;
use std::sync::OnceLock;

/// A value that each query searches for until it is found; then it is kept.
pub(super) struct UntilFound<T>(OnceLock<T>);

impl<T> Default for UntilFound<T> {
    fn default() -> Self {
        UntilFound(OnceLock::new())
    }
}

impl<T> UntilFound<T> {
    /// The value: known from before, or found by `read`.
    pub(super) fn get(&self, read: impl FnOnce() -> Result<Option<T>, NoLines>) -> Result<Option<&T>, NoLines> {
        match self.known() {
            None => Ok(read()?.map(|found| self.0.get_or_init(|| found))),
            known => Ok(known),
        }
    }

    /// The value, if it was found before.
    pub(super) fn known(&self) -> Option<&T> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_searched_for_again() {
        let slot = UntilFound::default();
        let mut reads = 0;
        let mut ask = |there: Result<Option<u8>, NoLines>| {
            let found = slot.get(|| {
                reads += 1;
                there
            });
            (found.ok().flatten().copied(), reads)
        };
        assert_eq!(ask(Ok(None)), (None, 1));
        assert_eq!(ask(Err(NoLines::TooLarge)), (None, 2));
        assert_eq!(ask(Ok(Some(7))), (Some(7), 3));
        assert_eq!(ask(Ok(Some(8))), (Some(7), 3));
    }
}
