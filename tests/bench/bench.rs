//! What answers cost, against what the kernel's own reads of the same things cost: `scripts/bench`.
//!
//! Every question is put to processes that this program makes (it starts itself again, see [`subject`]), to pmdb and to something to
//! compare with, in turn, round after round; the table has the medians, and of the ratios of the rounds the median. What is asked for
//! stands in the last column, with a mark where it was not reached.
//!
//! Arguments choose questions by the first letters of their names (`a`, `b fork`, `f`); all without any.
//! `PMDB_BENCH_SCALE` is the size of the processes in percent (100), `PMDB_BENCH_ROUNDS` the number of rounds (7), and
//! `PMDB_BENCH_CLOCK=cpu` has time on the processors measured instead of that on the wall, which on a machine that does other things too
//! is all that says something (but nothing of two cores).
#![allow(unsafe_code)]

mod floor;
mod gdb;
mod kernel_calls;
mod measure;
mod ours;
mod peers;
mod questions;
mod subject;
mod symbols;
mod table;
#[allow(dead_code, reason = "the live tests ask more of it")]
#[path = "../live/target.rs"]
mod target;

use std::env;

/// A scenario of [`target`]: what it is called, and what a process does with its arguments.
type Scenario = (&'static str, fn(&[String]));

/// How large the processes are, and how often each is asked about.
pub struct Size {
    percent: u64,
    pub rounds: usize,
}

impl Size {
    fn from_environment() -> Size {
        let number = |name| {
            env::var(name)
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
        };
        Size {
            percent: number("PMDB_BENCH_SCALE").unwrap_or(100).clamp(1, 1000),
            rounds: number("PMDB_BENCH_ROUNDS").unwrap_or(7).clamp(1, 1000) as usize,
        }
    }

    /// So much of `whole`, in units of `unit`, at least one of them.
    pub fn of(&self, whole: u64, unit: u64) -> u64 {
        (whole * self.percent / 100 / unit).max(1) * unit
    }
}

fn main() {
    if let Some(scenario) = target::asked_for() {
        return target::play(&scenario, &[subject::SCENARIOS]);
    }
    // Cargo says `--bench` to all of them.
    let chosen: Vec<String> = env::args().skip(1).filter(|one| one != "--bench").collect();
    let size = Size::from_environment();
    let mut table = table::Table::default();
    for (name, ask) in questions::ALL {
        if chosen.is_empty() || chosen.iter().any(|one| name.starts_with(one.as_str())) {
            ask(&size, &mut table);
        }
    }
    table.print(&size);
}
