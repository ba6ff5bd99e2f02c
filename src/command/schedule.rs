//! When samples are due.

use std::time::Duration;

/// Samples at equal distances. Times count from the first.
pub(super) struct Schedule {
    every: Duration,
    /// When the next sample is due.
    due: Duration,
    /// How many were due while an earlier one was still being taken.
    pub missed: u64,
}

impl Schedule {
    /// `every` is not zero.
    pub fn new(every: Duration) -> Schedule {
        Schedule { every, due: Duration::ZERO, missed: 0 }
    }

    /// After a sample: how long it is from `now` to the next. One that is late is taken at once, and those that were
    /// due before it are missed.
    pub fn wait(&mut self, now: Duration) -> Duration {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_come_late_are_counted() {
        let ms = Duration::from_millis;
        let mut schedule = Schedule::new(ms(50));
        assert_eq!((schedule.wait(ms(10)), schedule.missed), (ms(40), 0));
        assert_eq!((schedule.wait(ms(70)), schedule.missed), (ms(30), 0));
        // The one at 150 is late, and taken at once.
        assert_eq!((schedule.wait(ms(170)), schedule.missed), (ms(0), 0));
        // Those at 200 and 250 are missed.
        assert_eq!((schedule.wait(ms(310)), schedule.missed), (ms(0), 2));
        assert_eq!((schedule.wait(ms(311)), schedule.missed), (ms(39), 2));
        let mut rare = Schedule::new(Duration::MAX);
        assert_eq!(rare.wait(ms(10)), Duration::MAX - ms(10));
    }

    #[test]
    fn with_slow_samples_those_taken_and_those_missed_are_all_that_were_due() {
        let mut schedule = Schedule::new(Duration::from_millis(50));
        let (mut now, mut taken) = (Duration::ZERO, 0);
        while now < Duration::from_secs(1) {
            taken += 1;
            now += Duration::from_millis(70);
            now += schedule.wait(now);
        }
        assert_eq!((taken, taken + schedule.missed), (15, 21));
    }
}
