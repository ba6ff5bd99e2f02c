//! When samples are due, and how a command ends that takes them.

use super::floor::{Error, Flow, Outcome};
use super::rows::stop_of_sweep;
use crate::kernel::words::worded;
use crate::process::{self, Process};
use crate::render::Sink;
use crate::report::Stopped;
use std::time::Duration;

/// Samples closer together than this would take longer than the time between them.
const SHORTEST: Duration = Duration::from_millis(1);

/// Samples at equal distances. Times count from the first.
pub(super) struct Schedule {
    every: Duration,
    /// When the next sample is due.
    due: Duration,
    /// How many were due while an earlier one was still being taken.
    pub missed: u64,
}

impl Schedule {
    /// Refused if `every` is shorter than a millisecond, and for a capture.
    pub fn new(every: Duration, process: &Process) -> Result<Schedule, Error> {
        if process.capture_times().is_some() {
            return Err(Error::refused("nothing changes in a capture", "`diff` compares two moments of a process"));
        }
        Schedule::every(every)
    }

    fn every(every: Duration) -> Result<Schedule, Error> {
        if every < SHORTEST {
            return Err(Error::refused("`every` must be at least 1 ms", "write `every 1ms`"));
        }
        Ok(Schedule { every, due: Duration::ZERO, missed: 0 })
    }

    /// After a sample: how long it is from `now` to the next, or to the end of `duration`; `None` if that is over.
    pub fn pause(&mut self, now: Duration, duration: Option<Duration>) -> Option<Duration> {
        let wait = self.wait(duration.map_or(now, |duration| duration.min(now)));
        match duration.map(|duration| duration.saturating_sub(now)) {
            Some(Duration::ZERO) => None,
            Some(left) => Some(wait.min(left)),
            None => Some(wait),
        }
    }

    /// After a sample: how long it is from `now` to the next. One that is late is taken at once, and those that were
    /// due before it are missed.
    fn wait(&mut self, now: Duration) -> Duration {
        self.due = self.due.saturating_add(self.every);
        let late = now.saturating_sub(self.due).as_nanos();
        let every = self.every.as_nanos().max(1);
        self.missed += u64::try_from(late / every).unwrap_or(u64::MAX);
        // What is late by less than a period is the latest sample that is due.
        let since_due = u64::try_from(late % every).unwrap_or(u64::MAX);
        self.due = self.due.max(now.saturating_sub(Duration::from_nanos(since_due)));
        self.due.saturating_sub(now)
    }
}

worded! {
    /// Why the samples ended.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum SamplesEnd, word {
        /// `count` was reached.
        Count = "count",
        /// `for` was over.
        Duration = "duration",
        /// `until` became true.
        Until = "until",
        /// The process exited.
        Exited = "exited",
        /// Ctrl-C.
        Interrupted = "interrupted",
    }
}

impl SamplesEnd {
    /// That Ctrl-C ended the samples; other errors are passed on.
    pub fn of_error(error: Error, sink: &mut dyn Sink) -> Result<Self, Error> {
        match stop_of_sweep(Err(error), sink)? {
            Some(Stopped::Closed) => Err(Stopped::Closed.into()),
            _ => Ok(SamplesEnd::Interrupted),
        }
    }

    /// The outcome of the command: an error if there is an `until`, and it did not become true.
    pub fn outcome(self, has_until: bool) -> Outcome {
        match self {
            SamplesEnd::Duration if has_until => {
                Err(Error::Unmet { message: "timed out: `until` did not become true within `for`".to_owned() })
            }
            SamplesEnd::Exited if has_until => {
                Err(process::Error::gone("`until` did not become true: the process has exited").into())
            }
            // The next lines of a command file rely on the condition.
            SamplesEnd::Interrupted if has_until => Err(Stopped::Interrupted.into()),
            _ => Ok(Flow::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_come_late_are_counted() {
        let ms = Duration::from_millis;
        let mut schedule = Schedule::every(ms(50)).expect("long enough");
        assert_eq!((schedule.wait(ms(10)), schedule.missed), (ms(40), 0));
        assert_eq!((schedule.wait(ms(70)), schedule.missed), (ms(30), 0));
        // The one at 150 is late, and taken at once.
        assert_eq!((schedule.wait(ms(170)), schedule.missed), (ms(0), 0));
        // Those at 200 and 250 are missed.
        assert_eq!((schedule.wait(ms(310)), schedule.missed), (ms(0), 2));
        assert_eq!((schedule.wait(ms(311)), schedule.missed), (ms(39), 2));
        let mut rare = Schedule::every(Duration::MAX).expect("long enough");
        assert_eq!(rare.wait(ms(10)), Duration::MAX - ms(10));
    }

    #[test]
    fn with_slow_samples_those_taken_and_those_missed_are_all_that_were_due() {
        let mut schedule = Schedule::every(Duration::from_millis(50)).expect("long enough");
        let (mut now, mut taken) = (Duration::ZERO, 0);
        while now < Duration::from_secs(1) {
            taken += 1;
            now += Duration::from_millis(70);
            now += schedule.wait(now);
        }
        assert_eq!((taken, taken + schedule.missed), (15, 21));
    }
}
