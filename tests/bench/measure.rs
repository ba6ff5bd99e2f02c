//! Runs contenders in turn, and evaluates their times.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The times of one contender, round by round.
#[derive(Clone)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Times that another program took.
    pub fn measured(times: Vec<Duration>) -> Times {
        Times(times)
    }

    pub fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The ratio to `other`: the median over the rounds, so that other load on the machine affects both.
    pub fn over(&self, other: &Times) -> f64 {
        let ratio = |(a, b): (&Duration, &Duration)| a.as_secs_f64() / b.as_secs_f64();
        let mut ratios: Vec<f64> = self.0.iter().zip(&other.0).map(ratio).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// How much longer than `other`: the median over the rounds.
    pub fn beyond(&self, other: &Times) -> Duration {
        Times(self.0.iter().zip(&other.0).map(|(a, b)| a.saturating_sub(*b)).collect()).median()
    }

    /// How much longer than `smaller`, which is of `pages` pages less: for each page, round by round.
    pub fn slope(&self, smaller: &Times, pages: u64) -> Times {
        let of = |(a, b): (&Duration, &Duration)| a.saturating_sub(*b).div_f64(pages as f64);
        Times(self.0.iter().zip(&smaller.0).map(of).collect())
    }

    /// All times multiplied by `times`.
    pub fn scaled(&self, times: f64) -> Times {
        Times(self.0.iter().map(|time| time.mul_f64(times)).collect())
    }
}

/// The clock that is used.
#[derive(Clone, Copy)]
enum Clock {
    /// Wall time.
    Wall,
    /// CPU time of this program and its children, which is meaningful also on a busy machine.
    Processor,
}

impl Clock {
    fn from_environment() -> Clock {
        match std::env::var("PMDB_BENCH_CLOCK").as_deref() {
            Ok("cpu") => Clock::Processor,
            _ => Clock::Wall,
        }
    }
}

fn now(clock: Clock) -> Duration {
    let duration =
        |seconds: i64, nanoseconds: i64| Duration::new(seconds.unsigned_abs(), nanoseconds.unsigned_abs() as u32);
    match clock {
        Clock::Wall => {
            let now = clock_gettime(ClockId::Monotonic);
            duration(now.tv_sec, now.tv_nsec)
        }
        Clock::Processor => {
            let own = clock_gettime(ClockId::ProcessCPUTime);
            // SAFETY: numbers, for which all zeros are values; the call fills them in.
            let mut children: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: `children` is what the call writes to.
            unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut children) };
            let of = |time: libc::timeval| duration(time.tv_sec, time.tv_usec * 1000);
            duration(own.tv_sec, own.tv_nsec) + of(children.ru_utime) + of(children.ru_stime)
        }
    }
}

/// Runs all in turn: one round to warm up, then `rounds` rounds.
pub fn in_turn<const N: usize>(rounds: usize, contenders: [&mut dyn FnMut(); N]) -> [Times; N] {
    by_clock(Clock::from_environment(), rounds, contenders)
}

/// The same by CPU time.
pub fn cpu_in_turn<const N: usize>(rounds: usize, contenders: [&mut dyn FnMut(); N]) -> [Times; N] {
    by_clock(Clock::Processor, rounds, contenders)
}

fn by_clock<const N: usize>(clock: Clock, rounds: usize, mut contenders: [&mut dyn FnMut(); N]) -> [Times; N] {
    let mut times = [const { Times(Vec::new()) }; N];
    for round in 0..=rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let start = now(clock);
            contender();
            let taken = now(clock).saturating_sub(start);
            if round > 0 {
                times.0.push(taken);
            }
        }
    }
    times
}

/// Runs `work` on one core: the engine then starts no threads.
pub fn on_one_core<T>(work: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None).expect("the cores of this program");
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).expect("one core");
    let result = work();
    sched_setaffinity(None, &before).expect("all cores");
    result
}
