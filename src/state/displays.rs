//! What is shown at each prompt.

use crate::lang::Displayed;

/// Something that is shown at each prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct Display {
    /// The number for `undisplay`; never reused.
    pub number: u64,
    /// What is shown.
    pub what: Displayed,
}

/// All of them, in the order in which they were added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Displays {
    kept: Vec<Display>,
    last: u64,
}

impl Displays {
    /// The number of the next one.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// Adds a display.
    pub fn keep(&mut self, display: Display) {
        self.last = display.number;
        self.kept.push(display);
    }

    /// All of them.
    pub fn all(&self) -> Vec<Display> {
        self.kept.clone()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Removes the one of this number. Returns whether there was one.
    pub fn remove(&mut self, number: u64) -> bool {
        let before = self.kept.len();
        self.kept.retain(|one| one.number != number);
        self.kept.len() < before
    }
}
