//! A bound on the work that one question may cost: the numbers in debug information are somebody else's.

use super::NoLines;
use crate::report::Stopped;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A question that takes longer is given up and said to be.
const LONGEST: Duration = Duration::from_secs(20);
/// How many steps are taken between two looks at the clock.
const STEPS_BETWEEN_LOOKS: usize = 4096;

/// Whether whoever asked still wants to know.
pub type Stop<'a> = dyn FnMut() -> Result<(), Stopped> + 'a;

/// The work on one question.
pub(super) struct Work<'a> {
    stop: &'a mut Stop<'a>,
    interrupts: &'a AtomicBool,
    end: Instant,
    steps: usize,
}

impl<'a> Work<'a> {
    /// Ends when `stop` says so, and when `interrupts` becomes true: Ctrl-C.
    pub(super) fn new(stop: &'a mut Stop<'a>, interrupts: &'a AtomicBool) -> Self {
        Work {
            stop,
            interrupts,
            end: Instant::now() + LONGEST,
            steps: 0,
        }
    }

    /// To be called for each thing that is looked at; `cost` is about how many attributes it has.
    pub(super) fn step(&mut self, cost: usize) -> Result<(), NoLines> {
        self.steps = self.steps.saturating_add(cost).saturating_add(1);
        match self.steps < STEPS_BETWEEN_LOOKS {
            true => Ok(()),
            false => self.look(),
        }
    }

    /// To be called before something that takes long by itself.
    pub(super) fn look(&mut self) -> Result<(), NoLines> {
        self.steps = 0;
        (self.stop)().map_err(NoLines::Stopped)?;
        if self.interrupts.load(Ordering::Relaxed) {
            return Err(NoLines::Stopped(Stopped::Interrupted));
        }
        match Instant::now() < self.end {
            true => Ok(()),
            false => Err(NoLines::TooCostly),
        }
    }
}
