//! What is shown at each prompt.

use crate::lang::Displayed;

/// Something that is shown at each prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct Display {
    /// By which `undisplay` knows it; never given twice.
    pub number: u64,
    /// What it is.
    pub what: Displayed,
}

/// All of them, in the order in which they came.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Displays {
    kept: Vec<Display>,
    last: u64,
}

impl Displays {
    /// The number of the one that is kept next.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// Shows this one too from now on.
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

    /// Shows none any more.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// No longer shows the one of this number; whether there was one.
    pub fn remove(&mut self, number: u64) -> bool {
        let before = self.kept.len();
        self.kept.retain(|one| one.number != number);
        self.kept.len() < before
    }
}
