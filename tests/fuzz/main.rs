//! Fuzzing of every parser of untrusted bytes with mutated inputs: no panic, no hang, no unbounded memory.
//!
//! As a test each target runs for a moment, on the same inputs every time; `scripts/fuzz SECONDS` runs longer, on
//! others. Each input has a number, which a panic names, and so does the last line after an abort or a hang.
//! `PMDB_FUZZ_NUMBER=N scripts/fuzz 1 TARGET` runs only that one.
//!
//! The corpus is no folder of files: each target makes its valid seeds when it starts, programs field by field. Seeds
//! are checked to be valid before they are mutated. Inputs are not chosen by coverage: libFuzzer is C++, which would
//! have to be compiled each time. Mutating single fields of valid inputs finds errors with offsets and counts, and
//! needs no further tools.

mod btf;
mod budget;
mod capture;
mod commands;
mod core;
mod dwarf;
mod elf;
mod heaps;
mod jit;
#[path = "../captures/mod.rs"]
mod made;
mod memory;
mod mutate;
mod names;
mod program;
#[path = "../sample/mod.rs"]
mod sample;
mod targets;

use libtest_mimic::{Arguments, Trial};
use rustix::time::{ClockId, clock_gettime};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

/// The CPU time for one input after which the whole run is aborted: that input hangs.
const ENDLESS: Duration = Duration::from_secs(20);
/// The factor for a build without optimisation. There the slowest names take 26 times as long, but with optimisation
/// they take less than a tenth of their limit.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 8 } else { 1 };
/// The most memory for the whole run.
const MOST_BYTES: u64 = 6 << 30;

/// A fuzz target.
pub struct Fuzzed {
    pub name: &'static str,
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Pieces that mutations insert.
    pub words: &'static [&'static str],
    pub feed: fn(&[u8]),
    /// Most CPU time for one input, in an optimised build.
    pub longest: Duration,
}

fn main() {
    let limit = rustix::process::Rlimit { current: Some(MOST_BYTES), maximum: Some(MOST_BYTES) };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).expect("a limit");
    let mut arguments = Arguments::from_args();
    // Each is one thread's work; two at a time leave cores for others.
    arguments.test_threads.get_or_insert(2);
    let trials = targets::ALL.iter().map(|fuzzed| {
        Trial::test(fuzzed.name, move || {
            run(fuzzed);
            Ok(())
        })
    });
    let within_budget = Trial::test("answers-within-a-budget", || {
        budget::run();
        Ok(())
    });
    let layouts_within_budget = Trial::test("layouts-within-a-budget", || {
        btf::within_budget();
        Ok(())
    });
    let memory = Trial::test("memory-is-a-multiple-of-the-input", || {
        memory::is_a_multiple_of_the_input();
        Ok(())
    });
    let bounded = Trial::test("memory-is-bounded-for-small-files", || {
        memory::is_bounded();
        Ok(())
    });
    let seen = Trial::test("endless-commands-are-seen", || {
        commands::would_be_seen();
        Ok(())
    });
    libtest_mimic::run(
        &arguments,
        trials.chain([within_budget, layouts_within_budget, memory, bounded, seen]).collect(),
    )
    .exit();
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn run(fuzzed: &'static Fuzzed) {
    let seeds = (fuzzed.seeds)();
    assert!(!seeds.is_empty(), "{} has no seeds", fuzzed.name);
    for seed in &seeds {
        fed_in_time(fuzzed, seed);
    }
    if let Some(number) = number_of("PMDB_FUZZ_NUMBER") {
        fed_in_time(fuzzed, &mutate::input(&seeds, fuzzed.words, number));
        return;
    }
    let seconds = number_of("PMDB_FUZZ_SECONDS").unwrap_or(2);
    let start = number_of("PMDB_FUZZ_START").unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(seconds);
    let progress = Progress::watched(fuzzed.name, start);
    let mut number = start;
    let mut longest = Duration::ZERO;
    while Instant::now() < end {
        progress.note(number);
        let input = mutate::input(&seeds, fuzzed.words, number);
        match std::panic::catch_unwind(|| fed_in_time(fuzzed, &input)) {
            Ok(spent) => longest = longest.max(spent),
            Err(why) => {
                eprintln!("{}: input {number} ({} bytes)", fuzzed.name, input.len());
                std::panic::resume_unwind(why);
            }
        }
        number += 1;
    }
    progress.over.store(true, Ordering::Relaxed);
    println!("{}: {} inputs from {start} on, the longest {} ms", fuzzed.name, number - start, longest.as_millis());
}

/// Feeds one input, and returns the CPU time that it took.
fn fed_in_time(fuzzed: &Fuzzed, input: &[u8]) -> Duration {
    let before = spent(ClockId::ThreadCPUTime);
    (fuzzed.feed)(input);
    let took = spent(ClockId::ThreadCPUTime).saturating_sub(before);
    assert!(took <= fuzzed.longest * UNOPTIMISED, "it took {took:?} of CPU time");
    took
}

fn spent(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).expect("a clock counts forwards")
}

/// The number of the current input, for the report of an abort or a hang.
struct Progress {
    file: std::fs::File,
    number: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Progress {
    fn watched(name: &'static str, start: u64) -> Progress {
        let path = format!("{}/fuzz-{name}", env!("CARGO_TARGET_TMPDIR"));
        let file = std::fs::File::create(&path).or_else(|_| tempfile::tempfile());
        let progress = Progress {
            file: file.expect("a file for the number of the input"),
            number: Arc::new(AtomicU64::new(start)),
            over: Arc::new(AtomicBool::new(false)),
        };
        let (number, over) = (Arc::clone(&progress.number), Arc::clone(&progress.over));
        std::thread::spawn(move || {
            let mut last = (start, spent(ClockId::ProcessCPUTime));
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_secs(1));
                let now = (number.load(Ordering::Relaxed), spent(ClockId::ProcessCPUTime));
                if now.0 != last.0 {
                    last = now;
                } else if now.1.saturating_sub(last.1) > ENDLESS {
                    eprintln!("{name}: input {} does not end", last.0);
                    std::process::abort();
                }
            }
        });
        progress
    }

    fn note(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
        let text = format!("{number:20}\n");
        self.file.write_at(text.as_bytes(), 0).expect("to note the number");
    }
}
