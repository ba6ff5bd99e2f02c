//! What work may cost before it is given up, and Ctrl-C, which ends it at once.
//!
//! Files that others wrote may hold any amount of anything. Each loop over what is in them calls [`Budget::go_on`]
//! with every step, and passes its error on: an answer that was cut short is never taken for a whole one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Steps between two looks at the clock and at Ctrl-C.
const STEPS_BETWEEN_LOOKS: u64 = 256;

/// Becomes true with Ctrl-C.
static INTERRUPTS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Makes waits for storage, and the look through a long list of leases, end when `interrupts` becomes true: Ctrl-C.
/// Only the first call counts.
#[doc(hidden)]
pub fn heed(interrupts: Arc<AtomicBool>) {
    _ = INTERRUPTS.set(interrupts);
}

/// A budget that ends with Ctrl-C, for what is read without one.
pub(crate) fn until_interrupted() -> Budget {
    INTERRUPTS.get().map_or_else(Budget::unlimited, |interrupts| Budget::until(Arc::clone(interrupts)))
}

/// Why work was given up before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OutOfBudget {
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The time is up.
    #[error("the time limit is reached")]
    Time,
    /// The work took more steps than it may.
    #[error("the limit of steps is reached")]
    Steps,
    /// The work took more memory than it may.
    #[error("the memory limit is reached")]
    Bytes,
}

/// The time, the steps and the bytes of memory that are left to some work. A clone has the same deadline, and as many
/// steps and bytes again.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Budget {
    interrupt: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
    steps: Option<u64>,
    bytes: Option<u64>,
    since_look: u64,
    over: Option<OutOfBudget>,
}

impl Budget {
    /// No limit.
    pub fn unlimited() -> Budget {
        Budget::default()
    }

    /// Ends when `interrupt` becomes true.
    pub fn until(interrupt: Arc<AtomicBool>) -> Budget {
        Budget { interrupt: Some(interrupt), ..Budget::default() }
    }

    /// Ends after `time` from now, unless it ends sooner.
    pub fn within(self, time: Duration) -> Budget {
        let end = Instant::now().checked_add(time);
        let deadline = [self.deadline, end].into_iter().flatten().min();
        Budget { deadline, ..self }
    }

    /// Ends after `steps`.
    pub fn at_most(self, steps: u64) -> Budget {
        Budget { steps: Some(steps), ..self }
    }

    /// Holds at most `bytes` of memory.
    pub fn holding(self, bytes: u64) -> Budget {
        Budget { bytes: Some(bytes), ..self }
    }

    /// Takes one step. Looks at the clock and at Ctrl-C only now and then, so that it may be called for every entry of
    /// a table.
    ///
    /// # Errors
    /// What there is no more of. It stays so.
    pub fn go_on(&mut self) -> Result<(), OutOfBudget> {
        self.spend(1)
    }

    /// Takes several steps at once.
    ///
    /// # Errors
    /// As [`go_on`](Budget::go_on).
    pub fn spend(&mut self, steps: u64) -> Result<(), OutOfBudget> {
        if let Some(left) = &mut self.steps {
            match left.checked_sub(steps) {
                Some(rest) => *left = rest,
                None => _ = self.over.get_or_insert(OutOfBudget::Steps),
            }
        }
        self.since_look = self.since_look.saturating_add(steps);
        if self.over.is_none() && self.since_look >= STEPS_BETWEEN_LOOKS {
            self.since_look = 0;
            let is_interrupted = self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
            let is_late = || self.deadline.is_some_and(|end| Instant::now() >= end);
            if is_interrupted {
                self.over = Some(OutOfBudget::Interrupted);
            } else if is_late() {
                self.over = Some(OutOfBudget::Time);
            }
        }
        self.check()
    }

    /// Takes no step: whether an earlier one was refused, and what was left out for that is missing.
    ///
    /// # Errors
    /// As the earlier step.
    pub fn check(&self) -> Result<(), OutOfBudget> {
        self.over.map_or(Ok(()), Err)
    }

    /// Takes memory, before it is allocated.
    ///
    /// # Errors
    /// [`OutOfBudget::Bytes`] if fewer bytes are left: none are taken, so a smaller part may still fit. What else there
    /// is no more of.
    pub fn hold(&mut self, bytes: u64) -> Result<(), OutOfBudget> {
        self.check()?;
        if let Some(left) = &mut self.bytes {
            *left = left.checked_sub(bytes).ok_or(OutOfBudget::Bytes)?;
        }
        Ok(())
    }

    /// Takes one step that is long by itself: looks at the clock and at Ctrl-C at once.
    ///
    /// # Errors
    /// As [`go_on`](Budget::go_on).
    pub fn look(&mut self) -> Result<(), OutOfBudget> {
        self.since_look = STEPS_BETWEEN_LOOKS;
        self.go_on()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fmt::Debug;

    /// Asks with a budget of n steps for growing n: each answer must be whole, or given up for that. Returns how many
    /// were given up.
    pub fn whole_or_given_up<A: PartialEq + Debug>(ask: impl Fn(Budget) -> Result<A, OutOfBudget>) -> u64 {
        let whole = ask(Budget::unlimited());
        let mut steps = 0;
        for given_up in 0.. {
            match ask(Budget::unlimited().at_most(steps)) {
                Err(why) => assert_eq!(why, OutOfBudget::Steps),
                answer => {
                    assert_eq!(answer, whole, "{steps} steps");
                    return given_up;
                }
            }
            steps += 1 + steps / 16;
        }
        0
    }

    #[test]
    fn what_is_over_stays_over() {
        let flag = Arc::new(AtomicBool::new(false));
        let mut budget = Budget::until(Arc::clone(&flag));
        assert_eq!(budget.look(), Ok(()));
        flag.store(true, Ordering::Relaxed);
        assert_eq!(budget.go_on(), Ok(()), "it looks only now and then");
        assert_eq!(budget.look(), Err(OutOfBudget::Interrupted));
        flag.store(false, Ordering::Relaxed);
        assert_eq!(budget.go_on(), Err(OutOfBudget::Interrupted));
        assert_eq!(budget.look(), Err(OutOfBudget::Interrupted));
    }

    #[test]
    fn many_steps_bring_a_look() {
        let mut budget = Budget::unlimited().within(Duration::ZERO);
        let steps = (1..).find(|_| budget.go_on().is_err());
        assert_eq!(steps, Some(STEPS_BETWEEN_LOOKS));
        assert_eq!(Budget::unlimited().within(Duration::ZERO).spend(u64::MAX), Err(OutOfBudget::Time));
    }

    #[test]
    fn each_step_counts() {
        let whole = Budget::unlimited().at_most(3);
        let mut budget = whole.clone();
        assert_eq!([(); 4].map(|()| budget.go_on().is_ok()), [true, true, true, false]);
        assert_eq!(budget.look(), Err(OutOfBudget::Steps));
        assert_eq!(whole.clone().at_most(0).look(), Err(OutOfBudget::Steps));
        assert_eq!(whole.clone().spend(3), Ok(()));
        assert_eq!(whole.clone().spend(4), Err(OutOfBudget::Steps));
    }

    #[test]
    fn each_byte_counts() {
        let mut budget = Budget::unlimited().holding(3);
        assert_eq!([1, 3, 2, 1, 0].map(|bytes| budget.hold(bytes).is_ok()), [true, false, true, false, true]);
        assert_eq!(Budget::unlimited().holding(3).hold(4), Err(OutOfBudget::Bytes));
        assert_eq!(Budget::unlimited().hold(u64::MAX), Ok(()));
        let mut late = Budget::unlimited().holding(3).at_most(0);
        assert_eq!((late.look(), late.hold(1)), (Err(OutOfBudget::Steps), Err(OutOfBudget::Steps)));
    }

    #[test]
    fn of_two_deadlines_the_first_counts() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Budget::unlimited().within(Duration::ZERO).within(hour).look(), Err(OutOfBudget::Time));
        assert_eq!(Budget::unlimited().within(hour).within(Duration::ZERO).look(), Err(OutOfBudget::Time));
        assert_eq!(Budget::unlimited().within(Duration::MAX).look(), Ok(()));
    }
}
