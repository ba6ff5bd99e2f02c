//! A limit on the work of one query: debug information is not trusted.

use super::NoLines;
use crate::report::Stopped;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A query that takes longer is given up, with a reason.
const LONGEST: Duration = Duration::from_secs(20);
/// Steps between two checks of the clock.
const STEPS_BETWEEN_LOOKS: usize = 4096;

/// Called now and then: an error ends the query.
pub type Stop<'a> = dyn FnMut() -> Result<(), Stopped> + 'a;

/// The work on one query.
pub(super) struct Work<'a> {
    stop: &'a mut Stop<'a>,
    interrupts: &'a AtomicBool,
    end: Instant,
    steps: usize,
}

impl<'a> Work<'a> {
    /// It ends when `stop` fails, and when `interrupts` becomes true: Ctrl-C.
    pub(super) fn new(stop: &'a mut Stop<'a>, interrupts: &'a AtomicBool) -> Self {
        Work { stop, interrupts, end: Instant::now() + LONGEST, steps: 0 }
    }

    /// Call it for each entry; `cost` is roughly the number of its attributes.
    pub(super) fn step(&mut self, cost: usize) -> Result<(), NoLines> {
        self.steps = self.steps.saturating_add(cost).saturating_add(1);
        if self.steps < STEPS_BETWEEN_LOOKS { Ok(()) } else { self.look() }
    }

    /// Call it before an operation that takes long by itself.
    pub(super) fn look(&mut self) -> Result<(), NoLines> {
        self.steps = 0;
        (self.stop)().map_err(NoLines::Stopped)?;
        if self.interrupts.load(Ordering::Relaxed) {
            return Err(NoLines::Stopped(Stopped::Interrupted));
        }
        if Instant::now() < self.end { Ok(()) } else { Err(NoLines::TooCostly) }
    }
}
