//! Threads of the target hardly wait while pmdb reads its page map.

use super::support::skip;
use super::target::Target;
use super::{Scenario, Test, waits};
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[("held_up::threads_hardly_wait", threads_hardly_wait)];

pub const SCENARIOS: &[Scenario] = &[("waits", |bytes| waits::play(bytes[0].parse().expect("a number")))];

const ROUNDS: usize = 7;
/// The most that the 99th percentile grows, and the longest wait.
const MOST: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(6)];

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// In rounds with a command and without one. Half of the rounds may be disturbed.
fn threads_hardly_wait() {
    const NAME: &str = "held_up::threads_hardly_wait";
    // A reader that another program keeps from its processor keeps the lock.
    if std::env::var_os("PMDB_QUIET").is_none() {
        return skip(NAME, "it needs a quiet machine: set PMDB_QUIET=1");
    }
    let mut target = Target::start("waits", &[&(384u64 << 20).to_string()]);
    target.line();
    let pid = target.pid().to_string();
    for line in ["account", "walk all by kind", "regions by rss"] {
        let mut rounds = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            for (figures, of) in rounds.iter_mut().zip([None, Some(&pid)]) {
                let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
                command.args(["-nx", "-q", "-batch"]);
                match of {
                    Some(pid) => command.args(["-p", pid, "-ex", line]),
                    None => command.args(["-ex", "help"]),
                };
                target.send("begin");
                target.line();
                let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("pmdb runs");
                assert!(status.success());
                target.send("end");
                figures.push(target.numbers().into_iter().map(Duration::from_nanos).collect::<Vec<_>>());
            }
        }
        let [without, with] = &rounds;
        let all = |rounds: &[Vec<Duration>], figure: usize| rounds.iter().map(|one| one[figure]).collect::<Vec<_>>();
        for percentile in [0, 2] {
            let longest = percentile + 1;
            if median(all(without, longest)) > MOST[1] / 2 {
                return skip(NAME, "other programs hold the processors");
            }
            let grown =
                with.iter().zip(without).map(|(with, without)| with[percentile].saturating_sub(without[percentile]));
            let found = [median(grown.collect()), median(all(with, longest))];
            assert!(found[0] <= MOST[0] && found[1] < MOST[1], "{line}, thread {}: {found:?}", percentile / 2);
        }
    }
}
