//! How long pmdb holds up the threads of its target.

use super::measure::Times;
use super::subject::Subject;
use super::table::{Required, Table};
use super::{Size, ours};
use std::time::Duration;

/// Rounds of each command, with it and without.
const ROUNDS: usize = 10;

/// (l) The waits of two threads of a process with 1 GiB of small pages: while pmdb examines it, and while it examines a
/// process of the same size.
pub fn waits(size: &Size, table: &mut Table) {
    let mut subjects = [(); 2].map(|()| Subject::start("waits", &[size.of(1 << 30, 2 << 20)]));
    for line in ["account", "account full", "walk all by kind", "regions", "regions by rss"] {
        // Of each round the two figures of both threads.
        let mut rounds: [Vec<Vec<u64>>; 2] = Default::default();
        for _ in 0..ROUNDS {
            for (which, figures) in rounds.iter_mut().enumerate() {
                let examined = subjects[which].pid();
                let waiting = &mut subjects[0].target;
                waiting.send("begin");
                waiting.line();
                assert!(ours::program(examined, line));
                waiting.send("end");
                figures.push(waiting.numbers());
            }
        }
        let of = |which: usize, figure: usize| {
            let times = rounds[which].iter().map(|figures| Duration::from_nanos(figures[figure]));
            Times::measured(times.collect())
        };
        for (thread, figure) in [("mapping", 0), ("touching", 2)] {
            let most = |required| if line == "account full" { Required::Nothing } else { required };
            let question = |what: &str| format!("(l) {line}: a thread that is {thread} waits, {what}");
            let (percentile, longest) = (Duration::from_millis(1), Duration::from_millis(6));
            let without = "of another process";
            let most_of_percentile = most(Required::Longer(percentile));
            table.row(&question("99 %"), &of(0, figure), without, &of(1, figure), most_of_percentile);
            let (with, other) = (of(0, figure + 1), of(1, figure + 1));
            table.row(&question("longest"), &with, without, &other, most(Required::Time(longest)));
        }
    }
}
