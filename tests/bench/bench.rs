//! What answers cost, compared with the kernel's own reads of the same things: `scripts/bench`.
//!
//! The benchmarks run on processes that this program starts (it executes itself, see [`subject`]). In each round pmdb
//! and what it is compared with run in turn. The table has the median times, and the median of the rounds' ratios. The
//! last column has the requirement, with a mark if it was missed.
//!
//! Arguments choose benchmarks by the first letters of their names (`a`, `b fork`, `f`); without arguments all run.
//! `PMDB_BENCH_SCALE` is the size of the processes in percent (100), `PMDB_BENCH_ROUNDS` the number of rounds (7), and
//! `PMDB_BENCH_CLOCK=cpu` measures CPU time instead of wall time: use it on a busy machine. It says nothing about the
//! use of two cores.
#![allow(unsafe_code)]

mod captures;
mod floor;
mod gdb;
mod heaps;
#[path = "../live/waits.rs"]
mod held_up;
mod kernel_calls;
mod measure;
mod ours;
mod peers;
mod questions;
mod slopes;
mod subject;
mod symbols;
mod table;
#[allow(dead_code, reason = "the live tests ask more of it")]
#[path = "../live/target.rs"]
mod target;
mod waits;

use std::env;

/// A scenario of [`target`]: its name, and what a process does with its arguments.
type Scenario = (&'static str, fn(&[String]));

/// The size of the processes, and the number of rounds.
pub struct Size {
    percent: u64,
    pub rounds: usize,
}

impl Size {
    fn from_environment() -> Size {
        let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        Size {
            percent: number("PMDB_BENCH_SCALE").unwrap_or(100).clamp(1, 1000),
            rounds: number("PMDB_BENCH_ROUNDS").unwrap_or(7).clamp(1, 1000) as usize,
        }
    }

    /// `whole` scaled to this size, in units of `unit`: at least one of them.
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
