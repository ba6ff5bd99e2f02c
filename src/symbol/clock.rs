//! A time limit for searches in a file's tables.

use super::NoSymbols;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Symbols between two checks of the clock.
pub(super) const SYMBOLS_BETWEEN_CLOCKS: u32 = 256;

/// A time budget that is cheap to check, and that Ctrl-C ends.
pub(super) struct Clock<'a> {
    end: Instant,
    interrupts: &'a AtomicBool,
    asked: u32,
    over: bool,
}

impl<'a> Clock<'a> {
    pub(super) fn new(budget: Duration, interrupts: &'a AtomicBool) -> Self {
        Clock { end: Instant::now() + budget, interrupts, asked: 0, over: false }
    }

    /// Whether the time is up, or Ctrl-C was typed.
    pub(super) fn is_over_now(&mut self) -> bool {
        self.over = self.over || self.interrupts.load(Ordering::Relaxed) || Instant::now() >= self.end;
        self.over
    }

    /// The same; reads the clock only now and then.
    pub(super) fn is_over(&mut self) -> bool {
        self.asked = self.asked.wrapping_add(1);
        if self.asked.is_multiple_of(SYMBOLS_BETWEEN_CLOCKS) {
            return self.is_over_now();
        }
        self.over
    }
    /// Why the search was given up.
    pub(super) fn reason(&self) -> NoSymbols {
        if self.interrupts.load(Ordering::Relaxed) { NoSymbols::Interrupted } else { NoSymbols::TooCostly }
    }
}
