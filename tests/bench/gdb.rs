//! pmdb in gdb: what a call, a function in a condition, and a stop with a tracked range cost. gdb itself measures the
//! time.

use super::Size;
use super::measure::Times;
use super::ours;
use super::subject::Subject;
use super::table::{Required, Table};
use pmdb::inspect::Evidence;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PLUGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/pmdb-gdb.py");

/// A program with a function that is called in a loop, and a few pages.
const LOOP: &str = r"
#include <stdlib.h>
#include <string.h>
char *pool;
volatile int turns;
void turn(int number) { turns += number; }
void done(void) {}
int main(void)
{
    pool = memset(malloc(16 << 12), 1, 16 << 12);
    for (;;) {
        for (int i = 0; i < HITS; i++)
            turn(i);
        done();
    }
}
";
const HITS: u32 = 300;

/// A gdb with the plugin that says how long commands take.
struct Gdb {
    child: Child,
    lines: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Gdb {
    fn start(arguments: &[&str]) -> Option<Gdb> {
        let mut command = Command::new("gdb");
        command
            .args(["-nx", "-q", "-ex", "set confirm off", "-ex", "set height 0"])
            .args(["-ex", &format!("set pmdb program {}", env!("CARGO_BIN_EXE_pmdb"))])
            .args(["-iex", &format!("source {PLUGIN}"), "-ex", "python import time"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let lines = child.stdin.take();
        let answers = BufReader::new(child.stdout.take()?).lines();
        Some(Gdb { child, lines, answers })
    }

    fn run(&mut self, line: &str) {
        let lines = self.lines.as_mut().expect("its input");
        writeln!(lines, "{line}").expect("gdb reads");
    }

    /// How long a statement in Python takes.
    fn time(&mut self, python: &str) -> Duration {
        self.run(&format!("python start = time.monotonic(); {python}; print('took', time.monotonic() - start)"));
        loop {
            let line = self.answers.next().expect("an answer").expect("text");
            if let Some((_, seconds)) = line.split_once("took ") {
                return Duration::from_secs_f64(seconds.trim().parse().expect("seconds"));
            }
        }
    }

    fn command(&mut self, line: &str) -> Duration {
        self.time(&format!("gdb.execute('{line}', to_string=True)"))
    }
}

impl Drop for Gdb {
    fn drop(&mut self) {
        self.lines = None;
        _ = self.child.wait();
    }
}

/// (p) The plugin.
pub fn plugin(size: &Size, table: &mut Table) {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("loop.c"), folder.path().join("loop"));
    std::fs::write(&source, LOOP).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O0", &format!("-DHITS={HITS}"), "-o"]);
    let is_compiled = cc.arg(&program).arg(&source).status();
    let gdb = Gdb::start(&[&program.display().to_string()]);
    let (Some(mut gdb), true) = (gdb, is_compiled.is_ok_and(|status| status.success())) else {
        return table.without("(p) pmdb in gdb", "there is no gdb or no C compiler");
    };
    for line in ["break turn if turns < 0", "break done", "run"] {
        gdb.command(line);
    }
    let mut hits = |condition: &str| {
        gdb.command(&format!("condition 1 {condition}"));
        gdb.command("continue") / HITS
    };
    for condition in ["$_resident(pool, 65536) > 100", "$_pfn(pool) == 0", "$_huge(pool) > 1"] {
        let rounds = (0..size.rounds).map(|_| (hits("turns < 0"), hits(condition)));
        let (own, with): (Vec<Duration>, Vec<Duration>) = rounds.unzip();
        let beyond = with.iter().zip(&own).map(|(with, own)| with.saturating_sub(*own));
        table.row(
            &format!("(p) {condition}, a hit, beyond gdb's own"),
            &Times::measured(beyond.collect()),
            "a condition of gdb's own",
            &Times::measured(own),
            Required::Time(Duration::from_micros(300)),
        );
    }
    gdb.command("pmdb translate pool");
    let rounds = (0..size.rounds * 20).map(|_| (gdb.command("pmdb translate pool"), gdb.command("x/xg pool")));
    let (ours, own): (Vec<Duration>, Vec<Duration>) = rounds.unzip();
    table.row(
        "(p) pmdb translate ADDR, after the first",
        &Times::measured(ours),
        "x/xg of gdb",
        &Times::measured(own),
        Required::Time(Duration::from_millis(1)),
    );
    tracked(size, table);
}

/// A stop with 1 GiB that is tracked, and in which nothing changed.
fn tracked(size: &Size, table: &mut Table) {
    let subject = Subject::start("small", &[size.of(1 << 30, 2 << 20)]);
    let target = subject.target.attach();
    let attach = format!("attach {}", subject.pid());
    let mut gdb = Gdb::start(&["-ex", &attach]).expect("gdb is here");
    gdb.command(&format!("pmdb track {:#x}, +{:#x}", subject.start, subject.len));
    gdb.time("at_stop(None)");
    let (mut reads, mut stops) = (Vec::new(), Vec::new());
    for _ in 0..size.rounds {
        let start = Instant::now();
        ours::walk(&target, subject.range(), Evidence::ENTRIES, || ());
        reads.push(start.elapsed());
        stops.push(gdb.time("at_stop(None)"));
    }
    table.row(
        "(p) a stop, 1 GiB tracked",
        &Times::measured(stops),
        "frames and states, two cores",
        &Times::measured(reads),
        Required::Ratio(1.5),
    );
}
